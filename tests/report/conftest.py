"""Small models and their reports, computed once."""

import numpy as np
import pytest

from surefoot import Folds, PreparedPolicy, RobustNewsvendor
from surefoot.datasets import synthetic
from surefoot.exceptions import DataWarning
from surefoot.report.facts import gather

EVIL = ("<script>alert(1)</script>", "a\"b'c&d", "day")
OUTCOME = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def data():
    return synthetic(n=60, s=4, seed=0)


@pytest.fixture(scope="session")
def linear(data):
    return RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)


@pytest.fixture(scope="session")
def linear_facts(linear, data):
    return gather(linear, data.X, data.y)


@pytest.fixture(scope="session")
def evil():
    """A table whose names are traps, with an error in a context and in an outcome."""
    pd = pytest.importorskip("pandas")  # not at the top: without extras, other tests are to be found
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            EVIL[0]: rng.normal(20.0, 3.0, 80),
            EVIL[1]: rng.choice(["<i>a</i>", 'b"', "c'"], 80),
            EVIL[2]: pd.date_range("2024-01-01", periods=80),
        }
    )
    y = 2.0 * X[EVIL[0]].to_numpy() + rng.normal(size=80)
    X.iloc[9, 0], y[7] = 4000.0, 9000.0
    return X, y


@pytest.fixture(scope="session")
def evil_model(evil):
    with pytest.warns(DataWarning, match="look like errors"):
        return PreparedPolicy(RobustNewsvendor(3.0, 1.0)).fit(*evil)


@pytest.fixture(scope="session")
def evil_facts(evil_model, evil):
    return gather(evil_model, *evil, outcome=OUTCOME, time="day")


def scaled(data, unit):
    """Facts about outcomes in another unit, whose numbers need more room."""
    model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, unit * data.y)
    return gather(model, data.X, unit * data.y, splits=Folds(2, repeats=1))


@pytest.fixture(scope="session")
def tiny_facts(data):
    return scaled(data, 1e-3)


@pytest.fixture(scope="session")
def huge_facts(data):
    return scaled(data, 1e6)
