"""Amounts that share a limit."""

from dataclasses import dataclass

import numpy as np

from surefoot.io import register
from surefoot.sets.base import DecisionSet
from surefoot.typing import ArrayNamespace, FloatArray
from surefoot.validation import check_number


@register
@dataclass(frozen=True)
class Budget(DecisionSet):
    r"""Non-negative amounts with a shared limit: orders that must fit one truck.

    .. math:: z_j = u_j^+ \min\{1, \text{total} / \sum_k u_k^+\}

    Where the limit does not bind, decisions are left as they are (negative ones become zero); where
    it binds, all are cut by the same factor.

    Parameters
    ----------
    total
        The limit on the sum of all decisions, in their unit.

    Examples
    --------
    >>> import numpy as np
    >>> Budget(total=10.0).map_into(np.array([[3.0, -1.0], [15.0, 5.0]]))
    array([[3. , 0. ],
           [7.5, 2.5]])
    """

    total: float

    def __post_init__(self) -> None:
        """Check the limit."""
        object.__setattr__(self, "total", check_number("total", self.total, above=0))

    def map_into(self, decisions: FloatArray, xp: ArrayNamespace = np) -> FloatArray:
        """Return the positive parts, cut to the limit where they exceed it."""
        positive = xp.maximum(decisions, 0.0)
        # The sum is not below the total where it divides, so that nothing is divided by zero.
        used = xp.maximum(positive.sum(axis=-1, keepdims=True), self.total)
        cut: FloatArray = positive * (self.total / used)
        return cut

    def contains(self, decisions: FloatArray, slack: float = 1e-9) -> bool:
        """Whether every row is non-negative and within the limit."""
        room = slack * self.total
        return bool((decisions >= -room).all() and (decisions.sum(axis=-1) <= self.total + room).all())

    def farthest(self, directions: FloatArray) -> FloatArray:
        """Return the whole limit for the largest entry, nothing if none is positive."""
        largest = np.eye(directions.shape[1])[directions.argmax(axis=1)]
        return np.where(directions.max(axis=1, keepdims=True) > 0.0, self.total * largest, 0.0)
