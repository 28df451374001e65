"""A standard deviation that slips cannot move.

It is the larger of two: what the middle half, and what the middle four fifths, of normal numbers would
have as their standard deviation. Up to a tenth of the rows on one side cannot move it.
"""

import numpy as np

from surefoot.typing import FloatArray

# Numbers so many robust scales from the middle are far, unless many are; with fewer rows none is.
GROSS, LEAST_ROWS = 8.0, 8
SCALE_LEVELS = np.array([0.1, 0.25, 0.75, 0.9])
QUARTILES, TENTHS = 1.349, 2.563  # width of the middle half and four fifths of a standard normal


def robust_scale(values: FloatArray) -> FloatArray:
    """Return a standard deviation of each column that a tenth of the rows cannot move.

    >>> robust_scale(np.append(np.arange(100.0), 1e9)[:, None]).round()
    array([37.])
    """
    places = (len(values) - 1) * SCALE_LEVELS
    below = places.astype(np.int64)
    above = np.minimum(below + 1, len(values) - 1)
    # As np.quantile has it, which takes ten times as long around a hundred numbers.
    ordered = np.partition(values, np.concatenate([below, above]), axis=0)
    low, high, share = ordered[below], ordered[above], (places - below)[:, None]
    q = np.where(share < 0.5, low + share * (high - low), high - (1.0 - share) * (high - low))
    return np.asarray(np.maximum((q[2] - q[1]) / QUARTILES, (q[3] - q[0]) / TENTHS))
