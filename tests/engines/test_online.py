"""The stream's kernel against its readable twin, and what its rules promise."""

import numpy as np
import pytest

from surefoot import Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.engines import adaptive as slots
from surefoot.engines import online_constants as at
from surefoot.engines.online import MEAN_INTERCEPT, OFFSET, STREAM_SCALARS, stream_steps
from surefoot.engines.online_twin import Stream, StreamRules, stream_update
from surefoot.engines.twin import initial_state
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_problems
from surefoot.random import rng_for
from surefoot.sets import Box
from surefoot.solvers.adaptive import AdaptiveRun, Arrangement, pack

S = 4


def rows_and_outcomes(name, rows=60, *, gaps=False):
    rng = rng_for(0, "online", name)
    X = rng.normal(size=(rows, S)) * [1.0, 5.0, 0.1, 2.0] + [0.0, 3.0, 0.0, -1.0]
    y = 4.0 + X @ [1.0, 0.2, -3.0, 0.5] + rng.normal(size=rows)
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def arrays_of(ball, intercept, rules, start):
    """What the kernel is handed: table, scalars, options, as a stream would make them."""
    table = np.zeros((at.TABLE_ROWS, S))
    table[at.FROZEN] = ball.frozen_mask(S)
    table[at.LOWER], table[at.UPPER] = (
        (-np.inf, np.inf) if ball.support is None else ball.support.arrays(S)
    )
    scalars = np.zeros((1, STREAM_SCALARS))
    scalars[0, : slots.N_SCALARS] = pack(start)
    scalars[0, MEAN_INTERCEPT] = start.intercept
    low, high = (-np.inf, np.inf) if ball.support is None else ball.support.outcome
    options = np.zeros(at.N_OPTIONS)
    options[[at.RADIUS, at.RADIUS_ROWS, at.ORDER]] = ball.radius, rules.radius_rows, ball.order
    options[[at.OUTCOME_COST, at.WITH_INTERCEPT, at.SCALED]] = (
        ball.outcome_cost,
        intercept,
        rules.scaled,
    )
    options[[at.BOXED, at.LOW_Y, at.HIGH_Y]] = ball.support is not None, low, high
    options[[at.STEP_RULE, at.STEP_SIZE]] = rules.step_rule, rules.step_size
    options[[at.AVERAGING, at.WINDOW]] = rules.averages, rules.window
    return table, scalars, options


def geometry(ball, intercept, X, y, smoothing=0.0):
    filled = np.where(np.isnan(X), 0.0, X)
    if ball.support is not None:
        filled = np.clip(filled, *ball.support.arrays(S))
    cost = Newsvendor(1.0, 0.2, smoothing=smoothing) if smoothing else Newsvendor(1.0, 0.2)
    question = Problem(cost, Linear(intercept=intercept), Empirical(filled, y), ball)
    ones = np.ones(S)
    return affine_problems(question, ones, ~ball.frozen_mask(S), merge=False)[0]


CASES = {
    "default": (WassersteinBall(0.3), True, StreamRules()),
    "no intercept": (WassersteinBall(0.3), False, StreamRules()),
    "order 1": (WassersteinBall(0.3, order=1), True, StreamRules()),
    "outcomes move": (WassersteinBall(0.3, outcome_cost=2.0), True, StreamRules()),
    "frozen": (WassersteinBall(0.3, frozen=(0, 2)), True, StreamRules()),
    "user's units": (WassersteinBall(0.3, scale=False), True, StreamRules(scaled=False)),
    "box": (WassersteinBall(0.5, support=Box(-20, 20)), True, StreamRules()),
    "box of order 1": (WassersteinBall(0.5, order=1, support=Box(-20, np.inf)), False, StreamRules()),
    "falling radius": (WassersteinBall(2.0), True, StreamRules(radius_rows=3.0)),
    "constant step": (
        WassersteinBall(0.3),
        True,
        StreamRules(step_rule=at.CONSTANT_RULE, step_size=0.1, averages=False),
    ),
    "falling step": (
        WassersteinBall(0.3),
        True,
        StreamRules(step_rule=at.DECAYING_RULE, step_size=0.5),
    ),
    "window": (WassersteinBall(0.3), True, StreamRules(window=12.0, radius_rows=2.0)),
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_kernel_and_twin_agree(case, gaps):
    ball, intercept, rules = CASES[case]
    X, y = rows_and_outcomes(case, gaps=gaps)
    problem = geometry(ball, intercept, X, y)
    start = initial_state(problem)
    table, scalars, options = arrays_of(ball, intercept, rules, start)
    first, _ = rows_and_outcomes("first", rows=16)  # a stream knows some scale when it starts
    table[at.MEAN], table[at.DEVIATIONS] = first.mean(axis=0), 16 * first.var(axis=0)
    table[at.COUNT] = 16.0
    zeros = np.zeros(S)
    stream = Stream(*table[:3].copy(), start, zeros, start.intercept, 0)
    theta, average, clock = np.zeros((1, S)), np.zeros((1, S)), np.zeros(1)
    decided = np.empty((len(X), 1))
    pieces = np.array([[problem.pieces.up, problem.pieces.down, problem.pieces.smoothing]])
    stream_steps(X, y[:, None], table, theta, average, scalars, pieces, options, clock, True, decided)

    for k, (x, outcome) in enumerate(zip(X, y, strict=True)):
        known = np.where(np.isnan(x), stream.mean, x)
        centre = stream.mean if intercept else 0.0
        assert decided[k, 0] == pytest.approx(
            stream.average @ (known - centre) + stream.average_intercept, rel=1e-9, abs=1e-9
        )
        stream = stream_update(stream, (x, outcome), problem, rules)
    np.testing.assert_allclose(table[at.MEAN], stream.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(table[at.DEVIATIONS], stream.deviations, rtol=1e-9)
    np.testing.assert_allclose(theta[0], stream.state.theta, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(average[0], stream.average, rtol=1e-7, atol=1e-9)
    numbers = pack(stream.state)
    numbers[slots.AVERAGED :] = 0.0
    np.testing.assert_allclose(scalars[0, : slots.N_SCALARS], numbers, rtol=1e-7, atol=1e-9)
    assert scalars[0, MEAN_INTERCEPT] == pytest.approx(stream.average_intercept, rel=1e-9)
    offset = stream.average_intercept - (stream.average @ stream.mean if intercept else 0.0)
    assert scalars[0, OFFSET] == pytest.approx(offset, rel=1e-9)
    assert np.abs(theta).max() > 0.01  # it has learned at all


@pytest.mark.parametrize("order", [1, 2])
def test_a_stream_of_draws_equals_the_batch_kernel(order):
    """With the scale at rest, a stream of bootstrap draws is what ``fit`` does with these draws."""
    X, y = rows_and_outcomes("draws")
    ball = WassersteinBall(0.2, order=order)
    problem = affine_problems(
        Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(X, y), ball), merge=False
    )[0]
    draws = rng_for(0, "online", "bootstrap").integers(0, len(X), size=500)
    batch = AdaptiveRun(problem)
    batch.by_gram = False
    batch.run(draws)

    rules = StreamRules()
    table, scalars, options = arrays_of(
        ball, True, rules, initial_state(Arrangement.of(problem).problem)
    )
    table[at.COUNT] = 1e18  # so many rows that no new one moves the scale
    table[at.MEAN], table[at.DEVIATIONS] = X.mean(axis=0), X.var(axis=0) * 1e18
    theta, average, clock = np.zeros((1, S)), np.zeros((1, S)), np.zeros(1)
    pieces = np.array([[problem.pieces.up, problem.pieces.down, 0.0]])
    stream_steps(
        X[draws], y[draws, None], table, theta, average, scalars, pieces, options, clock, True,
        np.empty((500, 1)),
    )  # fmt: skip
    state = batch.state()
    np.testing.assert_allclose(theta[0] * X.std(axis=0), state.theta, rtol=1e-6)
    assert scalars[0, slots.INTERCEPT] == pytest.approx(state.intercept, rel=1e-7)
    assert scalars[0, slots.SQUARES] == pytest.approx(state.squares, rel=1e-7)


def test_a_constant_step_is_the_size_times_the_gradient():
    ball, rules = WassersteinBall(0.0), StreamRules(step_rule=at.CONSTANT_RULE, step_size=0.25)
    X, y = rows_and_outcomes("step")
    problem = geometry(ball, True, X, y)
    table, scalars, options = arrays_of(ball, True, rules, initial_state(problem))
    theta, average, clock = np.zeros((1, S)), np.zeros((1, S)), np.zeros(1)
    pieces = np.array([[0.2, 1.0, 0.0]])

    def step(k):
        stream_steps(
            X[k : k + 1], y[k : k + 1, None], table, theta, average, scalars, pieces, options, clock,
            True, np.empty((1, 1)),
        )  # fmt: skip

    for k in range(20):
        step(k)
    before, intercept = theta.copy(), scalars[0, slots.INTERCEPT]
    old_mean = table[at.MEAN].copy()
    step(20)
    mean, spread = table[at.MEAN], np.sqrt(table[at.DEVIATIONS] / table[at.COUNT])
    residual = before[0] @ (X[20] - mean) + intercept + before[0] @ (mean - old_mean) - y[20]
    slope = 0.2 if residual >= 0 else -1.0
    np.testing.assert_allclose(
        (theta - before)[0] * spread, -0.25 * slope * (X[20] - mean) / spread, rtol=1e-9
    )
