"""Checks of what users hand in. One message shape: what, allowed, got."""

import math
import numbers
import os
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.typing import ArrayLike, FloatArray

# What users hand in is quoted in messages up to this length.
LONGEST_REPR = 120
_SEPARATORS = re.compile(r"[,;\t|]")
# The types that stand for a gap in pandas.
_GAPS = ("NAType", "NaTType")


def check_number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    finite: bool = True,
) -> float:
    """Return ``value`` as a float, or refuse it by name.

    >>> check_number("radius", 0.5, at_least=0)
    0.5
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidTypeError(f"{name} must be a number, got {value!r}.")
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidInputError(f"{name} must fit in a float, got a larger number.") from error
    if at_least is not None and not number >= at_least:
        raise InvalidInputError(f"{name} must be >= {at_least:g}, got {number}.")
    if above is not None and not number > above:
        raise InvalidInputError(f"{name} must be > {above:g}, got {number}.")
    if at_most is not None and not number <= at_most:
        raise InvalidInputError(f"{name} must be <= {at_most:g}, got {number}.")
    if below is not None and not number < below:
        raise InvalidInputError(f"{name} must be < {below:g}, got {number}.")
    if math.isnan(number) or (finite and math.isinf(number)):
        raise InvalidInputError(f"{name} must be finite, got {number}.")
    return number


def check_number_or_auto(name: str, value: Any) -> None:
    """Refuse what is neither a number >= 0 nor "auto".

    >>> check_number_or_auto("radius", "auto")
    """
    if not isinstance(value, str):
        check_number(name, value, at_least=0)
    elif value != "auto":
        raise InvalidInputError(f"{name} must be a number >= 0 or 'auto', got {value!r}.")


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return ``value`` as an int, or refuse it by name.

    >>> check_integer("max_steps", 10, at_least=1)
    10
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidTypeError(f"{name} must be a whole number, got {value!r}.")
    if value < at_least:
        raise InvalidInputError(f"{name} must be >= {at_least}, got {value}.")
    return int(value)


def check_choice(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    """Return ``value`` if it is one of ``allowed``, or list what is.

    >>> check_choice("order", 2, (1, 2))
    2
    """
    options = tuple(allowed)
    if isinstance(value, bool | np.bool_) or value not in options:
        listed = " or ".join(repr(option) for option in options)
        raise InvalidInputError(f"{name} must be {listed}, got {value!r}.")
    return value


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False.

    >>> check_flag("intercept", True)
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidTypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_instance(name: str, value: Any, kind: Any, example: str) -> None:
    """Refuse an object of the wrong kind, with an example of a right one."""
    if not isinstance(value, kind):
        got = repr(value)
        got = got if len(got) <= LONGEST_REPR else f"an object of type {type(value).__name__}"
        raise InvalidTypeError(f"{name} must be {example}, got {got}.")


def check_path(name: str, value: Any) -> Path:
    """Return the path of a file or folder, or refuse what is none."""
    check_instance(name, value, str | os.PathLike, "the path of a folder or file")
    return Path(value)


def listed_names(option: str, names: Any) -> tuple[str, ...]:
    """Return names of columns; a single one may be given as it is."""
    if isinstance(names, str):
        return (names,)
    check_instance(option, names, Iterable, "the name of a column, or a sequence of names")
    return tuple(names)


def refuse_masked(name: str, values: Any) -> None:
    """Refuse masked entries: NumPy would read the numbers below the mask.

    >>> refuse_masked("y", np.ma.array([1.0, 2.0], mask=[False, False]))
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        masked = int(np.ma.getmaskarray(values).sum())
        raise InvalidInputError(
            f"{name} must have no masked entries, got {masked} of {values.size}: leave their rows out "
            "(PreparedPolicy takes gaps in contexts)."
        )


def is_gap(value: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, NaT, or one of pandas' own marks.

    >>> is_gap(None), is_gap(math.nan), is_gap(np.datetime64("NaT")), is_gap(0.0), is_gap("")
    (True, True, True, False, False)
    """
    if value is None or type(value).__name__ in _GAPS:
        return True
    return isinstance(value, float | np.floating | np.datetime64 | Decimal) and bool(value != value)


def real_array(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as a float64 array of any shape, in a copy; NaN and infinity may stay.

    >>> real_array("lower", [1, -math.inf])
    array([  1., -inf])
    """
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} must be a rectangular array, got rows of different lengths."
        ) from error
    if array.dtype.kind == "c":
        raise InvalidInputError(f"{name} must be real, got complex data.")
    if array.dtype.kind not in "biuf":
        if array.dtype.kind == "O" and any(v is None for v in array.reshape(-1)):
            raise InvalidInputError(f"{name} must be numeric, got None.")
        # NumPy would read digits as numbers and dates as days or nanoseconds since 1970.
        misread = str | bytes | np.datetime64 | np.timedelta64
        if array.dtype.kind in "USTmM" or any(isinstance(v, misread) for v in array.reshape(-1)):
            raise InvalidInputError(f"{name} must be numeric, got text or dates ({array.dtype}).")
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"{name} must be numeric, got values of type {array.dtype} ({error})."
            ) from error
    return array.astype(np.float64)


def numeric_array(name: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as a finite float64 array of any shape, in a copy.

    >>> numeric_array("y", [1, 2])
    array([1., 2.])
    """
    array = real_array(name, values)
    check_finite(name, array)
    return array


def check_array(name: str, value: Any, shape: tuple[int, ...], kind: type = float) -> None:
    """Refuse what is not an array of finite numbers of a kind (float or int) and a shape.

    >>> check_array("theta", np.zeros(3), (3,))
    """
    wanted = np.integer if kind is int else np.floating
    array = np.asarray(value)
    if not isinstance(value, np.ndarray) or not np.issubdtype(array.dtype, wanted):
        raise InvalidTypeError(f"{name} must be an array of {kind.__name__}, got {array.dtype}.")
    if array.shape != shape:
        raise InvalidInputError(f"{name} must have shape {shape}, got {array.shape}.")
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{name} must be finite, got NaN or infinity.")


def check_finite(
    name: str, array: FloatArray, columns: Iterable[str] | None = None, way_out: str = ""
) -> None:
    """Refuse NaN and infinity, naming the first row and column where one stands.

    ``way_out`` is said of NaN: ": " and what takes it.
    """
    finite = np.isfinite(array)
    if finite.all():
        return
    where = np.argwhere(~finite)[0]
    got = "NaN" if np.isnan(array[tuple(where)]) else "infinity"
    place = f"row {where[0]}" if array.ndim else "the value"
    if array.ndim > 1:
        label = list(columns)[where[1]] if columns is not None else int(where[1])
        place += f", column {label!r}"
    end = way_out if got == "NaN" else ""
    raise InvalidInputError(f"{name} must be finite (no NaN, no infinity), got {got} in {place}{end}.")


def context_matrix(name: str, values: ArrayLike) -> FloatArray:
    """Return contexts as a finite float64 matrix (rows, columns) with at least one of each.

    >>> context_matrix("X", [[1, 2], [3, 4]]).shape
    (2, 2)
    """
    array = numeric_array(name, values)
    if array.ndim != 2:
        raise InvalidInputError(
            f"{name} must be a matrix (rows, columns), got an array of shape {array.shape}."
        )
    if 0 in array.shape:
        raise InvalidInputError(
            f"{name} must have at least one row and one column, got shape {array.shape}."
        )
    return np.ascontiguousarray(array)


def outcome_matrix(name: str, values: ArrayLike, rows: int) -> FloatArray:
    """Return outcomes as a float64 matrix (rows, products); a vector is one product.

    >>> outcome_matrix("y", [1.0, 2.0], rows=2).shape
    (2, 1)
    """
    array = numeric_array(name, values)
    if array.ndim not in (1, 2) or array.size == 0:
        raise InvalidInputError(
            f"{name} must have shape (rows,) or (rows, products), got shape {array.shape}."
        )
    if array.shape[0] != rows:
        raise InvalidInputError(
            f"{name} must have one row per row of X ({rows}), got {array.shape[0]}."
        )
    return np.ascontiguousarray(array.reshape(rows, -1))


def mass_vector(name: str, values: ArrayLike | None, rows: int) -> FloatArray:
    """Return sample weights as they were given, checked; ``None`` means one for each row.

    >>> mass_vector("sample_weight", [1, 3], rows=2)
    array([1., 3.])
    """
    if values is None:
        return np.ones(rows)
    array = numeric_array(name, values)
    if array.ndim == 0:
        array = np.full(rows, float(array))
    if array.shape != (rows,):
        raise InvalidInputError(
            f"{name} must have one entry per row of X ({rows}), got shape {array.shape}."
        )
    if (array < 0).any():
        raise InvalidInputError(f"{name} must be >= 0, got {array.min()}.")
    if not array.any():
        raise InvalidInputError(f"{name} must have a positive sum, got all zeros.")
    with np.errstate(over="ignore"):
        total = array.sum()
    if not np.isfinite(total):
        raise InvalidInputError(f"{name} must have a finite sum, got entries up to {array.max()}.")
    return array


def weight_vector(name: str, values: ArrayLike | None, rows: int) -> FloatArray:
    """Return sample weights scaled to sum to one; ``None`` means equal weights.

    >>> weight_vector("sample_weight", [1, 3], rows=2)
    array([0.25, 0.75])
    """
    masses = mass_vector(name, values, rows)
    return np.asarray(masses / masses.sum())


def require_columns(
    name: str, names: Sequence[str], wanted: Sequence[str], what: str = "column", elsewhere: str = ""
) -> None:
    """Refuse a name that is no column, with the nearest that is, or a sentence on where to look.

    >>> require_columns("sales.csv", ["day", "demand"], ["demnd"])
    Traceback (most recent call last):
    ...
    surefoot.exceptions.InvalidInputError: sales.csv must have the column 'demnd', got day, demand. \
Did you mean 'demand'?
    """
    for column in wanted:
        if column in names:
            continue
        folded = {known.casefold(): known for known in names}
        near = get_close_matches(str(column).casefold(), folded, n=1, cutoff=0.6)
        hint = f" Did you mean {folded[near[0]]!r}?" if near else elsewhere
        if len(names) == 1 and column in _SEPARATORS.split(names[0]):
            hint = " Is the separator right?"
        shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "") or "none"
        raise InvalidInputError(f"{name} must have the {what} {column!r}, got {shown}.{hint}")
