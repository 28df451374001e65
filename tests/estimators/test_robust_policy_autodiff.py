"""General policies behind the scikit-learn face: fit, decide, stress, stream, save.

Their files decide as before, learn on as before, and need no JAX to load.
"""

import copy
import importlib
import pickle
import subprocess
import sys
import warnings

import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from surefoot import DASGD, Box, RobustPolicy, WassersteinBall, load
from surefoot.costs import CustomCost, MeanCVaR, Newsvendor, Pricing, Quadratic
from surefoot.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    MissingExtraError,
    ModelFileError,
    UnsupportedProblemError,
)
from surefoot.io import pack
from surefoot.online import OnlinePolicy
from surefoot.policies import MLP, CustomPolicy, Linear, RandomFourier
from surefoot.sets import Simplex
from surefoot.solvers import SGD

COST = Newsvendor(1.0, 0.2)
QUICK = DASGD(max_steps=500, gap_tol=10.0)
LOOSE = DASGD(max_steps=500, gap_tol=1e3)
BALL = WassersteinBall(0.1)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, 3.0 + X @ [1.0, -0.5] + 0.3 * rng.normal(size=60)


def neural(**options):
    return RobustPolicy(COST, MLP((8,)), **{"ball": BALL, "solver": QUICK, **options})


@pytest.fixture(scope="module")
def model(pairs):
    return neural().fit(*pairs)


def test_it_fits_decides_and_scores(model, pairs):
    X, y = pairs
    decisions = model.predict(X)
    assert decisions.shape == (60,)
    np.testing.assert_array_equal(model.decide(X), decisions)
    assert model.cost(X, y) == pytest.approx(COST.evaluate(decisions[:, None], y[:, None]).mean())
    assert model.score(X, y) == -model.cost(X, y)
    assert (
        model.cost(X, y)
        < 0.8 * COST.evaluate(np.full((60, 1), np.quantile(y, 1 / 1.2)), y[:, None]).mean()
    )
    assert model.certificate_.upper >= model.cost(X, y)
    assert (model.radius_, model.n_steps_, model.converged_) == (0.1, 500, None)
    assert isinstance(model.multiplier_, float)


def test_weights_count_rows(pairs):
    X, y = pairs
    weights = np.random.default_rng(1).integers(0, 3, size=60)
    fitted = neural().fit(X, y, weights)
    expected = np.average(COST.evaluate(fitted.predict(X)[:, None], y[:, None]), weights=weights)
    assert fitted.cost(X, y, weights) == pytest.approx(expected)
    worst = fitted.worst_case(X, y, sample_weight=weights)
    np.testing.assert_array_equal(worst.rows, np.flatnonzero(weights))
    assert worst.weights.sum() == pytest.approx(1.0)
    assert worst.value >= expected


def test_the_adversarial_sample_lies_in_the_ball(model, pairs):
    X, y = pairs
    values = []
    for radius in (0.0, 0.05, 0.1, 0.5):
        worst = model.worst_case(X, y, radius=radius)
        assert worst.transport_cost[0] <= radius**2 * (1 + 1e-6)
        moves = (worst.contexts - X[worst.rows]) / model.scale_
        np.testing.assert_allclose((moves**2).sum(axis=1), worst.distances, atol=1e-12)
        assert worst.weights @ worst.distances == pytest.approx(worst.transport_cost[0])
        decisions = model.predict(worst.contexts)[:, None]
        realised = worst.weights @ COST.evaluate(decisions, worst.outcomes[:, None])
        assert worst.expected_cost == pytest.approx(realised)
        assert model.cost(X, y) - 1e-12 <= worst.expected_cost <= worst.value + 1e-12
        np.testing.assert_array_equal(worst.outcomes, y[worst.rows])
        # Rows may be split, so that the budget is spent; their mass stays.
        np.testing.assert_allclose(np.bincount(worst.rows, worst.weights), 1 / 60, rtol=1e-9)
        values.append(worst.value)
    assert values[0] == pytest.approx(model.cost(X, y), rel=1e-12)
    assert (np.diff(values) > 0).all()
    assert model.worst_case(X, y).value == pytest.approx(values[2])


def test_frozen_columns_and_the_support_hold_moved_samples(pairs):
    X, y = pairs
    frame = pd.DataFrame(X, columns=["price", "holiday"])
    box = Box(X.min(axis=0) - 0.01, X.max(axis=0) + 0.01)
    model = neural(ball=WassersteinBall(0.5, support=box, frozen=("holiday",))).fit(frame, y)
    worst = model.worst_case(frame, y)
    np.testing.assert_array_equal(worst.contexts[:, 1], X[:, 1])
    assert np.abs(worst.contexts[:, 0] - X[:, 0]).max() > 0.1
    assert worst.contexts[:, 0].max() <= box.upper[0] + 1e-12
    assert worst.contexts[:, 0].min() >= box.lower[0] - 1e-12
    assert model.feature_names_in_.tolist() == ["price", "holiday"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["holiday", "price"]])


# Streams


def test_a_stream_from_nothing_lowers_the_cost(pairs):
    X, y = pairs
    streamed = neural()
    costs = []
    for _ in range(8):
        for rows in (slice(0, 16), slice(16, 32), slice(32, 48)):
            streamed.partial_fit(X[rows], y[rows])
        costs.append(streamed.cost(X, y))
    assert costs[-1] < 0.8 * costs[0]
    assert streamed.n_steps_ == 8 * 48
    assert streamed.certificate_.kind == "estimate"
    assert streamed.certificate_.lower == 0.0
    assert "Learning from a stream (384 steps)" in streamed.status_


def test_a_stream_goes_on_from_a_fit_in_small_steps(model, pairs):
    X, y = pairs
    streamed = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(streamed.predict(X), model.predict(X))
    streamed.partial_fit(X[:16], y[:16])
    change = np.abs(streamed.predict(X) - model.predict(X)).max()
    assert 0.0 < change < 0.2 * y.std()
    assert streamed.n_steps_ == 516
    assert streamed.scale_ is not None


def test_a_rate_that_fell_to_zero_in_the_fit_does_not_silence_the_stream(pairs):
    X, y = pairs
    solver = DASGD(max_steps=250, optimizer=SGD(0.02, decay=True), gap_tol=10.0)
    model = RobustPolicy(Quadratic(), Linear(), ball=BALL, solver=solver).fit(X, y)
    model.partial_fit(X[:16], y[:16])
    before = model.predict(X)
    model.partial_fit(X[16:32], y[16:32] + 3.0)
    assert (model.predict(X) - before).mean() > 0.05


def test_rows_that_a_stream_cannot_learn_leave_it_as_it_was(pairs):
    X, y = pairs
    model = RobustPolicy(Quadratic(), Linear(), ball=BALL, solver=QUICK).fit(X, y)
    before, endless = model.predict(X), y[:40].copy()
    endless[35] = 1e200  # its square is no number
    for _ in range(2):
        with pytest.raises(InvalidInputError, match="at a row of the stream; none of these rows was"):
            model.partial_fit(X[:40], endless)
        np.testing.assert_array_equal(model.predict(X), before)
        assert model.n_steps_ == 500
    untouched = RobustPolicy(Quadratic(), Linear(), ball=BALL, solver=QUICK).fit(X, y)
    for one in (model, untouched):
        one.partial_fit(X[:40], y[:40])
    np.testing.assert_array_equal(model.predict(X), untouched.predict(X))


def test_a_stream_refuses_what_a_fit_refuses(pairs):
    for radius in (0.1, "auto"):
        model = RobustPolicy(Quadratic(), Linear(), ball=WassersteinBall(radius, order=1))
        for learn in (model.fit, model.partial_fit):
            with pytest.raises(UnsupportedProblemError, match="the worst case is unbounded"):
                learn(*pairs)


# Shapes, costs without a floor, and scikit-learn


@pytest.fixture(scope="module")
def pricing(pairs):
    X, y = pairs
    outcomes = np.column_stack([y + 7.0, np.full(60, 1.0) + 0.1 * np.abs(X[:, 0])])
    model = RobustPolicy(Pricing(sensitivity=None), Linear(), ball=BALL, solver=QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, outcomes), outcomes


def test_two_outcomes_may_meet_in_one_price(pricing, pairs):
    model, outcomes = pricing
    X, _ = pairs
    assert model.predict(X).shape == (60,)
    assert isinstance(model.multiplier_, float)
    assert 3.0 < model.predict(X).mean() < 7.0
    worst = model.worst_case(X, outcomes)
    assert worst.outcomes.shape == (60, 2)
    assert worst.value >= model.cost(X, outcomes)
    with pytest.raises(InvalidInputError, match=r"^y must have 2 products as in fit, got 1\.$"):
        model.cost(X, outcomes[:, 0])


def test_a_cost_without_a_floor_has_no_lower_bound_in_a_stream(pricing, pairs):
    streamed = pickle.loads(pickle.dumps(pricing[0]))
    streamed.partial_fit(pairs[0][:16], pricing[1][:16])
    assert streamed.certificate_.upper < 0.0
    assert (streamed.certificate_.lower, streamed.certificate_.gap) == (-np.inf, np.inf)


def test_scikit_learn_can_clone_and_search(pairs):
    X, y = pairs
    copy = clone(neural())
    assert copy.policy == MLP((8,))
    grid = GridSearchCV(
        neural(solver=DASGD(max_steps=250, gap_tol=10.0)),
        {"ball": [WassersteinBall(0.0), WassersteinBall(3.0)]}, cv=2,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        grid.fit(X, y)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert grid.best_params_["ball"].radius in (0.0, 3.0)
    assert grid.predict(X).shape == (60,)


def test_a_transformer_as_feature_map_is_fitted_on_a_copy(pairs):
    X, y = pairs
    scaler = StandardScaler()
    model = RobustPolicy(COST, MLP((8,), features=scaler), ball=BALL, solver=QUICK).fit(100.0 * X, y)
    plain = neural().fit(X, y)
    # Standardised contexts are the same whatever their unit was.
    np.testing.assert_allclose(model.predict(100.0 * X), plain.predict(X), rtol=1e-6)
    assert not hasattr(scaler, "mean_")


def test_limits_leave_the_user_s_outcomes_alone(pairs):
    X, y = pairs
    model = RobustPolicy(COST, Linear(decisions=Box(0, 3.0)), ball=BALL).fit(X, y)
    worst = model.worst_case(X, y)
    np.testing.assert_array_equal(worst.outcomes, y[worst.rows])
    assert model.predict(10 * X).max() <= 3.0
    assert worst.value >= model.cost(X, y)
    assert worst.value == pytest.approx(model.certificate_.upper, rel=1e-9)


def test_partial_fit_is_the_learner_of_an_online_policy(pairs):
    X, y = pairs
    model = neural().fit(X, y)
    policy = OnlinePolicy.from_model(model)
    np.testing.assert_allclose(policy.decide(X), model.predict(X), rtol=1e-12)
    for rows in (slice(0, 1), slice(1, 40)):
        model.partial_fit(X[rows], y[rows])
        policy.partial_fit(X[rows], y[rows])
        np.testing.assert_allclose(policy.decide(X), model.predict(X), rtol=1e-12)
    begun = neural().partial_fit(X[:16], y[:16]).partial_fit(X[16:], y[16:])
    fresh = OnlinePolicy(COST, MLP((8,)), ball=BALL).partial_fit(X, y)
    np.testing.assert_allclose(fresh.decide(X), begun.predict(X), rtol=1e-12)


@pytest.mark.parametrize("after", ["fit", "partial_fit", "save"])
def test_it_is_pickled_and_copied_whatever_came_before(pairs, tmp_path, after):
    X, y = pairs
    model = neural().fit(X, y)
    if after == "partial_fit":
        model.partial_fit(X[:16], y[:16])
    if after == "save":
        model.save(tmp_path / "m.surefoot")
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for one in (again, model):
        one.partial_fit(X[16:32], y[16:32])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# Files


def frame(X):
    return pd.DataFrame(X, columns=["price", "heat"])


@pytest.fixture(scope="module")
def named(pairs):
    """A model that knows the names of its columns."""
    X, y = pairs
    return neural().fit(frame(X), y)


@pytest.fixture(scope="module")
def path(named, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m.surefoot"
    named.save(path)
    return path


def test_a_loaded_model_is_the_same_to_the_last_bit(named, path, pairs):
    X, y = pairs
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict(frame(X)), named.predict(frame(X)))
    assert loaded.certificate_ == named.certificate_
    assert loaded.get_params() == named.get_params()
    for name in ("radius_", "multiplier_", "n_steps_", "status_", "converged_"):
        assert getattr(loaded, name) == getattr(named, name)
    assert loaded.worst_case(frame(X), y).value == named.worst_case(frame(X), y).value
    assert loaded.feature_names_in_.tolist() == ["price", "heat"]


def test_a_loaded_model_learns_on_as_if_it_had_never_been_saved(path, tmp_path, pairs):
    X, y = pairs
    once, twice = load(path), load(path)
    for rows in (slice(0, 16), slice(16, 32)):
        once.partial_fit(frame(X[rows]), y[rows])
        twice.partial_fit(frame(X[rows]), y[rows])
        twice.save(tmp_path / "again.surefoot")
        twice = load(tmp_path / "again.surefoot")
    np.testing.assert_array_equal(once.predict(frame(X)), twice.predict(frame(X)))
    assert once.certificate_ == twice.certificate_
    assert once.n_steps_ == twice.n_steps_ == 532


def test_loading_and_deciding_need_no_jax(path, named):
    code = (
        "import sys; sys.modules['jax'] = sys.modules['optax'] = None\n"
        "import surefoot, pandas as pd, numpy as np\n"
        f"model = surefoot.load({str(path)!r})\n"
        "X = pd.DataFrame([[1.0, -2.0]], columns=['price', 'heat'])\n"
        "print(repr(float(model.predict(X)[0])))\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert float(out) == named.predict(frame([[1.0, -2.0]]))[0]


def test_learning_on_without_jax_names_the_command(path, pairs, monkeypatch):
    known = importlib.import_module

    def missing(name, *rest):
        if name == "jax":
            raise ImportError("No module named 'jax'")
        return known(name, *rest)

    loaded = load(path)
    monkeypatch.setattr(importlib, "import_module", missing)
    assert loaded.predict(frame(pairs[0])).shape == (60,)
    with pytest.raises(MissingExtraError, match=r'pip install "surefoot\[jax\]"'):
        loaded.partial_fit(frame(pairs[0]), pairs[1])


def test_features_and_variables_of_the_cost_come_back(tmp_path, pairs):
    X, y = pairs
    returns = 0.01 * np.column_stack([y, -y, X[:, 0]])
    policy = Linear(features=RandomFourier(6), decisions=Simplex())
    model = RobustPolicy(MeanCVaR(level=0.8), policy, ball=BALL, solver=LOOSE).fit(X, returns)
    model.save(tmp_path / "m.surefoot")
    loaded = load(tmp_path / "m.surefoot")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert Simplex().contains(loaded.predict(100 * X))
    assert loaded.worst_case(X, returns).value == model.worst_case(X, returns).value
    assert loaded.cost(X, returns) <= loaded.worst_case(X, returns).value


def apply(parameters, x):
    return parameters["t"] + jnp.dot(x, parameters["w"])


def init(rng, columns, decisions):
    return {"t": np.full(decisions, 3.0), "w": np.zeros((columns, decisions))}


def square(z, y):
    return jnp.sum((z - y) ** 2)


def test_what_a_user_wrote_cannot_be_saved(pairs, tmp_path):
    solver = DASGD(max_steps=250, gap_tol=1e9)
    with pytest.warns(ConvergenceWarning, match="DASGD ran out of steps"):  # one check cannot settle
        model = RobustPolicy(COST, CustomPolicy(init, apply), ball=BALL, solver=solver).fit(*pairs)
    assert np.isfinite(model.predict(pairs[0])).all()
    message = "^policy must be made of numbers, text, arrays and registered classes to be saved, got"
    with pytest.raises(ModelFileError, match=message):
        model.save(tmp_path / "m.surefoot")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "part"),
    [("cost_function", CustomCost(square)), ("solver.optimizer", DASGD(optimizer=optax.sgd(0.01)))],
)
def test_parts_that_a_user_wrote_are_named(name, part):
    message = f"^{name} must be made of numbers, text, arrays and registered classes to be saved, got"
    with pytest.raises(ModelFileError, match=message):
        pack(name.split(".")[0], part, {})
