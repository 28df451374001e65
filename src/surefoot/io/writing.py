"""Files that appear whole or not at all."""

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from surefoot.exceptions import InvalidInputError, WritingError

# What a device says that is full, or fails: nobody's mistake.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def is_no_room(error: BaseException | None) -> bool:
    """Whether a device that is full, or fails, was behind an error."""
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def check_target(path: Path, suffixes: tuple[str, ...] = (), option: str = "--out") -> Path:
    """Return a path that can be written to; refuse others before any work is done."""
    if path.is_dir():
        raise InvalidInputError(f"{option} must be a file, got the folder {str(path)!r}.")
    if _is_device(path):
        raise InvalidInputError(f"{option} must be a file, got the device {str(path)!r}.")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{option} must lie in an existing folder, got {path}.")
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidInputError(f"{option} must end in {' or '.join(suffixes)}, got {path}.")
    return path


def refuse_inputs(path: Path, inputs: Sequence[str | Path], option: str = "--out") -> None:
    """Refuse to write over what is read: nothing of it would be left."""
    for given in map(Path, inputs):
        if path == given or (path.exists() and given.exists() and path.samefile(given)):
            raise InvalidInputError(
                f"{option} must be another file than those that are read, got {path}."
            )


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside ``path``; it takes the place of ``path`` if all goes well.

    Whatever ends it, Ctrl-C too, nothing half-written stays. A device is refused: a file would take its
    place for everybody.
    """
    if _is_device(path):
        raise OSError(errno.EINVAL, "a device instead of a file")
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # there may be no such place at all
            temporary.unlink(missing_ok=True)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give a temporary name as ``whole`` does, and say what is wrong with ``path``."""
    try:
        with whole(path) as temporary:
            yield temporary
    except OSError as error:
        if is_no_room(error):
            told = f"{path} cannot be written: {error.strerror}. It is as before."
            raise WritingError(told) from error
        raise InvalidInputError(
            f"{path} must be a file that can be written, got {error.strerror or error}."
        ) from error


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
