import math
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.ambiguity import Box, WassersteinBall
from surefoot.exceptions import InvalidInputError, InvalidTypeError

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def exactly(message):
    return f"^{re.escape(message)}$"


@pytest.mark.parametrize(
    ("radius", "error", "message"),
    [
        (-1.0, InvalidInputError, "radius must be >= 0, got -1.0."),
        (math.nan, InvalidInputError, "radius must be >= 0, got nan."),
        (math.inf, InvalidInputError, "radius must be finite, got inf."),
        (
            "0.3",
            InvalidInputError,
            "radius must be a number >= 0, 'auto', 'paper' or 'profile', got '0.3'.",
        ),
        (
            "Auto",
            InvalidInputError,
            "radius must be a number >= 0, 'auto', 'paper' or 'profile', got 'Auto'.",
        ),
        (True, InvalidTypeError, "radius must be a number, got True."),
        (None, InvalidTypeError, "radius must be a number, got None."),
        ([0.3], InvalidTypeError, "radius must be a number, got [0.3]."),
        (1j, InvalidTypeError, "radius must be a number, got 1j."),
    ],
)
def test_unusable_radii_are_refused(radius, error, message):
    with pytest.raises(error, match=exactly(message)):
        WassersteinBall(radius)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"order": 3}, InvalidInputError, "order must be 1 or 2, got 3."),
        ({"order": 0}, InvalidInputError, "order must be 1 or 2, got 0."),
        ({"order": 1.5}, InvalidInputError, "order must be 1 or 2, got 1.5."),
        ({"order": "2"}, InvalidInputError, "order must be 1 or 2, got '2'."),
        ({"order": True}, InvalidInputError, "order must be 1 or 2, got True."),
        ({"order": math.nan}, InvalidInputError, "order must be 1 or 2, got nan."),
        ({"outcome_cost": 0}, InvalidInputError, "outcome_cost must be > 0, got 0.0."),
        ({"outcome_cost": -1}, InvalidInputError, "outcome_cost must be > 0, got -1.0."),
        ({"outcome_cost": math.nan}, InvalidInputError, "outcome_cost must be > 0, got nan."),
        ({"outcome_cost": None}, InvalidTypeError, "outcome_cost must be a number, got None."),
        ({"outcome_cost": True}, InvalidTypeError, "outcome_cost must be a number, got True."),
        ({"support": (0, 1)}, InvalidTypeError, "support must be a Box or None, got (0, 1)."),
        (
            {"scale": 1},
            InvalidInputError,
            "scale must be True, False or one number > 0 per column, got 1.",
        ),
        (
            {"scale": "std"},
            InvalidInputError,
            "scale must be True, False or one number > 0 per column, got 'std'.",
        ),
        (
            {"frozen": "holiday"},
            InvalidInputError,
            "frozen must be a sequence of columns such as ('holiday',), got the text 'holiday'.",
        ),
        (
            {"frozen": 2},
            InvalidTypeError,
            "frozen must be a sequence of columns such as (0, 'holiday'), got 2.",
        ),
        (
            {"frozen": None},
            InvalidTypeError,
            "frozen must be a sequence of columns such as (0, 'holiday'), got None.",
        ),
    ],
)
def test_unusable_options_are_refused(options, error, message):
    with pytest.raises(error, match=exactly(message)):
        WassersteinBall(0.3, **options)


def test_misspelt_and_missing_options_are_type_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'eps'"):
        WassersteinBall(eps=0.3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'norm'"):
        WassersteinBall(0.3, norm=2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'radius'"):
        WassersteinBall()


def test_values_become_plain():
    ball = WassersteinBall(np.float32(0.5), order=np.int64(1), outcome_cost=2, scale=np.False_)
    assert (ball.radius, ball.order, ball.outcome_cost, ball.scale) == (0.5, 1, 2.0, False)
    assert [type(v) for v in (ball.radius, ball.order, ball.outcome_cost, ball.scale)] == [
        float, int, float, bool,
    ]  # fmt: skip
    assert WassersteinBall("auto").radius == "auto"
    assert WassersteinBall(0).radius == 0.0
    assert type(WassersteinBall(1, order=2.0).order) is int


@repeatable
@given(st.floats())
def test_a_radius_is_any_finite_distance(radius):
    if radius >= 0 and math.isfinite(radius):
        assert WassersteinBall(radius).radius == radius
    else:
        with pytest.raises(InvalidInputError, match=r"^radius must be "):
            WassersteinBall(radius)


# Frozen columns


def test_names_and_positions_freeze_columns():
    ball = WassersteinBall(0.3, frozen=("holiday", 0, -1))
    mask = ball.frozen_columns(4, ("price", "holiday", "heat", "rain"))
    assert mask.dtype == bool
    assert mask.tolist() == [True, True, False, True]
    assert WassersteinBall(0.3).frozen_columns(2).tolist() == [False, False]


@pytest.mark.parametrize(
    "frozen", [[1, 2], np.array([1, 2]), (n for n in (1, 2)), range(1, 3), {1, 2}, pd.Index([1, 2])]
)
def test_any_sequence_of_positions(frozen):
    ball = WassersteinBall(0.3, frozen=frozen)
    assert ball.frozen == (1, 2)
    assert ball.frozen_columns(3).tolist() == [False, True, True]
    assert ball.frozen_columns(3).tolist() == [False, True, True]


def test_any_sequence_of_names():
    for frozen in (["b"], np.array(["b"]), pd.Index(["b"])):
        ball = WassersteinBall(0.3, frozen=frozen)
        assert repr(ball.frozen) == "('b',)"
        assert ball.frozen_columns(2, ("a", "b")).tolist() == [False, True]


def test_a_name_that_stands_twice_freezes_both_columns():
    ball = WassersteinBall(0.3, frozen=("flag",))
    assert ball.frozen_columns(3, ("flag", "price", "flag")).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("frozen", "names", "message"),
    [
        (
            ("rain",),
            ("price", "heat", "flag"),
            "frozen must name columns of X (price, heat, flag), got 'rain'.",
        ),
        (
            ("Price",),
            ("price", "heat", "flag"),
            "frozen must name columns of X (price, heat, flag), got 'Price'.",
        ),
        (
            ("price",),
            None,
            "frozen names the column 'price', but X has no column names: "
            "pass a data frame, or positions.",
        ),
        ((3,), None, "frozen must hold column names or positions below 3, got 3."),
        ((0, -4), None, "frozen must hold column names or positions below 3, got -4."),
        ((1.0,), None, "frozen must hold column names or positions below 3, got 1.0."),
        ((None,), None, "frozen must hold column names or positions below 3, got None."),
        # A mask is no list of positions.
        ((True, False, False), None, "frozen must hold column names or positions below 3, got True."),
        (
            np.array([False, True]),
            None,
            "frozen must hold column names or positions below 3, got False.",
        ),
    ],
)
def test_unknown_columns_are_refused(frozen, names, message):
    with pytest.raises(InvalidInputError, match=exactly(message)):
        WassersteinBall(0.3, frozen=frozen).frozen_columns(3, names)


# Units and columns


@pytest.mark.parametrize(
    ("scale", "expected"),
    [(True, [2.0, 1.0, 0.5]), (False, [1.0, 1.0, 1.0]), ((4.0, 5.0, 6.0), [4.0, 5.0, 6.0])],
)
def test_a_column_s_unit_is_its_spread_or_one_or_as_given(scale, expected):
    ball = WassersteinBall(0.3, scale=scale)
    assert ball.column_scale(np.array([2.0, 0.0, 0.5])).tolist() == expected


def test_columns_without_spread_move_only_in_given_units():
    spread = np.array([2.0, 0.0, 0.5])
    assert WassersteinBall(0.3).movable(spread, None).tolist() == [True, False, True]
    for scale in (False, (1.0, 1.0, 1.0)):
        assert WassersteinBall(0.3, scale=scale).movable(spread, None).tolist() == [True] * 3
    frozen = WassersteinBall(0.3, frozen=("c", 0), scale=False)
    assert frozen.movable(spread, ("a", "b", "c")).tolist() == [False, True, False]


@pytest.mark.parametrize("scale", [[1, 2], (1.0, 2.0), np.array([1.0, 2.0])])
def test_given_units_become_plain(scale):
    assert WassersteinBall(0.3, scale=scale).scale == (1.0, 2.0)
    assert hash(WassersteinBall(0.3, scale=scale)) == hash(WassersteinBall(0.3, scale=(1.0, 2.0)))


@pytest.mark.parametrize("scale", [[1, 0], [1, -1], [[1.0, 2.0]]])
def test_units_must_be_positive_and_one_per_column(scale):
    message = f"scale must be True, False or one number > 0 per column, got {scale!r}."
    with pytest.raises(InvalidInputError, match=exactly(message)):
        WassersteinBall(0.3, scale=scale)


def test_as_many_units_as_columns():
    message = "scale must have one number per column (3), got 2."
    with pytest.raises(InvalidInputError, match=exactly(message)):
        WassersteinBall(0.3, scale=(1.0, 2.0)).column_scale(np.ones(3))


def test_a_fitted_ball_remembers_units_and_columns():
    ball = WassersteinBall(0.3, order=1, frozen=("b",), outcome_cost=2.0)
    fitted = ball.fitted(np.array([2.0, 1.0, 0.5]), np.array([True, False, True]))
    assert fitted == WassersteinBall(0.3, order=1, frozen=(1,), outcome_cost=2.0, scale=(2.0, 1.0, 0.5))
    assert fitted.movable(np.ones(3), None).tolist() == [True, False, True]
    assert fitted.column_scale(np.array([9.0, 9.0, 9.0])).tolist() == [2.0, 1.0, 0.5]


def test_another_radius_changes_nothing_else():
    ball = WassersteinBall("auto", order=1, frozen=(0,))
    assert ball.at(0.7) == WassersteinBall(0.7, order=1, frozen=(0,))
    assert ball.at("profile").radius == "profile"
    assert ball.at(0.7).size == 0.7
    with pytest.raises(InvalidInputError, match="radius must be a number in a Problem, got 'auto'"):
        _ = ball.size
    with pytest.raises(InvalidInputError, match="radius must be >= 0"):
        ball.at(-1.0)


# Values: immutable, equal, printable


def test_immutable():
    frozen = ["a"]
    ball = WassersteinBall(0.3, frozen=frozen)
    for name in ("radius", "order", "outcome_cost", "support", "frozen", "scale"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(ball, name, 1)
    frozen.append("b")
    assert ball.frozen == ("a",)


def test_equal_options_make_equal_balls():
    assert WassersteinBall(1, frozen=[0]) == WassersteinBall(1.0, frozen=np.array([0]))
    balls = {
        WassersteinBall(1),
        WassersteinBall(1.0),
        WassersteinBall(1, 1),
        WassersteinBall(1, scale=False),
    }
    assert len(balls) == 3


def test_repr_names_every_option():
    assert repr(WassersteinBall(0.3, support=Box(0, 1), frozen=["a", np.int64(2)], outcome_cost=2)) == (
        "WassersteinBall(radius=0.3, order=2, outcome_cost=2.0, "
        "support=Box(lower=0.0, upper=1.0, outcome=(-inf, inf)), frozen=('a', 2), scale=True, "
        "adversary='auto')"
    )


@repeatable
@given(
    st.floats(0, 1e9) | st.just("auto"),
    st.sampled_from([1, 2, np.int64(1)]),
    st.floats(1e-9, 1e9) | st.just(math.inf),
    st.sampled_from([None, Box(0, 1), Box((-math.inf, 0), (1.5, math.inf), outcome=(0, math.inf))]),
    st.lists(st.sampled_from(["a", "b'c", 0, -1, np.int64(3)]), max_size=3),
    st.booleans() | st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=3),
)
def test_repr_reads_back(radius, order, kappa, support, frozen, scale):
    ball = WassersteinBall(radius, order, kappa, support, frozen, scale)
    namespace = {"WassersteinBall": WassersteinBall, "Box": Box, "inf": math.inf}
    assert eval(repr(ball), namespace) == ball
