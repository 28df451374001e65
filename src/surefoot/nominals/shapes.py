"""What nominals share: sizes in words, names and numbers of columns, and checks of draws."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.typing import BoolArray, FloatArray
from surefoot.validation import check_finite, check_integer, real_array


def settle(nominal: Any, **fields: Any) -> None:
    """Set the fields of a frozen nominal; arrays become read-only, as they are checked copies."""
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        object.__setattr__(nominal, name, value)


def count(number: int, word: str) -> str:
    """Return a number with its word.

    >>> count(1, "row"), count(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {word}{'s'[: number != 1]}"


def sizes(n_columns: int, n_products: int) -> str:
    """Return the sizes of a context and an outcome, for a ``repr``.

    >>> sizes(3, 1)
    '3 columns, 1 product'
    """
    return f"{count(n_columns, 'column')}, {count(n_products, 'product')}"


def column_names(names: Iterable[Any] | None, n_columns: int) -> tuple[str, ...] | None:
    """Return names as text, one for each column, or None."""
    if names is None:
        return None
    if not isinstance(names, Iterable):
        raise InvalidTypeError(f"names must be a sequence of column names or None, got {names!r}.")
    columns = tuple(map(str, names))
    if isinstance(names, str) or len(columns) != n_columns:
        raise InvalidInputError(
            f"names must have one entry per column of X ({n_columns}), got {names!r}."
        )
    return columns


def column_mask(option: str, columns: Any, n_columns: int, names: tuple[str, ...] | None) -> BoolArray:
    """Return which columns of a context an option names, by name or by position."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise InvalidTypeError(
            f"{option} must be a sequence of columns such as (0, 'holiday'), got {columns!r}."
        )
    mask = np.zeros(n_columns, dtype=bool)
    known = names or ()
    for column in columns:
        column = column.item() if isinstance(column, np.generic) else column
        if isinstance(column, str) and column in known:
            mask |= np.array([name == column for name in known])
        elif type(column) is int and -n_columns <= column < n_columns:  # True is no position
            mask[column] = True
        else:
            allowed = f" or names ({', '.join(known)})" if known else ""
            raise InvalidInputError(
                f"{option} must hold positions of columns below {n_columns}{allowed}, got {column!r}."
            )
    return mask


def context_columns(name: str, total: int, n_products: int) -> int:
    """Return how many of ``total`` numbers are the context's; the outcome needs the last ones."""
    products = check_integer("n_products", n_products, at_least=1)
    if total <= products:
        raise InvalidInputError(
            f"{name} must have at least one column of a context before {count(products, 'outcome')}, "
            f"got {count(total, 'column')}."
        )
    return total - products


def checked_draw(
    source: str, drawn: Any, size: int, n_columns: int, n_products: int
) -> tuple[FloatArray, FloatArray]:
    """Return what ``source`` drew as contexts and outcomes, or refuse it in the user's words."""
    wanted = f"contexts of shape ({size}, {n_columns}) and outcomes of shape ({size}, {n_products})"
    if not isinstance(drawn, tuple | list) or len(drawn) != 2:
        got = f"{len(drawn)} things" if isinstance(drawn, tuple | list) else type(drawn).__name__
        raise InvalidTypeError(f"{source} must return a pair, {wanted}, got {got}.")
    contexts, outcomes = (
        real_array(f"{source}'s {part}", array)
        for part, array in zip(("contexts", "outcomes"), drawn, strict=True)
    )
    if n_products == 1 and outcomes.shape == (size,):
        outcomes = outcomes[:, None]
    if contexts.shape != (size, n_columns) or outcomes.shape != (size, n_products):
        raise InvalidInputError(
            f"{source} must return {wanted}, got shapes {contexts.shape} and {outcomes.shape}."
        )
    check_finite(f"{source}'s contexts", contexts)
    check_finite(f"{source}'s outcomes", outcomes)
    return contexts, outcomes
