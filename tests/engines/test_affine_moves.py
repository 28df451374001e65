"""Compiled moves of one row against the ambiguity set's own and against a few lines of NumPy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.ambiguity.moves import best_moves, order_two_slope
from surefoot.costs import Pieces
from surefoot.engines.affine_moves import best_line, box_move, cost_slope, gradient_move, held_from
from tests.oracles.affine_twin import holding_multiplier

law = settings(derandomize=True, deadline=None, max_examples=40)
THREE_LINES = Pieces((-1.5, -0.4, 0.6), (-1.1, 0.0, 0.0))
LINES = pytest.mark.parametrize("lines", [2, 3], ids=["two lines", "three lines"])


def with_lines(form, lines):
    return form if lines == 2 else replace(form, pieces=THREE_LINES)


def kernel_lines(pieces):
    return np.array(pieces.slopes), np.array(pieces.intercepts)


def support(form, row=0):
    return form.lower, form.upper, form.outcome_lower[row], form.outcome_upper[row]


def prox_moves(form, row, theta, t, gamma, inner_steps):
    """K proximal gradient steps of design section 4, for contexts only."""
    x, y, pieces = form.contexts[row], form.outcomes[row], form.pieces
    eta, move = 1 / (2 * gamma), np.zeros_like(x)
    for _ in range(inner_steps):
        r = (x + move) @ theta + t - y
        slope = float(pieces.slope_at(np.array(r)))
        if abs(r) < pieces.smoothing:
            slope = (pieces.up + pieces.down) / (2 * pieces.smoothing) * r + (
                pieces.up - pieces.down
            ) / 2
        gradient = np.where(form.movable, slope * theta, 0.0)
        if form.order == 2:
            move = move + eta * (gradient - 2 * gamma * move)
        else:
            v = move + eta * gradient
            move = max(0.0, 1 - eta * gamma / np.linalg.norm(v)) * v
        move = np.clip(move, form.lower - x, form.upper - x)
    return move


@LINES
@pytest.mark.parametrize("order", [1, 2])
@given(seed=st.integers(0, 10_000))
@law
def test_box_move_is_the_certificates_best_response(make_affine, order, lines, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(
        seed % 5, columns=4, order=order, box="closed", outcome_cost=rng.choice([math.inf, 0.5]),
        frozen=((), (3,))[seed % 2],
    )  # fmt: skip
    form = with_lines(form, lines)
    theta, t = rng.normal(size=4), rng.normal()
    gamma = rng.uniform(0.05, 1.2) * form.pieces.steepest * form.dual_norm(theta)
    answer = best_moves(form, theta, t, gamma)
    out, n_movable = np.full(4, np.nan), int(form.movable.sum())
    for row, (x, y) in enumerate(zip(form.contexts, form.outcomes, strict=True)):
        gain, outcome_move, distance = box_move(
            x, y, theta, answer.slope[row], gamma, order, form.inverse_kappa, *support(form, row),
            n_movable, out,
        )  # fmt: skip
        np.testing.assert_allclose(out, answer.contexts[row], atol=1e-11)
        assert outcome_move == pytest.approx(answer.outcomes[row], abs=1e-12)
        assert gain == pytest.approx(float(out @ theta), abs=1e-11)
        assert distance == pytest.approx(answer.distance[row], abs=1e-11)


def test_bounds_on_outcomes_that_cannot_move_do_not_push_them():
    x, theta, out = np.array([0.5]), np.array([1.0]), np.zeros(1)
    _, outcome_move, distance = box_move(
        x, 5.0, theta, 1.0, 2.0, 2, 0.0, np.zeros(1), np.ones(1), 2.0, 3.0, 1, out
    )
    assert outcome_move == 0.0
    assert distance == out[0] ** 2


@LINES
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed"])
@given(seed=st.integers(0, 10_000))
@law
def test_gradient_move_takes_proximal_steps(make_affine, order, box, lines, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(
        seed % 5, columns=4, order=order, box=box, frozen=(3,), smoothing=rng.choice([0.0, 0.5])
    )
    form = with_lines(form, lines)
    theta, t = rng.normal(size=4), rng.normal()
    gamma, inner_steps = rng.uniform(0.2, 1.5) * form.dual_norm(theta), int(rng.integers(1, 8))
    out = np.full(4, np.nan)
    for row, r in enumerate(form.residuals(theta, t)):
        moved, distance = gradient_move(
            form.contexts[row], theta, r, gamma, order, *kernel_lines(form.pieces),
            form.pieces.smoothing, form.lower, form.upper, 3, inner_steps, out,
        )  # fmt: skip
        expected = prox_moves(form, row, theta, t, gamma, inner_steps)
        np.testing.assert_allclose(out, expected, atol=1e-9)
        assert moved == pytest.approx(r + float(expected @ theta), abs=1e-9)
        assert distance == pytest.approx(np.linalg.norm(expected) ** order, abs=1e-9)


@LINES
@pytest.mark.parametrize("box", ["closed", "open"])
@given(seed=st.integers(0, 10_000))
@law
def test_the_holding_multiplier_is_its_twin(make_affine, box, lines, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(
        seed % 5, columns=4, order=1, box=box, outcome_cost=rng.choice([math.inf, 0.5, 2.0]),
        backorder=rng.uniform(0.1, 2), frozen=((), (3,))[seed % 2],
    )  # fmt: skip
    form = with_lines(form, lines)
    theta, out = rng.normal(size=4), np.full(4, np.nan)
    held = held_from(
        theta, np.array(form.pieces.slopes), form.inverse_kappa, *support(form),
        int(form.movable.sum()), out,
    )  # fmt: skip
    expected, gradient = holding_multiplier(theta, form)
    assert held == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(out, gradient, atol=1e-12)


@given(r=st.floats(-3, 3), delta=st.sampled_from([0.0, 0.4, 2.0]))
@law
def test_cost_slope_is_the_derivative_of_the_cost(make_affine, r, delta):
    pieces = make_affine(0, smoothing=delta, backorder=1.0, holding=0.3).pieces
    if delta == 0.0 and abs(r) < 1e-5:
        r = 1.0
    numeric = (pieces.evaluate(np.array(r + 1e-7)) - pieces.evaluate(np.array(r - 1e-7))) / 2e-7
    found = cost_slope(r, *kernel_lines(pieces), delta)
    assert found == pytest.approx(float(numeric), abs=1e-5)


@given(r=st.floats(-3, 3))
@law
def test_cost_slope_is_the_derivative_of_a_cost_of_three_lines(r):
    if np.abs(THREE_LINES.kinks - r).min() < 1e-5:
        r += 0.1
    values = THREE_LINES.evaluate(np.array([r - 1e-7, r + 1e-7]))
    found = cost_slope(r, *kernel_lines(THREE_LINES), 0.0)
    assert found == pytest.approx(np.diff(values)[0] / 2e-7, abs=1e-5)


def test_at_a_kink_the_slope_is_the_upper_one():
    plain = Pieces.kinked(up=0.3, down=1.0)
    assert cost_slope(0.0, *kernel_lines(plain), 0.0) == 0.3
    halves = Pieces((-1.0, -0.5, 0.25), (-1.0, 0.0, 0.0))  # kinks at -2 and 0, without rounding
    assert [cost_slope(kink, *kernel_lines(halves), 0.0) for kink in (-2.0, 0.0)] == [-0.5, 0.25]


@given(r=st.floats(-3, 3), k=st.floats(0, 5), which=st.integers(0, 2))
@law
def test_best_line_is_the_slope_of_the_best_move_of_order_two(r, k, which):
    pieces = (THREE_LINES, Pieces.kinked(0.3, 1.0), Pieces.kinked(0.3, 1.0, smoothing=0.7))[which]
    found = best_line(r, k, *kernel_lines(pieces), pieces.smoothing)
    assert found == pytest.approx(float(order_two_slope(pieces, np.array(r), k)), abs=1e-12)
