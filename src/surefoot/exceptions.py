"""One family of errors and warnings.

Every message has one shape: what, allowed, got. ``radius must be >= 0, got -1.0.``
"""

import os
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

PACKAGE = f"{Path(__file__).parent}{os.sep}"
_ROW = re.compile(r"\bin row (\d+)\b")


class SurefootError(Exception):
    """Base of every error that Surefoot raises on purpose."""


class InvalidInputError(SurefootError, ValueError):
    """A value that the user handed in is not allowed."""


class InvalidTypeError(SurefootError, TypeError):
    """An object that the user handed in is of the wrong kind."""


class UnsupportedProblemError(SurefootError, ValueError):
    """The chosen solver cannot treat the problem; the message says why and what can."""


class UnboundedProblemError(SurefootError, ValueError):
    """The worst-case cost has no finite minimum."""


class MissingExtraError(SurefootError, ImportError):
    """An optional package is needed; the message names the install command."""


class ModelFileError(SurefootError, ValueError):
    """A model file cannot be read: truncated, foreign, of a newer version or changed."""


class WritingError(SurefootError, OSError):
    """A file cannot be written to its end: no room is left, or the device fails."""


class SurefootWarning(UserWarning):
    """Base of every warning that Surefoot issues on purpose."""


class ConvergenceWarning(SurefootWarning):
    """A solver stopped before its certified gap reached the tolerance."""


class DataWarning(SurefootWarning):
    """The data are usable, but something about them deserves a look."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the caller that is not Surefoot's own."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def with_places(sentence: str, place: Callable[[int], str]) -> str:
    """Return a sentence about rows with the places by which whoever has the table knows them.

    >>> with_places("'wind' is 90 in row 3", lambda row: f"line {row + 2} of new.csv")
    "'wind' is 90 in line 5 of new.csv"
    """
    return _ROW.sub(lambda match: f"in {place(int(match[1]))}", sentence)
