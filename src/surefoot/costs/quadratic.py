"""The squared distance between decision and outcome."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.costs.base import Cost, check_one_shape
from surefoot.costs.newsvendor import positive_numbers
from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.typing import ArrayNamespace, FloatArray

# A lower bound over affine policies speaks of those with parameters up to so many times the best ones,
# in units in which columns have length one: beyond, what rounding leaves of orthogonality would count.
FARTHEST = 1e6


@register
@dataclass(frozen=True)
class Quadratic(Cost):
    r"""Cost of deciding z when y would have been right.

    .. math:: c(z, y) = \sum_j w_j (z_j - y_j)^2

    Parameters
    ----------
    weight
        w > 0: one number, or one for each product.

    Examples
    --------
    >>> import numpy as np
    >>> Quadratic(weight=2.0).evaluate(np.array([[1.0, 2.0]]), np.array([[1.0, 5.0]]))
    array([18.])
    """

    weight: float | Sequence[float] = 1.0

    def __post_init__(self) -> None:
        """Check and freeze the weights."""
        object.__setattr__(self, "weight", positive_numbers("weight", self.weight))

    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return the weighted sum of squares, one number per row."""
        check_one_shape(decisions, outcomes)
        reason = self.why_not(decisions.shape[-1])
        if reason is not None:
            raise InvalidInputError(reason)
        squares: FloatArray = (xp.asarray(self.weight) * (decisions - outcomes) ** 2).sum(axis=-1)
        return squares

    def growth(self) -> float:
        """Return two."""
        return 2.0

    def curvature(self) -> float:
        """Return twice the largest weight."""
        return 2.0 * float(np.max(self.weight))

    def curvatures(self, n_decisions: int) -> FloatArray:
        """Return twice the weights."""
        return np.broadcast_to(2.0 * np.asarray(self.weight), (n_decisions,))

    def convex(self) -> bool:
        """Return True."""
        return True

    def floor(self, n_products: int = 1) -> float:
        """Return zero."""
        del n_products
        return 0.0

    def affine_floor(self, design: FloatArray, outcomes: FloatArray, weights: FloatArray) -> float:
        r"""Return the dual value of least squares, which bounds every affine policy from below.

        .. math:: E[w r^2] \ge E[u r] - E[u^2] / (4 w) = -E[u y] - E[u^2] / (4 w)
                  \quad\text{for every } u \text{ with } E[u x] = 0

        because w r^2 - u r + u^2 / (4 w) is a square. The residuals of least squares, times 2 w, are
        the best such u; they are projected twice, and what is left of E[u x] is charged.
        """
        root = np.sqrt(weights)[:, None]
        columns = root * design
        lengths = np.linalg.norm(columns, axis=0)
        columns = columns / np.where(lengths > 0.0, lengths, 1.0)
        targets = root * outcomes
        basis, triangle = np.linalg.qr(columns)
        left = -targets
        for _ in range(2):
            left = left - basis @ (basis.T @ left)
        u = 2.0 * np.broadcast_to(np.asarray(self.weight), outcomes.shape[1:]) * left
        value = -(u * targets).sum(axis=0) - (left * u).sum(axis=0) / 2.0
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            best = np.abs(np.linalg.pinv(triangle) @ (basis.T @ targets)).sum(axis=0)
        charge = np.abs(columns.T @ u).max(axis=0, initial=0.0) * FARTHEST * best
        proved = np.where(np.isfinite(charge), value - charge, 0.0)
        return float(np.maximum(proved, 0.0).sum())

    def why_not(self, n_products: int) -> str | None:
        """Return why the weights do not fit so many products, or None."""
        if isinstance(self.weight, tuple) and len(self.weight) != n_products:
            return (
                f"weight must be one number or one per product ({n_products}), "
                f"got {len(self.weight)} numbers."
            )
        return None
