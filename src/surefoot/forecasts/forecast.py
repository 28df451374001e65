"""A learned forecast: a constant, a linear part, a smooth part and trees, added up."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from surefoot.exceptions import InvalidInputError
from surefoot.forecasts.trees import Trees
from surefoot.io import register
from surefoot.typing import FloatArray
from surefoot.validation import check_array, check_instance, check_number


@register
@dataclass(frozen=True, eq=False)
class SmoothPart:
    r"""sum_k beta_k exp(-|x - c_k|_1 / l) in standard deviations of the columns that vary.

    Attributes
    ----------
    centres
        Shape (k, columns that vary).
    coefficients
        Shape (k,), in units of the outcome.
    length
        l > 0.
    """

    centres: FloatArray
    coefficients: FloatArray
    length: float

    def __post_init__(self) -> None:
        """Check shapes and numbers."""
        check_array("coefficients", self.coefficients, (len(self.coefficients),))
        check_array("centres", self.centres, (len(self.coefficients), np.shape(self.centres)[-1]))
        check_number("length", self.length, above=0)

    def __call__(self, scaled: FloatArray) -> FloatArray:
        """Return the values at contexts in standard deviations."""
        return np.asarray(
            np.exp(-cdist(scaled, self.centres, "cityblock") / self.length) @ self.coefficients
        )

    def scaled(self, share: float) -> "SmoothPart":
        """Return the part with every value multiplied."""
        return SmoothPart(self.centres, share * self.coefficients, self.length)


@register
@dataclass(frozen=True, eq=False)
class Forecast:
    """The expected outcome of one product, given a context.

    Attributes
    ----------
    constant
        What is left of the forecast at the mean context.
    theta
        Coefficients of the linear part in the user's units, shape (columns,).
    mean, spread
        Of each column; columns with an infinite spread say nothing.
    smooth, trees
        The parts that bend; None where the data gave no reason for them.
    """

    constant: float
    theta: FloatArray
    mean: FloatArray
    spread: FloatArray
    smooth: SmoothPart | None = None
    trees: Trees | None = None

    def __post_init__(self) -> None:
        """Check that the parts speak of the same columns."""
        check_number("constant", self.constant)
        for name in ("theta", "mean"):
            check_array(name, getattr(self, name), (len(self.theta),))
        if np.shape(self.spread) != (len(self.theta),) or not (self.spread > 0.0).all():
            raise InvalidInputError(f"spread must be positive in every column, got {self.spread}.")
        kept = int(np.isfinite(self.spread).sum())
        check_instance("smooth", self.smooth, SmoothPart | None, "a SmoothPart or None")
        check_instance("trees", self.trees, Trees | None, "Trees or None")
        if self.smooth is not None and self.smooth.centres.shape[1] != kept:
            raise InvalidInputError(
                f"centres must have {kept} columns, got {self.smooth.centres.shape[1]}."
            )
        if self.trees is not None and self.trees.feature.max(initial=0) >= max(kept, 1):
            raise InvalidInputError(
                f"trees must ask for one of {kept} columns, got {self.trees.feature.max()}."
            )

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the forecast of each row, shape (rows,)."""
        return np.asarray(contexts @ self.theta + self.intercept + self.bend(contexts))

    @property
    def intercept(self) -> float:
        """The constant of the linear part, where all columns are zero."""
        return float(self.constant - self.mean @ self.theta)

    def bend(self, contexts: FloatArray) -> FloatArray:
        """Return what smooth part and trees add to the linear part, shape (rows,)."""
        value, kept = np.zeros(len(contexts)), np.isfinite(self.spread)
        if self.smooth is None and self.trees is None:
            return value
        scaled = (contexts[:, kept] - self.mean[kept]) / self.spread[kept]
        for part in (self.smooth, self.trees):
            if part is not None:
                value += part(scaled)
        return value
