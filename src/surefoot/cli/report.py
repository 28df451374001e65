"""``surefoot report``, and ``fit --report``: one page about a model, on rows with known outcomes."""

import hashlib
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surefoot.cli.decide import read_known
from surefoot.cli.evaluate import outcome_name
from surefoot.cli.fit import in_order, refuse_few
from surefoot.cli.model_table import load_model, needed_columns
from surefoot.cli.options import Roles
from surefoot.cli.screen import Screen, show_table
from surefoot.estimators.guarantees import Guarantee
from surefoot.io.table_columns import OUTCOME, TIME, FileColumn
from surefoot.io.table_doubts import doubts
from surefoot.io.table_file import Reading, TableFile
from surefoot.io.writing import check_target, refuse_inputs
from surefoot.report import Origin
from surefoot.report.facts import gather
from surefoot.report.judgement import judge
from surefoot.report.rows import FEWEST_ROWS
from surefoot.report.words import above_bound, beside_others, costs_what
from surefoot.report.write import SUFFIXES, write_page


def run(
    model: Path,
    data: str,
    out: Path,
    *,
    outcome: str | None = None,
    time: str | None = None,
    reading: Reading,
    command: Sequence[str] = (),
    screen: Screen,
) -> None:
    """Load, read, judge, and write the page."""
    check_target(out, SUFFIXES)
    refuse_inputs(out, [model, data])
    policy, about = load_model(model)
    needed = needed_columns(policy, about, model)
    name = outcome_name(outcome, about, model, needed)
    names = [column.name for column in needed]
    day = time or (about.time if about is not None else "") or None
    also = [FileColumn(name, OUTCOME, "the outcome")]
    if day is not None and day not in names:
        also.append(FileColumn(day, TIME, "the order of time"))
    table = read_known(data, needed, reading, also)
    refuse_few(table, FEWEST_ROWS, "report on")
    if day is not None:
        table = in_order(table, day, screen)
    y, X = table.outcomes(name), table.frame.select(names)
    show_table(screen, table, columns=False)
    roles = Roles(outcome=name, time=day)
    origin = origin_of(
        data, table, roles, command=command, economics="" if about is None else about.economics,
        guarantee=None if about is None else about.guarantee,
        fingerprint="" if about is None else about.fingerprint,
    )  # fmt: skip
    moments = None if day is None or day in names else table.frame[day].to_numpy()
    result = write_and_say(policy, X, y, out, roles, origin, screen, moments=moments)
    screen.result({"model": str(model), "rows": len(y), "outcome": name, **result})


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
