"""Paired bootstrap: how sure a mean over rows is, and a difference of two on the same rows."""

import math

import numpy as np

from surefoot.random import rng_for
from surefoot.typing import FloatArray

RESAMPLES = 2_000
CONFIDENCE = 0.95
# Rows in order of time are drawn in runs of at least a week: a good day follows good days.
SHORTEST_RUN = 7


def run_length(rows: int, *, ordered: bool) -> int:
    """Return how many neighbouring rows are drawn together.

    >>> run_length(1000, ordered=True), run_length(1000, ordered=False)
    (10, 1)
    """
    if not ordered:
        return 1
    return min(rows, max(SHORTEST_RUN, math.ceil(math.pow(rows, 1.0 / 3.0))))


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
    found = np.empty((RESAMPLES, values.shape[1]))
    for k in range(RESAMPLES):
        starts = rng.integers(rows, size=runs)
        drawn = ((starts[:, None] + np.arange(run)) % rows).reshape(-1)[:rows]
        found[k] = values[drawn].mean(axis=0)
    return found


def interval(means: FloatArray) -> tuple[float, float]:
    """Return the ends of the middle 95 % of resampled means."""
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return float(low), float(high)
