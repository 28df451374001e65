import numpy as np
import pytest
from sklearn.base import BaseEstimator


class Shifted(BaseEstimator):
    """Orders the mean outcome plus a shift: cheap, and its cost is known exactly."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def fit(self, X, y):
        self.level_ = np.mean(y, axis=0) + self.shift
        return self

    def predict(self, X):
        return np.full((len(X), *np.shape(self.level_)), self.level_)


class Failing(Shifted):
    """Fails if the training rows hold an outcome above the limit."""

    def __init__(self, limit=0.0, error=ValueError):
        self.limit, self.error, self.shift = limit, error, 0.0

    def fit(self, X, y):
        if np.max(y) > self.limit:
            raise self.error("too much\n demand")
        return super().fit(X, y)


@pytest.fixture
def shifted():
    return Shifted


@pytest.fixture
def failing():
    return Failing


@pytest.fixture(scope="session")
def sample():
    """Forty rows of one informative column."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 2))
    return X, 10.0 + X[:, 0] + 0.5 * rng.normal(size=40)
