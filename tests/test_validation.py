import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.exceptions import InvalidInputError, InvalidTypeError, SurefootError
from surefoot.validation import (
    check_choice,
    check_finite,
    check_flag,
    check_instance,
    check_integer,
    check_number,
    context_matrix,
    mass_vector,
    numeric_array,
    outcome_matrix,
    real_array,
    weight_vector,
)

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def exactly(message):
    return f"^{re.escape(message)}$"


# Numbers, whole numbers, choices, flags


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (-1.0, {"at_least": 0}, "radius must be >= 0, got -1.0."),
        (math.nan, {"at_least": 0}, "radius must be >= 0, got nan."),
        (math.inf, {"at_least": 0}, "radius must be finite, got inf."),
        (0, {"above": 0}, "radius must be > 0, got 0.0."),
        (-math.inf, {"above": 0.5}, "radius must be > 0.5, got -inf."),
        (math.nan, {"above": 0, "finite": False}, "radius must be > 0, got nan."),
        (1.0, {"above": 0, "below": 1}, "radius must be < 1, got 1.0."),
        (math.nan, {"below": 1}, "radius must be < 1, got nan."),
        (1.5, {"at_most": 1}, "radius must be <= 1, got 1.5."),
        (math.nan, {}, "radius must be finite, got nan."),
        (math.nan, {"finite": False}, "radius must be finite, got nan."),
        (-math.inf, {}, "radius must be finite, got -inf."),
        (10**400, {}, "radius must fit in a float, got a larger number."),
    ],
)
def test_numbers_out_of_range_are_refused(value, limits, message):
    with pytest.raises(InvalidInputError, match=exactly(message)):
        check_number("radius", value, **limits)


@pytest.mark.parametrize("value", ["0.3", True, False, np.True_, None, 1 + 2j, [0.3], np.array([0.3])])
def test_what_is_no_number_is_a_type_error(value):
    with pytest.raises(InvalidTypeError, match=exactly(f"radius must be a number, got {value!r}.")):
        check_number("radius", value)


@pytest.mark.parametrize(
    "value", [0, 0.25, np.float32(0.25), np.float64(3.5), np.int8(3), Fraction(1, 4)]
)
def test_every_real_number_becomes_a_float(value):
    number = check_number("radius", value, at_least=0)
    assert type(number) is float
    assert number == value


def test_infinity_passes_only_on_request():
    assert check_number("outcome_cost", math.inf, above=0, finite=False) == math.inf


@repeatable
@given(st.floats(), st.floats(-5, 5))
def test_a_number_passes_exactly_when_it_lies_in_range(value, limit):
    inside = math.isfinite(value) and value >= limit
    strictly = math.isfinite(value) and value > limit
    for allowed, limits in ((inside, {"at_least": limit}), (strictly, {"above": limit})):
        if allowed:
            assert check_number("v", value, **limits) == value
        else:
            with pytest.raises(InvalidInputError, match=r"^v must be .*, got "):
                check_number("v", value, **limits)


def test_whole_numbers():
    steps = check_integer("max_steps", np.int64(10), at_least=1)
    assert type(steps) is int
    assert steps == 10
    assert check_integer("max_steps", 1, at_least=1) == 1
    with pytest.raises(InvalidInputError, match=exactly("max_steps must be >= 1, got 0.")):
        check_integer("max_steps", 0, at_least=1)


@pytest.mark.parametrize("value", [1.0, "1", True, None, math.nan])
def test_what_is_no_whole_number_is_a_type_error(value):
    with pytest.raises(
        InvalidTypeError, match=exactly(f"max_steps must be a whole number, got {value!r}.")
    ):
        check_integer("max_steps", value, at_least=1)


@pytest.mark.parametrize("value", [0, 3, "2", None, True, np.True_, math.nan])
def test_a_choice_lists_what_is_allowed(value):
    with pytest.raises(InvalidInputError, match=exactly(f"order must be 1 or 2, got {value!r}.")):
        check_choice("order", value, (1, 2))


def test_a_choice_is_returned():
    assert check_choice("order", 2, iter((1, 2))) == 2
    assert check_choice("cost", "auto", ("auto", "paper")) == "auto"


@pytest.mark.parametrize("value", [0, 1, "True", None, 1.0, [True]])
def test_a_flag_is_true_or_false(value):
    message = f"intercept must be True or False, got {value!r}."
    with pytest.raises(InvalidTypeError, match=exactly(message)):
        check_flag("intercept", value)


def test_flags_become_plain():
    assert check_flag("scale", np.True_) is True
    assert check_flag("scale", False) is False


def test_an_object_of_the_wrong_kind():
    check_instance("cost", 3, int, "a whole number")
    check_instance("cost", 3, (str, int), "a whole number")
    with pytest.raises(InvalidTypeError, match=exactly("cost must be a whole number, got 'three'.")):
        check_instance("cost", "three", int, "a whole number")


def test_one_family_of_errors():
    assert issubclass(InvalidInputError, SurefootError)
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(InvalidTypeError, SurefootError)
    assert issubclass(InvalidTypeError, TypeError)


# Arrays


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1], [1, 2]], "X must be a rectangular array, got rows of different lengths."),
        ([1, 2 + 1j], "X must be real, got complex data."),
        (["a", "b"], "X must be numeric, got text or dates (<U1)."),
        (["1", "2"], "X must be numeric, got text or dates (<U1)."),
        ([b"1"], "X must be numeric, got text or dates (|S1)."),
        (np.array([1.0, "2"], dtype=object), "X must be numeric, got text or dates (object)."),
        (np.array(["2024-01-01"], "M8[D]"), "X must be numeric, got text or dates (datetime64[D])."),
        (np.array([3], "m8[s]"), "X must be numeric, got text or dates (timedelta64[s])."),
        (
            np.array([1.0, np.datetime64("2024-01-01")], dtype=object),
            "X must be numeric, got text or dates (object).",
        ),
        (
            np.array([np.timedelta64(3, "s")], dtype=object),
            "X must be numeric, got text or dates (object).",
        ),
        ([1.0, math.nan], "X must be finite (no NaN, no infinity), got NaN in row 1."),
        ([None], "X must be numeric, got None."),
        (math.inf, "X must be finite (no NaN, no infinity), got infinity in the value."),
        (
            [[1.0, 2.0], [3.0, -math.inf]],
            "X must be finite (no NaN, no infinity), got infinity in row 1, column 1.",
        ),
    ],
)
def test_unusable_arrays_are_refused(values, message):
    with pytest.raises(InvalidInputError, match=exactly(message)):
        numeric_array("X", values)


@pytest.mark.parametrize("values", [[{}], [10**400], [1j, {}], object()])
def test_objects_that_are_no_numbers(values):
    with pytest.raises(InvalidInputError, match=r"^X must be numeric, got values of type object"):
        numeric_array("X", values)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2],
        (1.0, 2.0),
        np.array([1, 2], dtype=np.uint8),
        np.array([1, 2], dtype=np.float32),
        np.array([1, 2.0], dtype=object),
        pd.Series([1, 2]),
        pd.Series([1, 2], dtype="Int64"),
        pl.Series([1, 2]),
    ],
)
def test_every_source_of_numbers_gives_the_same_array(values):
    array = numeric_array("y", values)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, [1.0, 2.0])


def test_missing_values_of_frames_are_refused():
    for frame in (pd.DataFrame({"a": [1, None]}), pl.DataFrame({"a": [1, None]})):
        with pytest.raises(InvalidInputError, match="got NaN in row 1, column 0"):
            context_matrix("X", frame)
    with pytest.raises(InvalidInputError, match=r"^X must be"):
        context_matrix("X", pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}))


def test_real_arrays_keep_infinity():
    np.testing.assert_array_equal(
        real_array("lower", [1, -math.inf, math.nan]), [1, -math.inf, math.nan]
    )


@pytest.mark.parametrize("check", [real_array, numeric_array, context_matrix])
def test_the_answer_is_a_copy(check):
    values = np.arange(6.0).reshape(3, 2)
    array = check("X", values)
    assert not np.shares_memory(array, values)
    array[:] = -1.0
    np.testing.assert_array_equal(values, np.arange(6.0).reshape(3, 2))


def test_outcomes_and_weights_are_copies():
    values = np.array([1.0, 3.0])
    for array in (
        outcome_matrix("y", values, 2),
        weight_vector("w", values, 2),
        mass_vector("w", values, 2),
    ):
        assert not np.shares_memory(array, values)


def test_bad_cells_are_named_by_column():
    array = np.array([[1.0, 2.0], [3.0, math.nan]])
    check_finite("X", array[:1], columns=("price", "heat"))
    with pytest.raises(InvalidInputError, match="got NaN in row 1, column 'heat'"):
        check_finite("X", array, columns=("price", "heat"))


def test_the_first_bad_cell_is_named():
    array = np.array([[1.0, math.inf], [math.nan, 2.0]])
    with pytest.raises(InvalidInputError, match="got infinity in row 0, column 1"):
        check_finite("X", array)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], "X must be a matrix (rows, columns), got an array of shape (2,)."),
        (3.0, "X must be a matrix (rows, columns), got an array of shape ()."),
        ([], "X must be a matrix (rows, columns), got an array of shape (0,)."),
        ([[[1.0]]], "X must be a matrix (rows, columns), got an array of shape (1, 1, 1)."),
        (np.zeros((0, 3)), "X must have at least one row and one column, got shape (0, 3)."),
        (np.zeros((3, 0)), "X must have at least one row and one column, got shape (3, 0)."),
    ],
)
def test_contexts_are_a_matrix(values, message):
    with pytest.raises(InvalidInputError, match=exactly(message)):
        context_matrix("X", values)


def test_contexts_come_back_contiguous():
    values = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    matrix = context_matrix("X", values)
    assert matrix.flags.c_contiguous
    np.testing.assert_array_equal(matrix, values)
    assert context_matrix("X", values.T[::-1]).flags.c_contiguous


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "y must have shape (rows,) or (rows, products), got shape (0,)."),
        (1.0, "y must have shape (rows,) or (rows, products), got shape ()."),
        (np.zeros((2, 1, 1)), "y must have shape (rows,) or (rows, products), got shape (2, 1, 1)."),
        (np.zeros((2, 0)), "y must have shape (rows,) or (rows, products), got shape (2, 0)."),
        ([1.0, 2.0, 3.0], "y must have one row per row of X (2), got 3."),
        ([[1.0, 2.0]], "y must have one row per row of X (2), got 1."),
    ],
)
def test_outcomes_match_the_rows(values, message):
    with pytest.raises(InvalidInputError, match=exactly(message)):
        outcome_matrix("y", values, rows=2)


def test_a_vector_of_outcomes_is_one_product():
    vector, column = (outcome_matrix("y", y, rows=3) for y in ([1, 2, 3], [[1], [2], [3]]))
    np.testing.assert_array_equal(vector, column)
    assert vector.shape == (3, 1)
    assert outcome_matrix("y", [[1, 2], [3, 4], [5, 6]], rows=3).tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("check", [mass_vector, weight_vector])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([-0.5, 1.0], "w must be >= 0, got -0.5."),
        ([0.0, 0.0], "w must have a positive sum, got all zeros."),
        (0, "w must have a positive sum, got all zeros."),
        ([1.0], "w must have one entry per row of X (2), got shape (1,)."),
        ([[1.0], [2.0]], "w must have one entry per row of X (2), got shape (2, 1)."),
        ([1.0, math.nan], "w must be finite (no NaN, no infinity), got NaN in row 1."),
        ([1e308, 1e308], "w must have a finite sum, got entries up to 1e+308."),
        (["a", "b"], "w must be numeric, got text or dates (<U1)."),
    ],
)
def test_unusable_weights_are_refused(check, values, message):
    with pytest.raises(InvalidInputError, match=exactly(message)):
        check("w", values, rows=2)


def test_no_weights_or_one_weight_are_equal_weights():
    for values in (None, 1, 7.5, [2, 2, 2]):
        np.testing.assert_array_equal(weight_vector("w", values, rows=3), np.full(3, 1 / 3))
    assert mass_vector("w", None, rows=3).tolist() == [1, 1, 1]
    assert mass_vector("w", [1, 3, 0], rows=3).tolist() == [1, 3, 0]


@repeatable
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(any), st.integers(-20, 20))
def test_weights_sum_to_one_and_keep_their_ratios(values, power):
    weights = weight_vector("w", values, rows=len(values))
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(weights * sum(values), values, rtol=1e-12, atol=1e-300)
    # A common factor that a float holds exactly changes nothing at all.
    if min(v for v in values if v) > 1e-290:
        np.testing.assert_array_equal(
            weight_vector("w", np.ldexp(values, power), rows=len(values)), weights
        )


def test_a_long_object_is_named_by_its_type():
    with pytest.raises(
        InvalidTypeError, match="^nominal must be a nominal, got an object of type tuple.$"
    ):
        check_instance("nominal", (np.arange(200),), str, "a nominal")


def test_masked_entries_are_refused_and_not_read_below_their_mask():
    masked = np.ma.array([[1.0, 999.0], [2.0, 3.0]], mask=[[False, True], [False, False]])
    with pytest.raises(InvalidInputError, match=r"X must have no masked entries, got 1 of 4: leave"):
        context_matrix("X", masked)
    assert context_matrix("X", np.ma.array([[1.0]], mask=False)).tolist() == [[1.0]]
