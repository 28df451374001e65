"""The face that our estimators and the baselines share."""

from abc import ABC, abstractmethod
from typing import Any

from sklearn.utils import RegressorTags, Tags

from surefoot.estimators.inputs import like_contexts
from surefoot.estimators.scikit_learn_habits import NestedParameters
from surefoot.typing import FloatArray


class DecisionMaker(NestedParameters, ABC):
    """A policy with the scikit-learn interface. Its score is minus cost, not a share of variance."""

    def __sklearn_tags__(self) -> Tags:
        """Outcomes are required and may be vectors; contexts are dense and finite.

        To scikit-learn it counts as a regressor, one with a poor score: partial dependence and its
        like ask for the word. It predicts no outcome.
        """
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.regressor_tags = RegressorTags(poor_score=True)
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

    def decide(self, X: Any) -> Any:
        """Return the decisions of ``predict``, as a frame or series where X is one.

        From a pandas or polars frame come decisions of its kind, with its index, named after the
        outcomes of the fit; from anything else an array.
        """
        return like_contexts(X, self.predict(X), self._named_outcomes())

    def _named_outcomes(self) -> list[str] | None:
        """Return the names of the outcomes, if the fit saw any."""
        return getattr(self, "_outcome_names", None)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean realised cost, so that bigger is better."""
        return -self.cost(X, y, sample_weight)
