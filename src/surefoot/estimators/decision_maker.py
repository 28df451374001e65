"""The face that our estimators and the baselines share."""

from abc import ABC, abstractmethod
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from surefoot.typing import FloatArray


class DecisionMaker(BaseEstimator, ABC):
    """A policy with the scikit-learn interface. It is no regressor: score is minus cost."""

    def __sklearn_tags__(self) -> Tags:
        """Outcomes are required and may be vectors; contexts are dense and finite."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    @abstractmethod
    def predict(self, X: Any) -> FloatArray:
        """Return decisions, shape (rows,) or (rows, products) as y was."""

    @abstractmethod
    def cost(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean realised cost of the decisions, summed over products."""

    def decide(self, X: Any) -> FloatArray:
        """Return decisions; the same as ``predict``."""
        return self.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean realised cost, so that bigger is better."""
        return -self.cost(X, y, sample_weight)
