import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import expit

from surefoot.policies.activations import ACTIVATIONS, elu, relu, sigmoid, softplus, tanh

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
values = st.floats(-1e3, 1e3)
EVERYWHERE = np.array([-1e300, -1e4, -30.0, -1.0, -1e-9, 0.0, 1e-9, 1.0, 30.0, 1e4, 1e300])


def at(bend, value, *options):
    return float(bend(np.array(value), np, *options))


@repeatable
@given(values, st.floats(0.1, 5))
def test_the_formulas(v, alpha):
    expected = v if v > 0 else alpha * np.expm1(v)
    assert at(elu, v, alpha) == pytest.approx(expected, rel=1e-15)
    assert at(relu, v) == max(v, 0.0)
    assert at(tanh, v) == pytest.approx(np.tanh(v))
    assert at(softplus, v) == pytest.approx(max(v, 0.0) + np.log1p(np.exp(-abs(v))), rel=1e-14)
    assert at(sigmoid, v) == pytest.approx(expit(v), rel=1e-12)


@pytest.mark.parametrize("name", [*ACTIVATIONS, "sigmoid"])
def test_no_overflow_and_the_same_in_both_namespaces(name):
    bend = ACTIVATIONS.get(name, sigmoid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bend(EVERYWHERE, np)
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0).all()
    with jax.enable_x64(True):
        points = jnp.asarray(EVERYWHERE)
        other = np.asarray(bend(points, jnp))
        slopes = np.asarray(jax.jit(jax.grad(lambda v: bend(v, jnp).sum()))(points))
    # Numbers too small to be normal are zero in compiled code.
    np.testing.assert_allclose(other, found, rtol=1e-13, atol=1e-300)
    assert np.isfinite(slopes).all()
    assert (slopes >= 0).all()
    ordinary = np.array([-3.0, -0.4, 0.7, 5.0])
    with jax.enable_x64(True):
        slopes = np.asarray(jax.jit(jax.grad(lambda v: bend(v, jnp).sum()))(jnp.asarray(ordinary)))
    numeric = (bend(ordinary + 1e-6, np) - bend(ordinary - 1e-6, np)) / 2e-6
    np.testing.assert_allclose(slopes, numeric, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_elu_at_its_bend_has_the_slope_of_the_exponential(alpha):
    """A policy that starts at zero must not learn at half speed."""
    slope = jax.grad(lambda v: elu(v, jnp, alpha))(0.0)
    assert float(slope) == pytest.approx(alpha)


def test_sigmoid_keeps_its_digits_and_its_slope_far_from_zero():
    with jax.enable_x64(True):
        slopes = np.asarray(
            jax.jit(jax.grad(lambda v: sigmoid(v, jnp).sum()))(jnp.asarray([-40.0, 40.0, -600.0]))
        )
    np.testing.assert_allclose(slopes, np.exp([-40.0, -40.0, -600.0]), rtol=1e-10)
    assert at(sigmoid, -600.0) == pytest.approx(np.exp(-600.0), rel=1e-12)


def test_names():
    expected = {"elu": elu, "relu": relu, "tanh": tanh, "softplus": softplus}
    assert expected == ACTIVATIONS
