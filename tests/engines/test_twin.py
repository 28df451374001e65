"""One step of DA-SGD as a formula: what it reads, what it leaves alone, where it heads."""

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.certificates import best_response, worst_case_value
from surefoot.engines.twin import holding_multiplier, initial_state, multiplier, update
from surefoot.problem import AffineProblem

law = settings(derandomize=True, deadline=None, max_examples=25)


def run(problem: AffineProblem, steps: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    state = initial_state(problem)
    for row in rng.choice(len(problem.weights), size=steps, p=problem.weights):
        state, _ = update(state, (problem.contexts[row], problem.outcomes[row]), problem)
    return state


def test_update_is_pure_and_says_what_it_saw(make_affine):
    problem = make_affine(1, box="closed", outcome_cost=2.0)
    state = run(problem, 20)
    before = {f.name: np.copy(getattr(state, f.name)) for f in fields(state)}
    x, y = problem.contexts[2], problem.outcomes[2]
    stepped, info = update(state, (x, y), problem)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(state, name), value)
    assert stepped.steps == state.steps + 1
    assert info.multiplier == multiplier(state, problem)
    answer = best_response(problem, state.theta, state.intercept, info.multiplier)
    assert info.slope == answer.slope[2]
    assert info.distance == answer.distance[2]
    np.testing.assert_array_equal(info.context, x + answer.context_moves[2])
    assert info.outcome == y + answer.outcome_moves[2]


@pytest.mark.parametrize("order", [1, 2])
def test_the_gradient_is_that_of_the_dual(make_affine, order):
    # With the multiplier profiled, the step of theta is along the gradient of the worst case's
    # integrand; over all rows its mean is the gradient of the worst case itself at the right E[p^2].
    problem = make_affine(2, rows=9, order=order, frozen=(1,), weighted=True)
    state = initial_state(problem)
    theta, t = np.array([0.4, -0.6, 0.5]), 0.3
    _, gamma = worst_case_value(problem, theta, t)
    square = (2 * problem.radius * gamma / problem.reach(theta)) ** 2
    state = type(state)(theta, t, t, 0.0, square, travelled=1.0, intercept_travelled=1.0)
    mean, mean_slope = np.zeros(3), 0.0
    for x, y, w in zip(problem.contexts, problem.outcomes, problem.weights, strict=True):
        stepped, info = update(state, (x, y), problem)
        mean += w * (theta - stepped.theta) * math.sqrt(stepped.squares)
        mean_slope += w * info.slope
    eps = 1e-6

    def value(shift, t_shift=0.0):
        return worst_case_value(problem, theta + shift, t + t_shift)[0]

    numeric = [(value(eps * e) - value(-eps * e)) / (2 * eps) for e in np.eye(3)]
    np.testing.assert_allclose(mean, numeric, atol=1e-6)
    assert mean_slope == pytest.approx((value(0, eps) - value(0, -eps)) / (2 * eps), abs=1e-6)


def test_the_multiplier_of_a_box_rises_when_the_adversary_overspends(make_affine):
    for radius, rises in ((0.01, True), (5.0, False)):
        problem = make_affine(3, box="closed", radius=radius)
        state = run(problem, 1)
        state = type(state)(np.array([0.5, -0.5, 0.5]), 0.0, 0.0, math.log(0.3), 0.2, 1.0, 1.0)
        sample = problem.contexts[4], problem.outcomes[4]
        stepped, info = update(state, sample, problem)
        assert bool(info.distance > radius**2) is rises
        assert bool(stepped.log_multiplier > state.log_multiplier) is rises


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed"])
def test_radius_zero_is_plain_stochastic_gradient_descent(make_affine, order, box):
    problem = make_affine(4, order=order, box=box, radius=0.0)
    state = run(problem, 30)
    for row in range(8):
        sample = problem.contexts[row], problem.outcomes[row]
        stepped, info = update(state, sample, problem)
        r = sample[0] @ state.theta + state.intercept - sample[1]
        assert info.slope == (problem.pieces.up if r >= 0 else -problem.pieces.down)
        assert info.distance == 0.0
        np.testing.assert_array_equal(info.context, sample[0])
        direction = state.theta - stepped.theta
        gradient = info.slope * sample[0]
        step = state.travelled / math.sqrt(state.squares + gradient @ gradient)
        np.testing.assert_allclose(direction, step * gradient, atol=1e-14)


def test_a_first_slope_of_exactly_zero_does_no_harm(make_affine):
    # b = h and a smoothed cost: at r = 0 the slope is zero, and the start lies on a row's outcome.
    problem = make_affine(5, rows=9, backorder=1.0, holding=1.0, smoothing=0.2)
    state = initial_state(problem)
    row = int(np.flatnonzero(problem.outcomes == state.intercept)[0])
    stepped, info = update(state, (problem.contexts[row], problem.outcomes[row]), problem)
    assert info.slope == 0.0
    assert stepped.intercept == state.intercept


@given(seed=st.integers(0, 10_000))
@law
def test_the_holding_multiplier_separates_finite_from_infinite(make_affine, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(
        seed % 5,
        order=1,
        box="open",
        outcome_cost=rng.choice([math.inf, 0.5]),
        frozen=((), (0,))[seed % 2],
    )
    theta = rng.normal(size=3)
    held, gradient = holding_multiplier(theta, problem)
    assert np.isfinite(best_response(problem, theta, 0.0, held * (1 + 1e-6) + 1e-9).value).all()
    if held > 0:
        assert np.isinf(best_response(problem, theta, 0.0, held * (1 - 1e-6)).value).any()
    shifted = [holding_multiplier(theta + 1e-6 * e, problem)[0] for e in np.eye(3)]
    np.testing.assert_allclose((np.array(shifted) - held) / 1e-6, gradient, atol=1e-4)


def test_nothing_needs_holding_in_a_closed_box_or_with_order_two(make_affine):
    theta = np.array([1.0, -1.0, 2.0])
    for options in ({"order": 1, "box": "closed"}, {"order": 2, "box": "open"}):
        held, gradient = holding_multiplier(theta, make_affine(1, **options))
        assert held == 0.0
        assert not gradient.any()


def test_the_start_is_the_constant_order(make_affine):
    problem = make_affine(6)
    state = initial_state(problem)
    assert state.intercept == state.start == problem.constant_order()[0]
    assert not state.theta.any()
    without = initial_state(make_affine(6, intercept=False))
    assert without.intercept == without.start == 0.0
