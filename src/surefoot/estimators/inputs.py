"""Checks at the border: frames and arrays in, clean float64 arrays out, and frames again for people."""

import contextlib
import hashlib
import importlib
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from surefoot.exceptions import InvalidInputError
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_finite, refuse_masked

GAPS_ARE_PREPARED = ": PreparedPolicy(model) takes gaps in contexts as they are"


def check_contexts(estimator: BaseEstimator, X: Any, *, reset: bool) -> FloatArray:
    """Return contexts as a float64 matrix; with ``reset`` remember their columns, else compare."""
    refuse_masked("X", X)
    _refuse_text(X)
    _refuse_gaps(X)
    X = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_min_samples=1)
    return np.ascontiguousarray(X)


def check_pairs(
    estimator: BaseEstimator, X: Any, y: Any, *, reset: bool, min_rows: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return contexts and outcomes as float64 arrays with matching rows."""
    refuse_masked("X", X)
    _refuse_text(X)
    _refuse_gaps(X)
    _refuse_unusable_outcomes(estimator, y)
    y_given = y
    X, y = validate_data(
        estimator, X, y, reset=reset, dtype=np.float64, multi_output=True, y_numeric=True,
        ensure_min_samples=min_rows,
    )  # fmt: skip
    if reset:
        estimator._outcome_names = _outcome_names(y_given)
    return np.ascontiguousarray(X), np.asarray(y, dtype=np.float64)


def fingerprint(X: FloatArray, y: FloatArray) -> str:
    """Return a checksum of some rows, by which they are known again.

    >>> rows = np.ones((3, 2)), np.zeros(3)
    >>> fingerprint(*rows) == fingerprint(*rows), len(fingerprint(*rows))
    (True, 64)
    """
    digest = hashlib.sha256()
    for values in (X, y.reshape(len(y), -1)):
        digest.update(repr(values.shape).encode())
        digest.update(np.ascontiguousarray(values, dtype="<f8").data)
    return digest.hexdigest()


def like_contexts(X: Any, decisions: FloatArray, names: list[str] | None) -> Any:
    """Return decisions as a frame or series of the kind of X, or as they are for anything else.

    Rows keep the index of X; columns have the names of the outcomes.
    """
    kind = type(X).__module__.partition(".")[0]
    if kind not in ("pandas", "polars"):
        return decisions
    library, single = importlib.import_module(kind), decisions.ndim == 1
    width = 1 if single else decisions.shape[1]
    if names is None or len(names) != width:
        names = ["decision"] if single else [f"decision{j}" for j in range(width)]
    if kind == "polars":
        made = library.DataFrame(decisions.reshape(-1, width), schema=names)
        return made[names[0]] if single else made
    if single:
        return library.Series(decisions, index=X.index, name=names[0])
    return library.DataFrame(decisions, index=X.index, columns=names)


def _outcome_names(y: Any) -> list[str] | None:
    """Return the name of a series, or those of the columns of a frame; None for what has none."""
    columns = getattr(y, "columns", None)
    if columns is not None:
        names = [str(column) for column in columns]
        return names if len(set(names)) == len(names) else None
    name = getattr(y, "name", None)
    return [name] if isinstance(name, str) and name else None


def time_order(time: Any, X: Any, rows: int | None = None) -> IntArray | None:
    """Return how late each row was (0, 1, ...), or None where nothing says when they were.

    So many ``rows`` there must be; None where that is not known yet.

    >>> time_order([3, 1, 2, 1], None)
    array([2, 0, 1, 0])
    """
    if time is None:
        index = getattr(X, "index", None)
        if type(index).__name__ not in ("DatetimeIndex", "PeriodIndex"):
            return None
        time = index
    if type(time).__name__ == "PeriodIndex":
        time = time.to_timestamp()
    refuse_masked("time", time)
    values = _as_array("time", time)
    if values.dtype.kind == "O" and values.size:  # dates of Python
        zoned = [getattr(value, "tzinfo", None) is not None for value in values]
        plain = [isinstance(value, int | float | np.number) for value in values]
        for kinds, names in ((zoned, "moments with and without a zone"), (plain, "numbers and dates")):
            if any(kinds) and not all(kinds):
                raise InvalidInputError(f"time must be of one kind in all rows, got {names}.")
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            if all(zoned):
                values = np.array([value.timestamp() for value in values])
            else:
                values = values.astype(float if all(plain) else "datetime64[us]")
    if values.ndim != 1 or values.dtype.kind not in "Mmiuf":
        got = f"shape {values.shape}" if values.ndim != 1 else str(values.dtype)
        got = "text" if values.dtype.kind in "OUST" else got
        raise InvalidInputError(f"time must be a date or a number for each row, got {got}.")
    if rows not in (None, len(values)):
        told = f"time must have a value for each row of X ({rows}), got {len(values)}."
        raise InvalidInputError(told)
    gaps = np.isnat(values) if values.dtype.kind in "Mm" else ~np.isfinite(values)
    if gaps.any():
        raise InvalidInputError(f"time must have no gaps, got one in row {int(gaps.argmax())}.")
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _refuse_text(X: Any) -> None:
    """Name text columns before NumPy fails on one of their values."""
    columns = getattr(X, "columns", None)
    dtypes = getattr(X, "dtypes", None)
    if columns is not None and dtypes is not None:
        kinds = [str(dtype).lower() for dtype in dtypes]
        words = ("str", "object", "categor", "enum", "date", "time", "period", "duration")
        named = [
            str(column)
            for column, kind in zip(columns, kinds, strict=True)
            if kind.startswith(words) and not _holds_numbers(X[column])
        ]
        if named:
            raise InvalidInputError(
                f"X must be numeric, got text or dates in {', '.join(map(repr, named))}: "
                "PreparedPolicy(model) takes categories and dates as they are."
            )
    elif isinstance(X, np.ndarray | list | tuple):
        text = _not_numbers(_as_array("X", X))
        if text is not None:
            raise InvalidInputError(
                f"X must be numeric, got {text}: PreparedPolicy(model) takes categories and dates "
                "as they are."
            )


def _refuse_gaps(X: Any) -> None:
    """Name the row and column of the first NaN or infinity; other faults are left to scikit-learn."""
    array = np.asarray(X) if hasattr(X, "columns") or isinstance(X, np.ndarray | list | tuple) else None
    if array is not None and array.ndim == 2 and array.dtype.kind == "f":
        check_finite("X", array, getattr(X, "columns", None), GAPS_ARE_PREPARED)


def _as_array(name: str, values: Any) -> Any:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} must have rows of equal length, got rows of different lengths."
        ) from error


def _not_numbers(array: Any) -> str | None:
    """Say if an array holds text or dates, which NumPy would read as digits and as days."""
    kind = array.dtype.kind
    if kind in "mM":
        return "dates"
    if kind in "UST" or (kind == "O" and any(isinstance(v, str | bytes) for v in array.reshape(-1))):
        return "text"
    return None


def _holds_numbers(column: Any) -> bool:
    """Whether a column of objects holds plain numbers after all."""
    return all(isinstance(value, int | float | np.number) for value in column)


def _refuse_unusable_outcomes(estimator: BaseEstimator, y: Any) -> None:
    if y is None:
        # Its first half is scikit-learn's, by which its own checks know the refusal.
        raise InvalidInputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: y must be "
            "the outcomes, one for each row of X, as in fit(X, y)."
        )
    refuse_masked("y", y)
    array = _as_array("y", y)
    text = _not_numbers(array)
    if text is not None:
        raise InvalidInputError(f"y must be numeric, got {text}.")
    if array.dtype.kind == "f" and array.ndim and not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))[0]
        got = "NaN" if np.isnan(array[tuple(bad)]) else "infinity (inf)"
        raise InvalidInputError(f"Input y must be finite, got {got} in row {int(bad[0])}.")
