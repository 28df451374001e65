"""Commands on streams, bundled data and the installation, and their options."""

import importlib
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.app import app, load_command, make_screen
from surefoot.cli.economics import Economics
from surefoot.cli.options import AsJson, Ignore, Learning, LineOptions
from surefoot.cli.parsing import Command, grouped, option


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
