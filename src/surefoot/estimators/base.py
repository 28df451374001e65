"""What both estimators share: fit, decide, score, stress, stream, save."""

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from surefoot.ambiguity.ball import RADIUS_RULES
from surefoot.certificates import make_certificate
from surefoot.estimators.augmentation import Augmentation, augment
from surefoot.estimators.centring import Centre, Centred, centred
from surefoot.estimators.decision_maker import DecisionMaker
from surefoot.estimators.inputs import check_contexts, check_pairs
from surefoot.estimators.learner import AdversarialSample, Learner
from surefoot.estimators.learning import (
    collapse_radius,
    correction_path,
    first_learner,
    learner_after,
    radius_path,
)
from surefoot.estimators.model_file import model_parts
from surefoot.estimators.persistence import write_file
from surefoot.estimators.radius_rules import RuledRadius, ruled_radius
from surefoot.estimators.recipe import Recipe
from surefoot.estimators.selection import RadiusPath
from surefoot.exceptions import DataWarning, InvalidInputError, SurefootWarning
from surefoot.forecasts import Forecaster
from surefoot.nominals import Empirical, Nominal
from surefoot.problem import column_spread
from surefoot.typing import FloatArray
from surefoot.validation import check_integer, check_number, weight_vector


class RobustEstimator(DecisionMaker):
    """A decision maker with the scikit-learn interface. It is not a regressor: score is minus cost."""

    random_state: int
    radius_path_: RadiusPath
    radius_rule_: RuledRadius
    centre_: Centre | None
    nominal_: Nominal

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
            Non-negative, one per row; a weight of 2 counts as the row twice. So whole weights are
            counts of observations; others say only how much rows matter beside each other.
        """
        with self._kept_on_failure():
            given = self._recipe()
            seed = check_integer("random_state", self.random_state, at_least=0)
            self._forget_choices()
            X, y = check_pairs(self, X, y, reset=True, min_rows=2)
            recipe = given.fitted(X)
            nominal = self._nominal(recipe, X, y, sample_weight)
            self._warn_of_constant_columns(recipe, nominal)
            centre = found = None
            if recipe.forecaster is None:
                radius = self._chosen_radius(recipe, nominal, seed)
            else:
                assert isinstance(nominal, Empirical)  # a recipe with a forecaster has no other
                found, radius = self._centred(recipe, recipe.forecaster, nominal, seed)
                self._row_count = 1.0 / float(nominal.weights @ nominal.weights)
                centre, nominal = found.centre, found.nominal
            solution = recipe.solver.solve(recipe.problem(nominal, radius), seed)
            learner = learner_after(recipe, float(radius), solution)
            self._given_recipe = given
            self._take(recipe, learner, float(radius), y)
            self.centre_ = centre
            self.nominal_ = nominal if found is None else found.whole
            self.parameters_ = self._whole(solution.parameters)
            self.certificate_ = solution.certificate
            self.converged_, self.status_ = solution.converged, solution.status
            self.n_steps_, self.history_ = solution.n_steps, solution.history
            self.multiplier_ = self._per_product(solution.multiplier)
        return self

    def _chosen_radius(self, recipe: Recipe, nominal: Nominal, seed: int) -> float:
        """Return the radius as given, or choose it and remember what was seen."""
        if not isinstance(recipe.ball.radius, str):
            return float(recipe.ball.radius)
        if recipe.ball.radius != "auto":
            return self._ruled_radius(recipe, recipe.ball.radius, nominal, seed)
        recipe.solver.refuse_unless_fit(
            recipe.problem(nominal, 1.0)
        )  # at some radius, as all are tried
        path = radius_path(recipe.problem(nominal, 0.0), recipe.solver, seed)
        self.radius_path_ = path
        return path.radius

    def _ruled_radius(self, recipe: Recipe, rule: str, nominal: Nominal, seed: int) -> float:
        """Return the radius that a rule sets, warn of what it does not do, and remember it."""
        ruled = ruled_radius(rule, recipe.problem(nominal, 0.0), seed=seed)
        if ruled.warnings:
            message = f"radius={rule!r}: {'; '.join(ruled.warnings)}."
            warnings.warn(message, SurefootWarning, stacklevel=5)
        self.radius_rule_ = ruled
        return ruled.radius

    @contextmanager
    def _kept_on_failure(self) -> Iterator[None]:
        """Leave the estimator as it was, fitted or not, if what follows fails: nothing is lost."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _forget_choices(self) -> None:
        """Drop what an earlier fit found out about radii."""
        for name in ("radius_path_", "radius_rule_"):
            if hasattr(self, name):
                delattr(self, name)

    def _centred(
        self, recipe: Recipe, forecaster: Forecaster, rows: Empirical, seed: int
    ) -> tuple[Centred, float]:
        """Forecast first; return the centre with the nominal of its errors, and the radius."""
        if recipe.ball.radius in RADIUS_RULES[1:]:
            raise InvalidInputError(
                f"nominal must be None beside radius={recipe.ball.radius!r}, which speaks of "
                "independent rows and not of errors of a forecast, got a forecast."
            )
        recipe.solver.refuse_unless_fit(recipe.problem(rows, 1.0))
        found = centred(recipe, forecaster, rows, seed)
        if not isinstance(recipe.ball.radius, str):
            return found, float(recipe.ball.radius)
        path = correction_path(recipe, found.errors, seed)
        if path.radii[0] > 0.0:
            # Radii were tried as shares of the largest useful one, which smoothing moves a bit.
            path = path.times(collapse_radius(recipe, found.nominal) / float(path.radii[0]))
        self.radius_path_ = path
        return found, path.radius

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
        decisions = self._decisions(check_contexts(self, X, reset=False))
        return decisions[:, 0] if self._single else decisions

    def _decisions(self, X: FloatArray) -> FloatArray:
        """Return decisions of shape (rows, decisions): the forecast, if there is one, corrected."""
        decisions = self._fitted_recipe.policy.decide(self.parameters_, X)
        return decisions if self.centre_ is None else decisions + self.centre_.bend(X)

    def _whole(self, parameters: Any) -> Any:
        """Return the learned parameters with the linear part of the forecast, if there is one."""
        return parameters if self.centre_ is None else self.centre_.whole(parameters)

    def _errors(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Return what the policy has to decide about: outcomes, or errors of the forecast."""
        return y if self.centre_ is None else y - self.centre_(X)

    def cost(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean realised cost of the decisions, summed over products."""
        check_is_fitted(self)
        X, y = check_pairs(self, X, y, reset=False)
        weights = weight_vector("sample_weight", sample_weight, len(X))
        return self._fitted_recipe.cost.mean(self._decisions(X), self._outcomes(y), weights)

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
        errors = Empirical(X, self._errors(X, self._outcomes(y)), sample_weight)
        return self._in_outcomes(self._learner.worst_case(errors, rho))

    def _in_outcomes(self, sample: AdversarialSample) -> AdversarialSample:
        """Return an adversarial sample with outcomes in the place of errors of the forecast."""
        if self.centre_ is None:
            return sample
        forecasts = self.centre_(sample.contexts)[np.arange(len(sample.contexts)), sample.products]
        return replace(sample, outcomes=sample.outcomes + forecasts)

    def _outcomes(self, y: FloatArray) -> FloatArray:
        """Return outcomes as (rows, products), refusing another number of products."""
        y, products = y.reshape(len(y), -1), self._n_outcomes
        if y.shape[1] != products:
            raise InvalidInputError(
                f"y must have {products} product{'s'[: products > 1]} as in fit, got {y.shape[1]}."
            )
        return y

    def augmentation(
        self, X: Any = None, y: Any = None, *, radius: float | None = None
    ) -> Augmentation:
        """Return what the adversary of this policy does, column by column.

        Parameters
        ----------
        X, y
            Data that take the place of the nominal; None is the data of the fit.
        radius
            Radius of the ball; None is the fitted one.
        """
        check_is_fitted(self)
        rho = self.radius_ if radius is None else check_number("radius", radius, at_least=0)
        if (X is None) != (y is None):
            raise InvalidInputError("X and y must be given together, got only one of them.")
        if X is not None:
            X, y = check_pairs(self, X, y, reset=False)
            names = getattr(self, "feature_names_in_", None)
            nominal: Nominal = Empirical(X, self._errors(X, self._outcomes(y)), names=names)
        elif hasattr(self, "nominal_"):
            nominal = self.nominal_
        else:
            raise InvalidInputError(
                "X and y must be given: a model from a file does not hold its training data, got None."
            )
        return augment(self._fitted_recipe, self._learner, nominal, rho, centre=self.centre_)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from new pairs in order, one update each, going on from where the policy stands.

        The first call of an unfitted estimator fixes the column scale (and the radius, if it is
        "auto") from its rows. ``certificate_`` then speaks of the newest rows only.
        """
        if not hasattr(self, "parameters_"):
            return self._first_partial_fit(X, y)
        X, y = check_pairs(self, X, y, reset=False)
        errors = self._errors(X, self._outcomes(y))
        if self.centre_ is not None:  # frozen columns are left to the forecast, as in fit
            names = getattr(self, "feature_names_in_", None)
            X = np.where(self._fitted_recipe.ball.frozen_mask(X.shape[1], names), 0.0, X)
        return self._learn(X, errors)

    def _first_partial_fit(self, X: Any, y: Any) -> Self:
        with self._kept_on_failure():
            given = self._recipe()
            seed = check_integer("random_state", self.random_state, at_least=0)
            self._forget_choices()
            X, y = check_pairs(self, X, y, reset=True, min_rows=2)
            recipe = given.fitted(X)
            nominal = self._nominal(recipe, X, y, None)
            self._warn_of_constant_columns(recipe, nominal, stacklevel=4)
            radius = self._chosen_radius(recipe, nominal, seed)
            recipe.solver.refuse_unless_fit(recipe.problem(nominal, radius))
            self._given_recipe = given
            self._take(recipe, first_learner(recipe, radius, nominal), radius, y)
            self.centre_, self.nominal_ = None, nominal  # a stream begins without a forecast
            self.n_steps_, self.history_ = 0, ()
            return self._learn(X, y.reshape(len(y), -1))

    def _learn(self, X: FloatArray, y: FloatArray) -> Self:
        lesson = self._learner.learn(X, y)
        self.parameters_ = self._whole(lesson.parameters)
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
