import re
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.costs import MeanCVaR
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.sets import Box, Budget, Simplex
from tests.oracles.portfolio import best_portfolio

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32)
levels = st.floats(0.01, 0.99)
aversions = st.floats(0, 10)


def draw(seed, rows=12, assets=3):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(assets), size=rows)
    return shares, rng.normal(0.01, 0.1, size=(rows, assets)), rng.dirichlet(np.ones(rows))


def tail_mean(loss, weights, level):
    """The mean of the worst 1 - level of losses, a row on the border counting in part."""
    left, total = 1 - level, 0.0
    for i in np.argsort(-loss):
        taken = min(left, weights[i])
        total += taken * loss[i]
        left -= taken
    return total / (1 - level)


@repeatable
@given(seeds, levels, aversions)
def test_the_mean_is_expected_loss_plus_conditional_value_at_risk(seed, level, aversion):
    shares, returns, weights = draw(seed)
    loss = -(shares * returns).sum(axis=1)
    expected = weights @ loss + aversion * tail_mean(loss, weights, level)
    assert MeanCVaR(aversion, level).mean(shares, returns, weights) == pytest.approx(
        expected, abs=1e-10
    )


@repeatable
@given(seeds, levels, aversions, st.floats(-1, 1))
def test_no_other_value_at_risk_is_better(seed, level, aversion, other):
    shares, returns, weights = draw(seed)
    cost = MeanCVaR(aversion, level)
    costs = cost.evaluate_at(shares, np.array([other]), returns)
    assert cost.mean(shares, returns, weights) <= weights @ costs + 1e-12


@pytest.mark.parametrize(("level", "aversion"), [(0.5, 1.0), (0.9, 3.0), (0.95, 0.2)])
def test_a_linear_program_agrees(level, aversion):
    shares, returns, weights = draw(5, rows=30)
    loss = -(shares * returns).sum(axis=1)
    at_risk = cp.Variable()
    tail = at_risk + weights @ cp.pos(loss - at_risk) / (1 - level)
    program = cp.Problem(cp.Minimize(weights @ loss + aversion * tail))
    program.solve(solver=cp.CLARABEL)
    assert MeanCVaR(aversion, level).mean(shares, returns, weights) == pytest.approx(
        program.value, abs=1e-8
    )


def test_values_by_hand():
    cost = MeanCVaR(risk_aversion=2.0, level=0.75)
    shares, returns = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.2, 0.0], [-0.3, 9.0]])
    # Losses -0.1 and 0.3; at a = 0.1 the second exceeds it by 0.2, which counts four times.
    found = cost.evaluate_at(shares, np.array([0.1]), returns)
    np.testing.assert_allclose(found, [-0.1 + 2 * 0.1, 0.3 + 2 * (0.1 + 0.8)])


def test_the_value_at_risk_is_a_weighted_quantile_of_losses():
    shares, returns = np.ones((4, 1)), -np.array([[4.0], [1.0], [3.0], [2.0]])
    even = np.full(4, 0.25)
    for level, expected in ((0.25, 1.0), (0.5, 2.0), (0.51, 3.0), (0.75, 3.0), (0.76, 4.0)):
        np.testing.assert_array_equal(
            MeanCVaR(level=level).best_auxiliary(shares, returns, even), [expected]
        )
    heavy = np.array([0.7, 0.1, 0.1, 0.1])
    np.testing.assert_array_equal(MeanCVaR(level=0.35).best_auxiliary(shares, returns, heavy), [4.0])


@repeatable
@given(seeds, levels)
def test_coherence(seed, level):
    """Scaling shares scales the cost; more return means less cost; a sure gain is taken off."""
    shares, returns, weights = draw(seed)
    cost = MeanCVaR(1.5, level)
    base = cost.mean(shares, returns, weights)
    assert cost.mean(4 * shares, returns, weights) == pytest.approx(4 * base, abs=1e-12)
    # Shares sum to one, so a common gain of 0.02 lowers the loss and its tail by it.
    assert cost.mean(shares, returns + 0.02, weights) == pytest.approx(base - 2.5 * 0.02, abs=1e-12)
    assert cost.mean(shares, returns + np.abs(returns), weights) <= base + 1e-12


def test_without_risk_aversion_it_is_the_expected_loss():
    shares, returns, weights = draw(3)
    assert MeanCVaR(0.0).mean(shares, returns, weights) == pytest.approx(
        -weights @ (shares * returns).sum(axis=1)
    )


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 4, 3)])
def test_both_namespaces_and_all_leading_axes(shape):
    rng = np.random.default_rng(0)
    z, y, at_risk = rng.normal(size=shape), rng.normal(size=shape), np.array([0.1])
    cost = MeanCVaR(1.5, 0.8)
    whole, fixed = cost.evaluate(z, y), cost.evaluate_at(z, at_risk, y)
    assert np.shape(whole) == np.shape(fixed) == shape[:-1]
    flat = cost.evaluate(z.reshape(-1, 3), y.reshape(-1, 3))
    np.testing.assert_array_equal(np.ravel(whole), flat)
    with jax.enable_x64(True):
        z, y, at_risk = jnp.asarray(z), jnp.asarray(y), jnp.asarray(at_risk)
        np.testing.assert_allclose(cost.evaluate_at(z, at_risk, y, jnp), fixed, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(cost.evaluate(z, y, jnp), whole, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("at_risk", [-0.5, 0.5])
def test_gradients_in_shares_and_value_at_risk(at_risk):
    cost, y = MeanCVaR(1.5, 0.8), np.array([0.1, -0.3, 0.2])
    point = np.array([0.3, 0.5, 0.2, at_risk])

    def value(p, xp=np):
        return cost.evaluate_at(p[:3], p[3:], xp.asarray(y), xp)

    with jax.enable_x64(True):
        slope = jax.grad(lambda p: value(p, jnp))(jnp.asarray(point))
    for j, step in enumerate(1e-6 * np.eye(4)):
        numeric = (value(point + step) - value(point - step)) / 2e-6
        assert slope[j] == pytest.approx(numeric, abs=1e-8)


def test_where_learning_starts():
    _, returns, weights = draw(8, rows=200, assets=4)
    cost = MeanCVaR(1.0, 0.9)
    centre, unit = cost.typical(returns, weights)
    np.testing.assert_array_equal(centre, np.full(4, 0.25))
    assert unit.shape == (4,)
    assert (unit > 0).all()
    start, spread = cost.typical_auxiliary(returns, weights)
    equal = np.broadcast_to(centre, returns.shape)
    np.testing.assert_allclose(start, cost.best_auxiliary(equal, returns, weights))
    loss = -returns.mean(axis=1)
    assert spread[0] == pytest.approx(np.sqrt(np.cov(loss, aweights=weights, ddof=0)))
    assert start.shape == spread.shape == (1,)
    _, still = cost.typical_auxiliary(np.zeros((5, 2)), np.full(5, 0.2))
    np.testing.assert_array_equal(still, [1.0])


def test_what_it_says_of_itself():
    cost = MeanCVaR()
    assert cost == MeanCVaR(risk_aversion=1.0, level=0.95)
    assert cost.n_decisions(3) == 3
    assert cost.why_not(3) is None
    assert (cost.growth(), cost.curvature(), cost.floor()) == (1.0, np.inf, -np.inf)
    assert cost.why_unlimited() == (
        "MeanCVaR needs limits on its decisions, or a portfolio could grow without end: "
        "give the policy decisions=Simplex() or a Box"
    )


def test_shapes_that_would_broadcast_are_refused():
    message = "decisions and outcomes must have one shape, (rows, products), got (3, 1) and (3,)."
    for evaluate in (
        MeanCVaR().evaluate,
        lambda z, y: MeanCVaR().evaluate_at(z, np.zeros(1), y),
    ):
        with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
            evaluate(np.ones((3, 1)), np.ones(3))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"risk_aversion": -1}, InvalidInputError, "risk_aversion must be >= 0, got -1.0."),
        ({"risk_aversion": np.nan}, InvalidInputError, "risk_aversion must be >= 0, got nan."),
        ({"risk_aversion": np.inf}, InvalidInputError, "risk_aversion must be finite, got inf."),
        ({"risk_aversion": "1"}, InvalidTypeError, "risk_aversion must be a number, got '1'."),
        ({"level": 0}, InvalidInputError, "level must be > 0, got 0.0."),
        ({"level": 1}, InvalidInputError, "level must be < 1, got 1.0."),
        ({"level": 95}, InvalidInputError, "level must be < 1, got 95.0."),
        ({"level": np.nan}, InvalidInputError, "level must be > 0, got nan."),
        ({"level": None}, InvalidTypeError, "level must be a number, got None."),
    ],
)
def test_unusable_options_are_refused(options, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        MeanCVaR(**options)


def test_immutable_value():
    cost = MeanCVaR(np.float32(2), np.float64(0.5))
    assert repr(cost) == "MeanCVaR(risk_aversion=2.0, level=0.5)"
    assert hash(cost) == hash(MeanCVaR(2, 0.5))
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'level'"):
        cost.level = 0.9


LIMITS = [(Simplex(), {}), (Budget(total=2.0), {"total": 2.0}), (Box(0, 0.6), {"most": 0.6})]


def scenarios(seed, groups, rows=50):
    rng = np.random.default_rng(seed)
    returns = [0.01, 0.013, 0.02] + rng.standard_t(3, size=(rows, 3)) * [0.02, 0.03, 0.08]
    return returns, rng.dirichlet(np.ones(rows)), rng.permutation(np.arange(rows) % groups)


@pytest.mark.sweep
@pytest.mark.parametrize("limits", LIMITS, ids=["simplex", "budget", "box"])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize(("aversion", "level"), [(2.0, 0.8), (0.3, 0.95), (0.0, 0.5), (20.0, 0.1)])
def test_the_floor_within_limits_is_what_the_best_portfolio_costs(limits, groups, aversion, level):
    allowed, told = limits
    for seed in range(3):
        returns, weights, numbers = scenarios(seed, groups)
        best = best_portfolio(returns, weights, numbers, aversion, level, **told)
        found = MeanCVaR(aversion, level).limited_floor(allowed, numbers, returns, weights)
        assert found == pytest.approx(best, abs=1e-7)
        assert found <= best + 1e-8  # CLARABEL's own rounding


@pytest.mark.parametrize("seed", range(5))
def test_the_floor_holds_whatever_the_program_says(monkeypatch, seed):
    returns, weights, groups = scenarios(seed, 2)
    rng = np.random.default_rng(seed)
    said = SimpleNamespace(status=0, x=rng.normal(size=len(weights) + 2))
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: said)
    found = MeanCVaR(2.0, 0.8).limited_floor(Simplex(), groups, returns, weights)
    assert -1.0 < found <= best_portfolio(returns, weights, groups, 2.0, 0.8) + 1e-8


def test_units_of_returns_are_those_of_the_floor():
    returns, weights, groups = scenarios(1, 2)
    cost = MeanCVaR(1.0, 0.9)
    found = cost.limited_floor(Simplex(), groups, returns, weights)
    for unit in (1e-6, 1e6):
        assert cost.limited_floor(Simplex(), groups, unit * returns, weights) == pytest.approx(
            unit * found, rel=1e-6
        )


def test_limits_without_a_farthest_decision_leave_no_floor():
    returns, weights, groups = scenarios(0, 2)
    assert MeanCVaR().limited_floor(Box(0, np.inf), groups, returns, weights) == -np.inf
