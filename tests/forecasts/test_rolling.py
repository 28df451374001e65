"""Rolling origins: nothing later than a block has a hand in it, and bounds follow the blocks."""

import numpy as np
import pytest
from scipy import stats

from surefoot import Box, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.exceptions import DataWarning
from surefoot.forecasts import Rolling, later_blocks
from surefoot.forecasts.rolling import BLOCKS, LEAST_ROWS, rolling
from surefoot.nominals import Empirical
from surefoot.policies import Linear


@pytest.fixture(scope="module")
def trend():
    """Demand that grows from day to day, beside a column of noise."""
    rng = np.random.default_rng(0)
    days = np.arange(60.0)
    return rng.normal(size=(60, 2)), 10.0 + 0.5 * days + rng.normal(size=60), days


@pytest.mark.parametrize("n", [10, 19, 20, 39, 40, 41, 200, 1003])
def test_blocks_follow_each_other_to_the_end(n):
    blocks = later_blocks(np.arange(n))
    if not blocks:
        assert n * 2 // BLOCKS < LEAST_ROWS
        return
    rows = np.concatenate(blocks)
    assert blocks[0][0] >= LEAST_ROWS
    np.testing.assert_array_equal(rows, np.arange(blocks[0][0], n))


def test_each_block_is_decided_from_the_rows_before_it():
    rows, seen = Empirical(np.arange(50.0)[:, None], np.arange(50.0)), []

    def learn(past):
        seen.append(past.outcomes[:, 0])
        level = past.outcomes.max()
        return lambda contexts: np.full((len(contexts), 1), level)

    found = rolling(rows, np.arange(50), learn, lambda z, y: (y - z)[:, 0])
    assert [len(past) for past in seen] == [10, 20, 30, 40]
    np.testing.assert_allclose(found.costs, 5.5)  # on average a block lies this far ahead
    assert found.rows == 10


def test_a_block_counts_rows_by_their_mass():
    masses = np.ones(50)
    masses[49] = 3.0
    rows = Empirical(np.zeros((50, 1)), np.r_[np.zeros(49), 1.0], masses)
    found = rolling(
        rows, np.arange(50), lambda past: lambda X: np.zeros((len(X), 1)), lambda z, y: (y - z)[:, 0]
    )
    assert found.costs[-1] == pytest.approx(3.0 / 11.0)  # the last fifth of 52: nine rows


@pytest.mark.parametrize("unit", [1.5, 0.5, 0.01])
def test_weights_that_are_not_whole_only_compare_rows(unit):
    masses = unit * np.ones(50)
    for one, other in zip(
        later_blocks(np.arange(50)), later_blocks(np.arange(50), masses), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_the_bound_is_a_prediction_bound():
    rng = np.random.default_rng(1)
    costs = rng.normal(10.0, 2.0, size=(20_000, 5))
    held = [Rolling(row[:4], 10).bound(0.95) >= row[4] for row in costs]
    assert np.mean(held) == pytest.approx(0.95, abs=0.006)
    assert Rolling(np.array([1.0, 3.0]), 5).bound(0.5) == pytest.approx(2.0)
    assert Rolling(np.array([1.0, 3.0]), 5).bound(0.95) == pytest.approx(
        2.0 + stats.t.ppf(0.95, 1) * np.sqrt(2.0) * np.sqrt(1.5)
    )


def test_time_changes_what_is_stated(trend):
    X, y, days = trend
    plain, timed = RobustNewsvendor().fit(X, y), RobustNewsvendor().fit(X, y, time=days)
    assert timed.certificate_.upper > 1.1 * plain.certificate_.upper  # a trend has no neighbours ahead
    assert timed.radius_ != plain.radius_
    assert (
        "The last 4 blocks of 12 rows, each decided from the rows before it, cost" in timed.guarantee()
    )
    assert "With 95 % confidence" in plain.guarantee()


def test_rows_may_come_in_any_order(trend):
    X, y, days = trend
    shuffled = np.random.default_rng(3).permutation(len(y))
    one = RobustNewsvendor().fit(X, y, time=days)
    other = RobustNewsvendor().fit(X[shuffled], y[shuffled], time=days[shuffled])
    assert other.guarantee() == one.guarantee()


def test_an_error_in_the_data_is_no_block_that_cost_more(trend):
    X, y, days = trend
    clean = RobustNewsvendor().fit(X, y, time=days).certificate_.upper
    y = y.copy()
    y[50] *= 100.0
    with pytest.warns(DataWarning, match="row 50"):
        model = RobustNewsvendor().fit(X, y, time=days)
    assert model.certificate_.upper < 1.3 * clean


def test_blocks_keep_to_limits_on_decisions(trend):
    X, y, days = trend
    model = RobustPolicy(
        Newsvendor(1.0, 0.2),
        Linear(decisions=Box(0.0, 20.0)),
        ball=WassersteinBall("auto"),
        nominal="auto",
    ).fit(X, y, time=days)
    last = float(model.guarantee().split(" and ")[1].split()[0])
    assert last == pytest.approx(np.maximum(y[48:] - 20.0, 0.0).mean(), rel=0.05)  # all are cut at 20


def test_few_rows_say_what_they_would_without_time():
    data = synthetic(n=14, s=2, seed=0)
    plain = RobustNewsvendor(1.0, 1.0).fit(data.X, data.y)
    with pytest.warns(DataWarning, match="time is left out of the bound"):
        timed = RobustNewsvendor(1.0, 1.0).fit(data.X, data.y, time=np.arange(14))
    assert timed.guarantee() == plain.guarantee()
    assert timed.certificate_.upper == pytest.approx(plain.certificate_.upper, rel=1e-12)


def test_a_second_fit_forgets_the_order(trend):
    X, y, days = trend
    model = RobustNewsvendor().fit(X, y, time=days).fit(X, y)
    assert model.guarantee() == RobustNewsvendor().fit(X, y).guarantee()


def test_a_weight_of_two_is_the_row_twice(trend):
    X, y, days = trend
    weights = np.ones(60)
    weights[[5, 30]] = 2.0
    heavy = RobustNewsvendor().fit(X, y, weights, time=days)
    twice = np.sort(np.r_[np.arange(60), 5, 30])
    assert RobustNewsvendor().fit(X[twice], y[twice], time=days[twice]).guarantee() == heavy.guarantee()


def test_rows_of_one_time_stay_together(trend):
    X, y, _ = trend
    weeks = np.arange(60) // 7
    shuffled = np.random.default_rng(3).permutation(60)
    one = RobustNewsvendor().fit(X, y, time=weeks)
    other = RobustNewsvendor().fit(X[shuffled], y[shuffled], time=weeks[shuffled])
    assert one.guarantee() == other.guarantee()
    for block in later_blocks(weeks):
        assert weeks[block[0] - 1] < weeks[block[0]]


def test_too_few_times_are_said(trend):
    X, y, _ = trend
    with pytest.warns(DataWarning, match="time is left out of the bound: too few rows or times"):
        model = RobustNewsvendor().fit(X, y, time=np.zeros(60))
    assert "With 95 % confidence" in model.guarantee()


def test_long_blocks_are_judged_by_some_of_their_rows(monkeypatch):
    rng, asked = np.random.default_rng(0), []
    rows = Empirical(rng.normal(size=(600, 1)), rng.gamma(2.0, size=(600, 1)))

    def learn(past):
        def decide(contexts):
            asked.append(len(contexts))
            return np.zeros((len(contexts), 1))

        return decide

    def cost(decided, outcomes):
        return np.abs(decided - outcomes)[:, 0]

    every = rolling(rows, np.arange(600), learn, cost)
    monkeypatch.setattr("surefoot.forecasts.rolling.MOST_ROWS", 40)
    some = rolling(rows, np.arange(600), learn, cost)
    assert asked == 4 * [120] + 4 * [40]
    assert some.rows == every.rows == 120
    np.testing.assert_allclose(some.costs, every.costs, rtol=0.3)
    assert (some.costs != every.costs).all()
