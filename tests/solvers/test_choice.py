"""Which solver runs where the user names none, and that its status says so."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import DASGD, Box, PrimalDual, Problem, RobustNewsvendor, WassersteinBall
from surefoot.costs import Newsvendor, Quadratic, TieredNewsvendor
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear
from surefoot.solvers import CuttingPlanes, SmoothedNewton, default_solver

COST = Newsvendor(1.0, 0.2)
PRODUCTS = Empirical(np.eye(3), np.arange(6.0).reshape(3, 2))


def describe(cost=COST, policy=None, nominal=None, **ball):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20, 2))
    rows = Empirical(X, X.sum(axis=1) + rng.uniform(size=20))
    ball = WassersteinBall(**{"radius": 0.1, **ball})
    return Problem(cost, policy or Linear(), nominal or rows, ball)


QUICK = {
    "plain": {},
    "order 1": {"order": 1},
    "outcomes move": {"outcome_cost": 2.0},
    "frozen": {"frozen": (0,)},
    "own units": {"scale": False},
    "limits": {"policy": Linear(decisions=Box(0, 2))},
    "a box that holds nothing": {"support": Box(0, 1), "frozen": (0, 1)},
    "two products, order 1": {"nominal": PRODUCTS, "order": 1},
    "two products, one adversary each": {"nominal": PRODUCTS, "adversary": "each"},
}
CUT = {
    "box": {"support": Box(0, 1)},
    "box, own units": {"support": Box(0, 1), "scale": False},
    "box, order 1": {"support": Box(0, 1), "order": 1},
    "box of outcomes": {"support": Box(-np.inf, np.inf, outcome=(0, 9)), "outcome_cost": 1.0},
    "tiers": {"cost": TieredNewsvendor(((0, 1.0), (0.5, 2.0)), 0.2)},
}
OTHERS = {
    "smoothed": {"cost": Newsvendor(1.0, 0.2, smoothing=0.1)},
    "no rows": {"nominal": Gaussian(np.zeros(3), np.eye(3))},
    "network": {"policy": MLP((4,))},
    "quadratic": {"cost": Quadratic()},
}


@pytest.mark.parametrize("name", QUICK)
def test_the_quickest_that_can_certify_is_taken(name):
    problem = describe(**QUICK[name])
    assert default_solver(problem) == PrimalDual()
    solution = default_solver(problem).solve(problem)
    assert solution.converged
    assert solution.status.startswith("PrimalDual converged after ")


@pytest.mark.parametrize("name", CUT)
def test_cutting_planes_take_small_boxes_and_costs_of_many_lines(name):
    problem = describe(**CUT[name])
    assert default_solver(problem) == CuttingPlanes()
    solution = default_solver(problem).solve(problem)
    assert solution.converged
    assert solution.status.startswith("CuttingPlanes converged after ")


@pytest.mark.parametrize("adversary", ["auto", "joint"])
def test_several_products_face_one_adversary_where_that_is_exact(adversary):
    problem = describe(nominal=PRODUCTS, adversary=adversary)
    assert default_solver(problem) == SmoothedNewton()
    solution = default_solver(problem).solve(problem)
    assert solution.converged
    assert solution.status.startswith("SmoothedNewton converged after ")


def test_da_sgd_takes_boxes_of_many_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20_000, 2))
    many = Empirical(X, X.sum(axis=1) + rng.normal(size=len(X)))
    assert default_solver(describe(nominal=many, support=Box(0, 1))) == DASGD()


@pytest.mark.parametrize("name", OTHERS)
def test_da_sgd_takes_the_rest(name):
    problem = describe(**OTHERS[name])
    assert default_solver(problem) == DASGD()
    assert PrimalDual().why_not(problem) is not None
    assert DASGD().why_not(problem) is None


def test_boxes_are_answered_within_the_box():
    # A row at the edge of the box cannot be moved further: the worst case is smaller than without.
    boxed, free = describe(support=Box(0, 1)), describe()
    inside, outside = (default_solver(p).solve(p).certificate for p in (boxed, free))
    assert inside.upper < outside.lower
    assert inside.gap <= 0.01


def test_a_model_says_which_solver_ran():
    problem = describe()
    X, y = problem.nominal.contexts, problem.nominal.outcomes[:, 0]
    model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(X, y)
    assert model.status_.startswith("PrimalDual converged after ")
    np.testing.assert_array_equal(
        model.parameters_.theta, default_solver(problem).solve(problem).parameters.theta
    )
    own = RobustNewsvendor(1.0, 0.2, radius=0.1, solver=DASGD()).fit(X, y)
    assert own.status_.startswith("DASGD converged after ")


def test_the_radius_does_not_decide():
    problem = describe()
    for radius in (0.0, 0.1, 50.0):
        assert default_solver(replace(problem, ball=problem.ball.at(radius))) == PrimalDual()


@pytest.mark.parametrize("backorder", [100.0, 1000.0])
def test_few_rows_with_lopsided_costs_and_no_intercept_get_to_their_best(backorder):
    rng = np.random.default_rng(2)
    rows = Empirical(rng.normal(size=(3, 2)), 3.0 + rng.normal(size=3))
    problem = Problem(Newsvendor(backorder, 1.0), Linear(intercept=False), rows, WassersteinBall(0.01))
    found = default_solver(problem).solve(problem)
    assert found.converged
    assert found.certificate.gap <= 0.01  # at zero the worst case is hundreds of times as large
