"""The inner problem by gradient ascent: move one sample to where it costs most.

    maximise  c(f(theta; x + scale D), y + u / k) - gamma d(D, u)

over the move (D, u), where u is the outcome's move in units of transport. Every step maximises a
model that touches the true value: the slope of the cost, minus curvature/2 times the squared step,
minus the transport cost itself (its proximal step), projected on the support. A step that loses
value is taken back and the curvature estimate raised, so the ascent never diverges.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = Any
# A move is a pair: of the context, and of the outcome (empty where outcomes stay).
Move = tuple[Array, Array]
# A step that loses no more than this share of the value has lost to rounding alone.
ROUNDING = 1e-12


class Limits(NamedTuple):
    """How far a sample may move, in units of transport; ``inside`` is zero for columns that stay."""

    lower: Move
    upper: Move
    inside: Move


def transport(move: Move, order: int) -> Array:
    """Return d_p of a move: the sum of squares (order 2) or of norms (order 1)."""
    squares = [jnp.sum(part * part) for part in move]
    if order == 2:
        return squares[0] + squares[1]
    return _root(squares[0]) + _root(squares[1])


def _root(square: Array) -> Array:
    """The square root, with derivative zero at zero."""
    positive = square > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0)


def propose(
    move: Move, slopes: Move, gamma: Array, curvature: Array, order: int, limits: Limits
) -> Move:
    """Return the maximiser of the model around ``move``."""
    if order == 2:
        steps = [
            (curvature * m + g) / (2.0 * gamma + curvature) for m, g in zip(move, slopes, strict=True)
        ]
    else:
        stiff = 2.0 * gamma + curvature
        steps = []
        for m, g in zip(move, slopes, strict=True):
            ahead = m + g / stiff
            length = _root(jnp.sum(ahead * ahead))
            shrunk = jnp.maximum(0.0, 1.0 - gamma / (stiff * jnp.where(length > 0.0, length, 1.0)))
            steps.append(shrunk * ahead)
    held = [
        inside * jnp.clip(step, low, high)
        for step, low, high, inside in zip(steps, *limits, strict=True)
    ]
    return held[0], held[1]


class Climb(NamedTuple):
    """Where an ascent stands."""

    move: Move
    value: Array
    slopes: Move
    curvature: Array
    accepted: Array


def climb(
    gain: Any, start: Move, gamma: Array, curvature: Array, order: int, limits: Limits, steps: int,
    *, unroll: bool = False,
) -> Climb:  # fmt: skip
    """Take ``steps`` steps of ascent from a start.

    ``gain(move)`` returns the cost at the moved sample and its slopes in units of transport.
    ``unroll`` writes the steps out: quicker to run, slower to compile.
    The last step is not looked at any more; it is taken only if the one before it gained.
    """

    def look(move: Move) -> tuple[Array, Move]:
        cost, slopes = gain(move)
        held = jax.tree.map(jnp.multiply, slopes, limits.inside)
        return cost - gamma * transport(move, order), held

    def body(here: Climb, _: None) -> tuple[Climb, None]:
        ahead = propose(here.move, here.slopes, gamma, here.curvature, order, limits)
        value, slopes = look(ahead)
        good = value >= here.value - ROUNDING * jnp.abs(here.value)

        def pick(new: Array, old: Array) -> Array:
            return jnp.where(good, new, old)

        return Climb(
            move=jax.tree.map(pick, ahead, here.move),
            value=pick(value, here.value),
            slopes=jax.tree.map(pick, slopes, here.slopes),
            curvature=pick(here.curvature, 2.0 * here.curvature + gamma),
            accepted=good,
        ), None

    value, slopes = look(start)
    here = Climb(start, value, slopes, curvature, jnp.array(True))
    here, _ = jax.lax.scan(body, here, None, length=steps - 1, unroll=unroll)
    last = propose(here.move, here.slopes, gamma, here.curvature, order, limits)
    taken = jax.tree.map(lambda new, old: jnp.where(here.accepted, new, old), last, here.move)
    return here._replace(move=taken)


def better_start(
    gain: Any, gamma: Array, curvature: Array, order: int, limits: Limits, reach: Array
) -> Move:
    """Return the better of two first moves: up the slope, and from the far side of the sample.

    A kinked or otherwise non-concave cost may rise on both sides; ascent alone sees one.
    """
    nothing = jax.tree.map(jnp.zeros_like, limits.inside)
    cost, slopes = gain(nothing)
    slopes = jax.tree.map(jnp.multiply, slopes, limits.inside)
    ahead = propose(nothing, slopes, gamma, curvature, order, limits)
    length = _root(sum(jnp.sum(part * part) for part in slopes))
    back = jax.tree.map(lambda g: -reach * g / jnp.where(length > 0.0, length, 1.0), slopes)
    held = [
        inside * jnp.clip(part, low, high)
        for part, low, high, inside in zip(back, *limits, strict=True)
    ]
    behind = (held[0], held[1])
    there = jax.tree.map(jnp.multiply, gain(behind)[1], limits.inside)
    away = propose(behind, there, gamma, curvature, order, limits)
    values = [gain(move)[0] - gamma * transport(move, order) for move in (ahead, away)]
    best = values[1] > jnp.maximum(values[0], cost)
    return jax.tree.map(lambda a, b: jnp.where(best, b, a), ahead, away)
