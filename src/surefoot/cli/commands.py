"""The ``surefoot`` command: its commands, in the order in which help lists them, and their options."""

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from surefoot.cli.economics import Economics, RowEconomics
from surefoot.cli.options import (
    AsJson,
    By,
    Data,
    FileOptions,
    Ignore,
    Judging,
    Learning,
    LineOptions,
    Model,
    Roles,
    Seed,
)
from surefoot.cli.parsing import Command, grouped, option
from surefoot.exceptions import InvalidInputError
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


def load_command(command: str) -> Any:
    """Return what does the work of a command: imported when it runs, so that help is quick."""
    return importlib.import_module(f"surefoot.cli.{command}")


def make_screen(as_json: bool, *, results: bool = True) -> Any:
    """Return where a command writes."""
    return load_command("screen").Screen(as_json=as_json, results=results)


def make_reading(told: FileOptions) -> Any:
    """Return how a table is to be read."""
    given = {**vars(told), "gaps": tuple(told.gaps)}
    return importlib.import_module("surefoot.io").Reading(**given)


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


@app.command(cls=Command)
@grouped
def learn(
    *,
    outcome: Annotated[str, option("NAME", "Name of the outcome.")],
    learning: Learning,
    economics: Economics,
    decision_id: Annotated[
        str | None, option("NAME", "Name of what identifies a decision.", "--id")
    ] = None,
    ignore: Ignore = None,
    text: Annotated[list[str] | None, option("NAME", "Names of contexts that are categories.")] = None,
    stream: LineOptions,
) -> None:
    """Learn from a stream of lines while deciding on it.

    A line with a context and no outcome asks for a decision: one JSON line with its id and the decision
    is written at once. A line with an outcome teaches: with the id of an earlier decision, or with a
    context of its own. Given the same command and --checkpoint again, a process that was stopped or
    killed goes on where it was.
    """
    choice = importlib.import_module("surefoot.validation").check_choice
    choice("--on-error", stream.on_error, ("stop", "skip"))
    choice("--format", stream.format, (None, "csv", "jsonl"))
    fields = importlib.import_module("surefoot.online.messages").Fields(
        outcome, decision_id, tuple(ignore or ()), tuple(text or ())
    )
    load_command("learn").run(stream, fields, learning, economics)


@app.command(cls=Command)
def demo(
    out: Annotated[Path, option("PICTURE", "Where the picture goes.", "--out", "-o")] = Path(
        "demo.png"
    ),
    report: Annotated[Path, option("PAGE", "Where the report on one ingredient goes.")] = Path(
        "demo.html"
    ),
    days: Annotated[int, option("N", "Days to learn from in the table.")] = 60,
) -> None:
    """Order for a restaurant: a table, a picture and a report, from data that come along."""
    load_command("demo").run_demo(out, report, days=days)


@app.command(cls=Command)
def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which one; without it, a list.")
    ] = None,
    out: Annotated[Path | None, option("FILE", "Write CSV here.", "--out", "-o")] = None,
    product: Annotated[str, option("NAME", "Which ingredient is the outcome.")] = "steak",
    later: Annotated[Path | None, option("FILE", "Write the last days to this file instead.")] = None,
    last: Annotated[int, option("N", "How many days that are.")] = 165,
    as_json: AsJson = False,
) -> None:
    """List tables to try things on, or write one as CSV."""
    load_command("bundled").run(
        name, out, product=product, later=later, last=last,
        screen=make_screen(as_json, results=name is None or out is not None),
    )  # fmt: skip


@app.command(cls=Command)
def doctor(as_json: AsJson = False) -> None:
    """Show versions, engines and caches, and what mends what is missing."""
    load_command("doctor").run(screen=make_screen(as_json))
