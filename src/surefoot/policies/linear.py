"""Policies that are affine in (features of) the context."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.policies.base import Policy
from surefoot.typing import ArrayLike, FloatArray
from surefoot.validation import check_flag, context_matrix


@dataclass(frozen=True, eq=False)
class LinearParameters:
    """Parameters of an affine policy, in the user's units.

    Attributes
    ----------
    theta
        Shape (columns, products).
    intercept
        Shape (products,); zeros for a policy without intercept.
    """

    theta: FloatArray
    intercept: FloatArray

    def __repr__(self) -> str:
        """Print sizes rather than a thousand numbers."""
        columns, products = self.theta.shape
        return (
            f"LinearParameters({columns} column{'s'[: columns > 1]}, "
            f"{products} product{'s'[: products > 1]}, "
            f"norm {np.linalg.norm(self.theta):.4g}, "
            f"intercept {np.array2string(self.intercept, precision=4)})"
        )


@dataclass(frozen=True)
class Linear(Policy):
    """z = theta' g(x) + t.

    Parameters
    ----------
    intercept
        Whether t is free (True) or zero (False).
    features
        The map g from contexts (rows, columns) to features (rows, features); None means
        g(x) = x. The ambiguity ball then lives in feature space: the adversary moves g(x), and
        ``frozen``, ``support`` and ``scale`` of the ball speak of features.

    Examples
    --------
    >>> import numpy as np
    >>> policy = Linear(features=lambda X: np.hstack([X, X**2]))
    >>> policy.transform(np.array([[2.0], [3.0]]))
    array([[2., 4.],
           [3., 9.]])
    """

    intercept: bool = True
    features: Callable[[FloatArray], ArrayLike] | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        object.__setattr__(self, "intercept", check_flag("intercept", self.intercept))
        if self.features is not None and not callable(self.features):
            raise InvalidTypeError(
                f"features must be a function of a context matrix or None, got {self.features!r}."
            )

    def transform(self, contexts: FloatArray) -> FloatArray:
        """Return g(x) for each row."""
        if self.features is None:
            return contexts
        mapped = context_matrix("features(X)", self.features(contexts))
        if mapped.shape[0] != contexts.shape[0]:
            raise InvalidInputError(
                f"features(X) must have one row per row of X ({contexts.shape[0]}), "
                f"got {mapped.shape[0]}."
            )
        return mapped

    def decide(self, parameters: LinearParameters, contexts: FloatArray) -> FloatArray:
        """Return theta' g(x) + t, shape (rows, products)."""
        return self.transform(contexts) @ parameters.theta + parameters.intercept
