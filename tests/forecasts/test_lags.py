"""Columns that hold outcomes of earlier rows, and what the default makes of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import RobustNewsvendor
from surefoot.exceptions import DataWarning
from surefoot.forecasts.lags import lagged_columns


def walk(n, seed=0, step=1.0):
    return 100.0 + np.cumsum(step * np.random.default_rng(seed).normal(size=n))


def with_lags(y, lags):
    """Return rows whose columns are outcomes so many rows before, and a column of noise."""
    first = max(lags)
    noise = np.random.default_rng(9).normal(size=len(y) - first)
    columns = [y[first - lag : len(y) - lag] for lag in lags]
    return np.column_stack([*columns, noise]), y[first:]


def followed(model):
    return model.problem_.policy.offset.forecasts[0].trend.tolist()


class TestLaggedColumns:
    @given(st.integers(10, 80), st.integers(1, 12), st.integers(0, 5))
    @settings(max_examples=40, deadline=None)
    def test_every_lag_is_found_and_nothing_else(self, n, lag, seed):
        X, y = with_lags(walk(n + lag, seed), (lag,))
        assert lagged_columns(X, y).tolist() == [n - lag >= 8, False]

    def test_counts_are_found_in_order_and_not_by_chance(self):
        sales = np.random.default_rng(0).poisson(6.0, 200).astype(float)
        X, y = with_lags(sales, (1, 7))
        others = np.random.default_rng(1).poisson(6.0, (len(y), 30)).astype(float)
        assert lagged_columns(np.column_stack([X, others]), y).tolist() == [True, True] + 31 * [False]

    def test_days_without_sales_agree_by_chance(self):
        rng = np.random.default_rng(2)
        y, X = (rng.poisson(0.3, size).astype(float) for size in (100, (100, 20)))
        assert not lagged_columns(X, y).any()

    def test_a_lag_of_a_year_of_weeks_is_found(self):
        X, y = with_lags(walk(160), (52,))
        assert lagged_columns(X, y).tolist() == [True, False]

    def test_some_rows_may_be_missing(self):
        X, y = with_lags(walk(120), (1, 5))
        kept = np.setdiff1d(np.arange(len(y)), [17, 60, 61, 90])
        assert lagged_columns(X[kept], y[kept]).tolist() == [True, True, False]

    def test_rows_in_no_order_and_few_rows_have_none(self):
        X, y = with_lags(walk(60), (1,))
        mixed = np.random.default_rng(3).permutation(len(y))
        assert not lagged_columns(X[mixed], y[mixed]).any()
        assert not lagged_columns(X[:9], y[:9]).any()

    def test_rows_sorted_by_their_outcome_have_none(self):
        rng = np.random.default_rng(4)
        y = rng.poisson(3.0, 200).astype(float)
        x = np.where(rng.uniform(size=200) < 0.85, y, rng.poisson(3.0, 200))
        order = np.argsort(y, kind="stable")
        assert not lagged_columns(x[order, None], y[order]).any()

    def test_a_column_of_outcomes_that_change_seldom_is_no_lag_but_one_of_those_before_is(self):
        y = np.repeat(np.random.default_rng(5).normal(size=50), 4)
        assert lagged_columns(np.column_stack([y[1:], y[:-1]]), y[1:]).tolist() == [False, True]

    def test_constant_outcomes_have_none(self):
        assert not lagged_columns(np.ones((40, 2)), np.ones(40)).any()

    def test_no_columns(self):
        assert lagged_columns(np.zeros((40, 0)), np.arange(40.0)).tolist() == []


class TestFollowing:
    @pytest.mark.parametrize("n", [20, 50])
    def test_a_past_that_says_little_so_far_is_followed_to_a_new_level(self, n):
        y = np.concatenate([50.0 + 5.0 * np.random.default_rng(4).normal(size=n + 1), [90.0, 91.0]])
        X, y = with_lags(y, (1, 2))
        model = RobustNewsvendor(1.0, 1.0).fit(X[: n - 1], y[: n - 1])
        assert followed(model) == [0, 1]
        with pytest.warns(DataWarning, match="far outside"):
            assert model.predict(np.array([[91.0, 90.0, 0.0]]))[0] > 70.0

    def test_given_times_rows_may_come_in_any_order(self):
        X, y = with_lags(walk(60, step=0.0) + np.random.default_rng(5).normal(size=60), (1,))
        mixed = np.random.default_rng(6).permutation(len(y))
        plain = RobustNewsvendor(1.0, 1.0).fit(X[mixed], y[mixed])
        timed = RobustNewsvendor(1.0, 1.0).fit(X[mixed], y[mixed], time=mixed)
        assert (followed(plain), followed(timed)) == ([], [0])

    def test_a_column_that_is_only_distributed_like_outcomes_is_not_followed(self):
        rng = np.random.default_rng(7)
        far = rng.normal(size=(80, 2)) @ [[1.0, 0.4], [0.0, 0.9]]
        X, y = np.column_stack([10.0 + far[:, 0], rng.normal(size=80)]), 10.0 + far[:, 1]
        model = RobustNewsvendor(1.0, 1.0).fit(X, y)
        assert followed(model) == []
        with pytest.warns(DataWarning, match="far outside"):
            near = model.predict(np.array([[12.0, 0.0], [16.0, 0.0]]))
        assert near[1] - near[0] < 2.0

    def test_a_long_tail_that_looks_like_a_past_is_a_line(self):
        rng = np.random.default_rng(8)
        incomes = rng.lognormal(0.0, 1.5, (100, 2))
        model = RobustNewsvendor(1.0, 1.0).fit(incomes, incomes[:, 0] + 0.1 * rng.normal(size=100))
        assert followed(model) == []
        assert model.problem_.policy.offset.forecasts[0].lines[1, 0] > 0.0
