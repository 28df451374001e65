"""Methods on a stream: none of them sees an outcome before it decides."""

import importlib.util

import numpy as np
import pytest

from reproduction.stream_laws import draw_stream
from reproduction.stream_methods import Online, Refit, RiverQuantile, WindowSAA
from reproduction.stream_study import restaurant_methods, stream_methods
from surefoot import RobustPolicy, WassersteinBall
from surefoot.baselines import SAA
from surefoot.costs import Newsvendor
from surefoot.online import OnlinePolicy, Restart

COST = Newsvendor(1.0, 0.2)
METHODS = stream_methods(day=40)


@pytest.mark.parametrize("name", METHODS)
def test_a_decision_depends_on_the_rows_before_it_and_on_its_context_alone(name):
    method = METHODS[name]
    if method.why_not() is not None:
        pytest.skip(method.why_not())
    stream = draw_stream("abrupt", 240, 3, "mixed", COST, 0)
    whole = method.decisions(stream.X, stream.y)
    assert whole.shape == (240,)
    rng = np.random.default_rng(0)
    for cut in (0, 1, 17, 39, 40, 41, 150):
        X, y = stream.X.copy(), stream.y.copy()
        X[cut + 1 :] = rng.normal(size=X[cut + 1 :].shape)
        y[cut:] = 100.0 * rng.normal(size=len(y) - cut)
        assert (method.decisions(X, y)[: cut + 1] == whole[: cut + 1]).all()


def test_online_is_the_policy_asked_row_by_row():
    stream = draw_stream("abrupt", 150, 3, "mixed", COST, 0)
    method = Online(COST, WassersteinBall(0.1), decay=True, drift=Restart())
    policy = method.policy()
    expected = []
    for row, outcome in zip(stream.X, stream.y, strict=True):
        expected.append(policy.decide(row[None, :])[0])
        policy.partial_fit(row[None, :], [outcome])
    assert method.decisions(stream.X, stream.y) == pytest.approx(expected, rel=1e-12)
    assert isinstance(policy, OnlinePolicy)


def test_saa_on_a_window_is_saa_on_those_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 8, size=60).astype(float)  # with ties
    made = WindowSAA(COST, 12).decisions(np.zeros((60, 1)), y)
    for t in range(2, 60):
        newest = y[max(0, t - 12) : t]
        expected = SAA(1.0, 0.2).fit(np.zeros((len(newest), 1)), newest).predict(np.zeros((1, 1)))
        assert made[t] == expected[0]


def test_refitting_uses_all_rows_of_the_days_before():
    stream = draw_stream("stationary", 100, 3, "mixed", COST, 0)
    ball = WassersteinBall(0.1)
    made = Refit(COST, ball, day=30, first=40).decisions(stream.X, stream.y)
    model = RobustPolicy(COST, ball=ball).fit(stream.X[:70], stream.y[:70])
    assert (made[70:] == model.predict(stream.X[70:])).all()
    model = RobustPolicy(COST, ball=ball).fit(stream.X[:40], stream.y[:40])
    assert (made[40:70] == model.predict(stream.X[40:70])).all()


def test_without_river_there_is_a_reason(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert RiverQuantile(COST, 0.01).why_not() == (
        'river is not installed: pip install "surefoot[online]"'
    )


def test_every_method_describes_its_settings():
    for methods in (METHODS, restaurant_methods(30)):
        for method in methods.values():
            assert len(method.described()) > 5
    assert "every 40 rows" in METHODS["refit"].described()
