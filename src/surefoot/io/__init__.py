"""Values and files: how models, checkpoints and tables are written down, and read back with care.

The reader of tables needs polars, which the core does without: it is loaded when first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from surefoot.exceptions import MissingExtraError
from surefoot.io.archive import read_archive, write_archive
from surefoot.io.codec import is_registered, pack, register, unpack

if TYPE_CHECKING:
    from surefoot.io.table_columns import FileColumn
    from surefoot.io.table_file import Reading, TableFile, read_file

__all__ = [
    "FileColumn",
    "Reading",
    "TableFile",
    "is_registered",
    "pack",
    "read_archive",
    "read_file",
    "register",
    "unpack",
    "write_archive",
]
_TABLES = ("FileColumn", "Reading", "TableFile", "read_file")


def __getattr__(name: str) -> Any:
    """Load the reader of tables on first use."""
    if name not in _TABLES:
        raise AttributeError(f"module 'surefoot.io' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module("surefoot.io.table_file"), name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f'Files of tables need {error.name}: run pip install "surefoot[cli]".'
        ) from error
    globals()[name] = value
    return value
