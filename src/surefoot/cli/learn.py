"""``surefoot learn``: decide on contexts as they come, learn from outcomes, survive being killed."""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from surefoot.ambiguity import WassersteinBall
from surefoot.cli.economics import Economics
from surefoot.cli.following import Answers, Checkpoint, Follower, quiet_broken_pipe
from surefoot.cli.model_table import load_model, needed_columns
from surefoot.cli.options import Learning, LineOptions
from surefoot.cli.prepared_lines import PreparedLines, name_gaps
from surefoot.costs import Newsvendor
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.exceptions import InvalidInputError
from surefoot.io.writing import check_target
from surefoot.online import DecayingRadius, OnlinePolicy, Restart, Window
from surefoot.online.lines import FileLines, Lines, PipeLines
from surefoot.online.messages import FORMATS, Fields
from surefoot.online.session import Session
from surefoot.validation import check_integer

_RADIUS = 0.1


@contextlib.contextmanager
def said_once() -> Iterator[None]:
    """Say on standard error, once, what would be a warning at every line."""
    said = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            print(f"surefoot: {message}", file=sys.stderr)

    with warnings.catch_warnings(action="always"):
        warnings.showwarning = show
        yield


@said_once()
def run(stream: LineOptions, fields: Fields, learning: Learning, economics: Economics) -> None:
    """Follow the stream to its end or to a signal, and say on standard error what was done."""
    name = stream.format or ("csv" if Path(stream.input).suffix == ".csv" else "jsonl")
    drift = _drift(learning)
    if learning.model is None:
        session = Session(_fresh(learning, economics, drift))
    else:
        session, fields = _from_model(learning.model, learning, economics, drift, fields)
    checkpoint = _checkpoint(stream, fields, name)
    with contextlib.ExitStack() as stack:
        lines = _lines(stream, stack)
        follower = Follower(
            session, lines, FORMATS[name](fields), _answers(stream.out, stack),
            checkpoint=checkpoint, skip=stream.on_error == "skip",
        )  # fmt: skip
        follower.resume()
        if follower.done.line:
            print(f"surefoot: going on after line {follower.done.line:,}.", file=sys.stderr)
        with quiet_broken_pipe():
            finished = follower.run()
        done = session.decided + session.learned + follower.skipped
        if finished and checkpoint is None and done == 0:
            got = f"{follower.done.line:,} without either" if follower.done.line else "none"
            raise InvalidInputError(
                f"{_shown(stream.input)} must have lines to learn from, with a context or an outcome, "
                f"got {got}."
            )
    print(f"surefoot: {'' if finished else 'stopped; '}{follower.summary()}", file=sys.stderr)


def _shown(name: str) -> str:
    return "standard input" if name == "-" else name


def _drift(learning: Learning) -> Restart | Window | None:
    if learning.restart and learning.window is not None:
        raise InvalidInputError("--restart must come without --window, got both.")
    if learning.window is not None:
        return Window(learning.window)
    return Restart() if learning.restart else None


def _fresh(learning: Learning, economics: Economics, drift: Restart | Window | None) -> OnlinePolicy:
    """Return a policy that has learned nothing."""
    doubt = economics.doubt()
    if doubt is not None:
        print(f"surefoot: {doubt}", file=sys.stderr)
    radius = _RADIUS if learning.radius is None else learning.radius
    decay = DecayingRadius() if learning.decay else None
    return OnlinePolicy(
        Newsvendor(*economics.costs()), ball=WassersteinBall(radius), radius=decay, drift=drift
    )


def _from_model(
    path: Path,
    learning: Learning,
    economics: Economics,
    drift: Restart | Window | None,
    fields: Fields,
) -> tuple[Session, Fields]:
    """Return a session that goes on from a model, and which names of a line are what to it."""
    given = [name for name, value in vars(economics).items() if value is not None]
    given += ["radius"] if learning.radius is not None else []
    if given:
        raise InvalidInputError(f"--{given[0]} must be that of the model, got both --model and it.")
    if learning.decay:
        raise InvalidInputError(
            "--decay must come without --model, got both: from Python, give "
            "DecayingRadius(rows=...) the rows of the fit."
        )
    model, about = load_model(path)
    if about is not None and fields.outcome != about.outcome:
        raise InvalidInputError(
            f"--outcome must be {about.outcome!r}, as in {path}, got {fields.outcome!r}."
        )
    if not isinstance(model, PreparedPolicy):
        policy = OnlinePolicy.from_model(model, drift=drift)
        return Session(policy, partial(name_gaps, policy.columns)), fields
    prepared = PreparedLines(model, needed_columns(model, about, path))
    policy = OnlinePolicy.from_model(model.model_, drift=drift)
    return Session(policy, prepared), prepared.fields(fields)


def _checkpoint(stream: LineOptions, fields: Fields, form: str) -> Checkpoint | None:
    check_integer("--every", stream.every, at_least=1)
    if stream.checkpoint is None:
        return None
    check_target(stream.checkpoint, option="--checkpoint")
    told = {
        "--format": form, "--outcome": fields.outcome, "--id": fields.id,
        "--ignore": list(fields.ignore), "--text": list(fields.text),
        "the input": "standard input" if stream.input == "-" else "a file",
        "--out": "standard output" if stream.out is None else "a file",
    }  # fmt: skip
    return Checkpoint(stream.checkpoint, stream.every, told)


def _lines(stream: LineOptions, stack: contextlib.ExitStack) -> Lines:
    if stream.input == "-":
        return PipeLines(sys.stdin.buffer)  # read until it is closed, with --follow or without
    path = Path(stream.input)
    if not path.is_file():
        raise InvalidInputError(
            f"The input must be a file or - for standard input, got {stream.input!r}, which is "
            f"{'a folder' if path.is_dir() else 'not there'}."
        )
    return FileLines(stack.enter_context(path.open("rb")), follow=stream.follow)


def _answers(path: Path | None, stack: contextlib.ExitStack) -> Answers:
    if path is None:
        return Answers(sys.stdout, file=False)
    if not path.parent.is_dir():
        raise InvalidInputError(f"--out must lie in an existing folder, got {path}.")
    if not path.exists():
        stack.push(partial(_drop_empty, path))
    try:
        file = stack.enter_context(path.open("ab", buffering=0))
    except OSError as error:
        raise InvalidInputError(f"--out must be a file, got {path} ({error}).") from error
    return Answers(file, file=True)


def _drop_empty(path: Path, kind: type[BaseException] | None, *_: object) -> None:
    """Leave no empty file of a stream that was refused."""
    if kind is not None and path.is_file() and path.stat().st_size == 0:
        path.unlink()
