"""The newsvendor: order before demand is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.costs.base import ConvexPiecewiseCost, Pieces
from surefoot.exceptions import InvalidInputError
from surefoot.validation import check_number, numeric_array


def positive_numbers(name: str, value: Any) -> float | tuple[float, ...]:
    """Return a positive number, or a tuple with one for each product."""
    array = numeric_array(name, value)
    if array.ndim > 1 or array.size == 0:
        raise InvalidInputError(
            f"{name} must be a number or one number per product, got shape {array.shape}."
        )
    for entry in array.reshape(-1):
        check_number(name, float(entry), above=0)
    return float(array) if array.ndim == 0 else tuple(array.tolist())


@dataclass(frozen=True)
class Newsvendor(ConvexPiecewiseCost):
    r"""Cost of ordering z when y is demanded.

    .. math:: c(z, y) = \sum_j b_j (y_j - z_j)^+ + h_j (z_j - y_j)^+

    Parameters
    ----------
    backorder
        b > 0: cost per unit short. One number, or one for each product.
    holding
        h > 0: cost per unit left over. One number, or one for each product.
    smoothing
        Half-width of the parabola that rounds the kink (equation 22 of the paper). It moves the
        best order by up to smoothing (b - h) / (b + h), so the default is 0: no rounding.

    Examples
    --------
    >>> import numpy as np
    >>> cost = Newsvendor(backorder=1.0, holding=0.2)
    >>> cost.evaluate(np.array([[10.0], [10.0]]), np.array([[12.0], [5.0]]))
    array([2., 1.])
    """

    backorder: float | Sequence[float]
    holding: float | Sequence[float]
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Check and freeze the numbers."""
        object.__setattr__(self, "backorder", positive_numbers("backorder", self.backorder))
        object.__setattr__(self, "holding", positive_numbers("holding", self.holding))
        object.__setattr__(self, "smoothing", check_number("smoothing", self.smoothing, at_least=0))

    def why_not(self, n_products: int) -> str | None:
        """Return why the per-product costs do not fit so many products, or None."""
        for name in ("backorder", "holding"):
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != n_products:
                return (
                    f"{name} must be one number or one per product "
                    f"({n_products}), got {len(value)} numbers."
                )
        return None

    def pieces(self, n_products: int) -> tuple[Pieces, ...]:
        """Return slope h upwards and b downwards for each product."""
        reason = self.why_not(n_products)
        if reason is not None:
            raise InvalidInputError(reason)
        downs, ups = (
            value if isinstance(value, tuple) else (value,) * n_products
            for value in (self.backorder, self.holding)
        )
        return tuple(
            Pieces(up=up, down=down, smoothing=self.smoothing)
            for up, down in zip(ups, downs, strict=True)
        )

    def curvature(self) -> float:
        """Return the curvature of the rounded kink, infinite for a sharp one."""
        if self.smoothing == 0.0:
            return float("inf")
        return float(np.max(self.backorder) + np.max(self.holding)) / (2.0 * self.smoothing)
