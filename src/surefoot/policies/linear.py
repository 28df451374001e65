"""Policies that are affine in (features of) the context."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from surefoot.policies.base import Policy, Tree, standardised
from surefoot.typing import ArrayNamespace, FloatArray
from surefoot.validation import check_flag


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
    """z = theta' g(x) + t, mapped into the allowed decisions if there are limits.

    Parameters
    ----------
    intercept
        Whether t is free (True) or zero (False).
    features
        The map g from contexts (rows, columns) to features (rows, features); None means
        g(x) = x. The ambiguity ball then lives in feature space: the adversary moves g(x), and
        ``frozen``, ``support`` and ``scale`` of the ball speak of features.
    decisions
        Where decisions may lie: ``Box``, ``Simplex()``, ``Budget(total)``, or None for anywhere.

    Examples
    --------
    >>> import numpy as np
    >>> policy = Linear(features=lambda X: np.hstack([X, X**2]))
    >>> policy.transform(np.array([[2.0], [3.0]]))
    array([[2., 4.],
           [3., 9.]])
    """

    intercept: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        object.__setattr__(self, "intercept", check_flag("intercept", self.intercept))
        super().__post_init__()

    def initial(self, rng: np.random.Generator, n_columns: int, n_decisions: int) -> Tree:
        """Start at a constant decision (at zero without an intercept)."""
        del rng
        trained: dict[str, FloatArray] = {"theta": np.zeros((n_columns, n_decisions))}
        if self.intercept:
            trained["intercept"] = np.zeros(n_decisions)
        return trained

    def raw(
        self, trained: Tree, units: Mapping[str, FloatArray], inputs: FloatArray, xp: ArrayNamespace
    ) -> FloatArray:
        """Return theta'(x - mean)/spread + centre + t; without centre and mean if t must be zero."""
        del xp
        if not self.intercept:
            bare: FloatArray = (inputs / units["spread"]) @ trained["theta"]
            return bare
        whole: FloatArray = standardised(units, inputs) @ trained["theta"] + (
            units["centre"] + trained["intercept"]
        )
        return whole

    def in_user_units(self, trained: Tree, units: Mapping[str, FloatArray]) -> LinearParameters:
        """Return the parameters of the same policy in the user's units."""
        theta = np.asarray(trained["theta"]) / units["spread"][:, None]
        if not self.intercept:
            return LinearParameters(theta, np.zeros(theta.shape[1]))
        intercept = units["centre"] + np.asarray(trained["intercept"]) - units["mean"] @ theta
        return LinearParameters(theta, intercept)

    def decide(self, parameters: LinearParameters, contexts: FloatArray) -> FloatArray:
        """Return theta' g(x) + t mapped into the allowed decisions, shape (rows, products)."""
        free: FloatArray = self.transform(contexts) @ parameters.theta + parameters.intercept
        return free if self.decisions is None else self.decisions.map_into(free)
