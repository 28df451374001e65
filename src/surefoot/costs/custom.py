"""A cost that the user writes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.costs.base import Cost, check_same_rows
from surefoot.exceptions import InvalidTypeError
from surefoot.tracing import check_function, load_jax
from surefoot.typing import ArrayNamespace, FloatArray
from surefoot.validation import check_integer


@dataclass(frozen=True)
class CustomCost(Cost):
    """Any cost that JAX can differentiate.

    Parameters
    ----------
    fn
        ``fn(z, y)`` for one row: z of shape (decisions,) and y of shape (outcomes,) give one number.
        It is tried at once, so a function that cannot work is refused here and not after an hour.
    outcomes
        How many numbers an outcome has.
    decisions
        How many numbers a decision has; None is as many as outcomes.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> cost = CustomCost(lambda z, y: jnp.sum((z - y) ** 4))
    >>> cost.evaluate(np.array([[1.0], [3.0]]), np.array([[0.0], [1.0]]))
    array([ 1., 16.])
    >>> CustomCost(lambda z, y: jnp.round(z - y).sum())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    surefoot.exceptions.InvalidInputError: fn(z, y) must depend on its first argument in a way that ...
    """

    fn: Callable[[Any, Any], Any]
    outcomes: int = 1
    decisions: int | None = None

    def __post_init__(self) -> None:
        """Try the function."""
        if not callable(self.fn):
            raise InvalidTypeError(f"fn must be a function fn(z, y), got {self.fn!r}.")
        check_integer("outcomes", self.outcomes, at_least=1)
        if self.decisions is not None:
            check_integer("decisions", self.decisions, at_least=1)
        shapes = ((self.n_decisions(self.outcomes),), (self.outcomes,))
        check_function("fn(z, y)", self.fn, shapes, (), "one number for each row")

    def n_decisions(self, n_outcomes: int) -> int:
        """Return the number of decisions."""
        return n_outcomes if self.decisions is None else self.decisions

    def why_not(self, n_products: int) -> str | None:
        """Return why outcomes of this size do not fit, or None."""
        if n_products != self.outcomes:
            return (
                f"y must have {self.outcomes} column{'s'[: self.outcomes > 1]} as CustomCost("
                f"outcomes={self.outcomes}) says, got {n_products}."
            )
        return None

    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return fn row by row."""
        check_same_rows(decisions, outcomes)
        if xp is not np:
            traced: FloatArray = self._rows(decisions, outcomes, xp)
            return traced
        jax = load_jax("CustomCost")
        with jax.enable_x64(True):
            jnp = jax.numpy
            values = self._rows(jnp.asarray(decisions), jnp.asarray(outcomes), jnp)
            return np.asarray(values, dtype=np.float64)

    def _rows(self, decisions: Any, outcomes: Any, xp: ArrayNamespace) -> Any:
        jax = load_jax("CustomCost")

        def function(z: Any, y: Any) -> Any:
            return xp.sum(xp.asarray(self.fn(z, y)))  # shape (1,) counts as one number

        for _ in range(decisions.ndim - 1):
            function = jax.vmap(function)
        return function(decisions, outcomes)
