"""Worst cases under one adversary in the user's units, behind every door of the library."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import DASGD, Box, Problem, RobustPolicy, WassersteinBall, load
from surefoot.costs import Newsvendor
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.choice import adversary_of, worst_values
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters
from surefoot.problem import with_adversaries

RNG = np.random.default_rng(3)
X = RNG.uniform(size=(40, 2)) * [1.0, 30.0]
Y = X @ RNG.normal(size=(2, 2)) * [1.0, 50.0] + RNG.normal(size=(40, 2))
COST = Newsvendor([1.0, 0.02], [0.2, 0.01])
BALL = WassersteinBall(0.3, adversary="joint")


def some_parameters(seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(2, 2)) * [1.0, 50.0] / [[1.0], [30.0]]
    return LinearParameters(theta=theta, intercept=rng.normal(size=2))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kappa", [np.inf, 0.8])
@pytest.mark.parametrize("limits", [None, Box(-5.0, 20.0)], ids=["free", "limited"])
def test_the_adversary_speaks_of_the_user_s_numbers(order, kappa, limits):
    if limits is not None:
        kappa = np.inf  # as limits ask for
    ball = WassersteinBall(0.3, order=order, outcome_cost=kappa, adversary="joint")
    problem = Problem(COST, Linear(decisions=limits), Empirical(X, Y), ball)
    parameters = some_parameters()
    found = adversary_of(problem, parameters)
    decisions = problem.policy.decide(parameters, found.contexts)
    cost = COST.mean(decisions, found.outcomes, found.weights)
    assert found.expected_cost == pytest.approx(cost, rel=1e-12)
    if limits is None:
        assert cost == pytest.approx(found.value, rel=2e-4)
    else:  # uncut decisions bound cut ones
        assert cost <= found.value * (1 + 1e-12)
    each = adversary_of(with_adversaries(problem), parameters)
    assert found.value <= each.value * (1 + 1e-12)
    moved = np.linalg.norm((found.contexts - X[found.rows]) / X.std(axis=0), axis=1)
    aside = np.linalg.norm(found.outcomes - Y[found.rows], axis=1)
    length = moved**order + (kappa * aside**order if np.isfinite(kappa) else 0.0)
    assert found.distances == pytest.approx(length, rel=1e-6, abs=1e-9)
    assert found.transport_cost[0] <= 0.3**order * (1 + 1e-9)
    values, kind = worst_values(problem, parameters, np.array([0.0, 0.3]))
    assert values[1] == pytest.approx(found.value, rel=1e-12)
    assert kind == ("exact" if limits is None else "bound")


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_ascent_finds_the_same(order):
    problem = Problem(COST, Linear(), Empirical(X, Y), replace(BALL, order=order))
    parameters = some_parameters(1)
    exact = adversary_of(problem, parameters).value
    assert Autodiff.adversary(problem, parameters).value == pytest.approx(exact, rel=1e-3)


def test_a_model_under_one_adversary_from_fit_to_file(tmp_path):
    model = RobustPolicy(COST, Linear(), ball=BALL, nominal=None).fit(X, Y)
    assert model.converged_
    assert model.certificate_.kind == "exact"
    assert model.status_.startswith("SmoothedNewton converged")
    apart = RobustPolicy(COST, Linear(), ball=with_each(BALL), nominal=None).fit(X, Y)
    assert model.certificate_.lower <= apart.certificate_.upper
    worst = model.worst_case(X, Y)
    assert worst.value == pytest.approx(model.certificate_.upper, rel=1e-9)
    assert worst.value <= apart.worst_case(X, Y).value
    shown = model.augmentation()
    assert shown.binding
    assert shown.cost_after == pytest.approx(shown.worst_case, rel=2e-4)
    assert shown.outcomes.shape == (len(shown.rows), 2)
    model.save(tmp_path / "joint.surefoot")
    again = load(tmp_path / "joint.surefoot")
    assert again.problem_.ball.adversary == "joint"
    assert again.worst_case(X, Y).value == worst.value


def with_each(ball):
    return replace(ball, adversary="each")


def test_draw_move_step_is_certified_too():
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(60, 2))
    outcomes = contexts @ rng.normal(size=(2, 2)) + rng.normal(size=(60, 2))
    problem = Problem(Newsvendor(1.0, 0.3), Linear(), Empirical(contexts, outcomes), BALL)
    solution = DASGD(max_steps=4_000, gap_tol=0.02).solve(problem)
    assert solution.converged
    assert solution.certificate.kind == "exact"
    exact = adversary_of(problem, solution.parameters).value
    assert solution.certificate.upper == pytest.approx(exact, rel=1e-9)
    assert "estimate" not in solution.status


@pytest.mark.nightly
def test_the_radius_may_be_chosen_and_a_stream_may_follow():
    model = RobustPolicy(COST, Linear(), ball=replace(BALL, radius="auto"), nominal=None).fit(X, Y)
    assert model.certificate_.kind == "exact"
    model.partial_fit(X[:20], Y[:20])
    found = model.worst_case(X[:20], Y[:20])
    assert model.certificate_.upper == pytest.approx(found.value, rel=1e-9)
