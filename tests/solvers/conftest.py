"""Problems from the paper's demand model, with their optimum from CVXPY, solved once."""

import functools

import pytest

from surefoot import Problem, WassersteinBall
from surefoot.ambiguity import WassersteinForm
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms
from surefoot.solvers import ConvexProgram
from surefoot.typing import FloatArray


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

    return at(share * affine_forms(at(1.0))[0].collapse_radius())


@functools.cache
def _optimum(problem: Problem) -> tuple[float, float]:
    total = floor = 0.0
    for form in affine_forms(problem):
        answer = ConvexProgram().solve_form(form)
        total += form.worst_value(*answer.policy)[0] * form.value_unit
        floor += form.gap_floor * form.value_unit
    return total, floor


def plain_policy(problem: Problem, solution) -> tuple[WassersteinForm, FloatArray, float]:
    """The form of a problem of one product in the user's units of cost, with a solution's policy."""
    (form,) = affine_forms(problem)
    plain, found = form.in_plain_units(), solution.parameters
    return plain, *plain.from_user_units(found.theta[:, 0], float(found.intercept[0]))


@pytest.fixture(scope="session")
def in_form():
    """Return what gives (form, theta, intercept) of a solution, in plain units."""
    return plain_policy


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
