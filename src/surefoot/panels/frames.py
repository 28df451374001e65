"""Frames out: of the make that came in, and without pandas or polars until somebody asks for one."""

import importlib
import importlib.util
from typing import Any

from surefoot.exceptions import MissingExtraError

PANDAS, POLARS = "pandas", "polars"


def make_of(data: Any) -> str | None:
    """Return which library a frame is from, or None."""
    home = type(data).__module__.partition(".")[0]
    return home if home in (PANDAS, POLARS) else None


def make_frame(columns: dict[str, list[Any]], make: str | None) -> Any:
    """Return columns as a frame of pandas or polars; None takes what is installed."""
    if make is None:
        make = PANDAS if importlib.util.find_spec(PANDAS) is not None else POLARS
    try:
        library = importlib.import_module(make)
    except ImportError as error:
        raise MissingExtraError(f"A frame needs {make}: pip install {make}") from error
    return library.DataFrame(columns)
