"""``surefoot learn``: decide on contexts as they come, learn from outcomes, survive being killed."""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import IO

from surefoot.ambiguity import WassersteinBall
from surefoot.cli.following import Answers, Checkpoint, Follower, quiet_broken_pipe
from surefoot.costs import Newsvendor
from surefoot.estimators import load
from surefoot.exceptions import InvalidInputError
from surefoot.online import DecayingRadius, OnlinePolicy, Restart, Window
from surefoot.online.lines import FileLines, Lines, PipeLines
from surefoot.online.messages import FORMATS, Fields
from surefoot.online.session import Session
from surefoot.validation import check_integer

_RADIUS = 0.1
_ABOUT = """\
Read lines, write decisions. A line with a context and no outcome asks for a decision: one JSON line
with its id and the decision is written at once. A line with an outcome teaches: with the id of an
earlier decision, or with a context of its own. Given the same command and --checkpoint again, a
process that was stopped or killed goes on where it was."""


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``learn`` and its options."""
    parser = commands.add_parser(
        "learn", help="learn from a stream of lines while deciding on it", description=_ABOUT
    )
    parser.add_argument(
        "input", nargs="?", default="-", metavar="FILE", help="lines to read (default: standard input)"
    )
    _add_question(parser)
    _add_lines(parser)
    parser.add_argument(
        "--follow", action="store_true", help="keep reading as the file grows, as tail -f does"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write decisions here (default: standard output)"
    )
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="write state and position here; go on from it"
    )
    parser.add_argument(
        "--every", type=int, default=100, metavar="N", help="lines between checkpoints (default: 100)"
    )
    parser.add_argument(
        "--on-error", choices=("stop", "skip"), default="stop",
        help="what a bad line does: end the work (default), or be named and passed over",
    )  # fmt: skip
    parser.set_defaults(run=run_learn)


def _add_question(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", type=Path, metavar="FILE", help="go on from a saved model, with its cost and radius"
    )
    parser.add_argument("--cost", choices=("newsvendor",), help="default: newsvendor")
    parser.add_argument("--backorder", type=float, metavar="B", help="cost per unit short")
    parser.add_argument("--holding", type=float, metavar="H", help="cost per unit left")
    parser.add_argument(
        "--radius", type=float, metavar="R",
        help=f"in running standard deviations of the columns (default: {_RADIUS})",
    )  # fmt: skip
    parser.add_argument(
        "--decay", action="store_true", help="let the radius fall as 1/sqrt(lines learned)"
    )
    drift = parser.add_mutually_exclusive_group()
    drift.add_argument("--restart", action="store_true", help="start afresh when costs have risen")
    drift.add_argument("--window", type=int, metavar="N", help="look back over about N lines only")


def _add_lines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--outcome", required=True, metavar="NAME", help="name of the outcome")
    parser.add_argument("--id", metavar="NAME", help="name of what identifies a decision")
    parser.add_argument(
        "--ignore", nargs="+", default=[], metavar="NAME", help="names to leave out (dates, remarks)"
    )
    parser.add_argument(
        "--text", nargs="+", default=[], metavar="NAME", help="names of contexts that are categories"
    )
    parser.add_argument(
        "--format", choices=tuple(FORMATS), help="default: csv for FILE.csv, otherwise jsonl"
    )


def run_learn(options: argparse.Namespace) -> None:
    """Follow the stream to its end or to a signal, and say on standard error what was done."""
    if options.follow and options.input == "-":
        options.follow = False  # a pipe is read until it is closed in any case
    name = options.format or ("csv" if Path(options.input).suffix == ".csv" else "jsonl")
    fields = Fields(options.outcome, options.id, tuple(options.ignore), tuple(options.text))
    session = Session(_policy(options))
    checkpoint = _checkpoint(options, name)
    with contextlib.ExitStack() as stack:
        lines = _lines(options, stack)
        follower = Follower(
            session, lines, FORMATS[name](fields), _answers(options.out, stack),
            checkpoint=checkpoint, skip=options.on_error == "skip",
        )  # fmt: skip
        follower.resume()
        if follower.done.line:
            print(f"surefoot: going on after line {follower.done.line:,}.", file=sys.stderr)
        with quiet_broken_pipe():
            finished = follower.run()
    print(f"surefoot: {'' if finished else 'stopped; '}{follower.summary()}", file=sys.stderr)


def _policy(options: argparse.Namespace) -> OnlinePolicy:
    drift: Restart | Window | None = Restart() if options.restart else None
    if options.window is not None:
        drift = Window(options.window)
    decay = DecayingRadius() if options.decay else None
    given = [name for name in ("cost", "backorder", "holding", "radius") if _given(options, name)]
    if options.model is not None:
        if given:
            raise InvalidInputError(f"--{given[0]} must be that of the model, got both --model and it.")
        if options.decay:
            raise InvalidInputError(
                "--decay must come without --model, got both: from Python, give "
                "DecayingRadius(rows=...) the rows of the fit."
            )
        return OnlinePolicy.from_model(load(options.model), drift=drift)
    for name in ("backorder", "holding"):
        if name not in given:
            raise InvalidInputError(f"--{name} must be given where there is no --model, got none.")
    return OnlinePolicy(
        Newsvendor(options.backorder, options.holding),
        ball=WassersteinBall(options.radius if "radius" in given else _RADIUS),
        radius=decay,
        drift=drift,
    )


def _given(options: argparse.Namespace, name: str) -> bool:
    return getattr(options, name) is not None


def _checkpoint(options: argparse.Namespace, form: str) -> Checkpoint | None:
    check_integer("--every", options.every, at_least=1)
    if options.checkpoint is None:
        return None
    if not options.checkpoint.parent.is_dir():
        raise InvalidInputError(
            f"--checkpoint must lie in an existing folder, got {options.checkpoint}."
        )
    told = {
        "--format": form, "--outcome": options.outcome, "--id": options.id,
        "--ignore": options.ignore, "--text": options.text,
        "the input": "standard input" if options.input == "-" else "a file",
        "--out": "standard output" if options.out is None else "a file",
    }  # fmt: skip
    return Checkpoint(options.checkpoint, options.every, told)


def _lines(options: argparse.Namespace, stack: contextlib.ExitStack) -> Lines:
    if options.input == "-":
        return PipeLines(sys.stdin.buffer)
    path = Path(options.input)
    if not path.is_file():
        raise InvalidInputError(f"the input must be a file or '-', got {options.input!r}.")
    return FileLines(stack.enter_context(path.open("rb")), follow=options.follow)


def _answers(path: Path | None, stack: contextlib.ExitStack) -> Answers:
    if path is None:
        return Answers(sys.stdout, file=False)
    if not path.parent.is_dir():
        raise InvalidInputError(f"--out must lie in an existing folder, got {path}.")
    try:
        file: IO[str] = stack.enter_context(path.open("a", encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"--out must be a file, got {path} ({error}).") from error
    return Answers(file, file=True)
