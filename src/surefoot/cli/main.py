"""Entry point of the ``surefoot`` command."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from surefoot.cli import compare, learn
from surefoot.cli.demo import run_demo
from surefoot.exceptions import SurefootError
from surefoot.version import __version__


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="surefoot", description="Robust contextual decisions from small data."
    )
    parser.add_argument("--version", action="version", version=f"surefoot {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser(
        "demo", help="fit robust and plain policies on bundled data, print a table, write a picture"
    )
    demo.add_argument(
        "--out", type=Path, default=Path("demo.png"), help="the picture (default: demo.png)"
    )
    demo.add_argument(
        "--days", type=int, default=60, help="days to learn from in the table (default: 60)"
    )
    demo.set_defaults(run=lambda options: run_demo(options.out, days=options.days))
    compare.add_command(commands)
    learn.add_command(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; a user's mistake prints one line."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except SurefootError as error:
        print(f"surefoot: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("surefoot: interrupted.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
