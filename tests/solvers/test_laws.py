"""A law of every solver: the units of contexts, outcomes and costs change nothing but units."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surefoot import DASGD, Box, ConvexProgram, Exact, PrimalDual, Problem
from surefoot.costs import Newsvendor
from surefoot.engines.choice import worst_values
from surefoot.nominals import Empirical

law = settings(derandomize=True, deadline=None, max_examples=15)
# From a billionth to a billion, as powers of ten.
powers = st.tuples(*[st.floats(-9.0, 9.0)] * 3)

GEOMETRIES = {
    "order 1": {"order": 1},
    "order 2": {"order": 2},
    "order 1, kappa": {"order": 1, "outcome_cost": 0.8},
    "order 2, kappa": {"order": 2, "outcome_cost": 0.8},
    "order 2, no intercept": {"order": 2, "intercept": False},
    "order 2, frozen": {"order": 2, "frozen": (1,)},
}
BOXES = {
    "order 2, box": {"order": 2, "box": "closed", "outcome_cost": 0.8},
    "order 1, open box": {"order": 1, "box": "open"},
}


def rescaled(problem, contexts, outcomes, costs):
    """The same question with contexts (and the radius), outcomes and costs in other units."""
    cost, nominal, ball = problem.cost, problem.nominal, problem.ball
    box = ball.support
    if box is not None:
        lower, upper = box.arrays(nominal.n_columns)
        low, high = box.outcome
        box = Box(contexts * lower, contexts * upper, outcome=(outcomes * low, outcomes * high))
    kappa = ball.outcome_cost * (contexts / outcomes) ** ball.order
    return Problem(
        Newsvendor(costs * cost.backorder, costs * cost.holding),
        problem.policy,
        Empirical(contexts * nominal.contexts, outcomes * nominal.outcomes, nominal.weights),
        replace(ball, radius=contexts * problem.radius, outcome_cost=kappa, support=box),
    )


@pytest.fixture(scope="module")
def describe(make_problem):
    """Return a problem by the name of its geometry: always the same one."""
    return functools.cache(
        lambda name: make_problem(
            4, rows=24, columns=3, radius=0.1, weighted=True, **(GEOMETRIES | BOXES)[name]
        )
    )


@pytest.fixture(scope="module")
def solve_once(describe):
    """Return the solution of a problem in its first units."""
    return functools.cache(lambda solver, name: solver.solve(describe(name), seed=1))


QUICK = [(solver, name) for solver in (PrimalDual(), Exact()) for name in GEOMETRIES]
SLOW = [
    (solver, name)
    for solver in (DASGD(gap_tol=0.05), ConvexProgram())
    for name in ("order 2, kappa", *BOXES)
]


def named(case):
    return case if isinstance(case, str) else type(case).__name__


@pytest.mark.sweep
@pytest.mark.parametrize(("solver", "name"), QUICK + SLOW, ids=named)
@pytest.mark.parametrize("units", [(2.0**20, 1.0, 2.0**-20), (2.0**-20, 2.0**13, 2.0**20)], ids=str)
def test_powers_of_two_change_no_digit(describe, solve_once, solver, name, units):
    first = solve_once(solver, name)
    other = solver.solve(rescaled(describe(name), *units), seed=1)
    contexts, outcomes, costs = units
    np.testing.assert_array_equal(
        other.parameters.theta, first.parameters.theta * (outcomes / contexts)
    )
    np.testing.assert_array_equal(other.parameters.intercept, first.parameters.intercept * outcomes)
    assert other.certificate.upper == first.certificate.upper * outcomes * costs
    assert other.certificate.lower == first.certificate.lower * outcomes * costs
    assert other.certificate.gap == first.certificate.gap
    assert other.n_steps == first.n_steps
    assert other.status == first.status
    order = describe(name).ball.order
    np.testing.assert_array_equal(
        other.multiplier, first.multiplier * (outcomes * costs / contexts**order)
    )


def assert_scaled(problem, solver, first, units):
    """The solution in other units is one of the first problem, in its units."""
    contexts, outcomes, costs = units
    other = solver.solve(rescaled(problem, *units), seed=1)
    unit = outcomes * costs
    assert other.converged
    assert other.certificate.gap <= solver.gap_tol
    # Both are within their gaps of one and the same optimum.
    assert first.certificate.lower <= other.certificate.upper / unit * (1 + 1e-9)
    assert other.certificate.lower / unit <= first.certificate.upper * (1 + 1e-9)
    # And the policy, brought back to the units of the first problem, has the same worst case there.
    back = replace(
        other.parameters,
        theta=other.parameters.theta * (contexts / outcomes),
        intercept=other.parameters.intercept / outcomes,
    )
    values, _ = worst_values(problem, back, np.array([problem.radius]))
    assert values[0] == pytest.approx(other.certificate.upper / unit, rel=1e-9)


@pytest.mark.parametrize(("solver", "name"), QUICK, ids=named)
@law
@example((-9.0, 9.0, -9.0))
@example((9.0, -9.0, 9.0))
@given(powers=powers)
def test_units_scale_the_answer(describe, solve_once, solver, name, powers):
    units = [10.0**power for power in powers]
    assert_scaled(describe(name), solver, solve_once(solver, name), units)


@pytest.mark.sweep
@pytest.mark.parametrize(("solver", "name"), SLOW, ids=named)
@pytest.mark.parametrize("units", [(1e-3, 1e3, 1e-3), (1e6, 1e-6, 7.0)], ids=str)
def test_units_scale_the_answer_of_slower_solvers(describe, solve_once, solver, name, units):
    assert_scaled(describe(name), solver, solve_once(solver, name), units)
