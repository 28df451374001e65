"""The Shapley extension of decisions at known contexts to all contexts, by their distances."""

import numpy as np
from scipy.spatial.distance import cdist

from surefoot.typing import FloatArray, IntArray

# A slope that grows by less than this share has settled.
SLOPE_TOL = 1e-13
# With few columns the direct sum of squares is as fast as a matrix product.
DIRECT_COLUMNS = 16
# |a|^2 + |b|^2 - 2 a'b loses all but this share of its digits: below it, distances are summed anew.
NEAR_SHARE = 1e-6


def distances(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ||left_i - right_j||_2, shape (left rows, right rows), right where two nearly coincide.

    >>> distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[5., 0.]])
    """
    if left.shape[1] <= DIRECT_COLUMNS:
        return np.asarray(cdist(left, right))
    centre = right.mean(axis=0)
    a, b = left - centre, right - centre
    sizes = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)
    squares = a @ b.T
    squares *= -2.0
    squares += sizes
    sizes *= NEAR_SHARE
    near = squares < sizes
    rows = np.flatnonzero(near.any(axis=1))
    np.maximum(squares, 0.0, out=squares)
    result = np.sqrt(squares, out=squares)
    for row in rows:
        columns = np.flatnonzero(near[row])
        result[row, columns] = cdist(left[row : row + 1], right[columns])[0]
    return np.asarray(result)


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
