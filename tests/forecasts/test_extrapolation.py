"""Outside what was seen: growth is followed, a season or an error is not."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot.costs import Pieces
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.forecasts.ensemble import Ensemble
from surefoot.forecasts.extrapolation import (
    LEAST_FACTOR,
    LEAST_ROWS,
    MANY_ROWS,
    level_outside,
    moving_along,
    nearest_past,
    own_past,
    ranges_of_lines,
    trust_of_farthest,
    unbounded_columns,
)
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import MOST_RANGES, MOST_RANGES_OF_LINES, Trend
from surefoot.random import rng_for

COST = Pieces.kinked(up=1.0, down=1.0)


def growing(n, seed=0):
    """Sales that grow, and those of the two periods before."""
    rng = rng_for(seed, "growing")
    sales = 100.0 + 2.0 * np.arange(n + 2) + rng.standard_normal(n + 2)
    return np.column_stack([sales[1:-1], sales[:-2]]), sales[2:]


def incomes(n):
    X = rng_for(0, "incomes").pareto(1.5, (n, 2))
    return X, 5.0 * X[:, 0] + rng_for(0, "spent").standard_normal(n)


def ranges_of(X, y, past):
    rows = Rows.of(X, y, None)
    return ranges_of_lines(rows, past, X[:, 0] + 1e-6, np.array([1.0, 0.0]), COST, 0.3)


def fitted(X, y, cost=COST):
    return Ensemble().fit(X, y, None, cost, seed=0).stack


def past_of(X, y):
    return own_past(Rows.of(X, y, None)).tolist()


class TestOwnPast:
    def test_the_past_is_found_and_a_season_is_not(self):
        past, y = growing(60)
        season = np.sin(2.0 * np.pi * np.arange(60) / 60.0)
        flags = (np.arange(60) % 7 == 0).astype(float)
        X = np.column_stack([past, season, flags, -past[:, 0], np.ones(60)])
        assert past_of(X, y) == [0, 1]

    def test_it_has_the_unit_of_outcomes(self):
        past, y = growing(60)
        one = past[:, 0]
        wider = 3.0 * one - 2.0 * one.mean()
        assert past_of(np.column_stack([one, 3.0 * one, one + 1e3, wider]), y) == [0]

    def test_it_tells_of_outcomes(self):
        rng = rng_for(0, "telling")
        y = rng.normal(100.0, 10.0, 200)
        X = np.column_stack([rng.permutation(y), 0.9 * y + 0.4 * rng.permutation(y) - 30.0])
        assert past_of(X, y) == [1]

    def test_a_common_unit_does_not_matter_nor_the_order_of_rows(self):
        rng = rng_for(0, "like")
        X, y = rng.standard_normal((40, 6)) ** 3, rng.standard_normal(40)
        X[:, :3] = 0.1 * X[:, :3] + y[:, None]
        told, order = past_of(X, y), rng.permutation(40)
        assert told[:3] == [0, 1, 2]
        assert past_of(7.0 * X - 3.0, 7.0 * y - 3.0) == told
        assert past_of(X[order], y[order]) == told

    def test_a_mass_of_two_is_the_row_twice(self):
        rng = rng_for(1, "like")
        X, y, masses = rng.standard_normal((30, 8)), rng.exponential(size=30), rng.integers(1, 4, 30)
        X[:, ::2] = 0.1 * rng.exponential(size=(30, 4)) + y[:, None]
        once = own_past(Rows(X, y, masses.astype(float)))
        twice = own_past(Rows(np.repeat(X, masses, 0), np.repeat(y, masses), np.ones(masses.sum())))
        assert once.tolist() == twice.tolist()
        assert 0 < len(once) < 8

    def test_a_table_without_columns_has_none(self):
        assert past_of(np.zeros((30, 0)), np.arange(30.0)) == []

    @pytest.mark.parametrize("n", [3, LEAST_ROWS - 1])
    def test_few_rows_have_none(self, n):
        assert past_of(*growing(n)) == []

    def test_equal_outcomes_have_none(self):
        assert past_of(growing(30)[0], np.ones(30)) == []

    @pytest.mark.parametrize(("n", "told"), [(20, []), (100, [0])])
    def test_a_few_days_with_sales_tell_no_past(self, n, told):
        y = np.zeros(n)
        y[: n // 5] = np.arange(1.0, n // 5 + 1.0)
        past = np.append(y[1:], 0.0)
        assert past_of(past[:, None], y) == told

    def test_many_rows_are_looked_at_in_part(self):
        X, y = growing(5 * MANY_ROWS)
        kept = np.arange(0, len(y), 5)
        X[np.setdiff1d(np.arange(len(y)), kept)] = 0.0
        assert past_of(X, y) == [0, 1]


class TestTrust:
    def test_a_number_is_followed_ten_times_as_far_as_another_is_outside(self):
        witness = np.array([0.0, 0.01, 0.05, 0.2, 0.5, 3.0])
        outside = np.column_stack([np.full(6, 250.0), witness])
        followed = (outside * trust_of_farthest(outside)).T
        np.testing.assert_allclose(followed, [10.0 * witness, witness])

    def test_levels_that_all_columns_show_are_followed_to_the_end(self):
        outside = np.array([[20.0, 18.0], [900.0, 100.0]])
        np.testing.assert_array_equal(trust_of_farthest(outside), 1.0)


class TestNearestPast:
    def test_is_the_column_that_outcomes_change_least_from(self):
        X, y = growing(60)
        X = np.column_stack([X, y + 0.1 * np.sin(np.arange(60.0))])
        rows = Rows.of(X, y, None)
        assert nearest_past(rows, np.array([0, 1, 2])) == 2
        assert nearest_past(rows, np.array([1])) == 1
        assert nearest_past(rows, np.zeros(0, dtype=np.int64)) is None

    def test_is_none_where_changes_vary_more_than_outcomes(self):
        rng = rng_for(2, "noise")
        X, y = rng.standard_normal((50, 1)), rng.standard_normal(50)
        assert nearest_past(Rows.of(X, y, None), np.array([0])) is None

    def test_the_linear_member_of_few_rows_keeps_to_it(self):
        rng = rng_for(4, "walk")
        walk = 50.0 + np.cumsum(rng.standard_normal(61))
        X = np.column_stack([walk[:-1], rng.standard_normal((60, 8))])
        linear = fitted(X[:20], walk[1:21]).members[1]
        assert linear.forecast.theta[0] > 0.8
        assert np.abs(linear(X[20:]) - walk[21:]).mean() < 1.2 * np.abs(np.diff(walk[20:])).mean()


class TestMovingAlong:
    def test_the_past_moves_by_one_and_what_rises_with_outcomes_by_its_slope(self):
        past, y = growing(60)
        rng = rng_for(9, "along")
        lead, noise, flags = 0.1 * y + 3.0, rng.standard_normal(60), 1.0 * (y > np.median(y))
        X = np.column_stack([past, lead, noise, flags, -lead, np.ones(60)])
        along = moving_along(Rows.of(X, y, None), np.array([0, 1]))
        assert along == pytest.approx([1.0, 1.0, 0.1, 0.0, 0.0, 0.0, 0.0])

    def test_nothing_moves_without_a_past(self):
        X, y = growing(60)
        assert not moving_along(Rows.of(X, y, None), np.zeros(0, dtype=np.int64)).any()

    def test_an_indicator_that_leads_is_still_read_at_a_level_never_seen(self):
        rng = rng_for(10, "lead")
        lead = np.cumsum(0.3 + 0.2 * rng.standard_normal(123))
        sales = 200.0 + 5.0 * lead[:-1] + 0.1 * rng.standard_normal(122)
        X, y = np.column_stack([sales[1:-1], sales[:-2], lead[1:-2], lead[:-3]]), sales[2:]
        stack = fitted(X[:60], y[:60])
        assert y[70:].min() > y[:60].max()
        told, without = stack(X[70:]), replace(stack, along=None)(X[70:])
        assert np.abs(told - y[70:]).mean() < 0.7 * np.abs(without - y[70:]).mean()


class TestLevelOutside:
    SEEN = np.array([10.0, 20.0]), np.array([30.0, 50.0])

    def test_taken_back_nothing_lies_outside(self):
        past = rng_for(6, "outside").uniform(1.0, 150.0, (500, 2))
        least, most = self.SEEN
        move, factor = level_outside(past, least, most)
        above, below = (past > most).any(axis=1), (past < least).any(axis=1)
        for sign, one, other in ((1.0, above, below), (-1.0, below, above)):
            back = past[one & ~other] - move[one & ~other, None]
            shrunk = past[one & ~other] / factor[one & ~other, None]
            assert (sign * move[one & ~other] > 0.0).all()
            for moved in (back, shrunk):
                out = moved - most if sign > 0.0 else least - moved
                assert np.abs(out.max(axis=1)).max() < 1e-12
        assert (move[~above & ~below] == 0.0).all()
        assert (factor[~above & ~below] == 1.0).all()

    def test_what_was_never_positive_has_no_factor(self):
        seen = np.array([-5.0, 0.0]), np.array([-1.0, 0.0])
        assert level_outside(np.array([[3.0, 4.0]]), *seen)[1].tolist() == [1.0]
        assert level_outside(np.array([[-9.0, -4.0]]), *seen)[1].tolist() == [1.0]

    def test_nothing_shrinks_to_nothing(self):
        assert level_outside(np.array([[-1e9, 30.0]]), *self.SEEN)[1] == [LEAST_FACTOR]


class TestStack:
    def test_growth_is_followed(self):
        X, y = growing(120)
        decided = fitted(X[:60], y[:60])(X[60:])
        assert y[60:].min() > y[:60].max()
        assert np.abs(decided - y[60:]).max() < 0.1 * (y[60:] - y[59]).max()

    @pytest.mark.parametrize("up", [0.2, 9.0])
    def test_a_level_of_twice_as_much_is_decided_half_moved_and_half_stretched(self, up):
        rng = rng_for(7, "level")
        y = rng.gamma(20.0, 5.0, 200)
        X = y[:, None] * rng.normal(1.0, 0.1, (200, 2))
        stack = fitted(X, y, Pieces.kinked(up=up, down=1.0))
        assert stack.trend.tolist() == [0, 1]
        top = stack.most[None]
        inside = stack(top)[0]
        assert stack(2.0 * top)[0] == pytest.approx(
            np.mean([2.0 * inside, stack(2.0 * top - top.max())[0] + top.max()]), rel=1e-9
        )

    def test_outcomes_of_both_signs_are_only_moved(self):
        X, y = growing(60)
        one, other = fitted(X, y), fitted(X - 180.0, y - 180.0)
        far = X[-1:] + 40.0
        assert other.lower < 0.0
        up = (far - one.most).max()
        assert other(far - 180.0) == pytest.approx(other(far - 180.0 - up) + up)

    def test_a_unit_that_outcomes_share_with_their_past_carries_over(self):
        X, y = growing(60)
        one, other = fitted(X, y), fitted(8.0 * X, 8.0 * y)
        far = X + np.array([70.0, 60.0])
        assert other(8.0 * far) == pytest.approx(8.0 * one(far), rel=1e-6)

    def test_lines_without_a_past_go_on_for_a_while(self):
        rng = rng_for(8, "lines")
        X = rng.uniform(size=(80, 2))
        y = 1e3 + 100.0 * X[:, 0] + 6.0 * rng.standard_normal(80)
        stack = fitted(X, y)
        assert stack.trend.tolist() == []
        assert stack.line is None
        at = np.array([[1.0, 0.5], [1.0 + 0.9 * MOST_RANGES_OF_LINES, 0.5], [1.6, 0.5], [1.9, 0.5]])
        edge, near, far, farther = stack(at)
        assert 20.0 * MOST_RANGES_OF_LINES < near - edge < 100.0 * MOST_RANGES_OF_LINES
        assert near < far == farther

    @pytest.mark.parametrize("unit", [1.0, 1e3])
    def test_lines_in_long_tails_go_on_as_far_as_the_farthest_rows_show(self, unit):
        X, y = incomes(80)
        stack = fitted(unit * X, y)
        assert stack.trend.tolist() == []
        ranges = np.array([0.9, 0.5 * stack.lines[1, 0]])
        at = stack.most + ranges[:, None] * np.array([stack.most[0] - stack.least[0], 0.0])
        at[:, 1] = unit
        assert stack(at) == pytest.approx(5.0 * at[:, 0] / unit, rel=0.1)
        beyond = np.array([[1e9 * unit, unit], [1e8 * unit, unit]])
        assert np.ptp(stack(beyond)) == 0.0
        assert stack.far(beyond)[:, 0].all()
        assert stack.far(at)[:, 0].tolist() == [False, True]  # followed, and named

    def test_lines_go_on_on_the_side_of_the_long_tail_alone(self):
        X, y = incomes(80)
        stack = fitted(X, y)
        assert stack.lines[0].tolist() == [0.0, 0.0]
        below = np.array([[stack.least[0] - 2.0 * np.ptp(X[:, 0]), 1.0], [stack.least[0], 1.0]])
        far, edge = stack(below)
        assert far == pytest.approx(edge, abs=0.05 * np.ptp(y))

    def test_a_line_that_ends_in_the_tail_is_not_followed(self):
        X, y = incomes(80)
        y = np.minimum(y, 15.0) + 0.1 * y.std() * rng_for(1, "ends").standard_normal(80)
        stack = fitted(X, y)
        assert not stack.lines.any()

    def test_no_tail_no_line(self):
        rng = rng_for(8, "lines")
        X = rng.uniform(size=(80, 2))
        assert not fitted(X, 1e3 + 100.0 * X[:, 0] + rng.standard_normal(80)).lines.any()

    def test_no_line_is_asked_of_the_past(self):
        X, past = incomes(80)[0], np.array([0])
        X[:, 0] *= 5.0
        outcomes = X[:, 0] + 1e-3
        assert ranges_of(X, outcomes, past[:0])[1, 0] > 0.0
        assert not ranges_of(X, outcomes, past).any()

    def test_protection_follows_no_lines(self):
        X, y = incomes(80)
        assert Ensemble(protect=0.5).fit(X, y, None, COST, seed=0).stack.lines is None

    def test_other_columns_are_not_followed(self):
        past, y = growing(60)
        X = np.column_stack([past, np.sin(2.0 * np.pi * np.arange(60) / 60.0)])
        stack, far = fitted(X, y), X[-1:].copy()
        far[0, 2] = 1.9
        cut = far.copy()
        cut[0, 2] = stack.most[2] + stack.margin * (stack.most[2] - stack.least[2])
        assert stack(far) == stack(cut)

    def test_a_lone_far_number_is_taken_as_the_nearest_seen(self):
        X, y = growing(60)
        stack = fitted(X, y)
        typed, nearest = X[-1:].copy(), X[-1:].copy()
        typed[0, 0], nearest[0, 0] = 1e6, 1e6
        room = stack.margin * (stack.most[0] - stack.least[0])
        nearest[0, 0] = stack.most[0] + room
        assert stack(typed) == pytest.approx(stack(nearest))

    def test_growth_is_followed_however_far_where_a_second_lag_bears_witness(self):
        X, y = growing(60)
        level = y.max() + 60.0 * np.ptp(y)
        assert fitted(X, y)(np.full((1, 2), level))[0] == pytest.approx(level, rel=0.2)

    def test_what_is_far_away_ends_somewhere(self):
        X, y = growing(60)
        stack = fitted(X, y)
        assert stack(np.full((1, 2), 1e12)) == pytest.approx(stack(np.full((1, 2), 1e9)))
        assert stack(np.full((1, 2), 1e12))[0] < y.max() + (MOST_RANGES + 1.0) * np.ptp(y)

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

    @pytest.mark.parametrize("way", [(6.0, 2.0), (2.0, -2.0), (-0.7, 0.4)])
    def test_decisions_do_not_jump(self, way):
        X, y = growing(60)
        stack = fitted(X, y)
        path = np.linspace(X[30], X[30] + np.array(way) * np.ptp(X, axis=0), 4_000)
        steps = np.abs(np.diff(stack(path)))
        assert steps.max() < 20.0 * np.ptp(y) / len(path)

    def test_decisions_do_not_jump_where_nothing_is_followed(self):
        rng = rng_for(5, "flat")
        X = rng.standard_normal((30, 3))
        stack = fitted(X, X[:, 0] + 0.3 * X[:, 1] + rng.standard_normal(30))
        for _ in range(20):
            ends = 4.0 * rng.standard_normal((2, 3))
            steps = np.abs(np.diff(stack(np.linspace(*ends, 4_000))))
            smooth = np.sort(steps)[-40:]
            assert smooth[-1] < 0.5  # a forest has steps, of a few hundredths each

    @pytest.mark.parametrize("trend", [np.array([2]), np.array([-1]), np.array([0.5])])
    def test_columns_that_there_are_not_are_refused(self, trend):
        with pytest.raises((InvalidInputError, InvalidTypeError)):
            replace(fitted(*growing(40)), trend=trend)

    def test_what_an_earlier_file_followed_is_not_forgotten_in_silence(self):
        stack = fitted(*growing(40))
        line = stack.members[0]
        idle = Trend(np.array([[1.0, 0.0], [-1.0, 0.0]]), line, 1.0)
        assert replace(stack, trend=idle).trend is None
        with pytest.raises(InvalidInputError, match=r"got that of an earlier version: fit anew"):
            Trend(np.array([[1.0, 0.0], [2.0, 0.0]]), line, 1.0)


class TestUnboundedColumns:
    def test_short_tails_have_a_bound(self):
        X = np.random.default_rng(0).uniform(size=(100, 4))
        assert not unbounded_columns(X, np.full(4, 1e9), 1e-9).any()

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_long_tails_on_either_side_have_none_if_they_matter(self, sign):
        X = sign * np.random.default_rng(0).pareto(1.5, size=(100, 2))
        assert unbounded_columns(X, np.array([sign, 0.0]), 0.01).tolist() == [True, False]
        assert not unbounded_columns(X, np.array([1.0, 1.0]), np.abs(X).max()).any()

    def test_flags_and_constants_have_no_tail(self):
        X = np.column_stack([np.arange(50) == 3, np.zeros(50)]).astype(float)
        assert not unbounded_columns(X, np.ones(2), 0.0).any()
