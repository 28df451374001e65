"""The certificate: gaps, sums over products and the sentence."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from surefoot import DASGD, Box, Exact, Problem, WassersteinBall
from surefoot.certificates import (
    certify,
    gap_floor,
    lower_bound,
    make_certificate,
    relative_gap,
    worst_case_value,
)
from surefoot.costs import Newsvendor
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_problems


@pytest.mark.parametrize(
    ("upper", "lower", "floor", "gap"),
    [
        (1.1, 1.0, 0.01, 0.1),
        (1.1, 0.0, 0.01, 110.0),  # relative to the floor, not to nothing
        (0.002, 0.001, 0.01, 0.1),
        (1.0, 1.0, 0.0, 0.0),
        (1.0 + 1e-13, 1.0, 0.0, 0.0),  # rounding
        (1.0 + 1e-10, 1.0, 0.0, 1e-10),
        (0.9, 1.0, 0.0, 0.0),  # bounds crossed by rounding count as met
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 0.0, 0.0, math.inf),
        (1.0, -1.0, 0.5, 4.0),
    ],
)
def test_relative_gap(upper, lower, floor, gap):
    assert relative_gap(upper, lower, floor) == pytest.approx(gap, rel=1e-5)


def test_floor_is_a_hundredth_of_the_best_constant_cost(make_affine):
    problem = make_affine(1, backorder=1.0, holding=0.25, weighted=True)
    costs = [
        float(problem.weights @ np.maximum(0.25 * (z - problem.outcomes), problem.outcomes - z))
        for z in problem.outcomes
    ]
    assert gap_floor(problem) == pytest.approx(0.01 * min(costs))


def test_certify_sums_over_products_and_takes_the_best_slopes(make_affine):
    problems = [make_affine(1), make_affine(2, backorder=3.0)]
    policies = [(np.array([0.1, 0.2, 0.0]), 1.0), (np.array([0.0, 0.1, -0.2]), 0.5)]
    slopes = [problem.constant_order()[1] for problem in problems]
    certificate = certify(problems, policies, [[np.zeros(8), slopes[0]], [slopes[1]]])
    upper = sum(worst_case_value(p, *policy)[0] for p, policy in zip(problems, policies, strict=True))
    lower = sum(lower_bound(p, u) for p, u in zip(problems, slopes, strict=True))
    assert certificate.upper == pytest.approx(upper, rel=1e-14)
    assert certificate.lower == pytest.approx(lower, rel=1e-14)
    assert certificate.gap == pytest.approx((upper - lower) / lower, rel=1e-12)
    assert 0 < lower < upper
    assert f"{upper:.6g}" in certificate.message
    assert f"{lower:.6g}" in certificate.message
    assert certify(problems, policies, [[], []]).lower == 0.0


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "exact"),
        ({"order": 1}, "exact"),
        ({"box": "closed"}, "exact"),
        ({"box": "closed", "outcome_cost": 1.0}, "exact"),
        ({"box": "closed", "order": 1}, "bound"),
        ({"smoothing": 0.1}, "bound"),
    ],
)
def test_kind_says_whether_both_bounds_are_duals(make_affine, options, kind):
    problem = make_affine(1, **options)
    policy, slopes = (np.zeros(3), 1.0), problem.constant_order()[1]
    assert certify([problem], [policy], [[slopes]]).kind == kind
    assert certify([make_affine(1), problem], [policy] * 2, [[slopes]] * 2).kind == kind


def test_an_unbounded_worst_case_says_so():
    certificate = make_certificate(math.inf, 1.0, 0.1, "exact")
    assert certificate.gap == math.inf
    assert "unbounded" in certificate.message


def test_nothing_known_of_the_best_is_no_gap_of_zero():
    assert relative_gap(-13.9, -math.inf, 0.0) == math.inf


# Limits on decisions


def brute_force(policy, x, y, order, radius):
    """The worst case of any policy of one column: every sample to every place of a fine grid.

    The dual, minimised over the multiplier; a grid can only miss a little of the adversary's gain.
    """
    places = np.linspace(x.min() - 8.0, x.max() + 8.0, 4_001)
    decisions = policy(places[:, None])
    costs = np.array([Newsvendor(1.0, 0.3).evaluate(decisions, np.full((4_001, 1), o)) for o in y])
    distance = np.abs(places - x[:, None]) ** order

    def dual(log_gamma):
        gamma = math.exp(log_gamma)
        return gamma * radius**order + (costs - gamma * distance).max(axis=1).mean()

    return minimize_scalar(dual, bounds=(-20.0, 7.0), method="bounded", options={"xatol": 1e-9}).fun


@pytest.mark.parametrize("solver", [DASGD(), Exact()], ids=["dasgd", "exact"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("limits", [Box(0.5, 2.0), Box(-math.inf, 1.0), Box(-9.0, 9.0)])
def test_the_upper_bound_holds_for_the_policy_that_is_cut_to_its_limits(limits, order, solver):
    rng = np.random.default_rng(5)
    x = rng.normal(size=14)
    y = 1.0 + x + 0.3 * rng.normal(size=14)
    policy, ball = Linear(decisions=limits), WassersteinBall(0.2, order=order, scale=False)
    problem = Problem(Newsvendor(1.0, 0.3), policy, Empirical(x[:, None], y), ball)
    solution = solver.solve(problem)

    def decide(contexts):
        return policy.decide(solution.parameters, contexts)

    for contexts in (x[:, None], 1e3 * x[:, None]):
        assert limits.contains(decide(contexts))
    certificate = solution.certificate
    true = brute_force(decide, x, y, order, 0.2)
    assert certificate.upper >= true - 1e-6
    assert certificate.kind == "bound"
    (affine,) = affine_problems(problem)
    inside = np.clip(y, limits.lower, limits.upper)
    least = np.mean(Newsvendor(1.0, 0.3).evaluate(inside[:, None], y[:, None]))
    assert affine.unavoidable == pytest.approx(least, rel=1e-12)
    assert f"{least:.6g} no decision within the limits avoids" in certificate.message
    assert certificate.lower == pytest.approx(least, rel=1e-12)  # a cut policy may beat any affine one
    if limits == Box(-9.0, 9.0):  # which never binds: the bound is the worst case itself
        assert certificate.upper == pytest.approx(true, rel=0.01)
        free = solver.solve(Problem(problem.cost, Linear(), problem.nominal, ball))
        assert certificate.upper == free.certificate.upper
