import numpy as np
import pytest

from surefoot.datasets import synthetic


@pytest.fixture(scope="session")
def data():
    """Sixty rows and five columns of a linear demand, with rows to judge on. Never written to."""
    data = synthetic(n=60, s=5, noise_variance=0.05, seed=0, test=500)
    for array in (data.X, data.y, data.X_test, data.y_test):
        array.flags.writeable = False
    return data


def _small(seed, *, rows=8, columns=3, ties=False, weighted=True):
    rng = np.random.default_rng([seed, rows, columns])
    X = rng.normal(size=(rows, columns)) + rng.normal(size=columns)
    y = X @ rng.normal(size=columns) + rng.normal(size=rows) + 1.0
    if ties:  # whole numbers: many equal outcomes, columns and contexts
        X, y = np.round(X), np.round(y)
    weights = rng.uniform(0.2, 2.0, size=rows) if weighted else np.ones(rows)
    return X, y, weights / weights.sum()


@pytest.fixture(scope="session")
def small():
    """Return the maker of small random instances (X, y, weights)."""
    return _small
