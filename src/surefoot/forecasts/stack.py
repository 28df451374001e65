"""An average of members, which keeps to contexts and decisions like those seen, or follows a trend."""

from dataclasses import dataclass

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.forecasts.extrapolation import Trend, trust_of_farthest
from surefoot.forecasts.members import Exponential, LeafQuantile, Level, Spreading
from surefoot.io import register
from surefoot.typing import BoolArray, FloatArray
from surefoot.validation import check_array, check_instance, check_number

# Trends are followed up to so many ranges outside what was seen.
REACH = 10.0

Member = Level | Exponential | Spreading | LeafQuantile


@register
@dataclass(frozen=True, eq=False)
class Stack:
    """Decisions of one product: the weighted average of members.

    Attributes
    ----------
    members, weights
        Functions of contexts, and their shares.
    least, most
        Of each column: what was seen.
    margin
        Contexts further outside than this share of the range seen are taken as the nearest inside.
    far_margin
        Contexts further outside than this share are called far.
    lower, upper
        Of decisions inside.
    trend
        What is followed outside, or None. A lone far number may be an error and is taken as the nearest
        inside.
    shift
        What recent errors add to every decision.
    """

    members: tuple[Member, ...]
    weights: FloatArray
    least: FloatArray
    most: FloatArray
    margin: float
    far_margin: float
    lower: float
    upper: float
    trend: Trend | None
    shift: float = 0.0

    def __post_init__(self) -> None:
        """Check that the parts fit."""
        for member in self.members:
            check_instance("members", member, Member, "a member of an ensemble")
            if member.n_columns != len(self.least):
                raise InvalidInputError(
                    f"members must read {len(self.least)} columns, got {member.n_columns}."
                )
        check_array("weights", self.weights, (len(self.members),))
        for name in ("least", "most"):
            check_array(name, getattr(self, name), (len(self.least),))
        if self.trend is not None:
            check_instance("trend", self.trend, Trend, "a Trend")
            check_array("trend", self.trend.line.forecast.theta, self.least.shape)
        for name in ("margin", "far_margin"):
            check_number(name, getattr(self, name), at_least=0)
        for name in ("lower", "upper", "shift"):
            check_number(name, getattr(self, name))
        if not (self.least <= self.most).all() or self.lower > self.upper:
            raise InvalidInputError("least and lower must be below most and upper, got others.")

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the decision of each row, shape (rows,)."""
        inside = self._cut(contexts, self.margin)
        members = np.column_stack([member(inside) for member in self.members])
        decided = np.clip(members, self.lower, self.upper) @ self.weights
        if self.trend is not None:
            moves = self._cut(contexts, max(REACH, self.margin)) - inside
            moves *= trust_of_farthest(self._outside(contexts) / self.far_margin)
            decided = self.trend.follow(decided, inside, moves)
        return np.asarray(np.maximum(decided + self.shift, self.lowest))

    @property
    def lowest(self) -> float:
        """What decisions are at least: where outcomes were never negative, decisions are not."""
        return 0.0 if self.lower >= 0.0 else -np.inf

    def _cut(self, contexts: FloatArray, margin: float) -> FloatArray:
        """Return contexts cut to so many ranges outside what was seen."""
        room = margin * (self.most - self.least)
        return np.clip(contexts, self.least - room, self.most + room)

    def far(self, contexts: FloatArray) -> BoolArray:
        """Return which numbers are far outside, shape of the contexts; not of constant columns."""
        return self._outside(contexts) > self.far_margin

    def _outside(self, contexts: FloatArray) -> FloatArray:
        """Return how many ranges numbers lie outside what was seen; constant columns have none."""
        size = np.where(self.least < self.most, self.most - self.least, np.inf)
        return np.maximum(np.maximum(self.least - contexts, contexts - self.most), 0.0) / size
