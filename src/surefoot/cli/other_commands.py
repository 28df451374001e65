"""Commands on streams, bundled data and the installation, and their options."""

import importlib
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.app import app, load_command, make_screen
from surefoot.cli.arguments import (
    AsJson,
    Backorder,
    Cost,
    Goodwill,
    Holding,
    Ignore,
    Price,
    Salvage,
)
from surefoot.cli.economics import Economics
from surefoot.cli.options import Learning, Stream
from surefoot.cli.parsing import Command, amount


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
    load_command("learn").run(
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
    load_command("demo").run_demo(out, report, days=days)


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
    load_command("bundled").run(
        name, out, product=product, later=later, last=last,
        screen=make_screen(as_json, results=name is None or out is not None),
    )  # fmt: skip


@app.command(cls=Command)
def doctor(as_json: AsJson = False) -> None:
    """Show versions, engines and caches, and what mends what is missing."""
    load_command("doctor").run(screen=make_screen(as_json))
