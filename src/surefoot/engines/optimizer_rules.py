"""How parameters step along a gradient: the rules of the autodiff engine, as transformations of optax.

``update(gradient, state, trained, progress=...)`` returns the steps to add and the next state;
``progress`` is the share of steps taken. Each rule is made once, so that code compiled for it is kept.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax

Tree = Any
Rule: TypeAlias = optax.GradientTransformationExtraArgs


class Travel(NamedTuple):
    """State of ``distance_over_gradients``: one entry for each array of parameters."""

    start: Tree
    squares: Tree
    travelled: Tree


@lru_cache(maxsize=64)
def distance_over_gradients() -> Rule:
    """Step by the distance travelled so far over the root of the summed squared gradients.

    Each array of parameters has a step size of its own, and none has to be chosen; a first distance
    is to be put into the state. The affine engine steps by this rule, too.
    """

    def init(trained: Tree) -> Travel:
        zeros = jax.tree.map(lambda leaf: jnp.zeros((), leaf.dtype), trained)
        return Travel(trained, zeros, zeros)

    def update(gradient: Tree, state: Travel, trained: Tree, **_: Any) -> tuple[Tree, Travel]:
        squares = jax.tree.map(lambda s, g: s + jnp.sum(g * g), state.squares, gradient)
        steps = jax.tree.map(
            lambda g, far, s: -far / jnp.sqrt(s + 1e-300) * g, gradient, state.travelled, squares
        )
        travelled = jax.tree.map(
            lambda far, p, d, first: jnp.maximum(far, jnp.sqrt(jnp.sum((p + d - first) ** 2))),
            state.travelled, trained, steps, state.start,
        )  # fmt: skip
        return steps, Travel(state.start, squares, travelled)

    return Rule(init, update)


def cosine(progress: Any) -> Any:
    """Return a factor that falls from one to zero as the run goes on."""
    return 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.clip(progress, 0.0, 1.0)))


@lru_cache(maxsize=64)
def scaled(direction: Callable[[], Rule], learning_rate: float, *, decay: bool) -> Rule:
    """Step along a direction of optax, by a learning rate that may fall along a cosine.

    ``optax.scale_by_adam`` is Adam, ``optax.identity`` plain gradient descent as the paper has it.
    """
    ahead = direction()

    def update(gradient: Tree, state: Tree, trained: Tree, progress: Any) -> tuple[Tree, Tree]:
        step, state = ahead.update(gradient, state, trained)
        rate = learning_rate * cosine(progress) if decay else learning_rate
        return jax.tree.map(lambda part: -rate * part, step), state

    return Rule(ahead.init, update)


@lru_cache(maxsize=64)
def falling(size: float, longest: float) -> Rule:
    """Step plainly by size / sqrt(t); ``longest`` bounds t from above.

    ``progress`` is t - 1: a stream counts its steps in units of one.
    """

    def update(gradient: Tree, state: Tree, trained: Tree, progress: Any) -> tuple[Tree, Tree]:
        del trained
        step = size / jnp.sqrt(jnp.minimum(progress + 1.0, longest))
        return jax.tree.map(lambda part: -step * part, gradient), state

    return Rule(lambda trained: (), update)


# Any transformation of a user's, with whatever schedule it has of its own.
given = lru_cache(maxsize=64)(optax.with_extra_args_support)
