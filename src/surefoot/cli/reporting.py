"""What commands that write a report share: where the rows come from, and the page itself."""

import hashlib
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surefoot.cli.options import Roles
from surefoot.cli.screen import Screen
from surefoot.estimators.guarantees import Guarantee
from surefoot.io.table_doubts import doubts
from surefoot.io.table_file import TableFile
from surefoot.report import Origin
from surefoot.report.facts import gather
from surefoot.report.judgement import judge
from surefoot.report.words import above_bound, beside_others, costs_what
from surefoot.report.write import write_page


def origin_of(
    data: str,
    table: TableFile,
    roles: Roles,
    *,
    economics: str = "",
    command: Sequence[str] = (),
    guarantee: Guarantee | None = None,
    fingerprint: str = "",
) -> Origin:
    """Return what a report says about the file that its rows come from."""
    # A page is for readers who typed no option.
    economics = re.sub(r"\(--(backorder|holding)\)", r"(\1)", economics)
    doubtful = [re.sub(r" \(--[^)]*\)", "", one) for one in doubts(table, roles.outcome, roles.time)]
    checksum = ""
    if data != "-":
        with Path(data).open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
    return Origin(
        source=Path(table.name).name, checksum=checksum, lines=table.lines, unit=table.unit,
        notes=(*table.notes, *doubtful), command=shlex.join(command), economics=economics,
        guarantee=guarantee, fingerprint=fingerprint,
    )  # fmt: skip


def write_and_say(
    policy: Any, X: Any, y: Any, path: Path, roles: Roles, origin: Origin, screen: Screen,
    *, moments: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Write the report, say the most important of it, and return that for machines.

    ``moments`` are the days of the rows where the model does not look at their column.
    """
    with screen.progress() as bar:

        def show(step: str) -> None:
            bar.update(bar.task_ids[0], description=f"Report: {step}", advance=1)

        facts = gather(
            policy, X, y, outcome=roles.outcome, time=roles.time if moments is None else moments,
            origin=origin, on_progress=show,
        )  # fmt: skip
    judged = judge(facts)
    screen.say(costs_what(facts, judged))
    if judged is not None:
        screen.say(beside_others(judged))
    above = above_bound(facts, judged)
    if above is not None:
        screen.note(above)
    write_page(facts, path)
    screen.say(f"Report: {path}, {path.stat().st_size / 1000:.0f} kB. Open it in a browser.")
    return {
        "path": str(path), "cost": None if judged is None else judged.ours.cost.value,
        "interval": None if judged is None else [judged.ours.cost.low, judged.ours.cost.high],
        "bound": facts.promise.bound, "guarantee": facts.promise.sentence,
        "methods": [] if judged is None else [
            {"method": row.label, "cost": row.cost.value, "difference": row.difference.value,
             "low": row.difference.low, "high": row.difference.high, "verdict": row.verdict}
            for row in judged.methods
        ],
    }  # fmt: skip
