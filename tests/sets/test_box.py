import math
import re
from dataclasses import FrozenInstanceError

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from surefoot.exceptions import InvalidInputError
from surefoot.sets import Box, DecisionSet

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
bounds = st.floats(allow_nan=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            (1, 0),
            "lower must be <= upper in every column, "
            "got Box(lower=1.0, upper=0.0, outcome=(-inf, inf)).",
        ),
        (
            ((0, 0), (1, -1)),
            "lower must be <= upper in every column, "
            "got Box(lower=(0.0, 0.0), upper=(1.0, -1.0), outcome=(-inf, inf)).",
        ),
        (
            (0, 1, (2, 1)),
            "lower must be <= upper in every column, "
            "got Box(lower=0.0, upper=1.0, outcome=(2.0, 1.0)).",
        ),
        ((math.nan, 1), "lower must not be NaN, got nan."),
        ((None, 1), "lower must be numeric, got None."),
        ((0, [1.0, math.nan]), "upper must not be NaN, got [1.0, nan]."),
        ((0, 1, (math.nan, 1)), "outcome must not be NaN, got (nan, 1)."),
        (((0, 1), (2, 3, 4)), "lower and upper must have the same length, got [2, 3]."),
        ((0, 1, 5), "outcome must be (lower, upper), got 5."),
        ((0, 1, (1, 2, 3)), "outcome must be (lower, upper), got (1, 2, 3)."),
        (([[0]], 1), "lower must be a number or one number per column, got shape (1, 1)."),
        (([], 1), "lower must be a number or one number per column, got shape (0,)."),
        (([[0], [0, 1]], 1), "lower must be a rectangular array, got rows of different lengths."),
        (("low", 1), "lower must be numeric, got text or dates (<U3)."),
        ((0, "1"), "upper must be numeric, got text or dates (<U1)."),
        ((0, 1 + 1j), "upper must be real, got complex data."),
        ((0, np.array([1j])), "upper must be real, got complex data."),
    ],
)
def test_unusable_boxes_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Box(*options)


@pytest.mark.parametrize(
    ("box", "message"),
    [
        (Box((0, 0), 1), "lower must be one number or one per column (3), got 2 numbers."),
        (Box(0, (1, 2, 3, 4)), "upper must be one number or one per column (3), got 4 numbers."),
    ],
)
def test_bounds_must_match_the_columns(box, message):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        box.arrays(3)


@repeatable
@given(bounds, bounds)
def test_a_box_is_refused_exactly_when_it_is_empty(lower, upper):
    for build in (
        lambda: Box(lower, upper),
        lambda: Box((0, lower), (0, upper)),
        lambda: Box(0, 1, (lower, upper)),
    ):
        if lower <= upper:
            build()
        else:
            with pytest.raises(InvalidInputError, match="lower must be <= upper"):
                build()


def test_one_number_serves_every_column():
    lower, upper = Box(-math.inf, (1, 2, 3)).arrays(3)
    np.testing.assert_array_equal(lower, [-math.inf] * 3)
    np.testing.assert_array_equal(upper, [1, 2, 3])
    assert lower.dtype == upper.dtype == np.float64


def test_a_point_is_a_box():
    lower, upper = Box(2, 2).arrays(1)
    assert lower == upper == 2


def test_arrays_are_the_caller_s_own():
    box = Box((0, 0), 1)
    for bound in box.arrays(2):
        bound[:] = 9.0
    assert [bound.tolist() for bound in box.arrays(2)] == [[0, 0], [1, 1]]


def test_immutable():
    lower = np.zeros(2)
    box = Box(lower, 1)
    lower[0] = 9.0
    assert box.lower == (0.0, 0.0)
    for name in ("lower", "upper", "outcome"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(box, name, 0)


def test_equal_bounds_make_equal_boxes():
    assert Box([0, 0], 1) == Box(np.zeros(2), 1.0)
    assert len({Box(0, 1), Box(0.0, 1.0), Box(0, 2), Box(0, 1, (0, 5))}) == 3


@repeatable
@given(st.lists(st.tuples(bounds, bounds).map(sorted), min_size=1, max_size=3), st.booleans())
def test_repr_reads_back(sides, scalar):
    lower, upper = zip(*sides, strict=True)
    box = Box(lower[0], upper[0], (lower[-1], upper[-1])) if scalar else Box(lower, upper)
    assert eval(repr(box), {"Box": Box, "inf": math.inf}) == box


def test_misspelt_options_are_type_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'low'"):
        Box(low=0, upper=1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'upper'"):
        Box(0)


# --- as limits of decisions -----------------------------------------------------------------------


def test_decisions_are_cut_to_their_bounds():
    numbers = np.array([[-5.0, 0.5], [0.5, 9.0], [2.0, -1.0]])
    np.testing.assert_array_equal(Box(0, 1).map_into(numbers), [[0, 0.5], [0.5, 1], [1, 0]])
    np.testing.assert_array_equal(
        Box((-np.inf, 0), (1, np.inf)).map_into(numbers), [[-5, 0.5], [0.5, 9], [1, 0]]
    )


@repeatable
@given(
    st.lists(st.tuples(bounds, bounds).map(sorted), min_size=3, max_size=3),
    hnp.arrays(float, st.sampled_from([(3,), (2, 3), (2, 4, 3)]), elements=st.floats(-1e300, 1e300)),
)
def test_any_numbers_end_inside_and_those_inside_stay(sides, numbers):
    box = Box(*zip(*sides, strict=True))
    found = box.map_into(numbers)
    assert found.shape == numbers.shape
    lower, upper = box.arrays(3)
    assert ((found >= lower) & (found <= upper)).all()
    np.testing.assert_array_equal(box.map_into(found), found)
    inside = (numbers >= lower) & (numbers <= upper)
    np.testing.assert_array_equal(found[inside], numbers[inside])
    assert box.contains(found)
    # It is the nearest point: no bound lies between the number and its image, unless it is the image.
    assert ((found == numbers) | (found == lower) | (found == upper)).all()


def test_both_namespaces_and_gradients():
    box, numbers = Box((0, -np.inf, -1), (1, 2, np.inf)), np.array([0.5, 3.0, -1e300])
    with jax.enable_x64(True):
        found = np.asarray(box.map_into(jnp.asarray(numbers), jnp))
        slope = np.asarray(
            jax.jit(jax.grad(lambda u: box.map_into(u, jnp).sum()))(jnp.asarray(numbers))
        )
    np.testing.assert_array_equal(found, box.map_into(numbers))
    np.testing.assert_array_equal(slope, [1.0, 0.0, 0.0])


def test_what_lies_inside():
    box = Box((0, -math.inf), (1, 10))
    assert box.contains(np.array([0.5, -1e9]))
    assert box.contains(np.array([[0.0, 10.0], [1.0, 0.0]]))
    assert not box.contains(np.array([[0.0, 10.0], [1.0, 10.1]]))
    assert not box.contains(np.array([-0.1, 0.0]))
    assert not box.contains(np.array([math.nan, 0.0]))
    assert Box(-math.inf, math.inf).contains(np.array([1e300]))
    assert Box(2, 2).contains(np.array([2.0]))


def test_the_slack_is_relative_to_the_box():
    assert Box(0, 1e9).contains(np.array([1e9 + 0.5]))
    assert not Box(0, 1e9).contains(np.array([1e9 + 5.0]))
    assert not Box(0, 1e-12).contains(np.array([2e-12]))
    assert not Box(0, math.inf).contains(np.array([-1e-12]))
    # A decision far outside makes no room for itself.
    assert not Box(0, 1).contains(np.array([1.5]), slack=0.4)
    assert Box(0, 1).contains(np.array([1.3]), slack=0.4)


def test_limits_must_match_the_decisions():
    assert Box(0, 1).why_not(5) is None
    assert Box((0, 0), (1, 2)).why_not(2) is None
    assert Box((0, 0), 1).why_not(3) == (
        "lower of the decisions' Box must be one number or one per decision (3), got 2 numbers"
    )
    assert Box(0, (1, 2, 3)).why_not(1) == (
        "upper of the decisions' Box must be one number or one per decision (1), got 3 numbers"
    )


def test_a_box_is_a_set_of_decisions_in_their_own_unit():
    assert isinstance(Box(0, 1), DecisionSet)
    assert Box.in_units is True
    with pytest.raises(TypeError, match="abstract"):
        DecisionSet()


def test_the_farthest_decision_is_a_corner():
    found = Box((0, -1), (2, 5)).farthest(np.array([[1.0, -1.0], [-3.0, 2.0]]))
    assert found.tolist() == [[2.0, -1.0], [0.0, 5.0]]
    assert Box(0, np.inf).farthest(np.array([[1.0, -1.0]])).tolist() == [[np.inf, 0.0]]
