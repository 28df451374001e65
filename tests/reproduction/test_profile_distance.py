"""The profile function: closed forms, a dual bound by hand, and laws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from reproduction.profile_distance import profile_distance
from surefoot import Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.estimators.radius_rules import ruled_radius, score_distance
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms
from surefoot.solvers import Exact

pytest.importorskip("cvxpy")
B, H = 1.0, 0.2
T = norm.ppf(B / (B + H))


def case(n, d, seed, **options):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    theta = np.full(d, 1.5 / math.sqrt(d))
    y = X @ theta + rng.standard_normal(n)
    problem = Problem(Newsvendor(B, H), Linear(intercept=options.pop("intercept", True)), Empirical(X, y),
                      WassersteinBall(0.0, **options))  # fmt: skip
    product = affine_forms(problem, merge=False)[0].in_plain_units()
    return problem, product, theta * product.scale


def slopes_of(product, theta):
    return np.where(product.residuals(theta, T) >= 0, H, -B)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_without_crossing_it_is_the_distance_of_the_score(order, seed):
    _, product, theta = case(25, 3, seed, order=order, intercept=False)
    assert profile_distance(product, theta, T, may_cross=False) == pytest.approx(
        float(score_distance(product, slopes_of(product, theta))), rel=1e-4
    )


@pytest.mark.parametrize("order", [1, 2])
def test_crossing_only_makes_it_cheaper_where_nothing_must_balance(order):
    for seed in range(4):
        _, product, theta = case(25, 2, seed, order=order, intercept=False)
        kept = profile_distance(product, theta, T, may_cross=False)
        # A row that would cross stops at the kink, which costs others a little more.
        assert profile_distance(product, theta, T) <= 1.05 * kept


def dual_bound(product, theta, point):
    """A lower bound on the squared profile distance of order 2, from multipliers of the score."""
    lam, lam0 = point[:-1], point[-1]
    total = 0.0
    for x, r, weight in zip(
        product.contexts, product.residuals(theta, T), product.weights, strict=True
    ):
        values = []
        for w, side in ((H, 1.0), (-B, -1.0)):
            short = max(0.0, -side * (r - w * theta @ lam / 2))
            values.append(w * (lam @ x + lam0) - w * w * lam @ lam / 4 + short**2 / (theta @ theta))
        total += weight * min(values)
    return total


def test_duality_from_below():
    _, product, theta = case(12, 2, 5)
    primal = profile_distance(product, theta, T) ** 2
    best = max(
        -minimize(lambda p: -dual_bound(product, theta, p), guess, method="Nelder-Mead",
                  options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-12}).fun
        for guess in (np.zeros(3), np.full(3, 0.1))
    )  # fmt: skip
    assert best <= primal * (1 + 1e-4) + 1e-9
    assert best >= 0.9 * primal


@pytest.mark.parametrize("order", [1, 2])
def test_the_best_policy_of_the_data_needs_no_move(order):
    problem, product, _ = case(20, 2, 3, order=order)
    best = Exact(gap_tol=1e-7).solve(problem)
    theta = best.parameters.theta[:, 0] * product.scale
    assert profile_distance(product, theta, float(best.parameters.intercept[0])) < 5e-3


def test_a_constant_policy_cannot_make_rows_cross():
    _, product, theta = case(11, 2, 1)  # 11 rows cannot be split in 5 : 1 without crossing
    assert profile_distance(product, 0.0 * theta, T) == math.inf


def test_frozen_columns_stay():
    _, product, theta = case(20, 2, 2)
    held = replace(product, movable=np.array([True, False]))
    assert profile_distance(held, theta, T) >= profile_distance(product, theta, T) * (1 - 1e-6)
    none = replace(product, movable=np.array([False, False]))
    assert profile_distance(none, theta, T) == math.inf


@pytest.mark.parametrize(("n", "d", "order"), [(30, 2, 1), (30, 2, 2), (60, 5, 2)])
def test_the_true_policy_is_the_best_one_of_some_distribution_in_the_ball(n, d, order):
    held = []
    for seed in range(25):
        problem, product, theta = case(n, d, seed, order=order)
        radius = ruled_radius("profile", problem, seed=seed).radius
        held.append(profile_distance(product, theta, T) <= radius)
    assert np.mean(held) >= 0.9  # stated 95 %, and crossing makes it more
