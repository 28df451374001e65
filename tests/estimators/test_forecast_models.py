"""Models around a forecast: limits, supports, frozen columns, streams and files work as without one."""

import copy
import functools

import numpy as np
import pandas as pd
import pytest

from surefoot import DASGD, Box, Budget, RobustNewsvendor, RobustPolicy, WassersteinBall, load
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.forecasts import Forecaster
from surefoot.online import OnlinePolicy, Window
from surefoot.online.checkpoint import load_state, save_state
from surefoot.policies import Linear

COST = Newsvendor(1.0, 0.2)
QUICK = DASGD(max_steps=500, gap_tol=1e3)


def wave(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 3))
    return X, 3.0 + np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)


def policy(radius="auto", limits=None, solver=None, **options):
    ball = WassersteinBall(radius, **options)
    return RobustPolicy(COST, Linear(decisions=limits), ball=ball, solver=solver, nominal=Forecaster())


MODELS = {
    "default": lambda: RobustNewsvendor(),
    "order 1": lambda: RobustNewsvendor(order=1),
    "corrected": lambda: RobustNewsvendor(nominal=Forecaster()),
    "linear": lambda: RobustNewsvendor(nominal=Forecaster(smooth=False)),
    "a radius": lambda: RobustNewsvendor(nominal=Forecaster(), radius=0.05),
    "two products": lambda: RobustNewsvendor((1.0, 2.0), (0.2, 0.5)),
    "frozen": lambda: RobustNewsvendor(frozen=(1,)),
    "all frozen": lambda: RobustNewsvendor(frozen=(0, 1, 2)),
    "limits": lambda: policy(limits=Box(0.0, 4.0)),
    "support": lambda: policy(support=Box(-2.0, 2.0), solver=DASGD(gap_tol=0.1)),
    "frozen support": lambda: policy(support=Box(-2.0, 2.0), frozen=(0,), solver=DASGD(gap_tol=0.1)),
    "outcomes move": lambda: policy(outcome_cost=2.0),
    "outcomes move in a box": lambda: policy(
        0.1, outcome_cost=2.0, support=Box(-2.0, 2.0, outcome=(-1.0, 8.0)), solver=DASGD(gap_tol=0.1)
    ),
    "own units": lambda: policy(scale=False),
    "budget": lambda: policy(0.05, limits=Budget(6.0), solver=QUICK),
}
COMPILED = [name for name in MODELS if name != "budget"]
SLOW = pytest.param("budget", marks=pytest.mark.nightly)  # it compiles
EACH = [*COMPILED, SLOW]


def outcomes(name, y):
    return np.column_stack([y, y + 1.0]) if name in ("two products", "budget") else y


@pytest.fixture(scope="module")
def fitted():
    """Fitted models by name, each fitted once; tests take copies."""
    made = {}

    def get(name):
        if name not in made:
            X, y = wave(60, 0)
            made[name] = MODELS[name]().fit(X, outcomes(name, y))
        return copy.deepcopy(made[name])

    return get


@functools.cache
def fitted_without_forecast(two_products):
    """The model to be better than, fitted once."""
    costs = ((1.0, 2.0), (0.2, 0.5)) if two_products else (1.0, 0.2)
    X, y = wave(60, 0)
    y = outcomes("two products", y) if two_products else y
    return RobustNewsvendor(*costs, nominal=None).fit(X, y)


def forecast(model):
    return model.problem_.policy.offset


# ---------------------------------------------------------------- fitting


@pytest.mark.parametrize("name", EACH)
def test_the_forecast_is_the_better_part_of_the_decision(fitted, name):
    model = fitted(name)
    X, y = wave(2000, 1)
    y = outcomes(name, y)
    assert forecast(model) is not None
    if name not in ("limits", "budget"):
        share = 1.05 if name == "linear" else 0.75  # which has nothing that bends
        assert model.cost(X, y) < share * fitted_without_forecast(name == "two products").cost(X, y)
    parameters = model.parameters_
    features = model.problem_.policy.transform(X)
    by_hand = features @ parameters.theta + parameters.intercept + forecast(model)(X)
    limits = model.problem_.policy.decisions
    by_hand = by_hand if limits is None else limits.map_into(by_hand)
    np.testing.assert_allclose(model.predict(X).reshape(len(X), -1), by_hand, rtol=1e-12)


@pytest.mark.parametrize("name", COMPILED)
def test_the_certificate_is_exact_and_that_of_the_worst_case(fitted, name):
    model = fitted(name)
    assert model.converged_ is True
    found = model.augmentation()
    if name == "limits":  # whose certificate bounds decisions before they are cut
        assert "is at most" in model.certificate_.message
        assert found.worst_case <= model.certificate_.upper * (1 + 1e-9)
        assert found.worst_case == pytest.approx(found.cost_after, rel=1e-6)
    else:
        assert found.worst_case == pytest.approx(model.certificate_.upper, rel=1e-9)
    assert model.certificate_.lower <= model.certificate_.upper
    assert (found.transport_cost <= found.budget * (1.0 + 1e-6)).all()


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("name", ["limits", pytest.param("budget", marks=pytest.mark.nightly)])
def test_decisions_stay_within_their_limits_whatever_happens(fitted, name, tmp_path):
    model = fitted(name)
    limits = model.problem_.policy.decisions
    X, y = wave(100, 1)
    y = outcomes(name, y)
    far = np.vstack([X, 100.0 * X])

    def inside(decisions):
        decisions = decisions.reshape(len(decisions), -1)
        assert limits.contains(decisions)
        assert np.isfinite(decisions).all()

    inside(model.predict(far))
    assert np.ptp(model.predict(X), axis=0).min() > 0.1  # they do react
    stream = OnlinePolicy.from_model(model)
    inside(stream.decide_and_learn(X, y))
    inside(stream.decide(far))
    inside(model.partial_fit(X, y).predict(far))
    model.save(tmp_path / "m")
    inside(load(tmp_path / "m").predict(far))


def test_a_limit_that_binds_costs_and_is_certified(fitted):
    X, y = wave(60, 0)
    free, limited = fitted("default"), policy(limits=Box(0.0, 2.5)).fit(X, y)
    assert limited.converged_ is True
    assert limited.cost(X, y) > 1.5 * free.cost(X, y)
    assert (limited.predict(X) == 2.5).mean() > 0.3
    sample = limited.augmentation()
    assert sample.cost_before <= limited.certificate_.upper
    np.testing.assert_array_equal(sample.outcomes_before, limited.nominal_.outcomes[sample.rows, 0])


def test_limits_wide_enough_change_nothing(fitted):
    X, y = wave(60, 0)
    wide = policy(limits=Box(-1e3, 1e3)).fit(X, y)
    np.testing.assert_allclose(wide.predict(X), fitted("corrected").predict(X), rtol=1e-9)


def test_a_budget_is_shared_by_products(fitted):
    model = fitted("budget")
    X, y = wave(200, 1)
    decisions = model.predict(X)
    assert decisions.shape == (200, 2)
    assert decisions.sum(axis=1).max() == pytest.approx(6.0)
    assert (decisions >= 0.0).all()
    assert (decisions[:, 1] > decisions[:, 0]).mean() > 0.9  # the second product sells one more
    worst = model.worst_case(X, outcomes("budget", y))
    assert worst.value >= model.cost(X, outcomes("budget", y))


# ---------------------------------------------------------------- supports and frozen columns


@pytest.mark.parametrize("name", ["support", "frozen support", "outcomes move in a box"])
def test_the_adversary_stays_in_the_support(fitted, name):
    model = fitted(name)
    X, y = wave(60, 0)
    for sample in (model.worst_case(X, y, radius=1.0), model.augmentation(radius=1.0)):
        assert sample.contexts.min() >= -2.0 - 1e-9
        assert sample.contexts.max() <= 2.0 + 1e-9
        if "outcomes" in name:
            assert sample.outcomes.min() >= -1.0 - 1e-9
            assert sample.outcomes.max() <= 8.0 + 1e-9
    assert model.problem_.policy.features is None or model.parameters_.theta.shape == (2, 1)


def test_data_outside_the_support_are_refused():
    X, y = wave(60, 0)
    with pytest.raises(InvalidInputError, match="support must contain every context"):
        policy(support=Box(-1.0, 1.0)).fit(X, y)
    box = Box(-2.0, 2.0, outcome=(2.0, 3.0))
    with pytest.raises(InvalidInputError, match="support must contain every outcome"):
        policy(support=box, outcome_cost=2.0).fit(X, y)


@pytest.mark.parametrize(
    "options",
    [{"support": Box((-2.0, -2.5, -3.0), (2.0, 2.5, 3.0))}, {"scale": (1.0, 2.0, 3.0)}],
    ids=["support", "scale"],
)
def test_numbers_for_each_column_stand_beside_frozen_columns(options, tmp_path):
    X, y = wave(60, 0)
    model = policy(0.5, frozen=(1,), solver=DASGD(gap_tol=0.1), **options).fit(X, y)
    sample = model.worst_case(X, y)
    np.testing.assert_array_equal(sample.contexts[:, 1], X[sample.rows, 1])
    if "support" in options:
        assert (np.abs(sample.contexts[:, [0, 2]]) <= [2.0 + 1e-9, 3.0 + 1e-9]).all()
    else:
        np.testing.assert_array_equal(model.scale_, [1.0, 3.0])
    model.save(tmp_path / "m")
    if "scale" in options:
        with pytest.raises(UnsupportedProblemError, match="got numbers: divide the columns by them"):
            OnlinePolicy.from_model(load(tmp_path / "m"))
        return
    for one in (model, load(tmp_path / "m"), OnlinePolicy.from_model(model)):
        one.partial_fit(X, y)


@pytest.mark.parametrize(
    ("name", "frozen"), [("frozen", [1]), ("all frozen", [0, 1, 2]), ("frozen support", [0])]
)
def test_the_worst_case_has_every_column_and_frozen_ones_stay(name, frozen):
    X, y = wave(40, 0)
    moved = MODELS[name]().fit(X, y).worst_case(X, y, radius=0.5)
    np.testing.assert_array_equal(moved.contexts[:, frozen], X[moved.rows][:, frozen])
    assert moved.contexts.shape == (len(moved.rows), 3)


def test_frozen_columns_are_left_to_the_forecast():
    X, y = wave(60, 0)
    frame = pd.DataFrame(X, columns=["heat", "holiday", "rain"])
    by_name = RobustNewsvendor(frozen=("holiday",)).fit(frame, y)
    by_place = RobustNewsvendor(frozen=(1,)).fit(X, y)
    np.testing.assert_array_equal(by_name.predict(frame), by_place.predict(X))
    assert by_name.parameters_.theta.shape == (2, 1)
    assert by_name.worst_case(frame, y).contexts.shape[1] == 3
    moved = frame.assign(holiday=frame["holiday"] + 0.5)
    change = by_name.predict(moved) - by_name.predict(frame)
    told = forecast(by_name)(moved.to_numpy()) - forecast(by_name)(frame.to_numpy())
    np.testing.assert_allclose(change, told[:, 0], atol=1e-12)
    assert np.abs(change).max() > 0.1


# ---------------------------------------------------------------- streams


@pytest.mark.parametrize("name", EACH)
def test_learning_on_keeps_the_forecast_and_does_no_harm(fitted, name):
    model = fitted(name)
    (X, y), (X_test, y_test) = wave(500, 1), wave(2000, 2)
    before, said = model.cost(X_test, outcomes(name, y_test)), forecast(model)(X_test)
    theta, intercept = model.parameters_.theta.copy(), model.parameters_.intercept.copy()
    model.partial_fit(X, outcomes(name, y))
    np.testing.assert_array_equal(forecast(model)(X_test), said)
    assert (model.parameters_.theta != theta).any() or (model.parameters_.intercept != intercept).any()
    assert model.cost(X_test, outcomes(name, y_test)) < 1.1 * before
    assert model.converged_ is None
    assert model.certificate_.kind == "estimate"
    assert "newest 500 rows" in model.status_


@pytest.mark.parametrize("name", COMPILED)
def test_a_stream_corrects_a_forecast_that_went_stale(fitted, name):
    """Outcomes rise by two: the correction follows, the forecast stays."""
    model = fitted(name)
    (X, y), (X_test, y_test) = wave(1500, 1), wave(500, 2)
    rise = 0.8 if name in ("limits", "outcomes move in a box") else 2.0
    limit = 4.0 if name == "limits" else np.inf
    unavoidable = np.maximum(y_test + rise - limit, 0.0).mean()
    stale = model.cost(X_test, outcomes(name, y_test + rise)) - unavoidable
    model.partial_fit(X, outcomes(name, y + rise))
    assert model.cost(X_test, outcomes(name, y_test + rise)) - unavoidable < 0.5 * stale


@pytest.mark.parametrize("name", EACH)
def test_an_online_policy_goes_on_from_the_model(fitted, name):
    model = fitted(name)
    X, y = wave(120, 1)
    y = outcomes(name, y)
    stream = OnlinePolicy.from_model(model)
    np.testing.assert_allclose(stream.decide(X), model.predict(X), rtol=1e-12)
    one = stream.decide_one({f"x{j}": X[0, j] for j in range(3)})
    np.testing.assert_allclose(one, model.predict(X[:1])[0], rtol=1e-12)
    for rows in (slice(0, 1), slice(1, 33), slice(33, 120)):
        stream.partial_fit(X[rows], y[rows])
        model.partial_fit(X[rows], y[rows])
        np.testing.assert_allclose(stream.decide(X), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("name", ["default", "frozen", "limits", "two products"])
def test_a_saved_state_of_an_online_policy_goes_on_bit_for_bit(fitted, name, tmp_path):
    model = fitted(name)
    X, y = wave(120, 1)
    y = outcomes(name, y)
    whole, cut = (OnlinePolicy.from_model(model, drift=Window(50)) for _ in range(2))
    for rows in (slice(0, 40), slice(40, 41), slice(41, 120)):
        save_state(tmp_path / "state", cut.state_dict())
        cut = OnlinePolicy.from_model(model, drift=Window(50))
        cut.load_state_dict(load_state(tmp_path / "state")[0])
        np.testing.assert_array_equal(
            whole.decide_and_learn(X[rows], y[rows]), cut.decide_and_learn(X[rows], y[rows])
        )
    other = OnlinePolicy.from_model(RobustNewsvendor().fit(*wave(61, 5)), drift=Window(50))
    with pytest.raises(InvalidInputError, match="the state must come from the same"):
        other.load_state_dict(cut.state_dict())


def test_a_gap_in_a_context_is_filled_before_the_forecast_is_asked(fitted):
    model = fitted("default")
    stream = OnlinePolicy.from_model(model)
    X, _ = wave(60, 0)
    mean = model.nominal_.weights @ model.nominal_.contexts
    full = {"x0": float(mean[0]), "x1": 1.0, "x2": 0.5}
    assert stream.decide_one({"x1": 1.0, "x2": 0.5}) == pytest.approx(stream.decide_one(full), rel=1e-9)
    assert stream.decide_one(full | {"x0": None}) == stream.decide_one({"x1": 1.0, "x2": 0.5})
    stream.learn_one({"x1": 1.0}, 4.0)
    assert np.isfinite(stream.decide(X)).all()


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", EACH)
def test_a_loaded_model_goes_on_bit_for_bit(fitted, name, tmp_path):
    model = fitted(name)
    X, y = wave(60, 1)
    y = outcomes(name, y)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    for rows in (slice(0, 1), slice(1, 20), slice(20, 60), None):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.certificate_ == model.certificate_
        assert again.cost(X, y) == model.cost(X, y)
        np.testing.assert_array_equal(again.multiplier_, model.multiplier_)
        mine, theirs = (one.worst_case(X[:20], y[:20], radius=0.1) for one in (model, again))
        assert mine.value == theirs.value
        if rows is not None:
            for one in (model, again):
                one.partial_fit(X[rows], y[rows])
            again.save(tmp_path / "m")
            again = load(tmp_path / "m")


@pytest.mark.parametrize("name", ["default", "frozen", "limits", "support", SLOW])
def test_an_online_policy_goes_on_from_a_loaded_model(fitted, name, tmp_path):
    model = fitted(name)
    X, y = wave(60, 1)
    y = outcomes(name, y)
    model.save(tmp_path / "m")
    first, second = (OnlinePolicy.from_model(one) for one in (model, load(tmp_path / "m")))
    for stream in (first, second):
        stream.partial_fit(X, y)
    np.testing.assert_array_equal(first.decide(X), second.decide(X))


def test_a_loaded_model_without_data_explains_itself(fitted, tmp_path):
    fitted("default").save(tmp_path / "m")
    again = load(tmp_path / "m")
    with pytest.raises(InvalidInputError, match="a model from a file does not hold its training data"):
        again.augmentation()
    X, y = wave(30, 3)
    again.partial_fit(X, y)
    assert again.augmentation().cost_before == pytest.approx(again.cost(X, y))
