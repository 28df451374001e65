"""A learned forecast: a constant, a linear part, a smooth part and trees, added up."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from surefoot.forecasts.trees import Trees
from surefoot.typing import FloatArray


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

    def __call__(self, scaled: FloatArray) -> FloatArray:
        """Return the values at contexts in standard deviations."""
        return np.asarray(
            np.exp(-cdist(scaled, self.centres, "cityblock") / self.length) @ self.coefficients
        )

    def scaled(self, share: float) -> "SmoothPart":
        """Return the part with every value multiplied."""
        return SmoothPart(self.centres, share * self.coefficients, self.length)


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

    def arrays(self) -> dict[str, FloatArray]:
        """Return all that a file needs to hold."""
        arrays: dict[str, FloatArray] = {
            "constant": np.array([self.constant]),
            "theta": self.theta,
            "mean": self.mean,
            "spread": self.spread,
        }
        if self.smooth is not None:
            arrays["centres"] = self.smooth.centres
            arrays["weights"] = self.smooth.coefficients
            arrays["length"] = np.array([self.smooth.length])
        if self.trees is not None:
            arrays |= {field.name: getattr(self.trees, field.name) for field in fields(self.trees)}
        return arrays

    @classmethod
    def restore(cls, arrays: dict[str, FloatArray]) -> Self:
        """Return the forecast that ``arrays`` describes."""
        smooth = trees = None
        if "centres" in arrays:
            smooth = SmoothPart(arrays["centres"], arrays["weights"], float(arrays["length"][0]))
        if "threshold" in arrays:
            table: dict[str, Any] = {field.name: arrays[field.name] for field in fields(Trees)}
            trees = Trees(**table)
        return cls(
            float(arrays["constant"][0]), arrays["theta"], arrays["mean"], arrays["spread"],
            smooth, trees,
        )  # fmt: skip
