"""What users hand in, column by column: frames of any make, arrays, and tables read from files."""

import datetime
import decimal
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.typing import BoolArray, IntArray
from surefoot.validation import is_gap

NUMBER, CATEGORY, DATE = "number", "category", "date"


@dataclass(frozen=True, eq=False)
class Column:
    """One column, clean.

    Attributes
    ----------
    name
        Its name, or its position as text where there are no names.
    kind
        "number", "category" or "date".
    values
        float64 with NaN for gaps, objects (text, or None for gaps), or ``datetime64[D]`` with NaT.
    """

    name: str
    kind: str
    values: NDArray[Any]

    def take(self, rows: IntArray) -> "Column":
        """Return some rows."""
        return Column(self.name, self.kind, self.values[rows])

    @property
    def gaps(self) -> BoolArray:
        """Which rows hold no value."""
        if self.kind == CATEGORY:
            return np.array([value is None for value in self.values], dtype=bool)
        return np.asarray(np.isnat(self.values) if self.kind == DATE else np.isnan(self.values))

    def as_category(self) -> "Column":
        """Return the column with numbers and dates as text."""
        if self.kind == CATEGORY:
            return self
        # Dates are told apart by their day, and print as one.
        texts = [None if gap else level_text(v) for v, gap in zip(self.values, self.gaps, strict=True)]
        return Column(self.name, CATEGORY, _objects(texts))


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length; what every kind of input becomes.

    Examples
    --------
    >>> table = Table.of({"price": [1.0, 2.5], "shop": ["north", None], "open": [True, False]})
    >>> [(column.name, column.kind) for column in table.columns]
    [('price', 'number'), ('shop', 'category'), ('open', 'category')]
    >>> table.shape, table.take([1]).columns[0].values
    ((2, 3), array([2.5]))
    """

    columns: tuple[Column, ...]
    named: bool
    rows: int

    @classmethod
    def of(cls, columns: dict[str, Any]) -> "Table":
        """Return the table of some named columns."""
        read = tuple(_column(name, values, declared=False) for name, values in columns.items())
        return cls(read, named=True, rows=_one_length(read))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, len(self.columns)

    def __len__(self) -> int:
        """How many rows."""
        return self.rows

    @property
    def names(self) -> tuple[str, ...]:
        """One name per column."""
        return tuple(column.name for column in self.columns)

    def take(self, rows: Sequence[int] | IntArray) -> "Table":
        """Return some rows, in the order asked for."""
        index = np.asarray(rows, dtype=np.int64)
        return Table(tuple(column.take(index) for column in self.columns), self.named, len(index))

    @property
    def plain(self) -> bool:
        """Whether there are only numbers and no gaps, so that nothing need be prepared."""
        return all(column.kind == NUMBER and not column.gaps.any() for column in self.columns)


def read_table(X: Any) -> Table:
    """Return contexts as a table: pandas and polars frames, arrays and nested lists.

    >>> read_table([[1, "north"], [2, "south"]]).columns[1].values
    array(['north', 'south'], dtype=object)
    """
    if isinstance(X, Table):
        return X
    labels = getattr(X, "columns", None)
    if labels is not None and hasattr(X, "dtypes"):
        return _read_frame(X, list(labels))
    if sparse.issparse(X):
        raise InvalidTypeError("X must be dense, got sparse data: call X.toarray() first.")
    X = _unmasked(X)
    try:
        array = np.asarray(X)
        if array.ndim == 2 and array.dtype.kind == "U":
            array = np.asarray(X, dtype=object)  # numbers beside text would have become text
    except ValueError as error:
        raise InvalidInputError(
            "X must have rows of equal length, got rows of different lengths."
        ) from error
    if array.ndim != 2:
        raise InvalidInputError(
            "X must be a frame or a matrix (rows, columns), "
            f"got shape {array.shape}: Reshape your data."
        )
    _refuse_empty(array.shape)
    columns = tuple(_column(str(j), array[:, j], declared=False) for j in range(array.shape[1]))
    return Table(columns, named=False, rows=len(array))


def _read_frame(X: Any, labels: list[Any]) -> Table:
    _refuse_empty((len(X), len(labels)))
    columns = [
        _column(name, series, declared=declared) for name, series, declared in frame_columns(X, "X")
    ]
    named = all(isinstance(label, str) for label in labels)
    return Table(tuple(columns), named=named, rows=_one_length(columns))


def frame_columns(frame: Any, option: str) -> list[tuple[str, Any, bool]]:
    """Return the name and the values of each column, and whether the frame calls it a category."""
    labels = list(frame.columns)
    names = [str(label) for label in labels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"{option} must have distinct column names, got {twice[0]!r} twice.")
    return [
        (name, frame[label], str(frame[label].dtype).lower().startswith(("categor", "enum")))
        for label, name in zip(labels, names, strict=True)
    ]


def _refuse_empty(shape: tuple[int, ...]) -> None:
    for size, word in zip(shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise InvalidInputError(
                f"X must have at least one row and one column: Found array with 0 {word}(s) "
                f"(shape={shape}) while a minimum of 1 is required."
            )


def _one_length(columns: Iterable[Column]) -> int:
    sizes = {len(column.values) for column in columns}
    if len(sizes) != 1:
        raise InvalidInputError(f"Columns must have one length, got {sorted(sizes)} rows.")
    return sizes.pop()


def _unmasked(values: Any) -> Any:
    """Return a masked array as one with gaps; anything else as it is."""
    if not isinstance(values, np.ma.MaskedArray) or not np.ma.is_masked(values):
        return values
    numeric = values.dtype.kind in "iuf"
    unmasked = values.data.astype(np.float64 if numeric else object)
    unmasked[np.ma.getmaskarray(values)] = np.nan if numeric else None
    return unmasked


def _column(name: str, values: Any, *, declared: bool) -> Column:
    """Return a clean column; ``declared`` says that the frame calls it a category."""
    array = np.asarray(_unmasked(values))
    kind = array.dtype.kind
    if declared or kind in "bUST":
        return Column(name, CATEGORY, _objects([_text_or_gap(name, value) for value in array]))
    if kind in "iuf":
        return Column(name, NUMBER, _finite(name, array.astype(np.float64)))
    if kind == "M":
        return Column(name, DATE, _whole_days(name, array))
    if kind == "O":
        return _from_objects(name, array)
    got = {"c": "complex numbers: Complex data not supported", "m": "durations"}.get(kind, str(kind))
    raise InvalidInputError(f"X must hold numbers, categories and dates, got {got} in {name!r}.")


def _from_objects(name: str, array: NDArray[Any]) -> Column:
    """Return a column of objects as what all its values are."""
    present = [value for value in array if not is_gap(value)]
    if present and all(_is_number(value) for value in present):
        floats = [np.nan if is_gap(value) else float(value) for value in array]
        return Column(name, NUMBER, _finite(name, np.array(floats, dtype=np.float64)))
    if present and all(isinstance(value, datetime.date | np.datetime64) for value in present):
        # NumPy alone would not take a time zone, and pandas counts from another unit.
        days = ["NaT" if is_gap(value) else _day(name, value) for value in array]
        return Column(name, DATE, np.array(days, dtype="datetime64[D]"))
    return Column(name, CATEGORY, _objects([_text_or_gap(name, value) for value in array]))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | decimal.Decimal) and not isinstance(value, bool | np.bool_)


def level_text(value: Any) -> str:
    """Return the text by which a level is known: 3, 3.0 and "3" are one level.

    >>> level_text(3.0), level_text(True), level_text("a")
    ('3', 'True', 'a')
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _text_or_gap(name: str, value: Any) -> str | None:
    if is_gap(value):
        return None
    if not isinstance(value, str | bool | np.bool_ | datetime.date | np.datetime64) and not _is_number(
        value
    ):
        raise InvalidTypeError(
            f"X must hold numbers, text, categories and dates; argument must be a string or a number, "
            f"got {type(value).__name__} in {name!r}."
        )
    return level_text(value)


def _objects(values: list[str | None]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _finite(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    bad = np.flatnonzero(np.isinf(values))
    if len(bad):
        raise InvalidInputError(
            f"X must be finite (gaps are allowed), got infinity (inf) in row {bad[0]}, column {name!r}."
        )
    return values


def _whole_days(name: str, values: NDArray[Any]) -> NDArray[Any]:
    days = values.astype("datetime64[D]")
    bad = np.flatnonzero((days != values) & ~np.isnat(values))
    if len(bad):
        raise _not_a_day(name, values[bad[0]])
    return days


def _day(name: str, value: Any) -> str:
    if isinstance(value, np.datetime64):
        return str(_whole_days(name, np.array([value]))[0])
    if isinstance(value, datetime.datetime) and (value.tzinfo or value.time() != datetime.time()):
        raise _not_a_day(name, value)
    return str(value)[:10]


def _not_a_day(name: str, value: Any) -> InvalidInputError:
    return InvalidInputError(
        f"Dates must be whole days without a time zone, got {value} in {name!r}: "
        "split it into a date and, if the hour matters, a column of its own."
    )
