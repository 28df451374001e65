"""Rows in Parquet files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.nominals.empirical import LARGEST
from surefoot.nominals.row_batches import RowBatches
from surefoot.nominals.shapes import count, sizes
from surefoot.tracing import load_arrow
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_path, listed_names, require_columns

# A draw visits this many row groups, more for many rows: one for each so many of them...
GROUPS_A_DRAW, ROWS_A_GROUP = 8, 8192
# ...and so many that they hold this many rows for each one drawn.
ROWS_A_ROW = 4
# Column chunks are read through a buffer of so many bytes, whatever the size of a row group.
READ_BUFFER = 2**20


class ParquetRows(RowBatches):
    """Q puts the same weight on each row of a folder of Parquet files, however many there are.

    Files are read in batches of some megabytes, pass after pass; no more than a batch and a sample of
    the rows is ever in memory. Needs pyarrow (``pip install "surefoot[panels]"``).

    Parameters
    ----------
    source
        A folder, searched with all folders in it for ``*.parquet``, or one file.
    outcome
        The column of the outcome, or a sequence of columns, one for each product.
    contexts
        The columns of a context; None is all others. Columns must hold numbers (or True and False)
        without gaps.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> folder = tempfile.mkdtemp()
    >>> for month in (1, 2):
    ...     past = pd.DataFrame({"price": [1.0, 2.0, 3.0], "sales": [9.0, 7.0, 4.0 + month]})
    ...     past.to_parquet(f"{folder}/month-{month}.parquet")
    >>> rows = ParquetRows(folder, outcome="sales")
    >>> rows
    ParquetRows(2 files, 6 rows, 1 column, 1 product)
    >>> rows.names
    ('price',)
    >>> X, y = next(rows.batches())
    >>> X.shape, y.shape
    ((3, 1), (3, 1))
    """

    def __init__(
        self,
        source: str | Path,
        outcome: str | Sequence[str],
        contexts: Sequence[str] | None = None,
    ) -> None:
        self.source = check_path("source", source)
        self.outcomes = _columns("outcome", outcome)
        self._files = _files_of(self.source)
        self._stamps = [_stamp(file) for file in self._files]
        self._kinds = _number_columns(self._files[0])
        if contexts is None:
            chosen = tuple(name for name in self._kinds if name not in self.outcomes)
        else:
            chosen = _columns("contexts", contexts)
        both = [name for name in chosen if name in self.outcomes]
        if both or not chosen:
            got = f"the outcome {both[0]!r}" if both else "none"
            raise InvalidInputError(f"contexts must name columns beside the outcome, got {got}.")
        self.names = chosen
        self._groups = self._checked_groups()
        if self.n_rows == 0:
            raise InvalidInputError(f"source must hold rows, got none in {self.source}.")

    def __repr__(self) -> str:
        """Print sizes, not data."""
        files, rows = count(len(self._files), "file"), f"{self.n_rows:,} row{'s'[: self.n_rows != 1]}"
        return f"ParquetRows({files}, {rows}, {sizes(self.n_columns, self.n_products)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read: contexts, then outcomes."""
        assert self.names is not None  # set when the files were found
        return (*self.names, *self.outcomes)

    @property
    def n_columns(self) -> int:
        """How many columns a context has."""
        return len(self.columns) - self.n_products

    @property
    def n_products(self) -> int:
        """How many products an outcome has."""
        return len(self.outcomes)

    @property
    def n_rows(self) -> int:
        """How many rows all files have together."""
        return int(self._groups[:, 2].sum())

    def batches(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield every row once, file by file in the order of their names."""
        for number, file in enumerate(self._files):
            groups = self._groups[self._groups[:, 0] == number]
            first = 0
            if _stamp(file) != self._stamps[number]:
                raise InvalidInputError(
                    f"{file} must stay as it is, got another one: make the ParquetRows again."
                )
            for table in self._tables(file, groups[:, 1].tolist()):
                self._refuse_gaps(file, table, first)
                first += len(table)
                yield self._parted(table)
            if first != groups[:, 2].sum():
                raise InvalidInputError(
                    f"{file} must stay as it is, got {first:,} rows in the place of "
                    f"{int(groups[:, 2].sum()):,}: make the ParquetRows again."
                )

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Draw rows with replacement, all with one probability, from a few row groups at a time.

        Rows of one call share their row groups, so that drawing does not mean reading all files:
        each row comes up as often as any other, yet those of one call are not independent where
        neighbours in a file are alike.
        """
        mean_rows = self.n_rows / len(self._groups)
        most = max(GROUPS_A_DRAW, size // ROWS_A_GROUP, int(ROWS_A_ROW * size / mean_rows))
        shares = self._groups[:, 2] / self.n_rows
        visited = rng.choice(len(self._groups), size=min(most, size), p=shares)
        of_row = visited[rng.integers(len(visited), size=size)]
        places = rng.integers(self._groups[of_row, 2])
        drawn = np.empty((size, len(self.columns)))
        for group in np.unique(of_row).tolist():
            mine = np.flatnonzero(of_row == group)
            drawn[mine] = self._rows(group, places[mine])
        return self._parted(drawn)

    def _rows(self, group: int, places: IntArray) -> FloatArray:
        """Return some rows of a row group, of which a batch is read at a time."""
        file = self._files[int(self._groups[group, 0])]
        values, first = np.empty((len(places), len(self.columns))), 0
        for table in self._tables(file, [int(self._groups[group, 1])]):
            inside = (places >= first) & (places < first + len(table))
            values[inside] = table[places[inside] - first]
            first += len(table)
        self._refuse_gaps(file, values, None)
        return values

    def _parted(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ascontiguousarray(table[:, : self.n_columns]), table[:, self.n_columns :].copy()

    def _tables(self, file: Path, groups: list[int]) -> Iterator[FloatArray]:
        """Yield the columns of some row groups of a file as numbers, a batch at a time."""
        arrow, parquet = load_arrow("pyarrow"), load_arrow("pyarrow.parquet")
        try:
            with parquet.ParquetFile(file, buffer_size=READ_BUFFER, pre_buffer=False) as opened:
                for batch in opened.iter_batches(
                    batch_size=self.batch_rows, row_groups=groups, columns=list(self.columns)
                ):
                    table = np.empty((batch.num_rows, len(self.columns)), order="F")
                    for j, name in enumerate(self.columns):
                        numbers = batch.column(name).cast(arrow.float64(), safe=False)
                        table[:, j] = numbers.to_numpy(zero_copy_only=False)
                    yield table
        except (arrow.ArrowException, OSError) as error:
            raise InvalidInputError(f"{file} must be a whole Parquet file, got {error}.") from error

    def _refuse_gaps(self, file: Path, table: FloatArray, first: int | None) -> None:
        """Refuse gaps, infinities and numbers whose squares would be none, by file, row and column."""
        good = np.abs(table) < LARGEST  # False for NaN, too
        if good.all():
            return
        row, column = np.argwhere(~good)[0]
        value = table[row, column]
        got = "a gap or NaN" if np.isnan(value) else f"{value:g}"
        place = "" if first is None else f" in row {first + row}"
        raise InvalidInputError(
            f"{file} must hold numbers within +-{LARGEST:g} and no gaps, got {got}{place}, column "
            f"{self.columns[column]!r}."
        )

    def _checked_groups(self) -> IntArray:
        """Return file, number and rows of each row group, after a look at the columns of all files."""
        parquet = load_arrow("pyarrow.parquet")
        groups = []
        for number, file in enumerate(self._files):
            kinds = self._kinds if number == 0 else _number_columns(file)
            require_columns(str(file), list(kinds), self.columns)
            for name in self.columns:
                if not kinds[name]:
                    raise InvalidInputError(
                        f"{file} must hold numbers in every column that is read, got others in "
                        f"{name!r}: name the columns of the context by contexts=[...]."
                    )
            metadata = parquet.read_metadata(file)
            for group in range(metadata.num_row_groups):
                rows = metadata.row_group(group).num_rows
                if rows > 0:
                    groups.append((number, group, rows))
        return np.array(groups, dtype=np.int64).reshape(-1, 3)


def _columns(option: str, names: str | Sequence[str]) -> tuple[str, ...]:
    """Return distinct names of columns, at least one."""
    columns = tuple(map(str, listed_names(option, names)))
    if not columns or len(set(columns)) != len(columns):
        raise InvalidInputError(f"{option} must name distinct columns, at least one, got {names!r}.")
    return columns


def _files_of(source: Path) -> list[Path]:
    """Return the Parquet files of a folder, or the one file, in the order of their names."""
    if source.is_dir():
        files = sorted(
            file
            for file in source.rglob("*.parquet")
            if file.is_file() and not file.name.startswith(("_", "."))
        )
    else:
        files = [source] if source.is_file() else []
    if not files:
        got = "none" if source.is_dir() else "nothing there"
        raise InvalidInputError(
            f"source must be a folder of Parquet files (*.parquet), or one, got {got} in {source}."
        )
    return files


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return size and time of the last change of a file, None where there is none."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _number_columns(file: Path) -> dict[str, bool]:
    """Return the columns of a file, and whether they hold numbers."""
    arrow, parquet = load_arrow("pyarrow"), load_arrow("pyarrow.parquet")
    try:
        schema, types = parquet.read_schema(file), arrow.types
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInputError(f"{file} must be a Parquet file, got {error}.") from error
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"{file} must have distinct columns, got {twice[0]!r} more than once.")
    return {
        field.name: types.is_integer(field.type)
        or types.is_floating(field.type)
        or types.is_boolean(field.type)
        for field in schema
    }
