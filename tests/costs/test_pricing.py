import re
from dataclasses import FrozenInstanceError

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.costs import Pricing
from surefoot.exceptions import InvalidInputError, InvalidTypeError

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
prices = st.floats(0.1, 30)
demands = st.floats(0.1, 100)
kinds = st.sampled_from(["linear", "exponential"])


def single(cost, price, outcome):
    return float(cost.evaluate(np.array([price]), np.array(outcome)))


def test_values_by_hand():
    z, y = np.array([[3.0], [6.0]]), np.array([[10.0], [10.0]])
    # Sells 10 - 2 * 3 at a margin of 2; at a price of 6 nobody buys.
    np.testing.assert_array_equal(Pricing(2.0, unit_cost=1.0).evaluate(z, y), [-8.0, 0.0])
    found = Pricing(np.log(2.0), 1.0, demand="exponential").evaluate(z, y)
    np.testing.assert_allclose(found, [-2 * 10 / 8, -5 * 10 / 64])
    both = np.array([[10.0, 2.0], [10.0, 0.5]])
    np.testing.assert_array_equal(Pricing(None, unit_cost=1.0).evaluate(z, both), [-8.0, -35.0])


@repeatable
@given(prices, demands, st.floats(0.05, 5), st.floats(0, 3), kinds)
def test_an_uncertain_sensitivity_is_the_second_column(price, potential, sensitivity, unit_cost, kind):
    known = single(Pricing(sensitivity, unit_cost, kind), price, [potential])
    assert single(Pricing(None, unit_cost, kind), price, [potential, sensitivity]) == known


@repeatable
@given(prices, st.floats(0.0, 100), st.floats(0.05, 2), kinds)
def test_potential_inverts_demand(price, potential, sensitivity, kind):
    pricing = Pricing(sensitivity, demand=kind)
    sold = -single(pricing, price, [potential]) / price
    found = pricing.potential([sold], [price])
    if sold > 0:
        np.testing.assert_allclose(found, [potential], rtol=1e-9)
    else:
        # Nobody bought: the potential was at most what a price this high drives away.
        assert found[0] >= potential - 1e-9


def test_potential_takes_one_past_price_for_all():
    np.testing.assert_array_equal(Pricing(2.0).potential([1.0, 4.0], 3.0), [7.0, 10.0])
    np.testing.assert_array_equal(Pricing(2.0).potential([0.0], [3.0]), [6.0])
    np.testing.assert_array_equal(Pricing(2.0, demand="exponential").potential([0.0], [3.0]), [0.0])


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"sensitivity": None}, ([1.0], [1.0]), "sensitivity must be a number to find the potential, got None."),
        ({}, (np.ones(3), np.ones((3, 1))), "demand and price must have one shape, got (3,) and (3, 1)."),
        ({}, ([1.0, 2.0], [1.0]), "demand and price must have one shape, got (2,) and (1,)."),
        ({}, (["many"], [1.0]), "demand must be numeric, got text or dates (<U4)."),
        ({}, ([1.0], [np.nan]), "price must be finite (no NaN, no infinity), got NaN in row 0."),
    ],
)  # fmt: skip
def test_unusable_observations_are_refused(options, arguments, message):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Pricing(**options).potential(*arguments)


@repeatable
@given(st.floats(1, 100), st.floats(0.1, 5), st.floats(0, 0.9), kinds)
def test_the_typical_price_is_the_best_one_for_a_known_potential(potential, sensitivity, share, kind):
    # The unit cost stays below the price at which the last customer leaves.
    cost = Pricing(sensitivity, share * potential / sensitivity, kind)
    price, unit = cost.typical(np.array([[potential]]), np.ones(1))
    assert price.shape == unit.shape == (1,)
    assert unit[0] > 0
    grid = np.linspace(0, 3 * price[0], 3001)
    profits = -cost.evaluate(grid[:, None], np.full((3001, 1), potential))
    assert -single(cost, price[0], [potential]) >= profits.max() * (1 - 1e-12)
    assert abs(grid[profits.argmax()] - price[0]) <= 2 * (grid[1] - grid[0])


@pytest.mark.parametrize("kind", ["linear", "exponential"])
@pytest.mark.parametrize("uncertain", [False, True])
def test_the_typical_price_is_near_the_best_constant_one(kind, uncertain):
    rng = np.random.default_rng(4)
    outcomes = np.column_stack([rng.normal(40, 5, 60), rng.uniform(1.0, 1.5, 60)])
    weights = rng.dirichlet(np.ones(60))
    cost = Pricing(None if uncertain else 1.2, 2.0, kind)
    outcomes = outcomes if uncertain else outcomes[:, :1]
    price, unit = cost.typical(outcomes, weights)
    best = min(
        cost.mean(np.full((60, 1), trial), outcomes, weights) for trial in np.linspace(0.1, 40, 800)
    )
    assert cost.mean(np.full((60, 1), price[0]), outcomes, weights) <= best * 0.99  # costs are negative
    hindsight = (
        0.5 * (outcomes[:, 0] / (outcomes[:, 1] if uncertain else 1.2) + 2.0)
        if kind == "linear"
        else 2.0 + 1 / outcomes[:, -1]
    )
    if kind == "linear" or uncertain:
        assert unit[0] == pytest.approx(np.sqrt(np.cov(hindsight, aweights=weights, ddof=0)), rel=0.15)
    else:
        assert unit[0] == pytest.approx(price[0])  # the best price does not vary: its size is the unit


def test_a_row_without_sensitivity_does_not_set_the_unit():
    outcomes = np.array([[10.0, 0.0], [10.0, 1.0], [10.0, 1.0], [10.0, 1.0]])
    for kind in ("linear", "exponential"):
        price, unit = Pricing(None, demand=kind).typical(outcomes, np.full(4, 0.25))
        assert 0 < price[0] < 20
        assert 0 < unit[0] < 20


@pytest.mark.parametrize("column", [-1.0, 0.0])
def test_a_sensitivity_that_is_not_positive_is_refused(column):
    message = f"the sensitivity (second column of y) must be > 0 on average, got {column}."
    outcomes = np.column_stack([np.ones(4), np.full(4, column)])
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Pricing(None).typical(outcomes, np.full(4, 0.25))


@pytest.mark.parametrize("kind", ["linear", "exponential"])
@pytest.mark.parametrize("rows", [(), (5,), (3, 4)])
@pytest.mark.parametrize("sensitivity", [None, 0.7])
def test_both_namespaces_and_all_leading_axes(kind, rows, sensitivity):
    rng = np.random.default_rng(0)
    z = rng.uniform(1, 20, size=(*rows, 1))
    y = rng.uniform(0.5, 9, size=(*rows, 2))[..., : 1 + (sensitivity is None)]
    cost = Pricing(sensitivity, 1.5, kind)
    found = cost.evaluate(z, y)
    assert np.shape(found) == rows
    with jax.enable_x64(True):
        other = cost.evaluate(jnp.asarray(z), jnp.asarray(y), jnp)
        np.testing.assert_allclose(other, found, rtol=1e-13)


@pytest.mark.parametrize("kind", ["linear", "exponential"])
@pytest.mark.parametrize("price", [-2.0, 1.0, 4.0, 30.0])
def test_gradients_in_price_and_outcomes(kind, price):
    cost = Pricing(None, 1.5, kind)
    point = np.array([price, 12.0, 0.8])

    def value(p, xp=np):
        return cost.evaluate(p[:1], p[1:], xp)

    with jax.enable_x64(True):
        slope = jax.grad(lambda p: value(p, jnp))(jnp.asarray(point))
    for j, step in enumerate(1e-6 * np.eye(3)):
        numeric = (value(point + step) - value(point - step)) / 2e-6
        assert slope[j] == pytest.approx(numeric, rel=1e-6, abs=1e-7)


def test_a_price_far_below_zero_stays_finite():
    cost = Pricing(1.0, demand="exponential")
    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(lambda z: cost.evaluate(z, jnp.ones(1), jnp))(
            jnp.array([-1e6])
        )
        value, slope = np.asarray(value), np.asarray(slope)
    assert np.isfinite(value)
    assert value > 0
    assert np.isfinite(slope).all()
    assert slope[0] < 0  # a higher price costs less


def test_growth():
    """Linear demand grows with the square of a price far below zero."""
    far, farther = (single(Pricing(1.0, 1.0), -z, [5.0]) for z in (1e6, 1e7))
    assert farther / far == pytest.approx(10.0 ** Pricing().growth(), rel=1e-4)
    assert Pricing(demand="exponential").growth() == np.inf


def test_what_it_says_of_itself():
    for cost, columns in ((Pricing(), 1), (Pricing(None), 2)):
        assert cost.n_decisions(columns) == 1
        assert cost.why_not(columns) is None
        assert cost.why_unlimited() is None
        assert (cost.curvature(), cost.floor()) == (np.inf, -np.inf)
    assert Pricing().why_not(2) == "y must have one column (potential demand) for Pricing, got 2."
    assert Pricing(None).why_not(1) == (
        "y must have two columns (potential demand, sensitivity) for Pricing(sensitivity=None), got 1."
    )


@pytest.mark.parametrize(("shape_z", "shape_y"), [((3, 1), (1, 1)), ((3,), (3, 1)), ((), (1,))])
def test_rows_that_would_broadcast_are_refused(shape_z, shape_y):
    message = (
        "decisions and outcomes must have the same rows, (rows, decisions) and (rows, outcomes), "
        f"got {shape_z} and {shape_y}."
    )
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Pricing().evaluate(np.ones(shape_z), np.ones(shape_y))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"sensitivity": 0}, InvalidInputError, "sensitivity must be > 0, got 0.0."),
        ({"sensitivity": np.nan}, InvalidInputError, "sensitivity must be > 0, got nan."),
        ({"sensitivity": np.inf}, InvalidInputError, "sensitivity must be finite, got inf."),
        ({"sensitivity": "steep"}, InvalidTypeError, "sensitivity must be a number, got 'steep'."),
        ({"unit_cost": -1}, InvalidInputError, "unit_cost must be >= 0, got -1.0."),
        ({"unit_cost": None}, InvalidTypeError, "unit_cost must be a number, got None."),
        ({"demand": "logit"}, InvalidInputError, "demand must be 'linear' or 'exponential', got 'logit'."),
        ({"demand": None}, InvalidInputError, "demand must be 'linear' or 'exponential', got None."),
    ],
)  # fmt: skip
def test_unusable_options_are_refused(options, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        Pricing(**options)


def test_immutable_value():
    cost = Pricing(2, 1)
    assert repr(cost) == "Pricing(sensitivity=2.0, unit_cost=1.0, demand='linear')"
    assert hash(cost) == hash(Pricing(2.0, 1.0))
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'demand'"):
        cost.demand = "exponential"
