"""Outside what was seen: growth is followed, a season or an error is not."""

import numpy as np
import pytest

from surefoot.costs import Pieces
from surefoot.forecasts.ensemble import Ensemble
from surefoot.forecasts.extrapolation import LEAST_ROWS, agreed_change, linear_trends
from surefoot.forecasts.rows import Rows
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
    def test_is_never_larger_than_any_trend_makes_it(self):
        rng = rng_for(0, "agreed")
        moves, trends = rng.standard_normal((200, 3)), rng.standard_normal((4, 3))
        change = agreed_change(moves, trends)
        assert (np.abs(change) <= np.abs(moves @ trends.T).min(axis=1) + 1e-12).all()
        assert ((change == 0) == (np.abs(np.sign(moves @ trends.T).sum(axis=1)) < 4)).all()

    def test_one_trend_is_followed_as_it_is(self):
        moves, trend = np.array([[1.0, -2.0], [0.0, 0.0]]), np.array([[3.0, 1.0]])
        assert agreed_change(moves, trend).tolist() == [1.0, 0.0]

    def test_no_trend_changes_nothing(self):
        assert agreed_change(np.ones((3, 2)), np.zeros((0, 2))).tolist() == [0.0, 0.0, 0.0]


class TestLinearTrends:
    def test_units_of_outcomes_and_columns_carry_over(self):
        X, y = growing(40)
        one = linear_trends(Rows.of(X, y, None), COST, 0)
        other = linear_trends(Rows.of(X * 8.0, y * 2.0, None), COST, 0)
        assert other == pytest.approx(one / 4.0)

    @pytest.mark.parametrize("n", [3, LEAST_ROWS - 1])
    def test_few_rows_have_none(self, n):
        X, y = growing(n)
        assert linear_trends(Rows.of(X, y, None), COST, 0).shape == (0, 2)

    def test_equal_outcomes_have_none(self):
        X, _ = growing(30)
        assert len(linear_trends(Rows.of(X, np.ones(30), None), COST, 0)) == 0

    def test_many_rows_are_sampled(self):
        X, y = growing(5_000)
        trends = linear_trends(Rows.of(X, y, None), COST, 0)
        assert trends.sum(axis=1) == pytest.approx(np.ones(len(trends)), abs=0.02)


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
        assert stack(np.full((1, 2), 1e9))[0] < y.max() + 4.0 * np.ptp(y)

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
