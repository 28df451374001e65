"""The ``surefoot`` command as a whole, and what its commands share."""

import importlib
from typing import Annotated, Any

import typer

from surefoot.cli.options import FileOptions
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
