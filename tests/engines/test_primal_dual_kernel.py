"""The primal-dual kernel against its formula."""

import itertools
import math

import numpy as np
import pytest

from surefoot.engines.canonical import canonical
from surefoot.engines.primal_dual_kernel import STIFF_SHARE, primal_dual_steps
from surefoot.solvers.exact import DeterministicRun
from tests.oracles.primal_dual_twin import MemoryState, memory_update


def kernel(form, at, state, draws, steps):
    """Run the kernel from a state and return where it ends."""
    arrays = [np.array(a) for a in (state.coordinates, state.slopes, state.gradient)]
    mean_slope = primal_dual_steps(
        at.rows, form.outcomes, form.weights, draws, form.pieces.up, form.pieces.down,
        form.radius, form.order, form.inverse_kappa, at.spans_constant, at.n_penalised,
        *arrays, state.mean_slope, *steps,
    )  # fmt: skip
    return MemoryState(*arrays, mean_slope)


def assert_same(ours, theirs):
    for name in ("coordinates", "slopes", "gradient", "mean_slope"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-10, err_msg=name)


@pytest.mark.parametrize(
    ("order", "intercept", "kappa", "frozen", "start"),
    list(itertools.product((1, 2), (True, False), (math.inf, 0.7), ((), (0,)), ("zero", "random"))),
)
def test_kernel_takes_the_steps_of_the_formula(make_affine, order, intercept, kappa, frozen, start):
    form = make_affine(
        1, rows=12, columns=4, order=order, intercept=intercept, outcome_cost=kappa, frozen=frozen,
        weighted=True,
    )  # fmt: skip
    at, rng = canonical(form), np.random.default_rng(0)
    coordinates = np.zeros(at.rows.shape[1])
    slopes = rng.uniform(-1.0, 0.3, size=12)
    if start == "random":
        coordinates = rng.normal(size=len(coordinates))
    state = MemoryState(
        coordinates,
        slopes,
        at.rows.T @ (form.weights * slopes),
        float(form.weights @ slopes),
    )
    steps = 0.3 * at.metric, rng.uniform(0.1, 0.5, size=12)
    draws = rng.choice(12, size=200, p=form.weights)
    first = state
    for row in draws:
        state = memory_update(state, row, form, at, steps)
    assert_same(kernel(form, at, first, draws, steps), state)
    if start == "random":
        assert np.abs(state.coordinates - first.coordinates).max() > 0.1
    # What is kept up to date is what it would be from scratch.
    np.testing.assert_allclose(state.gradient, at.rows.T @ (form.weights * state.slopes), atol=1e-12)
    assert state.mean_slope == pytest.approx(float(form.weights @ state.slopes), abs=1e-12)
    assert (state.slopes >= -form.pieces.down).all()
    assert (state.slopes <= form.pieces.up).all()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [1e-3, 1.0])
def test_both_ways_of_stepping_along_the_norm(make_affine, order, size):
    form = make_affine(2, rows=12, order=order, radius=0.5)
    at = canonical(form)
    coordinates = np.append(np.full(at.n_penalised, size), 1.0)
    slopes = np.zeros(12)
    state = MemoryState(coordinates, slopes, np.zeros(len(coordinates)), 0.0)
    steps = np.full(len(coordinates), 0.05), np.full(12, 0.1)
    shrinkage = 0.5 * form.slope_constant / np.linalg.norm(coordinates[: at.n_penalised])
    assert bool(0.05 * shrinkage > STIFF_SHARE) is (size < 1)
    after = memory_update(state, 3, form, at, steps)
    assert_same(kernel(form, at, state, np.array([3]), steps), after)
    # Implicit or explicit, the norm shrinks the policy and never turns it round.
    quiet = memory_update(state, 3, form, at, (steps[0], np.zeros(12)))
    shrunk = quiet.coordinates[: at.n_penalised] / coordinates[: at.n_penalised]
    assert ((shrunk > 0) & (shrunk < 1)).all()
    assert quiet.coordinates[-1] == coordinates[-1]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_optimum_stands_still(make_affine, order, intercept):
    # At a saddle point no row moves its slope and theta stays.
    form = make_affine(3, rows=12, order=order, intercept=intercept, radius=0.2)
    run = DeterministicRun(form)
    for _ in range(60):
        run.run(np.arange(50))
    at = run.at
    state = MemoryState(
        run.theta, run.slopes, at.rows.T @ (form.weights * run.slopes),
        float(form.weights @ run.slopes),
    )  # fmt: skip
    steps = 0.1 * at.metric, np.full(12, 0.1)
    for row in range(12):
        after = memory_update(state, row, form, at, steps)
        np.testing.assert_allclose(after.coordinates, state.coordinates, atol=1e-5)
        np.testing.assert_allclose(after.slopes, state.slopes, atol=1e-5)
