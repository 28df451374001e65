"""The newsvendor: order before demand is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.costs.base import ConvexPiecewiseCost
from surefoot.costs.pieces import Pieces
from surefoot.exceptions import InvalidInputError
from surefoot.io import register
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


def unit_costs(
    price: float, cost: float, salvage: float = 0.0, goodwill: float = 0.0
) -> tuple[float, float]:
    """Return what a unit short and a unit left over cost, from the prices of a business.

    >>> unit_costs(price=5.0, cost=2.0, salvage=1.0, goodwill=0.5)
    (3.5, 1.0)
    """
    given = {"price": price, "cost": cost, "salvage": salvage, "goodwill": goodwill}
    numbers = {name: check_number(name, value, at_least=0) for name, value in given.items()}
    short = numbers["price"] - numbers["cost"] + numbers["goodwill"]
    left = numbers["cost"] - numbers["salvage"]
    if not left > 0.0:
        raise InvalidInputError(f"salvage must be below cost ({cost:g}), got {salvage:g}.")
    if not short > 0.0:
        raise InvalidInputError(
            f"price plus goodwill must be above cost ({cost:g}), got {price + goodwill:g}."
        )
    return short, left


@register
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

    @classmethod
    def from_prices(
        cls, price: float, cost: float, *, salvage: float = 0.0, goodwill: float = 0.0
    ) -> "Newsvendor":
        """Return the cost of ordering at a unit cost what sells at a price.

        A unit short costs the margin and the customer's goodwill; a unit left over costs what was paid
        for it less what it still brings.

        Parameters
        ----------
        price, cost
            What a unit sells for, and what it costs; 0 <= salvage < cost < price + goodwill.
        salvage
            What a unit that is left over still brings.
        goodwill
            What a customer who is turned away costs beyond the margin.

        Examples
        --------
        >>> Newsvendor.from_prices(price=5.0, cost=2.0, salvage=1.0)
        Newsvendor(backorder=3.0, holding=1.0, smoothing=0.0)
        """
        short, left = unit_costs(price, cost, salvage, goodwill)
        return cls(backorder=short, holding=left)

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
            Pieces.kinked(up, down, self.smoothing) for up, down in zip(ups, downs, strict=True)
        )

    def curvature(self) -> float:
        """Return the curvature of the rounded kink, infinite for a sharp one."""
        if self.smoothing == 0.0:
            return float("inf")
        return float(np.max(self.backorder) + np.max(self.holding)) / (2.0 * self.smoothing)
