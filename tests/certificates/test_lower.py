"""The lower bound: valid for any slopes, tight for the right ones."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.certificates import lower_bound, worst_case_value
from surefoot.solvers import ConvexProgram

law = settings(derandomize=True, deadline=None)

ORDERS, BOXES, KAPPAS = (1, 2), (None, "closed", "open"), (math.inf, 1.5)
GEOMETRIES = [
    pytest.param(
        {"order": order, "box": box, "outcome_cost": kappa, "intercept": intercept, "frozen": frozen,
         "weighted": number % 2 == 0, "backorder": 1.0, "holding": (0.2, 1.0, 1.7)[number % 3]},
        # Shares of the collapse radius, from "moves cost more than they earn" to "nearly constant".
        (0.05, 0.3, 0.9)[number // 2 % 3],
        id=f"order{order}-{box or 'free'}-kappa{kappa}-{'t' if intercept else 'no t'}-frozen{frozen}",
    )
    for number, (order, box, kappa, intercept, frozen) in enumerate(
        itertools.product(ORDERS, BOXES, KAPPAS, (True, False), ((), (0, 1)))
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def solved(make_affine):
    """Return (problem, optimum, slopes) of a geometry, solved once by CVXPY."""

    @functools.cache
    def solve(share, **options):
        problem = make_affine(11, rows=7, **options)
        problem = problem.at_radius(share * problem.collapse_radius())
        answer = ConvexProgram().solve_affine(problem)
        optimum = worst_case_value(problem, answer.theta, answer.intercept)[0]
        return problem, optimum, answer.slopes

    return lambda options, share: solve(share, **options)


def attempts(problem, slopes, seed):
    """Slopes of every kind: the best ones, disturbed, random, far outside [-b, h]."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=len(slopes)) * 10.0 ** rng.integers(-3, 2)
    return (slopes + noise, noise, rng.choice([-problem.pieces.down, problem.pieces.up], len(slopes)))


@pytest.mark.parametrize(("options", "share"), GEOMETRIES)
def test_no_slopes_prove_more_than_the_optimum(solved, options, share):
    problem, optimum, slopes = solved(options, share)
    slow = options["box"] is not None and options["order"] == 1

    @given(seed=st.integers(0, 10_000))
    @settings(law, max_examples=1 if slow else 10)
    def check(seed):
        for tried in attempts(problem, slopes, seed):
            assert lower_bound(problem, tried) <= optimum + 1e-7

    check()


@pytest.mark.parametrize(("options", "share"), GEOMETRIES)
def test_the_right_slopes_prove_the_optimum(solved, options, share):
    problem, optimum, slopes = solved(options, share)
    loose = 1e-2 if options["box"] is not None and options["order"] == 1 else 1e-4
    bound = lower_bound(problem, slopes)
    assert optimum * (1 - loose) <= bound <= optimum + 1e-7


@pytest.mark.parametrize("share", [0.0, 1e-9, 1e-7, 1e-4, 2e-3, 0.01])
@pytest.mark.parametrize(("box", "columns"), [(None, 2), (None, 9), ("closed", 2)])
@pytest.mark.parametrize("order", [1, 2])
def test_tiny_radii_are_bounded_validly_and_well(make_affine, share, box, order, columns):
    problem = make_affine(12, rows=6, columns=columns, order=order, box=box)
    problem = problem.at_radius(share * problem.collapse_radius())
    answer = ConvexProgram().solve_affine(problem)
    optimum = worst_case_value(problem, answer.theta, answer.intercept)[0]
    size = float(problem.weights @ np.abs(problem.outcomes))
    bound = lower_bound(problem, answer.slopes)
    assert optimum - 1e-3 * max(optimum, 1e-2 * size) <= bound <= optimum + 1e-7
    for tried in attempts(problem, answer.slopes, seed=1):
        assert lower_bound(problem, tried) <= optimum + 1e-7


@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=25)
def test_weak_duality_for_smoothed_costs_too(make_affine, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(
        seed % 5, order=1 + seed % 2, smoothing=rng.choice([0.0, 0.1, 1.0]), weighted=True,
        intercept=bool(seed % 3), frozen=((), (2,))[seed % 4 == 0], radius=rng.exponential(),
        outcome_cost=rng.choice([math.inf, 1.0]), box=("closed", None)[seed % 5 > 0],
    )  # fmt: skip
    slopes = rng.uniform(-1.5, 1.0, size=len(problem.weights))
    bound = lower_bound(problem, slopes)
    for _ in range(5):
        theta, t = rng.normal(size=3) * rng.exponential(), rng.normal() if problem.intercept else 0.0
        assert bound <= worst_case_value(problem, theta, t)[0] + 1e-9


def test_the_dual_constraint_of_the_design_page(make_affine):
    # With an intercept: sum u = 0, ||X'u|| <= rho C; feasible slopes prove exactly -y'u.
    for order in (1, 2):
        problem = make_affine(3, order=order, intercept=True)
        _, u = problem.constant_order()
        problem = problem.at_radius(problem.collapse_radius() * (1 + 1e-9))
        gain = -float((problem.weights * u) @ problem.outcomes)
        assert lower_bound(problem, u) == pytest.approx(gain, rel=1e-8)
        # At half the radius half of the slopes can be paid for.
        half = problem.at_radius(problem.radius / 2)
        assert lower_bound(half, u) == pytest.approx(gain / 2, rel=1e-5)


def test_without_an_intercept_order_two_pays_with_the_mean_of_the_slopes(make_affine):
    problem = make_affine(1, intercept=False, backorder=1.0, holding=0.2)
    u = np.full(len(problem.weights), -0.6)
    price = np.linalg.norm(problem.contexts.T @ (problem.weights * u))
    affordable = price / math.sqrt(0.2 + (0.2 - 1.0) * -0.6)
    gain = 0.6 * float(problem.weights @ problem.outcomes)
    enough, short = problem.at_radius(affordable * 1.0001), problem.at_radius(affordable * 0.9)
    assert gain > 0
    assert lower_bound(enough, u) == pytest.approx(gain, rel=1e-6)
    assert lower_bound(short, u) < 0.99 * gain


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("share", [1e-4, 1e-3])
def test_slopes_that_are_nearly_right_prove_nearly_all_at_a_small_radius(
    make_affine, order, intercept, share
):
    # Shrinking them until a small budget pays for their imbalance would leave nearly nothing.
    problem = make_affine(12, rows=25, order=order, intercept=intercept)
    problem = problem.at_radius(share * problem.collapse_radius())
    answer = ConvexProgram().solve_affine(problem)
    optimum = worst_case_value(problem, answer.theta, answer.intercept)[0]
    disturbed = answer.slopes + 0.01 * np.random.default_rng(0).normal(size=25)
    assert 0.97 * optimum <= lower_bound(problem, disturbed) <= optimum + 1e-7


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed", "open"])
def test_useless_slopes_prove_zero_and_nothing_negative(make_affine, order, box):
    problem = make_affine(3, order=order, box=box)
    assert lower_bound(problem, np.zeros(8)) == 0.0
    backwards = -problem.constant_order()[1]
    assert lower_bound(problem, backwards) >= 0.0
