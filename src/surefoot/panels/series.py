"""A panel cut into series: one key, its rows in order of time, its columns as they came.

Columns are cleaned series by series, so that an odd value spoils one series and no other.
"""

import datetime
import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.estimators.preparation.table import Table, frame_columns, level_text
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import is_gap, require_columns

Key = tuple[str, ...]
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class PanelColumns:
    """What each column of a panel is for.

    Attributes
    ----------
    by
        The columns that name a series.
    outcome
        The column of outcomes.
    time
        The column that orders the rows of a series; None leaves them in their order.
    contexts
        The columns that are known beforehand; a ``time`` of dates among them counts by weekday and
        month.
    categories
        Those of them that the frame declares to be categories although they may look like numbers.
    """

    by: tuple[str, ...]
    outcome: str
    time: str | None
    contexts: tuple[str, ...]
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Series:
    """The rows of one key: contexts by name, outcomes if they are known, and where the rows stood.

    ``times`` says when each row was, if a column says so: a whole number that rises. ``fault`` says why
    the rows could not be read, if so.
    """

    key: Key
    contexts: Columns
    outcomes: NDArray[Any] | None
    rows: IntArray
    times: IntArray | None = None
    fault: str = ""

    def table(self) -> Table:
        """Return the contexts, clean; odd values are refused here."""
        if self.fault:
            raise InvalidInputError(self.fault)
        return Table.of(self.contexts)

    def clean_outcomes(self) -> FloatArray:
        """Return the outcomes as numbers, or say what is wrong with them."""
        given = self._given()
        try:
            outcomes = np.array([np.nan if value is None else value for value in given], float)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"The outcome must be a number, got {error}.") from error
        bad = int((~np.isfinite(outcomes)).sum())
        if bad:
            raise InvalidInputError(
                f"The outcome must be finite, got NaN or infinity in {bad} of {len(outcomes)} rows."
            )
        return outcomes

    def _given(self) -> NDArray[Any]:
        if self.outcomes is None:
            raise InvalidInputError("The outcome must be known, got rows without it.")
        if self.outcomes.dtype.kind not in "iufO":
            raise InvalidInputError(f"The outcome must be a number, got {self.outcomes.dtype}.")
        return self.outcomes

    def take(self, rows: IntArray) -> "Series":
        """Return some of the rows."""
        return Series(
            self.key, {name: values[rows] for name, values in self.contexts.items()},
            None if self.outcomes is None else self.outcomes[rows], self.rows[rows],
            None if self.times is None else self.times[rows],
        )  # fmt: skip


def key_text(value: Any) -> str:
    """Return the text by which a part of a key is known: 3, 3.0, "3" and " 3" are one.

    >>> key_text(3.0), key_text("north "), key_text(np.datetime64("2024-05-01"))
    ('3', 'north', '2024-05-01')
    """
    return level_text(value).strip()


def key_order(key: Key) -> tuple[Any, ...]:
    """Sort keys as people do: numbers by size, before text.

    >>> sorted([("10", "b"), ("9", "a"), ("x", "a")], key=key_order)
    [('9', 'a'), ('10', 'b'), ('x', 'a')]
    """
    return tuple((0, float(part), part) if _is_whole(part) else (1, 0.0, part) for part in key)


def _is_whole(part: str) -> bool:
    return part.isascii() and part.lstrip("-").isdigit() and len(part) < 16


def raw_columns(data: Any) -> tuple[Columns, tuple[str, ...]]:
    """Return the columns of a pandas or polars frame or of a table by name, and declared categories."""
    if isinstance(data, Table):
        return {column.name: column.values for column in data.columns}, ()
    named = hasattr(data, "__len__") and hasattr(data, "columns") and hasattr(data, "dtypes")
    if not named:
        raise InvalidTypeError(
            "data must be a pandas or polars frame (collect a lazy one) or, to fit or evaluate, a "
            f"folder of Parquet files, got {type(data).__name__}."
        )
    columns = frame_columns(data, "data")
    declared = tuple(name for name, _, category in columns if category)
    return {name: np.asarray(values) for name, values, _ in columns}, declared


def split_series(columns: Columns, named: PanelColumns, *, outcomes: bool = True) -> Iterator[Series]:
    """Yield the series of some columns, keys in order; rows by time, as they came where times tie."""
    wanted = [*named.by, *named.contexts]
    require_columns("data", list(columns), [*wanted, named.outcome] if outcomes else wanted)
    keys, numbers = _numbered([columns[name] for name in named.by], named.by)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(keys) + 1))
    for number in sorted(range(len(keys)), key=lambda k: key_order(keys[k])):
        rows, times, fault = order[bounds[number] : bounds[number + 1]], None, ""
        if named.time is not None and outcomes:
            given = columns[named.time][rows]
            fault = _time_fault(given)
            late = _time_order(given)
            rows, times = rows[late], _ranks(given[late])
        yield Series(
            keys[number], {name: columns[name][rows] for name in named.contexts},
            columns[named.outcome][rows] if outcomes else None, rows, times, fault,
        )  # fmt: skip


def _numbered(parts: Sequence[NDArray[Any]], names: Sequence[str]) -> tuple[list[Key], IntArray]:
    """Return the keys there are, and for each row the number of its key."""
    texts = []
    for name, values in zip(names, parts, strict=True):
        known: dict[Any, str] = {}
        column = []
        for row, value in enumerate(values.tolist()):
            if is_gap(value):
                raise InvalidInputError(
                    f"{name!r} must name a series in each row, got none in row {row}."
                )
            if value not in known:
                # NumPy's days become dates, its nanoseconds numbers; the value itself knows its text.
                known[value] = key_text(values[row])
            column.append(known[value])
        texts.append(column)
    numbers: dict[Key, int] = {}
    codes = [numbers.setdefault(key, len(numbers)) for key in zip(*texts, strict=True)]
    return list(numbers), np.array(codes, dtype=np.int64)


def _time_fault(times: NDArray[Any]) -> str:
    """Say why rows have no place in the order of time; nothing if all have one."""
    # Nanoseconds without a value are a number to Python, so NumPy is asked first.
    days = times.dtype.kind in "mM"
    values = [] if days else times.tolist()
    gaps = int(np.isnat(times).sum()) if days else sum(map(is_gap, values))
    if gaps:
        return f"The time must be known in every row, got a gap in {gaps} of {len(times)} rows."
    odd = [value for value in values if not _is_time(value)]
    if not odd:
        return ""
    advice = ": turn texts into dates (pandas.to_datetime)" if isinstance(odd[0], str) else ""
    return f"The time must be a date or a finite number in every row, got {odd[0]!r}{advice}."


def _is_time(value: Any) -> bool:
    if isinstance(value, datetime.date):
        return True
    return isinstance(value, numbers.Real) and math.isfinite(value)


def _time_order(times: NDArray[Any]) -> IntArray:
    """Return rows by time; a series whose times cannot be compared keeps its order."""
    try:
        return np.argsort(times, kind="stable")
    except TypeError:
        return np.arange(len(times))


def _ranks(times: NDArray[Any]) -> IntArray:
    """Return 0, 1, ... for times in order, the same where they are equal.

    >>> _ranks(np.array([3.0, 3.0, 8.0]))
    array([0, 0, 1])
    """
    return np.cumsum(np.r_[False, times[1:] != times[:-1]]).astype(np.int64)
