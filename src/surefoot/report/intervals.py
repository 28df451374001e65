"""Paired bootstrap: how sure a mean over rows is, and a difference of two on the same rows."""

import math

import numpy as np

from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray

RESAMPLES = 2_000
CONFIDENCE = 0.95
# Rows in order of time are drawn in runs of at least a week: a good day follows good days. With fewer
# runs than this there would be too few ways to draw them.
SHORTEST_RUN, FEWEST_RUNS = 7, 8
# Fewer rows say too little for an interval: three of them may even agree by accident.
FEWEST_ROWS = 10


def run_length(rows: int, *, ordered: bool) -> int:
    """Return how many neighbouring rows are drawn together.

    >>> run_length(1000, ordered=True), run_length(1000, ordered=False)
    (10, 1)
    """
    if not ordered:
        return 1
    wanted = max(SHORTEST_RUN, math.ceil(math.pow(rows, 1.0 / 3.0)))
    return max(1, min(wanted, rows // FEWEST_RUNS))


def bootstrap_means(values: FloatArray, run: int, seed: int) -> FloatArray:
    """Return means of resampled rows, shape (resamples, columns of values).

    All columns share their resamples, so a difference of two of them is paired. Runs of neighbouring
    rows wrap around the end (the circular block bootstrap).

    Parameters
    ----------
    values
        Shape (rows, columns).
    run
        How many neighbouring rows are drawn together.
    seed
        A whole number.

    Examples
    --------
    >>> means = bootstrap_means(np.arange(20.0)[:, None], run=1, seed=0)
    >>> means.shape, round(float(means.mean()))
    ((2000, 1), 10)
    """
    rows = len(values)
    rng = rng_for(seed, "report", "bootstrap")
    runs = math.ceil(rows / run)
    means = np.empty((RESAMPLES, values.shape[1]))
    for k in range(RESAMPLES):
        starts = rng.integers(rows, size=runs)
        drawn = ((starts[:, None] + np.arange(run)) % rows).reshape(-1)[:rows]
        means[k] = values[drawn].mean(axis=0)
    return means


def interval(means: FloatArray, rows: int) -> tuple[float, float]:
    """Return the ends of the middle 95 % of resampled means of so many rows.

    NaN where there are too few rows, or all are equal: a width of zero would claim certainty.
    """
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(means, [tail, 1.0 - tail])
    if rows < FEWEST_ROWS or not high > low:
        return math.nan, math.nan
    return float(low), float(high)


def by_row(places: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return rows in order, and the mean of their values: a row that was judged twice counts once.

    >>> by_row(np.array([5, 2, 5]), np.array([[1.0], [2.0], [3.0]]))
    (array([2, 5]), array([[2.],
           [2.]]))
    """
    rows, which, counts = np.unique(places, return_inverse=True, return_counts=True)
    sums = np.zeros((len(rows), values.shape[1]))
    np.add.at(sums, which, values)
    return rows, sums / counts[:, None]
