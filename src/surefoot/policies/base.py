"""How a context becomes a decision."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.policies.features import FeatureMap, feature_map
from surefoot.sets import DecisionSet
from surefoot.typing import ArrayLike, ArrayNamespace, FloatArray
from surefoot.validation import check_instance, context_matrix

# Parameters are a tree of arrays: a dictionary for our own policies, anything for a custom one.
Tree = Any


@register
@dataclass(frozen=True, eq=False)
class Units:
    """The units in which a policy computes, found from the data before learning and fixed then.

    Attributes
    ----------
    mean, spread
        Shape (columns,): a policy sees (x - mean) / spread.
    centre, unit
        Shape (decisions,): a reasonable constant decision, and how far decisions vary around it.
    """

    mean: FloatArray
    spread: FloatArray
    centre: FloatArray
    unit: FloatArray

    def tree(self) -> dict[str, FloatArray]:
        """Return the arrays by name, as the engines want them."""
        return {"mean": self.mean, "spread": self.spread, "centre": self.centre, "unit": self.unit}


@register
@dataclass(frozen=True, eq=False)
class PolicyParameters:
    """Parameters of a policy with the units that they are in.

    Attributes
    ----------
    trained
        What was learned: arrays by name.
    units
        The units of contexts and decisions.
    auxiliary
        The cost's own variables, empty for most costs.
    """

    trained: Tree
    units: Units
    auxiliary: FloatArray

    def __repr__(self) -> str:
        """Print sizes rather than a thousand numbers."""
        if isinstance(self.trained, Mapping):
            sizes = ", ".join(f"{name} {np.shape(array)}" for name, array in self.trained.items())
        else:
            sizes = type(self.trained).__name__
        return f"PolicyParameters({sizes})"


@dataclass(frozen=True)
class Policy(ABC):
    """A family of maps z = f(theta; x) from contexts to decisions.

    Formulas are written against an array namespace ``xp`` (``numpy`` or ``jax.numpy``), so a policy
    that was learned with JAX decides without it.

    Parameters
    ----------
    features
        A map in front of the policy: a ``FeatureMap`` such as ``Polynomial(2)`` or
        ``RandomFourier(100)``, a scikit-learn transformer, any function from contexts
        (rows, columns) to features (rows, features), or None. The ambiguity ball then lives in
        feature space.
    decisions
        Where decisions may lie: ``Box``, ``Simplex()``, ``Budget(total)``, or None for anywhere.
    """

    features: FeatureMap | Callable[[FloatArray], ArrayLike] | None = field(default=None, kw_only=True)
    decisions: DecisionSet | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parts that all policies share."""
        object.__setattr__(self, "features", feature_map(self.features))
        if self.decisions is not None:
            check_instance(
                "decisions", self.decisions, DecisionSet, "a Box, Simplex() or Budget(total)"
            )

    @abstractmethod
    def initial(self, rng: np.random.Generator, n_columns: int, n_decisions: int) -> Tree:
        """Return the parameters at which learning starts."""

    @abstractmethod
    def raw(
        self, trained: Tree, units: Mapping[str, FloatArray], inputs: FloatArray, xp: ArrayNamespace
    ) -> FloatArray:
        """Return decisions before they are mapped into the allowed set.

        Parameters
        ----------
        trained
            The parameters.
        units
            The arrays of ``Units`` by name.
        inputs
            Contexts (features) in the user's units, shape (..., columns).
        """

    def evaluate(
        self, trained: Tree, units: Mapping[str, FloatArray], inputs: FloatArray, xp: ArrayNamespace
    ) -> FloatArray:
        """Return decisions (..., decisions) for contexts (features) of shape (..., columns)."""
        raw = self.raw(trained, units, inputs, xp)
        return raw if self.decisions is None else self.decisions.map_into(raw, xp)

    def decide(
        self, parameters: Any, contexts: FloatArray, offsets: FloatArray | None = None
    ) -> FloatArray:
        """Return decisions of shape (rows, decisions) for contexts of shape (rows, columns).

        ``offsets`` take the place of what the policy's fixed part says, if it has one.
        """
        inputs = self.inputs(contexts, offsets)
        return np.asarray(self.evaluate(parameters.trained, parameters.units.tree(), inputs, np))

    def inputs(self, contexts: FloatArray, offsets: FloatArray | None = None) -> FloatArray:
        """Return what the policy computes from: features and, behind them, fixed values if any."""
        del offsets
        return self.transform(contexts)

    def n_fixed(self, n_decisions: int) -> int:
        """Return how many of the inputs are fixed values, which no adversary moves."""
        del n_decisions
        return 0

    def why_not(self, n_columns: int, n_decisions: int) -> str | None:
        """Return why this policy cannot make so many decisions, or None if it can."""
        del n_columns
        return None if self.decisions is None else self.decisions.why_not(n_decisions)

    def fitted(self, contexts: FloatArray) -> Self:
        """Return the policy with its feature map fitted to contexts."""
        if not isinstance(self.features, FeatureMap):
            return self
        return replace(self, features=self.features.fitted(contexts))

    def n_features(self, n_columns: int) -> int | None:
        """Return how many features so many columns have, None if only a trial can tell."""
        if self.features is None:
            return n_columns
        return self.features.size(n_columns) if isinstance(self.features, FeatureMap) else None

    def transform(self, contexts: FloatArray) -> FloatArray:
        """Return g(x) for each row, the contexts themselves without a feature map."""
        if self.features is None:
            return contexts
        mapped = context_matrix("features(X)", self.features(contexts))
        if mapped.shape[0] != contexts.shape[0]:
            raise InvalidInputError(
                f"features(X) must have one row per row of X ({contexts.shape[0]}), "
                f"got {mapped.shape[0]}."
            )
        return mapped


def standardised(units: Mapping[str, FloatArray], inputs: FloatArray) -> FloatArray:
    """Return (x - mean) / spread."""
    return (inputs - units["mean"]) / units["spread"]


def leaves(tree: Any, name: str = "") -> dict[str, Any]:
    """Return the arrays of nested dictionaries, lists and tuples by where they are."""
    if isinstance(tree, dict):
        parts = tree.items()
    elif isinstance(tree, list | tuple):
        parts = dict(enumerate(tree)).items()
    else:
        return {name: tree}
    return {k: leaf for key, part in parts for k, leaf in leaves(part, f"{name}/{key}").items()}
