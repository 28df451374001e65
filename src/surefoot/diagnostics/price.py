"""The price of robustness: what a policy costs on the data, in the worst case and on new rows."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.diagnostics.fitted_model import checked_model, realised_cost, rows_of, solver_of
from surefoot.engines.choice import radius_grid, worst_values
from surefoot.estimators import RobustEstimator
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, warn_user
from surefoot.nominals import Empirical
from surefoot.problem import Problem
from surefoot.text_table import text_table
from surefoot.typing import ArrayLike, BoolArray, FloatArray
from surefoot.validation import check_flag, numeric_array

# Radii tried unless the user names some; fewer where every one of them costs a run of its own.
N_RADII, FEW_RADII = 30, 8


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
        head = ["radius", *[f"{name}: {titles[part]}" for name, _ in curves for part in parts]]
        lines = []
        for k in np.unique(np.linspace(0, len(self.radii) - 1, 12).round().astype(int)):
            values = [getattr(curve, part)[k] for _, curve in curves for part in parts]
            lines.append([f"{self.radii[k]:.4g}", *[f"{value:.5g}" for value in values]])
        table = text_table(head, lines, right=len(head))
        return f"{table}\nFitted at radius {self.fitted_radius:.4g}."


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
    fitted = checked_model(model)
    problem = fitted.problem_.around(rows_of(fitted, X, y, sample_weight))
    test = _test_rows(fitted, X_test, y_test)
    asked = _default_radii(problem, fitted.radius_) if radii is None else _checked_radii(radii)
    return PriceOfRobustness(
        radii=asked,
        fitted_radius=fitted.radius_,
        fixed=_fixed_curve(fitted, problem, test, asked),
        refitted=_refitted_curve(fitted, problem, test, asked) if refit else None,
    )


def _test_rows(model: RobustEstimator, X_test: Any, y_test: Any) -> Empirical | None:
    if (X_test is None) != (y_test is None):
        missing = "y_test" if y_test is None else "X_test"
        raise InvalidInputError(f"X_test and y_test must be given together, got no {missing}.")
    return None if X_test is None else rows_of(model, X_test, y_test)


def _checked_radii(radii: ArrayLike) -> FloatArray:
    given = np.atleast_1d(numeric_array("radii", radii))
    if given.ndim != 1 or given.size == 0:
        raise InvalidInputError(f"radii must be a list of numbers >= 0, got shape {given.shape}.")
    if given.min() < 0.0:
        raise InvalidInputError(f"radii must be >= 0, got {given.min()}.")
    return np.unique(given)


def _default_radii(problem: Problem, fitted: float) -> FloatArray:
    """Return zero and radii up to the largest useful one, evenly spread on a log scale."""
    grid = radius_grid(problem)
    largest = max(float(grid[0]), fitted)
    if largest == 0.0:
        return np.zeros(1)
    smallest = float(grid[-2]) / float(grid[0]) if len(grid) > 1 else 0.01
    # Where every radius costs a run of its own, the grid is short, and so are the curves.
    count = N_RADII if len(grid) > FEW_RADII else FEW_RADII
    return np.append(0.0, np.geomspace(smallest * largest, largest, count - 1))


def _fixed_curve(
    model: RobustEstimator, problem: Problem, test: Empirical | None, radii: FloatArray
) -> CostCurve:
    """Stress the policy as it stands."""
    count, parameters = len(radii), model.parameters_
    rows = problem.nominal
    assert isinstance(rows, Empirical)  # made above
    worst, kind = worst_values(problem, parameters, radii)
    nominal = np.full(count, realised_cost(problem, parameters, rows))
    realised = None if test is None else np.full(count, realised_cost(problem, parameters, test))
    return CostCurve(nominal, worst, realised, np.ones(count, dtype=bool), kind)


def _refitted_curve(
    model: RobustEstimator, problem: Problem, test: Empirical | None, radii: FloatArray
) -> CostCurve:
    """Learn a policy for each radius, from the largest down, in the units of the fit."""
    solver = solver_of(model, problem.at_radius(float(radii[-1])))
    # Said once, for all radii.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        solutions = solver.solve_path(problem, radii[::-1].tolist(), model.seed_)[::-1]
    converged = np.array([solution.converged is not False for solution in solutions])
    if not converged.all():
        warn_user(
            f"{(~converged).sum()} of {len(radii)} refits ran out of steps: the worst case of the best "
            "policy may lie lower there. Raise max_steps or loosen gap_tol.",
            ConvergenceWarning,
        )
    rows, kinds = problem.nominal, {solution.certificate.kind for solution in solutions}
    assert isinstance(rows, Empirical)  # made above
    policies = [solution.parameters for solution in solutions]
    return CostCurve(
        nominal=np.array([realised_cost(problem, one, rows) for one in policies]),
        worst_case=np.array([solution.certificate.upper for solution in solutions]),
        realised=None
        if test is None else np.array([realised_cost(problem, one, test) for one in policies]),
        converged=converged,
        kind=next(kind for kind in ("estimate", "bound", "exact") if kind in kinds),
    )  # fmt: skip
