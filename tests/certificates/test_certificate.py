"""The certificate: gaps, sums over products and the sentence."""

import math

import numpy as np
import pytest

from surefoot.certificates import (
    certify,
    gap_floor,
    lower_bound,
    make_certificate,
    relative_gap,
    worst_case_value,
)


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
