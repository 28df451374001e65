import pytest

from surefoot.datasets import synthetic


@pytest.fixture(scope="session")
def data():
    """Sixty rows and five columns of a linear demand, with rows to judge on. Never written to."""
    data = synthetic(n=60, s=5, noise_variance=0.05, seed=0, test=500)
    for array in (data.X, data.y, data.X_test, data.y_test):
        array.flags.writeable = False
    return data
