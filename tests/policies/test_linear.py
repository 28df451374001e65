import math
import re
from dataclasses import FrozenInstanceError

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.policies import Linear, LinearParameters, Policy, Units
from surefoot.sets import Box

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32)


def squares(X):
    return np.hstack([X, X**2])


def draw(seed, rows=5, columns=3, products=2):
    rng = np.random.default_rng(seed)
    parameters = LinearParameters(rng.normal(size=(columns, products)), rng.normal(size=products))
    return parameters, rng.normal(size=(rows, columns))


@repeatable
@given(seeds)
def test_decisions_are_an_inner_product_plus_an_intercept(seed):
    parameters, X = draw(seed)
    decisions = Linear().decide(parameters, X)
    assert decisions.shape == (5, 2)
    for i in range(5):
        for j in range(2):
            expected = math.fsum(X[i] * parameters.theta[:, j]) + parameters.intercept[j]
            assert decisions[i, j] == pytest.approx(expected, abs=1e-12)


@repeatable
@given(seeds, st.floats(0, 1))
def test_decisions_are_affine_in_the_context_and_in_the_parameters(seed, share):
    parameters, X = draw(seed)
    others, X2 = draw(seed + 1)
    policy = Linear()
    np.testing.assert_allclose(
        policy.decide(parameters, share * X + (1 - share) * X2),
        share * policy.decide(parameters, X) + (1 - share) * policy.decide(parameters, X2),
        atol=1e-12,
    )
    mixed = LinearParameters(
        share * parameters.theta + (1 - share) * others.theta,
        share * parameters.intercept + (1 - share) * others.intercept,
    )
    np.testing.assert_allclose(
        policy.decide(mixed, X),
        share * policy.decide(parameters, X) + (1 - share) * policy.decide(others, X),
        atol=1e-12,
    )


def test_features_come_before_the_inner_product():
    parameters = LinearParameters(np.array([[1.0], [10.0]]), np.array([0.5]))
    X = np.array([[2.0], [3.0]])
    np.testing.assert_array_equal(Linear(features=squares).decide(parameters, X), [[42.5], [93.5]])
    np.testing.assert_array_equal(Linear(features=squares).transform(X), [[2, 4], [3, 9]])


def test_without_features_contexts_pass_through():
    X = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(Linear().transform(X), X)


def test_features_become_floats():
    mapped = Linear(features=lambda X: [[1], [2]]).transform(np.zeros((2, 1)))
    assert mapped.dtype == np.float64
    np.testing.assert_array_equal(mapped, [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (lambda X: X[1:], "features(X) must have one row per row of X (2), got 1."),
        (lambda X: X.T, "features(X) must have one row per row of X (2), got 3."),
        (
            lambda X: np.where(X == 4, np.nan, X),
            "features(X) must be finite (no NaN, no infinity), got NaN in row 1, column 1.",
        ),
        (
            lambda X: np.where(X == 0, np.inf, X),
            "features(X) must be finite (no NaN, no infinity), got infinity in row 0, column 0.",
        ),
        (
            lambda X: X.sum(axis=1),
            "features(X) must be a matrix (rows, columns), got an array of shape (2,).",
        ),
        (lambda X: None, "features(X) must be numeric, got None."),
        (
            lambda X: X[:, :0],
            "features(X) must have at least one row and one column, got shape (2, 0).",
        ),
        (lambda X: X.astype(str), "features(X) must be numeric, got text or dates (<U32)."),
        (lambda X: X + 1j, "features(X) must be real, got complex data."),
    ],
)
def test_unusable_features_are_refused(features, message):
    policy = Linear(features=features)
    X = np.arange(6.0).reshape(2, 3)
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        policy.transform(X)
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        policy.decide(LinearParameters(np.ones((3, 1)), np.zeros(1)), X)


# An offset


def wave(X):
    return np.column_stack([np.sin(X[:, 0]), 2.0 * X[:, 1]])


@repeatable
@given(seeds)
def test_an_offset_is_added_to_what_the_linear_part_decides(seed):
    parameters, X = draw(seed)
    decisions = Linear(offset=wave).decide(parameters, X)
    np.testing.assert_allclose(decisions, Linear().decide(parameters, X) + wave(X), rtol=1e-14)
    given_offsets = np.random.default_rng(seed).normal(size=(5, 2))
    np.testing.assert_allclose(
        Linear(offset=wave).decide(parameters, X, given_offsets),
        Linear().decide(parameters, X) + given_offsets,
        rtol=1e-14,
    )


def test_limits_cut_the_sum_and_features_are_the_linear_part_s_alone():
    parameters = LinearParameters(np.array([[1.0], [10.0]]), np.array([0.5]))
    X = np.array([[2.0], [3.0]])
    policy = Linear(features=squares, offset=lambda X: -40.0 * X, decisions=Box(-30.0, 0.0))
    # 42.5 - 80 and 93.5 - 120
    np.testing.assert_array_equal(policy.decide(parameters, X), [[-30.0], [-26.5]])


def test_inputs_are_features_and_behind_them_offsets():
    X = np.arange(6.0).reshape(3, 2)
    policy = Linear(features=squares, offset=wave)
    np.testing.assert_array_equal(policy.inputs(X), np.hstack([squares(X), wave(X)]))
    honest = np.ones((3, 2))
    np.testing.assert_array_equal(policy.inputs(X, honest), np.hstack([squares(X), honest]))
    assert policy.n_fixed(2) == 2
    assert Linear(features=squares).n_fixed(2) == 0
    np.testing.assert_array_equal(Linear(features=squares).inputs(X), squares(X))
    np.testing.assert_array_equal(policy.offsets(X), wave(X))
    assert Linear().offsets(X) is None


def test_a_vector_of_offsets_is_one_product():
    X = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(Linear(offset=lambda X: X[:, 0]).offsets(X), X[:, :1])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_raw_decisions_in_units_are_the_same_policy(intercept, xp):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3)) + 2.0
    units = Units(X.mean(axis=0), X.std(axis=0), np.array([0.5, -1.0]), np.ones(2)).tree()
    theta, t = rng.normal(size=(3, 2)), rng.normal(size=2)
    parameters = LinearParameters(theta, t if intercept else np.zeros(2))
    policy = Linear(intercept, offset=wave)
    trained = policy.from_user_units(parameters, units)
    found = policy.raw(trained, units, policy.inputs(X), xp)
    expected = X @ theta + parameters.intercept + wave(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if xp is jnp else 1e-12)
    back = policy.in_user_units(trained, units)
    np.testing.assert_allclose(back.theta, theta, rtol=1e-12)
    np.testing.assert_allclose(back.intercept, parameters.intercept, atol=1e-12)
    # Offsets are in the user's own units: learning starts at them.
    start = policy.initial(rng, 3, 2)
    centre = units["centre"] if intercept else np.zeros(2)
    np.testing.assert_allclose(
        policy.raw(start, units, policy.inputs(X), np), wave(X) + centre, rtol=1e-14
    )


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (lambda X: X[1:], "offset(X) must have one row per row of X (2), got 1."),
        (
            lambda X: np.where(X == 4, np.nan, X),
            "offset(X) must be finite (no NaN, no infinity), got NaN in row 1, column 1.",
        ),
        (lambda X: None, "offset(X) must be numeric, got None."),
    ],
)
def test_unusable_offsets_are_refused(offset, message):
    policy = Linear(offset=offset)
    X = np.arange(6.0).reshape(2, 3)
    for call in (policy.offsets, policy.inputs):
        with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
            call(X)
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        policy.decide(LinearParameters(np.ones((3, 1)), np.zeros(1)), X)


@pytest.mark.parametrize("value", ["wave", 2, [wave]])
def test_an_offset_is_a_function(value):
    message = f"offset must be a function of a context matrix or None, got {value!r}."
    with pytest.raises(InvalidTypeError, match=f"^{re.escape(message)}$"):
        Linear(offset=value)


def test_an_offset_is_given_by_name_and_part_of_the_value():
    with pytest.raises(TypeError, match="positional argument"):
        Linear(True, wave)
    assert Linear(offset=wave) == Linear(offset=wave)
    assert Linear(offset=wave) != Linear()


# What is refused


@pytest.mark.parametrize("value", [1, "yes", None, 0.0])
def test_intercept_is_a_flag(value):
    message = f"intercept must be True or False, got {value!r}."
    with pytest.raises(InvalidTypeError, match=f"^{re.escape(message)}$"):
        Linear(intercept=value)


@pytest.mark.parametrize("value", ["squares", 2, [squares]])
def test_features_is_a_function(value):
    message = (
        "features must be a FeatureMap, a transformer, a function of a context matrix or None, "
        f"got {value!r}."
    )
    with pytest.raises(InvalidTypeError, match=f"^{re.escape(message)}$"):
        Linear(features=value)


def test_misspelt_options_are_type_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'fit_intercept'"):
        Linear(fit_intercept=False)


def test_policies_are_immutable_values():
    policy = Linear(intercept=np.False_, features=squares)
    assert policy.intercept is False
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'intercept'"):
        policy.intercept = True
    assert policy == Linear(intercept=False, features=squares)
    assert policy != Linear(intercept=False)
    assert len({Linear(), Linear(True), Linear(False)}) == 2


def test_repr_reads_back():
    assert repr(Linear(intercept=np.True_)) == (
        "Linear(features=None, decisions=None, intercept=True, offset=None)"
    )
    assert eval(repr(Linear(False)), {"Linear": Linear}) == Linear(False)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((1, 1), "LinearParameters(1 column, 1 product, norm 1, intercept [0.25])"),
        ((1000, 2), "LinearParameters(1000 columns, 2 products, norm 44.72, intercept [0.25 0.25])"),
    ],
)
def test_parameters_print_sizes_rather_than_numbers(shape, text):
    assert repr(LinearParameters(np.ones(shape), np.full(shape[1], 0.25))) == text


def test_parameters_are_immutable():
    parameters, _ = draw(0)
    for name in ("theta", "intercept"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(parameters, name, np.zeros(1))


def test_abstract_policies_cannot_be_made():
    with pytest.raises(TypeError, match=r"abstract.*initial, raw"):
        Policy()
