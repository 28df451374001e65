import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surefoot.exceptions import InvalidTypeError, MissingExtraError
from surefoot.policies import CustomPolicy, PolicyParameters, Polynomial, Units
from surefoot.sets import Budget, Simplex

TRACE = "apply(parameters, x) must be a function that JAX can trace, got "


def init(rng, n_columns, n_decisions):
    return {"size": np.ones(n_decisions), "slopes": [rng.normal(size=(n_columns, n_decisions)), 0.5]}


def apply(parameters, x):
    return parameters["size"] * jnp.exp(x @ parameters["slopes"][0]) + parameters["slopes"][1]


def by_hand(parameters, X):
    return parameters["size"] * np.exp(X @ parameters["slopes"][0]) + parameters["slopes"][1]


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 4, 3)])
def test_it_is_the_function_row_by_row(shape):
    policy, rng = CustomPolicy(init, apply), np.random.default_rng(0)
    trained, X = policy.initial(rng, 3, 2), rng.normal(size=shape)
    found = policy.evaluate(trained, {}, X, np)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    assert found.shape == (*shape[:-1], 2)
    np.testing.assert_allclose(found, by_hand(trained, X), rtol=1e-13)
    with jax.enable_x64(True):
        other = policy.evaluate(trained, {}, jnp.asarray(X), jnp)
        np.testing.assert_allclose(other, found, rtol=1e-13)


def test_gradients():
    policy, rng = CustomPolicy(init, apply), np.random.default_rng(0)
    trained, X = policy.initial(rng, 3, 2), rng.normal(size=(4, 3))
    with jax.enable_x64(True):
        slopes = jax.jit(jax.grad(lambda t: policy.evaluate(t, {}, jnp.asarray(X), jnp).sum()))(trained)
        slopes = jax.tree.map(np.asarray, slopes)
    np.testing.assert_allclose(slopes["size"], np.exp(X @ trained["slopes"][0]).sum(axis=0))
    assert slopes["slopes"][1] == pytest.approx(8.0)


def test_it_decides_from_features_within_its_limits():
    policy = CustomPolicy(init, apply, features=Polynomial(2), decisions=Budget(1.0))
    rng = np.random.default_rng(1)
    trained, X = policy.initial(rng, 2, 2), rng.normal(size=(6, 1))
    units = Units(*(np.full(1, 7.0),) * 4)  # a custom policy works in the user's own units
    found = policy.decide(PolicyParameters(trained, units, np.zeros(0)), X)
    expected = Budget(1.0).map_into(by_hand(trained, np.hstack([X, X**2])))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_start_repeats_with_its_generator():
    policy = CustomPolicy(init, apply)
    first, second = (policy.initial(np.random.default_rng(3), 2, 1) for _ in range(2))
    np.testing.assert_array_equal(first["slopes"][0], second["slopes"][0])


def test_functions_that_fit_pass():
    assert CustomPolicy(init, apply).why_not(3, 2) is None
    assert CustomPolicy(init, apply, decisions=Simplex()).why_not(3, 2) is None
    assert CustomPolicy(init, apply, decisions=Simplex()).why_not(3, 1) == (
        "Simplex() needs at least two decisions to share between, got 1"
    )


def failing(rng, n_columns, n_decisions):
    raise RuntimeError("no idea")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"init": failing}, "init(rng, 3, 2) raised RuntimeError: no idea"),
        (
            {"init": lambda rng: 0.0},
            "init(rng, 3, 2) raised TypeError: <lambda>() takes 1 positional argument but 3 were given",
        ),
        (
            {"apply": lambda parameters, x: x},
            "apply(parameters, x) must return 2 decisions for one context (shape (2,)), got shape (3,)",
        ),
        (
            {"apply": lambda parameters, x: x.sum()},
            "apply(parameters, x) must return 2 decisions for one context (shape (2,)), got shape ()",
        ),
        (
            {"apply": lambda parameters, x: (x[0], x[1])},
            "apply(parameters, x) must return 2 decisions for one context (shape (2,)), got tuple",
        ),
        (
            {"apply": lambda parameters, x: None},
            "apply(parameters, x) must return 2 decisions for one context (shape (2,)), got NoneType",
        ),
        ({"apply": lambda parameters, x: parameters["sizes"]}, TRACE + "KeyError: 'sizes'"),
        ({"apply": lambda x: x}, TRACE + "TypeError: <lambda>() takes 1 positional argument but 2 were given"),
    ],
)  # fmt: skip
def test_functions_that_do_not_fit_are_explained(parts, reason):
    policy = CustomPolicy(**{"init": init, "apply": apply, **parts})
    assert policy.why_not(3, 2) == reason


def test_one_decision_is_told_in_the_singular():
    policy = CustomPolicy(init, lambda parameters, x: x.sum())
    assert policy.why_not(3, 1) == (
        "apply(parameters, x) must return 1 decision for one context (shape (1,)), got shape ()"
    )


def test_python_conditions_on_values_are_explained():
    policy = CustomPolicy(init, lambda parameters, x: x[:2] if x[0] > 0 else -x[:2])
    assert policy.why_not(3, 2).startswith(TRACE + "TracerBoolConversionError: Attempted boolean")


@pytest.mark.parametrize("name", ["init", "apply"])
@pytest.mark.parametrize("value", [None, 3, "exp"])
def test_both_parts_are_functions(name, value):
    message = f"{name} must be a function, got {value!r}."
    with pytest.raises(InvalidTypeError, match=f"^{re.escape(message)}$"):
        CustomPolicy(**{"init": init, "apply": apply, name: value})


def test_both_parts_are_needed():
    with pytest.raises(TypeError, match="missing 2 required positional arguments: 'init' and 'apply'"):
        CustomPolicy()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'apply'"):
        CustomPolicy(init)


def test_the_same_functions_make_the_same_policy():
    assert CustomPolicy(init, apply) == CustomPolicy(init, apply)
    assert hash(CustomPolicy(init, apply)) == hash(CustomPolicy(init, apply))


def test_without_jax_the_install_command_is_named(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr("importlib.import_module", missing)
    message = 'CustomPolicy needs JAX: run pip install "surefoot[jax]".'
    policy = CustomPolicy(init, apply)
    for use in (lambda: policy.why_not(3, 2), lambda: policy.evaluate({}, {}, np.ones((1, 3)), np)):
        with pytest.raises(MissingExtraError, match=f"^{re.escape(message)}$"):
            use()
