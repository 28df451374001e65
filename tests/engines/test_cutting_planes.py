"""Several products under one adversary: solved to a proof that a program written by hand confirms."""

import numpy as np
import pytest

from surefoot import DASGD, Box, CuttingPlanes, PrimalDual, Problem, WassersteinBall
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.engines.affine_proof import joint_run, small_joint_program
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import joint_form, with_adversaries
from surefoot.solvers import default_solver
from tests.oracles.joint import best_worst_case


def random_problem(seed):
    """A question in units of all sizes, and what the oracle needs to answer it."""
    rng = np.random.default_rng(seed)
    n, s, d = int(rng.integers(5, 40)), int(rng.integers(1, 5)), int(rng.integers(2, 4))
    X = rng.normal(size=(n, s)) * 10 ** rng.uniform(-1, 1, s) + rng.normal(size=s)
    Y = X @ rng.normal(size=(s, d)) + rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1, d)
    backorder, holding = rng.uniform(0.1, 3.0, d), rng.uniform(0.05, 2.0, d)
    weights, intercept = rng.uniform(0.2, 1.0, n), bool(rng.integers(2))
    radius, order = float(10 ** rng.uniform(-2, 0.5)), int(rng.integers(1, 3))
    kappa = float(rng.choice([np.inf, 10 ** rng.uniform(-1, 1)]))
    ball = WassersteinBall(radius, order=order, outcome_cost=kappa, adversary="joint")
    problem = Problem(
        Newsvendor(backorder, holding), Linear(intercept=intercept), Empirical(X, Y, weights), ball
    )
    form = joint_form(problem)
    best = best_worst_case(
        X, Y, weights / weights.sum(), backorder=backorder, holding=holding, radius=radius, order=order,
        scale=form.scale / form.column_unit, kappa=kappa, intercept=intercept,
    )  # fmt: skip
    return problem, best


@pytest.mark.parametrize("seed", range(12))
def test_both_bounds_hold_and_meet(seed):
    problem, best = random_problem(seed)
    solution = CuttingPlanes(gap_tol=1e-3).solve(problem)
    found = solution.certificate
    assert solution.converged
    assert found.kind == "exact"
    assert found.lower <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= found.upper <= best * (1 + 1.1e-3)
    each = CuttingPlanes(gap_tol=1e-3).solve(with_adversaries(problem)).certificate
    assert found.lower <= each.upper * (1 + 1e-9)
    assert len(solution.multiplier) == 1
    assert solution.parameters.theta.shape == (problem.nominal.n_columns, problem.nominal.n_products)


@pytest.mark.sweep
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"support": Box(0.0, 1.0)},
        pytest.param({"support": Box(0.0, np.inf)}, marks=pytest.mark.nightly),
        {"support": Box(0.0, 1.0, outcome=(-9.0, 9.0)), "outcome_cost": 0.5},
        {"frozen": (1,)},
        {"scale": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("cost", [Newsvendor(1.0, 0.2), TieredNewsvendor(((0, 1.0), (1, 2.0)), 0.3)])
def test_any_ball_and_cost_is_solved_to_a_proof(order, options, cost):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(16, 3))
    Y = X @ rng.normal(size=(3, 2)) + 0.5 * rng.normal(size=(16, 2))
    ball = WassersteinBall(0.3, order=order, adversary="joint", **options)
    problem = Problem(cost, Linear(), Empirical(X, Y), ball)
    solution = CuttingPlanes().solve(problem)
    assert solution.converged
    form = joint_form(problem)
    # No policy that is tried is better than the lower bound says.
    run = joint_run(form)
    run.run(np.zeros(3, dtype=np.int64))
    for _ in range(50):
        theta, t = run.policy()
        tried = theta + 0.2 * rng.normal(size=theta.shape), t + 0.2 * rng.normal(size=2)
        assert form.worst_value(*tried)[0] * form.value_unit >= solution.certificate.lower * (1 - 1e-9)


def test_more_lines_than_a_program_holds_are_added_as_they_are_needed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Y = X @ rng.normal(size=(3, 6)) + rng.normal(size=(80, 6))
    ball = WassersteinBall(0.2, adversary="joint")
    problem = Problem(Newsvendor(1.0, 0.3), Linear(), Empirical(X, Y), ball)
    run = joint_run(joint_form(problem))
    assert not run.few
    assert len(run.atoms.rows) < 80 * 64
    assert CuttingPlanes().solve(problem).converged


def test_the_default_is_cutting_planes_while_they_are_quick():
    rng = np.random.default_rng(0)

    def asked(rows, products, support=None):
        X, Y = rng.uniform(size=(rows, 4)), rng.normal(size=(rows, products))
        ball = WassersteinBall(0.2, order=1, support=support, adversary="joint")
        return Problem(Newsvendor(1.0, 0.3), Linear(), Empirical(X, Y), ball)

    assert isinstance(default_solver(asked(100, 2)), CuttingPlanes)
    assert isinstance(default_solver(asked(60, 8)), CuttingPlanes)
    assert isinstance(default_solver(asked(60, 8, Box(0.0, 1.0))), DASGD)
    assert isinstance(default_solver(asked(20_000, 2)), DASGD)
    assert not small_joint_program(joint_form(asked(20_000, 2)))
    assert "at most 1,024 choices" in CuttingPlanes().why_not(asked(20, 11))


def test_a_run_begins_where_adversaries_apart_would_leave_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    Y = X @ rng.normal(size=(5, 3)) + rng.normal(size=(200, 3))
    ball = WassersteinBall(0.1, adversary="joint")
    problem = Problem(Newsvendor(1.0, 0.3), Linear(), Empirical(X, Y), ball)
    form = joint_form(problem)
    apart = PrimalDual().solve(with_adversaries(problem)).parameters
    value = form.worst_value(*form.from_user_units(apart.theta, apart.intercept))[0]
    run = joint_run(form)
    assert run.value <= 1.01 * value
    assert form.worst_value(*run.policy())[0] == pytest.approx(run.value)
    assert run.value < 0.8 * form.worst_value(*form.start()[0])[0]
    assert CuttingPlanes(max_steps=6).solve(problem).converged
