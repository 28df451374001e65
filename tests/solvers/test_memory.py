"""The run with memory in places where it once crawled, and far from zero where bounds once broke."""

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

from surefoot import DASGD, Exact, Problem, WassersteinBall
from surefoot.certificates import lower_bound
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_problems

COST = Newsvendor(1.0, 0.2)


@pytest.mark.parametrize("order", [1, 2])
def test_just_below_the_collapse_radius_few_steps_are_enough(order):
    data = synthetic(n=100, s=20, coefficients="mixed", seed=3, test=1)

    def at(radius):
        return Problem(COST, Linear(), Empirical(data.X, data.y), WassersteinBall(radius, order=order))

    collapse = affine_problems(at(0.0))[0].collapse_radius()
    assert DASGD(gap_tol=1e-3, max_steps=60_000).solve(at(0.999 * collapse)).converged


@pytest.mark.parametrize("kappa", [1.0, 3.0, 5.0])
def test_a_policy_on_the_border_where_its_price_sets_in(kappa):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(27, 30)), rng.integers(0, 3, 27)
    ball = WassersteinBall(0.3, order=1, outcome_cost=kappa)
    problem = Problem(COST, Linear(), Empirical(X, y), ball)
    solution = DASGD(max_steps=100_000).solve(problem)
    assert solution.certificate.upper <= 1.01 * Exact().solve(problem).certificate.upper
    norm = np.linalg.norm(solution.products[0].theta)
    assert norm * kappa == pytest.approx(1.0, abs=0.05)


def test_the_lower_bound_holds_for_columns_far_from_zero():
    rng = np.random.default_rng(0)
    X = 100 + 1e-9 * rng.normal(size=(12, 2))
    small = (X - 100) * 1e9  # what of the columns survives beside their mean
    y = small @ [3.0, -2.0] + 0.1 * rng.normal(size=12)
    problem = Problem(COST, Linear(), Empirical(X, y), WassersteinBall(0.0))
    best = QuantileRegressor(quantile=1 / 1.2, alpha=0, solver="highs").fit(small, y)
    residuals = best.predict(small) - y
    optimum = np.maximum(0.2 * residuals, -residuals).mean()
    (affine,) = affine_problems(problem)
    for slopes in (affine.constant_order()[1], rng.uniform(-1.0, 0.2, size=12)):
        assert lower_bound(affine, slopes) <= optimum * (1 + 1e-5)
    assert DASGD().solve(problem).certificate.upper <= optimum * 1.01
