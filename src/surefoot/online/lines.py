"""Lines of a file or of standard input, with a position that a later process can go on from."""

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO

from surefoot.exceptions import InvalidInputError

# Seconds between two looks at a file that may grow.
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Position:
    """How far a stream has been read: whole lines only.

    Attributes
    ----------
    line
        Lines read.
    offset
        Bytes read.
    size
        Bytes of the last line read, its line break among them.
    digest
        SHA-256 of that line, by which a later process knows the stream again.
    broken
        Whether that line ended in a line break.
    """

    line: int = 0
    offset: int = 0
    size: int = 0
    digest: str = ""
    broken: bool = True

    def after(self, raw: bytes) -> "Position":
        r"""Return the position behind one more line.

        >>> Position().after(b"a,b\n").after(b"1,2\n").offset
        8
        """
        return Position(
            self.line + 1, self.offset + len(raw), len(raw), _digest(raw), raw.endswith(b"\n")
        )


class FileLines:
    """Lines of a file; with ``follow``, also those that are yet to be written.

    A last line without a line break is taken as it is, or waited for with ``follow``. The file is
    one opened in binary mode, and stays the caller's to close.
    """

    def __init__(
        self, file: IO[bytes], *, follow: bool = False, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self.path, self.follow = file.name, follow
        self._file, self._wait = file, wait
        self.position = Position()

    def next(self) -> bytes | None:
        """Return the next line, waiting for it, or None at the end."""
        start = self.position.offset
        while True:
            raw = self._file.readline()
            if raw.endswith(b"\n") or (raw and not self.follow):
                self.position = self.position.after(raw)
                return raw
            if not self.follow:
                return None
            self._file.seek(start)
            if os.fstat(self._file.fileno()).st_size < start:
                raise InvalidInputError(
                    f"{self.path} must only grow, got a file shorter than the {start} bytes read."
                )
            self._wait(_PAUSE)

    def resume(self, position: Position) -> None:
        """Go to a position; the last line before it must be the one that was read."""
        start = position.offset - position.size
        self._file.seek(start)
        if _digest(self._file.read(position.size)) != position.digest and position.line:
            raise InvalidInputError(_another(self.path, position))
        self.position = position
        if not position.broken:
            rest = self._file.readline()
            if rest.strip(b"\r\n"):
                raise InvalidInputError(
                    f"line {position.line} of {self.path} must be as it was read, got a longer one: "
                    "it had no line break yet (--follow waits for it)."
                )
            self.position = replace(position, offset=position.offset + len(rest), broken=bool(rest))


class PipeLines:
    """Lines of standard input or another pipe, until it is closed."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self.position = Position()

    def next(self) -> bytes | None:
        """Return the next line, waiting for it, or None once the pipe is closed."""
        raw = self._pipe.readline()
        if not raw:
            return None
        self.position = self.position.after(raw)
        return raw

    def resume(self, position: Position) -> None:
        """Pass over the lines already seen: who writes must write from the beginning again."""
        while self.position.line < position.line:
            if self.next() is None:
                raise InvalidInputError(
                    f"standard input must begin with the {position.line} lines already seen, "
                    f"got {self.position.line}."
                )
        if self.position != position:
            raise InvalidInputError(_another("standard input", position))


Lines = FileLines | PipeLines


def _another(what: str, position: Position) -> str:
    return (
        f"{what} must be the stream of the checkpoint, got another one: "
        f"line {position.line} is not what it was."
    )


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
