"""Judge a policy: how much the adversary can gain from each row at a given multiplier."""

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.engines.ascent import Limits, Move, climb, far_starts, transport
from surefoot.engines.autodiff_steps import (
    Arena,
    Array,
    StepMethod,
    Tree,
    first_curvature,
    limits_of,
    moved,
    sample_cost,
    start_lengths,
)

# Power iterations that estimate the largest curvature of the cost in the sample.
POWER_STEPS = 6
# Lengths of the moves at which a judgement looks on each side of a sample, and between the neighbours
# of the best of them; for order 1 also so many times the longest, as what is gained there by a cost
# that grows like the distance shows only far out.
JUDGE_LENGTHS, JUDGE_BETWEEN, FAR_OUT = 24, 8, (1e2, 1e4, 1e6)
# Two ascents that end this share of the radius apart have found different maximisers.
SAME_PLACE = 0.05


class Verdict(NamedTuple):
    """What the adversary does with each row.

    Attributes
    ----------
    value
        Cost at the moved sample minus the multiplier times its distance.
    cost, distance
        The two parts.
    context, outcome
        The moved sample, in the user's units.
    curvature
        Largest eigenvalue of the cost's second derivative at the moved sample, in units of transport.
    steepness
        Norm of the inner problem's gradient mapping there: zero at a maximiser.
    several
        Whether ascents from different starts ended at different places.
    """

    value: Array
    cost: Array
    distance: Array
    context: Array
    outcome: Array
    curvature: Array
    steepness: Array
    several: Array


def judge_row(
    method: StepMethod, arena: Arena, trained: Tree, gamma: Array, x: Array, y: Array
) -> Verdict:
    """Ascend from the sample and from the best far moves on each side, and look at the best end."""

    def cost_of(move: Move) -> Array:
        return sample_cost(method, trained, arena, *moved(arena, x, y, move))

    gain = jax.value_and_grad(cost_of)
    limits = limits_of(method, arena, x, y)
    nothing = jax.tree.map(jnp.zeros_like, limits.inside)
    none = jnp.zeros((), x.dtype)
    settings = (gamma, first_curvature(method, arena, gamma, none), method.order, limits)
    lengths = start_lengths(arena, JUDGE_LENGTHS)
    if method.order == 1:
        lengths = jnp.concatenate([lengths, arena.longest * jnp.array(FAR_OUT)])
    far, _ = far_starts(cost_of, gamma, method.order, limits, lengths, between=JUDGE_BETWEEN)
    starts = jax.tree.map(lambda near, more: jnp.concatenate([near[None], more]), nothing, far)

    def ascend(start: Move) -> tuple[Move, Array]:
        move = climb(gain, start, *settings, method.inner_steps).move
        return move, cost_of(move) - gamma * transport(move, method.order)

    moves, values = jax.vmap(ascend)(starts)  # one piece of compiled code for all starts
    best = jnp.argmax(jnp.where(jnp.isnan(values), -jnp.inf, values))
    value = values[best]
    move = jax.tree.map(lambda ends: ends[best], moves)
    apart = jax.vmap(lambda end: transport(jax.tree.map(jnp.subtract, end, move), 2))(moves)
    cost, distance = cost_of(move), transport(move, method.order)
    context, outcome = moved(arena, x, y, move)
    slopes = jax.grad(cost_of)(move)
    return Verdict(
        value=value,
        cost=cost,
        distance=distance,
        context=context,
        outcome=outcome,
        curvature=_largest_curvature(cost_of, move, slopes, limits.inside),
        steepness=_steepness(move, slopes, gamma, limits),
        several=jnp.max(apart) > (SAME_PLACE * arena.radius) ** 2,
    )


def _steepness(move: Move, slopes: Move, gamma: Array, limits: Limits) -> Array:
    """Return the norm of the order-2 gradient over the columns that may follow it."""
    parts = jax.tree.map(lambda g, m, i: i * (g - 2.0 * gamma * m), slopes, move, limits.inside)
    if limits.lower is not None and limits.upper is not None:
        parts = jax.tree.map(
            lambda g, m, low, high: jnp.where(g > 0.0, m < high, m > low) * g,
            parts, move, limits.lower, limits.upper,
        )  # fmt: skip
    return jnp.sqrt(sum(jnp.sum(part * part) for part in parts))


def _largest_curvature(cost_of: Any, move: Move, slopes: Move, inside: Move) -> Array:
    """Return the largest eigenvalue of the second derivative, by power iteration."""

    def norm(vector: Move) -> Array:
        return jnp.sqrt(sum(jnp.sum(part * part) for part in vector) + 1e-300)

    def times(vector: Move) -> Move:
        product: Move = jax.jvp(jax.grad(cost_of), (move,), (vector,))[1]
        return jax.tree.map(jnp.multiply, product, inside)

    # The slope is where curvature matters; the small constant keeps the start from being zero.
    start = jax.tree.map(lambda g, i: i * (g + 1e-3), slopes, inside)
    vector = jax.tree.map(lambda part: part / norm(start), start)

    def body(vector: Move, _: None) -> tuple[Move, None]:
        product = times(vector)
        length = norm(product)
        return jax.tree.map(lambda part: part / length, product), None

    vector, _ = jax.lax.scan(body, vector, None, length=POWER_STEPS)
    product = times(vector)
    return sum(jnp.sum(a * b) for a, b in zip(vector, product, strict=True))


@lru_cache(maxsize=64)
def compiled_judge(method: StepMethod) -> Any:
    """Return a compiled ``judge_row`` over problems and their rows: (arena, trained, gamma, X, Y)."""
    over_rows = jax.vmap(partial(judge_row, method), in_axes=(None, None, None, 0, 0))
    return jax.jit(jax.vmap(over_rows))


def slopes_of(method: StepMethod, arena: Arena, trained: Tree, X: Array, Y: Array) -> Array:
    """Return the slopes of the cost in each row's context, in units of transport."""

    def total(contexts: Array) -> Array:
        return jnp.sum(jax.vmap(lambda x, y: sample_cost(method, trained, arena, x, y))(contexts, Y))

    return arena.scale * arena.inside * jax.grad(total)(jnp.asarray(X))


@lru_cache(maxsize=64)
def compiled_slopes(method: StepMethod) -> Any:
    """Return compiled (arena, trained, X, Y) -> each row's cost, and its slopes in the parameters."""

    def rows(arena: Arena, trained: Tree, X: Array, Y: Array) -> tuple[Array, Tree]:
        def one(x: Array, y: Array) -> tuple[Array, Tree]:
            return jax.value_and_grad(lambda tree: sample_cost(method, tree, arena, x, y))(trained)

        return jax.vmap(one)(X, Y)

    return jax.jit(rows)
