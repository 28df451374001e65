"""The deterministic solver against CVXPY."""

import itertools
import math

import pytest

from benchmarks.attack import draw_problem
from surefoot import Box, Exact, Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from tests.oracles.plan import optimum

GRID = list(itertools.product((10, 40), (3, 60), (1, 2), (True, False), (0.1, 1.0)))
EXTRAS = [(40, 15, 2, True, 0.01), (40, 15, 1, False, 0.5), (10, 15, 1, True, 0.5)]


@pytest.mark.sweep
@pytest.mark.parametrize(("n", "s", "order", "intercept", "share"), GRID + EXTRAS)
def test_reaches_a_thousandth(make_demand, true_gap, n, s, order, intercept, share):
    problem = make_demand(
        n, s, order=order, intercept=intercept, share=share,
        coefficients="mixed" if n == 10 else "positive",
    )  # fmt: skip
    solution = Exact().solve(problem)
    true, certified = true_gap(problem, solution.certificate.upper), solution.certificate.gap
    assert -1e-5 <= true <= 1e-3
    assert true - 1e-6 <= certified <= 2 * true + 0.005
    assert certified <= 1e-4
    assert solution.converged


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"outcome_cost": 2.0},
        {"outcome_cost": 0.3, "intercept": False},
        {"outcome_cost": 0.9, "share": 0.05},
        {"frozen": (0,)},
        {"frozen": (0, 1, 2), "intercept": False},
        {"frozen": (2,), "outcome_cost": 1.0, "scale": False},
    ],
    ids=str,
)
def test_every_free_geometry_reaches_a_thousandth(make_demand, true_gap, order, options):
    problem = make_demand(20, 3, order=order, **options)
    solution = Exact().solve(problem)
    assert -1e-5 <= true_gap(problem, solution.certificate.upper) <= 1e-3
    assert solution.certificate.gap <= 1e-4


@pytest.mark.parametrize("order", [1, 2])
def test_boxes_go_to_the_convex_program(make_demand, true_gap, order):
    problem = make_demand(15, 2, order=order, support=Box(0, math.inf))
    solution = Exact().solve(problem)
    assert -1e-5 <= true_gap(problem, solution.certificate.upper) <= 1e-5
    assert solution.converged


@pytest.mark.parametrize("number", [75, 154, 194])
def test_order_one_in_a_box_is_proved(number):
    # The policy was right, and its slopes alone left gaps of 0.1, 14 and 0.3 %.
    _, _, problem, question, _ = draw_problem(number)
    solution = Exact().solve(problem)
    assert solution.converged
    assert solution.certificate.lower <= optimum(question) * (1 + 1e-6)


def test_boxes_are_held_to_the_same_tolerance(make_demand):
    # The convex program once kept its own, 50 times as loose, and called that converged.
    problem = make_demand(15, 2, support=Box(0, math.inf))
    with pytest.warns(ConvergenceWarning, match="tolerance 1e-13 %"):
        assert not Exact(gap_tol=1e-15).solve(problem).converged
    strict = Exact(gap_tol=1e-3).solve(problem)
    assert strict.converged
    assert "tolerance 0.1 %" in strict.status


def test_it_needs_no_seed(make_demand):
    problem = make_demand(20, 6)
    first, second = (Exact().solve(problem, seed=seed) for seed in (0, 1))
    assert first.parameters.theta.tobytes() == second.parameters.theta.tobytes()


def test_a_smoothed_cost_is_refused(make_demand):
    problem = make_demand(smoothing=0.1)
    assert "set smoothing=0" in Exact().why_not(problem)
    with pytest.raises(UnsupportedProblemError, match="Exact cannot solve this: .*smoothing=0"):
        Exact().solve(problem)
    assert Exact().why_not(make_demand()) is None


def test_running_out_of_steps_is_said(make_demand):
    with pytest.warns(ConvergenceWarning, match="^Exact ran out of steps after 150 .*raise max_steps"):
        solution = Exact(max_steps=150, gap_tol=1e-12).solve(make_demand(40, 15, share=0.05))
    assert solution.n_steps == 150
    assert not solution.converged


def test_options_are_checked_by_name():
    with pytest.raises(InvalidInputError, match="gap_tol must be > 0"):
        Exact(gap_tol=-1.0)
    with pytest.raises(InvalidInputError, match="max_steps must be >= 1"):
        Exact(max_steps=0)


def test_a_run_that_does_not_converge_says_so_and_does_not_overflow():
    # A column of 1e5 beside one of 1, in their own units, at a radius of next to nothing.
    X = [
        [-20446, -2.13],
        [-95491, 9.28],
        [44751, -1.68],
        [30265, 1.45],
        [-21661, 5.04],
        [-12147, -1.70],
    ]
    y = [-204.5, -363.0, -213.1, -208.8, -160.1, -236.1]
    ball = WassersteinBall(4.5e-6, outcome_cost=570.0, scale=False)
    problem = Problem(Newsvendor(0.11, 1.0), Linear(), Empirical(X, y), ball)
    with pytest.warns(ConvergenceWarning, match="Exact ran out of steps"):
        solution = Exact(max_steps=20_000).solve(problem)
    assert math.isfinite(solution.certificate.gap)
