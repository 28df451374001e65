import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surefoot.sets import DecisionSet, Simplex

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
shapes = st.sampled_from([(2,), (3, 4), (2, 3, 5)])
anything = hnp.arrays(float, shapes, elements=st.floats(-1e300, 1e300))
ordinary = hnp.arrays(float, (4,), elements=st.floats(-20, 20))


def test_values_by_hand():
    found = Simplex().map_into(np.log([[1.0, 1.0], [1.0, 3.0]]))
    np.testing.assert_allclose(found, [[0.5, 0.5], [0.25, 0.75]])


@repeatable
@given(anything)
def test_any_numbers_become_shares(numbers):
    found = Simplex().map_into(numbers)
    assert found.shape == numbers.shape
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, rtol=1e-12)
    assert Simplex().contains(found)


@repeatable
@given(ordinary, st.floats(-5, 5))
def test_only_differences_matter_and_larger_numbers_get_larger_shares(numbers, shift):
    found = Simplex().map_into(numbers)
    np.testing.assert_allclose(Simplex().map_into(numbers + shift), found, rtol=1e-12)
    np.testing.assert_allclose(found, np.exp(numbers) / np.exp(numbers).sum(), rtol=1e-12)
    assert (found > 0).all()
    assert (np.diff(found[np.argsort(numbers)]) >= 0).all()


@repeatable
@given(ordinary)
def test_shares_map_to_themselves_from_their_logarithms(numbers):
    shares = Simplex().map_into(numbers)
    np.testing.assert_allclose(Simplex().map_into(np.log(shares)), shares, rtol=1e-9)


@pytest.mark.parametrize(
    "numbers",
    [[0.3, -1.0, 2.0], [0.0, 0.0, 0.0], [1e300, 1e300, -1e300], [1e300, 0.0, -1e300]],
)
def test_both_namespaces_and_gradients(numbers):
    numbers, mix = np.array(numbers), np.array([1.0, -2.0, 0.5])
    with jax.enable_x64(True):
        found = np.asarray(Simplex().map_into(jnp.asarray(numbers), jnp))
        slope = jax.jit(jax.grad(lambda u: Simplex().map_into(u, jnp) @ mix))(jnp.asarray(numbers))
        slope = np.asarray(slope)
    shares = Simplex().map_into(numbers)
    np.testing.assert_allclose(found, shares, rtol=1e-13)
    np.testing.assert_allclose(slope, shares * (mix - shares @ mix), atol=1e-14)


def test_what_lies_inside():
    simplex = Simplex()
    assert simplex.contains(np.array([0.25, 0.75]))
    assert simplex.contains(np.array([[1.0, 0.0], [0.5, 0.5]]))
    assert not simplex.contains(np.array([[1.0, 0.0], [0.5, 0.6]]))
    assert not simplex.contains(np.array([1.1, -0.1]))
    assert not simplex.contains(np.array([0.5, 0.4]))
    assert not simplex.contains(np.array([np.nan, 1.0]))
    assert not simplex.contains(np.array([0.5, 0.5 + 1e-6]))
    assert simplex.contains(np.array([0.5, 0.5 + 1e-6]), slack=1e-5)


def test_what_it_says_of_itself():
    assert issubclass(Simplex, DecisionSet)
    assert Simplex.in_units is False
    assert Simplex().why_not(2) is None
    assert Simplex().why_not(1) == "Simplex() needs at least two decisions to share between, got 1"
    assert repr(Simplex()) == "Simplex()"
    assert Simplex() == Simplex()
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        Simplex(3)


def test_the_farthest_decision_is_the_best_of_many():
    rng = np.random.default_rng(0)
    directions, inside = rng.normal(size=(20, 4)), rng.dirichlet(np.ones(4), size=500)
    found = Simplex().farthest(directions)
    assert Simplex().contains(found)
    assert ((directions * found).sum(axis=1) >= (directions @ inside.T).max(axis=1)).all()
