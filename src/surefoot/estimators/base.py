"""What both estimators share: fit, decide, score, stress, stream, save."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from surefoot.ambiguity import WassersteinBall
from surefoot.certificates import make_certificate, worst_case, worst_case_value
from surefoot.costs import Cost
from surefoot.estimators.inputs import check_contexts, check_pairs
from surefoot.estimators.model_file import model_parts
from surefoot.estimators.persistence import write_file
from surefoot.estimators.selection import choose_radius
from surefoot.estimators.stream import Stream
from surefoot.exceptions import DataWarning, InvalidInputError
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import Linear, Policy
from surefoot.problem import (
    AffineProblem,
    Problem,
    affine_problems,
    column_spread,
    user_parameters,
)
from surefoot.solvers import Solver
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_instance, check_integer, check_number, weight_vector


@dataclass(frozen=True)
class Recipe:
    """The parts of a problem, before there are data."""

    cost: Cost
    policy: Policy
    ball: WassersteinBall
    solver: Solver
    nominal: Nominal | None = None

    def checked(self) -> "Recipe":
        """Return the recipe after refusing parts of the wrong kind by name."""
        check_instance("cost_function", self.cost, Cost, "a cost such as Newsvendor(1.0, 0.2)")
        check_instance("policy", self.policy, Policy, "a policy such as Linear()")
        check_instance("ball", self.ball, WassersteinBall, "a WassersteinBall")
        check_instance("solver", self.solver, Solver, "a solver such as DASGD()")
        if self.nominal is not None:
            check_instance("nominal", self.nominal, Nominal, "a nominal such as Empirical(X, y)")
        return self

    def problem(self, nominal: Nominal, radius: float) -> Problem:
        """Return the problem at a radius."""
        return Problem(self.cost, self.policy, nominal, replace(self.ball, radius=radius))


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
        The optimal gamma of each product.
    transport_cost
        Expected transport cost of each product's atoms, at most radius^p.
    rows, products
        Which row of the data and which product each atom belongs to.
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


class RobustEstimator(BaseEstimator, ABC):
    """A decision maker with the scikit-learn interface. It is not a regressor: score is minus cost."""

    random_state: int

    @abstractmethod
    def _recipe(self) -> Recipe:
        """Return the parts that the constructor's parameters describe."""

    def __sklearn_tags__(self) -> Tags:
        """Outcomes are required and may be vectors; contexts are dense and finite."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

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
        recipe = self._recipe()
        seed = check_integer("random_state", self.random_state, at_least=0)
        X, y = check_pairs(self, X, y, reset=True, min_rows=2)
        nominal = self._nominal(recipe, X, y, sample_weight)
        self._warn_of_constant_columns(recipe, nominal)
        radius = recipe.ball.radius
        if isinstance(radius, str):
            recipe.solver.refuse_unless_fit(recipe.problem(nominal, 0.0))
            path = choose_radius(affine_problems(recipe.problem(nominal, 0.0)), seed)
            self.radius_path_, radius = path, path.radius
        elif hasattr(self, "radius_path_"):
            del self.radius_path_
        solution = recipe.solver.solve(recipe.problem(nominal, radius), seed)
        self._take(recipe, solution.problems, radius, single=y.ndim == 1)
        self.parameters_ = solution.parameters
        self.certificate_ = solution.certificate
        self.converged_, self.status_ = solution.converged, solution.status
        self.n_steps_, self.history_ = solution.n_steps, solution.products[0].history
        self.multiplier_ = self._per_product(solution.multiplier)
        self._streams = [
            Stream.resume(problem, product.theta, product.intercept)
            for problem, product in zip(solution.problems, solution.products, strict=True)
        ]
        return self

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

    def _take(
        self, recipe: Recipe, problems: tuple[AffineProblem, ...], radius: float, *, single: bool
    ) -> None:
        """Remember the geometry that decisions and later data share with this fit."""
        self._fitted_recipe, self._single = recipe, single
        self.radius_ = float(radius)
        self.scale_, self.movable_ = problems[0].scale, problems[0].movable

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

    def decide(self, X: Any) -> FloatArray:
        """Return decisions; the same as ``predict``."""
        return self.predict(X)

    def cost(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean realised cost of the decisions, summed over products."""
        check_is_fitted(self)
        X, y = check_pairs(self, X, y, reset=False)
        y = self._outcomes(y)
        decisions = self._fitted_recipe.policy.decide(self.parameters_, X)
        weights = weight_vector("sample_weight", sample_weight, len(X))
        return float(weights @ self._fitted_recipe.cost.evaluate(decisions, y))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean realised cost, so that bigger is better."""
        return -self.cost(X, y, sample_weight)

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
        recipe, nominal = self._fitted_recipe, Empirical(X, self._outcomes(y), sample_weight)
        problems = affine_problems(
            recipe.problem(nominal, rho), self.scale_, self.movable_, merge=False
        )
        parts = [
            worst_case(problem, self.parameters_.theta[:, j] * problem.scale,
                       float(self.parameters_.intercept[j]))
            for j, problem in enumerate(problems)
        ]  # fmt: skip
        features = self._features(X)
        # Moves are added to the user's own numbers, so that what stays still stays to the last bit.
        contexts = [
            features[part.rows] + (part.contexts - problem.contexts[part.rows]) * problem.scale
            for part, problem in zip(parts, problems, strict=True)
        ]
        return AdversarialSample(
            value=sum(part.value for part in parts),
            expected_cost=sum(part.expected_cost for part in parts),
            multiplier=np.array([part.multiplier for part in parts]),
            transport_cost=np.array([part.transport_cost for part in parts]),
            rows=np.concatenate([part.rows for part in parts]),
            products=np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts]),
            contexts=np.vstack(contexts),
            outcomes=np.concatenate([part.outcomes for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            distances=np.concatenate([part.distances for part in parts]),
        )

    def _problems(self, nominal: Empirical, radius: float) -> tuple[AffineProblem, ...]:
        problem = self._fitted_recipe.problem(nominal, radius)
        return affine_problems(problem, self.scale_, self.movable_)

    def _features(self, X: FloatArray) -> FloatArray:
        policy = self._fitted_recipe.policy
        return policy.transform(X) if isinstance(policy, Linear) else X

    def _geometry(self) -> tuple[AffineProblem, ...]:
        """Return the fitted affine problems without their rows (one row of zeros inside the box)."""
        columns, products = self.n_features_in_, self.parameters_.theta.shape[1]
        box = self._fitted_recipe.ball.support
        row, outcome = np.zeros(columns), 0.0
        if box is not None:
            row = np.clip(row, *box.arrays(len(self.scale_)))
            outcome = float(np.clip(outcome, *box.outcome))
        return self._problems(Empirical(row[None, :], np.full((1, products), outcome)), self.radius_)

    def _outcomes(self, y: FloatArray) -> FloatArray:
        """Return outcomes as (rows, products), refusing another number of products."""
        y, products = y.reshape(len(y), -1), self.parameters_.theta.shape[1]
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
        recipe = self._recipe()
        seed = check_integer("random_state", self.random_state, at_least=0)
        X, y = check_pairs(self, X, y, reset=True, min_rows=2)
        nominal = self._nominal(recipe, X, y, None)
        self._warn_of_constant_columns(recipe, nominal, stacklevel=4)
        radius = recipe.ball.radius
        recipe.solver.refuse_unless_fit(recipe.problem(nominal, 0.0))
        if isinstance(radius, str):
            self.radius_path_ = choose_radius(affine_problems(recipe.problem(nominal, 0.0)), seed)
            radius = self.radius_path_.radius
        problems = affine_problems(recipe.problem(nominal, radius))
        self._take(recipe, problems, radius, single=y.ndim == 1)
        self._streams = [Stream.start(problem) for problem in problems]
        self.n_steps_, self.history_ = 0, ()
        return self._learn(X, y.reshape(len(y), -1))

    def _learn(self, X: FloatArray, y: FloatArray) -> Self:
        problems = self._problems(Empirical(X, y), self.radius_)  # refuses before anything is learned
        features = self._features(X)
        for j, stream in enumerate(self._streams):
            stream.learn(features / self.scale_, y[:, j])
        policies = tuple(stream.policy() for stream in self._streams)
        self.parameters_ = user_parameters(problems, policies)
        values = [
            worst_case_value(problem, *policy)
            for problem, policy in zip(problems, policies, strict=True)
        ]
        self.multiplier_ = self._per_product(np.array([gamma for _, gamma in values]))
        self.n_steps_ += len(X)
        upper = sum(value for value, _ in values)
        self.certificate_ = make_certificate(upper, 0.0, 0.0, "estimate")
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
