import math
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.ambiguity import Box
from surefoot.exceptions import InvalidInputError

repeatable = settings(
    derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
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
