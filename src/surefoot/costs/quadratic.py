"""The squared distance between decision and outcome."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.costs.base import Cost, check_one_shape
from surefoot.costs.newsvendor import positive_numbers
from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.typing import ArrayNamespace, FloatArray


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

    def floor(self, n_products: int = 1) -> float:
        """Return zero."""
        del n_products
        return 0.0

    def why_not(self, n_products: int) -> str | None:
        """Return why the weights do not fit so many products, or None."""
        if isinstance(self.weight, tuple) and len(self.weight) != n_products:
            return (
                f"weight must be one number or one per product ({n_products}), "
                f"got {len(self.weight)} numbers."
            )
        return None
