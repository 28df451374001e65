"""The unfused kernel: boxes, minibatches and gradient inner steps, step for step."""

import itertools
import math

import numpy as np
import pytest

from surefoot.certificates import best_response
from surefoot.engines.constants import HOLDING_SHARE, LOG_STEP, PRIOR_SLOPES, SLOPE_WINDOW
from surefoot.engines.twin import State, holding_multiplier, initial_state, multiplier, update
from surefoot.solvers.adaptive import AdaptiveRun

FIELDS = (
    "intercept", "start", "log_multiplier", "square_slope", "travelled", "intercept_travelled",
    "squares", "intercept_squares", "multiplier_squares", "steps",
)  # fmt: skip


def draws_for(problem, count=200):
    return np.random.default_rng(0).choice(len(problem.weights), size=count, p=problem.weights)


def assert_same_state(ours, theirs, tolerance=1e-10):
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=tolerance, atol=tolerance)
    for name in FIELDS:
        expected = getattr(theirs, name)
        assert getattr(ours, name) == pytest.approx(expected, rel=tolerance, abs=tolerance), name


def gradient_moves(problem, theta, intercept, gamma, inner_steps):
    """Slopes, moves and distances of all rows after proximal gradient steps."""
    moves, eta, pieces = np.zeros_like(problem.contexts), 1 / (2 * gamma), problem.pieces
    low, high = problem.lower - problem.contexts, problem.upper - problem.contexts

    def slopes():
        r = problem.residuals(theta, intercept) + moves @ theta
        return np.where(r >= 0, pieces.up, -pieces.down)

    for _ in range(inner_steps):
        pull = slopes()[:, None] * np.where(problem.movable, theta, 0.0)
        if problem.order == 2:
            moves = eta * pull
        else:
            v = moves + eta * pull
            length = np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
            moves = np.maximum(0.0, 1 - eta * gamma / length) * v
        moves = np.clip(moves, low, high)
    return slopes(), moves, np.linalg.norm(moves, axis=1) ** problem.order


def batch_update(state: State, rows, problem, inner_steps=0) -> State:
    """The update of the twin with means over a minibatch in the place of one sample."""
    batch = problem.subset(rows)
    batch = type(batch)(**{**batch.__dict__, "weights": np.full(len(rows), 1 / len(rows))})
    theta, gamma, w = state.theta, multiplier(state, problem), batch.weights
    if inner_steps and gamma > 0:
        slopes, moves, distances = gradient_moves(batch, theta, state.intercept, gamma, inner_steps)
    elif gamma > 0:
        answer = best_response(batch, theta, state.intercept, gamma)
        slopes, moves, distances = answer.slope, answer.context_moves, answer.distance
    else:
        slopes = (
            np.where(batch.residuals(theta, state.intercept) >= 0, 1, 0)
            * (problem.pieces.up + problem.pieces.down)
            - problem.pieces.down
        )
        moves, distances = np.zeros_like(batch.contexts), np.zeros(len(rows))
    gradient = (w * slopes) @ (batch.contexts + moves)
    norm = np.linalg.norm(theta[problem.movable])
    left = problem.radius**problem.order - w @ distances
    log_multiplier, multiplier_squares = state.log_multiplier, state.multiplier_squares
    if problem.boxed:
        gradient = gradient + (1 + HOLDING_SHARE) * left * holding_multiplier(theta, problem)[1]
        pull = math.exp(log_multiplier) * left
        multiplier_squares += pull**2
        log_multiplier -= LOG_STEP * pull / math.sqrt(multiplier_squares)
    elif problem.order == 1 and norm > 0 and norm >= problem.outcome_pull:
        price = problem.radius * problem.pieces.steepest / norm
        gradient = gradient + price * np.where(problem.movable, theta, 0.0)
    squares = state.squares + gradient @ gradient
    stepped = theta - state.travelled / math.sqrt(squares) * gradient
    mean_slope, intercept = w @ slopes, state.intercept
    intercept_squares = state.intercept_squares + mean_slope**2
    if problem.intercept and intercept_squares > 0:
        intercept -= state.intercept_travelled / math.sqrt(intercept_squares) * mean_slope
    rate = max(1 / (state.steps + PRIOR_SLOPES), 1 / SLOPE_WINDOW)
    return State(
        stepped,
        intercept,
        state.start,
        log_multiplier,
        state.square_slope + rate * (w @ slopes**2 - state.square_slope),
        max(state.travelled, np.linalg.norm(stepped)),
        max(state.intercept_travelled, abs(intercept - state.start)),
        squares,
        intercept_squares,
        multiplier_squares,
        state.steps + 1,
    )


@pytest.mark.parametrize(
    ("order", "box", "kappa", "intercept", "frozen"),
    list(itertools.product((1, 2), ("closed", "open"), (math.inf, 0.7), (True, False), ((), (0, 2)))),
)
def test_boxes_take_the_steps_of_the_formula(make_affine, order, box, kappa, intercept, frozen):
    problem = make_affine(
        1, rows=12, columns=4, order=order, box=box, outcome_cost=kappa, intercept=intercept,
        frozen=frozen, weighted=True,
    )  # fmt: skip
    run, draws = AdaptiveRun(problem), draws_for(problem)
    assert not run.fused
    arranged = run.arrangement.problem
    run.run(draws)
    state = initial_state(arranged)
    for row in draws:
        state, _ = update(state, (arranged.contexts[row], arranged.outcomes[row]), arranged)
    assert_same_state(run.state(), state)


@pytest.mark.parametrize(
    ("order", "kappa", "smoothing", "frozen"),
    list(itertools.product((1, 2), (math.inf, 0.7), (0.0, 3.0), ((), (1,)))),
)
def test_a_free_support_takes_the_steps_of_the_formula(make_affine, order, kappa, smoothing, frozen):
    problem = make_affine(
        2, rows=12, columns=4, order=order, outcome_cost=kappa, smoothing=smoothing, frozen=frozen
    )
    unfused, fused, draws = AdaptiveRun(problem), AdaptiveRun(problem), draws_for(problem)
    unfused.fused = False
    for run in (unfused, fused):
        run.run(draws)
    assert_same_state(unfused.state(), fused.state())
    np.testing.assert_allclose(unfused.policy()[0], fused.policy()[0], atol=1e-10)
    np.testing.assert_allclose(unfused.slopes, fused.slopes, atol=1e-10)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed", "open"])
def test_a_minibatch_steps_along_the_mean(make_affine, order, box):
    problem = make_affine(3, rows=12, columns=4, order=order, box=box, frozen=(1,))
    run, draws = AdaptiveRun(problem, batch=8), draws_for(problem, 803)
    run.run(draws)
    assert run.steps == 100  # the last three draws make no batch
    state = initial_state(run.arrangement.problem)
    for rows in draws[:800].reshape(-1, 8):
        state = batch_update(state, rows, run.arrangement.problem)
    assert_same_state(run.state(), state)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed"])
@pytest.mark.parametrize("batch", [1, 4])
def test_gradient_inner_steps_are_a_few_lines_of_numpy(make_affine, order, box, batch):
    problem = make_affine(4, rows=12, columns=4, order=order, box=box, frozen=(1,))
    run, draws = AdaptiveRun(problem, batch=batch, inner_steps=5), draws_for(problem, 200 * batch)
    run.run(draws)
    state = initial_state(run.arrangement.problem)
    for rows in draws.reshape(-1, batch):
        state = batch_update(state, rows, run.arrangement.problem, inner_steps=5)
    assert_same_state(run.state(), state)
    assert np.linalg.norm(state.theta) > 0
