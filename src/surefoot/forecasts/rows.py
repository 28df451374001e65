"""The rows that a forecast is learned from, in standard deviations of each column."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from surefoot.typing import BoolArray, FloatArray

# A column whose spread is a smaller share of its size than this is constant up to rounding.
CONSTANT_COLUMN = 1e-12
# Outcomes whose spread is a smaller share of their size than this are all the same.
CONSTANT_OUTCOME = 1e-12
# Up to so many kinds of contexts, each seen so often on average, come from flags and levels.
FEW_KINDS, REPETITIONS = 20, 4


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct rows with their masses.

    Attributes
    ----------
    contexts
        Shape (n, s), in the user's units.
    outcomes
        Shape (n,).
    masses
        Shape (n,): how often a row counts.
    units
        Whether each unit of mass is an observation of its own, left out alone. If not, a row is one
        observation, whatever its mass.
    """

    contexts: FloatArray
    outcomes: FloatArray
    masses: FloatArray
    units: bool = False

    @classmethod
    def of(cls, contexts: FloatArray, outcomes: FloatArray, masses: FloatArray | None) -> "Rows":
        """Return rows as observations.

        Equal rows are one: a copied row must not be its own witness. But where contexts come back
        with other outcomes, as with counts on weekdays, or there are only a few kinds of them, equal
        rows are observations like others.
        """
        n = len(outcomes)
        masses = np.ones(n) if masses is None else masses
        kinds = _kinds(contexts)
        few = kinds <= FEW_KINDS and masses.sum() >= REPETITIONS * kinds
        units = _whole(masses) and (kinds < n or few)
        return cls(contexts, outcomes, masses if units else masses * (n / masses.sum()), units)

    def telling(self, outcomes: FloatArray) -> "Rows":
        """Return the same rows with other outcomes; what is known of their columns is shared."""
        rows = replace(self, outcomes=outcomes)
        rows.__dict__.update(mean=self.mean, spread=self.spread, scaled=self.scaled)
        return rows

    @cached_property
    def count(self) -> float:
        """How many observations there are."""
        return self.observations(self.masses)

    def observations(self, masses: FloatArray) -> float:
        """Return how many observations there are if rows have these masses instead, or none."""
        return float(masses.sum()) if self.units else float((masses > 0.0).sum())

    @cached_property
    def mean(self) -> FloatArray:
        """Mean of each column."""
        return np.asarray(self.masses @ self.contexts / self.masses.sum())

    @cached_property
    def spread(self) -> FloatArray:
        """Standard deviation of each column; infinite where a column does not vary."""
        centred = self.contexts - self.mean
        spread = np.sqrt(self.masses @ centred**2 / self.masses.sum())
        largest = np.abs(self.contexts).max(axis=0)
        return np.where(spread > CONSTANT_COLUMN * largest, spread, np.inf)

    @property
    def varies(self) -> BoolArray:
        """Which columns say anything."""
        return np.isfinite(self.spread)

    @cached_property
    def scaled(self) -> FloatArray:
        """The columns that vary, centred and in standard deviations."""
        kept = self.varies
        return np.asarray((self.contexts[:, kept] - self.mean[kept]) / self.spread[kept])

    @cached_property
    def average(self) -> float:
        """Mean outcome."""
        return float(self.masses @ self.outcomes / self.masses.sum())

    @property
    def trivial(self) -> bool:
        """Whether there is nothing to forecast: no column, or no outcome, varies."""
        return not self.varies.any() or self.constant

    @cached_property
    def constant(self) -> bool:
        """Whether all outcomes are the same."""
        centred = self.outcomes - self.average
        size = max(float(np.abs(self.outcomes).max()), 1e-300)
        return float(np.abs(centred).max()) <= CONSTANT_OUTCOME * size


def _kinds(contexts: FloatArray) -> int:
    """Return how many rows of contexts differ, bit by bit."""
    width, data = contexts.shape[1] * contexts.itemsize, contexts.tobytes()
    return len({data[k : k + width] for k in range(0, len(data), width)}) if width else 1


def observed(masses: FloatArray) -> FloatArray:
    """Return masses that count observations: whole ones as they are, others relative to their mean.

    >>> observed(np.array([1.0, 3.0])), observed(np.array([0.1, 0.3]))
    (array([1., 3.]), array([0.5, 1.5]))
    """
    return masses if _whole(masses) else np.asarray(masses / masses.mean())


def _whole(masses: FloatArray) -> bool:
    """Whether masses can be numbers of observations."""
    return bool(masses.min(initial=1.0) >= 1.0 and (masses == np.round(masses)).all())
