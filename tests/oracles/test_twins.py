"""The twins obey their own laws: what a step reads, what it leaves alone, where it heads."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.ambiguity import WassersteinForm
from surefoot.ambiguity.moves import best_moves
from surefoot.costs import Pieces
from surefoot.engines.arrangement import Arrangement
from tests.oracles.affine_twin import (
    State,
    arranged,
    first_distance,
    holding_multiplier,
    initial_state,
    multiplier,
    update,
)
from tests.oracles.stream_twin import Columns, Stream, StreamRules, decide, stream_update, taken_in

THREE_LINES = Pieces((-1.5, -0.4, 0.6), (-1.1, 0.0, 0.0))
law = settings(derandomize=True, deadline=None, max_examples=25)


def run(form: WassersteinForm, steps: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    state = initial_state(form)
    for row in rng.choice(len(form.weights), size=steps, p=form.weights):
        state, _ = update(state, (form.contexts[row], form.outcomes[row]), form)
    return state


def test_update_is_pure_and_says_what_it_saw(make_affine):
    form = make_affine(1, box="closed", outcome_cost=2.0)
    state = run(form, 20)
    before = {f.name: np.copy(getattr(state, f.name)) for f in fields(state)}
    x, y = form.contexts[2], form.outcomes[2]
    stepped, info = update(state, (x, y), form)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(state, name), value)
    assert stepped.steps == state.steps + 1
    assert info.multiplier == multiplier(state, form)
    answer = best_moves(form, state.theta, state.intercept, info.multiplier)
    assert info.slope == answer.slope[2]
    assert info.distance == answer.distance[2]
    np.testing.assert_array_equal(info.context, x + answer.contexts[2])
    assert info.outcome == y + answer.outcomes[2]


@pytest.mark.parametrize("lines", [2, 3])
@pytest.mark.parametrize("order", [1, 2])
def test_the_gradient_is_that_of_the_dual(make_affine, order, lines):
    # With the multiplier profiled, the step of theta is along the gradient of the worst case's
    # integrand; over all rows its mean is the gradient of the worst case itself at the right E[p^2].
    form = make_affine(2, rows=9, order=order, frozen=(1,), weighted=True)
    form = form if lines == 2 else replace(form, pieces=THREE_LINES)
    theta, t = np.array([0.4, -0.6, 0.5]), 0.3
    _, gamma = form.worst_value(theta, t)
    square = (2 * form.radius * gamma / form.dual_norm(theta)) ** 2
    state = State(theta, t, t, 1.0, 0.0, square, travelled=1.0, intercept_travelled=1.0)
    mean, mean_slope = np.zeros(3), 0.0
    for x, y, w in zip(form.contexts, form.outcomes, form.weights, strict=True):
        stepped, info = update(state, (x, y), form)
        mean += w * (theta - stepped.theta) * math.sqrt(stepped.squares)
        mean_slope += w * info.slope
    eps = 1e-6

    def value(shift, t_shift=0.0):
        return form.worst_value(theta + shift, t + t_shift)[0]

    numeric = [(value(eps * e) - value(-eps * e)) / (2 * eps) for e in np.eye(3)]
    np.testing.assert_allclose(mean, numeric, atol=1e-6)
    assert mean_slope == pytest.approx((value(0, eps) - value(0, -eps)) / (2 * eps), abs=1e-6)


def test_the_multiplier_of_a_box_rises_when_the_adversary_overspends(make_affine):
    for radius, rises in ((0.01, True), (5.0, False)):
        form = make_affine(3, box="closed", radius=radius)
        state = State(np.array([0.5, -0.5, 0.5]), 0.0, 0.0, 1.0, math.log(0.3), 0.2, 1.0, 1.0)
        sample = form.contexts[4], form.outcomes[4]
        stepped, info = update(state, sample, form)
        assert bool(info.distance > radius**2) is rises
        assert bool(stepped.log_multiplier > state.log_multiplier) is rises


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed"])
def test_radius_zero_is_plain_stochastic_gradient_descent(make_affine, order, box):
    form = make_affine(4, order=order, box=box, radius=0.0)
    state = run(form, 30)
    for row in range(8):
        sample = form.contexts[row], form.outcomes[row]
        stepped, info = update(state, sample, form)
        r = sample[0] @ state.theta + state.intercept - sample[1]
        assert info.slope == (form.pieces.up if r >= 0 else -form.pieces.down)
        assert info.distance == 0.0
        np.testing.assert_array_equal(info.context, sample[0])
        direction = state.theta - stepped.theta
        gradient = info.slope * sample[0]
        step = state.travelled / math.sqrt(state.squares + gradient @ gradient)
        np.testing.assert_allclose(direction, step * gradient, atol=1e-14)


def test_a_first_slope_of_exactly_zero_does_no_harm(make_affine):
    # b = h and a smoothed cost: at r = 0 the slope is zero, and the start lies on a row's outcome.
    form = make_affine(5, rows=9, backorder=1.0, holding=1.0, smoothing=0.2)
    state = initial_state(form)
    row = int(np.flatnonzero(form.outcomes == state.intercept)[0])
    stepped, info = update(state, (form.contexts[row], form.outcomes[row]), form)
    assert info.slope == 0.0
    assert stepped.intercept == state.intercept


@given(seed=st.integers(0, 10_000))
@law
def test_the_holding_multiplier_separates_finite_from_infinite(make_affine, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(
        seed % 5,
        order=1,
        box="open",
        outcome_cost=rng.choice([math.inf, 0.5]),
        frozen=((), (0,))[seed % 2],
    )
    theta = rng.normal(size=3)
    held, gradient = holding_multiplier(theta, form)
    assert np.isfinite(best_moves(form, theta, 0.0, held * (1 + 1e-6) + 1e-9).value).all()
    if held > 0:
        assert np.isinf(best_moves(form, theta, 0.0, held * (1 - 1e-6)).value).any()
    shifted = [holding_multiplier(theta + 1e-6 * e, form)[0] for e in np.eye(3)]
    np.testing.assert_allclose((np.array(shifted) - held) / 1e-6, gradient, atol=1e-4)


def test_nothing_needs_holding_in_a_closed_box_or_with_order_two(make_affine):
    theta = np.array([1.0, -1.0, 2.0])
    for options in ({"order": 1, "box": "closed"}, {"order": 2, "box": "open"}):
        held, gradient = holding_multiplier(theta, make_affine(1, **options))
        assert held == 0.0
        assert not gradient.any()


def test_the_start_is_the_constant_order(make_affine):
    form = make_affine(6)
    state = initial_state(form)
    assert state.intercept == state.start == form.constant_order()[0]
    assert not state.theta.any()
    without = initial_state(make_affine(6, intercept=False))
    assert without.intercept == without.start == 0.0


def test_a_form_and_its_arrangement_start_alike_but_for_the_centre(make_affine):
    form = make_affine(6, intercept=False, frozen=(0,))
    there = arranged(form, Arrangement.of(form, form.movable, rotate=False))
    for name in ("intercept", "start", "spread", "log_multiplier", "travelled"):
        one, other = (getattr(initial_state(f), name) for f in (form, there))
        assert one == pytest.approx(other, rel=1e-12), name


def test_a_first_distance_is_set_once_and_never_on_a_floor(make_affine):
    state = replace(initial_state(make_affine(6)), spread=2.0, travelled=0.0)
    assert first_distance(state, 0.0) == 0.0
    assert first_distance(state, 1e-30) == pytest.approx(2.0 / math.sqrt(3))  # three columns
    assert first_distance(state, 100.0) == pytest.approx(0.2)
    assert first_distance(replace(state, travelled=7.0), 100.0) == 7.0


# Streams


def no_columns(count):
    zeros, ends = np.zeros(count), np.full(count, np.inf)
    return Columns(zeros, zeros, zeros, ends, -ends, zeros > 0, zeros)


def test_columns_are_means_and_spreads_of_what_was_taken():
    X = np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 5.0, 0.1] + [0.0, 3.0, 50.0]
    X[::7, 1] = np.nan
    columns = no_columns(3)
    for x in X:
        columns = taken_in(columns, x)
    np.testing.assert_allclose(columns.mean, np.nanmean(X, axis=0), rtol=1e-12)
    np.testing.assert_allclose(columns.spread, np.nanstd(X, axis=0), rtol=1e-12)
    np.testing.assert_array_equal(columns.count, (~np.isnan(X)).sum(axis=0))
    np.testing.assert_array_equal(columns.low, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(columns.high, np.nanmax(X, axis=0))
    assert not columns.cut.any()


def test_a_window_counts_no_further():
    columns = no_columns(1)
    for value in np.random.default_rng(0).normal(size=500):
        columns = taken_in(columns, np.array([value]), window=20.0)
    assert columns.count[0] == 20.0
    assert 0.5 < columns.spread[0] < 2.0


@given(seed=st.integers(0, 10_000), slip=st.sampled_from([1e3, -1e6, 1e12]))
@law
def test_one_slip_widens_a_column_by_little(seed, slip):
    rng = np.random.default_rng(seed)
    columns = no_columns(1)
    for value in rng.normal(size=200):
        columns = taken_in(columns, np.array([value]))
    after = taken_in(columns, np.array([slip]))
    assert after.cut[0] == 1.0
    least, most = columns.range
    assert least[0] <= after.low[0] <= after.high[0] <= most[0]
    assert after.spread[0] < 1.1 * columns.spread[0]
    assert least[0] <= columns.known(np.array([slip]))[0] <= most[0]
    inside = taken_in(columns, np.array([0.5]))
    assert inside.cut[0] == 0.0


@pytest.mark.parametrize("intercept", [True, False])
def test_a_step_of_a_stream_is_pure_and_a_step_of_size_zero_moves_no_decision(make_affine, intercept):
    form = make_affine(2, rows=40, intercept=intercept)
    columns = no_columns(3)
    for x in form.contexts[:30]:
        columns = taken_in(columns, x)
    theta = np.array([0.4, -0.6, 0.5])
    state = replace(initial_state(form), theta=theta)
    stream = Stream(columns, state, theta, state.intercept, 30)
    sample = form.contexts[30], form.outcomes[30]
    before = [decide(stream, x, form) for x in form.contexts]
    still = stream_update(stream, sample, form, StreamRules(step_rule=1.0, step_size=0.0))
    moved = stream_update(stream, sample, form, StreamRules())
    np.testing.assert_allclose([decide(still, x, form) for x in form.contexts], before, rtol=1e-12)
    assert [decide(moved, x, form) for x in form.contexts] != before
    assert [decide(stream, x, form) for x in form.contexts] == before  # nothing was changed in place
    assert still.rows == moved.rows == 31
