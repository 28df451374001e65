"""Euclidean distances, fast and still right where two contexts nearly coincide."""

import numpy as np
from scipy.spatial.distance import cdist

from surefoot.typing import FloatArray

# With few columns the direct sum of squares is as fast as a matrix product.
DIRECT_COLUMNS = 16
# |a|^2 + |b|^2 - 2 a'b loses all but this share of its digits: below it, distances are summed anew.
NEAR_SHARE = 1e-6


def distances(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ||left_i - right_j||_2, shape (left rows, right rows).

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
