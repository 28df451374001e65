import re
from dataclasses import FrozenInstanceError

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.costs import Quadratic
from surefoot.exceptions import InvalidInputError

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
amounts = st.floats(-50, 50)
weights = st.floats(0.05, 20)
shares = st.floats(0, 1)


def single(cost, z, y):
    return float(cost.evaluate(np.array([z]), np.array([y]))[0])


def test_values_by_hand():
    z, y = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[4.0, 2.5], [0.0, -1.0]])
    np.testing.assert_array_equal(Quadratic().evaluate(z, y), [9.25, 1.0])
    np.testing.assert_array_equal(Quadratic(2.0).evaluate(z, y), [18.5, 2.0])
    np.testing.assert_array_equal(Quadratic([1.0, 4.0]).evaluate(z, y), [10.0, 4.0])


@repeatable
@given(*(amounts,) * 4, shares, weights, weights)
def test_convex_and_never_below_the_floor(z1, z2, s1, s2, share, w1, w2):
    cost, y = Quadratic((w1, w2)), (1.0, -2.0)
    ends = single(cost, (z1, z2), y), single(cost, (s1, s2), y)
    middle = (share * z1 + (1 - share) * s1, share * z2 + (1 - share) * s2)
    chord = share * ends[0] + (1 - share) * ends[1]
    assert single(cost, middle, y) <= chord + 1e-9 * (1 + chord)
    assert min(ends) >= cost.floor() == 0.0
    assert single(cost, y, y) == 0.0


@repeatable
@given(amounts, amounts, weights, st.integers(-3, 3))
def test_units_of_amounts_and_of_money(z, y, w, power):
    factor = 2.0**power
    cost = single(Quadratic(w), [z], [y])
    assert single(Quadratic(w), [factor * z], [factor * y]) == pytest.approx(
        factor**2 * cost, rel=1e-12
    )
    assert single(Quadratic(factor * w), [z], [y]) == factor * cost


@pytest.mark.parametrize("shape", [(2,), (5, 2), (3, 4, 2)])
@pytest.mark.parametrize("weight", [1.5, (0.5, 3.0)])
def test_both_namespaces_and_all_leading_axes(shape, weight):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=shape), rng.normal(size=shape)
    cost = Quadratic(weight)
    found = cost.evaluate(z, y)
    assert np.shape(found) == shape[:-1]
    np.testing.assert_allclose(found, ((z - y) ** 2) @ np.broadcast_to(weight, 2), rtol=1e-13)
    with jax.enable_x64(True):
        other = cost.evaluate(jnp.asarray(z), jnp.asarray(y), jnp)
        assert other.dtype == jnp.float64
        np.testing.assert_allclose(other, found, rtol=1e-13)


def test_gradient_and_curvature():
    cost = Quadratic((0.5, 3.0))
    z, y = np.array([1.0, -2.0]), np.array([0.3, 0.4])
    with jax.enable_x64(True):
        slope = jax.grad(lambda d: cost.evaluate(d, jnp.asarray(y), jnp))(jnp.asarray(z))
        bend = jax.hessian(lambda d: cost.evaluate(d, jnp.asarray(y), jnp))(jnp.asarray(z))
    for j, step in enumerate(1e-6 * np.eye(2)):
        numeric = (cost.evaluate(z + step, y) - cost.evaluate(z - step, y)) / 2e-6
        assert slope[j] == pytest.approx(numeric, rel=1e-7)
    assert cost.curvature() == 6.0
    assert cost.curvature() == pytest.approx(np.linalg.eigvalsh(np.asarray(bend)).max())
    assert Quadratic(1.5).curvature() == 3.0


def test_the_typical_decision_is_the_best_constant_one():
    rng = np.random.default_rng(1)
    outcomes, weights = rng.gamma(2.0, size=(40, 2)) * [1.0, 100.0], rng.dirichlet(np.ones(40))
    cost = Quadratic((2.0, 0.5))
    centre, unit = cost.typical(outcomes, weights)
    assert centre.shape == unit.shape == (2,)
    best = cost.mean(np.broadcast_to(centre, outcomes.shape), outcomes, weights)
    # The mean cost of the mean is the weighted sum of the variances, whose roots are the units.
    assert best == pytest.approx(float(unit**2 @ [2.0, 0.5]))
    for step in (unit * [0.1, 0.0], unit * [0.0, 0.1]):
        for sign in (1.0, -1.0):
            moved = np.broadcast_to(centre + sign * step, outcomes.shape)
            assert cost.mean(moved, outcomes, weights) > best


def test_growth_and_number_of_decisions():
    assert Quadratic().growth() == 2.0
    assert Quadratic().n_decisions(3) == 3
    assert Quadratic().why_unlimited() is None


def test_weights_must_match_the_products():
    message = "weight must be one number or one per product (3), got 2 numbers."
    assert Quadratic((1, 2)).why_not(3) == message
    assert Quadratic((1, 2)).why_not(2) is None
    assert Quadratic(2.0).why_not(7) is None
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Quadratic((1, 2)).evaluate(np.ones((4, 3)), np.ones((4, 3)))
    # One column would broadcast to both weights, and count twice.
    with pytest.raises(InvalidInputError, match=r"one per product \(1\), got 2 numbers\.$"):
        Quadratic((1, 2)).evaluate(np.ones((4, 1)), np.ones((4, 1)))


@pytest.mark.parametrize(("shape_z", "shape_y"), [((3, 1), (3,)), ((3, 2), (3, 1)), ((1, 1), (3, 1))])
def test_shapes_that_would_broadcast_are_refused(shape_z, shape_y):
    message = (
        f"decisions and outcomes must have one shape, (rows, products), got {shape_z} and {shape_y}."
    )
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Quadratic().evaluate(np.ones(shape_z), np.zeros(shape_y))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (0.0, "weight must be > 0, got 0.0."),
        (-1, "weight must be > 0, got -1.0."),
        ((1.0, 0.0), "weight must be > 0, got 0.0."),
        (np.nan, "weight must be finite (no NaN, no infinity), got NaN in the value."),
        ((1.0, np.inf), "weight must be finite (no NaN, no infinity), got infinity in row 1."),
        ("heavy", "weight must be numeric, got text or dates (<U5)."),
        (None, "weight must be numeric, got None."),
        ([], "weight must be a number or one number per product, got shape (0,)."),
        ([[1.0]], "weight must be a number or one number per product, got shape (1, 1)."),
    ],
)
def test_unusable_weights_are_refused(weight, message):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Quadratic(weight)


def test_immutable_value():
    given_weights = np.array([1.0, 2.0])
    cost = Quadratic(given_weights)
    given_weights[0] = 9.0
    assert cost == Quadratic((1, 2))
    assert hash(cost) == hash(Quadratic((1, 2)))
    assert repr(cost) == "Quadratic(weight=(1.0, 2.0))"
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'weight'"):
        cost.weight = 3.0
