"""The fused kernels against the formula, step for step from the same draws."""

import itertools
import math

import numpy as np
import pytest

from surefoot.engines.constants import AVERAGE_EVERY
from surefoot.engines.twin import State, initial_state, update
from surefoot.solvers.adaptive import AdaptiveRun, Arrangement, pack, unpack

STEPS = 200


def draws_for(problem, steps=STEPS, seed=0):
    return np.random.default_rng(seed).choice(len(problem.weights), size=steps, p=problem.weights)


def twin_states(problem, draws, state=None):
    """States after each draw on an arranged problem, and what each step saw."""
    state = initial_state(problem) if state is None else state
    states, infos = [], []
    for row in draws:
        state, info = update(state, (problem.contexts[row], problem.outcomes[row]), problem)
        states.append(state)
        infos.append(info)
    return states, infos


def assert_same_state(ours: State, theirs: State, tolerance=1e-10):
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=tolerance, atol=tolerance)
    for name in (
        "intercept", "start", "log_multiplier", "square_slope", "travelled", "intercept_travelled",
        "squares", "intercept_squares", "multiplier_squares", "steps",
    ):  # fmt: skip
        expected = getattr(theirs, name)
        assert getattr(ours, name) == pytest.approx(expected, rel=tolerance, abs=tolerance), name


CASES = [
    pytest.param(
        {"order": order, "intercept": intercept, "outcome_cost": kappa, "smoothing": smoothing,
         "frozen": frozen, "weighted": True},
        id=f"order{order}-{'t' if intercept else 'no t'}-kappa{kappa}-delta{smoothing}-frozen{frozen}",
    )
    for order, intercept, kappa, smoothing, frozen in itertools.product(
        (1, 2), (True, False), (math.inf, 0.7), (0.0, 0.3), ((), (0, 2))
    )
]  # fmt: skip


@pytest.mark.parametrize("options", CASES)
def test_fused_kernel_takes_the_steps_of_the_formula(make_affine, options):
    problem = make_affine(1, rows=12, columns=4, **options)
    run = AdaptiveRun(problem)
    assert run.fused
    assert not run.by_gram
    arranged = run.arrangement.problem
    draws = draws_for(problem)
    run.run(draws)
    states, infos = twin_states(arranged, draws)
    assert_same_state(run.state(), states[-1])
    # The policy is the average of every sixteenth, the slopes are means over visits.
    kept = states[::AVERAGE_EVERY]
    theta = np.mean([state.theta for state in kept], axis=0)
    intercept = np.mean([state.intercept for state in kept])
    expected = run.arrangement.original(theta, intercept)
    np.testing.assert_allclose(run.policy()[0], expected[0], atol=1e-10)
    assert run.policy()[1] == pytest.approx(expected[1], abs=1e-10)
    slopes = np.array([info.slope for info in infos])
    for row in np.unique(draws):
        assert run.slopes[row] == pytest.approx(slopes[draws == row].mean(), abs=1e-10)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kappa", [math.inf, 0.7])
@pytest.mark.parametrize("smoothing", [0.0, 3.0])  # steeper parabolas amplify rounding
def test_gram_form_takes_the_same_steps(make_affine, order, intercept, kappa, smoothing):
    problem = make_affine(
        2, rows=6, columns=11, order=order, intercept=intercept, outcome_cost=kappa,
        smoothing=smoothing, weighted=True, radius=0.2,
    )  # fmt: skip
    draws = draws_for(problem)
    by_gram, fused = AdaptiveRun(problem), AdaptiveRun(problem)
    assert by_gram.by_gram
    fused.by_gram = False
    for block in np.split(draws, [50]):  # continued, so that coefficients survive a block
        by_gram.run(block)
        fused.run(block)
    assert_same_state(by_gram.state(), fused.state())
    states, _ = twin_states(fused.arrangement.problem, draws)
    assert_same_state(fused.state(), states[-1])
    np.testing.assert_allclose(by_gram.policy()[0], fused.policy()[0], atol=1e-10)
    np.testing.assert_allclose(by_gram.slopes, fused.slopes, atol=1e-12)
    assert by_gram.steps == fused.steps == STEPS


@pytest.mark.parametrize("order", [1, 2])
def test_radius_zero_agrees_too(make_affine, order):
    problem = make_affine(3, rows=12, order=order, radius=0.0)
    run = AdaptiveRun(problem)
    draws = draws_for(problem)
    run.run(draws)
    assert_same_state(run.state(), twin_states(run.arrangement.problem, draws)[0][-1])


@pytest.mark.parametrize("options", [{}, {"order": 1}, {"box": "closed"}, {"frozen": (1,)}])
def test_a_stream_goes_on_where_a_run_stopped(make_affine, options):
    problem = make_affine(4, rows=12, **options)
    arranged = Arrangement.of(problem).problem
    draws = draws_for(problem)
    state = initial_state(arranged)
    for first in range(0, STEPS, 10):
        chunk = draws[first : first + 10]
        stream = AdaptiveRun.resume(arranged.subset(chunk), state)
        stream.run(np.arange(10))
        state = stream.state()
    assert_same_state(state, twin_states(arranged, draws)[0][-1])


def test_packing_loses_nothing(make_affine):
    problem = make_affine(5)
    states, _ = twin_states(problem, draws_for(problem, 5))
    again = unpack(states[-1].theta, pack(states[-1]))
    assert_same_state(again, states[-1], tolerance=0.0)
    assert again.theta is not states[-1].theta


@pytest.mark.parametrize("intercept", [True, False])
def test_an_arrangement_changes_no_decision_and_no_price(make_affine, intercept):
    problem = make_affine(6, columns=5, frozen=(0, 3), intercept=intercept, box="closed")
    arrangement = Arrangement.of(problem)
    arranged = arrangement.problem
    assert list(arranged.movable) == [True] * 3 + [False] * 2
    rng = np.random.default_rng(0)
    theta, t = rng.normal(size=5), rng.normal() if intercept else 0.0
    there = arrangement.arranged(theta, t)
    np.testing.assert_allclose(arranged.residuals(*there), problem.residuals(theta, t), atol=1e-12)
    assert arranged.reach(there[0]) == pytest.approx(problem.reach(theta))
    back = arrangement.original(*there)
    np.testing.assert_allclose(back[0], theta)
    assert back[1] == pytest.approx(t, abs=1e-12)
    inside = (arranged.contexts >= arranged.lower - 1e-12) & (
        arranged.contexts <= arranged.upper + 1e-12
    )
    assert inside.all()
    if intercept:
        np.testing.assert_allclose(arranged.weights @ arranged.contexts, 0.0, atol=1e-12)
