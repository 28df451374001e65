import numpy as np
import pytest

from surefoot.forecasts.confidence import mean_bound


def coverage(draw, mean, n, repeats=2000):
    rng = np.random.default_rng(0)
    weights = np.full(n, 1.0 / n)
    return np.mean([mean_bound(draw(rng, n), weights, 0.95) >= mean for _ in range(repeats)])


@pytest.mark.parametrize("n", [20, 50, 200])
def test_the_bound_holds_about_as_often_as_stated(n):
    assert coverage(lambda rng, n: rng.normal(size=n), 0.0, n) == pytest.approx(0.95, abs=0.02)
    assert coverage(lambda rng, n: rng.exponential(size=n), 1.0, n) > 0.92


def test_skewness_moves_the_bound_up():
    x = np.random.default_rng(0).exponential(size=30)
    assert mean_bound(x, np.full(30, 1 / 30), 0.95) > mean_bound(
        2 * x.mean() - x, np.full(30, 1 / 30), 0.95
    )


def test_equal_numbers_have_no_doubt():
    assert mean_bound(np.full(5, 2.0), np.full(5, 0.2), 0.95) == 2.0


def test_units_change_nothing():
    x, w = np.random.default_rng(0).exponential(size=30), np.full(30, 1 / 30)
    assert mean_bound(7.0 * x, w, 0.95) == pytest.approx(7.0 * mean_bound(x, w, 0.95))
