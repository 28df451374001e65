"""The same problems as convex programs in CVXPY: independent of every formula in the engines."""

import importlib
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import MissingExtraError, SurefootError
from surefoot.problem import AffineProblem, Problem, affine_problems, why_not_affine
from surefoot.solvers.base import AffineSolution, Solution, Solver, assemble
from surefoot.typing import FloatArray
from surefoot.validation import check_number


def _cvxpy() -> Any:
    try:
        return importlib.import_module("cvxpy")
    except ImportError as error:
        raise MissingExtraError(
            'Convex programs need CVXPY: run pip install "surefoot[exact]".'
        ) from error


@dataclass(frozen=True)
class ConvexProgram(Solver):
    """Hand the whole dual (H) to an interior-point solver through CVXPY.

    It covers order 1 and 2, boxes, frozen columns and moving outcomes. Size is its limit: boxes add
    a block of variables for each row.

    Parameters
    ----------
    solver
        Name of an installed CVXPY solver; the default is open source.
    gap_tol
        Certified gap up to which the answer counts as converged. The program itself is solved to
        far better; the certificate's lower bound is not tight for order 1 in a box.

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
        """Check the tolerance."""
        check_number("gap_tol", self.gap_tol, above=0)

    def why_not(self, problem: Problem) -> str | None:
        """Return why the problem is not a convex program of this kind, or None."""
        reason = why_not_affine(problem)
        if reason is None and getattr(problem.cost, "smoothing", 0.0) > 0:
            return "it needs an unsmoothed cost: set smoothing=0"
        return reason

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the seed is not used."""
        self.refuse_unless_fit(problem)
        problems = affine_problems(problem)
        products = tuple(self.solve_affine(p) for p in problems)
        return assemble(problems, products, gap_tol=self.gap_tol, advice="try another CVXPY solver.")

    def solve_affine(self, problem: AffineProblem) -> AffineSolution:
        """Solve one product."""
        cp = _cvxpy()
        model = _model(cp, problem)
        try:
            with warnings.catch_warnings():
                # At theta = 0 the cones have no interior. The certificate judges accuracy anyway.
                warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
                model.program.solve(solver=self.solver)
        except cp.error.SolverError as error:
            raise SurefootError(f"{self.solver} failed on this problem: {error}.") from error
        if model.theta.value is None:
            raise SurefootError(f"{self.solver} found no solution: {model.program.status}.")
        intercept = float(model.intercept.value) if problem.intercept else 0.0
        return AffineSolution(
            theta=np.asarray(model.theta.value),
            intercept=intercept,
            slopes=_slopes(problem, model),
            steps=int(model.program.solver_stats.num_iters or 0),
            stopped="gap",
        )


@dataclass(frozen=True, eq=False)
class _Model:
    """A CVXPY program with the handles that are read back."""

    program: Any
    theta: Any
    intercept: Any
    rises: Any
    falls: Any


def _slopes(problem: AffineProblem, model: _Model) -> FloatArray:
    """Slopes from the multipliers of the two pieces: a row's share on each piece."""
    up = np.maximum(np.asarray(model.rises.dual_value).reshape(-1), 0.0)
    down = np.maximum(np.asarray(model.falls.dual_value).reshape(-1), 0.0)
    total = np.maximum(up + down, 1e-300)
    return np.asarray((problem.pieces.up * up - problem.pieces.down * down) / total)


def _model(cp: Any, problem: AffineProblem) -> _Model:
    """State min over theta, gamma of gamma rho^p + sum_i w_i s_i, with s_i over both pieces.

    For order 2 the variable is gamma rho, which is of the size of theta whatever the radius:
    gamma itself grows like 1 / rho and costs the interior-point method its last digits.
    """
    n, s = problem.contexts.shape
    theta = cp.Variable(s)
    intercept = cp.Variable() if problem.intercept else 0.0
    gamma = cp.Variable(nonneg=True)
    costs = cp.Variable(n)
    residuals = problem.contexts @ theta + intercept - problem.outcomes
    constraints: list[Any] = []
    pieces = []
    free = 0.0 if problem.boxed else _free_gain(cp, problem, theta, gamma, constraints)
    for slope in (problem.pieces.up, -problem.pieces.down):
        moves = slope**2 * free
        if problem.boxed:
            moves = _boxed_gain(cp, problem, theta, gamma, slope, constraints)
        pieces.append(costs >= slope * residuals + moves)
    objective = gamma * problem.radius + problem.weights @ costs
    program = cp.Problem(cp.Minimize(objective), [*pieces, *constraints])
    return _Model(program, theta, intercept, *pieces)


def _free_gain(cp: Any, problem: AffineProblem, theta: Any, gamma: Any, constraints: list[Any]) -> Any:
    """What moving gains when nothing stops the move, for a piece of slope 1; it grows as slope^2."""
    movable = np.flatnonzero(problem.movable)
    if problem.order == 1:
        if len(movable):
            constraints.append(problem.pieces.steepest * cp.norm(theta[movable], 2) <= gamma)
        constraints.append(gamma >= problem.pieces.steepest * problem.outcome_pull)
        return 0.0
    parts = [theta[movable]] if len(movable) else []
    if problem.outcome_pull > 0:
        parts.append(np.array([math.sqrt(problem.outcome_pull)]))
    if not parts:
        return 0.0
    gain = cp.Variable()
    # gain >= ||parts||^2 / (4 gamma), as a second-order cone.
    constraints.append(cp.SOC(gain + gamma, cp.hstack([*parts, gain - gamma])))
    return problem.radius * gain


def _boxed_gain(
    cp: Any, problem: AffineProblem, theta: Any, gamma: Any, slope: float, constraints: list[Any]
) -> Any:
    """What moving gains on one piece inside the box, row by row, with multipliers of both bounds."""
    n = len(problem.outcomes)
    movable = np.flatnonzero(problem.movable)
    X = problem.contexts[:, movable]
    room, pulls = _bound_multipliers(
        cp, problem.upper[movable] - X, X - problem.lower[movable], slope * theta[movable]
    )
    shared = 0.0
    if problem.outcome_pull > 0:
        y = problem.outcomes[:, None]
        low, high = problem.outcome_bounds
        outcome_room, outcome_pulls = _bound_multipliers(cp, high - y, y - low, np.array([-slope]))
        shared = outcome_room
        if problem.order == 1:
            constraints.append(cp.abs(outcome_pulls) <= gamma * problem.outcome_cost)
        else:
            scaled = outcome_pulls * math.sqrt(problem.outcome_pull)
            pulls = cp.hstack([pulls, scaled])
    if problem.order == 1:
        constraints.append(cp.norm(pulls, 2, axis=1) <= gamma)
        return room + shared
    gains = cp.Variable(n)
    for i in range(n):
        constraints.append(cp.SOC(gains[i] + gamma, cp.hstack([pulls[i], gains[i] - gamma])))
    return room + shared + problem.radius * gains


def _bound_multipliers(cp: Any, above: FloatArray, below: FloatArray, pull: Any) -> tuple[Any, Any]:
    """Return (mu'above + nu'below for each row, pull - mu + nu), with no multiplier for no bound."""
    n, s = above.shape
    mu, nu = cp.Variable((n, s), nonneg=True), cp.Variable((n, s), nonneg=True)
    mu_on, nu_on = np.isfinite(above).astype(float), np.isfinite(below).astype(float)
    above, below = np.where(mu_on > 0, above, 0.0), np.where(nu_on > 0, below, 0.0)
    mu, nu = cp.multiply(mu_on, mu), cp.multiply(nu_on, nu)
    room = cp.sum(cp.multiply(above, mu) + cp.multiply(below, nu), axis=1)
    rows = np.ones((n, 1)) @ cp.reshape(pull, (1, s), order="C")
    return room, rows - mu + nu
