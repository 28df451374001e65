"""A fitted policy that can be stressed and taught further: what both engines offer."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

from surefoot.estimators.recipe import Recipe
from surefoot.nominals import Empirical
from surefoot.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class AdversarialSample:
    """The worst distribution in the ball around some data, as weighted atoms in the user's units.

    Attributes
    ----------
    value
        Worst-case expected cost, summed over products.
    expected_cost
        Expected cost under the atoms.
    multiplier
        The optimal gamma of each product (of all together for a general policy).
    transport_cost
        Expected transport cost of each product's atoms, at most radius^p.
    rows, products
        Which row of the data and which product each atom belongs to; a general policy faces one
        adversary for all products, and its atoms count as product 0.
    contexts, outcomes
        The moved contexts (atoms, columns; features if the policy has a feature map) and outcomes.
    weights
        Probabilities; they sum to one for each product.
    distances
        Transport cost d_p of each atom, in scaled units.
    """

    value: float
    expected_cost: float
    multiplier: FloatArray
    transport_cost: FloatArray
    rows: IntArray
    products: IntArray
    contexts: FloatArray = field(repr=False)
    outcomes: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    distances: FloatArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a policy is after new rows: parameters, worst case on those rows, multipliers."""

    parameters: Any
    upper: float
    multiplier: FloatArray


class Learner(ABC):
    """A policy, the geometry that it was fitted in, and where its learning stands."""

    scale: FloatArray
    movable: BoolArray
    parameters: Any

    @abstractmethod
    def worst_case(self, nominal: Empirical, radius: float) -> AdversarialSample:
        """Return the worst distribution in the ball around some data."""

    @abstractmethod
    def learn(self, X: FloatArray, y: FloatArray) -> Lesson:
        """Take one update for each row, in order."""

    @classmethod
    @abstractmethod
    def restore(
        cls, recipe: Recipe, radius: float, n_columns: int, arrays: dict[str, FloatArray]
    ) -> Self:
        """Return the learner that ``arrays`` describes."""

    @abstractmethod
    def arrays(self) -> dict[str, FloatArray]:
        """Return all that a model file must hold beside the parameters."""
