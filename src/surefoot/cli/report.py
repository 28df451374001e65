"""``surefoot report``: one page about a model, on a table with known outcomes."""

from collections.abc import Sequence
from pathlib import Path

from surefoot.cli.decide import read_known
from surefoot.cli.evaluate import outcome_name
from surefoot.cli.fit import in_order, refuse_few
from surefoot.cli.model_table import load_model, needed_columns
from surefoot.cli.options import Roles
from surefoot.cli.reporting import origin_of, write_and_say
from surefoot.cli.screen import Screen, show_table
from surefoot.io.table_columns import OUTCOME, TIME, FileColumn
from surefoot.io.table_file import Reading
from surefoot.io.writing import check_target, refuse_inputs
from surefoot.report.rows import FEWEST_ROWS
from surefoot.report.write import SUFFIXES


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
