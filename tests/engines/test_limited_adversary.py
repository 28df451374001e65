"""Worst cases of decisions that are cut to limits: exact, against a program over moves on a grid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse

from surefoot import Box, Problem, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.engines.choice import adversary_of, worst_case_of, worst_values
from surefoot.forecasts import Ensemble
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters

LIMITS = {"both": (0.5, 2.5), "below": (0.5, np.inf), "above": (-np.inf, 2.5), "far": (-1e6, 1e6)}


def question(seed, order, limits, radius=0.4, products=1):
    """Rows, a policy that the limits cut here and there, and a ball in units of its own."""
    rng = np.random.default_rng(seed)
    n, s = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, s))
    y = 1.5 + X @ rng.normal(size=(s, products)) + rng.normal(size=(n, products))
    cost = Newsvendor(*(float(rate) for rate in rng.uniform(0.2, 3.0, 2)))
    ball = WassersteinBall(radius, order=order, scale=False, adversary="each")
    weights = rng.uniform(0.2, 1.0, n)
    problem = Problem(cost, Linear(decisions=Box(*limits)), Empirical(X, y, weights), ball)
    theta = rng.normal(size=(s, products))
    return problem, LinearParameters(theta, rng.uniform(0.0, 3.0, products))


def on_a_grid(problem, parameters, steps=4_001, reach=12.0):
    """The most that moves along theta to places on a grid can cost: a linear program, from below."""
    rows, order, radius = problem.nominal, problem.ball.order, problem.radius
    theta, t = parameters.theta[:, 0], float(parameters.intercept[0])
    decided, norm = rows.contexts @ theta + t, float(np.linalg.norm(theta))
    places = np.linspace(-reach, reach, steps)
    low, high = problem.policy.decisions.lower, problem.policy.decisions.upper
    places = np.append(places, [end for end in (low, high) if np.isfinite(end) and abs(end) < reach])
    n, m = len(decided), len(places) + 1
    at = np.column_stack([decided, np.tile(places, (n, 1))])
    costs = problem.cost.evaluate(
        np.clip(at, low, high)[..., None], np.tile(rows.outcomes, (1, m))[..., None]
    )
    distances = (np.abs(at - decided[:, None]) / norm) ** order
    found = optimize.linprog(
        -costs.ravel(), A_ub=sparse.csr_array(distances.ravel()[None, :]), b_ub=[radius**order],
        A_eq=sparse.kron(sparse.eye_array(n), np.ones((1, m))), b_eq=rows.weights,
    )  # fmt: skip
    return -found.fun


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", ["both", "below", "above"])
@pytest.mark.parametrize("seed", range(4))
def test_the_value_is_that_of_the_best_moves(name, order, seed):
    problem, parameters = question(seed, order, LIMITS[name])
    value, _ = worst_case_of(problem, parameters)
    best = on_a_grid(problem, parameters)
    assert value >= best * (1 - 1e-7)
    open_side = order == 1 and name != "both"  # what would go for ever ends at the end of the grid
    assert value <= best * (1.05 if open_side else 1 + 1e-3)


@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.sampled_from(sorted(LIMITS)))
def test_atoms_attain_the_value_within_the_budget(seed, order, name):
    problem, parameters = question(seed, order, LIMITS[name])
    worst = adversary_of(problem, parameters)
    assert worst.weights.sum() == pytest.approx(1.0)
    assert worst.transport_cost[0] <= problem.radius**order * (1 + 1e-9)
    moved = worst.contexts - problem.nominal.contexts[worst.rows]
    np.testing.assert_allclose(
        worst.weights @ np.linalg.norm(moved, axis=1) ** order,
        worst.transport_cost[0],
        rtol=1e-6,
        atol=1e-12,
    )
    assert worst.expected_cost <= worst.value * (1 + 1e-9)
    assert worst.expected_cost >= worst.value * (1 - 1e-3)
    assert worst.value == pytest.approx(worst_case_of(problem, parameters)[0], rel=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([1, 2]))
def test_without_binding_limits_it_is_the_free_worst_case(seed, order):
    limited, parameters = question(seed, order, LIMITS["far"])
    free = Problem(limited.cost, Linear(), limited.nominal, limited.ball)
    value, gamma = worst_case_of(limited, parameters)
    plain, multiplier = worst_case_of(free, parameters)
    assert value <= plain * (1 + 1e-9)
    if order == 2:  # of order 1 a little mass would go farther than any limit
        assert value == pytest.approx(plain, rel=1e-9)
        np.testing.assert_allclose(gamma, multiplier, rtol=1e-4)


@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.sampled_from(["both", "below", "above"]))
def test_it_grows_with_the_radius_from_the_cost_as_it_is(seed, order, name):
    problem, parameters = question(seed, order, LIMITS[name], products=2)
    values, kind = worst_values(problem, parameters, np.array([0.0, 0.1, 0.4, 1.0]))
    assert kind == "exact"
    assert (np.diff(values) >= -1e-12 * values[1:]).all()
    rows = problem.nominal
    decided = problem.policy.decide(parameters, rows.contexts)
    assert values[0] == pytest.approx(
        problem.cost.mean(decided, rows.outcomes, rows.weights), rel=1e-12
    )


def test_in_a_support_it_stays_a_bound():
    problem, parameters = question(0, 2, LIMITS["both"])
    box = Box(-9.0, 9.0)
    boxed = Problem(
        problem.cost, problem.policy, problem.nominal, WassersteinBall(0.4, scale=False, support=box)
    )
    assert worst_values(boxed, parameters, np.array([0.4]))[1] == "bound"
    worst = adversary_of(boxed, parameters)
    assert worst.value >= worst_case_of(problem, parameters)[0] * (1 - 1e-9)
    assert worst.expected_cost <= worst.value


@pytest.mark.parametrize("limits", [(0.0, 1.2), (0.5, 2.0), (1.5, 3.0)])
def test_an_ensemble_with_limits_states_what_it_costs(limits):
    # Its value was that of decisions before they were cut: up to 36 % above what any atoms cost.
    data = synthetic(n=60, s=3, seed=0, test=1)
    model = RobustPolicy(Newsvendor(1.0, 0.2), Linear(decisions=Box(*limits)), nominal=Ensemble())
    model.fit(data.X, data.y)
    worst = model.worst_case(data.X, data.y)
    assert worst.value == pytest.approx(worst.expected_cost, rel=1e-12)
    assert worst.value == pytest.approx(model.cost(data.X, data.y), rel=1e-12)
    honest = model.problem_.around(model.nominal_)
    decided = honest.policy.decide(model.parameters_, model.nominal_.contexts, model.nominal_.offsets)
    cost = honest.cost.mean(decided, model.nominal_.outcomes, model.nominal_.weights)
    assert model.certificate_.upper == pytest.approx(cost, rel=1e-9)


def test_the_certificate_of_a_fit_is_an_upper_bound_and_says_so():
    data = synthetic(n=60, s=3, seed=0, test=1)
    ball = WassersteinBall(0.05)
    model = RobustPolicy(Newsvendor(1.0, 0.2), Linear(decisions=Box(0.5, 2.0)), ball=ball)
    model.fit(data.X, data.y)
    worst = model.worst_case(data.X, data.y)
    assert worst.value == pytest.approx(worst.expected_cost, rel=1e-6)
    assert worst.value <= model.certificate_.upper * (1 + 1e-9)
    assert model.certificate_.kind == "bound"
    assert "is at most" in model.certificate_.message
