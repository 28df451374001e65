"""Least squares in a ball of order 2: the closed form of the worst case, and any slopes as a proof."""

import numpy as np
import pytest

from surefoot import Box, Problem, WassersteinBall
from surefoot.certificates.squares import (
    squares_certificate,
    squares_lower,
    squares_of,
    squares_upper,
    why_not_squares,
)
from surefoot.costs import Newsvendor, Quadratic
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear, LinearParameters
from surefoot.problem import general_form
from tests.oracles.squares import best_worst_square, worst_square


def form_of(seed, n=12, s=3, radius=0.3, intercept=True, nominal=None, policy=None, cost=None, **ball):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, s)) * [1.0, 5.0, 0.2, *[1.0] * 20][:s] + 2.0
    y = X @ rng.normal(size=s) + rng.normal(size=n)
    nominal = nominal or Empirical(X, y, rng.uniform(0.5, 1.5, size=n))
    policy = policy or Linear(intercept=intercept)
    return general_form(
        Problem(cost or Quadratic(2.0), policy, nominal, WassersteinBall(radius, **ball))
    )


def scaled(form):
    """Contexts in the units of the ball, which move by themselves."""
    return form.contexts / form.scale


@pytest.mark.parametrize("kappa", [np.inf, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_worst_case_is_that_of_a_search_for_the_multiplier(seed, kappa):
    form = form_of(seed, outcome_cost=kappa, frozen=(1,) if seed == 2 else ())
    rng = np.random.default_rng(seed)
    theta, intercept = rng.normal(size=3), float(rng.normal())
    residuals = form.contexts @ theta + intercept - form.outcomes[:, 0]
    slope = np.append((theta * form.scale)[form.movable], 0.0 if kappa == np.inf else 0.5)
    policy = LinearParameters(theta[:, None], np.array([intercept]))
    found = squares_upper(form, squares_of(form), policy)
    expected = worst_square(residuals, form.weights, np.linalg.norm(slope), form.radius, 2.0)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.sweep
@pytest.mark.parametrize("n", [4, 12])
@pytest.mark.parametrize("radius", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("kappa", [np.inf, 4.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_slopes_prove_more_than_is_true(n, radius, kappa, intercept):
    form = form_of(n, n=n, s=6, radius=radius, intercept=intercept, outcome_cost=kappa, frozen=(2,))
    best = best_worst_square(
        scaled(form), form.outcomes[:, 0], form.weights, radius, weight=2.0,
        still=0.0 if kappa == np.inf else 0.5, moving=form.movable, intercept=intercept,
    )  # fmt: skip
    squares, rng = squares_of(form), np.random.default_rng(0)
    for _ in range(200):
        proved = squares_lower(squares, rng.normal(size=n) - 0.5 * squares.target)
        assert proved <= best * (1.0 + 1e-6) + 1e-9


def test_outcomes_that_do_not_vary_leave_what_the_outcomes_move():
    X, kappa = np.random.default_rng(0).normal(size=(6, 2)), 4.0
    form = form_of(0, nominal=Empirical(X, np.full(6, 3.0)), outcome_cost=kappa)
    policy = LinearParameters(np.zeros((2, 1)), np.array([3.0]))
    found = squares_certificate(form, policy, np.zeros(6))
    assert found.upper == pytest.approx(2.0 * form.radius**2 / kappa)
    assert found.gap <= 1e-12
    assert found.kind == "exact"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"cost": Newsvendor(1.0, 0.2)}, "the quadratic cost of one product"),
        ({"policy": MLP((2,))}, "a linear policy without limits"),
        ({"policy": Linear(decisions=Box(0.0, 1.0))}, "a linear policy without limits"),
        ({"support": Box(-20.0, 20.0)}, "a ball of order 2 without a support"),
        ({"nominal": Gaussian(np.zeros(4), np.eye(4))}, "a nominal of rows"),
    ],
)
def test_what_has_no_closed_form(given, reason):
    assert reason in why_not_squares(form_of(0, **given))


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_a_large_offset_of_outcomes_hides_no_gap(offset):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] + np.random.default_rng(1).normal(size=40)
    policy = LinearParameters(np.zeros((2, 1)), np.array([y.mean() + offset + 0.5]))
    found = squares_certificate(form_of(0, nominal=Empirical(X, y + offset)), policy, np.zeros(40))
    assert found.gap > 0.5
