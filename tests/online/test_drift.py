import importlib.util
import sys

import numpy as np
import pytest

from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError, InvalidTypeError, MissingExtraError
from surefoot.online import ADWIN, OnlinePolicy, PageHinkley, Restart, River
from surefoot.random import rng_for

COST = Newsvendor(backorder=1.0, holding=0.2)
needs_river = pytest.mark.skipif(
    importlib.util.find_spec("river") is None, reason="river is not installed"
)


def psi(residuals):
    return np.maximum(0.2 * residuals, -residuals)


def abrupt(rows=2_000, seed=0):
    """A stream whose coefficients change sign in the middle."""
    rng = rng_for(seed, "online", "abrupt")
    X = rng.normal(size=(rows, 5))
    sign = np.where(np.arange(rows) < rows // 2, 1.0, -1.0)
    return X, 5.0 + sign * (X @ np.linspace(1.0, 0.5, 5)) + rng.normal(size=rows)


@pytest.mark.parametrize("drift", [Restart(), pytest.param("adwin", marks=needs_river)])
def test_a_restart_recovers_sooner(drift):
    X, y = abrupt()
    drift = Restart(ADWIN()) if drift == "adwin" else drift
    plain, watched = OnlinePolicy(COST), OnlinePolicy(COST, drift=drift)
    costs = [psi(policy.decide_and_learn(X, y) - y) for policy in (plain, watched)]
    assert watched.n_restarts >= 1
    np.testing.assert_array_equal(costs[0][:900], costs[1][:900])  # no false alarm before
    late = slice(1_100, 1_500)
    assert costs[1][late].mean() < 0.8 * costs[0][late].mean()


def test_blocks_and_single_samples_find_the_same_changes():
    X, y = abrupt(1_500)
    drift = Restart(PageHinkley(threshold=4.0, least=10))
    block, single = OnlinePolicy(COST, drift=drift), OnlinePolicy(COST, drift=drift)
    decisions = block.decide_and_learn(X, y)
    for k in range(len(X)):
        single.partial_fit(X[k : k + 1], y[k : k + 1])
    assert block.n_restarts == single.n_restarts >= 2
    first, second = block.state_dict(), single.state_dict()
    for name, array in first["arrays"].items():
        np.testing.assert_array_equal(array, second["arrays"][name])
    assert first["watch"] == second["watch"]
    assert np.isfinite(decisions).all()


def test_a_tracked_decision_is_judged_by_what_it_cost_then():
    policy = OnlinePolicy(COST, drift=Restart(PageHinkley(least=1, threshold=1e9)))
    for k in range(20):
        policy.learn_one({"heat": float(k)}, 5.0)
    z, number = policy.decide_one({"heat": 3.0}, tracked=True)
    for k in range(50):
        policy.learn_one({"heat": float(k)}, 50.0)
    before = policy.state_dict()["watch"]
    policy.learn_one(id=number, y=5.0)
    after = policy.state_dict()["watch"]
    cost = after["count"] * after["mean"] - before["count"] * before["mean"]
    assert cost == pytest.approx(float(psi(np.array(z - 5.0))), abs=1e-9)


def test_page_hinkley_ignores_noise_and_single_bad_days():
    rng = rng_for(0, "online", "noise")
    watch = PageHinkley().start()
    costs = rng.exponential(size=5_000)
    costs[::500] = 100.0
    assert sum(map(watch.update, costs.tolist())) == 0
    assert sum(map(watch.update, (3.0 * rng.exponential(size=100)).tolist())) > 0


def test_falling_costs_are_no_change():
    watch = PageHinkley().start()
    assert sum(map(watch.update, np.linspace(5.0, 0.1, 1_000).tolist())) == 0


def test_bad_detectors_are_refused():
    for options in ({"threshold": 0}, {"delta": -1}, {"least": 0}, {"largest": 0}):
        with pytest.raises(InvalidInputError, match=next(iter(options))):
            PageHinkley(**options)
    with pytest.raises(InvalidTypeError, match="detector must be a detector such as PageHinkley"):
        Restart("adwin")
    with pytest.raises(InvalidTypeError, match="detector must be one of river's"):
        River(3)


def test_without_river_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "river.drift", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'surefoot\[online\]'"):
        Restart(ADWIN())


@needs_river
def test_page_hinkley_is_rivers():
    drift = importlib.import_module("river.drift")
    rng = rng_for(0, "online", "river")
    costs = np.concatenate([rng.exponential(size=400), 2.0 * rng.exponential(size=400)]).tolist()
    ours = PageHinkley(delta=0.01, threshold=40.0, largest=np.inf, relative=False).start()
    theirs = drift.PageHinkley(min_instances=30, delta=0.01, threshold=40.0, alpha=1.0, mode="up")
    found = []
    for cost in costs:
        rise = ours.update(cost)
        theirs.update(cost)
        assert rise == theirs.drift_detected
        found.append(rise)
        if rise:
            break
    assert any(found)


@needs_river
def test_rivers_detectors_are_restored_by_repeating_costs(monkeypatch):
    monkeypatch.setattr("surefoot.online.detectors.KEPT_COSTS", 300)
    drift = importlib.import_module("river.drift")
    X, y = abrupt(1_200)
    for detector in (ADWIN(delta=0.01), River(drift.PageHinkley(threshold=20.0))):
        whole, cut = (OnlinePolicy(COST, drift=Restart(detector)) for _ in range(2))
        decisions = whole.decide_and_learn(X, y)
        parts = []
        for first in range(0, 1_200, 170):
            fresh = OnlinePolicy(COST, drift=Restart(detector))
            fresh.load_state_dict(cut.state_dict())
            cut = fresh
            parts.append(cut.decide_and_learn(X[first : first + 170], y[first : first + 170]))
        np.testing.assert_array_equal(decisions, np.concatenate(parts))
        assert len(cut.state_dict()["watch"]["costs"]) <= 300
        other = OnlinePolicy(COST, drift=Restart(ADWIN(delta=0.5)))
        with pytest.raises(InvalidInputError, match="same drift"):
            other.load_state_dict(cut.state_dict())


def test_a_restart_keeps_parameters_and_lengthens_steps():
    X, y = abrupt(900)
    policy = OnlinePolicy(COST, drift=Restart()).partial_fit(X[:300], y[:300])
    stream = policy._following.stream
    before, decisions = stream.arrays(), policy.decide(X)
    stream.restart()
    after = stream.arrays()
    np.testing.assert_array_equal(policy.decide(X), decisions)
    np.testing.assert_array_equal(before["theta"], after["theta"])
    np.testing.assert_array_equal(before["columns"], after["columns"])
    assert (before["clock"], after["clock"]) == (300.0, 30.0)
    squares = [arrays["numbers"]["squares"][0] for arrays in (before, after)]
    assert squares[1] == pytest.approx(0.1 * squares[0])


@pytest.mark.parametrize("delta", [1.0, 2.0])
def test_a_confidence_of_adwin_beyond_one_is_refused(delta):
    with pytest.raises(InvalidInputError, match=f"^delta must be < 1, got {delta}."):
        ADWIN(delta=delta)
