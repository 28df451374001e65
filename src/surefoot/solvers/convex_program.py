"""The same problems as convex programs in CVXPY: independent of every formula in the engines."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.ambiguity import AffineForm, WassersteinBall, WassersteinForm
from surefoot.engines.cutting_planes import proving_slopes
from surefoot.exceptions import SurefootError
from surefoot.io import register
from surefoot.problem import Problem, affine_forms
from surefoot.solvers.base import AffineSolver, ProductAnswer, Solution, assemble
from surefoot.tracing import load_extra
from surefoot.typing import FloatArray
from surefoot.validation import check_instance, check_integer, check_number


def _cvxpy() -> Any:
    return load_extra("cvxpy", 'Convex programs need CVXPY: run pip install "surefoot[exact]".')


@register
@dataclass(frozen=True)
class ConvexProgram(AffineSolver):
    """Hand the whole dual (H) to an interior-point solver through CVXPY.

    It covers order 1 and 2, boxes, frozen columns and moving outcomes. Size is its limit: boxes add
    a block of variables for each row.

    Parameters
    ----------
    solver
        Name of an installed CVXPY solver; the default is open source.
    gap_tol
        Certified gap up to which the answer counts as converged. The program itself is solved to
        far better. Where its slopes prove less, as for order 1 in a box, a plan of the adversary from
        a few rounds of cutting planes does, in problems of some hundred rows.

    Examples
    --------
    >>> from surefoot import Box, Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> problem = Problem(Newsvendor(1.0, 0.2), Linear(), Empirical([[0.0], [0.6], [1.0]], [1, 2, 4]),
    ...                   WassersteinBall(radius=0.3, support=Box(0, 1)))
    >>> ConvexProgram().solve(problem).converged
    True
    """

    solver: str = "CLARABEL"
    gap_tol: float = 5e-3

    def __post_init__(self) -> None:
        """Check every option by name."""
        check_instance("solver", self.solver, str, "the name of a CVXPY solver such as 'CLARABEL'")
        check_number("gap_tol", self.gap_tol, above=0)

    def why_not(self, problem: Problem) -> str | None:
        """Return why the problem is not a convex program of this kind, or None."""
        reason = super().why_not(problem)
        if reason is not None:
            return reason
        if not isinstance(problem.ball, WassersteinBall):
            return f"it needs a WassersteinBall, got {type(problem.ball).__name__}"
        smoothed = getattr(problem.cost, "smoothing", 0.0) > 0
        return "it needs an unsmoothed cost: set smoothing=0" if smoothed else None

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the seed is not used."""
        check_integer("seed", seed, at_least=0)
        self.refuse_unless_fit(problem)
        products = [self.solve_form(form) for form in affine_forms(problem)]
        advice = "try another CVXPY solver."
        if not all(product.form.tight for product in products):
            advice = "its policy is better than its slopes can prove here: CuttingPlanes() proves more."
        return assemble(self, products, gap_tol=self.gap_tol, advice=advice)

    def solve_form(self, form: AffineForm) -> ProductAnswer:
        """Solve one product."""
        assert isinstance(form, WassersteinForm)  # or it was refused
        cp = _cvxpy()
        model = _model(cp, form)
        try:
            with warnings.catch_warnings():
                # At theta = 0 the cones have no interior. The certificate judges accuracy anyway.
                warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
                model.program.solve(solver=self.solver)
        except cp.error.SolverError as error:
            raise SurefootError(f"{self.solver} failed on this problem: {error}.") from error
        if model.theta.value is None:
            raise SurefootError(f"{self.solver} found no solution: {model.program.status}.")
        intercept = float(model.intercept.value) if form.intercept else 0.0
        steps = int(model.program.solver_stats.num_iters or 0)
        policy = np.asarray(model.theta.value), intercept
        slopes = proving_slopes(form, policy, _slopes(form, model), self.gap_tol)
        return ProductAnswer(form, *policy, slopes, steps)


@dataclass(frozen=True, eq=False)
class _Model:
    """A CVXPY program with the handles that are read back."""

    program: Any
    theta: Any
    intercept: Any
    lines: list[Any]


def _slopes(form: WassersteinForm, model: _Model) -> FloatArray:
    """Slopes from the multipliers of the lines: a row's share on each of them."""
    shares = np.array(
        [np.maximum(np.asarray(line.dual_value).reshape(-1), 0.0) for line in model.lines]
    )
    return np.asarray(np.array(form.pieces.slopes) @ shares / np.maximum(shares.sum(axis=0), 1e-300))


def _model(cp: Any, form: WassersteinForm) -> _Model:
    """State min over theta, gamma of gamma rho^p + sum_i w_i s_i, with s_i over all lines.

    For order 2 the variable is gamma rho, which is of the size of theta whatever the radius:
    gamma itself grows like 1 / rho and costs the interior-point method its last digits.
    """
    n, s = form.contexts.shape
    theta = cp.Variable(s)
    intercept = cp.Variable() if form.intercept else 0.0
    gamma = cp.Variable(nonneg=True)
    costs = cp.Variable(n)
    residuals = form.contexts @ theta + intercept - form.outcomes
    constraints: list[Any] = []
    lines = []
    free = 0.0 if form.boxed else _free_gain(cp, form, theta, gamma, constraints)
    for slope, level in zip(form.pieces.slopes, form.pieces.intercepts, strict=True):
        moves = slope**2 * free
        if form.boxed:
            moves = _boxed_gain(cp, form, theta, gamma, slope, constraints)
        lines.append(costs >= slope * residuals + level + moves)
    objective = gamma * form.radius + form.weights @ costs
    program = cp.Problem(cp.Minimize(objective), [*lines, *constraints])
    return _Model(program, theta, intercept, lines)


def _free_gain(cp: Any, form: WassersteinForm, theta: Any, gamma: Any, constraints: list[Any]) -> Any:
    """What moving gains when nothing stops the move, for a line of slope 1; it grows as slope^2."""
    movable = np.flatnonzero(form.movable)
    if form.order == 1:
        if len(movable):
            constraints.append(form.pieces.steepest * cp.norm(theta[movable], 2) <= gamma)
        constraints.append(gamma >= form.pieces.steepest * form.inverse_kappa)
        return 0.0
    parts = [theta[movable]] if len(movable) else []
    if form.inverse_kappa > 0:
        parts.append(np.array([math.sqrt(form.inverse_kappa)]))
    if not parts:
        return 0.0
    gain = cp.Variable()
    # gain >= ||parts||^2 / (4 gamma), as a second-order cone.
    constraints.append(cp.SOC(gain + gamma, cp.hstack([*parts, gain - gamma])))
    return form.radius * gain


def _boxed_gain(
    cp: Any, form: WassersteinForm, theta: Any, gamma: Any, slope: float, constraints: list[Any]
) -> Any:
    """What moving gains on one line inside the box, row by row, with multipliers of both bounds."""
    n = len(form.outcomes)
    movable = np.flatnonzero(form.movable)
    X = form.contexts[:, movable]
    room, gradients = _bound_multipliers(
        cp, form.upper[movable] - X, X - form.lower[movable], slope * theta[movable]
    )
    shared = 0.0
    if form.inverse_kappa > 0:
        above, below = form.outcome_upper - form.outcomes, form.outcomes - form.outcome_lower
        outcome_room, outcome_gradients = _bound_multipliers(
            cp, above[:, None], below[:, None], np.array([-slope])
        )
        shared = outcome_room
        if form.order == 1:
            constraints.append(cp.abs(outcome_gradients) <= gamma * form.outcome_cost)
        else:
            scaled = outcome_gradients * math.sqrt(form.inverse_kappa)
            gradients = cp.hstack([gradients, scaled])
    if form.order == 1:
        constraints.append(cp.norm(gradients, 2, axis=1) <= gamma)
        return room + shared
    gains = cp.Variable(n)
    for i in range(n):
        constraints.append(cp.SOC(gains[i] + gamma, cp.hstack([gradients[i], gains[i] - gamma])))
    return room + shared + form.radius * gains


def _bound_multipliers(cp: Any, above: FloatArray, below: FloatArray, gradient: Any) -> tuple[Any, Any]:
    """Return (mu'above + nu'below for each row, gradient - mu + nu); no bound has no multiplier."""
    n, s = above.shape
    mu, nu = cp.Variable((n, s), nonneg=True), cp.Variable((n, s), nonneg=True)
    mu_on, nu_on = np.isfinite(above).astype(float), np.isfinite(below).astype(float)
    above, below = np.where(mu_on > 0, above, 0.0), np.where(nu_on > 0, below, 0.0)
    mu, nu = cp.multiply(mu_on, mu), cp.multiply(nu_on, nu)
    room = cp.sum(cp.multiply(above, mu) + cp.multiply(below, nu), axis=1)
    rows = np.ones((n, 1)) @ cp.reshape(gradient, (1, s), order="C")
    return room, rows - mu + nu
