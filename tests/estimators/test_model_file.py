import json

import numpy as np
import pandas as pd
import pytest

from surefoot import (
    DASGD,
    Box,
    ConvexProgram,
    Exact,
    RobustNewsvendor,
    RobustPolicy,
    WassersteinBall,
    load,
)
from surefoot.costs import Newsvendor
from surefoot.estimators.model_file import model_parts, restore
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, ModelFileError
from surefoot.forecasts import Forecaster
from surefoot.nominals import Empirical
from surefoot.policies import Linear

COST = Newsvendor(1.0, 0.2)
NAMES = list("abcde")
QUICK = DASGD(gap_tol=0.1)

MODELS = {
    "defaults": lambda: RobustNewsvendor(),
    "two products": lambda: RobustNewsvendor((1.0, 2.0), 0.3, radius=0.05),
    "arrays as options": lambda: RobustNewsvendor(np.array([1.0, 2.0]), np.float64(0.3), radius=0.1),
    "no intercept": lambda: RobustNewsvendor(radius=0.1, intercept=False, order=1),
    "frozen names": lambda: RobustNewsvendor(radius=0.1, frozen=["d", "a"]),
    "exact": lambda: RobustNewsvendor(radius=0.1, solver=Exact(gap_tol=1e-3)),
    "policy": lambda: RobustPolicy(COST, random_state=4),
    "box": lambda: RobustPolicy(
        COST, ball=WassersteinBall(0.1, support=Box((-1, 0, -1, 0, -1), 2.0)), solver=QUICK
    ),
    "box away from zero": lambda: RobustPolicy(
        COST,
        ball=WassersteinBall(0.1, support=Box(0.0, 1.0, outcome=(0.5, 30.0)), outcome_cost=2.0),
        solver=QUICK,
    ),
    "outcomes move": lambda: RobustPolicy(COST, ball=WassersteinBall(0.1, outcome_cost=2.0, order=1)),
    "smoothed": lambda: RobustPolicy(
        Newsvendor(1.0, 0.2, smoothing=0.1), ball=WassersteinBall(0.1, scale=False), solver=QUICK
    ),
    "exact in a box": lambda: RobustPolicy(
        COST,
        Linear(intercept=False),
        ball=WassersteinBall(0.1, support=Box(-1, 2), frozen=("b",)),
        solver=ConvexProgram(),
    ),
}


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


@pytest.fixture
def frame(data):
    return pd.DataFrame(data.X, columns=NAMES)


@pytest.fixture
def outcomes(data, kind):
    y = data.y + 1.0
    return np.column_stack([y, 2.0 * y]) if kind in ("two products", "arrays as options") else y


@pytest.fixture
def model(kind, frame, outcomes):
    return MODELS[kind]().fit(frame, outcomes)


def parts(model):
    """What a file holds of a model."""
    header, arrays = model_parts(model, {})
    return json.loads(json.dumps(header, allow_nan=False)), arrays


def twin(model):
    """The model that ``model_parts`` and ``restore`` make of it."""
    again = type(model)(**model.get_params(deep=False))
    restore(again, *parts(model))
    return again


def same_parts(first, second):
    (header, arrays), (other, more) = parts(first), parts(second)
    assert header == other
    assert set(arrays) == set(more)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, more[name])


def assert_same(first, second):
    for name in ("radius_", "certificate_", "converged_", "status_", "n_steps_", "n_features_in_"):
        assert getattr(first, name) == getattr(second, name), name
        assert type(getattr(first, name)) is type(getattr(second, name)), name
    for name in ("multiplier_", "scale_", "movable_", "feature_names_in_"):
        one, other = getattr(first, name), getattr(second, name)
        assert type(one) is type(other), name
        np.testing.assert_array_equal(one, other)
    for name in ("theta", "intercept"):
        np.testing.assert_array_equal(
            getattr(first.parameters_, name), getattr(second.parameters_, name)
        )
    assert first._single == second._single
    assert hasattr(first, "radius_path_") == hasattr(second, "radius_path_")
    if hasattr(first, "radius_path_"):
        for name in ("radii", "fold_costs", "fold_weights", "radius"):
            np.testing.assert_array_equal(
                getattr(first.radius_path_, name), getattr(second.radius_path_, name)
            )


def test_everything_comes_back(model, frame, outcomes):
    again = twin(model)
    assert_same(again, model)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.cost(frame, outcomes) == model.cost(frame, outcomes)
    assert again.worst_case(frame, outcomes).value == model.worst_case(frame, outcomes).value
    assert again.history_ == ()  # the checks of the run are not kept


def test_learning_goes_on_bit_for_bit(model, frame, outcomes):
    again = twin(model)
    for size in (1, 20):
        for one in (model, again):
            one.partial_fit(frame[:size], outcomes[:size])
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        assert_same(again, model)
        again = twin(again)  # and from a stream that was saved in between


def test_a_stream_that_was_never_fitted_comes_back(kind, frame, outcomes):
    model = MODELS[kind]().partial_fit(frame[:30], outcomes[:30])
    again = twin(model)
    assert_same(again, model)
    for one in (model, again):
        one.partial_fit(frame[30:], outcomes[30:])
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_a_restored_model_is_saved_as_the_same_parts(model):
    same_parts(model, twin(model))


def test_a_model_without_names_has_none_afterwards(data):
    model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    assert parts(model)[0]["fitted"]["names"] is None
    assert not hasattr(twin(model), "feature_names_in_")


@pytest.mark.filterwarnings("ignore::surefoot.exceptions.ConvergenceWarning")
def test_the_printed_algorithm_can_be_saved_too(data):
    solver = DASGD.literal(alpha=0.01, beta=0.01, eta=0.01, K=2, epsilon=0.0, steps=50)
    model = RobustNewsvendor(radius=0.1, solver=solver).fit(data.X, data.y)
    again = twin(model)
    np.testing.assert_array_equal(again.predict(data.X), model.predict(data.X))
    assert again.converged_ is False


def test_an_infinite_gap_can_be_saved(data):
    with pytest.warns(ConvergenceWarning):
        model = RobustNewsvendor(radius=0.1, solver=DASGD(max_steps=1)).fit(data.X, data.y)
    object.__setattr__(model.certificate_, "gap", float("inf"))
    assert twin(model).certificate_.gap == float("inf")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"policy": Linear(features=np.square)}, "policy.features"),
        ({"policy": Linear(offset=lambda X: X[:, :1])}, "policy.offset"),
        ({"solver": DASGD(callback=lambda progress: None)}, "solver.callback"),
        ({"solver": Exact(callback=lambda progress: None)}, "solver.callback"),
        ({"nominal": "given"}, "nominal"),
    ],
    ids=["features", "offset", "callback of DASGD", "callback of Exact", "nominal"],
)
def test_what_cannot_be_saved_is_refused_by_name(data, options, name):
    if "nominal" in options:
        options = {"nominal": Empirical(data.X, data.y)}
    model = RobustPolicy(COST, ball=WassersteinBall(0.1), **options).fit(data.X, data.y)
    with pytest.raises(ModelFileError, match=f"^{name} must be made of numbers, text, arrays and"):
        model_parts(model, {})


def test_parameters_changed_after_the_fit_are_not_saved_as_if_fitted(data):
    model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    for changes in ({"backorder": 5.0}, {"radius": 0.2}, {"intercept": False}):
        changed = RobustNewsvendor(radius=0.1).fit(data.X, data.y).set_params(**changes)
        with pytest.raises(
            ModelFileError, match="parameters must be those of the fit .* call fit again"
        ):
            model_parts(changed, {})
        model_parts(changed.fit(data.X, data.y), {})
    model_parts(model, {})


FITTED = (
    "policy", "ball", "asked_ball", "parameters", "certificate", "multiplier", "converged", "status",
    "n_steps", "single", "outcomes", "columns", "names", "outcome_names", "radius_path", "stream",
)  # fmt: skip


def test_these_are_the_parts_of_a_fit(data):
    assert set(parts(RobustNewsvendor().fit(data.X, data.y))[0]["fitted"]) == set(FITTED)


@pytest.mark.parametrize("part", FITTED)
def test_a_header_without_a_part_is_refused(data, part):
    header, arrays = parts(RobustNewsvendor(radius=0.1).fit(data.X, data.y))
    del header["fitted"][part]
    with pytest.raises(ModelFileError, match=f"lacks a part that it must have: '{part}'"):
        restore(RobustNewsvendor(radius=0.1), header, arrays)


@pytest.mark.parametrize("model", [RobustNewsvendor(radius=0.1), RobustNewsvendor()], ids=str)
def test_arrays_without_a_part_are_refused(data, model):
    header, arrays = parts(model.fit(data.X, data.y))
    assert len(arrays) >= 8
    for name in arrays:
        less = {key: array for key, array in arrays.items() if key != name}
        with pytest.raises(ModelFileError, match=f"not allowed: '{name}'"):
            restore(type(model)(**model.get_params(deep=False)), header, less)


# ---------------------------------------------------------------- forecasts


def wave(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 3))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)


@pytest.fixture(params=["linear", "smooth", "trees", "two products", "radius of one's own"])
def forecasting(request):
    """A fitted model whose forecast has the parts of its name, and rows to go on with."""
    (X, y), (fresh, more) = wave(50, 0), wave(30, 1)
    options = {
        "linear": {"nominal": Forecaster(smooth=False)},
        "smooth": {"nominal": Forecaster(trees=False, common=False)},
        "radius of one's own": {"nominal": Forecaster(), "radius": 0.03},
    }.get(request.param, {"nominal": Forecaster()})
    if request.param == "two products":
        options = {"backorder": (1.0, 2.0), "nominal": Forecaster()}
        y, more = (np.column_stack([one, np.exp(one)]) for one in (y, more))
    model = RobustNewsvendor(**options).fit(X, y)
    for forecast in model.problem_.policy.offset.forecasts:
        assert (forecast.smooth is None) == (request.param == "linear")
        assert (forecast.trees is None) == (request.param in ("linear", "smooth"))
    return model, fresh, more


def test_a_forecast_is_saved_and_learning_goes_on_bit_for_bit(forecasting, tmp_path):
    model, X, y = forecasting
    model.save(tmp_path / "m.surefoot")
    again = load(tmp_path / "m.surefoot")
    for size in (1, 20, 0):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.problem_.policy.offset(X), model.problem_.policy.offset(X))
        np.testing.assert_array_equal(again.parameters_.theta, model.parameters_.theta)
        assert again.cost(X, y) == model.cost(X, y)
        mine, theirs = (one.worst_case(X, y, radius=0.2) for one in (model, again))
        assert theirs.value == mine.value
        np.testing.assert_array_equal(theirs.outcomes, mine.outcomes)
        if size:
            for one in (model, again):
                one.partial_fit(X[:size], y[:size])
            again.save(tmp_path / "m.surefoot")
            again = load(tmp_path / "m.surefoot")


def test_a_forecast_is_saved_as_the_same_parts_again(forecasting):
    model, _, _ = forecasting
    same_parts(model, twin(model))


def test_a_model_from_a_file_has_no_data_of_its_fit(forecasting, tmp_path):
    model, X, y = forecasting
    model.save(tmp_path / "m.surefoot")
    again = load(tmp_path / "m.surefoot")
    with pytest.raises(InvalidInputError, match="^X and y must be given: a model from a file does not"):
        again.augmentation()
    mine, theirs = (one.augmentation(X, y, radius=0.2) for one in (model, again))
    assert theirs.worst_case == mine.worst_case
    np.testing.assert_array_equal(theirs.outcomes, mine.outcomes)


@pytest.mark.parametrize(
    ("place", "part"),
    [("", "theta"), ("", "mean"), ("", "spread"), ("", "constant"), ("smooth", "centres"),
     ("smooth", "coefficients"), ("smooth", "length"), ("trees", "roots"), ("trees", "value")],
)  # fmt: skip
def test_a_forecast_without_a_part_is_refused(place, part):
    header, arrays = parts(RobustNewsvendor(nominal=Forecaster()).fit(*wave(50, 0)))
    offset = header["fitted"]["policy"]["fields"]["offset"]
    forecast = offset["fields"]["forecasts"]["__tuple__"][0]["fields"]
    fields = forecast[place]["fields"] if place else forecast
    del fields[part]
    with pytest.raises(ModelFileError, match=f"missing 1 required positional argument: '{part}'"):
        restore(RobustNewsvendor(), header, arrays)
