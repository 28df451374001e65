"""Policies that are affine in (features of) the context."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from surefoot.exceptions import InvalidTypeError
from surefoot.io import register
from surefoot.policies.base import Policy, Tree, standardised
from surefoot.typing import ArrayNamespace, FloatArray
from surefoot.validation import check_flag, outcome_matrix


@register
@dataclass(frozen=True, eq=False)
class LinearParameters:
    """Parameters of an affine policy, in the user's units.

    Attributes
    ----------
    theta
        Shape (columns, products).
    intercept
        Shape (products,); zeros for a policy without intercept.
    auxiliary
        The cost's own variables, empty for most costs.
    """

    theta: FloatArray
    intercept: FloatArray
    auxiliary: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __repr__(self) -> str:
        """Print sizes rather than a thousand numbers."""
        columns, products = self.theta.shape
        return (
            f"LinearParameters({columns} column{'s'[: columns > 1]}, "
            f"{products} product{'s'[: products > 1]}, "
            f"norm {np.linalg.norm(self.theta):.4g}, "
            f"intercept {np.array2string(self.intercept, precision=4)})"
        )


@register
@dataclass(frozen=True)
class Linear(Policy):
    """z = theta' g(x) + t + m(x), mapped into the allowed decisions if there are limits.

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
    offset
        A fixed function m from contexts (rows, columns) to (rows, products), such as a forecast, that
        the linear part corrects; None is zero. An adversary that moves a context leaves m where it is.

    Examples
    --------
    >>> import numpy as np
    >>> policy = Linear(features=lambda X: np.hstack([X, X**2]))
    >>> policy.transform(np.array([[2.0], [3.0]]))
    array([[2., 4.],
           [3., 9.]])
    """

    intercept: bool = True
    offset: Callable[[FloatArray], FloatArray] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", check_flag("intercept", self.intercept))
        if self.offset is not None and not callable(self.offset):
            raise InvalidTypeError(
                f"offset must be a function of a context matrix or None, got {self.offset!r}."
            )
        super().__post_init__()

    def offsets(self, contexts: FloatArray) -> FloatArray | None:
        """Return m(x) for each row, shape (rows, products), or None where there is no offset."""
        if self.offset is None:
            return None
        return outcome_matrix("offset(X)", self.offset(contexts), len(contexts))

    def inputs(self, contexts: FloatArray, offsets: FloatArray | None = None) -> FloatArray:
        """Return features and, behind them, offsets: those given, or m(x)."""
        features = self.transform(contexts)
        offsets = self.offsets(contexts) if offsets is None else offsets
        return features if offsets is None else np.hstack([features, offsets])

    def n_fixed(self, n_decisions: int) -> int:
        """Return how many of the inputs are offsets."""
        return 0 if self.offset is None else n_decisions

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
        """Return theta'(x - mean)/spread + centre + t; without centre and mean if t must be zero.

        With an offset, the last inputs are its values, and the rest is a correction of it.
        """
        del xp
        fixed: FloatArray | float = 0.0
        if self.offset is not None:
            size = trained["theta"].shape[0]
            inputs, fixed = inputs[..., :size], inputs[..., size:]
        if not self.intercept:
            bare: FloatArray = (inputs / units["spread"]) @ trained["theta"] + fixed
            return bare
        whole: FloatArray = standardised(units, inputs) @ trained["theta"] + (
            units["centre"] + trained["intercept"] + fixed
        )
        return whole

    def in_user_units(self, trained: Tree, units: Mapping[str, FloatArray]) -> LinearParameters:
        """Return the parameters of the same policy in the user's units."""
        theta = np.asarray(trained["theta"]) / units["spread"][:, None]
        if not self.intercept:
            return LinearParameters(theta, np.zeros(theta.shape[1]))
        intercept = units["centre"] + np.asarray(trained["intercept"]) - units["mean"] @ theta
        return LinearParameters(theta, intercept)

    def from_user_units(self, parameters: LinearParameters, units: Mapping[str, FloatArray]) -> Tree:
        """Return parameters in the user's units as ``raw`` takes them."""
        trained: dict[str, FloatArray] = {"theta": parameters.theta * units["spread"][:, None]}
        if self.intercept:
            shift = units["mean"] @ parameters.theta - units["centre"]
            trained["intercept"] = parameters.intercept + shift
        return trained

    def decide(
        self, parameters: LinearParameters, contexts: FloatArray, offsets: FloatArray | None = None
    ) -> FloatArray:
        """Return theta' g(x) + t + m(x) mapped into the allowed decisions, shape (rows, products)."""
        free: FloatArray = self.transform(contexts) @ parameters.theta + parameters.intercept
        offsets = self.offsets(contexts) if offsets is None else offsets
        free = free if offsets is None else free + offsets
        return free if self.decisions is None else self.decisions.map_into(free)
