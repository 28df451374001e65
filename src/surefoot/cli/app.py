"""The commands and their options. What a command does is imported when it runs: help must be quick."""

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot.cli.arguments import (
    AsJson,
    Backorder,
    BackorderColumn,
    By,
    Categories,
    Cost,
    Data,
    Dates,
    Decimal,
    Encoding,
    Gaps,
    Goodwill,
    Holding,
    HoldingColumn,
    Ignore,
    Model,
    Outcome,
    Price,
    Salvage,
    Seed,
    Separator,
    Sheet,
    SkipTotals,
    Time,
)
from surefoot.cli.economics import Economics
from surefoot.cli.options import CostColumns, Judging, Learning, Roles, Stream
from surefoot.cli.parsing import Command, amount
from surefoot.version import __version__

_EPILOG = (
    "Exit codes: 0 done, 1 something failed, 2 a mistake in what was asked or in the data, "
    "130 interrupted."
)
app = typer.Typer(
    name="surefoot",
    help="How much to order, from past data: robust decisions with a certificate.",
    epilog=_EPILOG,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"surefoot {__version__}")
        raise typer.Exit


@app.callback()
def surefoot(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """How much to order, from past data: robust decisions with a certificate."""


def _load(command: str) -> Any:
    return importlib.import_module(f"surefoot.cli.{command}")


def _screen(as_json: bool, *, results: bool = True) -> Any:
    return _load("screen").Screen(as_json=as_json, results=results)


def _reading(**told: Any) -> Any:
    return importlib.import_module("surefoot.io").Reading(**{**told, "gaps": tuple(told["gaps"] or ())})


@app.command(cls=Command)
def fit(
    context: typer.Context,
    data: Data,
    outcome: Outcome,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the model goes.")],
    by: By = None,
    time: Time = None,
    backorder: Backorder = None,
    holding: Holding = None,
    backorder_column: BackorderColumn = None,
    holding_column: HoldingColumn = None,
    price: Price = None,
    cost: Cost = None,
    salvage: Salvage = None,
    goodwill: Goodwill = None,
    radius: Annotated[
        str, typer.Option(metavar="auto|NUMBER", help="How far rows may shift; auto chooses.")
    ] = "auto",
    categories: Categories = None,
    ignore: Ignore = None,
    seed: Seed = 0,
    report: Annotated[
        Path | None,
        typer.Option(metavar="PAGE", help="Write a page about it, too (.html); takes longer."),
    ] = None,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    sheet: Sheet = None,
    gaps: Gaps = None,
    skip_totals: SkipTotals = False,
    as_json: AsJson = False,
) -> None:
    """Learn how much to order from a table, and keep it in a file.

    Every column but the outcome is context: numbers, text, dates and gaps. The screen says what each
    was read as. With --by, one policy is learned for each series; FILE then ends in .parquet.
    """
    economics = Economics(
        backorder=backorder, holding=holding, price=price, cost=cost, salvage=salvage, goodwill=goodwill
    )
    roles = Roles(
        outcome=outcome, time=time, categories=categories or (), ignore=ignore or (), by=by or ()
    )
    columns = CostColumns(backorder=backorder_column, holding=holding_column)
    if not columns.given:
        economics.costs()  # a mistake that needs no data is found before anything slow is loaded
    reading = _reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    if columns.given:
        _load("cost_columns").fit(
            data, out, roles=roles, economics=economics, columns=columns, radius=radius, seed=seed,
            reading=reading, report=report, screen=_screen(as_json),
        )  # fmt: skip
        return
    _load("fit").run(
        data, out, roles=roles, economics=economics, radius=radius, seed=seed, reading=reading,
        report=report, command=context.obj or (), screen=_screen(as_json),
    )  # fmt: skip


@app.command(cls=Command)
def decide(
    model: Model,
    data: Data,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="CSV, .xlsx or .parquet.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Further columns to write.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Round orders to whole units.")] = False,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    sheet: Sheet = None,
    gaps: Gaps = None,
    skip_totals: SkipTotals = False,
    as_json: AsJson = False,
) -> None:
    """Say how much to order for each row of a table.

    Orders are written beside the dates and the columns that the model does not use (such as a row's
    number), to a file or to standard output, with the separator and the decimal sign of the data.
    """
    reading = _reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    _load("decide").run(
        model, data, out, reading=reading, keep=keep or (), whole=whole,
        screen=_screen(as_json, results=out is not None),
    )  # fmt: skip


@app.command(cls=Command)
def evaluate(
    model: Model,
    data: Data,
    outcome: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What was demanded (default: as in the fit).")
    ] = None,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    sheet: Sheet = None,
    gaps: Gaps = None,
    skip_totals: SkipTotals = False,
    as_json: AsJson = False,
) -> None:
    """Set a model's orders against what happened: cost a row, short and left over."""
    reading = _reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    _load("evaluate").run(model, data, outcome=outcome, reading=reading, screen=_screen(as_json))


@app.command(cls=Command)
def explain(model: Model, as_json: AsJson = False) -> None:
    """Say what a model was learned from, what it looks at, and what is proved about it."""
    _load("explain").run(model, screen=_screen(as_json))


@app.command(cls=Command)
def report(
    context: typer.Context,
    model: Model,
    data: Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="PAGE", help="Where the page goes: .html.")
    ] = Path("report.html"),
    outcome: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What was demanded (default: as in the fit).")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The day; rows are judged in its order (as in the fit)."),
    ] = None,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    sheet: Sheet = None,
    gaps: Gaps = None,
    skip_totals: SkipTotals = False,
    as_json: AsJson = False,
) -> None:
    """Write one page about a model: decisions, costs out of sample, guarantee, what matters.

    The page is one HTML file without scripts, for a screen, a telephone and paper. Costs out of sample
    come from the model's recipe, learned anew from parts of the table and judged on the rest.
    """
    reading = _reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    _load("report").run(
        model, data, out, outcome=outcome, time=time, reading=reading, command=context.obj or (),
        screen=_screen(as_json),
    )  # fmt: skip


@app.command(cls=Command)
def compare(
    data: Data,
    outcome: Outcome,
    time: Time = None,
    backorder: Backorder = None,
    holding: Holding = None,
    price: Price = None,
    cost: Cost = None,
    salvage: Salvage = None,
    goodwill: Goodwill = None,
    folds: Annotated[
        int | None, typer.Option(metavar="N", help="Parts for cross-validation (5).")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(metavar="N", help="How often to shuffle anew (3).")
    ] = None,
    window: Annotated[
        int | None, typer.Option(metavar="ROWS", help="Learn from so many rows, in order.")
    ] = None,
    test: Annotated[
        int | None, typer.Option(metavar="ROWS", help="Judge on the next so many rows.")
    ] = None,
    step: Annotated[
        int | None, typer.Option(metavar="ROWS", help="Then move on by so many (--test).")
    ] = None,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Sample no rows (else 5,000 a split).")
    ] = False,
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only these: surefoot, erm, erm-l1, forest, shapley, saa."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="NAME", help="Compare with this one (surefoot).")
    ] = None,
    categories: Categories = None,
    ignore: Ignore = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PICTURE", help="Draw: .png, .svg or .pdf.")
    ] = None,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    sheet: Sheet = None,
    gaps: Gaps = None,
    skip_totals: SkipTotals = False,
    as_json: AsJson = False,
) -> None:
    """Compare ways to order on your own data: costs, paired differences, intervals.

    Without --window, rows are shuffled into folds; with it, they must be in order of time.
    """
    economics = Economics(
        backorder=backorder, holding=holding, price=price, cost=cost, salvage=salvage, goodwill=goodwill
    )
    roles = Roles(outcome=outcome, time=time, categories=categories or (), ignore=ignore or ())
    judging = Judging(
        folds=folds, repeats=repeats, window=window, test=test, step=step, all_rows=all_rows
    )
    economics.costs()
    reading = _reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    _load("compare").run(
        data, roles=roles, economics=economics, judging=judging, methods=methods, reference=reference,
        seed=seed, out=out, reading=reading, screen=_screen(as_json),
    )  # fmt: skip


@app.command(cls=Command)
def learn(
    outcome: Annotated[str, typer.Option(metavar="NAME", help="Name of the outcome.")],
    stream: Annotated[str, typer.Argument(metavar="FILE", help="Lines; - is standard input.")] = "-",
    model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on from a saved model, cost and radius.")
    ] = None,
    backorder: Backorder = None,
    holding: Holding = None,
    price: Price = None,
    cost: Cost = None,
    salvage: Salvage = None,
    goodwill: Goodwill = None,
    radius: Annotated[
        float | None,
        typer.Option(parser=amount, metavar="R", help="In running standard deviations (0.1)."),
    ] = None,
    decay: Annotated[
        bool, typer.Option("--decay", help="Let the radius fall as 1/sqrt(lines learned).")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start afresh when costs have risen.")
    ] = False,
    window: Annotated[
        int | None, typer.Option(metavar="N", help="Look back over about N lines only.")
    ] = None,
    decision_id: Annotated[
        str | None, typer.Option("--id", metavar="NAME", help="Name of what identifies a decision.")
    ] = None,
    ignore: Ignore = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Names of contexts that are categories.")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="csv|jsonl", help="csv for FILE.csv, else jsonl.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep reading as the file grows, as tail -f does.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write decisions here.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write state and position here; go on from it.")
    ] = None,
    every: Annotated[int, typer.Option(metavar="N", help="Lines between checkpoints.")] = 100,
    on_error: Annotated[
        str, typer.Option(metavar="stop|skip", help="A bad line ends the work, or is passed over.")
    ] = "stop",
) -> None:
    """Learn from a stream of lines while deciding on it.

    A line with a context and no outcome asks for a decision: one JSON line with its id and the decision
    is written at once. A line with an outcome teaches: with the id of an earlier decision, or with a
    context of its own. Given the same command and --checkpoint again, a process that was stopped or
    killed goes on where it was.
    """
    choice = importlib.import_module("surefoot.validation").check_choice
    choice("--on-error", on_error, ("stop", "skip"))
    choice("--format", form, (None, "csv", "jsonl"))
    fields = importlib.import_module("surefoot.online.messages").Fields(
        outcome, decision_id, tuple(ignore or ()), tuple(text or ())
    )
    _load("learn").run(
        Stream(
            input=stream, format=form, follow=follow, out=out, checkpoint=checkpoint, every=every,
            skip=on_error == "skip",
        ),
        fields,
        Learning(model=model, radius=radius, decay=decay, restart=restart, window=window),
        Economics(
            backorder=backorder, holding=holding, price=price, cost=cost, salvage=salvage,
            goodwill=goodwill,
        ),
    )  # fmt: skip


@app.command(cls=Command)
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="PICTURE", help="Where the picture goes.")
    ] = Path("demo.png"),
    report: Annotated[
        Path, typer.Option(metavar="PAGE", help="Where the report on one ingredient goes.")
    ] = Path("demo.html"),
    days: Annotated[int, typer.Option(metavar="N", help="Days to learn from in the table.")] = 60,
) -> None:
    """Order for a restaurant: a table, a picture and a report, from data that come along."""
    _load("demo").run_demo(out, report, days=days)


@app.command(cls=Command)
def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which one; without it, a list.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write CSV here.")
    ] = None,
    product: Annotated[str, typer.Option(metavar="NAME", help="Which ingredient is the outcome.")] = (
        "steak"
    ),
    later: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the last days to this file instead.")
    ] = None,
    last: Annotated[int, typer.Option(metavar="N", help="How many days that are.")] = 165,
    as_json: AsJson = False,
) -> None:
    """List tables to try things on, or write one as CSV."""
    _load("bundled").run(
        name, out, product=product, later=later, last=last,
        screen=_screen(as_json, results=name is None or out is not None),
    )  # fmt: skip


@app.command(cls=Command)
def doctor(as_json: AsJson = False) -> None:
    """Show versions, engines and caches, and what mends what is missing."""
    _load("doctor").run(screen=_screen(as_json))
