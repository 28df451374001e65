"""The kernel with memory against its formula."""

import itertools
import math

import numpy as np
import pytest

from surefoot.engines.canonical import canonical
from surefoot.engines.constants import STIFF_SHARE
from surefoot.engines.memory import MEAN_SLOPE, N_SCALARS, memory_steps
from surefoot.engines.twin import MemoryState, memory_update
from surefoot.solvers.exact import PrimalDualRun


def kernel(problem, form, state, draws, steps):
    """Run the kernel from a state and return where it ends."""
    arrays = [np.array(a) for a in (state.coordinates, state.slopes, state.gradient)]
    scalars = np.zeros(N_SCALARS)
    scalars[MEAN_SLOPE] = state.mean_slope
    memory_steps(
        form.rows, problem.outcomes, problem.weights, draws, problem.pieces.up, problem.pieces.down,
        problem.radius, problem.order, problem.outcome_pull, form.spans_constant, form.n_priced,
        *arrays, scalars, *steps,
    )  # fmt: skip
    return MemoryState(*arrays, float(scalars[MEAN_SLOPE]))


def assert_same(ours, theirs):
    for name in ("coordinates", "slopes", "gradient", "mean_slope"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-10, err_msg=name)


@pytest.mark.parametrize(
    ("order", "intercept", "kappa", "frozen", "start"),
    list(itertools.product((1, 2), (True, False), (math.inf, 0.7), ((), (0,)), ("zero", "random"))),
)
def test_kernel_takes_the_steps_of_the_formula(make_affine, order, intercept, kappa, frozen, start):
    problem = make_affine(
        1, rows=12, columns=4, order=order, intercept=intercept, outcome_cost=kappa, frozen=frozen,
        weighted=True,
    )  # fmt: skip
    form, rng = canonical(problem), np.random.default_rng(0)
    coordinates = np.zeros(form.rows.shape[1])
    slopes = rng.uniform(-1.0, 0.3, size=12)
    if start == "random":
        coordinates = rng.normal(size=len(coordinates))
    state = MemoryState(
        coordinates,
        slopes,
        form.rows.T @ (problem.weights * slopes),
        float(problem.weights @ slopes),
    )
    steps = 0.3 * form.metric, rng.uniform(0.1, 0.5, size=12)
    draws = rng.choice(12, size=200, p=problem.weights)
    first = state
    for row in draws:
        state = memory_update(state, row, problem, form, steps)
    assert_same(kernel(problem, form, first, draws, steps), state)
    if start == "random":
        assert np.abs(state.coordinates - first.coordinates).max() > 0.1
    # What is kept up to date is what it would be from scratch.
    np.testing.assert_allclose(
        state.gradient, form.rows.T @ (problem.weights * state.slopes), atol=1e-12
    )
    assert state.mean_slope == pytest.approx(float(problem.weights @ state.slopes), abs=1e-12)
    assert (state.slopes >= -problem.pieces.down).all()
    assert (state.slopes <= problem.pieces.up).all()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [1e-3, 1.0])
def test_both_ways_of_stepping_along_the_norm(make_affine, order, size):
    problem = make_affine(2, rows=12, order=order, radius=0.5)
    form = canonical(problem)
    coordinates = np.append(np.full(form.n_priced, size), 1.0)
    slopes = np.zeros(12)
    state = MemoryState(coordinates, slopes, np.zeros(len(coordinates)), 0.0)
    steps = np.full(len(coordinates), 0.05), np.full(12, 0.1)
    price = 0.5 * problem.slope_constant / np.linalg.norm(coordinates[: form.n_priced])
    assert bool(0.05 * price > STIFF_SHARE) is (size < 1)
    after = memory_update(state, 3, problem, form, steps)
    assert_same(kernel(problem, form, state, np.array([3]), steps), after)
    # Implicit or explicit, the norm shrinks the policy and never turns it round.
    quiet = memory_update(state, 3, problem, form, (steps[0], np.zeros(12)))
    shrunk = quiet.coordinates[: form.n_priced] / coordinates[: form.n_priced]
    assert ((shrunk > 0) & (shrunk < 1)).all()
    assert quiet.coordinates[-1] == coordinates[-1]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_optimum_stands_still(make_affine, order, intercept):
    # At a saddle point no row moves its slope and theta stays.
    problem = make_affine(3, rows=12, order=order, intercept=intercept, radius=0.2)
    run = PrimalDualRun(problem)
    for _ in range(60):
        run.run(np.arange(50))
    form = run.start.form
    state = MemoryState(
        run.theta, run.slopes, form.rows.T @ (problem.weights * run.slopes),
        float(problem.weights @ run.slopes),
    )  # fmt: skip
    steps = 0.1 * form.metric, np.full(12, 0.1)
    for row in range(12):
        after = memory_update(state, row, problem, form, steps)
        np.testing.assert_allclose(after.coordinates, state.coordinates, atol=1e-5)
        np.testing.assert_allclose(after.slopes, state.slopes, atol=1e-5)
