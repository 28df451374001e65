"""What the baselines share: fit, decide, cost, score."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from surefoot.costs import ConvexPiecewiseCost, Cost, Newsvendor, Pieces
from surefoot.estimators.decision_maker import DecisionMaker
from surefoot.estimators.experiment_log import recorded
from surefoot.estimators.inputs import check_contexts, check_pairs
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical
from surefoot.typing import FloatArray
from surefoot.validation import check_instance, weight_vector


class Baseline(DecisionMaker):
    """A policy for piecewise linear costs with the scikit-learn interface: score is minus cost.

    ``backorder`` and ``holding`` make a ``Newsvendor``; ``cost_function`` is any other piecewise
    linear cost, and takes their place. Rows are put into one order and equal rows are joined before
    anything is learned, so a weight of 2 is the row twice and the order of the rows does not
    matter, to the last bit.
    """

    backorder: float | Sequence[float]
    holding: float | Sequence[float]
    cost_function: Cost | None

    def _cost(self) -> Cost:
        """Return the cost that the parameters describe."""
        if self.cost_function is None:
            return Newsvendor(self.backorder, self.holding)
        check_instance(
            "cost_function", self.cost_function, ConvexPiecewiseCost,
            "a piecewise linear cost such as Newsvendor(1.0, 0.2), or None",
        )  # fmt: skip
        return self.cost_function

    @abstractmethod
    def _check_options(self) -> None:
        """Refuse parameters that are not allowed, before any work."""

    @abstractmethod
    def _learn(self, rows: Empirical, pieces: tuple[Pieces, ...]) -> None:
        """Learn from distinct rows with weights; ``pieces`` are the costs of each product."""

    @abstractmethod
    def _decide(self, X: FloatArray) -> FloatArray:
        """Return decisions, shape (rows, products)."""

    def __sklearn_is_fitted__(self) -> bool:
        """A fit that failed after it had seen the columns leaves no policy behind."""
        return hasattr(self, "_ready")

    @recorded
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a policy from past pairs.

        Parameters
        ----------
        X
            Contexts, shape (rows, columns): an array, or a pandas or polars frame of numbers.
        y
            Outcomes, shape (rows,) or (rows, products); products are problems of their own.
        sample_weight
            Non-negative, one per row; a weight of 2 counts as the row twice.
        """
        cost = self._cost()
        self.__dict__.pop("_ready", None)
        self._check_options()
        X, y = check_pairs(self, X, y, reset=True, min_rows=2)
        rows = Empirical(X, y, sample_weight).distinct()
        reason = cost.why_not(rows.n_products)
        if reason is not None:
            raise InvalidInputError(reason)
        pieces = cost.pieces(rows.n_products) if isinstance(cost, ConvexPiecewiseCost) else ()
        one_of_many = rows.n_products > 1 and cost.n_decisions(rows.n_products) == 1
        self._single = y.ndim == 1 or one_of_many
        self._fitted_cost, self._fitted_pieces = cost, pieces
        self._n_outcomes = rows.n_products
        self._learn(rows, pieces)
        self._ready = True
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return decisions, shape (rows,) or (rows, products) as y was."""
        check_is_fitted(self)
        decisions = self._decide(check_contexts(self, X, reset=False))
        return decisions[:, 0] if self._single else decisions

    def cost(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean realised cost of the decisions, summed over products."""
        check_is_fitted(self)
        X, y = check_pairs(self, X, y, reset=False)
        y, products = y.reshape(len(y), -1), self._n_outcomes
        if y.shape[1] != products:
            raise InvalidInputError(
                f"y must have {products} product{'s'[: products > 1]} as in fit, got {y.shape[1]}."
            )
        weights = weight_vector("sample_weight", sample_weight, len(X))
        return self._fitted_cost.mean(self._decide(X), y, weights)

    def _per_product(self, values: Sequence[float] | FloatArray) -> Any:
        """One number if y was a vector, else an array with one for each product."""
        return float(values[0]) if self._single else np.asarray(values, dtype=np.float64)
