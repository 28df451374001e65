"""Setting a price before demand is known."""

from dataclasses import dataclass

import numpy as np

from surefoot.costs.base import Cost, check_same_rows
from surefoot.costs.quantiles import outcome_spread
from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.typing import ArrayLike, ArrayNamespace, FloatArray
from surefoot.validation import check_choice, check_number, numeric_array

# Largest argument of the exponential demand: a price far below zero must not overflow.
LARGEST_EXPONENT = 50.0


@register
@dataclass(frozen=True)
class Pricing(Cost):
    r"""Minus the profit at price z, for demand that depends on the price.

    .. math:: c(z, y) = -(z - k)\, D(z, y), \qquad
              D = (y - a z)^+ \;\text{(linear)} \quad\text{or}\quad D = y\, e^{-a z}
              \;\text{(exponential)}

    The outcome y is the potential demand: how much would sell at price zero. It depends on the
    context and is uncertain. With two outcome columns the second is the sensitivity a, which then is
    uncertain, too.

    Parameters
    ----------
    sensitivity
        a > 0: units of demand lost per unit of price (linear), or the share of it (exponential).
        None: the second outcome column holds it.
    unit_cost
        k >= 0: what one unit sold costs us.
    demand
        "linear" or "exponential".

    Examples
    --------
    >>> import numpy as np
    >>> pricing = Pricing(sensitivity=2.0, unit_cost=1.0)
    >>> pricing.evaluate(np.array([[3.0]]), np.array([[10.0]]))  # sells 4 units at a margin of 2
    array([-8.])
    >>> pricing.potential(demand=[4.0], price=[3.0])  # from what was seen at a past price
    array([10.])
    """

    sensitivity: float | None = 1.0
    unit_cost: float = 0.0
    demand: str = "linear"

    def __post_init__(self) -> None:
        if self.sensitivity is not None:
            value = check_number("sensitivity", self.sensitivity, above=0)
            object.__setattr__(self, "sensitivity", value)
        object.__setattr__(self, "unit_cost", check_number("unit_cost", self.unit_cost, at_least=0))
        check_choice("demand", self.demand, ("linear", "exponential"))

    def n_decisions(self, n_outcomes: int) -> int:
        """Return one: the price."""
        del n_outcomes
        return 1

    def why_not(self, n_products: int) -> str | None:
        """Return why the outcome columns do not fit, or None."""
        if self.sensitivity is None and n_products != 2:
            return (
                "y must have two columns (potential demand, sensitivity) for Pricing(sensitivity="
                f"None), got {n_products}."
            )
        if self.sensitivity is not None and n_products != 1:
            return f"y must have one column (potential demand) for Pricing, got {n_products}."
        return None

    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return minus the profit, one number per row."""
        check_same_rows(decisions, outcomes)
        price, potential = decisions[..., 0], outcomes[..., 0]
        sensitivity = outcomes[..., 1] if self.sensitivity is None else self.sensitivity
        if self.demand == "linear":
            sold = xp.maximum(potential - sensitivity * price, 0.0)
        else:
            exponent = xp.minimum(-sensitivity * price, LARGEST_EXPONENT)
            sold = potential * xp.exp(exponent)
        cost: FloatArray = -(price - self.unit_cost) * sold
        return cost

    def typical(self, outcomes: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the best price at mean outcomes, and the spread of the best price in hindsight."""
        sensitivity = (
            outcomes[:, 1] if self.sensitivity is None else np.full(len(outcomes), self.sensitivity)
        )
        mean = float(weights @ sensitivity)
        if not mean > 0:
            raise InvalidInputError(
                f"the sensitivity (second column of y) must be > 0 on average, got {mean}."
            )
        # Linear in the outcomes around their means: a row with hardly any sensitivity would have a
        # best price without limit, and one such row would set the unit of all.
        if self.demand == "linear":
            ratio = float(weights @ outcomes[:, 0]) / mean
            highest = ratio + (outcomes[:, 0] - ratio * sensitivity) / mean
            best = 0.5 * (highest + self.unit_cost)
        else:
            best = self.unit_cost + (2.0 - sensitivity / mean) / mean
        return weights @ best[:, None], outcome_spread(best[:, None], weights)

    def growth(self) -> float:
        """Return two for linear demand: far below zero, price and demand both grow."""
        return 2.0 if self.demand == "linear" else np.inf

    def potential(self, demand: ArrayLike, price: ArrayLike) -> FloatArray:
        """Return the potential demand behind a demand that was seen at a past price.

        Where nothing was sold, the potential of linear demand is only known to be at most a z; that
        bound is returned.
        """
        if self.sensitivity is None:
            raise InvalidInputError("sensitivity must be a number to find the potential, got None.")
        sold, paid = numeric_array("demand", demand), numeric_array("price", price)
        if sold.ndim > 0 and paid.ndim > 0 and sold.shape != paid.shape:
            raise InvalidInputError(
                f"demand and price must have one shape, got {sold.shape} and {paid.shape}."
            )
        if self.demand == "linear":
            return sold + self.sensitivity * paid
        return sold * np.exp(self.sensitivity * paid)
