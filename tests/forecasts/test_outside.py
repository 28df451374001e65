"""What a stack follows outside what was seen."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import RobustNewsvendor, load
from surefoot.costs import Pieces
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.forecasts.candidates import linear_errors
from surefoot.forecasts.ensemble import Ensemble
from surefoot.forecasts.outside import (
    LEAST_SURE_ROWS,
    decision_bounds,
    is_sure,
    lined,
    pasts,
    staying,
)
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import SureLine

COST = Pieces.kinked(up=1.0, down=1.0)


def tailed(n=120, seed=0):
    """A walk with its lag, and orders of very different sizes that count beside it."""
    rng = np.random.default_rng(seed)
    sizes = rng.pareto(3.0, size=n)
    z = 100.0 + np.cumsum(rng.normal(size=n + 1))
    return np.column_stack([z[:-1], sizes]), z[1:] + 5.0 * sizes


@pytest.mark.parametrize(("n", "room"), [(10, 4.0), (40, 2.0), (400, 0.2)])
def test_decisions_may_lie_further_outside_with_few_rows(n, room):
    outcomes = np.linspace(-1.0, 3.0, n)
    assert decision_bounds(outcomes) == pytest.approx((-1.0 - room, 3.0 + room))
    assert decision_bounds(outcomes + 1.0)[0] == 0.0


def test_lags_and_columns_like_outcomes_are_pasts_together():
    rng = np.random.default_rng(1)
    z = 50.0 + np.cumsum(rng.normal(size=81))
    X = np.column_stack([z[:-1], z[:-1] + 0.3 * rng.normal(size=80), rng.normal(size=80)])
    rows = Rows.of(X, z[1:], None)
    told = [found.tolist() for found in pasts(rows, np.array([True, False, False]))]
    assert told == [[0, 1], [0]]
    assert pasts(rows, None)[1].tolist() == []


def test_a_past_is_followed_by_its_level_and_other_tails_by_their_line():
    X, y = tailed()
    stack = Ensemble().fit(X, y, None, COST, 0, lagged=np.array([True, False])).stack
    assert stack.trend.tolist() == [0]
    assert (stack.lines[:, 0] == 0.0).all()
    assert stack.lines[1, 1] > 0.0
    assert stack.along.tolist() == [1.0, 0.0]  # what a line follows does not go with the level


def test_staying_leaves_all_but_the_past():
    X, y = tailed()
    X = np.column_stack([X, X[:, 0] / 3.0 + np.random.default_rng(2).normal(size=len(y))])
    stack = Ensemble().fit(X, X[:, 0], None, COST, 0, lagged=np.array([True, False, False])).stack
    assert stack.along[2] > 0.0
    assert staying(stack).along.tolist() == [1.0, 0.0, 0.0]


def straight(n=30, noise=0.0, seed=0):
    """Two columns, and outcomes that they compute but for noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 3.0, size=(n, 2))
    return X, 20.0 + 4.0 * X[:, 0] + 10.0 * X[:, 1] + noise * rng.normal(size=n)


def stack_of(X, y, protect=0.0):
    return Ensemble(protect).fit(X, y, None, COST, 0).stack


NONE = np.zeros(0, dtype=np.int64)


class TestLineThatHardlyErrs:
    def test_it_goes_on_beyond_what_was_seen(self):
        X, y = straight()
        new = np.array([[4.5, 4.5], [0.0, 0.2], [3.5, 2.0], [1.0, 3.9]])
        truth = 20.0 + 4.0 * new[:, 0] + 10.0 * new[:, 1]
        decided = stack_of(X, y)(new)
        assert decided == pytest.approx(truth, abs=0.02)

    def test_where_it_errs_by_more_nothing_is_followed_far(self):
        """A tenth of the outcome's spread is too much: contexts are cut as they were."""
        X, y = straight(noise=2.0)
        assert stack_of(X, y).line is None

    def test_inside_all_members_decide(self):
        X, y = straight(noise=0.02)
        stack = stack_of(X, y)
        assert stack.line is not None
        np.testing.assert_array_equal(stack(X), replace(stack, line=None)(X))

    @pytest.mark.parametrize("code", [9999.0, -999.0, 1500.0, 99.0])
    @pytest.mark.parametrize("columns", [[1], [0, 1]])
    def test_far_numbers_may_be_errors_one_by_one(self, code, columns):
        """The same code in every column is an error in every column."""
        X, y = straight()
        stack = stack_of(X, y)
        typed, edge = np.full((1, 2), 2.0), np.full((1, 2), 2.0)
        typed[0, columns], edge[0, columns] = code, (stack.most if code > 0.0 else stack.least)[columns]
        room = stack.margin * (stack.most - stack.least)[columns].sum() * 10.0
        assert abs(float((stack(typed) - stack(edge))[0])) < 1.01 * room
        assert stack.far(typed)[0, columns].all()

    def test_a_number_beside_a_far_one_is_followed_all_the_same(self):
        X, y = straight()
        stack = stack_of(X, y)
        both, alone = stack(np.array([[4.0, 9999.0], [4.0, stack.most[1]]]))
        assert both == pytest.approx(alone, abs=10.0 * 1.1 * stack.margin * np.ptp(X[:, 1]))

    def test_a_flag_goes_nowhere(self):
        X, y = straight()
        flag = (np.arange(30) % 3 == 0).astype(float)
        stack = stack_of(np.column_stack([X, flag]), y + 30.0 * flag)
        assert stack.line.slopes[2] == 0.0
        typed, right = stack(np.array([[4.0, 4.0, 2.0], [4.0, 4.0, 1.0]]))
        assert typed == pytest.approx(right, abs=30.0 * stack.margin + 0.1)

    @pytest.mark.parametrize("noise", [0.02, 2.0])
    def test_it_is_sure_for_every_cost_or_for_none(self, noise):
        """Or dearer shortages might order less."""
        X, y = straight(noise=noise)
        told = [
            Ensemble().fit(X, y, None, Pieces.kinked(up=1.0, down=down), 0).stack.line is None
            for down in (0.1, 1.0, 9.0)
        ]
        assert len(set(told)) == 1

    def test_it_is_never_negative_where_outcomes_were_not(self):
        X, y = straight()
        stack = stack_of(X, y - y.min() + 1.0)
        assert stack.line is not None
        assert stack(np.array([[-0.9, -0.9]])) == [0.0]

    def test_recent_errors_move_it_too(self):
        X, y = straight()
        stack, far = stack_of(X, y), np.array([[4.0, 4.0]])
        assert replace(stack, shift=3.0)(far) == pytest.approx(stack(far) + 3.0, rel=1e-12)

    def test_protection_follows_nothing(self):
        assert stack_of(*straight(), protect=0.5).line is None

    @pytest.mark.parametrize(("unit", "of_columns"), [(1e-6, 1e3), (1e9, 1e-3)])
    def test_units_do_not_matter(self, unit, of_columns):
        X, y = straight()
        far = np.array([[4.5, 4.5], [0.0, 0.2]])
        plain, other = stack_of(X, y)(far), stack_of(of_columns * X, unit * y)(of_columns * far)
        np.testing.assert_allclose(other, unit * plain, rtol=1e-9)

    def test_a_model_file_keeps_it(self, tmp_path):
        X, y = straight()
        model, far = RobustNewsvendor(4.0, 1.0).fit(X, y), np.array([[4.5, 4.5], [2.0, 3.9]])
        model.save(tmp_path / "line.surefoot")
        np.testing.assert_array_equal(load(tmp_path / "line.surefoot").predict(far), model.predict(far))

    def test_a_stack_takes_no_other_line(self):
        stack = stack_of(*straight())
        with pytest.raises(InvalidTypeError, match="line must be a SureLine"):
            replace(stack, line=3.0)
        with pytest.raises(InvalidTypeError, match="level must be a Level"):
            SureLine(3.0, stack.line.slopes)
        with pytest.raises(InvalidInputError, match="slopes"):
            SureLine(stack.line.level, stack.line.slopes[:1])
        narrow = stack_of(straight()[0][:, :1], 20.0 + straight()[0][:, 0])
        with pytest.raises(InvalidInputError, match="line"):
            replace(stack, line=narrow.line)

    @pytest.mark.parametrize("times", [0.9, 1.1])
    def test_it_may_err_by_a_twentieth_of_the_best_constant(self, times):
        X, y = straight()
        constant = np.abs(y - np.median(y)).mean()
        errors = 7.0 + times * 0.05 * constant * np.where(np.arange(30) % 2, 1.0, -1.0)
        assert is_sure(Rows.of(X, y, None), NONE, NONE, errors) == (times < 1.0)

    @pytest.mark.parametrize(("error", "sure"), [(0.2, True), (0.4, False)])
    def test_beside_its_past_it_must_know_why_outcomes_change(self, error, sure):
        """Steps of one: an error of 0.4 is more than three tenths of them, if a small one of the level."""
        steps = np.where(np.random.default_rng(0).permutation(60) % 2, 1.0, -1.0)
        y = np.cumsum(np.r_[0.0, steps + 3.0])
        rows = Rows.of(np.column_stack([y[:-1], steps]), y[1:], None)
        errors = np.where(np.arange(60) % 2, error, -error)
        assert is_sure(rows, NONE, NONE, errors)
        assert is_sure(rows, np.array([0]), NONE, errors) == sure

    def test_a_smooth_curve_knows_nothing_that_its_past_does_not(self):
        """Two earlier outcomes compute the next one of it, until it turns."""
        y = 100.0 / (1.0 + np.exp(-0.15 * (np.arange(44) - 40.0)))
        X, lags = np.column_stack([y[1:-1], y[:-2]]), np.array([0, 1])
        rows = Rows.of(X, y[2:], None)
        errors = linear_errors(rows, 0)
        assert is_sure(rows, lags, NONE, errors)
        assert not is_sure(rows, lags, lags, errors)
        driven = Rows.of(np.column_stack([X, np.cos(np.arange(42.0) ** 2)]), y[2:], None)
        jumps = driven.telling(y[2:] + 9.0 * driven.contexts[:, 2])
        assert is_sure(jumps, lags, lags, errors)

    @pytest.mark.parametrize("n", [LEAST_SURE_ROWS - 1, LEAST_SURE_ROWS])
    def test_a_handful_of_rows_is_sure_of_nothing(self, n):
        X, y = straight(n)
        assert is_sure(Rows.of(X, y, None), NONE, NONE, np.zeros(n)) == (n >= LEAST_SURE_ROWS)

    def test_masses_count(self):
        X, y = straight()
        errors = np.where(np.arange(30) < 3, 50.0, 0.0)
        told = [
            is_sure(Rows.of(X, y, masses), NONE, NONE, errors)
            for masses in (None, np.where(np.arange(30) < 3, 1e-3, 1.0))
        ]
        assert told == [False, True]

    def test_one_that_is_lined_says_what_its_linear_forecast_says(self):
        X, y = straight(noise=2.0)
        stack = lined(stack_of(X, y), Rows.of(X, y, None))
        far = np.array([[3.4, 3.4], [0.4, 3.5]])
        np.testing.assert_allclose(stack(far), stack.members[1](far), rtol=1e-9)
        assert (stack.slopes == stack.members[1].forecast.theta).all()
