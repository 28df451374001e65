import numpy as np
import pytest
from scipy import stats

from surefoot import RobustNewsvendor
from surefoot.forecasts.confidence import cost_bound_of_rows, mean_bound


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


def test_the_bound_of_a_cost_is_above_that_of_a_mean_and_comes_near_it():
    rng = np.random.default_rng(0)
    before = np.inf
    for n in (20, 100, 1_000, 10_000):
        x, w = rng.exponential(size=n), np.full(n, 1 / n)
        ratio = cost_bound_of_rows(x, w, 0.95, n) / mean_bound(x, w, 0.95)
        assert 1.0 < ratio < before
        before = ratio
        assert cost_bound_of_rows(7.0 * x, w, 0.95, n) == pytest.approx(
            7.0 * cost_bound_of_rows(x, w, 0.95, n)
        )
    assert before < 1.01


@pytest.mark.filterwarnings("ignore::surefoot.exceptions.DataWarning")
@pytest.mark.parametrize("tail", [3, 30])
def test_the_stated_bound_holds_for_what_is_deployed(tail):
    """Without constants of other folds and the added rows it held in 75 to 85 % of such samples."""
    held = []
    for k in range(40):
        rng = np.random.default_rng(k)
        X = rng.normal(size=(1_040, 4))
        y = 10.0 + X[:, :2].sum(axis=1) + rng.standard_t(tail, size=1_040)
        model = RobustNewsvendor(1.0, 0.2).fit(X[:40], y[:40])
        held.append(model.certificate_.upper >= model.cost(X[40:], y[40:]))
    assert np.mean(held) >= 0.9


def test_tiny_costs_do_not_vanish():
    x, w = 1e-120 * np.random.default_rng(0).exponential(size=30), np.full(30, 1 / 30)
    assert 1e120 * mean_bound(x, w, 0.95) == pytest.approx(mean_bound(1e120 * x, w, 0.95))


@pytest.mark.parametrize("skew", [0.0, 1e-17, 1e-12, 1e-9, -1e-12])
def test_a_skewness_that_is_only_rounding_changes_nothing(skew):
    values, weights = np.arange(20.0), np.full(20, 0.05)
    values[-1] += 1e3 * skew
    student = 9.5 + stats.t.ppf(0.95, 19) * values.std(ddof=1) / np.sqrt(20)
    assert mean_bound(values, weights, 0.95) == pytest.approx(student, rel=1e-6)
