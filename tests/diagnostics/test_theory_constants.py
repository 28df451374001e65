"""Constants of Theorem 1 against sampled ratios: never exceeded, and not far above."""

import math
from dataclasses import replace

import numpy as np
import pytest

from surefoot.ambiguity.moves import best_moves
from surefoot.diagnostics.theory_constants import context_lengths, start, theorem_constants

DELTA = 0.8
PAIRS = 4_000


@pytest.fixture(scope="module")
def product(make_affine):
    """Centred contexts, so that the region's parameters are those of the policy."""
    found = make_affine(3, rows=30, columns=3, radius=0.05)
    return replace(found, contexts=found.contexts - found.weights @ found.contexts)


@pytest.fixture(scope="module")
def theta():
    return np.array([0.4, -0.2, 0.1])


GAMMA = 2.0


@pytest.fixture(scope="module")
def constants(product, theta):
    return theorem_constants(product, theta, GAMMA, lowest=0.0, smoothing=DELTA)


class Cost:
    """The smoothed cost and its gradients, written out once more."""

    def __init__(self, product):
        self.b, self.h = product.pieces.down, product.pieces.up

    def slope(self, r):
        k = (self.b + self.h) / (2 * DELTA)
        return np.clip(k * r + (self.h - self.b) / 2, -self.b, self.h)

    def by_parameters(self, theta, t, x, y):
        return self.slope(x @ theta + t - y) * np.append(x, 1.0)

    def by_context(self, theta, t, x, y):
        return self.slope(x @ theta + t - y) * theta


def in_ball(rng, radius, size):
    v = rng.standard_normal(size)
    return radius * rng.random() ** (1 / size) * v / np.linalg.norm(v)


def ratios(product, constants, what, seed=0):
    """Largest sampled ratio of gradient differences to differences of parameters or contexts."""
    rng, cost, best = np.random.default_rng(seed), Cost(product), 0.0
    B, R = math.sqrt(constants.context_norm**2 - 1), constants.parameter_norm
    for _ in range(PAIRS):
        x, th = in_ball(rng, B, 3), in_ball(rng, R, 3)
        step = 10 ** rng.uniform(-3, 0)
        x2 = x + in_ball(rng, step, 3) if what[1] == "x" else x
        moved = in_ball(rng, step, 4) if what[1] == "t" else np.zeros(4)
        th2 = th + moved[:3]
        if np.linalg.norm(x2) > B or np.linalg.norm(th2) > R:
            continue
        # Outcomes near the decision are where the cost bends.
        t, y = 0.0, x @ th + rng.uniform(-DELTA, DELTA)
        gradient = cost.by_parameters if what[0] == "t" else cost.by_context
        change = gradient(th2, t + moved[3], x2, y) - gradient(th, t, x, y)
        size = np.linalg.norm(x2 - x) if what[1] == "x" else np.linalg.norm(moved)
        best = max(best, np.linalg.norm(change) / size)
    return best


@pytest.mark.parametrize(
    ("what", "name", "within"),
    [("tt", "l_tt", 2), ("tx", "l_tx", 3), ("xt", "l_xt", 3), ("xx", "l_xx", 2)],
)
def test_lipschitz_constants_are_never_exceeded_and_nearly_reached(
    product, constants, what, name, within
):
    largest, stated = ratios(product, constants, what), getattr(constants, name)
    assert largest <= stated * (1 + 1e-9)
    assert largest >= stated / within


def gradient(product, theta, t, gamma):
    """Gradient of H in (theta, t, gamma) by the envelope theorem, and its parts row by row."""
    answer = best_moves(product, theta, t, gamma)
    moved = np.column_stack([product.contexts + answer.contexts, np.ones(len(answer.slope))])
    parts = np.column_stack([answer.slope[:, None] * moved, product.radius**2 - answer.distance])
    return product.weights @ parts, parts


def region_points(rng, constants):
    return (
        in_ball(rng, constants.parameter_norm, 3),
        rng.normal(0, 0.5),
        GAMMA * (1 + rng.exponential(0.2)),
    )


def test_smoothness_of_h_is_never_exceeded(product, constants):
    assert constants.mu > 0
    smoothed = replace(product, pieces=replace(product.pieces, smoothing=DELTA))
    rng, largest = np.random.default_rng(1), 0.0
    for _ in range(PAIRS):
        theta, t, gamma = region_points(rng, constants)
        other = theta + in_ball(rng, 0.01, 3)
        if np.linalg.norm(other) > constants.parameter_norm:
            continue
        other_t, other_gamma = t + rng.normal(0, 0.01), max(gamma + rng.normal(0, 0.01), GAMMA)
        change = (
            gradient(smoothed, other, other_t, other_gamma)[0] - gradient(smoothed, theta, t, gamma)[0]
        )
        size = np.linalg.norm([*(other - theta), other_t - t, other_gamma - gamma])
        largest = max(largest, np.linalg.norm(change) / size)
    assert largest <= constants.smoothness
    assert (
        largest >= constants.smoothness / 30
    )  # an expectation over rows, and a worst case of all parts


def test_variances_dominate_sampled_ones(product, constants):
    smoothed = replace(product, pieces=replace(product.pieces, smoothing=DELTA))
    rng = np.random.default_rng(2)
    largest_theta = largest_gamma = largest_gradient = 0.0
    for _ in range(300):
        mean, parts = gradient(smoothed, *region_points(rng, constants))
        spread = product.weights @ (parts - mean) ** 2
        largest_theta, largest_gamma = (
            max(largest_theta, spread[:-1].sum()),
            max(largest_gamma, spread[-1]),
        )
        largest_gradient = max(largest_gradient, float(mean @ mean))
    assert constants.variance_theta / 20 <= largest_theta <= constants.variance_theta
    assert constants.variance_gamma / 20 <= largest_gamma <= constants.variance_gamma
    assert constants.gradient_squared / 20 <= largest_gradient <= constants.gradient_squared


def test_spectral_norm_and_lemma_by_hand(constants):
    c = constants
    k = (1.0 + 0.3) / (2 * DELTA)
    assert c.l_tt == pytest.approx(k * c.context_norm**2)
    assert c.l_xx == pytest.approx(k * c.parameter_norm**2)
    assert c.l_tx == c.l_xt == pytest.approx(k * c.context_norm * c.parameter_norm + 1.0)
    assert c.mu == pytest.approx(2 * GAMMA - c.l_xx)
    assert (c.l_1, c.l_2) == pytest.approx((c.l_xg / c.mu, c.l_xt / c.mu))
    assert (c.l_3, c.l_4) == pytest.approx((c.l_tx * c.l_xg / c.mu, c.l_tt + c.l_tx * c.l_xt / c.mu))
    matrix = np.array([[c.l_4, c.l_3], [c.l_xg * c.l_2, c.l_xg * c.l_1]])
    assert c.smoothness == pytest.approx(np.linalg.svd(matrix)[1][0])
    printed = max(c.l_1**2 + c.l_3**2, c.l_2**2 + c.l_4**2) + c.l_1 * c.l_2 + c.l_3 * c.l_4
    assert c.smoothness_printed == pytest.approx(math.sqrt(printed))
    assert c.smoothness <= c.smoothness_printed * 1.5


def test_gap_at_start_is_the_cost_of_the_constant_order(product, theta):
    _, order = start(product)
    cost = product.weights @ product.pieces.evaluate(order - product.outcomes)
    found = theorem_constants(product, theta, GAMMA, lowest=0.1, smoothing=0.0)
    assert found.gap_at_start == pytest.approx(GAMMA * product.radius**2 + cost - 0.1)


def test_a_kink_and_a_norm_leave_no_constants(product, theta):
    kinked = theorem_constants(product, theta, GAMMA, lowest=0.0, smoothing=0.0)
    assert kinked.l_tt == kinked.smoothness == math.inf
    assert kinked.mu == -math.inf
    norm = theorem_constants(replace(product, order=1), theta, GAMMA, lowest=0.0, smoothing=DELTA)
    assert norm.mu == 0.0
    assert norm.l_4 == norm.smoothness == norm.smoothness_printed == math.inf
    assert math.isfinite(norm.l_tt)


def test_a_box_limits_the_move(product, theta):
    room = 0.01 + np.abs(product.contexts).max()
    boxed = replace(product, lower=np.full(3, -room), upper=np.full(3, room))
    tiny = theorem_constants(boxed, theta, 1e-6, lowest=0.0, smoothing=DELTA)
    assert tiny.move == pytest.approx(2 * room * math.sqrt(3))
    assert theorem_constants(boxed, theta, GAMMA, lowest=0.0, smoothing=DELTA).move == pytest.approx(
        1.0 * np.linalg.norm(theta) / (2 * GAMMA)
    )


def test_lengths_are_centred_with_an_intercept(product):
    shifted = replace(product, contexts=product.contexts + 100.0)
    assert context_lengths(shifted) == pytest.approx(context_lengths(product))
    bare = replace(product, intercept=False)
    assert context_lengths(bare) == pytest.approx(np.linalg.norm(bare.contexts, axis=1))
    assert start(bare)[1] == 0.0
