"""The certificate: gaps, sums over products and the sentence."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from surefoot import DASGD, Box, Exact, PrimalDual, Problem, WassersteinBall
from surefoot.certificates import certify, make_certificate, relative_gap
from surefoot.certificates.certificate import certified
from surefoot.costs import Newsvendor
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms


@pytest.mark.parametrize(
    ("upper", "lower", "floor", "gap"),
    [
        (1.1, 1.0, 0.01, 0.1),
        (1.1, 0.0, 0.01, 110.0),  # relative to the floor, not to nothing
        (0.002, 0.001, 0.01, 0.1),
        (1.0, 1.0, 0.0, 0.0),
        (1.0 + 1e-13, 1.0, 0.0, 0.0),  # rounding
        (1.0 + 1e-10, 1.0, 0.0, 1e-10),
        (1.0 - 1e-13, 1.0, 0.0, 0.0),  # rounding the other way
        (1.0 - 1e-8, 1.0, 0.0, 0.0),  # crossed by rounding
        (-1e-9, 0.0, 1.0, 0.0),
        (0.9, 1.0, 0.0, math.inf),  # a contradiction proves nothing
        (-1.1, -1.0, 0.0, math.inf),
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 0.0, 0.0, math.inf),
        (1.0, -1.0, 0.5, 4.0),
        (math.inf, 1.0, 0.1, math.inf),  # nothing is known of this policy
    ],
)
def test_relative_gap(upper, lower, floor, gap):
    assert relative_gap(upper, lower, floor) == pytest.approx(gap, rel=1e-5)


def test_bounds_that_contradict_each_other_are_said_to():
    found = make_certificate(0.9, 1.0, 0.01, "exact")
    assert (found.gap, found.kind) == (math.inf, "estimate")
    assert "rounding has spoiled one of them, so nothing is proved" in found.message
    assert make_certificate(1.0 - 1e-9, 1.0, 0.01, "exact").kind == "exact"


def test_certify_sums_over_products(make_affine):
    forms = [make_affine(1), make_affine(2, backorder=3.0)]
    policies = [(np.array([0.1, 0.2, 0.0]), 1.0), (np.array([0.0, 0.1, -0.2]), 0.5)]
    slopes = [form.constant_order()[1] for form in forms]
    certificate, multipliers = certified(forms, policies, slopes)
    assert multipliers == [form.worst_value(*p)[1] for form, p in zip(forms, policies, strict=True)]
    upper = sum(form.worst_value(*policy)[0] for form, policy in zip(forms, policies, strict=True))
    lower = sum(form.lower_bound(u) for form, u in zip(forms, slopes, strict=True))
    assert certificate.upper == pytest.approx(upper, rel=1e-14)
    assert certificate.lower == pytest.approx(lower, rel=1e-14)
    assert certificate.gap == pytest.approx((upper - lower) / lower, rel=1e-12)
    assert 0 < lower < upper
    assert f"{upper:.6g}" in certificate.message
    assert f"{lower:.6g}" in certificate.message
    assert certify(forms, policies, [np.zeros(8), np.zeros(8)]).lower == 0.0


@pytest.mark.parametrize("limits", [None, Box(-1.0, 2.0)], ids=["free", "limited"])
def test_certificates_speak_of_the_user_s_costs(make_problem, limits):
    described = make_problem(1, backorder=7e4, holding=3e3)
    nominal = Empirical(described.nominal.contexts, 1e-3 * described.nominal.outcomes)
    limits = None if limits is None else Box(1e-3 * limits.lower, 1e-3 * limits.upper)
    described = replace(described, policy=Linear(decisions=limits), nominal=nominal)
    (form,) = affine_forms(described)
    assert form.value_unit > 10.0
    theta, t, slopes = np.array([0.1, 0.2, 0.0]), 1.0, form.constant_order()[1]
    certificate = certify([form], [(theta, t)], [slopes])
    # In the user's own units: costs of cut outcomes by hand, at a radius of zero.
    user_theta, user_t = form.in_user_units(theta, t)
    y = nominal.outcomes[:, 0]
    cut = y if limits is None else limits.map_into(y)

    def mean_cost(r):
        return float(np.mean(np.where(r >= 0, 3e3 * r, -7e4 * r)))

    expected = mean_cost(nominal.contexts @ user_theta + user_t - cut) + mean_cost(cut - y)
    still = certify([form.at_radius(0.0)], [(theta, t)], [slopes])
    assert still.upper == pytest.approx(expected, rel=1e-12)
    assert certificate.upper > still.upper
    decision = form.constant_order()[0] * form.outcome_unit
    if limits is None:
        far = certify([form.at_radius(99.0)], [(0 * theta, decision / form.outcome_unit)], [slopes])
        assert far.lower == pytest.approx(mean_cost(decision - y), rel=1e-9)
        assert far.gap == pytest.approx(0.0, abs=1e-9)
    else:
        assert certificate.lower == pytest.approx(mean_cost(cut - y), rel=1e-12)


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
    form = make_affine(1, **options)
    policy, slopes = (np.zeros(3), 1.0), form.constant_order()[1]
    assert certify([form], [policy], [slopes]).kind == kind
    assert certify([make_affine(1), form], [policy] * 2, [slopes] * 2).kind == kind


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


@pytest.mark.parametrize(
    "solver", [PrimalDual(), DASGD(), Exact()], ids=["primal-dual", "dasgd", "exact"]
)
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
    (form,) = affine_forms(problem)
    inside = np.clip(y, limits.lower, limits.upper)
    least = np.mean(Newsvendor(1.0, 0.3).evaluate(inside[:, None], y[:, None]))
    assert form.unavoidable * form.value_unit == pytest.approx(least, rel=1e-12)
    assert f"{least:.6g} no decision within the limits avoids" in certificate.message
    assert certificate.lower == pytest.approx(least, rel=1e-12)  # a cut policy may beat any affine one
    if limits == Box(-9.0, 9.0):  # which never binds: the bound is the worst case itself
        assert certificate.upper == pytest.approx(true, rel=0.01)
        free = solver.solve(Problem(problem.cost, Linear(), problem.nominal, ball))
        assert certificate.upper == free.certificate.upper


def test_of_a_best_that_costs_next_to_nothing_no_per_cent_is_claimed():
    usual, tiny = make_certificate(1.1, 1.0, 0.01, "exact"), make_certificate(8e-5, 1e-9, 0.01, "exact")
    assert usual.message.endswith("so this one is within 10 % of the best.")
    assert tiny.message.endswith("so this one costs at most 8e-05 more than the best, 0.8 % of 0.01.")
