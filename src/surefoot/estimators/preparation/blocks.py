"""What numbers and levels become, column by column; both as scikit-learn's ``ColumnTransformer``."""

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from surefoot.typing import FloatArray


def number_columns(
    X: FloatArray, fills: Sequence[float], scales: Sequence[float], gaps: Sequence[bool]
) -> FloatArray:
    """Fill gaps, divide by a scale, and append a 0/1 column for each column that may have gaps.

    Parameters
    ----------
    X
        Numbers, NaN for gaps.
    fills
        What stands in for a gap, one for each column.
    scales
        What columns are divided by. Nothing is subtracted, so that zero stays zero.
    gaps
        Which columns get a flag that says where a gap was.

    Examples
    --------
    >>> X = np.array([[4.0, 1.0], [np.nan, 5.0]])
    >>> number_columns(X, fills=(3.0, 0.0), scales=(2.0, 1.0), gaps=(True, False))
    array([[2. , 1. , 0. ],
           [1.5, 5. , 1. ]])
    """
    missing = np.isnan(X)
    filled = np.where(missing, np.asarray(fills), X) / np.asarray(scales)
    return np.hstack([filled, missing[:, np.asarray(gaps, dtype=bool)]])


def level_columns(codes: FloatArray, shares: Sequence[Sequence[float]]) -> FloatArray:
    """Return one column of 0 and 1 for each level; an unknown level is the average of the known ones.

    Of two levels the second alone has a column, as the first is its opposite.

    Parameters
    ----------
    codes
        Levels of each column, counted from 0; -1 is an unknown level, and its row holds the shares.
        The decision of a linear policy is then the average of what it would decide for the known ones.
    shares
        For each column, the share of the rows that each of its levels had.

    Examples
    --------
    >>> level_columns(np.array([[0.0], [2.0], [-1.0]]), shares=((0.5, 0.25, 0.25),))
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.  , 1.  ],
           [0.5 , 0.25, 0.25]])
    """
    blocks = []
    for column, known in zip(np.asarray(codes, dtype=np.int64).T, shares, strict=True):
        rows_of = np.vstack([np.eye(len(known)), known])  # code -1 is the last row
        blocks.append(rows_of[column, 1:] if len(known) == 2 else rows_of[column])
    return np.hstack(blocks)


def assemble(numbers: "partial[FloatArray]", levels: "partial[FloatArray]") -> Any:
    """Return both as one fitted ``ColumnTransformer`` of (numbers, codes) side by side."""
    n, m = len(numbers.keywords["fills"]), len(levels.keywords["shares"])
    # Not at the top: it is slow to load, and only those who ask for it see it.
    compose, preprocessing = map(importlib.import_module, ("sklearn.compose", "sklearn.preprocessing"))
    parts = [
        ("numbers", preprocessing.FunctionTransformer(numbers), list(range(n))),
        ("categories", preprocessing.FunctionTransformer(levels), list(range(n, n + m))),
    ]
    transformer = compose.ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0.0)
    return transformer.fit(np.zeros((1, max(n + m, 1))))
