"""Arguments and options that several commands share, each described once."""

from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.parsing import amount

_MONEY = "What a unit costs: --backorder and --holding, or --price and --cost"
_FILE = "How the file is written, if it must be told"
Data = Annotated[
    str, typer.Argument(metavar="DATA", help="CSV, Excel or Parquet; - is standard input.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="What surefoot fit wrote.")]
Outcome = Annotated[str, typer.Option(metavar="COLUMN", help="What was demanded.")]
Time = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The day, or a number; rows are put in its order.")
]
By = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="One policy for each value of a column; may be repeated."),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Columns of numbers that are names, such as a store's."),
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", "--drop", metavar="COLUMN", help="Columns to leave out.")
]
Backorder = Annotated[
    float | None,
    typer.Option(parser=amount, help="Cost of a unit short.", rich_help_panel=_MONEY, metavar="B"),
]
Holding = Annotated[
    float | None,
    typer.Option(parser=amount, help="Cost of a unit left over.", rich_help_panel=_MONEY, metavar="H"),
]
BackorderColumn = Annotated[
    str | None,
    typer.Option(help="Column with that cost, row by row.", rich_help_panel=_MONEY, metavar="COLUMN"),
]
HoldingColumn = Annotated[
    str | None,
    typer.Option(help="Column with that cost, row by row.", rich_help_panel=_MONEY, metavar="COLUMN"),
]
Price = Annotated[
    float | None,
    typer.Option(parser=amount, help="What a unit sells for.", rich_help_panel=_MONEY, metavar="P"),
]
Cost = Annotated[
    float | None,
    typer.Option(parser=amount, help="What a unit costs.", rich_help_panel=_MONEY, metavar="C"),
]
Salvage = Annotated[
    float | None,
    typer.Option(
        parser=amount, help="What one left over brings (0).", rich_help_panel=_MONEY, metavar="S"
    ),
]
Goodwill = Annotated[
    float | None,
    typer.Option(
        parser=amount,
        help="What a lost customer costs beside the sale (0).",
        rich_help_panel=_MONEY,
        metavar="G",
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Such as utf-8 or cp1252.", rich_help_panel=_FILE, metavar="NAME")
]
Separator = Annotated[
    str | None, typer.Option(help="Between cells: a sign, or tab.", rich_help_panel=_FILE, metavar="S")
]
Decimal = Annotated[
    str | None, typer.Option(help="Before decimals: . or ,", rich_help_panel=_FILE, metavar="SIGN")
]
Dates = Annotated[
    str | None,
    typer.Option(help="day-first, month-first or a format such as %d.%m.%Y.", rich_help_panel=_FILE,
                 metavar="ORDER"),
]  # fmt: skip
Sheet = Annotated[
    str | None, typer.Option(help="Sheet of an Excel file.", rich_help_panel=_FILE, metavar="NAME")
]
Gaps = Annotated[
    list[str] | None,
    typer.Option(help="Words that stand for a gap.", rich_help_panel=_FILE, metavar="WORD"),
]
SkipTotals = Annotated[
    bool, typer.Option("--skip-totals", help="Leave rows of totals out.", rich_help_panel=_FILE)
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Seed = Annotated[int, typer.Option(metavar="N", help="A whole number; results repeat with it.")]
