"""Rows in memory that come in batches, to hold against the same rows at once."""

import numpy as np

from surefoot.nominals import RowBatches


class HeldRows(RowBatches):
    """A few rows at a time, counted."""

    def __init__(self, X, y, size=700, names=None):
        self.X, self.y, self.size, self.names = X, np.asarray(y).reshape(len(X), -1), size, names
        self.passes = 0

    @property
    def n_columns(self):
        return self.X.shape[1]

    @property
    def n_products(self):
        return self.y.shape[1]

    @property
    def n_rows(self):
        return len(self.X)

    def batches(self):
        self.passes += 1
        for k in range(0, len(self.X), self.size):
            yield self.X[k : k + self.size], self.y[k : k + self.size]

    def sample(self, rng, size):
        rows = rng.integers(len(self.X), size=size)
        return self.X[rows], self.y[rows]


def demand(rows=6_000, columns=4, seed=0):
    """Return contexts of very different sizes, far from zero, and outcomes with skewed errors."""
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(1.0, 100.0, columns)
    X = rng.standard_normal((rows, columns)) * sizes + np.linspace(0.0, 2_000.0, columns)
    return X, 20.0 + X @ (np.linspace(1.0, 3.0, columns) / sizes) + rng.gamma(2.0, 2.0, rows)
