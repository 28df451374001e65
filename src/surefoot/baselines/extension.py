"""The Shapley extension of decisions at known contexts to all contexts."""

import numpy as np

from surefoot.typing import FloatArray, IntArray

# A slope that grows by less than this share has settled.
SLOPE_TOL = 1e-13


def extend(values: FloatArray, distances: FloatArray) -> FloatArray:
    r"""Return the decision of least slope towards all known ones, for each query.

    .. math:: f(x) = \arg\min_z \max_k \frac{|z - f_k|}{\|x - x_k\|}

    The best slope is t = max over j, k of (f_j - f_k) / (d_j + d_k). Dinkelbach's method finds it
    without looking at pairs: at a slope t take j with the largest f_j - t d_j and k with the
    smallest f_k + t d_k, set t to their ratio, and repeat until it stands still.

    Parameters
    ----------
    values
        Decisions f_k at known contexts, shape (known,).
    distances
        d_k from each query to each known context, shape (queries, known). At distance zero the
        decision is the known one.

    Examples
    --------
    >>> extend(np.array([0.0, 3.0]), np.array([[1.0, 2.0], [0.0, 3.0]]))
    array([1., 0.])
    """
    nearest = distances.argmin(axis=1)
    result: FloatArray = values[nearest]
    open_rows = np.flatnonzero(distances[np.arange(len(distances)), nearest] > 0.0)
    gaps = distances[open_rows] if len(open_rows) < len(distances) else distances
    high: IntArray = np.full(len(open_rows), values.argmax())
    low: IntArray = np.full(len(open_rows), values.argmin())
    slopes = np.zeros(len(open_rows))
    while len(open_rows):
        queries = np.arange(len(open_rows))
        to_high, to_low = gaps[queries, high], gaps[queries, low]
        best = (values[high] - values[low]) / (to_high + to_low)
        rising = best > slopes * (1.0 + SLOPE_TOL)
        settled = ~rising
        if settled.any():
            # In this form the two known decisions are met exactly, however far they are apart.
            share = to_high[settled] / (to_high[settled] + to_low[settled])
            ends = values[high[settled]], values[low[settled]]
            result[open_rows[settled]] = ends[0] + (ends[1] - ends[0]) * share
            open_rows, gaps, best = open_rows[rising], gaps[rising], best[rising]
        slopes = best
        rises = slopes[:, None] * gaps
        high, low = (values - rises).argmax(axis=1), (values + rises).argmin(axis=1)
    return result
