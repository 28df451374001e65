"""``python -m reproduction``: the paper's experiments, and the study of learning on streams."""

import argparse
import sys
from collections.abc import Sequence

from reproduction import paper_command, streams_command
from surefoot.exceptions import SurefootError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction", description="The paper's experiments, and the stream study."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    paper_command.add_command(commands)
    streams_command.add_command(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; a user's mistake prints one line."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except SurefootError as error:
        print(f"reproduction: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("reproduction: interrupted.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
