"""Piecewise linear policies."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from surefoot.io import register
from surefoot.policies.base import Policy, Tree, standardised
from surefoot.typing import ArrayNamespace, FloatArray
from surefoot.validation import check_integer, check_number


@register
@dataclass(frozen=True)
class MaxAffine(Policy):
    r"""The largest of several affine functions: a convex, piecewise linear policy.

    .. math:: f(\theta; x) = \max_{k \le K} \theta_k'x + t_k

    Parameters
    ----------
    pieces
        K, how many affine functions each decision has.
    smoothing
        Half-width of the parabola that rounds a breakpoint, in units of the decision's spread;
        0 leaves it sharp. Each of the K - 1 comparisons raises the decision by at most a quarter of
        it.

    Examples
    --------
    >>> import numpy as np
    >>> policy = MaxAffine(pieces=2)
    >>> units = {"mean": np.zeros(1), "spread": np.ones(1), "centre": np.zeros(1), "unit": np.ones(1)}
    >>> absolute = {"theta": np.array([[[1.0]], [[-1.0]]]), "intercept": np.zeros((2, 1))}
    >>> policy.evaluate(absolute, units, np.array([[-3.0], [2.0]]), np)
    array([[3.],
           [2.]])

    References
    ----------
    Example 2 of the paper; Zhang, Liu and Zhao (2023), "Data-driven piecewise affine decision rules".
    """

    pieces: int = 4
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "pieces", check_integer("pieces", self.pieces, at_least=1))
        object.__setattr__(self, "smoothing", check_number("smoothing", self.smoothing, at_least=0))
        super().__post_init__()

    def initial(self, rng: np.random.Generator, n_columns: int, n_decisions: int) -> Tree:
        """Start near a constant decision, with pieces that differ enough to part."""
        shape = (self.pieces, n_columns, n_decisions)
        return {
            "theta": 0.1 * rng.normal(size=shape) / np.sqrt(n_columns),
            "intercept": np.zeros((self.pieces, n_decisions)),
        }

    def raw(
        self, trained: Tree, units: Mapping[str, FloatArray], inputs: FloatArray, xp: ArrayNamespace
    ) -> FloatArray:
        """Return centre + unit * max over pieces."""
        seen = standardised(units, inputs)
        largest = seen @ trained["theta"][0] + trained["intercept"][0]
        for k in range(1, self.pieces):
            rival = seen @ trained["theta"][k] + trained["intercept"][k]
            largest = self._larger(largest, rival, xp)
        decisions: FloatArray = units["centre"] + units["unit"] * largest
        return decisions

    def _larger(self, first: FloatArray, second: FloatArray, xp: ArrayNamespace) -> FloatArray:
        sharp: FloatArray = xp.maximum(first, second)
        if self.smoothing == 0.0:
            return sharp
        gap, width = first - second, self.smoothing
        rounded = second + (gap + width) ** 2 / (4.0 * width)
        smooth: FloatArray = xp.where(xp.abs(gap) < width, rounded, sharp)
        return smooth
