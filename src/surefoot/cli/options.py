"""Options of the commands: those that several share, and groups, each handed on as one object.

The fields of a group are options of every command that has a parameter of that kind (``grouped`` of
``parsing.py``). Nothing slow is imported here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot.cli.parsing import amount, option

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="CSV, Excel or Parquet; - is standard input.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="What surefoot fit wrote.")]
By = Annotated[
    list[str] | None, option("COLUMN", "One policy for each value of a column; may be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Seed = Annotated[int, option("N", "A whole number; results repeat with it.")]
_IGNORE = option("COLUMN", "Columns to leave out.", "--ignore", "--drop")
Ignore = Annotated[list[str] | None, _IGNORE]


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which columns of a table play a part of their own.

    ``by`` are columns that name a series; one policy is fitted for each. Empty is one for all rows.
    ``costs`` are columns with the costs of each row, by "backorder" and "holding".
    """

    outcome: Annotated[str, option("COLUMN", "What was demanded.")]
    time: Annotated[
        str | None, option("COLUMN", "The day, or a number; rows are put in its order.")
    ] = None
    categories: Annotated[
        list[str], option("COLUMN", "Columns of numbers that are names, such as a store's.")
    ] = field(default_factory=list)
    ignore: Annotated[list[str], _IGNORE] = field(default_factory=list)
    by: Sequence[str] = ()
    costs: dict[str, str] = field(default_factory=dict)


def _written(*names: str, metavar: str | None = None, help: str) -> Any:
    panel = "How the file is written, if it must be told"
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How a table is to be read; see ``Reading`` of ``surefoot.io``."""

    encoding: Annotated[str | None, _written(metavar="NAME", help="Such as utf-8 or cp1252.")] = None
    separator: Annotated[str | None, _written(metavar="S", help="Between cells: a sign, or tab.")] = (
        None
    )
    decimal: Annotated[str | None, _written(metavar="SIGN", help="Before decimals: . or ,")] = None
    dates: Annotated[
        str | None,
        _written(metavar="ORDER", help="day-first, month-first or a format such as %d.%m.%Y."),
    ] = None
    sheet: Annotated[str | None, _written(metavar="NAME", help="Sheet of an Excel file.")] = None
    gaps: Annotated[list[str], _written(metavar="WORD", help="Words that stand for a gap.")] = field(
        default_factory=list
    )
    skip_totals: Annotated[bool, _written("--skip-totals", help="Leave rows of totals out.")] = False


@dataclass(frozen=True, kw_only=True)
class Judging:
    """How ``compare`` splits rows: into folds, or into windows in order of time; all rows or some."""

    folds: Annotated[int | None, option("N", "Parts for cross-validation (5).")] = None
    repeats: Annotated[int | None, option("N", "How often to shuffle anew (3).")] = None
    window: Annotated[int | None, option("ROWS", "Learn from so many rows, in order.")] = None
    test: Annotated[int | None, option("ROWS", "Judge on the next so many rows.")] = None
    step: Annotated[int | None, option("ROWS", "Then move on by so many (--test).")] = None
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Sample no rows (else 5,000 a split).")
    ] = False


@dataclass(frozen=True, kw_only=True)
class LineOptions:
    """What ``learn`` reads and writes."""

    input: Annotated[str, typer.Argument(metavar="FILE", help="Lines; - is standard input.")] = "-"
    format: Annotated[str | None, option("csv|jsonl", "csv for FILE.csv, else jsonl.")] = None
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep reading as the file grows, as tail -f does.")
    ] = False
    out: Annotated[Path | None, option("FILE", "Write decisions here.", "--out", "-o")] = None
    checkpoint: Annotated[
        Path | None, option("FILE", "Write state and position here; go on from it.")
    ] = None
    every: Annotated[int, option("N", "Lines between checkpoints.")] = 100
    on_error: Annotated[str, option("stop|skip", "A bad line ends the work, or is passed over.")] = (
        "stop"
    )


@dataclass(frozen=True, kw_only=True)
class Learning:
    """What ``learn`` learns: the question, and what to do about drift."""

    model: Annotated[Path | None, option("FILE", "Go on from a saved model, cost and radius.")] = None
    radius: Annotated[
        float | None, option("R", "In running standard deviations (0.1).", parser=amount)
    ] = None
    decay: Annotated[
        bool, typer.Option("--decay", help="Let the radius fall as 1/sqrt(lines learned).")
    ] = False
    restart: Annotated[bool, typer.Option("--restart", help="Start afresh when costs have risen.")] = (
        False
    )
    window: Annotated[int | None, option("N", "Look back over about N lines only.")] = None
