"""DA-SGD on a stream for any differentiable cost and policy (JAX): the update of batch learning.

Every row goes through ``autodiff.update``. What is added is what a stream needs: a radius and a scale
for each row, sums that forget, and an average of the newest parameters.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from surefoot.engines.autodiff import Arena, Info, Method, State, update
from surefoot.engines.rules import Travel

Array = Any
Tree = Any


class Carry(NamedTuple):
    """Where a stream stands: the state of ``autodiff`` and the average that decides."""

    state: State
    average: Tree


class Row(NamedTuple):
    """One row with its running numbers; a block has a leading axis.

    ``share`` is the row's weight in the average, ``keep`` what is kept of the sums before it.
    """

    context: Array
    outcome: Array
    radius: Array
    scale: Array
    movable: Array
    share: Array
    keep: Array


@dataclass(frozen=True)
class FallingStep:
    """Plain gradient steps of size / sqrt(t); ``longest`` bounds t from above.

    ``progress`` is t - 1: a stream counts its steps in units of one.
    """

    size: float
    longest: float

    def init(self, trained: Tree, reach: Tree) -> Tree:
        """There is nothing to remember."""
        del trained, reach
        return ()

    def update(self, gradient: Tree, state: Tree, trained: Tree, progress: Any) -> tuple[Tree, Tree]:
        """Return the steps."""
        del trained
        step = self.size / jnp.sqrt(jnp.minimum(progress + 1.0, self.longest))
        return jax.tree.map(lambda g: -step * g, gradient), state


def forget(state: State, keep: Array) -> State:
    """Return the state with a share of its sums: steps grow as if so much less had been seen."""
    rule = state.rule
    if isinstance(rule, Travel):
        rule = rule._replace(squares=jax.tree.map(lambda square: keep * square, rule.squares))
    return state._replace(rule=rule, multiplier_squares=keep * state.multiplier_squares)


def stream_run(
    method: Method, arena: Arena, carry: Carry, rows: Row
) -> tuple[Carry, tuple[Array, Info]]:
    """Take one step for each row; return the decision before it was learned, too."""

    def one(carry: Carry, row: Row) -> tuple[Carry, tuple[Array, Info]]:
        decision = method.policy.evaluate(carry.average["policy"], arena.units, row.context, jnp)
        inside = jnp.where(row.radius > 0.0, row.movable, 0.0)
        here = arena._replace(
            radius=row.radius, scale=row.scale, inside=inside, total_steps=jnp.ones(())
        )
        state, info = update(method, here, forget(carry.state, row.keep), (row.context, row.outcome))
        average = jax.tree.map(
            lambda mean, newest: row.share * newest + (1.0 - row.share) * mean,
            carry.average, state.trained,
        )  # fmt: skip
        return Carry(state, average), (decision, info)

    return jax.lax.scan(one, carry, rows)


@lru_cache(maxsize=64)
def compiled_stream(method: Method) -> Any:
    """Return ``stream_run`` compiled for a method."""
    return jax.jit(lambda arena, carry, rows: stream_run(method, arena, carry, rows))
