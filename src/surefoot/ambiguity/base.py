"""Which distributions a policy must withstand."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from surefoot.ambiguity.form import AffineForm, AffineRows
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.sets import Box
from surefoot.typing import BoolArray, FloatArray, IntArray
from surefoot.validation import check_number


class AmbiguitySet(ABC):
    """All distributions that may turn out to be the true one, around a nominal.

    A subclass is a frozen dataclass with a field ``radius``, the size of the set. It turns the rows of
    an affine problem into an ``AffineForm``, which knows the worst case of a policy.
    """

    radius: float | str
    support: Box | None = None
    """Where samples may lie; None is all of space."""
    frozen: Sequence[str | int] = ()
    """Columns that never change."""
    outcome_cost: float = math.inf
    """The transport cost of moving an outcome; infinite where outcomes stay."""
    rules: ClassVar[tuple[str, ...]] = ()
    """Names that may stand in the place of a radius: rules by which an estimator chooses it."""

    @abstractmethod
    def form(self, rows: AffineRows, movable: BoolArray) -> AffineForm:
        """Return rows with this set around them; ``movable`` says which columns may change."""

    @property
    def size(self) -> float:
        """The radius, as the number that it must be in a problem."""
        if isinstance(self.radius, str):
            raise InvalidInputError(
                f"radius must be a number in a Problem, got {self.radius!r}: "
                "an estimator chooses it, for example RobustPolicy(cost).fit(X, y)."
            )
        return float(self.radius)

    def at(self, radius: float | str) -> Self:
        """Return the set with another radius."""
        if type(radius) is type(self.radius) and radius == self.radius:
            return self
        # Every set is a frozen dataclass; the abstract class itself has no fields to be one.
        return cast(Self, replace(cast(Any, self), radius=radius))

    def column_scale(self, spread: FloatArray) -> FloatArray:
        """Return the unit of each column, from its standard deviation; one where that is zero."""
        return np.where(spread > 0.0, spread, 1.0)

    def movable(self, spread: FloatArray, names: Sequence[str] | None) -> BoolArray:
        """Return which columns may change."""
        del names
        return spread > 0.0

    def frozen_columns(self, n_columns: int, names: Sequence[str] | None = None) -> BoolArray:
        """Return which columns never change, resolving names and positions."""
        return frozen_mask(self.frozen, n_columns, names)

    def on_columns(self, kept: IntArray) -> Self:
        """Return the set on some of the columns, of which none is frozen."""
        box = self.support
        if box is not None:
            box = box.on_columns(kept)
        return cast(Self, replace(cast(Any, self), support=box, frozen=()))

    def fitted(self, scale: FloatArray, movable: BoolArray) -> Self:
        """Return the set with the units and the columns that a fit has found."""
        del scale, movable
        return self

    def check_radius(self) -> None:
        """Refuse a radius that is neither a number >= 0 nor one of the rules."""
        if isinstance(self.radius, str):
            if self.radius not in self.rules:
                named = "".join(f", {rule!r}" for rule in self.rules[:-1])
                named += f" or {self.rules[-1]!r}" if self.rules else ""
                raise InvalidInputError(f"radius must be a number >= 0{named}, got {self.radius!r}.")
        else:
            object.__setattr__(self, "radius", check_number("radius", self.radius, at_least=0))


def plain_columns(frozen: Any) -> tuple[str | int, ...]:
    """Return names and positions as plain text and integers; others are left to ``frozen_mask``."""
    if isinstance(frozen, str):
        raise InvalidInputError(
            f"frozen must be a sequence of columns such as ({frozen!r},), got the text {frozen!r}."
        )
    if not isinstance(frozen, Iterable):
        raise InvalidTypeError(
            f"frozen must be a sequence of columns such as (0, 'holiday'), got {frozen!r}."
        )
    # NumPy's own integers and text would print as np.int64(0), and no longer read back.
    return tuple(column.item() if isinstance(column, np.generic) else column for column in frozen)


def frozen_mask(
    frozen: Sequence[str | int], n_columns: int, names: Sequence[str] | None = None
) -> BoolArray:
    """Return which columns never move, resolving names and positions."""
    mask = np.zeros(n_columns, dtype=bool)
    for column in frozen:
        if isinstance(column, str):
            if names is None:
                raise InvalidInputError(
                    f"frozen names the column {column!r}, but X has no column names: "
                    "pass a data frame, or positions."
                )
            if column not in names:
                raise InvalidInputError(
                    f"frozen must name columns of X ({', '.join(names)}), got {column!r}."
                )
            mask |= np.array([name == column for name in names])
        elif type(column) is int and -n_columns <= column < n_columns:  # True is no position
            mask[column] = True
        else:
            raise InvalidInputError(
                f"frozen must hold column names or positions below {n_columns}, got {column!r}."
            )
    return mask
