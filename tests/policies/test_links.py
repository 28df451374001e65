import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.policies import ELU, Sigmoid

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
UNITS = {
    "mean": np.array([1.0, -1.0]),
    "spread": np.array([2.0, 0.5]),
    "centre": np.array([3.0, -2.0]),
    "unit": np.array([0.5, 4.0]),
}
TRAINED = {"theta": np.array([[1.0, -0.5], [0.3, 2.0]]), "intercept": np.array([0.2, -0.1])}
PLAIN = {name: np.full(1, float(name in ("spread", "unit"))) for name in UNITS}
SLOPE = {"theta": np.ones((1, 1)), "intercept": np.zeros(1)}
limits = st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)).filter(lambda pair: pair[0] < pair[1])


def affine(X):
    return (X - UNITS["mean"]) / UNITS["spread"] @ TRAINED["theta"] + TRAINED["intercept"]


def at(policy, v):
    """The policy of one context v that is passed through."""
    return float(policy.evaluate(SLOPE, PLAIN, np.array([v]), np)[0])


def test_sigmoid_is_its_formula():
    X = np.random.default_rng(0).normal(size=(6, 2))
    expected = -1.0 + 5.0 / (1.0 + np.exp(-affine(X)))
    np.testing.assert_allclose(Sigmoid(-1.0, 4.0).evaluate(TRAINED, UNITS, X, np), expected, rtol=1e-13)


@repeatable
@given(limits, st.floats(-30, 30))
def test_sigmoid_stays_strictly_within_its_limits(pair, v):
    lower, upper = pair
    found = at(Sigmoid(lower, upper), v)
    assert lower <= found <= upper
    if upper - lower > 1e-2 and abs(v) < 10:
        assert lower < found < upper


@repeatable
@given(limits, st.floats(allow_nan=False))
def test_rounding_carries_no_decision_past_a_limit(pair, v):
    lower, upper = pair
    assert lower <= at(Sigmoid(lower, upper), v) <= upper


def test_a_limit_that_rounding_would_pass():
    assert -0.1 + (0.2 - -0.1) > 0.2
    assert at(Sigmoid(-0.1, 0.2), 80.0) == 0.2


def test_sigmoid_of_zero_to_one_keeps_its_digits():
    assert at(Sigmoid(), -100.0) == pytest.approx(np.exp(-100.0), rel=1e-12)
    assert Sigmoid() == Sigmoid(0.0, 1.0)


def test_sigmoid_slopes_are_finite_everywhere():
    with jax.enable_x64(True):
        one = jax.grad(lambda v: Sigmoid(-0.1, 0.2).evaluate(SLOPE, PLAIN, v[None], jnp)[0])
        points = jnp.asarray([-1e300, -50.0, 0.0, 50.0, 1e300])
        slopes = np.asarray(jax.jit(jax.vmap(one))(points))
    assert np.isfinite(slopes).all()
    assert (slopes >= 0).all()
    assert slopes[2] == pytest.approx(0.3 / 4)


def test_elu_is_its_formula():
    X = np.random.default_rng(0).normal(size=(6, 2))
    v = UNITS["centre"] + UNITS["unit"] * affine(X)
    assert (v > 0).any()
    assert (v < 0).any()
    expected = np.where(v > 0, v, 1.5 * (np.exp(v) - 1))
    np.testing.assert_allclose(ELU(1.5).evaluate(TRAINED, UNITS, X, np), expected, rtol=1e-12)


@repeatable
@given(st.floats(0.1, 10), st.floats(-1e300, 1e300))
def test_elu_stays_above_its_floor_and_overflows_nowhere(alpha, v):
    found = at(ELU(alpha), v)
    assert -alpha <= found < np.inf
    if v > 0:
        assert found == v
    elif v > -20:
        assert found > -alpha


def test_elu_slopes_are_finite_everywhere():
    with jax.enable_x64(True):
        one = jax.grad(lambda v: ELU(2.0).evaluate(SLOPE, PLAIN, v[None], jnp)[0])
        points = jnp.asarray([-1e300, -1.0, 0.0, 1.0, 1e5, 1e300])
        slopes = np.asarray(jax.jit(jax.vmap(one))(points))
    np.testing.assert_allclose(slopes, [0.0, 2 * np.exp(-1), 2.0, 1.0, 1.0, 1.0], rtol=1e-12)


@pytest.mark.parametrize("policy", [Sigmoid(), ELU()], ids=repr)
def test_learning_starts_at_a_constant(policy):
    start = policy.initial(np.random.default_rng(0), 4, 3)
    assert {name: array.shape for name, array in start.items()} == {"theta": (4, 3), "intercept": (3,)}
    assert not start["theta"].any()
    assert not start["intercept"].any()
    start["theta"][:] = 1.0
    assert not policy.initial(np.random.default_rng(0), 4, 3)["theta"].any()


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: Sigmoid(1, 1), InvalidInputError, "lower must be < upper, got lower=1.0 and upper=1.0."),
        (lambda: Sigmoid(2, 1), InvalidInputError, "lower must be < upper, got lower=2.0 and upper=1.0."),
        (lambda: Sigmoid(np.nan), InvalidInputError, "lower must be finite, got nan."),
        (lambda: Sigmoid(-np.inf), InvalidInputError, "lower must be finite, got -inf."),
        (lambda: Sigmoid("a"), InvalidTypeError, "lower must be a number, got 'a'."),
        (lambda: Sigmoid(0, np.inf), InvalidInputError, "upper must be finite, got inf."),
        (lambda: Sigmoid(0, None), InvalidTypeError, "upper must be a number, got None."),
        (lambda: Sigmoid(0, (1, 2)), InvalidTypeError, "upper must be a number, got (1, 2)."),
        (lambda: ELU(0), InvalidInputError, "alpha must be > 0, got 0.0."),
        (lambda: ELU(np.nan), InvalidInputError, "alpha must be > 0, got nan."),
        (lambda: ELU(np.inf), InvalidInputError, "alpha must be finite, got inf."),
        (lambda: ELU("1"), InvalidTypeError, "alpha must be a number, got '1'."),
    ],
)  # fmt: skip
def test_unusable_options_are_refused(build, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        build()


def test_numbers_are_stored_plainly():
    policy = Sigmoid(Fraction(1, 4), np.float32(2))
    assert repr(policy) == "Sigmoid(features=None, decisions=None, lower=0.25, upper=2.0)"
    assert policy.evaluate(SLOPE, PLAIN, np.ones((1, 1)), np).dtype == np.float64
    assert ELU(Fraction(1, 2)).alpha == 0.5
    assert type(ELU(1).alpha) is float
