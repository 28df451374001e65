"""pyarrow, which reads and writes Parquet files and which the core does without."""

import importlib
from typing import Any

from surefoot.exceptions import MissingExtraError


def load_arrow(module: str) -> Any:
    """Return a module of pyarrow, or say which command installs it.

    >>> load_arrow("pyarrow.parquet").__name__
    'pyarrow.parquet'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            'Parquet files need pyarrow: run pip install "surefoot[panels]".'
        ) from error
