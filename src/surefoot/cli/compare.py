"""``surefoot compare``: which way to decide costs least on your own data."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from surefoot.cli.economics import Economics
from surefoot.cli.fit import contexts_and_outcomes, read_for_outcome, refuse_few
from surefoot.cli.options import Judging, Roles
from surefoot.cli.screen import Screen, listed_columns, show_economics, show_table
from surefoot.comparison import (
    Comparison,
    ComparisonProgress,
    Folds,
    RollingWindow,
    Splits,
    compare,
)
from surefoot.comparison.compare import MOST_ROWS
from surefoot.comparison.methods import NAMES
from surefoot.comparison.picture import FORMATS, require_matplotlib
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError
from surefoot.io.table_columns import DATE
from surefoot.io.table_file import Reading, TableFile
from surefoot.io.writing import check_target, replaced
from surefoot.validation import check_integer

# With fewer rows a fold holds one or two of them, and intervals mean nothing.
FEWEST_ROWS = 20


def run(
    data: str,
    *,
    roles: Roles,
    economics: Economics,
    judging: Judging,
    methods: Sequence[str] | None = None,
    reference: str | None = None,
    seed: int = 0,
    out: Path | None = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Read, compare, print, draw; after Ctrl-C, print what is done and stop."""
    if out is not None:
        require_matplotlib()
        check_target(out, FORMATS, "A picture")
    check_integer("--seed", seed, at_least=0)
    for name in methods or ():
        if name not in NAMES:
            raise InvalidInputError(f"--methods must be among {', '.join(NAMES)}, got {name!r}.")
    splits = _splits(judging)
    cost = Newsvendor(*economics.costs())
    table = read_for_outcome(data, roles, reading, screen)
    X, y = contexts_and_outcomes(table, roles)
    refuse_few(table, FEWEST_ROWS, "compare on")
    if isinstance(splits, RollingWindow):
        _refuse_few(table, splits)
        if roles.time is None:
            _refuse_disorder(table)
    show_table(screen, table)
    show_economics(screen, economics)
    with screen.progress() as bar:
        comparison = compare(
            X, y, cost, list(methods) if methods else None, splits=splits, reference=reference,
            most_rows=None if judging.all_rows else MOST_ROWS, random_state=seed,
            on_progress=_shown(bar),
        )  # fmt: skip
    _show(comparison, screen)
    if out is not None:
        with replaced(out) as temporary:
            comparison.picture(temporary)
        screen.say(f"Picture: {out}")
    screen.result(
        {
            "rows": comparison.rows_in_all, "outcome": roles.outcome, "splits": comparison.n_splits,
            "status": comparison.status, "sampled": comparison.sampled(),
            "reference": comparison.reference,
            "methods": [asdict(row) for row in comparison.rows], "failures": comparison.reasons(),
            "columns": listed_columns(table),
        }
    )  # fmt: skip
    if not comparison.complete:
        raise KeyboardInterrupt


def _splits(judging: Judging) -> Splits | None:
    """Return the splits asked for; None leaves the choice to ``surefoot.compare``."""
    folds = {name: getattr(judging, name) for name in ("folds", "repeats")}
    given = {name: value for name, value in folds.items() if value is not None}
    rolling = any(value is not None for value in (judging.window, judging.test, judging.step))
    if given and rolling:
        raise InvalidInputError("Give --folds and --repeats, or --window and --test, got both kinds.")
    if not rolling:
        return Folds(**given) if given else None
    if judging.window is None or judging.test is None:
        raise InvalidInputError("--window and --test must come together, got only one of them.")
    return RollingWindow(judging.window, judging.test, judging.step)


def _refuse_few(table: TableFile, window: RollingWindow) -> None:
    step = window.test if window.step is None else window.step
    needed = window.train + window.test + step
    if len(table) < needed:
        raise InvalidInputError(
            f"{table.name} must have at least {needed} rows for two windows (--window {window.train}, "
            f"--test {window.test}, --step {step}), got {len(table)}."
        )


def _refuse_disorder(table: TableFile) -> None:
    """Windows are in order of time: a column of dates that runs backwards says that rows are not."""
    for column in table.columns:
        if column.kind != DATE:
            continue
        days = table.frame[column.name].drop_nulls()
        back = (days.diff().dt.total_days() < 0).fill_null(False)
        if back.any():
            row = int(back.arg_max() or 0)
            raise InvalidInputError(
                f"With --window rows must be in order of time, got {days[row]} after {days[row - 1]} "
                f"in {column.name!r}: sort {table.name} first, or give --time {column.name!r}."
            )


def _shown(bar: Any) -> Callable[[ComparisonProgress], None]:
    def show(progress: ComparisonProgress) -> None:
        bar.update(
            bar.task_ids[0], completed=progress.done, total=progress.total,
            description=f"{progress.method}, {progress.split}",
        )  # fmt: skip

    return show


def _show(comparison: Comparison, screen: Screen) -> None:
    screen.say("\n" + "\n".join(comparison.about()))
    head, lines = comparison.cells()
    screen.table(head, lines, right=6)
    screen.say(comparison.legend())
    for method, reason in comparison.reasons().items():
        screen.note(f"{method}: {reason}")
    for note, count in list(comparison.notes().items())[:3]:
        screen.note(f"in {count} fits: {note}")
