"""The inner ascent: it never loses, never leaves its limits and never diverges."""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from surefoot.ambiguity.moves import best_moves
from surefoot.engines.ascent import Limits, climb, far_starts, propose, transport

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32)
COLUMNS, STEPS = 3, 20
LENGTHS = np.geomspace(0.1, 100.0, 24)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def cost_of(shape, move):
    """A cost of r = theta'D - phi'u + r0: kinked, square, wavy and flat parts, by weight."""
    r = shape["theta"] @ move[0] - shape["phi"] @ move[1] + shape["r0"]
    parts = (jnp.maximum(0.2 * r, -r), r**2, jnp.sin(4.0 * r), jnp.tanh(r))
    return sum(w * part for w, part in zip(shape["weights"], parts, strict=True))


@lru_cache
def climber(order):
    def run(shape, gamma, curvature, limits, reach):
        def gain(move):
            return jax.value_and_grad(lambda m: cost_of(shape, m))(move)

        def value(move):
            return cost_of(shape, move) - gamma * transport(move, order)

        nothing = jax.tree.map(jnp.zeros_like, limits.inside)
        moves, values = far_starts(
            partial(cost_of, shape), gamma, order, limits, reach * LENGTHS, between=4
        )
        better = jax.tree.map(lambda leaf: leaf[jnp.argmax(values)], moves)
        starts = jax.tree.map(lambda *both: jnp.stack(both), nothing, better)
        both = jax.vmap(lambda start: climb(gain, start, gamma, curvature, order, limits, STEPS))(
            starts
        )
        plain, far = (jax.tree.map(lambda leaf, k=k: leaf[k], both) for k in (0, 1))
        return {
            "plain": plain, "far": far, "better": better, "start": value(nothing),
            "at_better": value(better), "end": value(plain.move), "far_end": value(far.move),
        }  # fmt: skip

    return jax.jit(run)


def climbs(shape, gamma, limits, *, order, curvature=None, reach=0.6):
    if curvature is None:
        curvature = 0.0 if order == 2 else gamma / reach
    found = climber(order)(shape, gamma, curvature, limits, reach)
    return jax.tree.map(np.asarray, found)


def free(inside=None):
    inside = np.ones(COLUMNS) if inside is None else np.asarray(inside)
    wide = np.full(COLUMNS, np.inf)
    return Limits((-wide, np.full(1, -np.inf)), (wide, np.full(1, np.inf)), (inside, np.ones(1)))


def random_case(seed):
    rng = np.random.default_rng(seed)
    shape = {
        "theta": rng.normal(size=COLUMNS) * 10.0 ** rng.uniform(-2, 2),
        "phi": rng.normal(size=1),
        "r0": 3.0 * rng.normal(),
        "weights": rng.normal(size=4) * 10.0 ** rng.uniform(-1, 2, size=4),
    }
    limits = free((rng.uniform(size=COLUMNS) < 0.7).astype(float))
    if rng.uniform() < 0.7:
        lower = [-rng.uniform(0, 1, size=len(part)) * (rng.uniform() < 0.8) for part in limits.lower]
        upper = [rng.uniform(0, 1, size=len(part)) for part in limits.upper]
        limits = limits._replace(lower=tuple(lower), upper=tuple(upper))
    return shape, 10.0 ** rng.uniform(-3, 3), limits


@repeatable
@given(seeds, st.sampled_from([1, 2]))
def test_an_ascent_never_loses_leaves_its_limits_or_diverges(seed, order):
    shape, gamma, limits = random_case(seed)
    found = climbs(shape, gamma, limits, order=order)
    slack = 1e-9 * (1.0 + abs(found["start"]))
    # The value of every step that it looked at; the last step is taken unseen.
    assert found["plain"].value >= found["start"] - slack
    assert found["far"].value >= found["at_better"] - slack
    for climbed in (found["plain"], found["far"]):
        for move, low, high, inside in zip(climbed.move, *limits, strict=True):
            assert np.isfinite(move).all()
            assert (move[inside == 0.0] == 0.0).all()
            assert ((move >= low - 1e-12) & (move <= high + 1e-12)).all()
        assert climbed.curvature >= 0.0


@repeatable
@given(seeds)
def test_order_two_reaches_the_maximiser_of_a_concave_inner_problem(seed):
    rng = np.random.default_rng(seed)
    theta, r0, w = rng.normal(size=COLUMNS), rng.normal(), rng.uniform(0.1, 1.0)
    shape = {"theta": theta, "phi": np.zeros(1), "r0": r0, "weights": np.array([0.0, w, 0.0, 0.0])}
    gamma = rng.uniform(2.0, 5.0) * w * theta @ theta
    found = climbs(shape, gamma, free(), order=2)
    # max of w (r0 + s)^2 - gamma s^2 / ||theta||^2 over s = theta'D.
    m = theta @ theta
    best = w * gamma * r0**2 / (gamma - w * m)
    assert found["end"] == pytest.approx(best, rel=1e-9)
    np.testing.assert_allclose(
        found["plain"].move[0], w * r0 * theta / (gamma - w * m), rtol=1e-4, atol=1e-9
    )


@pytest.mark.parametrize("order", [1, 2])
def test_a_multiplier_far_below_the_curvature_does_not_diverge(order):
    # Without a bound the quadratic wins for good; in a box the ascent must stop at its border.
    shape = {"theta": np.ones(COLUMNS), "phi": np.zeros(1), "r0": 0.5, "weights": np.eye(4)[1] * 1e6}
    limits = free()._replace(
        lower=(np.full(COLUMNS, -2.0), np.zeros(1)), upper=(np.full(COLUMNS, 2.0), np.zeros(1))
    )
    found = climbs(shape, 1e-6, limits, order=order)
    np.testing.assert_array_equal(found["plain"].move[0], [2.0, 2.0, 2.0])
    free_fall = climbs(shape, 1e-6, free(), order=order)
    assert free_fall["plain"].value >= free_fall["start"]
    assert not np.isnan(free_fall["plain"].move[0]).any()


def test_a_step_that_loses_is_taken_back_and_raises_the_curvature():
    shape = {"theta": np.ones(COLUMNS), "phi": np.zeros(1), "r0": 0.1, "weights": np.eye(4)[2] * 50.0}
    found = climbs(shape, 0.1, free(), order=2)
    assert found["plain"].curvature > 100.0
    assert found["plain"].value > found["start"]
    straight = {**shape, "weights": np.eye(4)[3]}
    assert climbs(straight, 10.0, free(), order=2)["plain"].curvature == 0.0


def kinked_ends(form, theta, intercept, gamma):
    """Where ascents from the sample and from the better start end, and the best that there is."""
    best = best_moves(form, theta, intercept, gamma).value
    residuals = form.residuals(theta, intercept)
    ends = []
    for x, r in zip(form.contexts, residuals, strict=True):
        still = np.zeros(1)
        limits = free()._replace(
            lower=(form.lower - x, still), upper=(form.upper - x, still)
        )  # fmt: skip
        pieces, reach = form.pieces, 2.0 * form.radius
        ends.append(kinked(form.order)(theta, r, pieces.up, pieces.down, gamma, limits, reach))
    plain, far = np.array(ends, dtype=float).T
    assert (plain <= best + 1e-9 * (1.0 + np.abs(best))).all()
    assert (far <= best + 1e-9 * (1.0 + np.abs(best))).all()
    return plain, far, best


def test_the_far_start_finds_the_global_maximiser_of_a_kinked_cost(make_affine):
    form = make_affine(3, rows=60, order=2, holding=0.2)
    design = np.column_stack([form.contexts, np.ones(60)])
    *theta, intercept = np.linalg.lstsq(design, form.outcomes, rcond=None)[0]
    theta = np.array(theta)
    plain, far, best = kinked_ends(form, theta, intercept, 1.1 * form.dual_norm(theta))
    assert (far >= best - 1e-6).mean() >= 0.95
    assert (plain >= best - 1e-6).mean() < 0.95  # so the far start is what found the others


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_narrow_peak_far_from_a_flat_sample_is_a_start(side):
    # Nothing is gained near the sample, and each length that is tried lies beside the peak.
    wide = (np.full(1, -np.inf), np.zeros(0)), (np.full(1, np.inf), np.zeros(0))
    limits = Limits(*wide, (np.ones(1), np.zeros(0)))
    peak = float(np.sqrt(LENGTHS[12] * LENGTHS[13]))

    def cost(move):
        return 2.0 * jnp.exp(-(((move[0][0] - side * peak) / (0.12 * peak)) ** 2))

    gamma = 1.0 / peak**2
    tried = [float(cost((np.array([side * r]),))) - gamma * r**2 for r in LENGTHS]
    assert max(tried) < 0.0 < 2.0 - gamma * peak**2
    lengths = jnp.asarray(LENGTHS)
    moves, values = far_starts(cost, gamma, 2, limits, lengths, between=8)
    best = int(np.argmax(values))
    assert float(moves[0][best, 0]) == pytest.approx(side * peak, rel=0.05)
    assert float(values[best]) > 0.5


def test_order_one_in_a_box_finds_what_there_is_to_gain(make_affine):
    form = make_affine(3, rows=60, order=1, box="closed", holding=0.8)
    theta, intercept = np.array([0.7, -0.4, 0.5]), 0.8
    for share in (0.5, 0.9, 0.99):
        _, far, best = kinked_ends(form, theta, intercept, share * form.dual_norm(theta))
        stay = form.pieces.evaluate(form.residuals(theta, intercept))
        assert (far - stay).sum() >= 0.99 * (best - stay).sum()


def test_the_step_of_order_one_that_a_box_holds_is_not_that_of_the_norm_cut_to_it():
    # From zero along (4, 1) at curvature 1 and price 1, the first column held at 1/2: the second solves
    # d (1 + 1 / ||d||) = 1. Shrinking first and cutting then would go twice as far, to 0.76.
    slopes, empty = np.array([4.0, 1.0]), np.zeros(0)
    limits = Limits((np.full(2, -9.0), empty), (np.array([0.5, 9.0]), empty), (np.ones(2), empty))
    found = propose((np.zeros(2), empty), (slopes, empty), 1.0, 1.0, 1, limits)[0]
    held = brentq(lambda d: d * (1.0 + 1.0 / np.hypot(0.5, d)) - 1.0, 0.0, 1.0)
    np.testing.assert_allclose(found, [0.5, held], rtol=1e-5)
    assert held < 0.4


@pytest.mark.nightly
@repeatable
@given(seeds)
def test_the_step_of_order_one_is_the_proximal_step_of_norm_and_box_together(seed):
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(1, 8))
    low, high = -rng.uniform(0, 1, size=columns), rng.uniform(0, 1, size=columns)
    low[rng.uniform(size=columns) < 0.2], high[rng.uniform(size=columns) < 0.2] = -np.inf, np.inf
    inside = (rng.uniform(size=columns) < 0.8).astype(float)
    move = np.clip(rng.normal(size=columns), low, high) * inside
    slopes, gamma = 3.0 * rng.normal(size=columns) * inside, 10.0 ** rng.uniform(-1, 1)
    curvature, empty = 10.0 ** rng.uniform(-1, 1), np.zeros(0)
    limits = Limits((low, empty), (high, empty), (inside, empty))
    found = np.asarray(propose((move, empty), (slopes, empty), gamma, curvature, 1, limits)[0])
    assert ((found >= low) & (found <= high)).all()

    def model(d):
        step = d - move
        return slopes @ step - 0.5 * curvature * step @ step - gamma * np.linalg.norm(d)

    # No other point of the box is better: neither near, nor anywhere on the way to the corners.
    best = model(found)
    for _ in range(200):
        size = 10.0 ** rng.uniform(-6, 1)
        other = np.clip(found + size * rng.normal(size=columns), low, high) * inside
        for share in (1.0, 0.5, 1e-3):
            assert model(share * other + (1 - share) * found) <= best + 1e-9 * (1 + abs(best))


@lru_cache
def kinked(order):
    def run(theta, r0, up, down, gamma, limits, reach):
        def cost(move):
            r = theta @ move[0] + r0
            return jnp.where(r >= 0.0, up * r, -down * r)

        gain = jax.value_and_grad(cost)
        nothing = jax.tree.map(jnp.zeros_like, limits.inside)
        lengths = jnp.concatenate([reach * LENGTHS, jnp.array([1e3, 1e5])])
        moves, values = far_starts(cost, gamma, order, limits, lengths, between=8)
        far = jax.tree.map(lambda leaf: leaf[jnp.argmax(values)], moves)
        curvature = 0.0 if order == 2 else gamma / reach
        ends = []
        for start in (nothing, far):
            found = climb(gain, start, gamma, curvature, order, limits, 20)
            ends.append(cost(found.move) - gamma * transport(found.move, order))
        return ends

    return jax.jit(run)


def test_transport_is_the_ball_s_distance():
    move = (jnp.array([3.0, 4.0]), jnp.array([-2.0]))
    assert float(transport(move, 2)) == 29.0
    assert float(transport(move, 1)) == 7.0
    nothing = (jnp.zeros(2), jnp.zeros(1))
    slopes = jax.grad(lambda m: transport(m, 1))(nothing)
    assert all((np.asarray(part) == 0.0).all() for part in slopes)  # and not NaN


def test_order_one_stays_put_where_transport_is_dearer_than_the_slope():
    limits = free()
    nothing, slopes = (np.zeros(COLUMNS), np.zeros(1)), (np.array([0.3, 0.4, 0.0]), np.array([0.9]))
    stays = propose(nothing, slopes, 1.0, 2.0, 1, limits)
    assert all((np.asarray(part) == 0.0).all() for part in stays)
    for bounds in (limits, Limits(None, None, limits.inside)):
        moves = propose(nothing, slopes, 0.4, 0.8, 1, bounds)
        # v = g / curvature, shrunk by gamma / curvature: the slope beyond its transport is what is left.
        expected = (1 - 0.5 / 0.625) * np.array([0.3, 0.4, 0]) / 0.8
        np.testing.assert_allclose(moves[0], expected, rtol=1e-12)
        np.testing.assert_allclose(moves[1], [0.9 / 0.8 - 0.5], rtol=1e-12)


def test_a_straight_cost_in_a_wide_box_is_followed_to_its_end():
    # A slope just above the price of transport: steps must grow to get anywhere.
    shape = {
        "theta": np.array([1.01, 0.0, 0.0]),
        "phi": np.zeros(1),
        "r0": 5.0,
        "weights": np.eye(4)[0],
    }
    wide = np.full(COLUMNS, 50.0)
    limits = free()._replace(lower=(-wide, np.zeros(1)), upper=(wide, np.zeros(1)))
    found = climbs(shape, 0.2, limits, order=1)
    np.testing.assert_allclose(found["plain"].move[0], [50.0, 0.0, 0.0], rtol=1e-9)
