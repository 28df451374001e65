"""Commands on tables, and their options: fit, decide, evaluate, explain, report, compare."""

from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.app import app, load_command, make_reading, make_screen
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
from surefoot.cli.options import CostColumns, Judging, Roles
from surefoot.cli.parsing import Command
from surefoot.exceptions import InvalidInputError


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
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Workers for the series of --by; -1 is all cores.")
    ] = None,
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
    if jobs is not None and not roles.by:
        raise InvalidInputError(f"--jobs must come with --by, got {jobs} alone.")
    columns = CostColumns(backorder=backorder_column, holding=holding_column)
    if not columns.given:
        economics.costs()  # a mistake that needs no data is found before anything slow is loaded
    reading = make_reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    if columns.given:
        load_command("cost_columns").fit(
            data, out, roles=roles, economics=economics, columns=columns, radius=radius, seed=seed,
            reading=reading, report=report, screen=make_screen(as_json),
        )  # fmt: skip
        return
    load_command("fit").run(
        data, out, roles=roles, economics=economics, radius=radius, seed=seed, reading=reading,
        report=report, jobs=jobs, command=context.obj or (), screen=make_screen(as_json),
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
    reading = make_reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    load_command("decide").run(
        model, data, out, reading=reading, keep=keep or (), whole=whole,
        screen=make_screen(as_json, results=out is not None),
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
    reading = make_reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    load_command("evaluate").run(
        model, data, outcome=outcome, reading=reading, screen=make_screen(as_json)
    )


@app.command(cls=Command)
def explain(model: Model, as_json: AsJson = False) -> None:
    """Say what a model was learned from, what it looks at, and what is proved about it."""
    load_command("explain").run(model, screen=make_screen(as_json))


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
        typer.Option(metavar="COLUMN", help="The day or number; rows are judged in its order."),
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
    reading = make_reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    load_command("report").run(
        model, data, out, outcome=outcome, time=time, reading=reading, command=context.obj or (),
        screen=make_screen(as_json),
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
    reading = make_reading(
        encoding=encoding, separator=separator, decimal=decimal, dates=dates, sheet=sheet, gaps=gaps,
        skip_totals=skip_totals,
    )  # fmt: skip
    load_command("compare").run(
        data, roles=roles, economics=economics, judging=judging, methods=methods, reference=reference,
        seed=seed, out=out, reading=reading, screen=make_screen(as_json),
    )  # fmt: skip
