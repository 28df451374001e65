"""Algorithm 1 as printed: the kernel against the readable twin, and the printed details."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.engines.literal_kernel import literal_steps
from tests.oracles.literal_twin import literal_update

law = settings(derandomize=True, deadline=None)


def data(seed, rows=10, columns=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, X @ rng.normal(size=columns) + rng.normal(size=rows)


OPTIONS = {
    "slopes": (0.2, 1.0, 0.3), "radius": 0.3, "order": 2, "step_sizes": (0.01, 0.02, 0.05),
    "inner_steps": 4, "epsilon": 1e-3, "movable": np.ones(4),
}  # fmt: skip


def kernel(X, y, draws, theta, gamma, options):
    theta = theta.copy()
    gamma, negative = literal_steps(
        X, y, draws, *options["slopes"], options["radius"], options["order"], *options["step_sizes"],
        options["inner_steps"], options["epsilon"], options["movable"], theta, gamma,
    )  # fmt: skip
    return theta, gamma, negative


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("order", "smoothing", "frozen", "inner_steps"),
    list(itertools.product((1, 2), (0.0, 0.3), (False, True), (0, 1, 10))),
)
def test_kernel_takes_the_printed_steps(order, smoothing, frozen, inner_steps):
    X, y = data(1)
    options = {
        **OPTIONS, "order": order, "slopes": (0.2, 1.0, smoothing), "inner_steps": inner_steps,
        "movable": np.array([1.0, 0.0 if frozen else 1.0, 1.0, 0.0 if frozen else 1.0]),
    }  # fmt: skip
    rng = np.random.default_rng(2)
    theta, gamma = rng.normal(size=4), 0.02
    draws = rng.integers(10, size=200)
    for i in draws:
        # From the same point each time: two runs of their own would part at a kink.
        stepped, moved_gamma, was_negative = kernel(X, y, np.array([i]), theta, gamma, options)
        theta, gamma = literal_update(theta, gamma, (X[i], y[i]), **options)
        np.testing.assert_allclose(stepped, theta, rtol=1e-10, atol=1e-10)
        assert moved_gamma == pytest.approx(gamma, rel=1e-10, abs=1e-10)
        assert was_negative == (gamma < 0)
    theta, gamma = np.ones(4), 0.5
    many = kernel(X, y, draws[:50], theta, gamma, options)
    for i in draws[:50]:
        theta, gamma = literal_update(theta, gamma, (X[i], y[i]), **options)
    np.testing.assert_allclose(many[0], theta, rtol=1e-6, atol=1e-6)
    assert many[1] == pytest.approx(gamma, rel=1e-6, abs=1e-6)


@given(seed=st.integers(0, 10_000), inner_steps=st.integers(0, 6))
@law
def test_k_plus_one_inner_steps_are_taken(seed, inner_steps):
    # A slope that never changes and gamma = 0: every inner step moves x by eta w theta.
    rng = np.random.default_rng(seed)
    theta, x, y = rng.normal(size=3), rng.normal(size=3), 1e6
    options = {**OPTIONS, "inner_steps": inner_steps, "movable": np.ones(3), "order": 2}
    alpha, beta, eta = options["step_sizes"]
    moved = x - (inner_steps + 1) * eta * 1.0 * theta  # w = -b far below the outcome
    expected = theta - alpha * -1.0 * moved
    distance = np.linalg.norm(moved - x) ** 2
    for result in (
        literal_update(theta, 0.0, (x, y), **options),
        kernel(x[None, :], np.array([y]), np.zeros(1, dtype=int), theta, 0.0, options)[:2],
    ):
        np.testing.assert_allclose(result[0], expected, atol=1e-12)
        assert result[1] == pytest.approx(-beta * (0.3**2 - distance), abs=1e-12)


def test_a_large_epsilon_stops_before_the_first_inner_step():
    X, y = data(3)
    options = {**OPTIONS, "epsilon": 1e3}
    theta, gamma = np.ones(4), 0.5
    stepped, moved_gamma, _ = kernel(X, y, np.array([0]), theta, gamma, options)
    again = literal_update(theta, gamma, (X[0], y[0]), **options)
    assert moved_gamma == again[1] == pytest.approx(0.5 - 0.02 * 0.3**2)  # distance 0
    np.testing.assert_allclose(stepped, again[0])


@pytest.mark.parametrize("order", [1, 2])
def test_nothing_keeps_the_multiplier_positive(order):
    X, y = data(4)
    options = {**OPTIONS, "order": order, "step_sizes": (0.01, 1.0, 0.01), "radius": 1.0}
    _, gamma, negative = kernel(X, y, np.arange(10), 0.01 * np.ones(4), 0.5, options)
    assert gamma < 0
    assert 8 <= negative <= 10


def test_the_norm_has_no_gradient_at_the_start():
    # Order 1: the first inner step feels no multiplier at all, however large it is.
    x, y, theta = np.array([1.0, 2.0]), 100.0, np.array([0.3, 0.4])
    options = {**OPTIONS, "order": 1, "inner_steps": 0, "movable": np.ones(2)}
    _, gamma = literal_update(theta, 1e6, (x, y), **options)
    distance = 0.05 * 0.5  # eta w ||theta||
    assert gamma - 1e6 == pytest.approx(-0.02 * (0.3 - distance), rel=1e-4)


def test_columns_held_still_do_not_move_but_learn():
    x, y, theta = np.array([1.0, 2.0]), 100.0, np.array([0.3, 0.4])
    options = {**OPTIONS, "movable": np.array([1.0, 0.0])}
    stepped, gamma = literal_update(theta, 0.0, (x, y), **options)
    assert stepped[1] == pytest.approx(0.4 + 0.01 * 2.0)  # learns from its own, unmoved value
    assert gamma == pytest.approx(-0.02 * (0.09 - (5 * 0.05 * 0.3) ** 2))
