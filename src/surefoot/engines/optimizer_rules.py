"""How parameters step along a gradient: the rules of the autodiff engine, with optax underneath."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax

Tree = Any


class Rule(Protocol):
    """Turns gradients into steps; it is hashable, so that compiled code can be kept for it."""

    def init(self, trained: Tree, reach: Tree) -> Tree:
        """Return the rule's own state for parameters that may travel about ``reach`` each."""

    def update(self, gradient: Tree, state: Tree, trained: Tree, progress: Any) -> tuple[Tree, Tree]:
        """Return the steps to add and the next state; ``progress`` is the share of steps taken."""


class Travel(NamedTuple):
    """State of ``DistanceOverGradients``: one entry for each array of parameters."""

    start: Tree
    squares: Tree
    travelled: Tree


@dataclass(frozen=True)
class DistanceOverGradients:
    """Step by the distance travelled so far over the root of the summed squared gradients.

    Each array of parameters has a step size of its own, and none has to be chosen. The affine
    engine steps by this rule, too.
    """

    def init(self, trained: Tree, reach: Tree) -> Travel:
        """Return zero sums and a first distance ``reach`` for each array."""
        return Travel(trained, jax.tree.map(lambda leaf: jnp.zeros((), leaf.dtype), trained), reach)

    def update(
        self, gradient: Tree, state: Travel, trained: Tree, progress: Any
    ) -> tuple[Tree, Travel]:
        """Return the steps and the longer sums."""
        del progress
        squares = jax.tree.map(lambda s, g: s + jnp.sum(g * g), state.squares, gradient)
        steps = jax.tree.map(
            lambda g, far, s: -far / jnp.sqrt(s + 1e-300) * g, gradient, state.travelled, squares
        )
        travelled = jax.tree.map(
            lambda far, p, d, first: jnp.maximum(far, jnp.sqrt(jnp.sum((p + d - first) ** 2))),
            state.travelled, trained, steps, state.start,
        )  # fmt: skip
        return steps, Travel(state.start, squares, travelled)


def cosine(progress: Any) -> Any:
    """Return a factor that falls from one to zero as the run goes on."""
    return 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.clip(progress, 0.0, 1.0)))


@dataclass(frozen=True)
class Scaled:
    """A direction of optax times a learning rate that may fall along a cosine."""

    direction: Callable[[], optax.GradientTransformation]
    learning_rate: float
    decay: bool

    def init(self, trained: Tree, reach: Tree) -> Tree:
        """Return the direction's state."""
        del reach
        return self.direction().init(trained)

    def update(self, gradient: Tree, state: Tree, trained: Tree, progress: Any) -> tuple[Tree, Tree]:
        """Return minus the scaled direction."""
        direction, state = self.direction().update(gradient, state, trained)
        rate = self.learning_rate * cosine(progress) if self.decay else self.learning_rate
        return jax.tree.map(lambda d: -rate * d, direction), state


def adam(learning_rate: float, *, decay: bool) -> Scaled:
    """Return Adam."""
    return Scaled(optax.scale_by_adam, learning_rate, decay)


def plain(learning_rate: float, *, decay: bool) -> Scaled:
    """Return plain stochastic gradient descent, as the paper has it."""
    return Scaled(optax.identity, learning_rate, decay)


@dataclass(frozen=True)
class Optax:
    """Any gradient transformation of optax, with whatever schedule it has."""

    transformation: optax.GradientTransformation

    def init(self, trained: Tree, reach: Tree) -> Tree:
        """Return the transformation's state."""
        del reach
        return self.transformation.init(trained)

    def update(self, gradient: Tree, state: Tree, trained: Tree, progress: Any) -> tuple[Tree, Tree]:
        """Return what the transformation says."""
        del progress
        return self.transformation.update(gradient, state, trained)


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
