"""The inner problem by gradient ascent: move one sample to where it costs most.

    maximise  c(f(theta; x + scale D), y + u / k) - gamma d(D, u)

over the move (D, u), where u is the outcome's move in units of transport. Every step maximises a
model that touches the true value: the slope of the cost, minus curvature/2 times the squared step,
minus the transport cost itself, over the support (the proximal step of all three together). A step
that loses value is taken back and the curvature estimate raised, so the ascent never diverges.

Order 1 needs two things more. Its adversary moves few samples, and those far: the curvature estimate
falls after every step that gained, so that steps grow where the cost is straight. And what is near
says little of what is far: ``far_starts`` looks along the slope, on both sides, at every distance.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = Any
# A move is a pair: of the context, and of the outcome (empty where outcomes stay).
Move = tuple[Array, Array]
# A step that loses no more than this share of the value has lost to rounding alone.
ROUNDING = 1e-12


# Order 1: the curvature estimate after a step that gained, and after one that lost.
SOFTER, STIFFER = 0.5, 4.0
# Halvings of the bracket in which a proximal step in a box is found: to about a millionth, and a step
# that is off by that loses the square of it.
BOX_HALVINGS = 20


class Limits(NamedTuple):
    """How far a sample may move, in units of transport; ``inside`` is zero for columns that stay.

    ``lower`` and ``upper`` are None where nothing stops it.
    """

    lower: Move | None
    upper: Move | None
    inside: Move

    def hold(self, move: Move) -> Move:
        """Return the move without what leads out of the support or along columns that stay."""
        if self.lower is None or self.upper is None:
            return jax.tree.map(jnp.multiply, self.inside, move)
        return jax.tree.map(
            lambda inside, part, low, high: inside * jnp.clip(part, low, high),
            self.inside, move, self.lower, self.upper,
        )  # fmt: skip


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
    """Return the maximiser of the model around ``move``; of order 1, the curvature must be positive."""
    if order == 2:
        ahead = jax.tree.map(lambda m, g: (curvature * m + g) / (2.0 * gamma + curvature), move, slopes)
        return limits.hold(ahead)
    ahead = jax.tree.map(lambda m, g, i: i * (m + g / curvature), move, slopes, limits.inside)
    threshold = gamma / curvature
    if limits.lower is None or limits.upper is None:
        return jax.tree.map(lambda v: _kept_share(v, threshold) * v, ahead)
    return limits.hold(
        jax.tree.map(
            lambda v, low, high: _kept_share_in_box(v, threshold, low, high) * v,
            ahead, limits.lower, limits.upper,
        )
    )  # fmt: skip


def _kept_share(v: Array, threshold: Array) -> Array:
    """Return the s at which s v minimises ||d - v||^2 / 2 + threshold ||d||."""
    length = _root(jnp.sum(v * v))
    return jnp.maximum(0.0, 1.0 - threshold / jnp.where(length > 0.0, length, 1.0))


def _kept_share_in_box(v: Array, threshold: Array, low: Array, high: Array) -> Array:
    """Return the s at which clip(s v) minimises ||d - v||^2 / 2 + tau ||d|| over low <= d <= high.

    Tau is the threshold. At the minimiser d_j (1 + tau / ||d||) = v_j wherever the box does not hold
    d_j, so d = clip(s v) with s = ||d|| / (||d|| + tau). Divided by s, (1 - s) ||clip(s v)|| = tau s
    has a left side that falls from ||v|| to zero: one root, or none (then s = 0) where ||v|| <= tau.
    """

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        least, most = bracket
        s = 0.5 * (least + most)
        held = jnp.where(v != 0.0, jnp.clip(s * v, low, high), 0.0)
        beyond = (1.0 - s) * _root(jnp.sum(held * held)) > threshold * s
        return jnp.where(beyond, s, least), jnp.where(beyond, most, s)

    # A box only shortens the move, so the share without one is the largest.
    first = (jnp.zeros_like(threshold * 1.0), _kept_share(v, threshold))
    least, most = jax.lax.fori_loop(0, BOX_HALVINGS, halve, first)
    whole = first[1] * v
    free = jnp.all((v == 0.0) | ((whole >= low) & (whole <= high)))
    return jnp.where(free, first[1], 0.5 * (least + most))


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
    The last step of order 2 is not looked at any more; it is taken only if the one before it gained.
    """

    def look(move: Move) -> tuple[Array, Move]:
        cost, slopes = gain(move)
        held = jax.tree.map(jnp.multiply, slopes, limits.inside)
        return cost - gamma * transport(move, order), held

    softer = 1.0 if order == 2 else SOFTER

    def stiffer(curvature: Array) -> Array:
        return 2.0 * curvature + gamma if order == 2 else STIFFER * curvature

    def body(climb: Climb, _: None) -> tuple[Climb, None]:
        ahead = propose(climb.move, climb.slopes, gamma, climb.curvature, order, limits)
        value, slopes = look(ahead)
        good = value >= climb.value - ROUNDING * jnp.abs(climb.value)

        def pick(new: Array, old: Array) -> Array:
            return jnp.where(good, new, old)

        return Climb(
            move=jax.tree.map(pick, ahead, climb.move),
            value=pick(value, climb.value),
            slopes=jax.tree.map(pick, slopes, climb.slopes),
            curvature=pick(softer * climb.curvature, stiffer(climb.curvature)),
            accepted=good,
        ), None

    value, slopes = look(start)
    climb = Climb(start, value, slopes, curvature, jnp.array(True))
    climb, _ = jax.lax.scan(body, climb, None, length=steps - 1, unroll=unroll)
    if order == 1:  # a step that grows must be looked at
        return climb
    last = propose(climb.move, climb.slopes, gamma, climb.curvature, order, limits)
    taken = jax.tree.map(lambda new, old: jnp.where(climb.accepted, new, old), last, climb.move)
    return climb._replace(move=taken)


def far_starts(
    cost: Any, gamma: Array, order: int, limits: Limits, lengths: Array, *, between: int = 0
) -> tuple[Move, Array]:
    """Return the best moves along the slope and against it, and what each gains, on a leading axis.

    A kinked or otherwise non-concave cost may rise on both sides, and far away; ascent alone sees one
    side and what is near. ``lengths`` are those that are tried, in ascending order, and ``between`` how
    many more between the neighbours of the best peak. Of order 1 contexts and outcomes pay
    apart, so each is tried alone: two moves, or four where outcomes move, too.
    """
    nothing = jax.tree.map(jnp.zeros_like, limits.inside)
    slopes = jax.tree.map(jnp.multiply, jax.grad(cost)(nothing), limits.inside)
    # Where the cost is flat, as where decisions are cut, any direction is as good as another.
    lines = [(slopes, limits.inside)]
    if order == 1 and slopes[1].shape[0]:
        lines = [
            ((slopes[0], nothing[1]), (limits.inside[0], nothing[1])),
            ((nothing[0], slopes[1]), (nothing[0], limits.inside[1])),
        ]
    units = [_unit(line, other) for line, other in lines]
    ends = [jax.tree.map(lambda part, s=s: s * part, unit) for unit in units for s in (1.0, -1.0)]
    directions = jax.tree.map(lambda *parts: jnp.stack(parts), *ends)

    def value(move: Move) -> Array:
        worth = cost(move) - gamma * transport(move, order)
        return jnp.where(jnp.isfinite(worth), worth, -jnp.inf)

    def along(direction: Move) -> tuple[Move, Array]:
        def at(length: Array) -> Move:
            return limits.hold(jax.tree.map(lambda part: length * part, direction))

        tried = lengths
        values = jax.vmap(lambda length: value(at(length)))(tried)
        if between:
            # Beside the sample itself nothing may be gained, and yet much at a peak far away that these
            # lengths straddle: an ascent begins there, where there is one.
            values = jnp.where(_peaks(values) | ~_peaks(values).any(), values, -jnp.inf)
            best = jnp.argmax(values)
            low = jnp.where(best > 0, tried[best - 1], 0.0)
            high = tried[jnp.minimum(best + 1, len(tried) - 1)]
            more = low + (high - low) * jnp.linspace(0.0, 1.0, between + 2)[1:-1]
            tried = jnp.concatenate([tried, more])
            values = jnp.concatenate([values, jax.vmap(lambda length: value(at(length)))(more)])
        best = jnp.argmax(values)
        return at(tried[best]), values[best]

    return jax.vmap(along)(directions)


def _peaks(values: Array) -> Array:
    """Return which values are above the one before and not below the one after; never the first."""
    last = jnp.full((1,), -jnp.inf)
    after = jnp.concatenate([values[1:], last])
    return jnp.concatenate([jnp.array([False]), (values[1:] > values[:-1]) & (values[1:] >= after[1:])])


def _unit(line: Move, other: Move) -> Move:
    """Return a direction of length one: along ``line``, or ``other`` where that is zero."""
    square = sum(jnp.sum(part * part) for part in line)
    chosen = jax.tree.map(lambda a, b: jnp.where(square > 0.0, a, b), line, other)
    length = _root(sum(jnp.sum(part * part) for part in chosen))
    return jax.tree.map(lambda part: part / jnp.where(length > 0.0, length, 1.0), chosen)
