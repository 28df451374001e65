"""What diagnostics look into in a fitted model, checked in one place."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from surefoot.estimators import RobustEstimator
from surefoot.estimators.inputs import check_pairs
from surefoot.estimators.row_costs import refuse_levels
from surefoot.nominals import Empirical
from surefoot.problem import Problem
from surefoot.solvers import Solver, default_solver
from surefoot.validation import check_instance


def checked_model(model: Any) -> RobustEstimator:
    """Return a fitted model, or refuse what is none."""
    check_instance("model", model, RobustEstimator, "a fitted RobustPolicy or RobustNewsvendor")
    check_is_fitted(model)
    refuse_levels(model, "model")
    fitted: RobustEstimator = model
    return fitted


def solver_of(model: RobustEstimator, problem: Problem) -> Solver:
    """Return the solver that a fit of the model to a problem runs."""
    given = model._given_recipe.solver
    return default_solver(problem) if given is None else given


def rows_of(model: RobustEstimator, X: Any, y: Any, sample_weight: Any = None) -> Empirical:
    """Return data in the columns and products of a fitted model as a nominal."""
    contexts, outcomes = check_pairs(model, X, y, reset=False)
    names = getattr(model, "feature_names_in_", None)
    return Empirical(contexts, model._outcomes(outcomes), sample_weight, names=names)


def realised_cost(problem: Problem, parameters: Any, rows: Empirical) -> float:
    """Return the mean cost of a policy's decisions on some data."""
    decisions = problem.policy.decide(parameters, rows.contexts)
    return problem.cost.mean(decisions, rows.outcomes, rows.weights)
