"""Model files of general policies: they decide as before, learn on as before, and need no JAX to load."""

import importlib
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest

from surefoot import DASGD, RobustPolicy, WassersteinBall, load
from surefoot.costs import CustomCost, MeanCVaR, Newsvendor
from surefoot.estimators.persistence import encode
from surefoot.exceptions import ConvergenceWarning, MissingExtraError, ModelFileError
from surefoot.policies import MLP, CustomPolicy, Linear, RandomFourier
from surefoot.sets import Simplex

COST = Newsvendor(1.0, 0.2)
QUICK = DASGD(max_steps=500, gap_tol=1e3)
BALL = WassersteinBall(0.1)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, 3.0 + X @ [1.0, -0.5] + 0.3 * rng.normal(size=60)


@pytest.fixture(scope="module")
def model(pairs):
    X, y = pairs
    frame = pd.DataFrame(X, columns=["price", "heat"])
    return RobustPolicy(COST, MLP((8,)), ball=BALL, solver=QUICK).fit(frame, y)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m.surefoot"
    model.save(path)
    return path


def frame(X):
    return pd.DataFrame(X, columns=["price", "heat"])


def test_a_loaded_model_is_the_same_to_the_last_bit(model, path, pairs):
    X, y = pairs
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict(frame(X)), model.predict(frame(X)))
    assert loaded.certificate_ == model.certificate_
    assert loaded.get_params() == model.get_params()
    for name in ("radius_", "multiplier_", "n_steps_", "status_", "converged_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.worst_case(frame(X), y).value == model.worst_case(frame(X), y).value
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


def test_loading_and_deciding_need_no_jax(path, model, pairs):
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
    assert float(out) == model.predict(frame([[1.0, -2.0]]))[0]


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
    model = RobustPolicy(MeanCVaR(level=0.8), policy, ball=BALL, solver=QUICK).fit(X, returns)
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
    with pytest.warns(ConvergenceWarning, match="Ran out of steps"):  # one check cannot settle
        model = RobustPolicy(COST, CustomPolicy(init, apply), ball=BALL, solver=solver).fit(*pairs)
    assert np.isfinite(model.predict(pairs[0])).all()
    message = "^policy must be made of numbers, text and Surefoot's own classes to be saved, got"
    with pytest.raises(ModelFileError, match=message):
        model.save(tmp_path / "m.surefoot")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "part"),
    [("cost_function", CustomCost(square)), ("optimizer", DASGD(optimizer=optax.sgd(0.01)))],
)
def test_parts_that_a_user_wrote_are_named(name, part):
    message = f"^{name} must be made of numbers, text and Surefoot's own classes to be saved, got"
    with pytest.raises(ModelFileError, match=message):
        encode("cost_function", part)
