"""Policies that bend an affine function: the paper's machine-learning examples."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.policies.activations import elu, sigmoid
from surefoot.policies.base import Policy, Tree, standardised
from surefoot.typing import ArrayNamespace, FloatArray
from surefoot.validation import check_number


def _affine_start(n_columns: int, n_decisions: int) -> Tree:
    return {"theta": np.zeros((n_columns, n_decisions)), "intercept": np.zeros(n_decisions)}


@register
@dataclass(frozen=True)
class Sigmoid(Policy):
    r"""A decision between two limits that it never reaches.

    .. math:: f(\theta; x) = l + \frac{u - l}{1 + e^{-(\theta'x + t)}}

    Parameters
    ----------
    lower, upper
        The limits l < u.

    Examples
    --------
    >>> import numpy as np
    >>> units = {"mean": np.zeros(1), "spread": np.ones(1), "centre": np.zeros(1), "unit": np.ones(1)}
    >>> trained = {"theta": np.array([[1.0]]), "intercept": np.zeros(1)}
    >>> Sigmoid(0.0, 10.0).evaluate(trained, units, np.array([[0.0], [np.log(3.0)]]), np)
    array([[5. ],
           [7.5]])
    """

    lower: float = 0.0
    upper: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", check_number("lower", self.lower))
        object.__setattr__(self, "upper", check_number("upper", self.upper))
        if not self.lower < self.upper:
            raise InvalidInputError(
                f"lower must be < upper, got lower={self.lower} and upper={self.upper}."
            )
        super().__post_init__()

    def initial(self, rng: np.random.Generator, n_columns: int, n_decisions: int) -> Tree:
        """Start in the middle between the limits."""
        del rng
        return _affine_start(n_columns, n_decisions)

    def raw(
        self, trained: Tree, units: Mapping[str, FloatArray], inputs: FloatArray, xp: ArrayNamespace
    ) -> FloatArray:
        """Return the squeezed affine function."""
        share = sigmoid(standardised(units, inputs) @ trained["theta"] + trained["intercept"], xp)
        between = self.lower + (self.upper - self.lower) * share
        # Rounding alone could carry a decision past the upper limit.
        held: FloatArray = xp.minimum(between, self.upper)
        return held


@register
@dataclass(frozen=True)
class ELU(Policy):
    r"""An affine decision that flattens out below zero.

    .. math:: f(\theta; x) = v \;\text{if}\; v > 0, \quad \alpha (e^{v} - 1) \;\text{otherwise},
              \qquad v = \theta'x + t

    Parameters
    ----------
    alpha
        alpha > 0: decisions stay above -alpha, in their own unit.

    Examples
    --------
    >>> import numpy as np
    >>> units = {"mean": np.zeros(1), "spread": np.ones(1), "centre": np.zeros(1), "unit": np.ones(1)}
    >>> trained = {"theta": np.array([[1.0]]), "intercept": np.zeros(1)}
    >>> ELU().evaluate(trained, units, np.array([[2.0], [-np.log(2.0)]]), np)
    array([[ 2. ],
           [-0.5]])
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_number("alpha", self.alpha, above=0))
        super().__post_init__()

    def initial(self, rng: np.random.Generator, n_columns: int, n_decisions: int) -> Tree:
        """Start at a constant decision."""
        del rng
        return _affine_start(n_columns, n_decisions)

    def raw(
        self, trained: Tree, units: Mapping[str, FloatArray], inputs: FloatArray, xp: ArrayNamespace
    ) -> FloatArray:
        """Return the bent affine function."""
        learned = standardised(units, inputs) @ trained["theta"] + trained["intercept"]
        return elu(units["centre"] + units["unit"] * learned, xp, self.alpha)
