"""Shares that sum to one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surefoot.io import register
from surefoot.sets.base import DecisionSet
from surefoot.typing import ArrayNamespace, FloatArray


@register
@dataclass(frozen=True)
class Simplex(DecisionSet):
    r"""Non-negative shares that sum to one: how to split a portfolio.

    .. math:: z_j = \exp(u_j) / \sum_k \exp(u_k)

    The softmax map never stops learning at a face of the simplex, as a projection would: a share at
    zero has no gradient through a projection. In exchange, shares are small rather than exactly zero.

    Examples
    --------
    >>> import numpy as np
    >>> Simplex().map_into(np.array([[0.0, 0.0], [0.0, np.log(3.0)]]))
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """

    in_units: ClassVar[bool] = False

    def map_into(self, decisions: FloatArray, xp: ArrayNamespace = np) -> FloatArray:
        """Return the softmax of each row."""
        # Picked out, not ``max``: JAX divides the derivative of that by how many entries are equal to
        # it, which is none where a compiler rounds the two sides of the comparison differently.
        largest = xp.take_along_axis(decisions, decisions.argmax(axis=-1, keepdims=True), axis=-1)
        powers = xp.exp(decisions - largest)
        shares: FloatArray = powers / powers.sum(axis=-1, keepdims=True)
        return shares

    def contains(self, decisions: FloatArray, slack: float = 1e-9) -> bool:
        """Whether every row is non-negative and sums to one."""
        return bool((decisions >= -slack).all() and (abs(decisions.sum(axis=-1) - 1.0) <= slack).all())

    def farthest(self, directions: FloatArray) -> FloatArray:
        """Return all for the largest entry."""
        return np.asarray(np.eye(directions.shape[1])[directions.argmax(axis=1)])

    def why_not(self, n_decisions: int) -> str | None:
        """Refuse a single share: it would always be one."""
        if n_decisions < 2:
            return f"Simplex() needs at least two decisions to share between, got {n_decisions}"
        return None
