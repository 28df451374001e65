"""The parts of a fitted model that diagnostics look into, checked in one place."""

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from surefoot.estimators import RobustEstimator
from surefoot.estimators.centring import Centre, without_columns
from surefoot.estimators.inputs import check_pairs
from surefoot.estimators.learner import Learner
from surefoot.estimators.recipe import Recipe
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical, Nominal
from surefoot.validation import check_instance


@dataclass(frozen=True, eq=False)
class FittedParts:
    """A fitted model: what it was asked to do, the policy that it found, its radius and its seed.

    ``centre`` is the forecast that the policy corrects, None without one.
    """

    recipe: Recipe
    learner: Learner
    radius: float
    seed: int
    centre: Centre | None


def fitted_parts(model: Any) -> FittedParts:
    """Return the parts of a fitted model, or refuse what is none."""
    check_instance("model", model, RobustEstimator, "a fitted RobustPolicy or RobustNewsvendor")
    check_is_fitted(model)
    return FittedParts(
        model._fitted_recipe, model._learner, model.radius_, model.random_state, model.centre_
    )


def empirical_of(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Empirical:
    """Return data in the columns and products of a fitted model as a nominal.

    Outcomes are errors of the forecast where the model starts from one: costs are those of
    differences z - y then, so policy and outcomes may both leave the forecast out.
    """
    contexts, outcomes = check_pairs(model, X, y, reset=False)
    errors = model._errors(contexts, model._outcomes(outcomes))
    names = getattr(model, "feature_names_in_", None)
    return Empirical(contexts, errors, sample_weight, names=names)


def trained_nominal(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Nominal:
    """Return what a fit to these data learned from: their rows, or honest errors of its forecast."""
    if model.centre_ is None:
        return empirical_of(model, X, y, sample_weight)
    if not hasattr(model, "nominal_"):
        raise InvalidInputError(
            "model must come from fit itself where it starts from a forecast, got one from a file."
        )
    nominal: Nominal = model.nominal_
    return nominal


def corrected_nominal(parts: FittedParts, nominal: Empirical) -> Empirical:
    """Return what a correction is learned from: frozen columns are left to the forecast."""
    if parts.centre is None:
        return nominal
    frozen = parts.recipe.ball.frozen_mask(nominal.n_columns, nominal.names)
    return without_columns(nominal, frozen)


def realised_cost(recipe: Recipe, parameters: Any, nominal: Empirical) -> float:
    """Return the mean cost of a policy's decisions on some data."""
    decisions = recipe.policy.decide(parameters, nominal.contexts)
    return recipe.cost.mean(decisions, nominal.outcomes, nominal.weights)
