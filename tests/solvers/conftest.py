"""Problems from the paper's demand model, with their optimum from CVXPY, solved once."""

import functools

import pytest

from surefoot import Problem, WassersteinBall
from surefoot.certificates import gap_floor, worst_case_value
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_problems
from surefoot.solvers import ConvexProgram


def demand_problem(
    n=40, s=3, *, share=0.3, coefficients="positive", intercept=True, smoothing=0.0, **ball
) -> Problem:
    """The demand model at a share of the radius from which on the policy is constant."""
    data = synthetic(n, s, coefficients=coefficients, seed=n + s, test=1)

    def at(radius):
        return Problem(
            Newsvendor(1.0, 0.2, smoothing),
            Linear(intercept=intercept),
            Empirical(data.X, data.y),
            WassersteinBall(radius, **ball),
        )

    return at(share * affine_problems(at(1.0))[0].collapse_radius())


@functools.cache
def _optimum(problem: Problem) -> tuple[float, float]:
    total = floor = 0.0
    for product in affine_problems(problem):
        answer = ConvexProgram().solve_affine(product)
        total += worst_case_value(product, answer.theta, answer.intercept)[0]
        floor += gap_floor(product)
    return total, floor


@pytest.fixture(scope="session")
def make_demand():
    """Return the maker of demand problems; equal options give the same object."""
    return functools.cache(demand_problem)


@pytest.fixture(scope="session")
def true_gap():
    """Return the maker of true gaps: (upper - optimum) / max(optimum, a hundredth of SAA)."""

    def gap(problem: Problem, upper: float) -> float:
        optimum, floor = _optimum(problem)
        return (upper - optimum) / max(optimum, floor)

    return gap
