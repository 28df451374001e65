"""Saved, loaded and continued equals never interrupted, to the last bit."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Box, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.online import (
    ConstantStep,
    DecayingRadius,
    DecayingStep,
    Memory,
    OnlinePolicy,
    PageHinkley,
    Restart,
    Window,
)
from surefoot.policies import Linear, Polynomial, RandomFourier
from surefoot.random import rng_for

COST = Newsvendor(backorder=1.0, holding=0.2)
ROWS = 150

CONFIGURATIONS = {
    "default": {},
    "fixed radius": {"ball": WassersteinBall(0.2)},
    "falling radius": {"ball": WassersteinBall(0.2), "radius": DecayingRadius(10)},
    "order 1": {"ball": WassersteinBall(0.2, order=1)},
    "box": {"ball": WassersteinBall(0.2, support=Box(-90, 90))},
    "no intercept": {"policy": Linear(intercept=False)},
    "limits": {"policy": Linear(decisions=Box(0, 9))},
    "polynomial": {"policy": Linear(features=Polynomial(2))},
    "fourier": {"policy": Linear(features=RandomFourier(5))},
    "constant step": {"step": ConstantStep(0.1)},
    "falling step": {"step": DecayingStep(0.5)},
    "window": {"drift": Window(20)},
    "restart": {"drift": Restart(PageHinkley(threshold=5.0, least=10))},
}


def events(name, *, texts):
    """A stream with gaps, new keys, late outcomes: (context, outcome, whether it is tracked)."""
    rng = rng_for(0, "online", "events", name)
    found = []
    for k in range(ROWS):
        x = {"heat": float(rng.normal(20, 5)), "rain": float(rng.exponential())}
        y = 3.0 + 0.3 * x["heat"] + (5.0 if k > 100 else 0.0) + float(rng.normal())
        if texts:
            x["day"] = str(rng.choice(["mon", "tue", "wed"]))
            if k > 60:
                x["wind"] = float(rng.normal())
            if rng.random() < 0.2:
                del x["rain"]
        found.append((x, y, bool(rng.random() < 0.3)))
    return found


def run(policy, stream, waiting, decisions):
    """Decide on each context; learn now, or three contexts later where it is tracked."""
    for x, y, tracked in stream:
        if tracked:
            z, number = policy.decide_one(x, tracked=True)
            waiting.append((number, y))
        else:
            z = policy.decide_one(x)
            policy.learn_one(x, y)
        if len(waiting) > 3:
            number, late = waiting.pop(int(len(waiting) / 2))  # out of order
            policy.learn_one(id=number, y=late)
        decisions.append(z)


def through_json(state):
    """What a file does to a state: text and arrays."""
    arrays = {
        name: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape)
        for name, a in state["arrays"].items()
    }
    return json.loads(
        json.dumps({k: v for k, v in state.items() if k != "arrays"}, allow_nan=False)
    ) | {"arrays": arrays}


def decisions_of(options, stream, cuts=()):
    """Run a stream, saved and loaded into a fresh policy at each cut."""
    policy, waiting, decisions = OnlinePolicy(COST, **options), [], []
    for first, last in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        run(policy, stream[first:last], waiting, decisions)
        fresh = OnlinePolicy(COST, **options)
        fresh.load_state_dict(through_json(policy.state_dict()))
        policy = fresh
    return decisions, policy.state_dict()


def assert_same(first, second):
    assert first[0] == second[0]
    for name, array in first[1]["arrays"].items():
        np.testing.assert_array_equal(array, second[1]["arrays"][name], err_msg=name)
    assert {k: v for k, v in first[1].items() if k != "arrays"} == {
        k: v for k, v in second[1].items() if k != "arrays"
    }


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_interrupted_at_100_random_points(name):
    options = CONFIGURATIONS[name]
    fixed = "features" in repr(options) and "features=None" not in repr(options)
    stream = events(name, texts=not fixed)
    cuts = sorted(
        rng_for(0, "online", "cuts", name).choice(np.arange(1, ROWS), 100, replace=False).tolist()
    )
    assert_same(decisions_of(options, stream), decisions_of(options, stream, cuts))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(CONFIGURATIONS)), st.lists(st.integers(1, ROWS - 1), max_size=5))
def test_interrupted_anywhere(name, cuts):
    options = CONFIGURATIONS[name]
    stream = events(name, texts=False)
    assert_same(decisions_of(options, stream), decisions_of(options, stream, sorted(set(cuts))))


def test_a_state_is_a_copy():
    X, y = rng_for(0, "online", "copy").normal(size=(40, 2)), np.arange(40.0)
    policy = OnlinePolicy(COST).partial_fit(X, y)
    state = policy.state_dict()
    theta = state["arrays"]["theta"].copy()
    other = OnlinePolicy(COST)
    other.load_state_dict(state)
    other.partial_fit(X, y)
    policy.partial_fit(X, y)
    np.testing.assert_array_equal(state["arrays"]["theta"], theta)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"ball": WassersteinBall(0.3)},
            r"same ball \(WassersteinBall\(radius=0.3.*got one with .*radius=0.2",
        ),
        ({"ball": WassersteinBall(0.2), "radius": DecayingRadius()}, "same radius"),
        ({"ball": WassersteinBall(0.2), "step": ConstantStep(0.1)}, "same step"),
        (
            {"ball": WassersteinBall(0.2), "drift": Window(19)},
            r"same drift \(Window\(rows=19\)\), got one with None",
        ),
        ({"ball": WassersteinBall(0.2), "policy": Linear(intercept=False)}, "same policy"),
        ({"ball": WassersteinBall(0.2), "memory": Memory(pending=5)}, "same memory"),
        ({"ball": WassersteinBall(0.2), "random_state": 3}, r"same random_state \(3\), got one with 0"),
    ],
)
def test_a_state_of_another_configuration_is_refused_by_name(options, message):
    policy = OnlinePolicy(COST, ball=WassersteinBall(0.2))
    policy.learn_one({"heat": 1.0}, 2.0)
    with pytest.raises(InvalidInputError, match=message):
        OnlinePolicy(COST, **options).load_state_dict(policy.state_dict())
    with pytest.raises(InvalidInputError, match="same cost"):
        OnlinePolicy(Newsvendor(2.0, 0.2), ball=WassersteinBall(0.2)).load_state_dict(
            policy.state_dict()
        )


def test_what_is_no_state_is_refused():
    policy = OnlinePolicy(COST)
    for other in ({}, {"format": "other"}, None, [1]):
        with pytest.raises(InvalidInputError, match="state must come from"):
            policy.load_state_dict(other)
    with pytest.raises(InvalidInputError, match="state must have version 2, got 99"):
        policy.load_state_dict(policy.state_dict() | {"version": 99})


# --- late outcomes --------------------------------------------------------------------------------


def test_late_outcomes_are_learned_as_if_they_came_now():
    stream = events("late", texts=True)
    late, prompt = OnlinePolicy(COST), OnlinePolicy(COST)
    numbers = [late.decide_one(x, tracked=True)[1] for x, _, _ in stream[:30]]
    order = rng_for(0, "online", "late").permutation(30)
    for k in order:
        late.learn_one(id=numbers[k], y=stream[k][1])
        prompt.learn_one(stream[k][0], stream[k][1])
    first, second = late.state_dict(), prompt.state_dict()
    for name, array in first["arrays"].items():
        np.testing.assert_array_equal(array, second["arrays"][name])
    assert first["pending"] == []


def test_waiting_contexts_are_plain_values():
    policy = OnlinePolicy(COST)
    x = {
        "heat": np.float32(1.5),
        "open": np.bool_(True),
        "day": np.int64(3),
        "city": "Rome",
        "rain": None,
    }
    policy.decide_one(x, tracked=True)
    ((_, kept, _),) = json.loads(json.dumps(policy.state_dict()["pending"]))
    assert kept == {"heat": 1.5, "open": 1.0, "day": 3.0, "city": "Rome", "rain": None}


def test_ids_that_do_not_wait_are_refused():
    policy = OnlinePolicy(COST, memory=Memory(pending=2))
    numbers = [policy.decide_one({"heat": float(k)}, tracked=True)[1] for k in range(3)]
    with pytest.raises(
        InvalidInputError, match=r"id must wait for its outcome, got 0.*newest 2 decisions are kept"
    ):
        policy.learn_one(id=numbers[0], y=1.0)
    policy.learn_one(id=numbers[2], y=1.0)
    with pytest.raises(InvalidInputError, match="got 2, which was learned already or dropped"):
        policy.learn_one(id=numbers[2], y=1.0)
    for unknown in (7, -1):
        with pytest.raises(InvalidInputError, match="id must be one that decide_one handed back"):
            policy.learn_one(id=unknown, y=1.0)
    with pytest.raises(InvalidTypeError, match="id must be one that decide_one handed back, got 'mon'"):
        policy.learn_one(id="mon", y=1.0)
    for both in ({"x": {"heat": 1.0}, "id": 1}, {}):
        with pytest.raises(InvalidTypeError, match="learn_one must be given x or the id"):
            policy.learn_one(**both, y=1.0)
    assert len(policy.state_dict()["pending"]) == 1


def test_an_outcome_that_is_refused_still_waits():
    policy = OnlinePolicy(COST)
    _, number = policy.decide_one({"heat": 1.0}, tracked=True)
    with pytest.raises(InvalidInputError, match="y must be finite"):
        policy.learn_one(id=number, y=float("nan"))
    policy.learn_one(id=number, y=1.0)
    assert policy.n_rows == 1
