"""The two transformers behind a preparation, for scikit-learn's ``ColumnTransformer``."""

import importlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from surefoot.typing import FloatArray


class Numbers(TransformerMixin, BaseEstimator):
    """Fill gaps, divide by a scale, and append a 0/1 column for each column that may have gaps.

    Parameters
    ----------
    fills
        What stands in for a gap, one for each column.
    scales
        What columns are divided by. Nothing is subtracted, so that zero stays zero.
    gaps
        Which columns get a flag that says where a gap was.

    Examples
    --------
    >>> block = Numbers(fills=(3.0, 0.0), scales=(2.0, 1.0), gaps=(True, False)).fit(None)
    >>> block.transform(np.array([[4.0, 1.0], [np.nan, 5.0]]))
    array([[2. , 1. , 0. ],
           [1.5, 5. , 1. ]])
    """

    def __init__(
        self, fills: Sequence[float] = (), scales: Sequence[float] = (), gaps: Sequence[bool] = ()
    ) -> None:
        self.fills = fills
        self.scales = scales
        self.gaps = gaps

    def fit(self, X: Any, y: Any = None) -> Self:
        """All is in the parameters: there is nothing to learn."""
        self.ready_ = True
        return self

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the filled and scaled columns, then the flags."""
        missing = np.isnan(X)
        filled = np.where(missing, np.asarray(self.fills), X) / np.asarray(self.scales)
        return np.hstack([filled, missing[:, np.asarray(self.gaps, dtype=bool)]])


class Levels(TransformerMixin, BaseEstimator):
    """One column of 0 and 1 for each level; an unknown level is the average of the known ones.

    Of two levels the second alone has a column, as the first is its opposite.

    Parameters
    ----------
    shares
        For each column, the share of the rows that each of its levels had. Codes count levels from
        0; the code -1 is an unknown level, and its row holds the shares. The decision of a linear
        policy is then the average of what it would decide for the known levels.

    Examples
    --------
    >>> Levels(shares=((0.5, 0.25, 0.25),)).fit(None).transform(np.array([[0.0], [2.0], [-1.0]]))
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.  , 1.  ],
           [0.5 , 0.25, 0.25]])
    """

    def __init__(self, shares: Sequence[Sequence[float]] = ()) -> None:
        self.shares = shares

    def fit(self, X: Any, y: Any = None) -> Self:
        """All is in the parameters: there is nothing to learn."""
        self.ready_ = True
        return self

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the blocks of all columns, side by side."""
        blocks = []
        for codes, shares in zip(np.asarray(X, dtype=np.int64).T, self.shares, strict=True):
            rows_of = np.vstack([np.eye(len(shares)), shares])  # code -1 is the last row
            blocks.append(rows_of[codes, 1:] if len(shares) == 2 else rows_of[codes])
        return np.hstack(blocks)


def assemble(numbers: Numbers, levels: Levels) -> Any:
    """Return both as one fitted ``ColumnTransformer`` of (numbers, codes) side by side."""
    n, m = len(numbers.fills), len(levels.shares)
    parts = [
        ("numbers", numbers, list(range(n))),
        ("categories", levels, list(range(n, n + m))),
    ]
    # Not at the top: it is slow to load, and only those who ask for it see it.
    compose = importlib.import_module("sklearn.compose")
    transformer = compose.ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0.0)
    return transformer.fit(np.zeros((1, max(n + m, 1))))
