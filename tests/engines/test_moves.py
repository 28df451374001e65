"""Compiled moves of one row against the certificate's own and against a few lines of NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.certificates import best_response
from surefoot.engines import twin
from surefoot.engines.moves import box_move, cost_slope, gradient_move, holding_multiplier

law = settings(derandomize=True, deadline=None, max_examples=40)


def kernel_options(problem):
    low_y, high_y = problem.outcome_bounds
    return problem.outcome_cost, problem.lower, problem.upper, low_y, high_y


def prox_moves(problem, row, theta, t, gamma, inner_steps):
    """K proximal gradient steps of design section 4, for contexts only."""
    x, y, pieces = problem.contexts[row], problem.outcomes[row], problem.pieces
    eta, move = 1 / (2 * gamma), np.zeros_like(x)
    for _ in range(inner_steps):
        r = (x + move) @ theta + t - y
        slope = pieces.up if r >= 0 else -pieces.down
        if abs(r) < pieces.smoothing:
            slope = (pieces.up + pieces.down) / (2 * pieces.smoothing) * r + (
                pieces.up - pieces.down
            ) / 2
        gradient = np.where(problem.movable, slope * theta, 0.0)
        if problem.order == 2:
            move = move + eta * (gradient - 2 * gamma * move)
        else:
            v = move + eta * gradient
            move = max(0.0, 1 - eta * gamma / np.linalg.norm(v)) * v
        move = np.clip(move, problem.lower - x, problem.upper - x)
    return move


@pytest.mark.parametrize("order", [1, 2])
@given(seed=st.integers(0, 10_000))
@law
def test_box_move_is_the_certificates_best_response(make_affine, order, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(
        seed % 5, columns=4, order=order, box="closed", outcome_cost=rng.choice([math.inf, 0.5]),
        frozen=((), (3,))[seed % 2],
    )  # fmt: skip
    theta, t = rng.normal(size=4), rng.normal()
    gamma = rng.uniform(0.05, 1.2) * problem.pieces.steepest * problem.reach(theta)
    answer = best_response(problem, theta, t, gamma)
    out, n_movable = np.full(4, np.nan), int(problem.movable.sum())
    for row, (x, y) in enumerate(zip(problem.contexts, problem.outcomes, strict=True)):
        gain, outcome_move, distance = box_move(
            x, y, theta, answer.slope[row], gamma, order, *kernel_options(problem), n_movable, out
        )
        np.testing.assert_allclose(out, answer.context_moves[row], atol=1e-11)
        assert outcome_move == pytest.approx(answer.outcome_moves[row], abs=1e-12)
        assert gain == pytest.approx(float(out @ theta), abs=1e-11)
        assert distance == pytest.approx(answer.distance[row], abs=1e-11)


def test_bounds_on_outcomes_that_cannot_move_do_not_push_them():
    x, theta, out = np.array([0.5]), np.array([1.0]), np.zeros(1)
    _, outcome_move, distance = box_move(
        x, 5.0, theta, 1.0, 2.0, 2, math.inf, np.zeros(1), np.ones(1), 2.0, 3.0, 1, out
    )
    assert outcome_move == 0.0
    assert distance == out[0] ** 2


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed"])
@given(seed=st.integers(0, 10_000))
@law
def test_gradient_move_takes_proximal_steps(make_affine, order, box, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(
        seed % 5, columns=4, order=order, box=box, frozen=(3,), smoothing=rng.choice([0.0, 0.5])
    )
    theta, t = rng.normal(size=4), rng.normal()
    gamma, inner_steps = rng.uniform(0.2, 1.5) * problem.reach(theta), int(rng.integers(1, 8))
    out = np.full(4, np.nan)
    for row, r in enumerate(problem.residuals(theta, t)):
        moved, distance = gradient_move(
            problem.contexts[row], theta, r, gamma, order, problem.pieces.up, problem.pieces.down,
            problem.pieces.smoothing, problem.lower, problem.upper, 3, inner_steps, out,
        )  # fmt: skip
        expected = prox_moves(problem, row, theta, t, gamma, inner_steps)
        np.testing.assert_allclose(out, expected, atol=1e-9)
        assert moved == pytest.approx(r + float(expected @ theta), abs=1e-9)
        assert distance == pytest.approx(np.linalg.norm(expected) ** order, abs=1e-9)


@pytest.mark.parametrize("box", ["closed", "open"])
@given(seed=st.integers(0, 10_000))
@law
def test_holding_multiplier_is_its_twin(make_affine, box, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(
        seed % 5, columns=4, order=1, box=box, outcome_cost=rng.choice([math.inf, 0.5, 2.0]),
        backorder=rng.uniform(0.1, 2), frozen=((), (3,))[seed % 2],
    )  # fmt: skip
    theta, out = rng.normal(size=4), np.full(4, np.nan)
    held = holding_multiplier(
        theta, problem.pieces.up, problem.pieces.down, *kernel_options(problem),
        int(problem.movable.sum()), out,
    )  # fmt: skip
    expected, gradient = twin.holding_multiplier(theta, problem)
    assert held == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(out, gradient, atol=1e-12)


@given(r=st.floats(-3, 3), delta=st.sampled_from([0.0, 0.4, 2.0]))
@law
def test_cost_slope_is_the_derivative_of_the_cost(make_affine, r, delta):
    pieces = make_affine(0, smoothing=delta, backorder=1.0, holding=0.3).pieces
    if delta == 0.0 and abs(r) < 1e-5:
        r = 1.0
    numeric = (pieces.evaluate(np.array(r + 1e-7)) - pieces.evaluate(np.array(r - 1e-7))) / 2e-7
    assert cost_slope(r, pieces.up, pieces.down, delta) == pytest.approx(float(numeric), abs=1e-5)
