"""Quantiles and spreads of numbers with weights."""

import numpy as np

from surefoot.typing import FloatArray

# A cumulative weight this close below a level has reached it: ten times 0.1 is not quite 1.
LEVEL_TOL = 1e-12


def weighted_quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    """Return the smallest value whose cumulative weight reaches ``level`` of the total.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.full(3, 1 / 3), 0.5)
    2.0
    """
    order = values.argsort(kind="stable")
    covered = weights[order].cumsum()
    return float(values[order[covered.searchsorted((level - LEVEL_TOL) * covered[-1])]])


def weighted_quantiles(values: FloatArray, weights: FloatArray, level: float) -> FloatArray:
    """Return ``weighted_quantile`` of each row of ``values``, shape (rows,).

    >>> weighted_quantiles(np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 9.0]]), np.full(3, 1 / 3), 0.5)
    array([2., 0.])
    """
    order = np.argsort(values, axis=1, kind="stable")
    covered = np.cumsum(weights[order], axis=1)
    place = np.argmax(covered >= (level - LEVEL_TOL) * covered[:, -1:], axis=1)
    rows = np.arange(len(values))
    return np.asarray(values[rows, order[rows, place]])


def outcome_spread(outcomes: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted standard deviation of each outcome, its size or one where that is zero."""
    mean = weights @ outcomes
    spread = np.sqrt(weights @ (outcomes - mean) ** 2)
    fallback = np.where(mean != 0.0, np.abs(mean), 1.0)
    # A spread that is only rounding would make a unit of nothing.
    return np.where(spread > 1e-12 * np.abs(mean), spread, fallback)
