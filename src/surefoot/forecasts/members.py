"""Members of the default: functions from contexts to decisions, each with honest decisions.

A member decides at the cost's quantile of what it takes for the distribution of the outcome:

- ``Level``: a forecast plus a constant, the quantile of its honest errors;
- ``Exponential``: the same on the logarithm, so that errors grow with the outcome and effects multiply;
- ``Spreading``: a forecast plus a quantile of errors whose size is forecast, too;
- ``LeafQuantile``: the quantile of those outcomes that share leaves of a forest (Meinshausen 2006).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.forecasts.forecast import Forecast
from surefoot.forecasts.trees import Trees
from surefoot.io import register
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_array, check_instance, check_number

# Rows are sent through the leaves in pieces of this many.
PIECE = 512


@register
@dataclass(frozen=True, eq=False)
class Level:
    """A forecast plus a constant."""

    forecast: Forecast
    constant: float

    def __post_init__(self) -> None:
        """Check the parts."""
        check_instance("forecast", self.forecast, Forecast, "a Forecast")
        check_number("constant", self.constant)

    @property
    def n_columns(self) -> int:
        """How many columns a context has."""
        return len(self.forecast.theta)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the decision of each row."""
        return self.forecast(contexts) + self.constant


@register
@dataclass(frozen=True, eq=False)
class Exponential:
    """exp(forecast + constant) - shift, of a forecast of log(outcome + shift).

    Attributes
    ----------
    forecast, constant, shift
        See above.
    most
        The largest logarithm that is believed.
    floors
        Of columns whose logarithm the forecast reads, the number that smaller ones are taken for; zero
        for the other columns. None if it reads all as they are.
    """

    forecast: Forecast
    constant: float
    shift: float
    most: float
    floors: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check the parts."""
        check_instance("forecast", self.forecast, Forecast, "a Forecast")
        for name in ("constant", "shift"):
            check_number(name, getattr(self, name))
        check_number("most", self.most, at_most=700.0)
        if self.floors is not None:
            check_array("floors", self.floors, self.forecast.theta.shape)
            if self.floors.min(initial=0.0) < 0.0:
                raise InvalidInputError(f"floors must be at least 0, got {self.floors.min()}.")

    @property
    def n_columns(self) -> int:
        """How many columns a context has."""
        return len(self.forecast.theta)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the decision of each row."""
        read = contexts if self.floors is None else with_logarithms(contexts, self.floors)
        logs = np.minimum(self.forecast(read) + self.constant, self.most)
        return np.asarray(np.exp(logs) - self.shift)


@register
@dataclass(frozen=True, eq=False)
class Spreading:
    """A forecast plus ``factor`` times exp(a forecast of the logarithm of its error's size).

    ``least`` and ``most`` bound the logarithm by what was seen.
    """

    forecast: Forecast
    size: Forecast
    factor: float
    least: float
    most: float

    def __post_init__(self) -> None:
        """Check the parts."""
        for name in ("forecast", "size"):
            check_instance(name, getattr(self, name), Forecast, "a Forecast")
        check_array("size", self.size.theta, self.forecast.theta.shape)
        for name in ("factor", "least"):
            check_number(name, getattr(self, name))
        check_number("most", self.most, at_most=700.0)

    @property
    def n_columns(self) -> int:
        """How many columns a context has."""
        return len(self.forecast.theta)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the decision of each row."""
        logs = np.clip(self.size(contexts), self.least, self.most)
        return np.asarray(self.forecast(contexts) + self.factor * np.exp(logs))


@register
@dataclass(frozen=True, eq=False)
class LeafQuantile:
    """The quantile of outcomes in the leaves that a row falls into, each tree with the same weight.

    Attributes
    ----------
    trees
        The forest, in standard deviations of the columns that vary.
    mean, spread
        Of each column; columns with an infinite spread say nothing.
    leaf
        Of each node, its row in ``samples``; zero where it is no leaf.
    samples
        Some rows of each leaf, as places in ``outcomes``, shape (leaves, most); equal numbers of each
        leaf stand for it.
    quantile
        Which one.
    outcomes
        All that there are, from small to large. None where ``samples`` are outcomes themselves, as in
        files of version 2.
    """

    trees: Trees
    mean: FloatArray
    spread: FloatArray
    leaf: IntArray
    samples: IntArray
    quantile: float
    outcomes: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check that the parts fit."""
        check_instance("trees", self.trees, Trees, "Trees")
        outcomes: Any = self.outcomes
        if outcomes is None:
            check_array("samples", self.samples, (len(self.samples), np.shape(self.samples)[-1]))
            outcomes, places = np.unique(self.samples, return_inverse=True)
            object.__setattr__(self, "outcomes", outcomes)
            object.__setattr__(self, "samples", places.reshape(self.samples.shape))
        check_array("mean", self.mean, (len(self.mean),))
        if np.shape(self.spread) != np.shape(self.mean) or not (self.spread > 0.0).all():
            raise InvalidInputError(f"spread must be positive in every column, got {self.spread}.")
        if self.trees.feature.max(initial=0) >= max(int(np.isfinite(self.spread).sum()), 1):
            raise InvalidInputError("trees must ask for columns that vary, got others.")
        check_array("leaf", self.leaf, self.trees.value.shape, int)
        check_array("samples", self.samples, (len(self.samples), np.shape(self.samples)[-1]), int)
        if self.leaf.min(initial=0) < 0 or self.leaf.max(initial=0) >= len(self.samples):
            raise InvalidInputError("leaf must name a row of samples, got others.")
        check_array("outcomes", outcomes, np.shape(outcomes)[:1])
        if self.samples.min(initial=0) < 0 or self.samples.max(initial=0) >= len(outcomes):
            raise InvalidInputError("samples must be places in outcomes, got others.")
        if (np.diff(outcomes) < 0.0).any():
            raise InvalidInputError("outcomes must be from small to large, got others.")
        check_number("quantile", self.quantile, at_least=0, at_most=1)

    @property
    def n_columns(self) -> int:
        """How many columns a context has."""
        return len(self.mean)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the decision of each row."""
        kept = np.isfinite(self.spread)
        scaled = (contexts[:, kept] - self.mean[kept]) / self.spread[kept]
        parts = [self._decide(scaled[k : k + PIECE]) for k in range(0, len(scaled), PIECE)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _decide(self, scaled: FloatArray) -> FloatArray:
        samples = self.samples[self.leaf[self.trees.leaves(scaled)]]
        places = lower_quantile(samples.reshape(len(scaled), -1), self.quantile)
        return np.asarray(self.outcomes)[places]


def with_logarithms(contexts: FloatArray, floors: FloatArray) -> FloatArray:
    """Return contexts with the logarithm of those columns that have a floor, cut there from below.

    >>> with_logarithms(np.array([[1.0, -2.0], [-1.0, -2.0]]), np.array([0.5, 0.0]))
    array([[ 0.        , -2.        ],
           [-0.69314718, -2.        ]])
    """
    kept = floors > 0.0
    read = contexts.copy()
    read[:, kept] = np.log(np.maximum(contexts[:, kept], floors[kept]))
    return read


def lower_quantile(samples: IntArray, quantile: float) -> IntArray:
    """Return of each row the smallest sample with at least that share of the samples up to it."""
    count = samples.shape[1]
    place = min(max(int(np.ceil(quantile * count - 1e-9)) - 1, 0), count - 1)
    return np.asarray(np.partition(samples, place, axis=1)[:, place])
