"""An average of members, which keeps to contexts and decisions like those seen."""

from dataclasses import dataclass

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.forecasts.members import Exponential, LeafQuantile, Level, Spreading
from surefoot.io import register
from surefoot.typing import BoolArray, FloatArray
from surefoot.validation import check_array, check_instance, check_number

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
        Of decisions, likewise.
    """

    members: tuple[Member, ...]
    weights: FloatArray
    least: FloatArray
    most: FloatArray
    margin: float
    far_margin: float
    lower: float
    upper: float

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
        for name in ("margin", "far_margin"):
            check_number(name, getattr(self, name), at_least=0)
        for name in ("lower", "upper"):
            check_number(name, getattr(self, name))
        if not (self.least <= self.most).all() or self.lower > self.upper:
            raise InvalidInputError("least and lower must be below most and upper, got others.")

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the decision of each row, shape (rows,)."""
        room = self.margin * (self.most - self.least)
        cut = np.clip(contexts, self.least - room, self.most + room)
        decided = np.column_stack([member(cut) for member in self.members])
        return np.asarray(np.clip(decided, self.lower, self.upper) @ self.weights)

    def far(self, contexts: FloatArray) -> BoolArray:
        """Return which numbers are far outside, shape of the contexts; not of constant columns."""
        room = self.far_margin * (self.most - self.least)
        outside = (contexts < self.least - room) | (contexts > self.most + room)
        return np.asarray(outside & (self.least < self.most))
