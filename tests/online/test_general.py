"""Policies and costs of the general engine on a stream."""

import sys

import numpy as np
import pytest

from surefoot import Box, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import MeanCVaR, Newsvendor, Quadratic
from surefoot.datasets import synthetic
from surefoot.engines.affine_stream import AffineStream
from surefoot.engines.autodiff_stream import AutodiffStream
from surefoot.exceptions import DataWarning, InvalidInputError, InvalidTypeError, MissingExtraError
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
from surefoot.policies import MLP, Linear, MaxAffine, RandomFourier
from surefoot.random import rng_for
from surefoot.sets import Budget, Simplex
from surefoot.solvers import DASGD

COST = Newsvendor(backorder=1.0, holding=0.2)
BENT = MaxAffine(pieces=2)  # one policy for most tests: it is compiled once


def bent(rows=1_500):
    """Demand with a kink in the context."""
    rng = rng_for(0, "online", "bent")
    X = rng.normal(size=(rows, 2))
    return X, 5.0 + 3.0 * np.abs(X[:, 0]) + 0.3 * rng.normal(size=rows)


def mean_cost(decisions, y):
    return np.maximum(0.2 * (decisions - y), y - decisions).mean()


def test_a_bent_policy_beats_an_affine_one():
    pytest.importorskip("jax")
    X, y = bent()
    late = slice(1_000, None)
    costs = [
        mean_cost(OnlinePolicy(COST, policy).decide_and_learn(X, y)[late], y[late])
        for policy in (Linear(), BENT)
    ]
    assert costs[1] < 0.7 * costs[0]


@pytest.mark.parametrize(
    "options",
    [
        {
            "cost": Quadratic(),
            "drift": Window(30),
            "ball": WassersteinBall(0.1),
            "radius": DecayingRadius(9),
        },
        {
            "policy": BENT,
            "step": DecayingStep(0.1),
            "drift": Restart(PageHinkley(threshold=3.0, least=10)),
        },
        {"policy": MLP((4,), features=RandomFourier(5)), "step": ConstantStep(0.05)},
    ],
    ids=("quadratic", "restart", "features"),
)
def test_interrupted_equals_never_interrupted(options):
    pytest.importorskip("jax")
    options = {"cost": COST} | options
    X, y = bent(120)
    y[60:] += 10.0
    whole, cut, parts = OnlinePolicy(**options), OnlinePolicy(**options), []
    starts = [0, 7, 30, 77, 78]
    expected = [
        whole.decide_and_learn(X[first:last], y[first:last])
        for first, last in zip(starts, [*starts[1:], 120], strict=True)
    ]
    for first, last in zip(starts, [*starts[1:], 120], strict=True):
        fresh = OnlinePolicy(**options)
        fresh.load_state_dict(cut.state_dict())
        cut = fresh
        parts.append(cut.decide_and_learn(X[first:last], y[first:last]))
    np.testing.assert_array_equal(np.concatenate(expected), np.concatenate(parts))
    np.testing.assert_array_equal(whole.decide(X), cut.decide(X))
    if isinstance(options.get("drift"), Restart):
        assert whole.n_restarts == cut.n_restarts >= 1


def test_single_samples_and_blocks_are_one_stream():
    pytest.importorskip("jax")
    X, y = bent(60)
    block, single = OnlinePolicy(COST, BENT), OnlinePolicy(COST, BENT)
    block.partial_fit(X, y)
    for row, outcome in zip(X.tolist(), y.tolist(), strict=True):
        single.learn_one({"x0": row[0], "x1": row[1]}, outcome)
    np.testing.assert_allclose(block.decide(X), single.decide(X), rtol=1e-9)
    assert single.decide_one({"x0": 1.0}) == pytest.approx(
        single.decide_one({"x0": 1.0, "x1": float(X[:, 1].mean())}), rel=1e-9
    )


def test_the_general_engine_agrees_with_the_compiled_one():
    """One question, two engines: limits beside a price for outcomes send the newsvendor to JAX."""
    pytest.importorskip("jax")
    X, y = bent(500)
    y = 4.0 + X @ [1.0, -0.5] + 0.5 * (y - y.mean())
    ball = WassersteinBall(0.1)
    compiled = OnlinePolicy(COST, ball=ball).partial_fit(X, y)
    general = OnlinePolicy(
        COST, Linear(decisions=Box(-1e6, 1e6)), ball=WassersteinBall(0.1, outcome_cost=1e9)
    )
    general.partial_fit(X, y)
    assert isinstance(general._following.stream, AutodiffStream)
    assert isinstance(compiled._following.stream, AffineStream)
    constant = mean_cost(np.full(len(y), np.quantile(y, 1 / 1.2)), y)
    costs = [mean_cost(policy.decide(X), y) for policy in (general, compiled)]
    assert abs(costs[0] - costs[1]) < 0.05 * constant
    assert max(costs) < 0.8 * constant


def test_costs_with_variables_of_their_own_and_shared_totals():
    pytest.importorskip("jax")
    rng = rng_for(0, "online", "portfolio")
    X, returns = rng.normal(size=(60, 2)), 0.05 + 0.02 * rng.normal(size=(60, 3))
    policy = OnlinePolicy(
        MeanCVaR(risk_aversion=1.0), Linear(decisions=Simplex()), ball=WassersteinBall(0.1),
        drift=Restart(PageHinkley(least=10)),
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match="after one learned outcome"):
        policy.decide_one({"x0": 1.0})
    shares = policy.decide_and_learn(X, returns)
    assert shares.shape == (60, 3)
    np.testing.assert_allclose(shares[20:].sum(axis=1), 1.0)
    assert policy.decide_one({"x0": 1.0, "x1": 0.0}).shape == (3,)


def test_a_short_window_is_not_thrown_about():
    # Steps went by the farthest that the policy had ever been: worse than a constant decision.
    pytest.importorskip("jax")
    rng = rng_for(0, "online", "short window")
    X = rng.normal(size=(1_500, 10))
    y = 20.0 + X @ rng.normal(size=10) + rng.normal(size=1_500)
    policy = OnlinePolicy(COST, Linear(decisions=Budget(1e9)), drift=Window(16))
    decided = policy.decide_and_learn(X, y)
    constant = np.full(len(y), np.quantile(y, 1.0 / 1.2))
    assert mean_cost(decided[500:], y[500:]) < 0.8 * mean_cost(constant[500:], y[500:])


def test_later_keys_are_ignored_with_a_warning():
    pytest.importorskip("jax")
    X, y = bent(40)
    policy = OnlinePolicy(COST, BENT, random_state=3).partial_fit(X, y)
    with pytest.warns(DataWarning, match="The key 'wind' is new and will be ignored"):
        policy.learn_one({"x0": 1.0, "x1": 1.0, "wind": 3.0}, 4.0)
    assert policy.columns == ("x0", "x1")
    assert policy.n_rows == 41


def test_rows_that_break_the_cost_are_not_learned():
    pytest.importorskip("jax")
    X, y = bent(40)
    policy = OnlinePolicy(Quadratic(), step=ConstantStep(1e308)).partial_fit(X[:10], y[:10])
    before = policy.state_dict()
    with pytest.raises(InvalidInputError, match="none of these rows was learned"):
        policy.partial_fit(X[10:], y[10:])
    after = policy.state_dict()
    assert after["rows"] == before["rows"] == 10
    np.testing.assert_array_equal(before["arrays"]["first_rows"], after["arrays"]["first_rows"])


def test_what_cannot_be_learned_is_refused_with_the_first_outcome():
    policy = OnlinePolicy(Quadratic(), ball=WassersteinBall(0.1, order=1))
    with pytest.raises(InvalidInputError, match="the worst case is unbounded"):
        policy.learn_one({"heat": 1.0}, 2.0)
    two = OnlinePolicy(Newsvendor(backorder=(1.0, 2.0), holding=(0.1, 0.2)))
    with pytest.raises(InvalidInputError, match="one per product"):
        two.learn_one({"heat": 1.0}, 2.0)


def test_without_jax_the_first_outcome_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r"surefoot\[jax\]"):
        OnlinePolicy(COST, BENT).learn_one({"heat": 1.0}, 2.0)


# --- from a fitted model --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        RobustNewsvendor(radius=0.1),
        RobustNewsvendor(radius=0.1, order=1, intercept=False, frozen=(0,)),
        RobustPolicy(COST, Linear(features=RandomFourier(10)), ball=WassersteinBall(0.1)),
        RobustPolicy(COST, ball=WassersteinBall(0.1, support=Box(-9, 9), scale=False)),
        RobustPolicy(COST, MaxAffine(pieces=2), ball=WassersteinBall(0.1), solver=DASGD(max_steps=200)),
    ],
    ids=("newsvendor", "order 1", "features", "box", "max-affine"),
)
@pytest.mark.filterwarnings("ignore::surefoot.exceptions.ConvergenceWarning")
def test_a_stream_goes_on_from_a_fitted_model(model):
    if "MaxAffine" in repr(model):
        pytest.importorskip("jax")
    data = synthetic(n=400, s=4, seed=0, test=500)
    model.fit(data.X[:100], data.y[:100])
    policy = OnlinePolicy.from_model(model, radius=DecayingRadius(100))
    np.testing.assert_allclose(
        policy.decide(data.X_test), model.predict(data.X_test), rtol=1e-11, atol=1e-11
    )
    assert policy.settings.ball.radius == model.radius_
    policy.partial_fit(data.X[100:110], data.y[100:110])
    moved = np.abs(policy.decide(data.X_test) - model.predict(data.X_test)).max()
    assert 0.0 < moved < 0.5 * data.y.std()  # refined, not thrown about
    state = policy.state_dict()
    policy.partial_fit(data.X[110:], data.y[110:])
    assert mean_cost(policy.decide(data.X_test), data.y_test) < 1.05 * model.cost(
        data.X_test, data.y_test
    )
    again = OnlinePolicy.from_model(model, radius=DecayingRadius(100))
    again.load_state_dict(state)
    again.partial_fit(data.X[110:], data.y[110:])
    np.testing.assert_array_equal(again.decide(data.X_test), policy.decide(data.X_test))


def test_names_of_a_fitted_model_are_keys():
    pd = pytest.importorskip("pandas")
    data = synthetic(n=60, s=2, seed=0, test=5)
    model = RobustNewsvendor(radius=0.1).fit(pd.DataFrame(data.X, columns=["heat", "rain"]), data.y)
    policy = OnlinePolicy.from_model(model)
    assert policy.columns == ("heat", "rain")
    x = {"heat": 0.3, "rain": -1.0}
    expected = model.predict(pd.DataFrame([x]))[0]
    assert policy.decide_one(x) == pytest.approx(expected, rel=1e-12)
    policy.learn_one(x | {"wind": 1.0}, 2.0)
    assert policy.columns == ("heat", "rain", "wind")


def test_only_fitted_models_are_taken():
    with pytest.raises(InvalidInputError, match="model must be fitted"):
        OnlinePolicy.from_model(RobustNewsvendor())
    with pytest.raises(InvalidTypeError, match="model must be a fitted RobustPolicy"):
        OnlinePolicy.from_model(3)
    data = synthetic(n=60, s=4, seed=0, test=5)
    model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    with pytest.raises(InvalidInputError, match="at most 3 columns"):
        OnlinePolicy.from_model(model, memory=Memory(columns=3))


# First rows that say little of those to come


def start_of(kind, rows=1_500):
    """A linear demand whose first 16 rows hold a slip of the pen, or contexts that hardly vary."""
    rng = rng_for(0, "online", "first rows")
    X, noise = rng.normal(size=(rows, 2)), rng.normal(size=rows)
    if kind == "narrow":
        X[:16] *= 1e-3
    y = 10.0 + X @ [2.0, -1.0] + 0.5 * noise
    if kind == "outlier":
        y[5] = 9_999.0
    return X, y


@pytest.mark.parametrize(
    ("policy", "cost"),
    [(BENT, COST), (MLP((8,)), Quadratic()), (Linear(), Quadratic())],
    ids=["max affine", "network", "linear"],
)
def test_the_first_rows_do_not_decide_over_all_that_follow(policy, cost):
    costs = {}
    for kind in ("plain", "outlier", "narrow"):
        online = OnlinePolicy(cost, policy=policy, ball=WassersteinBall(0.05))
        online.partial_fit(*start_of(kind))
        X, y = start_of("plain", 3_000)
        decisions = np.asarray(online.decide(X[1_500:])).reshape(-1, 1)
        costs[kind] = cost.evaluate(decisions, y[1_500:, None]).mean()
    assert costs["outlier"] <= 1.2 * costs["plain"]  # 10 to 10,000 times, before
    assert costs["narrow"] <= 1.5 * costs["plain"]


def test_units_that_were_outgrown_are_part_of_the_state():
    X, y = start_of("narrow", 200)
    online = OnlinePolicy(COST, policy=BENT, ball=WassersteinBall(0.05))
    online.partial_fit(X[:100], y[:100])
    again = OnlinePolicy(COST, policy=BENT, ball=WassersteinBall(0.05))
    again.load_state_dict(online.state_dict())
    for one in (online, again):
        one.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(online.decide(X), again.decide(X))


def test_a_stream_from_scratch_starts_where_its_seed_says():
    X, y = start_of("plain", 40)
    found = [
        RobustPolicy(COST, BENT, ball=WassersteinBall(0.05), random_state=seed).partial_fit(X, y)
        for seed in (0, 0, 1)
    ]
    first, same, other = (model.predict(X) for model in found)
    np.testing.assert_array_equal(first, same)
    assert np.abs(first - other).max() > 1e-6
