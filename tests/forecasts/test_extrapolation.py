"""Outside what was seen: growth is followed, a season or an error is not."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot.costs import Pieces
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.forecasts.ensemble import Ensemble
from surefoot.forecasts.extrapolation import (
    LEAST_ROWS,
    MOST_TIMES_SMALLEST,
    Trend,
    agreed_change,
    like_outcomes,
    linear_trend,
)
from surefoot.forecasts.forecaster import Bases, Forecaster
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import REACH
from surefoot.random import rng_for

COST = Pieces.kinked(up=1.0, down=1.0)


def growing(n, seed=0):
    """Sales that grow, and those of the two periods before."""
    rng = rng_for(seed, "growing")
    sales = 100.0 + 2.0 * np.arange(n + 2) + rng.standard_normal(n + 2)
    return np.column_stack([sales[1:-1], sales[:-2]]), sales[2:]


def fitted(X, y):
    return Ensemble().fit(X, y, None, COST, seed=0).stack


class TestAgreedChange:
    def test_is_the_median_where_all_agree_and_nothing_where_they_do_not(self):
        rng = rng_for(0, "agreed")
        moves, trends = rng.standard_normal((500, 3)), rng.standard_normal((5, 3)) + 1.0
        change, each = agreed_change(moves, trends), moves @ trends.T
        agree = np.abs(np.sign(each).sum(axis=1)) == 5
        median, smallest = np.abs(np.median(each, axis=1)), np.abs(each).min(axis=1)
        held = median > MOST_TIMES_SMALLEST * smallest
        assert (change[~agree] == 0.0).all()
        assert np.abs(change[agree & ~held]) == pytest.approx(median[agree & ~held])
        assert np.abs(change[agree & held]) == pytest.approx(
            MOST_TIMES_SMALLEST * smallest[agree & held]
        )
        assert min((~agree).sum(), (agree & held).sum(), (agree & ~held).sum()) > 20

    def test_one_trend_is_followed_as_it_is(self):
        moves, trend = np.array([[1.0, -2.0], [0.0, 0.0]]), np.array([[3.0, 1.0]])
        assert agreed_change(moves, trend).tolist() == [1.0, 0.0]


class TestLikeOutcomes:
    def test_the_past_is_like_outcomes_and_a_season_is_not(self):
        past, y = growing(60)
        season = np.sin(2.0 * np.pi * np.arange(60) / 60.0)
        flags = (np.arange(60) % 7 == 0).astype(float)
        X = np.column_stack([past, season, flags, -past[:, 0], np.ones(60)])
        assert like_outcomes(Rows.of(X, y, None)).tolist() == [True, True] + 4 * [False]

    def test_units_do_not_matter_nor_the_order_of_rows(self):
        rng = rng_for(0, "like")
        X, y = rng.standard_normal((40, 6)) ** 3, rng.standard_normal(40)
        X[:, :3] += 3.0 * y[:, None]
        told, order = like_outcomes(Rows.of(X, y, None)), rng.permutation(40)
        assert like_outcomes(Rows.of(7.0 * X - 3.0, y / 9.0, None)).tolist() == told.tolist()
        assert like_outcomes(Rows.of(X[order], y[order], None)).tolist() == told.tolist()

    def test_a_mass_of_two_is_the_row_twice(self):
        rng = rng_for(1, "like")
        X, y, masses = rng.standard_normal((30, 8)), rng.exponential(size=30), rng.integers(1, 4, 30)
        X[:, ::2] = rng.exponential(size=(30, 4)) + y[:, None]
        once = like_outcomes(Rows(X, y, masses.astype(float)))
        twice = like_outcomes(
            Rows(np.repeat(X, masses, 0), np.repeat(y, masses), np.ones(masses.sum()))
        )
        assert once.tolist() == twice.tolist()
        assert 0 < once.sum() < 8

    def test_only_such_columns_are_followed(self):
        past, y = growing(60)
        X = np.column_stack([past, np.sin(2.0 * np.pi * np.arange(60) / 60.0)])
        trend = linear_trend(Rows.of(X, y, None), COST, 0)
        assert (trend.coefficients[:, 2] == 0.0).all()
        assert (trend.coefficients[:, :2] != 0.0).any()


class TestTrend:
    def test_what_others_have_learned_is_not_learned_again(self, monkeypatch):
        X, y = growing(40)
        rows, bases, linear = Rows.of(X, y, None), Bases(), Forecaster(smooth=False, trees=False)
        alone = linear_trend(rows, COST, 0)
        linear.fit_rows(rows, COST, 0, bases)
        linear.fit_rows(rows.telling(np.log(y)), COST, 0, bases)
        monkeypatch.setattr(Forecaster, "_likely", None)
        shared = linear_trend(rows, COST, 0, bases)
        np.testing.assert_array_equal(shared.coefficients, alone.coefficients)
        np.testing.assert_array_equal(shared.line(X), alone.line(X))

    def test_units_of_outcomes_and_columns_carry_over(self):
        X, y = growing(40)
        one = linear_trend(Rows.of(X, y, None), COST, 0)
        other = linear_trend(Rows.of(X * 8.0, y * 2.0, None), COST, 0)
        assert other.coefficients == pytest.approx(one.coefficients / 4.0)
        assert other.error == pytest.approx(2.0 * one.error)
        assert other.line(X * 8.0) == pytest.approx(2.0 * one.line(X))

    @pytest.mark.parametrize("n", [3, LEAST_ROWS - 1])
    def test_few_rows_have_none(self, n):
        X, y = growing(n)
        assert linear_trend(Rows.of(X, y, None), COST, 0) is None

    def test_equal_outcomes_have_none(self):
        X, _ = growing(30)
        assert linear_trend(Rows.of(X, np.ones(30), None), COST, 0) is None

    def test_many_rows_are_sampled(self):
        X, y = growing(5_000)
        trend = linear_trend(Rows.of(X, y, None), COST, 0)
        sums = trend.coefficients.sum(axis=1)
        assert sums == pytest.approx(np.ones(len(sums)), abs=0.02)

    def test_a_large_change_starts_from_the_linear_decision_and_none_from_that_inside(self):
        X, y = growing(40)
        trend = linear_trend(Rows.of(X, y, None), COST, 0)
        inside, moves = np.repeat(X[-1:], 2, axis=0), np.array([[0.0, 0.0], [500.0, 500.0]])
        still, far = trend.follow(np.array([150.0, 150.0]), inside, moves)
        assert still == 150.0
        assert far == pytest.approx(
            trend.line(inside)[1] + agreed_change(moves, trend.coefficients)[1], rel=1e-3
        )

    def test_a_trend_without_errors_divides_by_nothing(self):
        X = np.arange(40.0).reshape(20, 2)
        trend = linear_trend(Rows.of(X, X[:, 0], None), COST, 0)
        exact = Trend(trend.coefficients, trend.line, 0.0)
        assert exact.follow(np.zeros(1), X[:1], np.zeros((1, 2))).tolist() == [0.0]

    @pytest.mark.parametrize(
        "change", [{"coefficients": np.ones((2, 3))}, {"error": -1.0}, {"line": None}]
    )
    def test_parts_that_do_not_fit_are_refused(self, change):
        X, y = growing(40)
        with pytest.raises((InvalidInputError, InvalidTypeError)):
            replace(linear_trend(Rows.of(X, y, None), COST, 0), **change)


class TestStack:
    def test_growth_is_followed(self):
        X, y = growing(120)
        decided = fitted(X[:60], y[:60])(X[60:])
        assert y[60:].min() > y[:60].max()
        assert np.abs(decided - y[60:]).max() < 0.15 * (y[60:] - y[59]).max()

    def test_a_lone_far_number_is_taken_as_the_nearest_seen(self):
        X, y = growing(60)
        stack = fitted(X, y)
        typed, nearest = X[-1:].copy(), X[-1:].copy()
        typed[0, 0], nearest[0, 0] = 1e6, 1e6
        room = stack.margin * (stack.most[0] - stack.least[0])
        nearest[0, 0] = stack.most[0] + room
        assert stack(typed) == pytest.approx(stack(nearest))

    def test_what_is_far_away_ends_somewhere(self):
        X, y = growing(60)
        stack = fitted(X, y)
        assert stack(np.full((1, 2), 1e9)) == pytest.approx(stack(np.full((1, 2), 1e6)))
        assert stack(np.full((1, 2), 1e9))[0] < y.max() + (REACH + 1.0) * np.ptp(y)

    def test_decisions_stay_positive_where_outcomes_were(self):
        X, y = growing(60)
        assert fitted(X, y)(np.full((1, 2), -1e6))[0] == 0.0

    def test_noise_is_not_followed(self):
        rng = rng_for(3, "noise")
        X, y = rng.standard_normal((40, 3)), rng.standard_normal(40) + 10.0
        stack = fitted(X, y)
        moved = stack(np.full((1, 3), 1e3)) - stack(np.full((1, 3), stack.most + stack.margin))
        assert abs(moved[0]) < 0.5 * y.std()

    def test_inside_nothing_changes(self):
        X, y = growing(60)
        stack = fitted(X, y)
        members = np.column_stack([member(X) for member in stack.members])
        assert stack(X) == pytest.approx(np.clip(members, stack.lower, stack.upper) @ stack.weights)

    def test_decisions_do_not_jump(self):
        X, y = growing(60)
        stack = fitted(X, y)
        path = np.linspace(X[-1], X[-1] + np.array([6.0, 2.0]) * np.ptp(X, axis=0), 4_000)
        steps = np.abs(np.diff(stack(path)))
        assert steps.max() < 20.0 * np.ptp(y) / len(path)

    def test_decisions_do_not_jump_where_trends_begin_to_differ(self):
        rng = rng_for(5, "flat")
        X = rng.standard_normal((30, 3))
        stack = fitted(X, X[:, 0] + 0.3 * X[:, 1] + rng.standard_normal(30))
        for _ in range(20):
            ends = 4.0 * rng.standard_normal((2, 3))
            steps = np.abs(np.diff(stack(np.linspace(*ends, 4_000))))
            smooth = np.sort(steps)[-40:]
            assert smooth[-1] < 0.5  # a forest has steps, of a few hundredths each
