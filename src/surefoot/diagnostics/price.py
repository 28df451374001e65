"""The price of robustness: what a policy costs on the data, in the worst case and on new rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.certificates import worst_case_value
from surefoot.diagnostics.fitted import (
    FittedParts,
    corrected_nominal,
    empirical_of,
    fitted_parts,
    realised_cost,
)
from surefoot.exceptions import ConvergenceWarning, InvalidInputError
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.problem import AffineProblem, affine_problems, user_parameters, why_not_affine
from surefoot.random import rng_for
from surefoot.solvers import DASGD, solve_many
from surefoot.solvers.base import AffineSolution
from surefoot.solvers.loop import MEMORY_GROWTH, draw_blocks, run_until
from surefoot.solvers.memory import MemoryRun
from surefoot.typing import ArrayLike, BoolArray, FloatArray
from surefoot.validation import check_flag, numeric_array

# Radii tried unless the user names some: zero, and so many from this share of the largest on.
N_RADII, SMALLEST_SHARE = 30, 0.003
# Beyond affine policies every radius costs a run of its own, and no largest radius is known.
N_GENERAL_RADII, LARGEST_GENERAL, SMALLEST_GENERAL = 8, 1.0, 0.01
# Most steps of a refit; the certified gap ends one long before.
MOST_STEPS = 20_000_000


@dataclass(frozen=True, eq=False)
class CostCurve:
    """Costs of a policy, or of one policy for each radius.

    Attributes
    ----------
    nominal
        Expected cost under the data, one for each radius.
    worst_case
        Worst expected cost over the ball of each radius around the data.
    realised
        Mean cost on held-out rows; None if none were given.
    converged
        Whether the policy of each radius is within tolerance of the best.
    kind
        What ``worst_case`` is: "exact", "bound" (never too low) or "estimate".
    """

    nominal: FloatArray
    worst_case: FloatArray
    realised: FloatArray | None
    converged: BoolArray
    kind: str


@dataclass(frozen=True, eq=False)
class PriceOfRobustness:
    """What robustness costs and what it protects from, radius by radius.

    Attributes
    ----------
    radii
        Ascending.
    fitted_radius
        The radius that the model was fitted with.
    fixed
        The policy as it stands, stressed at each radius: how robust is this decision?
    refitted
        The best policy for each radius; None if none was asked for. The rise of its nominal cost is
        the price of robustness; its worst case is the least that any policy of the family can have.
    """

    radii: FloatArray
    fitted_radius: float
    fixed: CostCurve
    refitted: CostCurve | None

    @property
    def price(self) -> FloatArray | None:
        """Nominal cost of each refitted policy above that of the smallest radius, as a share of it."""
        if self.refitted is None:
            return None
        least = self.refitted.nominal[0]
        return np.asarray(self.refitted.nominal / least - 1.0) if least > 0.0 else None

    @property
    def best_radius(self) -> float | None:
        """The radius whose policy costs least on the held-out rows, in hindsight."""
        if self.refitted is None or self.refitted.realised is None:
            return None
        return float(self.radii[int(np.argmin(self.refitted.realised))])

    def __str__(self) -> str:
        """Print the curves as a table of at most a dozen radii."""
        curves = [("fixed", self.fixed)] + ([("refit", self.refitted)] if self.refitted else [])
        held_out = self.fixed.realised is not None
        parts = ("nominal", "worst_case", "realised") if held_out else ("nominal", "worst_case")
        titles = {"nominal": "data", "worst_case": "worst", "realised": "new rows"}
        head = [f"{name}: {titles[part]}" for name, _ in curves for part in parts]
        lines = [f"{'radius':>9}" + "".join(f"{title:>16}" for title in head)]
        for k in np.unique(np.linspace(0, len(self.radii) - 1, 12).round().astype(int)):
            values = [getattr(curve, part)[k] for _, curve in curves for part in parts]
            lines.append(f"{self.radii[k]:9.4g}" + "".join(f"{value:16.5g}" for value in values))
        return "\n".join([*lines, f"Fitted at radius {self.fitted_radius:.4g}."])


def price_of_robustness(
    model: Any,
    X: Any,
    y: Any,
    radii: ArrayLike | None = None,
    X_test: Any = None,
    y_test: Any = None,
    *,
    refit: bool = True,
    sample_weight: Any = None,
) -> PriceOfRobustness:
    """Return nominal, worst-case and realised cost against the radius.

    The policy as fitted is stressed at each radius. With ``refit`` a policy is learned for each
    radius, too: for affine policies along one path, from the largest radius down, each from the
    last; for others side by side in one program.

    Parameters
    ----------
    model
        A fitted RobustPolicy or RobustNewsvendor.
    X, y
        The data around which the balls lie, and which refits learn from; the training data, usually.
        A model that starts from a forecast keeps it: only its correction is refitted, to the errors
        of the forecast on these rows, which on the training rows are smaller than on others.
    radii
        Radii >= 0 in the units of the fit; None is zero and 29 more, up to the collapse radius, from
        which on the best policy ignores the context (8 in all, up to one, for policies that are not
        affine).
    X_test, y_test
        Held-out rows for the realised cost, or None.
    refit
        Whether to learn a policy for each radius.
    sample_weight
        Weights of the rows of X, as in ``fit``.

    Examples
    --------
    >>> from surefoot import RobustNewsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=60, s=5, seed=0)
    >>> model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)
    >>> curve = price_of_robustness(model, data.X, data.y, [0.0, 0.1, 0.3], data.X_test, data.y_test)
    >>> bool((curve.refitted.worst_case <= 1.01 * curve.fixed.worst_case).all())
    True
    """
    check_flag("refit", refit)
    parts = fitted_parts(model)
    nominal = empirical_of(model, X, y, sample_weight)
    test = _test_rows(model, X_test, y_test)
    affine = why_not_affine(parts.recipe.problem(nominal, 0.0)) is None
    asked = _checked_radii(radii) if radii is not None else _default_radii(parts, nominal, affine)
    return PriceOfRobustness(
        radii=asked,
        fitted_radius=parts.radius,
        fixed=_fixed_curve(parts, nominal, test, asked, affine),
        refitted=_refitted_curve(parts, nominal, test, asked, affine) if refit else None,
    )


def _test_rows(model: Any, X_test: Any, y_test: Any) -> Empirical | None:
    if (X_test is None) != (y_test is None):
        missing = "y_test" if y_test is None else "X_test"
        raise InvalidInputError(f"X_test and y_test must be given together, got no {missing}.")
    return None if X_test is None else empirical_of(model, X_test, y_test)


def _checked_radii(radii: ArrayLike) -> FloatArray:
    given = np.atleast_1d(numeric_array("radii", radii))
    if given.ndim != 1 or given.size == 0:
        raise InvalidInputError(f"radii must be a list of numbers >= 0, got shape {given.shape}.")
    if given.min() < 0.0:
        raise InvalidInputError(f"radii must be >= 0, got {given.min()}.")
    return np.unique(given)


def _default_radii(parts: FittedParts, nominal: Empirical, affine: bool) -> FloatArray:
    """Return zero and radii up to the collapse radius, evenly spread on a log scale."""
    count, smallest = N_GENERAL_RADII, SMALLEST_GENERAL
    largest = max(LARGEST_GENERAL, parts.radius)
    if affine:
        problem = parts.recipe.problem(nominal, 0.0)
        problems = affine_problems(problem, parts.learner.scale, parts.learner.movable)
        largest = max(parts.radius, *(problem.collapse_radius() for problem in problems))
        count, smallest = N_RADII, SMALLEST_SHARE
    if largest == 0.0:
        return np.zeros(1)
    return np.append(0.0, np.geomspace(smallest * largest, largest, count - 1))


# --- the policy as it stands ------------------------------------------------------------------


def _fixed_curve(
    parts: FittedParts, nominal: Empirical, test: Empirical | None, radii: FloatArray, affine: bool
) -> CostCurve:
    recipe, learner = parts.recipe, parts.learner
    count = len(radii)
    here = realised_cost(recipe, learner.parameters, nominal)
    if affine:
        problems = affine_problems(recipe.problem(nominal, 0.0), learner.scale, learner.movable)
        policies = _scaled(problems, learner.parameters)
        worst = [_worst_case(problems, policies, float(radius)) for radius in radii]
        kind = _affine_kind(problems)
    else:
        worst = [learner.worst_case(nominal, float(radius)).value for radius in radii]
        kind = "estimate"
    there = None if test is None else np.full(count, realised_cost(recipe, learner.parameters, test))
    return CostCurve(np.full(count, here), np.array(worst), there, np.ones(count, dtype=bool), kind)


_Policies = Sequence[tuple[FloatArray, float]]


def _scaled(problems: Sequence[AffineProblem], parameters: LinearParameters) -> _Policies:
    """Return (theta, intercept) of each product in scaled units."""
    return [
        (parameters.theta[:, j] * problem.scale, float(parameters.intercept[j]))
        for j, problem in enumerate(problems)
    ]


def _worst_case(problems: Sequence[AffineProblem], policies: _Policies, radius: float) -> float:
    """Return the worst case of an affine policy, summed over products."""
    return sum(
        worst_case_value(problem.at_radius(radius), *policy)[0] + problem.unavoidable
        for problem, policy in zip(problems, policies, strict=True)
    )


def _affine_kind(problems: Sequence[AffineProblem]) -> str:
    """Cut decisions are bounded by uncut ones, and smoothed costs in a box by their kink."""
    loose = any(p.limited or (p.boxed and p.pieces.smoothing > 0.0) for p in problems)
    return "bound" if loose else "exact"


# --- a policy for each radius -----------------------------------------------------------------


def _refitted_curve(
    parts: FittedParts, nominal: Empirical, test: Empirical | None, radii: FloatArray, affine: bool
) -> CostCurve:
    recipe, solver = parts.recipe, parts.recipe.solver
    nominal, learner = corrected_nominal(parts, nominal), parts.learner
    problems: tuple[AffineProblem, ...] = ()
    if affine:  # in the units of the fit, which other data would not give
        problem = recipe.problem(nominal, 0.0)
        problems = affine_problems(problem, learner.scale, learner.movable)
    if affine and isinstance(solver, DASGD) and _has_path(solver, problems):
        parameters, worst, converged = _along_path(solver, problems, radii, parts.seed)
        kind = _affine_kind(problems)
    else:
        parameters, worst, converged, kind = _side_by_side(parts, nominal, radii)
    if not converged.all():
        warnings.warn(
            f"{(~converged).sum()} of {len(radii)} refits ran out of steps: the worst case of the best "
            "policy may lie lower there. Raise max_steps or loosen gap_tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
    here = np.array([realised_cost(recipe, found, nominal) for found in parameters])
    there = None
    if test is not None:
        there = np.array([realised_cost(recipe, found, test) for found in parameters])
    return CostCurve(here, worst, there, converged, kind)


def _has_path(solver: DASGD, problems: Sequence[AffineProblem]) -> bool:
    """Whether one run with memory can serve all radii, as ``fit`` itself would run."""
    plain = not solver.memory or solver.optimizer is not None
    return not plain and not any(p.boxed or p.pieces.smoothing > 0.0 for p in problems)


_Found = tuple[list[Any], FloatArray, BoolArray]


def _along_path(
    solver: DASGD, problems: Sequence[AffineProblem], radii: FloatArray, seed: int
) -> _Found:
    """Solve from the largest radius down, each from where the last one ended."""
    paths = [_one_path(solver, p, radii, rng_for(seed, "price", j)) for j, p in enumerate(problems)]
    parameters, worst, converged = [], np.empty(len(radii)), np.ones(len(radii), dtype=bool)
    for k, radius in enumerate(radii):
        answers = [path[k] for path in paths]
        policies = [(answer.theta, answer.intercept) for answer in answers]
        parameters.append(user_parameters(tuple(problems), tuple(policies)))
        worst[k] = _worst_case(problems, policies, float(radius))
        converged[k] = all(answer.stopped == "gap" for answer in answers)
    return parameters, worst, converged


def _one_path(
    solver: DASGD, problem: AffineProblem, radii: FloatArray, rng: np.random.Generator
) -> list[AffineSolution]:
    """Return the answer of one product at each radius."""
    run, found = MemoryRun.start(problem), []
    for radius in radii[::-1]:
        run.move_to(float(radius))
        steps = solver.max_steps or MOST_STEPS
        blocks = draw_blocks(run.problem, rng, steps, MEMORY_GROWTH)
        found.append(run_until(run, blocks, gap_tol=solver.gap_tol))
    return found[::-1]


def _side_by_side(
    parts: FittedParts, nominal: Empirical, radii: FloatArray
) -> tuple[list[Any], FloatArray, BoolArray, str]:
    """Solve at each radius with the model's own solver."""
    problems = [parts.recipe.problem(nominal, float(radius)) for radius in radii]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said once, for all radii
        solutions = solve_many(problems, parts.recipe.solver, seeds=parts.seed)
    kinds = {solution.certificate.kind for solution in solutions}
    kind = next(kind for kind in ("estimate", "bound", "exact") if kind in kinds)
    return (
        [solution.parameters for solution in solutions],
        np.array([solution.certificate.upper for solution in solutions]),
        np.array([solution.converged for solution in solutions]),
        kind,
    )
