import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.policies import (
    ELU,
    MLP,
    Linear,
    MaxAffine,
    PolicyParameters,
    Polynomial,
    RandomFourier,
    Sigmoid,
    Units,
)
from surefoot.policies.base import standardised
from surefoot.sets import Box, Budget, Simplex

repeatable = settings(
    derandomize=True, deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
seeds = st.integers(0, 2**32)
COLUMNS, DECISIONS = 3, 2
POLICIES = [
    Linear(),
    Linear(intercept=False),
    MaxAffine(pieces=3),
    MaxAffine(pieces=3, smoothing=0.5),
    Sigmoid(-1.0, 4.0),
    ELU(alpha=2.0),
    MLP(hidden=(4, 5)),
    MLP(hidden=(4,), activation="tanh"),
]
LIMITS = [None, Box(-0.5, (0.5, 2.0)), Simplex(), Budget(1.5)]


def draw(policy, seed=0):
    """Random units, and parameters in the shapes in which learning starts."""
    rng = np.random.default_rng(seed)
    units = Units(
        rng.normal(size=COLUMNS),
        rng.uniform(0.5, 2.0, size=COLUMNS),
        rng.normal(size=DECISIONS),
        rng.uniform(0.5, 2.0, size=DECISIONS),
    )
    start = policy.initial(rng, COLUMNS, DECISIONS)
    trained = {name: rng.normal(size=array.shape) for name, array in start.items()}
    return trained, units, rng


def limited(policy, decisions):
    return type(policy)(**{**vars(policy), "decisions": decisions})


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_learning_starts_at_the_same_place_from_the_same_seed(policy):
    starts = [policy.initial(np.random.default_rng(seed), COLUMNS, DECISIONS) for seed in (7, 7, 8)]
    assert starts[0].keys() == starts[1].keys()
    for name in starts[0]:
        np.testing.assert_array_equal(starts[0][name], starts[1][name])
        assert starts[0][name].dtype == np.float64
    same = all(np.array_equal(starts[0][name], starts[2][name]) for name in starts[0])
    assert same is not isinstance(policy, MaxAffine | MLP)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_first_decisions_are_near_a_reasonable_constant(policy):
    _, units, rng = draw(policy)
    start = policy.initial(rng, COLUMNS, DECISIONS)
    contexts = units.mean + units.spread * rng.normal(size=(200, COLUMNS))
    found = policy.evaluate(start, units.tree(), contexts, np)
    if isinstance(policy, Linear):
        expected = units.centre if policy.intercept else np.zeros(DECISIONS)
    elif isinstance(policy, Sigmoid):
        expected = np.full(DECISIONS, 1.5)
    elif isinstance(policy, ELU):
        expected = np.where(units.centre > 0, units.centre, 2.0 * np.expm1(units.centre))
    else:
        expected = units.centre
    assert (np.abs(found - expected) <= 0.8 * units.unit).all()
    assert (np.abs(found.mean(axis=0) - expected) <= 0.3 * units.unit).all()


@pytest.mark.parametrize(
    "policy", [*POLICIES, *(limited(POLICIES[0], limits) for limits in LIMITS[1:])], ids=repr
)
def test_both_namespaces_and_all_leading_axes(policy):
    trained, units, rng = draw(policy)
    contexts = rng.normal(size=(2, 4, COLUMNS))
    found = policy.evaluate(trained, units.tree(), contexts, np)
    assert found.shape == (2, 4, DECISIONS)
    assert policy.decisions is None or policy.decisions.contains(found)
    for i in range(2):
        np.testing.assert_allclose(
            policy.evaluate(trained, units.tree(), contexts[i], np), found[i], rtol=1e-12, atol=1e-13
        )
    np.testing.assert_allclose(
        policy.evaluate(trained, units.tree(), contexts[1, 2], np), found[1, 2], rtol=1e-12, atol=1e-13
    )
    with jax.enable_x64(True):
        evaluate = jax.jit(lambda t, u, x: policy.evaluate(t, u, x, jnp))
        other = evaluate(trained, units.tree(), contexts)
        assert other.dtype == jnp.float64
        np.testing.assert_allclose(other, found, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("policy", [*POLICIES, limited(POLICIES[-1], Simplex())], ids=repr)
def test_gradients_in_parameters_and_contexts(policy):
    trained, units, rng = draw(policy, seed=3)
    contexts = rng.normal(size=(4, COLUMNS))
    mix = rng.normal(size=(4, DECISIONS))

    def value(tree, xp=np):
        return (mix * policy.evaluate(tree[0], units.tree(), tree[1], xp)).sum()

    with jax.enable_x64(True):
        slopes = jax.jit(jax.grad(lambda tree: value(tree, jnp)))((trained, contexts))
        slopes = jax.tree.map(np.asarray, slopes)
    way = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), (trained, contexts))
    ahead, behind = (
        jax.tree.map(lambda leaf, d, sign=sign: leaf + sign * 1e-6 * d, (trained, contexts), way)
        for sign in (1.0, -1.0)
    )
    numeric = (value(ahead) - value(behind)) / 2e-6
    along = sum(
        float((slope * d).sum())
        for slope, d in zip(jax.tree.leaves(slopes), jax.tree.leaves(way), strict=True)
    )
    assert abs(numeric) > 1e-3  # the law says something
    assert along == pytest.approx(numeric, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("policy", [p for p in POLICIES if not isinstance(p, Linear)], ids=repr)
@pytest.mark.parametrize("limits", LIMITS, ids=repr)
def test_to_decide_is_to_evaluate_features_within_the_limits(policy, limits):
    policy = type(policy)(
        **{**vars(policy), "decisions": limits, "features": lambda X: np.cos(X[:, :3])}
    )
    trained, units, rng = draw(policy)
    contexts = rng.normal(size=(5, 4))
    found = policy.decide(PolicyParameters(trained, units, np.zeros(0)), contexts)
    free = limited(policy, None).evaluate(trained, units.tree(), np.cos(contexts[:, :3]), np)
    np.testing.assert_array_equal(found, free if limits is None else limits.map_into(free))
    assert type(found) is np.ndarray


@repeatable
@given(seeds, st.booleans(), st.sampled_from(LIMITS))
def test_linear_parameters_in_the_user_s_units_decide_the_same(seed, intercept, limits):
    policy = Linear(intercept=intercept, decisions=limits)
    trained, units, rng = draw(policy, seed)
    contexts = 10 * rng.normal(size=(6, COLUMNS))
    parameters = policy.in_user_units(trained, units.tree())
    assert parameters.theta.shape == (COLUMNS, DECISIONS)
    assert parameters.intercept.shape == (DECISIONS,)
    np.testing.assert_allclose(
        policy.decide(parameters, contexts),
        policy.evaluate(trained, units.tree(), contexts, np),
        rtol=1e-10,
        atol=1e-10,
    )
    if not intercept:
        np.testing.assert_array_equal(parameters.intercept, np.zeros(DECISIONS))
        np.testing.assert_array_equal(policy.raw(trained, units.tree(), np.zeros(COLUMNS), np), [0, 0])


@repeatable
@given(seeds, st.integers(0, len(POLICIES) - 1), st.floats(-5, 5), st.integers(-3, 3))
def test_units_of_contexts_do_not_matter(seed, number, shift, power):
    policy = POLICIES[number]
    if policy == Linear(intercept=False):
        shift = 0.0
    trained, units, rng = draw(policy, seed)
    contexts, factor = rng.normal(size=(4, COLUMNS)), 2.0**power
    moved = Units(factor * units.mean + shift, factor * units.spread, units.centre, units.unit)
    np.testing.assert_allclose(
        policy.evaluate(trained, moved.tree(), factor * contexts + shift, np),
        policy.evaluate(trained, units.tree(), contexts, np),
        rtol=1e-9,
        atol=1e-9,
    )


def test_standardised():
    units = {"mean": np.array([1.0, 0.0]), "spread": np.array([2.0, 0.5])}
    np.testing.assert_array_equal(standardised(units, np.array([[3.0, 1.0]])), [[1.0, 2.0]])


def test_units_by_name():
    arrays = {name: np.arange(i + 1.0) for i, name in enumerate(("mean", "spread", "centre", "unit"))}
    assert Units(**arrays).tree() == arrays


def test_parameters_print_sizes_rather_than_numbers():
    units = Units(*(np.zeros(1),) * 4)
    parameters = PolicyParameters(
        {"theta": np.zeros((3, 2)), "intercept": np.zeros(2)}, units, np.zeros(0)
    )
    assert repr(parameters) == "PolicyParameters(theta (3, 2), intercept (2,))"
    assert repr(PolicyParameters([np.zeros(2)], units, np.zeros(0))) == "PolicyParameters(list)"


def test_limits_must_fit_the_decisions():
    assert Linear().why_not(3, 1) is None
    assert Linear(decisions=Simplex()).why_not(3, 2) is None
    assert Linear(decisions=Simplex()).why_not(3, 1) == (
        "Simplex() needs at least two decisions to share between, got 1"
    )
    assert MLP(decisions=Box((0, 0, 0), 1)).why_not(5, 2) == (
        "lower of the decisions' Box must be one number or one per decision (2), got 3 numbers"
    )


@pytest.mark.parametrize("kind", [Linear, MaxAffine, Sigmoid, ELU, MLP])
def test_every_policy_checks_what_all_share(kind):
    message = "decisions must be a Box, Simplex() or Budget(total), got (0, 1)."
    with pytest.raises(InvalidTypeError, match=f"^{re.escape(message)}$"):
        kind(decisions=(0, 1))
    for features in (2, StandardScaler, Polynomial, RandomFourier):
        message = (
            "features must be a FeatureMap, a transformer, a function of a context matrix or None, "
            f"got {features!r}."
        )
        with pytest.raises(InvalidTypeError, match=f"^{re.escape(message)}$"):
            kind(features=features)
    with pytest.raises(InvalidTypeError, match=r"^decisions must be a Box.*got <class .*Simplex'>\.$"):
        kind(decisions=Simplex)


def test_fitting_a_policy_fits_its_feature_map():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for policy in (Linear(), MLP(features=np.cos), ELU(features=Polynomial(2))):
        assert policy.fitted(X) == policy
    policy = MaxAffine(pieces=3, features=RandomFourier(5), decisions=Budget(1.0))
    fitted = policy.fitted(X)
    assert fitted.features == RandomFourier(5).fitted(X)
    assert (fitted.pieces, fitted.decisions) == (3, Budget(1.0))
    assert policy.features == RandomFourier(5)
    assert fitted.fitted(10 * X) == fitted
    with pytest.raises(InvalidInputError, match=r"^features must be fitted before they are used"):
        policy.transform(X)
