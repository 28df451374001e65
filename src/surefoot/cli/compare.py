"""``surefoot compare``: which way to decide costs least on your own data."""

import argparse
import sys
from pathlib import Path

from surefoot.cli.csv_table import read_csv, split_columns
from surefoot.comparison import Comparison, ComparisonProgress, Folds, RollingWindow, Splits, compare
from surefoot.comparison.methods import NAMES
from surefoot.comparison.picture import check_target, require_matplotlib
from surefoot.comparison.result import table
from surefoot.costs import Newsvendor
from surefoot.estimators.preparation import Table
from surefoot.estimators.preparation.table import DATE
from surefoot.exceptions import InvalidInputError


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``compare`` and its options."""
    parser = commands.add_parser(
        "compare",
        help="compare ways to order on your own data: costs, paired differences, intervals",
        description="Compare ways to order on the rows of a CSV file. Every column but the outcome is "
        "context: numbers, text, dates (2024-05-31) and gaps. Without --window, rows are shuffled into "
        "folds; with it, they must be in order of time.",
    )
    parser.add_argument("data", type=Path, metavar="data.csv", help="the file, with a header")
    parser.add_argument("--outcome", required=True, metavar="COLUMN", help="what was demanded")
    parser.add_argument(
        "--backorder", type=float, required=True, metavar="B", help="cost per unit short"
    )
    parser.add_argument(
        "--holding", type=float, required=True, metavar="H", help="cost per unit left over"
    )
    parser.add_argument(
        "--folds", type=int, metavar="N", help="parts for cross-validation (default: 5)"
    )
    parser.add_argument(
        "--repeats", type=int, metavar="N", help="how often to shuffle anew (default: 3)"
    )
    parser.add_argument("--window", type=int, metavar="ROWS", help="learn from so many rows, in order")
    parser.add_argument("--test", type=int, metavar="ROWS", help="judge on the next so many rows")
    parser.add_argument(
        "--step", type=int, metavar="ROWS", help="then move on by so many (default: --test)"
    )
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these: " + ", ".join(NAMES))
    parser.add_argument("--reference", metavar="NAME", help="compare with this one (default: surefoot)")
    parser.add_argument("--drop", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="decides the folds (default: 0)"
    )
    parser.add_argument(
        "--categories", nargs="+", default=[], metavar="COLUMN",
        help="columns of numbers that are names, such as a store's",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="PICTURE", help="draw differences (png, svg, pdf)")
    parser.set_defaults(run=run_compare)


def run_compare(options: argparse.Namespace) -> None:
    """Read, compare, print, draw; after Ctrl-C, print what is done and stop."""
    if options.out is not None:
        require_matplotlib()
        check_target(options.out)
    splits = _splits(options)
    cost = Newsvendor(options.backorder, options.holding)
    contexts, outcomes = split_columns(
        read_csv(options.data), options.outcome, options.data,
        drop=options.drop, categories=options.categories,
    )  # fmt: skip
    if options.window is not None:
        _refuse_disorder(contexts, options.data)
    found = compare(
        contexts, outcomes, cost, options.methods, splits=splits, reference=options.reference,
        random_state=options.seed, on_progress=_show_progress,
    )  # fmt: skip
    _show("")
    print(_screen(found, options))
    if options.out is not None:
        found.picture(options.out)
        print(f"Picture: {options.out}")
    if not found.complete:
        raise KeyboardInterrupt


def _splits(options: argparse.Namespace) -> Splits:
    folds = {name: getattr(options, name) for name in ("folds", "repeats")}
    given = {name: value for name, value in folds.items() if value is not None}
    rolling = options.window is not None or options.test is not None or options.step is not None
    if given and rolling:
        raise InvalidInputError("Give --folds and --repeats, or --window and --test, got both kinds.")
    if not rolling:
        return Folds(**given)
    if options.window is None or options.test is None:
        raise InvalidInputError("--window and --test must come together, got only one of them.")
    return RollingWindow(options.window, options.test, options.step)


def _refuse_disorder(contexts: Table, path: Path) -> None:
    """Windows are in order of time: a column of dates that runs backwards says that rows are not."""
    for column in contexts.columns:
        if column.kind != DATE:
            continue
        days = column.values[~column.gaps]
        back = (days[1:] < days[:-1]).nonzero()[0]
        if len(back):
            raise InvalidInputError(
                f"With --window rows must be in order of time, got {days[back[0] + 1]} after "
                f"{days[back[0]]} in {column.name!r}: sort {path} first."
            )


def _screen(found: Comparison, options: argparse.Namespace) -> str:
    head = (
        f"{options.data}: {found.rows_in_all} rows, outcome {options.outcome}, "
        f"backorder {options.backorder:g}, holding {options.holding:g}"
    )
    lines = [head, table(found)]
    lines += [f"warning in {count} fits: {note}" for note, count in list(found.notes().items())[:3]]
    return "\n".join(lines)


def _show_progress(progress: ComparisonProgress) -> None:
    _show(f"{progress.done + 1} of {progress.total}: {progress.method}, {progress.split}")


def _show(line: str) -> None:
    """Rewrite the line of progress; say nothing where no one watches."""
    if sys.stderr.isatty():
        print(f"\r{line:78.78}", end="" if line else "\r", file=sys.stderr, flush=True)
