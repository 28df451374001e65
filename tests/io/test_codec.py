"""Values as JSON and arrays: what comes back, what is refused, and how to take part."""

import dataclasses
import json
import math
import re
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

from surefoot import DASGD, Box, Budget, ConvexProgram, Exact, PrimalDual, Simplex, WassersteinBall
from surefoot.costs import MeanCVaR, Newsvendor, Pricing, Quadratic
from surefoot.exceptions import InvalidInputError, InvalidTypeError, ModelFileError
from surefoot.forecasts import Forecaster
from surefoot.io import codec, is_registered, pack, register, unpack
from surefoot.policies import MLP, Linear, MaxAffine, Polynomial, RandomFourier, Select
from surefoot.sets import box
from surefoot.solvers import SGD, Adam


def through_json(value):
    """What a file does to a value."""
    arrays = {}
    text = json.dumps(pack("it", value, arrays), allow_nan=False)
    return unpack(json.loads(text), arrays)


@pytest.fixture
def registry(monkeypatch):
    """Forget after the test what was registered in it."""
    monkeypatch.setattr(codec, "_CLASSES", dict(codec._CLASSES))


# ---------------------------------------------------------------- what comes back


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 0.1, -1e-310, 2**70, "text", "", math.inf, -math.inf,
        (), (1, 2.5, "a"), ((1,), (2,)), [], [1, [2, (3,)]],
        {}, {"a": 1, "b": {"c": (1,)}}, {1: "a", "1": "b"}, {(1, 2): [3]}, {None: 0, True: 1},
        {"__array__": "no mark"}, {"__class__": "Box", "fields": {}}, {"__pairs__": [[1, 2]]},
        Box(-1, (1.0, math.inf), outcome=(0, 5)),
        WassersteinBall("auto", order=1, outcome_cost=2.0, frozen=("a", 3), scale=False),
        WassersteinBall(0.1, support=Box(0, 1), scale=(1.0, 2.0)),
        Newsvendor((1.0, 2.0), 0.2, smoothing=0.1), Quadratic(), Pricing(sensitivity=None),
        MeanCVaR(level=0.8),
        Linear(intercept=False), Linear(features=Polynomial(3), decisions=Budget(4.0)),
        Linear(features=Select((2, 0)), decisions=Simplex()), MaxAffine(pieces=3),
        MLP((8, 4), features=RandomFourier(6, bandwidth=1.0, scale=(1.0, 2.0))),
        DASGD(gap_tol=0.1, minibatch=4, optimizer=Adam(0.05)), DASGD(optimizer=SGD(0.1, decay=True)),
        DASGD.literal(alpha=0.1, beta=0.1, eta=0.1, K=3, epsilon=0.0, steps=5),
        PrimalDual(gap_tol=0.02), Exact(max_steps=7), ConvexProgram(), Forecaster(trees=False),
    ],
    ids=str,
)  # fmt: skip
def test_values_come_back_equal_through_json(value):
    again = through_json(value)
    assert again == value
    assert type(again) is type(value)


def test_numbers_of_numpy_come_back_as_plain_numbers():
    for value, expected in (
        (np.float64(0.1), 0.1),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (OrderedDict(a=1), {"a": 1}),
    ):
        again = through_json(value)
        assert again == expected
        assert type(again) is type(expected)
    assert math.isnan(through_json(np.nan))
    assert math.isnan(through_json([math.nan])[0])


@pytest.mark.parametrize(
    "array",
    [
        np.array([[0.1, -np.inf], [np.nan, 5e-324]]), np.array(3.5), np.zeros((0, 4)),
        np.array([True, False]), np.arange(3), np.array(["a", "ü"]), np.float32([0.1]),
        np.zeros(2, [("mean", "f8"), ("count", "i8")]), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ],
    ids=lambda array: str(array.dtype),
)  # fmt: skip
def test_arrays_stand_beside_the_json(array):
    arrays = {"taken": np.ones(1)}
    packed = pack("it", {"here": [array]}, arrays)
    json.dumps(packed, allow_nan=False)
    assert len(arrays) == 2
    again = unpack(packed, arrays)["here"][0]
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tobytes() == array.tobytes()


# ---------------------------------------------------------------- what is not written


@pytest.mark.parametrize(
    "value",
    [print, lambda x: x, object(), 1j, b"x", {1}, Linear, re.compile("a")],
    ids=["print", "lambda", "object", "complex", "bytes", "set", "class", "pattern"],
)
def test_what_cannot_be_saved_is_refused_by_name(value):
    message = "callback must be made of numbers, text, arrays and registered classes to be saved, got "
    with pytest.raises(ModelFileError, match=f"^{re.escape(message)}"):
        pack("callback", value, {})


def test_arrays_of_objects_are_refused():
    for array in (np.array([object()]), np.zeros(1, [("a", "O")])):
        with pytest.raises(ModelFileError, match="^it must be an array of numbers or text to be saved"):
            pack("it", array, {})


def test_a_part_inside_a_part_is_refused_by_its_place():
    for name, value in (
        ("policy.features", Linear(features=lambda X: X)),
        ("policy.offset", Linear(offset=lambda X: X)),
        ("policy.callback", DASGD(callback=print)),
        ("policy.a.b", {"a": {"b": object()}}),
    ):
        with pytest.raises(ModelFileError, match=f"^{name} must be made of numbers"):
            pack("policy", value, {})


def test_a_class_of_the_same_name_is_not_ours():
    class Box(box.Box):
        pass

    assert not is_registered(Box(0, 1))
    with pytest.raises(ModelFileError, match="support must be made of numbers"):
        pack("support", Box(0, 1), {})


# ---------------------------------------------------------------- what is not read


@pytest.mark.parametrize(
    "value",
    [
        {"__class__": "Popen", "fields": {"args": ["true"]}},
        {"__class__": "os.system", "fields": {}},
        {"__class__": "builtins.eval", "fields": {"source": "1"}},
        {"__class__": ["Box"], "fields": {}},
        {"__class__": None, "fields": {}},
        {"__class__": "Box"},
        {"__class__": "Box", "fields": {}, "more": 1},
        {"__class__": "Box", "fields": {}},
        {"__class__": "Box", "fields": [0, 1]},
        {"__class__": "Box", "fields": {"lower": 1, "upper": 0}},
        {"__class__": "Box", "fields": {"lower": "a", "upper": 1}},
        {"__class__": "Box", "fields": {"lower": 0, "upper": 1, "turbo": True}},
        {"__class__": "Linear", "fields": {"features": {"__class__": "Box", "fields": {}}}},
        {"__class__": "Linear", "fields": {"decisions": 3}},
        {"__class__": "WassersteinBall", "fields": {"radius": -1.0}},
        {"__class__": "WassersteinBall", "fields": {"radius": {"__float__": "nan"}}},
        {"__float__": "1.0"},
        {"__float__": "__import__('os')"},
        {"__float__": ["inf"]},
        {"__float__": "inf", "more": 1},
        {"__array__": "nowhere"},
        {"__array__": 3},
        {"__array__": ["here"]},
        {"__array__": "here", "more": 1},
        {"__tuple__": 3},
        {"__tuple__": "abc"},
        {"__tuple__": {"a": 1}},
        {"__pairs__": 3},
        {"__pairs__": [[1]]},
        {"__pairs__": [[1, 2, 3]]},
        {"__pairs__": [[[1], 2]]},
        {"__pairs__": [[{"__array__": "here"}, 2]]},
    ],
    ids=str,
)  # fmt: skip
def test_what_would_not_have_been_written_is_refused(value):
    arrays = {"here": np.ones(3)}
    for place in (value, [value], {"a": {"__tuple__": [value]}}):
        with pytest.raises(ModelFileError, match="^The file "):
            unpack(place, arrays)
    part = {"__class__": "Linear", "fields": {"intercept": True, "features": value}}
    with pytest.raises(ModelFileError, match="^The file "):
        unpack(part, arrays)


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}, lambda v: {"__tuple__": [v]},
                                  lambda v: {"__pairs__": [[1, v]]}])  # fmt: skip
def test_values_nested_beyond_measure_are_refused(wrap):
    value = 1
    for _ in range(10):
        value = wrap(value)
    unpack(value, {})
    for _ in range(80):
        value = wrap(value)
    with pytest.raises(ModelFileError, match="^The file must hold values nested at most 40 deep"):
        unpack(value, {})


# ---------------------------------------------------------------- classes of one's own


class Pair(NamedTuple):
    left: float
    right: float


@dataclasses.dataclass(frozen=True)
class Spoilage:
    share: float
    ball: WassersteinBall | None = None
    half: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self):
        if not 0.0 <= self.share <= 1.0:
            raise InvalidInputError(f"share must lie in [0, 1], got {self.share}.")
        object.__setattr__(self, "half", self.share / 2)


def test_a_registered_class_comes_back(registry):
    assert not is_registered(Spoilage(0.2))
    assert register(Spoilage) is Spoilage  # a decorator
    assert register(Pair) is Pair
    assert is_registered(Spoilage(0.2))
    again = through_json([Spoilage(0.2, WassersteinBall(0.3)), Pair(1.0, math.inf)])
    assert again == [Spoilage(0.2, WassersteinBall(0.3)), Pair(1.0, math.inf)]
    assert again[0].half == 0.1  # made by its own constructor
    assert type(again[1]) is Pair
    arrays = {}
    packed = pack("it", Spoilage(0.2), arrays)
    packed["fields"]["share"] = 2.0
    with pytest.raises(ModelFileError, match=r"not allowed: share must lie in \[0, 1\], got 2\.0"):
        unpack(packed, arrays)


def test_a_class_that_is_not_registered_says_what_to_do():
    with pytest.raises(ModelFileError, match=r"^it must be .*: see surefoot\.register\.$"):
        pack("it", Spoilage(0.2), {})
    message = "got 'Spoilage': import the module that registers it, or upgrade Surefoot"
    with pytest.raises(ModelFileError, match=message):
        unpack({"__class__": "Spoilage", "fields": {"share": 0.2}}, {})


def test_registering_again_takes_the_newer_class(registry):
    """A module that is loaded again, as in a notebook, registers its classes again."""
    first = dataclasses.make_dataclass("Often", ["a"])
    second = dataclasses.make_dataclass("Often", ["a", "b"])
    for kind in (first, second):
        kind.__module__ = __name__
        register(kind)
    assert is_registered(second(1, 2))
    assert not is_registered(first(1))


def test_a_name_that_another_module_has_is_refused(registry):
    with pytest.raises(InvalidInputError, match="'Box' again: surefoot.sets.box has one"):
        register(dataclasses.make_dataclass("Box", ["lower", "upper"]))
    assert unpack(pack("it", Box(0, 1), {}), {}) == Box(0, 1)


@pytest.mark.parametrize("kind", [int, object, tuple, "Box", Box(0, 1), print, None], ids=str)
def test_only_dataclasses_and_named_tuples_are_registered(registry, kind):
    before = dict(codec._CLASSES)
    with pytest.raises(InvalidTypeError, match="register must be given a dataclass or a named tuple"):
        register(kind)
    assert before == codec._CLASSES


def test_an_array_that_parts_share_is_written_once():
    centres, arrays = np.arange(3.0), {}
    packed = pack("it", {"here": centres, "there": centres, "like it": centres.copy()}, arrays)
    assert len(arrays) == 2
    again = unpack(packed, arrays)
    np.testing.assert_array_equal(again["there"], centres)
    np.testing.assert_array_equal(again["like it"], centres)
