"""Commands on tables, and their options: fit, decide, evaluate, explain, report, compare."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.app import app, load_command, make_reading, make_screen
from surefoot.cli.economics import Economics, RowEconomics
from surefoot.cli.options import AsJson, By, Data, FileOptions, Judging, Model, Roles, Seed
from surefoot.cli.parsing import Command, grouped, option
from surefoot.exceptions import InvalidInputError


@app.command(cls=Command)
@grouped
def fit(
    *,
    context: typer.Context,
    data: Data,
    roles: Roles,
    out: Annotated[Path, option("FILE", "Where the model goes.", "--out", "-o")],
    by: By = None,
    economics: RowEconomics,
    radius: Annotated[str, option("auto|NUMBER", "How far rows may shift; auto chooses.")] = "auto",
    seed: Seed = 0,
    jobs: Annotated[int | None, option("N", "Workers for the series of --by; -1 is all cores.")] = None,
    report: Annotated[
        Path | None, option("PAGE", "Write a page about it, too (.html); takes longer.")
    ] = None,
    file: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Learn how much to order from a table, and keep it in a file.

    Every column but the outcome is context: numbers, text, dates and gaps. The screen says what each
    was read as. With --by, one policy is learned for each series; FILE then ends in .parquet.
    """
    roles = replace(roles, by=by or (), costs=economics.columns)
    if jobs is not None and not roles.by:
        raise InvalidInputError(f"--jobs must come with --by, got {jobs} alone.")
    economics.numbers()  # a mistake that needs no data is found before anything slow is loaded
    load_command("fit").run(
        data, out, roles=roles, economics=economics, radius=radius, seed=seed,
        reading=make_reading(file), report=report, jobs=jobs, command=context.obj or (),
        screen=make_screen(as_json),
    )  # fmt: skip


@app.command(cls=Command)
@grouped
def decide(
    *,
    model: Model,
    data: Data,
    out: Annotated[Path | None, option("FILE", "CSV, .xlsx or .parquet.", "--out", "-o")] = None,
    keep: Annotated[list[str] | None, option("COLUMN", "Further columns to write.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Round orders to whole units.")] = False,
    file: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Say how much to order for each row of a table.

    Orders are written beside the dates and the columns that the model does not use (such as a row's
    number), to a file or to standard output, with the separator and the decimal sign of the data.
    """
    load_command("decide").run(
        model, data, out, reading=make_reading(file), keep=keep or (), whole=whole,
        screen=make_screen(as_json, results=out is not None),
    )  # fmt: skip


@app.command(cls=Command)
@grouped
def evaluate(
    *,
    model: Model,
    data: Data,
    outcome: Annotated[
        str | None, option("COLUMN", "What was demanded (default: as in the fit).")
    ] = None,
    file: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Set a model's orders against what happened: cost a row, short and left over."""
    load_command("evaluate").run(
        model, data, outcome=outcome, reading=make_reading(file), screen=make_screen(as_json)
    )


@app.command(cls=Command)
def explain(model: Model, as_json: AsJson = False) -> None:
    """Say what a model was learned from, what it looks at, and what is proved about it."""
    load_command("explain").run(model, screen=make_screen(as_json))


@app.command(cls=Command)
@grouped
def report(
    *,
    context: typer.Context,
    model: Model,
    data: Data,
    out: Annotated[Path, option("PAGE", "Where the page goes: .html.", "--out", "-o")] = Path(
        "report.html"
    ),
    outcome: Annotated[
        str | None, option("COLUMN", "What was demanded (default: as in the fit).")
    ] = None,
    time: Annotated[
        str | None, option("COLUMN", "The day or number; rows are judged in its order.")
    ] = None,
    file: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Write one page about a model: decisions, costs out of sample, guarantee, what matters.

    The page is one HTML file without scripts, for a screen, a telephone and paper. Costs out of sample
    come from the model's recipe, learned anew from parts of the table and judged on the rest.
    """
    load_command("report").run(
        model, data, out, outcome=outcome, time=time, reading=make_reading(file),
        command=context.obj or (), screen=make_screen(as_json),
    )  # fmt: skip


@app.command(cls=Command)
@grouped
def compare(
    *,
    data: Data,
    roles: Roles,
    economics: Economics,
    judging: Judging,
    methods: Annotated[
        list[str] | None, option("NAME", "Only these: surefoot, erm, erm-l1, forest, shapley, saa.")
    ] = None,
    reference: Annotated[str | None, option("NAME", "Compare with this one (surefoot).")] = None,
    seed: Seed = 0,
    out: Annotated[Path | None, option("PICTURE", "Draw: .png, .svg or .pdf.", "--out", "-o")] = None,
    file: FileOptions,
    as_json: AsJson = False,
) -> None:
    """Compare ways to order on your own data: costs, paired differences, intervals.

    Without --window, rows are shuffled into folds; with it, they must be in order of time.
    """
    economics.costs()
    load_command("compare").run(
        data, roles=roles, economics=economics, judging=judging, methods=methods, reference=reference,
        seed=seed, out=out, reading=make_reading(file), screen=make_screen(as_json),
    )  # fmt: skip
