import re
from dataclasses import FrozenInstanceError

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.sets import Budget, DecisionSet

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
totals = st.floats(1e-3, 1e6)
shapes = st.sampled_from([(1,), (3,), (3, 4), (2, 3, 5)])
anything = hnp.arrays(float, shapes, elements=st.floats(-1e300, 1e300))
amounts = hnp.arrays(float, (4,), elements=st.floats(0, 100))


def test_values_by_hand():
    found = Budget(10.0).map_into(np.array([[3.0, -1.0], [15.0, 5.0], [-2.0, -3.0], [4.0, 6.0]]))
    np.testing.assert_array_equal(found, [[3.0, 0.0], [7.5, 2.5], [0.0, 0.0], [4.0, 6.0]])


@repeatable
@given(anything, totals)
def test_any_numbers_end_within_the_limit(numbers, total):
    budget = Budget(total)
    found = budget.map_into(numbers)
    assert found.shape == numbers.shape
    assert (found >= 0).all()
    assert (found.sum(axis=-1) <= total * (1 + 1e-12)).all()
    assert budget.contains(found)
    np.testing.assert_allclose(budget.map_into(found), found, rtol=1e-12)


@repeatable
@given(amounts, totals)
def test_feasible_amounts_stay_exactly_and_others_keep_their_proportions(numbers, total):
    found = Budget(total).map_into(numbers)
    if numbers.sum() <= total:
        np.testing.assert_array_equal(found, numbers)
    else:
        assert found.sum() == pytest.approx(total)
        np.testing.assert_allclose(found, numbers * (total / numbers.sum()), rtol=1e-12)


@repeatable
@given(amounts, totals, st.integers(-3, 3))
def test_units_do_not_matter(numbers, total, power):
    factor = 2.0**power
    np.testing.assert_allclose(
        Budget(factor * total).map_into(factor * numbers), factor * Budget(total).map_into(numbers)
    )


@pytest.mark.parametrize("numbers", [[1.0, 2.0, -1.0], [3.0, 9.0, 2.0], [-1.0, -2.0, -3.0]])
def test_both_namespaces_and_gradients(numbers):
    numbers, mix, budget = np.array(numbers), np.array([1.0, -2.0, 0.5]), Budget(4.0)
    with jax.enable_x64(True):
        found = np.asarray(budget.map_into(jnp.asarray(numbers), jnp))
        slope = np.asarray(
            jax.jit(jax.grad(lambda u: budget.map_into(u, jnp) @ mix))(jnp.asarray(numbers))
        )
    np.testing.assert_allclose(found, budget.map_into(numbers), rtol=1e-13)
    for j, step in enumerate(1e-6 * np.eye(3)):
        numeric = (budget.map_into(numbers + step) - budget.map_into(numbers - step)) @ mix / 2e-6
        assert slope[j] == pytest.approx(numeric, abs=1e-8)


@pytest.mark.parametrize("numbers", [[0.0, 0.0], [1e300, 1e300], [-1e300, 1e300], [2.0, 2.0]])
def test_gradients_are_finite_everywhere(numbers):
    with jax.enable_x64(True):
        slope = jax.grad(lambda u: Budget(4.0).map_into(u, jnp)[0])(jnp.asarray(numbers))
        assert np.isfinite(np.asarray(slope)).all()


def test_what_lies_inside():
    budget = Budget(10.0)
    assert budget.contains(np.array([4.0, 6.0]))
    assert budget.contains(np.array([[0.0, 0.0], [10.0, 0.0]]))
    assert not budget.contains(np.array([[0.0, 0.0], [10.0, 0.1]]))
    assert not budget.contains(np.array([-0.1, 5.0]))
    assert not budget.contains(np.array([np.nan, 5.0]))
    # The slack is relative to the limit, in whatever unit.
    assert Budget(1e9).contains(np.array([1e9 + 0.5]))
    assert not Budget(1e-6).contains(np.array([1.1e-6]))
    assert budget.contains(np.array([10.5]), slack=0.1)


@pytest.mark.parametrize(
    ("total", "kind", "message"),
    [
        (0, InvalidInputError, "total must be > 0, got 0.0."),
        (-1.0, InvalidInputError, "total must be > 0, got -1.0."),
        (np.nan, InvalidInputError, "total must be > 0, got nan."),
        (np.inf, InvalidInputError, "total must be finite, got inf."),
        ("10", InvalidTypeError, "total must be a number, got '10'."),
        (None, InvalidTypeError, "total must be a number, got None."),
        ((1, 2), InvalidTypeError, "total must be a number, got (1, 2)."),
    ],
)
def test_unusable_limits_are_refused(total, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        Budget(total)


def test_what_it_says_of_itself():
    budget = Budget(10)
    assert isinstance(budget, DecisionSet)
    assert budget.in_units is True
    assert budget.why_not(1) is None
    assert repr(budget) == "Budget(total=10.0)"
    assert hash(budget) == hash(Budget(10.0))
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'total'"):
        budget.total = 3.0
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'total'"):
        Budget()


def test_the_farthest_decision_is_the_best_of_many():
    rng = np.random.default_rng(0)
    limits, directions = Budget(total=3.0), rng.normal(size=(20, 4)) - 0.5
    inside = limits.map_into(rng.normal(size=(500, 4)) * 3.0)
    found = limits.farthest(directions)
    assert limits.contains(found)
    assert ((directions * found).sum(axis=1) >= (directions @ inside.T).max(axis=1) - 1e-12).all()
    assert limits.farthest(np.array([[-1.0, -2.0]])).tolist() == [[0.0, 0.0]]
