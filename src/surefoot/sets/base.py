"""Where decisions may lie."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from surefoot.typing import ArrayNamespace, FloatArray


class DecisionSet(ABC):
    """A set of allowed decisions, with a differentiable map into it.

    A policy with ``decisions=`` such a set ends in that map, so every decision is feasible by
    construction. Formulas are written against an array namespace (``numpy`` or ``jax.numpy``).
    """

    in_units: ClassVar[bool] = True
    """Whether the map leaves decisions in their own unit, as a Box does and a Simplex does not."""

    @abstractmethod
    def map_into(self, decisions: FloatArray, xp: ArrayNamespace = np) -> FloatArray:
        """Return feasible decisions from any numbers of shape (..., decisions)."""

    @abstractmethod
    def contains(self, decisions: FloatArray, slack: float = 1e-9) -> bool:
        """Whether every row is feasible, up to ``slack`` relative to the size of the set."""

    def farthest(self, directions: FloatArray) -> FloatArray:
        """Return the decision that lies farthest in each direction, shape (rows, decisions).

        Infinite where there is none; that is the default, for sets of which it is not known.

        >>> from surefoot.sets import Simplex
        >>> Simplex().farthest(np.array([[0.1, 0.3]]))
        array([[0., 1.]])
        """
        return np.full_like(directions, np.inf)

    def why_not(self, n_decisions: int) -> str | None:
        """Return why the set does not fit so many decisions, or None if it does."""
        del n_decisions
        return None
