"""Which engine serves which problem, for fitting, learning on and choosing the radius."""

from surefoot.estimators.affine_learner import AffineLearner
from surefoot.estimators.general_learner import GeneralLearner
from surefoot.estimators.general_selection import choose_general_radius
from surefoot.estimators.learner import Learner
from surefoot.estimators.recipe import Recipe
from surefoot.estimators.selection import RadiusPath, choose_correction, choose_radius
from surefoot.nominals import Nominal
from surefoot.problem import Problem, affine_problems, general_problem, why_not_affine
from surefoot.solvers import DASGD, AffineAnswer, GeneralSolution, Solution, Solver
from surefoot.typing import FloatArray

_LEARNERS = {cls.__name__: cls for cls in (AffineLearner, GeneralLearner)}


def learner_after(recipe: Recipe, radius: float, solution: Solution) -> Learner:
    """Return a learner that goes on from a solution."""
    if isinstance(solution, GeneralSolution):
        return GeneralLearner.after_fit(recipe, radius, solution)
    assert isinstance(solution, AffineAnswer)  # the only other kind
    return AffineLearner.after_fit(recipe, radius, solution)


def first_learner(recipe: Recipe, radius: float, nominal: Nominal) -> Learner:
    """Return a learner that begins with the first rows of a stream."""
    if why_not_affine(recipe.problem(nominal, radius)) is None:
        return AffineLearner.from_first_rows(recipe, radius, nominal)
    return GeneralLearner.from_first_rows(recipe, radius, nominal)


def restored_learner(
    kind: str, recipe: Recipe, radius: float, n_columns: int, arrays: dict[str, FloatArray]
) -> Learner:
    """Return the learner that a model file describes."""
    return _LEARNERS[kind].restore(recipe, radius, n_columns, arrays)


def collapse_radius(recipe: Recipe, nominal: Nominal) -> float:
    """Return the radius from which on the best affine policy is constant, for every product."""
    problems = affine_problems(recipe.problem(nominal, 0.0))
    return max(problem.collapse_radius() for problem in problems)


def radius_path(problem: Problem, solver: Solver, seed: int) -> RadiusPath:
    """Choose the radius of a problem by cross-validation, in the engine that will solve it."""
    if why_not_affine(problem) is None:
        return choose_radius(affine_problems(problem), seed)
    settings = (solver if isinstance(solver, DASGD) else DASGD()).general_settings()
    return choose_general_radius(general_problem(problem, seed), settings, seed)


def correction_path(recipe: Recipe, errors: Nominal, seed: int) -> RadiusPath:
    """Choose the radius for the errors of a forecast."""
    # Rows stay apart: where equal ones are observations of their own, each is held out alone.
    return choose_correction(affine_problems(recipe.problem(errors, 0.0), merge=False), seed)
