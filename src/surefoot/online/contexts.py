"""What users hand in as arrays and frames, as checked rows over the known columns."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.online.columns import LARGEST, Column, Columns
from surefoot.typing import FloatArray
from surefoot.validation import check_finite, context_matrix, is_gap, numeric_array, outcome_matrix

GAPS_ARE_LEFT_OUT = ": learn_one takes rows without the key"


def array_columns(n_columns: int) -> list[Column]:
    """Return the columns of an array: x0, x1, ..."""
    return [(f"x{j}", None) for j in range(n_columns)]


def is_frame(X: Any) -> bool:
    """Whether X has named columns."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def has_text(X: Any) -> bool:
    """Whether a frame has columns that are not numbers."""
    return any(np.asarray(X[name][:0]).dtype.kind not in "biuf" for name in X.columns)


def records(X: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame as dictionaries; missing texts are None."""
    names = frame_names(X)
    if not len(X):
        raise InvalidInputError(f"X must have at least one row, got none of {len(names)} columns.")
    rows = zip(*(_cells(X, name) for name in names), strict=True)
    return [dict(zip(names, values, strict=True)) for values in rows]


def _cells(X: Any, name: str) -> list[Any]:
    """Return a column; a gap in a column of numbers stays, and is refused by key."""
    cells: list[Any] = X[name].to_list()
    return [None if is_gap(cell) else cell for cell in cells] if has_text(X[[name]]) else cells


def _name(column: Any) -> str:
    if not isinstance(column, str):
        raise InvalidTypeError(f"columns of X must have texts as names, got {column!r}.")
    return column


def frame_names(X: Any) -> tuple[str, ...]:
    """Return the names of a frame's columns: texts, each once."""
    names = tuple(_name(column) for column in X.columns)
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"columns of X must have distinct names, got {name!r} twice.")
    return names


def _floats(column: Any) -> FloatArray:
    """Return a column as floats, NaN where a value is missing."""
    values = np.asarray(column)
    if values.dtype.kind not in "biuf":  # nullable columns
        values = np.array([math.nan if is_gap(value) else value for value in column.to_list()])
    return values.astype(np.float64)


def numeric_matrix(X: Any) -> tuple[tuple[str, ...] | None, FloatArray]:
    """Return the names of a frame (None for an array) and its numbers, all finite and not too large."""
    names = frame_names(X) if is_frame(X) else None
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size:
        matrix = np.ascontiguousarray(X)
    else:
        values = X
        if names is not None:
            # Column by column: bools beside floats would make an array of objects.
            values = np.column_stack([_floats(X[name]) for name in names])
            check_finite("X", values, names, GAPS_ARE_LEFT_OUT)
        matrix = context_matrix("X", values)
    # One pass: the comparison also fails for NaN.
    if not max(matrix.max(), -matrix.min()) < LARGEST:
        check_finite("X", matrix, names, GAPS_ARE_LEFT_OUT)
        raise InvalidInputError(
            f"X must lie within +-{LARGEST:g}, got {matrix.flat[np.abs(matrix).argmax()]:g}."
        )
    return names, matrix


def new_columns(names: Sequence[str] | None, width: int, columns: Columns) -> list[Column]:
    """Return the columns that a matrix would add."""
    if names is None:
        if len(columns) == 0:
            added = array_columns(width)
            columns.refuse_excess(added)
            return added
        if width != len(columns):
            raise InvalidInputError(
                f"X must have {len(columns)} columns as before, got {width}: name the columns "
                "(a frame, or dictionaries) if they come and go."
            )
        return []
    for name in names:
        columns.refuse_change(name, 0.0)
    added = [(name, None) for name in names if name not in columns.numeric]
    columns.refuse_excess(added)
    return added


def spread_out(names: Sequence[str] | None, matrix: FloatArray, columns: Columns) -> FloatArray:
    """Return a matrix over all known columns, NaN in those that it does not have."""
    if names is None or names == columns.names:
        return matrix
    rows = np.full((len(matrix), len(columns)), np.nan)
    for j, name in enumerate(names):
        if name in columns.numeric:
            rows[:, columns.numeric[name]] = matrix[:, j]
    return rows


def one_outcome(y: Any) -> FloatArray:
    """Return an outcome as a matrix of one row."""
    if type(y) is float and -LARGEST < y < LARGEST:
        return np.array([[y]])
    array = numeric_array("y", y)
    if array.ndim > 1 or array.size == 0:
        raise InvalidInputError(f"y must be a number or one per product, got shape {array.shape}.")
    return _not_too_large(array.reshape(1, -1))


def outcome_rows(y: Any, rows: int) -> FloatArray:
    """Return outcomes as (rows, products)."""
    return _not_too_large(outcome_matrix("y", y, rows))


def _not_too_large(outcomes: FloatArray) -> FloatArray:
    if not np.abs(outcomes).max() < LARGEST:
        raise InvalidInputError(f"y must lie within +-{LARGEST:g}, got {np.abs(outcomes).max():g}.")
    return outcomes
