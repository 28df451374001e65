"""A policy that the user writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidTypeError
from surefoot.policies.base import Policy, Tree
from surefoot.tracing import load_jax
from surefoot.typing import ArrayNamespace, FloatArray


@dataclass(frozen=True)
class CustomPolicy(Policy):
    """Any policy that JAX can differentiate.

    Parameters
    ----------
    init
        ``init(rng, n_columns, n_decisions)`` with a NumPy generator: any tree of arrays (dictionary,
        list, tuple), the parameters at which learning starts.
    apply
        ``apply(parameters, x)`` for one context x of shape (columns,), in the user's own units:
        a decision of shape (decisions,).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> policy = CustomPolicy(
    ...     lambda rng, columns, decisions: {"a": np.ones(decisions), "w": np.zeros(columns)},
    ...     lambda parameters, x: parameters["a"] * jnp.exp(parameters["w"] @ x),
    ... )
    >>> policy.why_not(n_columns=3, n_decisions=1) is None
    True
    """

    init: Callable[[np.random.Generator, int, int], Any]
    apply: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        """Check that both are functions."""
        for name in ("init", "apply"):
            if not callable(getattr(self, name)):
                raise InvalidTypeError(f"{name} must be a function, got {getattr(self, name)!r}.")
        super().__post_init__()

    def why_not(self, n_columns: int, n_decisions: int) -> str | None:
        """Try the functions once; say in the user's words what is wrong with them."""
        jax = load_jax("CustomPolicy")
        jnp = jax.numpy
        try:
            start = self.initial(np.random.default_rng(0), n_columns, n_decisions)
        except Exception as error:  # whatever the user's own code raises is quoted to them
            return f"init(rng, {n_columns}, {n_decisions}) raised {type(error).__name__}: {error}"
        with jax.enable_x64(True):
            try:
                shaped = jax.eval_shape(self.apply, start, jnp.zeros(n_columns))
            except Exception as error:  # as above
                reason = (str(error).strip().splitlines() or ["no message"])[0]
                return (
                    "apply(parameters, x) must be a function that JAX can trace, got "
                    f"{type(error).__name__}: {reason}"
                )
        shape = getattr(shaped, "shape", None)
        if shape != (n_decisions,):
            got = type(shaped).__name__ if shape is None else f"shape {shape}"
            return (
                f"apply(parameters, x) must return {n_decisions} "
                f"decision{'s'[: n_decisions > 1]} for one context (shape ({n_decisions},)), got {got}"
            )
        return super().why_not(n_columns, n_decisions)

    def initial(self, rng: np.random.Generator, n_columns: int, n_decisions: int) -> Tree:
        """Return what ``init`` makes."""
        return self.init(rng, n_columns, n_decisions)

    def raw(
        self, trained: Tree, units: Mapping[str, FloatArray], inputs: FloatArray, xp: ArrayNamespace
    ) -> FloatArray:
        """Return ``apply`` of each row."""
        del units
        jax = load_jax("CustomPolicy")
        function = self.apply
        for _ in range(inputs.ndim - 1):
            function = jax.vmap(function, in_axes=(None, 0))
        if xp is not np:
            traced: FloatArray = function(trained, inputs)
            return traced
        with jax.enable_x64(True):
            return np.asarray(function(trained, jax.numpy.asarray(inputs)), dtype=np.float64)
