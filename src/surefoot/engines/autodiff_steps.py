"""DA-SGD for any differentiable cost and policy, by automatic differentiation (JAX).

``update(state, sample)`` is the one step: move the sample adversarially, step the parameters, step
the multiplier. ``run`` takes a block of samples through it, ``follow`` the rows of a stream. All are
pure, so a batch of problems is the same function under ``jax.vmap``, on a CPU or a GPU.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.costs import AuxiliaryCost, Cost
from surefoot.engines.ascent import Climb, Limits, Move, climb, far_starts, transport
from surefoot.engines.optimizer_rules import Rule, Travel
from surefoot.policies import Policy

Array = Any
Tree = Any

# A step of the log-multiplier: this many units over the root of its summed squared gradients.
LOG_STEP = 1.0
# The multiplier looks at no more than this many budgets of transport in one step: a sample that ran
# away because the multiplier was too small says "raise it", not by how much.
MOST_BUDGETS = 100.0
# Slopes that cancel to this share of their size lead nowhere.
FLAT_SHARE = 1e-9
# Share of the newest curvature in the running estimate with which the next ascent starts.
CURVATURE_SHARE = 0.1
# Far starts lie between this share of the radius and the arena's longest move; a step tries so many
# lengths on each side.
NEAREST, STEP_LENGTHS = 0.25, 6


class Arena(NamedTuple):
    """The numbers of a problem; under ``vmap`` each problem has its own.

    ``longest`` is the longest move that is tried as a start.
    """

    radius: Array
    longest: Array
    outcome_unit: Array
    scale: Array
    inside: Array
    lower: Array
    upper: Array
    outcome_bounds: Array
    units: dict[str, Array]
    auxiliary_centre: Array
    auxiliary_unit: Array
    total_steps: Array
    restart: Array


class AutodiffState(NamedTuple):
    """All that the next step needs to know.

    ``average`` is the running mean of the parameters over ``averaged`` steps.
    """

    trained: Tree
    rule: Tree
    log_multiplier: Array
    multiplier_squares: Array
    curvature: Array
    average: Tree
    averaged: Array
    steps: Array


# The mean cost at the moved samples of a step, and their mean distance.
Info = tuple[Array, Array]


@dataclass(frozen=True)
class StepMethod:
    """What compiled code is made for: parts, order and sizes, but no numbers of a problem.

    ``in_units``: the rule's steps count in the unit of decisions, as parameters of linear policies do.
    """

    cost: Cost
    policy: Policy
    order: int
    outcomes_move: bool
    inner_steps: int
    rule: Rule
    batch: int = 1
    boxed: bool = True
    restart: bool = False
    average: bool = True
    in_units: bool = False


def sample_cost(method: StepMethod, trained: Tree, arena: Arena, x: Array, y: Array) -> Array:
    """Return c(f(theta; x), y) for one sample."""
    z = method.policy.evaluate(trained["policy"], arena.units, x, jnp)
    return decision_cost(method, trained, arena, z, y)


def decision_cost(method: StepMethod, trained: Tree, arena: Arena, z: Array, y: Array) -> Array:
    """Return c(z, y), at the cost's own variables if it has any."""
    if isinstance(method.cost, AuxiliaryCost):
        auxiliary = arena.auxiliary_centre + arena.auxiliary_unit * trained["auxiliary"]
        return method.cost.evaluate_at(z, auxiliary, y, jnp)
    return method.cost.evaluate(z, y, jnp)


def parameter_slopes(
    method: StepMethod, trained: Tree, arena: Arena, x: Array, y: Array
) -> tuple[Array, Tree]:
    """Return the cost of one sample and its slopes in the parameters.

    Where limits cut a decision the cost has no slope, and a policy that strayed there would never come
    back. If the cost at the limit falls inwards, its slope there takes that place.
    """
    cost, slopes = jax.value_and_grad(lambda tree: sample_cost(method, tree, arena, x, y))(trained)
    limits = method.policy.decisions
    if limits is None or not limits.in_units:
        return cost, slopes

    def cost_of(decision: Array) -> Array:
        return decision_cost(method, trained, arena, decision, y)

    free, back = jax.vjp(lambda tree: method.policy.raw(tree["policy"], arena.units, x, jnp), trained)
    held = limits.map_into(free, jnp)
    through = jax.grad(lambda u: cost_of(limits.map_into(u, jnp)))(free)
    (more,) = back(_way_back(free - held, through, jax.grad(cost_of)(held)))
    return cost, jax.tree.map(jnp.add, slopes, more)


def _way_back(outside: Array, through: Array, inside: Array) -> Array:
    """Return slopes that lead a decision back from outside its limits, where nothing else does.

    ``through`` are the slopes through the limits and ``inside`` those at the limit. A Box leaves single
    numbers without a slope; a Budget that is overspent, all of them together.
    """
    stuck = (through == 0.0) & (inside * outside > 0.0)
    rest = jnp.where(through == 0.0, 0.0, outside)
    square, gained = jnp.sum(rest * rest), jnp.sum(inside * rest)
    flat = jnp.abs(jnp.sum(through * rest)) <= FLAT_SHARE * jnp.sum(jnp.abs(through * rest))
    share = jnp.where(flat & (gained > 0.0), gained / jnp.where(square > 0.0, square, 1.0), 0.0)
    return jnp.where(stuck, inside, share * rest)


def moved(arena: Arena, x: Array, y: Array, move: Move) -> tuple[Array, Array]:
    """Return a sample after its move, in the user's units."""
    context = x + arena.scale * move[0]
    return context, y + move[1] / arena.outcome_unit if move[1].shape[0] else y


def limits_of(method: StepMethod, arena: Arena, x: Array, y: Array) -> Limits:
    """Return how far a sample may move, in units of transport."""
    empty = jnp.zeros((0,), x.dtype)
    free = jnp.where(arena.radius > 0.0, jnp.ones_like(y), 0.0) if method.outcomes_move else empty
    if not method.boxed:
        return Limits(None, None, (arena.inside, free))
    low, high = (arena.lower - x) / arena.scale, (arena.upper - x) / arena.scale
    if not method.outcomes_move:
        return Limits((low, empty), (high, empty), (arena.inside, empty))
    low_y, high_y = ((bound - y) * arena.outcome_unit for bound in arena.outcome_bounds)
    return Limits((low, low_y), (high, high_y), (arena.inside, free))


def move_sample(
    method: StepMethod, trained: Tree, arena: Arena, gamma: Array, curvature: Array, x: Array, y: Array,
) -> Climb:  # fmt: skip
    """Move one sample to (nearly) maximise the inner problem."""

    def cost_of(move: Move) -> Array:
        return sample_cost(method, trained, arena, *moved(arena, x, y, move))

    gain = jax.value_and_grad(cost_of)
    limits = limits_of(method, arena, x, y)
    start = jax.tree.map(jnp.zeros_like, limits.inside)
    if method.restart:
        lengths = start_lengths(arena, STEP_LENGTHS)
        moves, values = far_starts(cost_of, gamma, method.order, limits, lengths)
        best = jnp.argmax(values)
        better = (arena.restart > 0.0) & (values[best] > cost_of(start))
        start = jax.tree.map(lambda far, near: jnp.where(better, far[best], near), moves, start)
    curvature = first_curvature(method, arena, gamma, curvature)
    settings = (gamma, curvature, method.order, limits, method.inner_steps)
    return climb(gain, start, *settings, unroll=True)


def start_lengths(arena: Arena, count: int) -> Array:
    """Return so many lengths of first moves, from a share of the radius to the longest."""
    shares = jnp.linspace(0.0, 1.0, count)
    nearest = NEAREST * jnp.where(arena.radius > 0.0, arena.radius, arena.longest)
    return nearest ** (1.0 - shares) * arena.longest**shares


def first_curvature(method: StepMethod, arena: Arena, gamma: Array, curvature: Array) -> Array:
    """Return the curvature with which an ascent starts.

    Of order 1 no step has a length without one: as much as makes the slope that pays for its
    transport twice over move by about a radius.
    """
    if method.order == 2:
        return curvature
    usual = gamma / jnp.where(arena.radius > 0.0, arena.radius, 1.0)
    return jnp.maximum(curvature, usual)


def update(
    method: StepMethod, arena: Arena, state: AutodiffState, sample: tuple[Array, Array]
) -> tuple[AutodiffState, Info]:
    """Take one step of DA-SGD on a minibatch: contexts (batch, columns) and outcomes (batch, outcomes).

    A batch of one may come without its first axis.
    """
    x, y = sample
    gamma = jnp.exp(state.log_multiplier)

    def one(x: Array, y: Array) -> tuple[Array, Tree, Array, Array]:
        adversary = move_sample(method, state.trained, arena, gamma, state.curvature, x, y)
        move = jax.lax.stop_gradient(adversary.move)
        cost, gradient = parameter_slopes(method, state.trained, arena, *moved(arena, x, y, move))
        return cost, gradient, transport(move, method.order), adversary.curvature

    cost, gradient, distance, curvature = _over_batch(one, x, y)
    progress = state.steps / arena.total_steps
    steps, rule = method.rule.update(gradient, state.rule, state.trained, progress=progress)
    if method.in_units:
        unit = arena.units["unit"]
        steps = {**steps, "policy": jax.tree.map(lambda step: unit * step, steps["policy"])}
    trained = jax.tree.map(jnp.add, state.trained, steps)
    budget = arena.radius**method.order
    derivative = gamma * (budget - jnp.minimum(distance, MOST_BUDGETS * budget))
    squares = state.multiplier_squares + derivative**2
    average, averaged = state.average, state.averaged
    if method.average:
        averaged = averaged + 1.0
        average = jax.tree.map(lambda a, p: a + (p - a) / averaged, average, trained)
    return AutodiffState(
        trained=trained,
        rule=rule,
        log_multiplier=state.log_multiplier - LOG_STEP * derivative / jnp.sqrt(squares + 1e-300),
        multiplier_squares=squares,
        curvature=(1.0 - CURVATURE_SHARE) * state.curvature + CURVATURE_SHARE * curvature,
        average=average,
        averaged=averaged,
        steps=state.steps + 1.0,
    ), (cost, distance)


def _over_batch(one: Any, x: Array, y: Array) -> Any:
    """Return the mean over a batch, or the single answer where there is no batch axis."""
    if x.ndim == 1:
        return one(x, y)
    return jax.tree.map(lambda values: jnp.mean(values, axis=0), jax.vmap(one)(x, y))


def run(
    method: StepMethod, arena: Arena, state: AutodiffState, X: Array, Y: Array
) -> tuple[AutodiffState, Info]:
    """Take one step for each entry of X (steps, [batch,] columns) and Y (steps, [batch,] outcomes)."""
    return jax.lax.scan(lambda s, sample: update(method, arena, s, sample), state, (X, Y))


@lru_cache(maxsize=64)
def compiled_run(method: StepMethod) -> Any:
    """Return ``run`` compiled for a method; every argument has a leading problem axis."""
    return jax.jit(jax.vmap(partial(run, method)))


# Where a stream stands: its state, and the average that decides.
Carry = tuple[AutodiffState, Tree]


class StreamRows(NamedTuple):
    """Rows with their running numbers; each array has a leading axis of rows.

    ``mean``, ``spread`` and ``unit`` are the policy's units at its time, ``share`` is the row's weight
    in the average, ``keep`` what is kept of the sums before it, ``far`` of how far the policy once was.
    """

    context: Array
    outcome: Array
    radius: Array
    scale: Array
    movable: Array
    mean: Array
    spread: Array
    unit: Array
    share: Array
    keep: Array
    far: Array


def forget(state: AutodiffState, keep: Array) -> AutodiffState:
    """Return the state with a share of its sums: steps grow as if so much less had been seen."""
    rule = state.rule
    if isinstance(rule, Travel):
        rule = rule._replace(squares=jax.tree.map(lambda square: keep * square, rule.squares))
    return state._replace(rule=rule, multiplier_squares=keep * state.multiplier_squares)


def shorten(state: AutodiffState, average: Tree, keep: Array) -> AutodiffState:
    """Return the state with a share of how far it once was, down to the size of its average."""
    rule = state.rule
    if not isinstance(rule, Travel):
        return state
    travelled = jax.tree.map(
        lambda far, mean, first: jnp.where(
            keep < 1.0, jnp.maximum(keep * far, jnp.sqrt(jnp.sum((mean - first) ** 2))), far
        ),
        rule.travelled, average, rule.start,
    )  # fmt: skip
    return state._replace(rule=rule._replace(travelled=travelled))


def follow(
    method: StepMethod, arena: Arena, carry: Carry, rows: StreamRows
) -> tuple[Carry, tuple[Array, Info]]:
    """Take one step for each row; return the decision before it was learned, too."""

    def one(carry: Carry, row: StreamRows) -> tuple[Carry, tuple[Array, Info]]:
        state, average = carry
        units = {**arena.units, "mean": row.mean, "spread": row.spread, "unit": row.unit}
        decision = method.policy.evaluate(average["policy"], units, row.context, jnp)
        inside = jnp.where(row.radius > 0.0, row.movable, 0.0)
        row_arena = arena._replace(
            radius=row.radius, scale=row.scale, inside=inside, units=units, total_steps=jnp.ones(())
        )
        state, info = update(method, row_arena, forget(state, row.keep), (row.context, row.outcome))
        average = jax.tree.map(
            lambda mean, newest: row.share * newest + (1.0 - row.share) * mean,
            average, state.trained,
        )  # fmt: skip
        return (shorten(state, average, row.far), average), (decision, info)

    return jax.lax.scan(one, carry, rows)


@lru_cache(maxsize=64)
def compiled_stream(method: StepMethod) -> Any:
    """Return ``follow`` compiled for a method."""
    return jax.jit(partial(follow, method))
