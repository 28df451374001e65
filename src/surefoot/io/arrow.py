"""pyarrow, which reads and writes Parquet files and which the core does without."""

from typing import Any

from surefoot.tracing import load_extra


def load_arrow(module: str) -> Any:
    """Return a module of pyarrow, or say which command installs it.

    >>> load_arrow("pyarrow.parquet").__name__
    'pyarrow.parquet'
    """
    return load_extra(module, 'Parquet files need pyarrow: run pip install "surefoot[panels]".')
