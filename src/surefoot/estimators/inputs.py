"""Checks at the border: frames and arrays in, clean float64 arrays out."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from surefoot.exceptions import InvalidInputError
from surefoot.typing import FloatArray


def check_contexts(estimator: BaseEstimator, X: Any, *, reset: bool) -> FloatArray:
    """Return contexts as a float64 matrix; with ``reset`` remember their columns, else compare."""
    _refuse_text(X)
    X = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_min_samples=1)
    return np.ascontiguousarray(X)


def check_pairs(
    estimator: BaseEstimator, X: Any, y: Any, *, reset: bool, min_rows: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return contexts and outcomes as float64 arrays with matching rows."""
    _refuse_text(X)
    _refuse_unusable_outcomes(y)
    X, y = validate_data(
        estimator, X, y, reset=reset, dtype=np.float64, multi_output=True, y_numeric=True,
        ensure_min_samples=min_rows,
    )  # fmt: skip
    y = np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2):
        raise InvalidInputError(f"y must have shape (rows,) or (rows, products), got shape {y.shape}.")
    return np.ascontiguousarray(X), y


def _refuse_text(X: Any) -> None:
    """Name text columns before NumPy fails on one of their values."""
    columns = getattr(X, "columns", None)
    dtypes = getattr(X, "dtypes", None)
    if columns is not None and dtypes is not None:
        kinds = [str(dtype).lower() for dtype in dtypes]
        words = ("str", "object", "categor", "enum", "datetime", "date")
        named = [
            str(column)
            for column, kind in zip(columns, kinds, strict=True)
            if kind.startswith(words) and not _holds_numbers(X[column])
        ]
        if named:
            raise InvalidInputError(
                f"X must be numeric, got text or dates in {', '.join(map(repr, named))}: "
                "encode such columns first, for example with OneHotEncoder."
            )
    elif isinstance(X, np.ndarray | list | tuple):
        kind = np.asarray(X).dtype.kind if isinstance(X, np.ndarray) else _list_kind(X)
        if kind in "US":
            raise InvalidInputError(
                "X must be numeric, got text: encode such columns first, "
                "for example with OneHotEncoder."
            )


def _list_kind(X: Any) -> str:
    try:
        return np.asarray(X).dtype.kind
    except ValueError as error:
        raise InvalidInputError(
            f"X must be a matrix (rows, columns) with rows of equal length, got {error}."
        ) from error


def _holds_numbers(column: Any) -> bool:
    """Whether a column of objects holds plain numbers after all."""
    return all(isinstance(value, int | float | np.number) for value in column)


def _refuse_unusable_outcomes(y: Any) -> None:
    if y is None:
        return  # scikit-learn has its own sentence for a missing y
    array = np.asarray(y)
    if array.dtype.kind in "US" or (
        array.dtype.kind == "O" and any(isinstance(value, str) for value in array.reshape(-1))
    ):
        raise InvalidInputError("y must be numeric, got text.")
    if array.dtype.kind in "f" and not np.isfinite(array).all():
        bad = int(np.argwhere(~np.isfinite(array))[0][0])
        got = "NaN" if np.isnan(array).any() else "infinity (inf)"
        raise InvalidInputError(f"Input y must be finite, got {got} in row {bad}.")
