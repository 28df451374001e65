"""The best policy of least squares in a ball: few rows or many, and proved to the last digits."""

import numpy as np
import pytest

from surefoot import Problem, RobustPolicy, WassersteinBall
from surefoot.certificates.squares import squares_certificate
from surefoot.costs import Quadratic
from surefoot.engines.closed_squares import best_squares
from surefoot.exceptions import ConvergenceWarning
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import general_form
from surefoot.solvers import DASGD
from tests.oracles.squares import best_worst_square


def rows(seed, n, s, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, s))
    return X, X @ rng.normal(size=s) + noise * rng.normal(size=n)


def best_certificate(X, y, ball, weight=1.0, intercept=True, weights=None):
    nominal = Empirical(X, y, weights)
    form = general_form(Problem(Quadratic(weight), Linear(intercept=intercept), nominal, ball))
    return form, squares_certificate(form, *best_squares(form))


@pytest.mark.sweep
@pytest.mark.parametrize(("n", "s"), [(6, 10), (10, 10), (11, 10), (30, 3), (2, 1)])
@pytest.mark.parametrize("radius", [0.0, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("kappa", [np.inf, 2.0])
def test_the_best_policy_is_that_of_the_program(n, s, radius, kappa):
    X, y = rows(n, n, s)
    form, found = best_certificate(X, y, WassersteinBall(radius, outcome_cost=kappa))
    still = 0.0 if kappa == np.inf else 1.0 / np.sqrt(kappa)
    expected = best_worst_square(X / form.scale, y, form.weights, radius, still=still)
    assert found.upper == pytest.approx(expected, rel=2e-5, abs=1e-7)
    assert found.lower <= expected * (1.0 + 2e-5) + 1e-7
    assert found.gap <= 1e-6


@pytest.mark.parametrize("seed", range(40))
def test_both_bounds_meet_in_all_units(seed):
    rng = np.random.default_rng(seed)
    n, s = int(rng.integers(2, 15)), int(rng.integers(1, 15))
    X, y = rows(seed, n, s, 10.0 ** rng.uniform(-3, 1))
    X, y = X * 10.0 ** rng.uniform(-2, 2, size=s) + 3.0 * (seed % 3), y * 10.0 ** rng.uniform(-4, 4)
    ball = WassersteinBall(
        (0.0, 1e-3, 0.1, 1.0, 10.0)[seed % 5],
        outcome_cost=(np.inf, 1.0, 100.0)[seed % 3], frozen=(0,) if seed % 4 == 0 else (),
        scale=bool(seed % 2),
    )  # fmt: skip
    weights = rng.uniform(size=n) if seed % 2 else None
    _, found = best_certificate(X, y, ball, 2.0, bool(seed % 6), weights)
    assert found.gap <= 1e-5
    assert found.kind == "exact"


@pytest.mark.parametrize("radius", [0.0, 0.1, 1.0])
def test_fewer_rows_than_columns_have_a_bound_that_says_something(radius):
    """Every distribution of as many rows can be met: one of them alone proves nothing."""
    X, y = rows(0, 6, 10)
    ball, solver = WassersteinBall(radius), DASGD(max_steps=500)
    model = RobustPolicy(Quadratic(), Linear(), ball=ball, solver=solver).fit(X, y)
    assert model.converged_ is True
    assert model.certificate_.gap <= 0.01
    assert model.certificate_.kind == "exact"
    assert "raise max_steps" not in model.status_
    found = model.worst_case(X, y)
    assert found.value == pytest.approx(model.certificate_.upper, rel=1e-3, abs=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("radius", [0.1, 1.0])
def test_moving_outcomes_have_a_finite_gap(radius):
    X, y = rows(1, 30, 3)
    ball, solver = WassersteinBall(radius, outcome_cost=1.0), DASGD(max_steps=2_000)
    model = RobustPolicy(Quadratic(), Linear(), ball=ball, solver=solver).fit(X, y)
    assert model.converged_ is True
    assert model.certificate_.gap <= 0.01


def test_the_papers_own_ascents_are_left_alone():
    X, y = rows(0, 6, 10)
    solver = DASGD(max_steps=50, inner_steps=2)
    with pytest.warns(ConvergenceWarning, match="certified gap .* raise max_steps"):
        model = RobustPolicy(Quadratic(), Linear(), ball=WassersteinBall(0.1), solver=solver).fit(X, y)
    assert "closed form" not in model.status_
    assert model.converged_ is False


def test_more_steps_are_not_advised_where_rounds_found_the_policy():
    """Two products have no closed form: what is said must not contradict itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 10))
    Y = X @ rng.normal(size=(10, 2)) + rng.normal(size=(6, 2))
    ball, solver = WassersteinBall(0.1, outcome_cost=1.0), DASGD(max_steps=500)
    with pytest.warns(ConvergenceWarning, match="nothing is claimed about the best policy"):
        model = RobustPolicy(Quadratic(), Linear(), ball=ball, solver=solver).fit(X, Y)
    assert model.converged_ is None
    assert "raise max_steps" not in model.status_
    assert model.certificate_.gap == np.inf
