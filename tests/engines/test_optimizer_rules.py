"""How parameters step: each rule against a loop in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from surefoot.engines.optimizer_rules import Travel, cosine, distance_over_gradients, given, scaled


def adam(rate, *, decay):
    return scaled(optax.scale_by_adam, rate, decay=decay)


def plain(rate, *, decay):
    return scaled(optax.identity, rate, decay=decay)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def gradients(count=6):
    rng = np.random.default_rng(0)
    return [{"a": rng.normal(size=(3, 2)), "b": rng.normal(size=2)} for _ in range(count)]


def follow(rule, reach=None, total=10.0):
    """Parameters after each of six gradients."""
    trained = {"a": jnp.ones((3, 2)), "b": jnp.zeros(2)}
    state, seen = rule.init(trained), []
    if isinstance(state, Travel):
        state = state._replace(travelled=reach)
    for k, gradient in enumerate(gradients()):
        steps, state = rule.update(
            jax.tree.map(jnp.asarray, gradient), state, trained, progress=k / total
        )
        trained = jax.tree.map(jnp.add, trained, steps)
        seen.append({name: np.asarray(leaf) for name, leaf in trained.items()})
    return seen


@pytest.mark.parametrize("decay", [False, True])
def test_plain_is_the_paper_s_step(decay):
    at = {"a": np.ones((3, 2)), "b": np.zeros(2)}
    for k, (seen, gradient) in enumerate(
        zip(follow(plain(0.1, decay=decay)), gradients(), strict=True)
    ):
        rate = 0.1 * (0.5 + 0.5 * np.cos(np.pi * k / 10.0)) if decay else 0.1
        for name in at:
            at[name] = at[name] - rate * gradient[name]
            np.testing.assert_allclose(seen[name], at[name], rtol=1e-12)


def test_adam_is_adam():
    at, first, second = {"a": np.ones((3, 2)), "b": np.zeros(2)}, {}, {}
    for k, (seen, gradient) in enumerate(zip(follow(adam(0.1, decay=False)), gradients(), strict=True)):
        for name, g in gradient.items():
            first[name] = 0.9 * first.get(name, 0.0) + 0.1 * g
            second[name] = 0.999 * second.get(name, 0.0) + 0.001 * g * g
            m, v = first[name] / (1 - 0.9 ** (k + 1)), second[name] / (1 - 0.999 ** (k + 1))
            at[name] = at[name] - 0.1 * m / (np.sqrt(v) + 1e-8)
            np.testing.assert_allclose(seen[name], at[name], rtol=1e-7)


def test_distance_over_gradients_needs_no_rate():
    start = {"a": np.ones((3, 2)), "b": np.zeros(2)}
    at = {name: leaf.copy() for name, leaf in start.items()}
    squares, far = {"a": 0.0, "b": 0.0}, {"a": 0.5, "b": 0.2}
    for seen, gradient in zip(follow(distance_over_gradients(), dict(far)), gradients(), strict=True):
        for name, g in gradient.items():
            squares[name] += (g * g).sum()
            at[name] = at[name] - far[name] / np.sqrt(squares[name]) * g
            far[name] = max(far[name], np.linalg.norm(at[name] - start[name]))
            np.testing.assert_allclose(seen[name], at[name], rtol=1e-12)


def test_a_gradient_of_zero_moves_nothing():
    trained = {"a": jnp.ones(2)}
    for rule in (distance_over_gradients(), adam(0.1, decay=True), plain(0.1, decay=False)):
        state = rule.init(trained)
        steps, _ = rule.update({"a": jnp.zeros(2)}, state, trained, progress=0.0)
        np.testing.assert_array_equal(np.asarray(steps["a"]), [0.0, 0.0])


def test_any_transformation_of_optax_keeps_its_own_schedule():
    schedule = optax.linear_schedule(0.1, 0.0, 3)
    rule = given(optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(schedule)))
    seen = follow(rule, total=1.0)
    at = {"a": np.ones((3, 2)), "b": np.zeros(2)}
    for k, gradient in enumerate(gradients()):
        norm = np.sqrt(sum((g * g).sum() for g in gradient.values()))
        for name, g in gradient.items():
            at[name] = at[name] - 0.1 * max(0.0, 1 - k / 3) * g * min(1.0, 0.5 / norm)
            np.testing.assert_allclose(seen[k][name], at[name], rtol=1e-6)
    np.testing.assert_array_equal(seen[3]["a"], seen[5]["a"])  # the schedule has come to zero


def test_the_cosine_falls_from_one_to_zero_and_stays():
    values = [float(cosine(p)) for p in (-1.0, 0.0, 0.5, 1.0, 7.0)]
    np.testing.assert_allclose(values, [1.0, 1.0, 0.5, 0.0, 0.0], atol=1e-15)


def test_equal_rules_share_compiled_code():
    assert adam(0.1, decay=True) == adam(0.1, decay=True)
    assert hash(adam(0.1, decay=True)) == hash(adam(0.1, decay=True))
    assert adam(0.1, decay=True) != adam(0.2, decay=True)
    assert distance_over_gradients() == distance_over_gradients()
    own = optax.sgd(0.1)
    assert given(own) == given(own)
