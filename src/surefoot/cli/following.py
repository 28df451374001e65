"""The loop behind ``surefoot learn``: read a line, answer or learn, checkpoint, stop when asked."""

import contextlib
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Self

from surefoot.cli.main import forget_output
from surefoot.exceptions import InvalidInputError, ModelFileError, WritingError
from surefoot.online.checkpoint import load_state, save_state
from surefoot.online.lines import Lines, Position
from surefoot.online.messages import CsvLines, JsonLines
from surefoot.online.session import Session
from surefoot.online.streams import decoded


class Asked(BaseException):
    """SIGINT or SIGTERM came while waiting for a line."""


class StopSignals:
    """Lets SIGINT and SIGTERM end the work between two lines and never inside one.

    While a line is waited for, a signal raises ``Asked`` at once; while one is worked on, the signal is
    noted and raised before the next wait.
    """

    def __init__(self) -> None:
        self._noted = self._waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True
        if self._waiting:
            raise Asked

    def wait(self, read: Callable[[], bytes | None]) -> bytes | None:
        """Return what ``read`` returns, or raise ``Asked``."""
        self._waiting = True
        try:
            if self._noted:
                raise Asked
            return read()
        finally:
            self._waiting = False


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often the state is written; ``told`` is what must not differ on resuming."""

    path: Path
    every: int
    told: dict[str, Any]


class Answers:
    """Decisions, one JSON object a line, flushed at once; a file can be cut back to an earlier end.

    A file is one without a buffer: what it could not take must not be tried again when it is closed.
    """

    def __init__(self, stream: IO[Any], *, file: bool) -> None:
        self._stream, self._file = stream, file

    def write(self, answer: dict[str, Any]) -> None:
        """Write one decision, whole or not at all."""
        line = json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n"
        if not self._file:
            self._stream.write(line)
            self._stream.flush()
            return
        number, left = self._stream.fileno(), line.encode()
        end = os.fstat(number).st_size
        try:
            while left:
                left = left[os.write(number, left) :]
        except OSError:
            with contextlib.suppress(OSError):  # a device has no end to go back to
                os.ftruncate(number, end)
            raise

    def end(self) -> int | None:
        """Return the bytes written so far, or None for a pipe."""
        if not self._file:
            return None
        return os.fstat(self._stream.fileno()).st_size

    def cut(self, end: int | None) -> None:
        """Drop what was written after a checkpoint: it will be written again, the same."""
        if not self._file:
            return
        size = os.fstat(self._stream.fileno()).st_size
        if end is None or size < end:
            raise InvalidInputError(
                f"--out must be the file of the checkpoint with at least {end} bytes, got {size}."
            )
        os.ftruncate(self._stream.fileno(), end)  # what is written is appended


class Follower:
    """Reads lines into a session until they end or a signal comes."""

    def __init__(
        self,
        session: Session,
        lines: Lines,
        form: CsvLines | JsonLines,
        answers: Answers,
        *,
        checkpoint: Checkpoint | None,
        skip: bool,
    ) -> None:
        self.session, self.lines, self.form, self.answers = session, lines, form, answers
        self.checkpoint, self.skip = checkpoint, skip
        self.done, self.skipped = Position(), 0

    def resume(self) -> None:
        """Go on from the checkpoint if there is one."""
        if self.checkpoint is None or not self.checkpoint.path.exists():
            if self.answers.end():
                raise InvalidInputError("--out must be a new or empty file where nothing is resumed.")
            return
        path = self.checkpoint.path
        state, position = load_state(path)
        try:
            self._refuse_other(position["told"])
            self.lines.resume(Position(**position["position"]))
            self.answers.cut(position["end"])
            self.session.restore(state)
            self.skipped = int(position["skipped"])
            self.form = dataclasses.replace(self.form, **position["form"])
        except (KeyError, TypeError) as error:
            raise ModelFileError(
                f"{path} must be a checkpoint of surefoot learn, got one without {error}."
            ) from error
        self.done = self.lines.position

    def _refuse_other(self, told: dict[str, Any]) -> None:
        assert self.checkpoint is not None
        for name, value in self.checkpoint.told.items():
            if told[name] != value:
                raise InvalidInputError(
                    f"{name} must be {told[name]!r} as in the checkpoint, got {value!r}."
                )

    def run(self) -> bool:
        """Work until the end; return False if a signal ended it earlier."""
        with StopSignals() as signals:
            try:
                while (raw := signals.wait(self.lines.next)) is not None:
                    self._take(raw)
                    self.done = self.lines.position
                    if self.checkpoint is not None and self.done.line % self.checkpoint.every == 0:
                        self.save()
            except Asked:
                self.save()
                return False
            except InvalidInputError:
                self.save()  # the position is before the refused line, which can be mended
                raise
            self.save()
            return True

    def _take(self, raw: bytes) -> None:
        number = self.done.line + 1
        try:
            message = self.form.read(decoded(raw, number), number)
            answer = None if message is None else self.session.take(message)
        except InvalidInputError as error:
            # A table without its header cannot be read, so its first line is never skipped.
            if not (self.skip and self.form.ready):
                raise
            self.skipped += 1
            print(f"surefoot: {error} Skipped.", file=sys.stderr)
            return
        if answer is None:
            return
        try:
            self.answers.write(answer)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise WritingError(self._unwritten(number, error)) from error

    def _unwritten(self, number: int, error: OSError) -> str:
        """Say that a decision could not be written, what is kept, and how to go on."""
        kept = (
            "without --checkpoint the stream must be learned anew, with a new --out"
            if self.checkpoint is None
            else "the same command goes on from its last checkpoint"
        )
        return (
            f"line {number:,}: the decision cannot be written: {error.strerror or error}. Earlier "
            f"decisions are whole; {kept}."
        )

    def save(self) -> None:
        """Write state and position together."""
        if self.checkpoint is None:
            return
        save_state(
            self.checkpoint.path, self.session.state(), position=dataclasses.asdict(self.done),
            told=self.checkpoint.told, end=self.answers.end(), skipped=self.skipped,
            form=self.form.kept(),
        )  # fmt: skip

    def summary(self) -> str:
        """Return what was done since the beginning of the stream, as a sentence."""
        skipped = f", {self.skipped:,} skipped" if self.skipped else ""
        kept = "" if self.checkpoint is None else f" Checkpoint: {self.checkpoint.path}."
        return (
            f"{self.done.line:,} lines, {self.session.decided:,} decisions, "
            f"{self.session.learned:,} learned{skipped}.{kept}"
        )


@contextlib.contextmanager
def quiet_broken_pipe() -> Any:
    """End without noise when whoever reads the decisions has gone.

    No checkpoint is written then: the decision that found no reader is made again on resuming.
    """
    try:
        yield
    except BrokenPipeError as error:
        forget_output()
        raise InvalidInputError("standard output must stay open, got a closed pipe.") from error
