"""What both estimators share: fit, decide, score, stress, stream, save."""

import warnings
from abc import abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from surefoot.certificates import make_certificate
from surefoot.estimators.decision_maker import DecisionMaker
from surefoot.estimators.inputs import check_contexts, check_pairs
from surefoot.estimators.learner import AdversarialSample, Learner
from surefoot.estimators.learning import first_learner, learner_after, radius_path
from surefoot.estimators.model_file import model_parts
from surefoot.estimators.persistence import write_file
from surefoot.estimators.recipe import Recipe
from surefoot.estimators.selection import RadiusPath
from surefoot.exceptions import DataWarning, InvalidInputError
from surefoot.nominals import Empirical, Nominal
from surefoot.problem import column_spread
from surefoot.typing import FloatArray
from surefoot.validation import check_integer, check_number, weight_vector


class RobustEstimator(DecisionMaker):
    """A decision maker with the scikit-learn interface. It is not a regressor: score is minus cost."""

    random_state: int
    radius_path_: RadiusPath

    @abstractmethod
    def _recipe(self) -> Recipe:
        """Return the parts that the constructor's parameters describe."""

    def __sklearn_is_fitted__(self) -> bool:
        """A fit that failed after it had seen the columns leaves no policy behind."""
        return hasattr(self, "parameters_")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn a policy from past pairs.

        Parameters
        ----------
        X
            Contexts, shape (rows, columns): an array, or a pandas or polars frame of numbers.
        y
            Outcomes, shape (rows,) or (rows, products).
        sample_weight
            Non-negative, one per row; a weight of 2 counts as the row twice.
        """
        given = self._recipe()
        seed = check_integer("random_state", self.random_state, at_least=0)
        X, y = check_pairs(self, X, y, reset=True, min_rows=2)
        recipe = given.fitted(X)
        nominal = self._nominal(recipe, X, y, sample_weight)
        self._warn_of_constant_columns(recipe, nominal)
        radius = self._chosen_radius(recipe, nominal, seed)
        solution = recipe.solver.solve(recipe.problem(nominal, radius), seed)
        learner = learner_after(recipe, float(radius), solution)
        self._given_recipe = given
        self._take(recipe, learner, float(radius), y)
        self.parameters_ = solution.parameters
        self.certificate_ = solution.certificate
        self.converged_, self.status_ = solution.converged, solution.status
        self.n_steps_, self.history_ = solution.n_steps, solution.history
        self.multiplier_ = self._per_product(solution.multiplier)
        return self

    def _chosen_radius(self, recipe: Recipe, nominal: Nominal, seed: int) -> float:
        """Return the radius as given, or choose it and remember what was seen."""
        if hasattr(self, "radius_path_"):
            del self.radius_path_
        if not isinstance(recipe.ball.radius, str):
            return float(recipe.ball.radius)
        recipe.solver.refuse_unless_fit(
            recipe.problem(nominal, 1.0)
        )  # at some radius, as all are tried
        path = radius_path(recipe.problem(nominal, 0.0), recipe.solver, seed)
        self.radius_path_ = path
        return path.radius

    def _nominal(self, recipe: Recipe, X: FloatArray, y: FloatArray, weight: Any) -> Nominal:
        if recipe.nominal is None:
            return Empirical(X, y, weight, names=getattr(self, "feature_names_in_", None))
        nominal, products = recipe.nominal, y.reshape(len(y), -1).shape[1]
        if nominal.n_columns != X.shape[1]:
            raise InvalidInputError(
                f"nominal must have the columns of X ({X.shape[1]}), got {nominal.n_columns}."
            )
        if nominal.n_products != products:
            raise InvalidInputError(
                f"nominal must have the products of y ({products}), got {nominal.n_products}."
            )
        if weight is not None:
            raise InvalidInputError(
                "sample_weight must be None beside a nominal, which has its own, got weights."
            )
        return nominal

    def _take(self, recipe: Recipe, learner: Learner, radius: float, y: FloatArray) -> None:
        """Remember the geometry that decisions and later data share with this fit."""
        self._fitted_recipe, self._learner = recipe, learner
        self._n_outcomes = y.reshape(len(y), -1).shape[1]
        # Several outcomes may meet in one decision, such as a price; it then is a plain number, too.
        self._single = y.ndim == 1 or (
            recipe.cost.n_decisions(self._n_outcomes) == 1 and self._n_outcomes > 1
        )
        self.radius_ = radius
        self.scale_, self.movable_ = learner.scale, learner.movable

    def _warn_of_constant_columns(self, recipe: Recipe, nominal: Nominal, stacklevel: int = 3) -> None:
        """Warn of columns without a spread, but not of zeros: a category may just not have occurred."""
        if not isinstance(nominal, Empirical) or not recipe.ball.scale:
            return
        X, weights = nominal.contexts, nominal.weights
        columns = np.flatnonzero((column_spread(X, weights) == 0.0) & (X != 0.0).any(axis=0))
        if len(columns):
            names = getattr(self, "feature_names_in_", None)
            shown = [repr(str(names[j])) if names is not None else str(j) for j in columns[:5]]
            more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
            warnings.warn(
                f"Constant columns in X ({', '.join(shown)}{more}): they have no standard deviation "
                "to measure a move in, so the adversary leaves them alone.",
                DataWarning,
                stacklevel=stacklevel,
            )

    def _per_product(self, values: FloatArray) -> Any:
        return float(values[0]) if self._single else values

    def predict(self, X: Any) -> FloatArray:
        """Return decisions, shape (rows,) or (rows, products) as y was."""
        check_is_fitted(self)
        X = check_contexts(self, X, reset=False)
        decisions = self._fitted_recipe.policy.decide(self.parameters_, X)
        return decisions[:, 0] if self._single else decisions

    def cost(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean realised cost of the decisions, summed over products."""
        check_is_fitted(self)
        X, y = check_pairs(self, X, y, reset=False)
        y = self._outcomes(y)
        decisions = self._fitted_recipe.policy.decide(self.parameters_, X)
        weights = weight_vector("sample_weight", sample_weight, len(X))
        return self._fitted_recipe.cost.mean(decisions, y, weights)

    def worst_case(
        self, X: Any, y: Any, *, radius: float | None = None, sample_weight: Any = None
    ) -> AdversarialSample:
        """Return the worst distribution in the ball around (X, y) for this policy, without refitting.

        Parameters
        ----------
        X, y
            Data that take the place of the nominal.
        radius
            Radius of the ball; None is the fitted one.
        """
        check_is_fitted(self)
        X, y = check_pairs(self, X, y, reset=False)
        rho = self.radius_ if radius is None else check_number("radius", radius, at_least=0)
        return self._learner.worst_case(Empirical(X, self._outcomes(y), sample_weight), rho)

    def _outcomes(self, y: FloatArray) -> FloatArray:
        """Return outcomes as (rows, products), refusing another number of products."""
        y, products = y.reshape(len(y), -1), self._n_outcomes
        if y.shape[1] != products:
            raise InvalidInputError(
                f"y must have {products} product{'s'[: products > 1]} as in fit, got {y.shape[1]}."
            )
        return y

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from new pairs in order, one update each, going on from where the policy stands.

        The first call of an unfitted estimator fixes the column scale (and the radius, if it is
        "auto") from its rows. ``certificate_`` then speaks of the newest rows only.
        """
        if not hasattr(self, "parameters_"):
            return self._first_partial_fit(X, y)
        X, y = check_pairs(self, X, y, reset=False)
        return self._learn(X, self._outcomes(y))

    def _first_partial_fit(self, X: Any, y: Any) -> Self:
        given = self._recipe()
        seed = check_integer("random_state", self.random_state, at_least=0)
        X, y = check_pairs(self, X, y, reset=True, min_rows=2)
        recipe = given.fitted(X)
        nominal = self._nominal(recipe, X, y, None)
        self._warn_of_constant_columns(recipe, nominal, stacklevel=4)
        radius = self._chosen_radius(recipe, nominal, seed)
        recipe.solver.refuse_unless_fit(recipe.problem(nominal, radius))
        self._given_recipe = given
        self._take(recipe, first_learner(recipe, radius, nominal), radius, y)
        self.n_steps_, self.history_ = 0, ()
        return self._learn(X, y.reshape(len(y), -1))

    def _learn(self, X: FloatArray, y: FloatArray) -> Self:
        lesson = self._learner.learn(X, y)
        self.parameters_ = lesson.parameters
        self.multiplier_ = self._per_product(lesson.multiplier)
        self.n_steps_ += len(X)
        floor = self._fitted_recipe.cost.floor()
        self.certificate_ = make_certificate(lesson.upper, floor, 0.0, "estimate")
        self.converged_ = False
        self.status_ = (
            f"Learning from a stream ({self.n_steps_:,} steps): the certificate is the worst case "
            f"over the newest {len(X)} rows; call fit on all data for a proof."
        )
        return self

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file: JSON and arrays, nothing that could run code."""
        check_is_fitted(self)
        write_file(path, *model_parts(self))
