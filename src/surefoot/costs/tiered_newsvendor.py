"""The newsvendor whose unit costs grow with the amount: tiered shortage, limited salvage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.costs.base import ConvexPiecewiseCost
from surefoot.costs.pieces import Pieces
from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.validation import check_number, numeric_array

Tiers = tuple[tuple[float, float], ...]


def _tiers(name: str, value: Any) -> Tiers:
    """Return tiers as ((from, cost per unit), ...), from zero on, with growing costs."""
    array = numeric_array(name, value)
    if array.ndim == 0:
        return ((0.0, check_number(name, float(array), above=0)),)
    if array.ndim != 2 or array.shape[1] != 2 or array.shape[0] == 0:
        raise InvalidInputError(
            f"{name} must be a number or tiers such as ((0, 1.0), (10, 3.0)), got {value!r}."
        )
    starts, costs = array.T
    if starts[0] != 0.0 or (np.diff(starts) <= 0.0).any():
        raise InvalidInputError(f"{name} must have tiers that begin at 0 and ascend, got {value!r}.")
    if not costs[0] > 0.0 or (np.diff(costs) <= 0.0).any():
        raise InvalidInputError(
            f"{name} must have costs > 0 that grow from tier to tier, got {value!r}: falling ones are "
            "not convex."
        )
    return tuple((float(start), float(cost)) for start, cost in array)


@register
@dataclass(frozen=True)
class TieredNewsvendor(ConvexPiecewiseCost):
    r"""Cost of ordering z when y is demanded, with unit costs that grow with the amount.

    .. math:: c(z, y) = B(y - z) \ \text{if short}, \quad H(z - y) \ \text{if left over}

    with B and H piecewise linear and convex. Every product has the same tiers.

    Parameters
    ----------
    shortage
        A number, or tiers ((0, b_1), (q_2, b_2), ...): a unit short costs b_1 up to q_2 units, b_2 from
        there on (an express order, then a lost customer).
    leftover
        A number, or tiers for units left over (sold off at a salvage value, then thrown away).

    Examples
    --------
    >>> import numpy as np
    >>> cost = TieredNewsvendor(shortage=((0, 1.0), (10, 3.0)), leftover=0.5)
    >>> cost.evaluate(np.array([[20.0], [20.0], [20.0]]), np.array([[25.0], [35.0], [16.0]]))
    array([ 5., 25.,  2.])
    >>> TieredNewsvendor.from_prices(price=5.0, cost=2.0, salvage=1.0, salvage_units=30)
    TieredNewsvendor(shortage=((0.0, 3.0),), leftover=((0.0, 1.0), (30.0, 2.0)))
    """

    shortage: float | Sequence[Sequence[float]]
    leftover: float | Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        """Check and freeze the tiers."""
        object.__setattr__(self, "shortage", _tiers("shortage", self.shortage))
        object.__setattr__(self, "leftover", _tiers("leftover", self.leftover))

    @classmethod
    def from_prices(
        cls,
        price: float,
        cost: float,
        *,
        salvage: float = 0.0,
        salvage_units: float | None = None,
        goodwill: float | Sequence[Sequence[float]] = 0.0,
    ) -> "TieredNewsvendor":
        """Return the cost of ordering at a unit cost what sells at a price.

        Parameters
        ----------
        price, cost
            What a unit sells for, and what it costs.
        salvage, salvage_units
            What a unit that is left over still brings, and for how many units; None is all.
        goodwill
            What a customer who is turned away costs beyond the margin: a number, or tiers.
        """
        prices = {"price": price, "cost": cost, "salvage": salvage}
        price, cost, salvage = (check_number(name, v, at_least=0) for name, v in prices.items())
        lost = numeric_array("goodwill", goodwill)
        tiers = np.array([[0.0, float(lost)]]) if lost.ndim == 0 else lost
        if tiers.ndim != 2 or tiers.shape[1] != 2:
            raise InvalidInputError(f"goodwill must be a number or tiers, got {goodwill!r}.")
        shortage = [(start, price - cost + extra) for start, extra in tiers.tolist()]
        leftover = [(0.0, cost - salvage)]
        if salvage_units is not None and salvage > 0.0:
            leftover.append((check_number("salvage_units", salvage_units, above=0), cost))
        return cls(shortage=shortage, leftover=leftover)

    def pieces(self, n_products: int) -> tuple[Pieces, ...]:
        """Return the lines of each product, from the last tier of shortage to that of leftover."""
        falling = [(-slope, level) for slope, level in reversed(_lines(self.shortage))]
        lines = [*falling, *_lines(self.leftover)]
        one = Pieces(tuple(s for s, _ in lines), tuple(v for _, v in lines))
        return (one,) * n_products


def _lines(tiers: Any) -> list[tuple[float, float]]:
    """Return slope and intercept of each tier's line, in the amount: tiers join without a jump."""
    lines: list[tuple[float, float]] = []
    level = 0.0
    for k, (start, cost) in enumerate(tiers):
        if k > 0:
            level += (lines[-1][0] - cost) * start
        lines.append((float(cost), level))
    return lines
