"""Rounds over all rows at the end of a run of the autodiff engine: how near the best policy they lead."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pytest

from surefoot import DASGD, Box, Problem, WassersteinBall
from surefoot.certificates.general import in_ball
from surefoot.costs import CustomCost, Newsvendor, Pricing, Quadratic, TieredNewsvendor
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.engine import Options
from surefoot.engines.moved_planes import MovedPlaneRun, polished_batch, why_no_planes
from surefoot.engines.optimizers import Adam
from surefoot.exceptions import ConvergenceWarning
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear
from surefoot.problem import general_form
from tests.oracles.plan import Question, optimum

ROWS, COST = 14, Newsvendor(1.0, 0.2)
BALLS = {
    "order 1": {"order": 1},
    "order 2": {"order": 2},
    "order 1, kappa": {"order": 1, "outcome_cost": 0.7},
    "order 2, kappa": {"order": 2, "outcome_cost": 0.7},
    "box, order 1": {"order": 1, "support": Box(-2.5, 2.5)},
    "box, order 2": {"order": 2, "support": Box(-2.5, 2.5)},
}


def rows(unit=1.0):
    rng = np.random.default_rng(4)
    X = np.clip(rng.normal(size=(ROWS, 2)), -2.4, 2.4)
    y = X @ [1.0, -2.0] + rng.standard_t(2, size=ROWS)
    return X, unit * y, rng.uniform(0.1, 1.0, size=ROWS)


def describe(ball, cost=COST, policy=None, radius=0.3, unit=1.0):
    nominal = Empirical(*rows(unit))
    ball = WassersteinBall(radius, scale=False, **ball)
    return Problem(cost, policy or Linear(), nominal, ball)


def truth(problem):
    """What the best policy costs, by the adversary's own program."""
    nominal, ball = problem.nominal, problem.ball
    lower, upper = (-np.inf, np.inf) if ball.support is None else (-2.5, 2.5)
    (pieces,) = problem.cost.pieces(1)
    question = Question(
        nominal.contexts, nominal.outcomes[:, 0], nominal.weights, np.array(pieces.slopes),
        np.array(pieces.intercepts), problem.radius, ball.order, ball.outcome_cost,
        problem.policy.intercept, np.full(2, lower), np.full(2, upper),
    )  # fmt: skip
    return optimum(question)


def solve(problem, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DASGD(**{"max_steps": 250, "gap_tol": 1e-3, "optimizer": Adam(), **options}).solve(
            problem, seed=0
        )


# Every ball compiles programs of its own, which takes most of the time: three a push, all at night.
PUSHED = ("order 1, kappa", "order 2", "box, order 1")
CHOSEN = [
    pytest.param(ball, id=name, marks=[] if name in PUSHED else pytest.mark.nightly)
    for name, ball in BALLS.items()
]


@pytest.mark.parametrize("ball", CHOSEN)
def test_short_runs_end_at_the_best_policy(ball):
    unit = 1e5
    kappa = ball.get("outcome_cost", np.inf) / unit ** ball["order"]
    problem = describe({**ball, "outcome_cost": kappa}, unit=unit)
    solution = solve(problem)
    assert solution.converged
    assert solution.certificate.upper == pytest.approx(truth(problem), rel=2e-3)
    assert "rounds of a program over all rows" in solution.status


@pytest.mark.parametrize(("radius", "intercept"), [(0.0, True), (0.05, False), (1.0, True)])
def test_costs_of_several_lines_at_any_radius(radius, intercept):
    cost = TieredNewsvendor(((0, 1.0), (1.5, 2.5)), 0.3)
    problem = describe({"order": 2}, cost, Linear(intercept=intercept), radius)
    assert solve(problem).certificate.upper == pytest.approx(truth(problem), rel=2e-3)


@pytest.mark.parametrize("radius", [0.1, 0.5])
def test_a_quadratic_cost_is_proved_by_the_plan_of_the_program(radius):
    # In a box, however wide: without one it has a closed form, which proves it instead.
    problem = describe({"order": 2, "support": Box(-99, 99)}, Quadratic(), radius=radius)
    solution = solve(problem, optimizer=None)
    assert solution.converged
    assert solution.certificate.kind == "bound"
    assert solution.certificate.gap <= 2e-3


@pytest.mark.parametrize("ball", CHOSEN)
def test_the_program_never_promises_less_than_the_best_policy_costs(ball):
    problem = describe(ball)
    engine = Autodiff([problem], [0], Options(250))
    state = engine.init()
    run = MovedPlaneRun(engine, np.ones(1), engine.candidates(state)[0])
    best = truth(problem)
    for _ in range(12):
        run.run(np.zeros(1, dtype=np.int64))
        assert run.bound <= best * (1 + 1e-6)
        assert run.slopes is None or in_ball(engine.forms[0], run.slopes)
    assert run.value == pytest.approx(best, rel=5e-3)


def test_a_run_that_went_astray_starts_anew_from_the_constant_decision():
    problem = describe({"order": 2})
    engine = Autodiff([problem], [0], Options(250))
    state = engine.init()
    astray = jax.tree.map(lambda leaf: np.asarray(leaf) + 1e6, engine.candidates(state)[0])
    trained, _, rounds = polished_batch(engine, [0], np.ones(1), astray)
    value = engine.judge_closely(np.ones(1), trained).value[0]
    assert value == pytest.approx(truth(problem), rel=2e-3)
    assert 0 < rounds[0] < 80


def test_problems_side_by_side_are_polished_one_by_one():
    problems = [describe({"order": 2}, radius=radius) for radius in (0.1, 0.6)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = DASGD(gap_tol=1e-3, max_steps=250, optimizer=Adam()).solve_together(problems, [0, 0])
    for problem, solution in zip(problems, found, strict=True):
        assert solution.certificate.upper == pytest.approx(truth(problem), rel=2e-3)


def test_a_policy_that_is_proved_already_needs_no_rounds():
    solution = solve(describe({"order": 2}), gap_tol=1e3)
    assert solution.converged
    assert "rounds" not in solution.status


def test_the_papers_own_ascents_are_left_as_they_are():
    solution = solve(describe({"order": 2}), inner_steps=3)
    assert "rounds" not in solution.status


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"policy": MLP((4,))}, "a linear policy without limits"),
        ({"policy": Linear(decisions=Box(0, 5))}, "a linear policy without limits"),
        ({"cost": Pricing()}, "known to be convex"),
        ({"cost": CustomCost(lambda z, y: ((z - y) ** 2).sum())}, "known to be convex"),
        ({"nominal": Gaussian(np.zeros(3), np.eye(3))}, "a nominal of rows"),
        ({"nominal": Empirical(np.ones((500, 1)), np.ones(500))}, "few rows and parameters, got 500"),
    ],
)
def test_reasons_why_there_is_no_program(change, reason):
    problem = replace(describe({"order": 2}), **change)
    assert reason in why_no_planes(general_form(problem))
    assert why_no_planes(general_form(describe({"order": 2}))) is None


def test_steps_of_adam_count_in_units_of_the_outcomes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = 3.0 + X @ [1.0, -0.5] + 0.5 * rng.normal(size=300)
    ball = WassersteinBall(0.1)
    found = [
        solve(Problem(COST, Linear(), Empirical(X, unit * y), ball), max_steps=500).parameters
        for unit in (1.0, 1e4)
    ]
    np.testing.assert_allclose(found[1].theta, 1e4 * found[0].theta, rtol=1e-6)
    np.testing.assert_allclose(found[1].intercept, 1e4 * found[0].intercept, rtol=1e-6)
