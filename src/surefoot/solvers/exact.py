"""The deterministic solver: restarted primal-dual hybrid gradient with both bounds.

The affine problem is  min over theta, max over u in [-b, h]^n  of
sum_i w_i u_i (x_i'theta - y_i) + rho C(u) N(theta); see ``engines.memory``. Here every iteration uses
all rows, the norm is treated by its exact proximal map, and the run restarts from its own average
whenever that is better, which makes convergence linear (Applegate et al. 2021).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surefoot.problem import AffineProblem, Problem, affine_problems, why_not_affine
from surefoot.solvers.base import AffineSolution, Callback, Solution, Solver, assemble
from surefoot.solvers.convex import ConvexProgram
from surefoot.solvers.loop import run_until
from surefoot.solvers.memory import MemoryRun
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_integer, check_number

# Iterations between checks.
BLOCK = 100


@dataclass(frozen=True)
class Exact(Solver):
    """Solve an affine newsvendor problem to high precision, without randomness.

    Free supports are solved by a restarted primal-dual method with a certificate. Box supports are
    handed to ``ConvexProgram``, which needs ``pip install "surefoot[exact]"``.

    Parameters
    ----------
    gap_tol
        Largest certified gap at which the run stops.
    max_steps
        Most iterations for each product; one iteration passes twice over all rows.
    callback
        Called with a ``Progress`` after every check.

    Examples
    --------
    >>> from surefoot import Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.datasets import synthetic
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> data = synthetic(n=50, s=10, seed=0)
    >>> problem = Problem(Newsvendor(backorder=1.0, holding=0.2), Linear(),
    ...                   Empirical(data.X, data.y), WassersteinBall(radius=0.1))
    >>> Exact().solve(problem).certificate.gap <= 1e-4
    True
    """

    gap_tol: float = 1e-4
    max_steps: int = 100_000
    callback: Callback | None = None

    def __post_init__(self) -> None:
        """Check every option by name."""
        check_number("gap_tol", self.gap_tol, above=0)
        check_integer("max_steps", self.max_steps, at_least=1)

    def why_not(self, problem: Problem) -> str | None:
        """Return why there is no exact method for the problem, or None."""
        reason = why_not_affine(problem)
        if reason is not None:
            return reason
        if getattr(problem.cost, "smoothing", 0.0) > 0:
            return "it needs an unsmoothed cost: set smoothing=0"
        if any(p.boxed for p in affine_problems(problem)):
            return ConvexProgram().why_not(problem)
        return None

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the seed is not used."""
        self.refuse_unless_fit(problem)
        problems = affine_problems(problem)
        if any(p.boxed for p in problems):
            return ConvexProgram().solve(problem, seed)
        products = tuple(self.solve_affine(p) for p in problems)
        return assemble(
            problems, products, gap_tol=self.gap_tol, advice="raise max_steps or loosen gap_tol."
        )

    def solve_affine(self, problem: AffineProblem) -> AffineSolution:
        """Solve one product with free support."""
        run = PrimalDualRun(problem)
        return run_until(run, self._blocks(), gap_tol=self.gap_tol, callback=self.callback)

    def _blocks(self) -> Iterator[IntArray]:
        for first in range(0, self.max_steps, BLOCK):
            yield np.arange(first, min(first + BLOCK, self.max_steps))


class PrimalDualRun:
    """Deterministic primal-dual iterations on the canonical form, restarted from their average."""

    def __init__(self, problem: AffineProblem) -> None:
        self.problem = problem
        self.start = MemoryRun.start(problem)
        form = self.start.form
        self.theta, self.slopes = self.start.coordinates, self.start.slopes
        # With this metric the largest singular value of the weighted rows decides both step sizes.
        root = np.sqrt(problem.weights)[:, None] * np.sqrt(form.metric)
        self.size = float(np.linalg.norm(form.rows * root, ord=2)) or 1.0
        begun = problem.constant_order()[0] if form.spans_constant else 0.0
        cost = problem.weights @ problem.pieces.evaluate(begun - problem.outcomes)
        self.balance = max(float(cost), 1e-300) / (problem.pieces.up + problem.pieces.down)
        self.steps = 0

    def run(self, draws: IntArray) -> None:
        """Take one iteration per entry of ``draws``, then restart from the average."""
        problem, form = self.problem, self.start.form
        weights, up, down = problem.weights, problem.pieces.up, problem.pieces.down
        primal = 0.95 * self.balance / self.size * form.metric
        dual = 0.95 / (self.balance * self.size)
        theta, slopes = self.theta, self.slopes
        theta_sum, slope_sum = np.zeros_like(theta), np.zeros_like(slopes)
        for _ in draws:
            constant, shift = self._constant_and_shift(theta, slopes)
            gradient = form.rows.T @ (weights * slopes)
            stepped = self._shrink(theta - primal * gradient, primal, problem.radius * constant)
            ahead = 2.0 * stepped - theta
            residuals = form.rows @ ahead - problem.outcomes - shift
            slopes = np.clip(slopes + dual * residuals, -down, up)
            theta = stepped
            theta_sum += theta
            slope_sum += slopes
        self.steps += len(draws)
        average = theta_sum / len(draws), slope_sum / len(draws)
        if self._residual(*average) < self._residual(theta, slopes):
            theta, slopes = average
        self._rebalance(theta - self.theta, slopes - self.slopes)
        self.theta, self.slopes = theta, slopes

    def policy(self) -> tuple[FloatArray, float]:
        """Return (theta, intercept) where the run stands."""
        self.start.coordinates = self.theta
        return self.start.policy()

    def _constant_and_shift(self, theta: FloatArray, slopes: FloatArray) -> tuple[float, float]:
        problem, pieces = self.problem, self.problem.pieces
        if problem.order == 1:
            return pieces.steepest, 0.0
        if self.start.form.spans_constant:
            return pieces.geometric, 0.0
        mean = float(problem.weights @ slopes)
        constant = math.sqrt(max(pieces.up * pieces.down + (pieces.up - pieces.down) * mean,
                                 min(pieces.up, pieces.down) ** 2))  # fmt: skip
        priced = theta[: self.start.form.n_priced]
        reach = math.sqrt(float(priced @ priced) + problem.outcome_pull)
        return constant, (pieces.down - pieces.up) * problem.radius * reach / (2.0 * constant)

    def _shrink(self, theta: FloatArray, primal: FloatArray, price: float) -> FloatArray:
        """Proximal map of price N(theta) over the priced coordinates, in the metric of the steps.

        Each coordinate shrinks by 1 + step price / N, and N is the fixed point of the reach that
        results. For order 1 no price is due while the norm is below 1/kappa.
        """
        count, pull = self.start.form.n_priced, self.problem.outcome_pull
        v, steps = theta[:count], primal[:count]
        if count == 0 or price == 0.0:
            return theta
        floor = pull if self.problem.order == 2 else 0.0
        reach = _reach_after_shrinking(v, steps * price, floor)
        out = theta.copy()
        if self.problem.order == 1 and pull > 0.0 and reach < pull:
            norm = math.sqrt(float(v @ v))
            if norm <= pull:
                return theta
            # On the sphere ||theta|| = 1/kappa: any smaller price that keeps theta there will do.
            low, high = 0.0, price
            for _ in range(60):
                middle = 0.5 * (low + high)
                on = float(np.linalg.norm(v / (1.0 + steps * middle / pull)))
                low, high = (middle, high) if on > pull else (low, middle)
            out[:count] = v / (1.0 + steps * high / pull)
            return out
        out[:count] = v / (1.0 + steps * price / reach) if reach > 0.0 else 0.0
        return out

    def _residual(self, theta: FloatArray, slopes: FloatArray) -> float:
        """How far one more iteration would move: the restart criterion."""
        problem, form = self.problem, self.start.form
        primal = 0.95 * self.balance / self.size * form.metric
        dual = 0.95 / (self.balance * self.size)
        constant, shift = self._constant_and_shift(theta, slopes)
        stepped = self._shrink(
            theta - primal * (form.rows.T @ (problem.weights * slopes)), primal,
            problem.radius * constant,
        )  # fmt: skip
        residuals = form.rows @ (2.0 * stepped - theta) - problem.outcomes - shift
        moved = np.clip(slopes + dual * residuals, -problem.pieces.down, problem.pieces.up) - slopes
        return float(((stepped - theta) ** 2 / primal).sum() + problem.weights @ moved**2 / dual)

    def _rebalance(self, moved: FloatArray, slopes_moved: FloatArray) -> None:
        primal = math.sqrt(float(moved**2 @ (1.0 / self.start.form.metric)))
        dual = math.sqrt(float(self.problem.weights @ slopes_moved**2))
        if primal > 0 and dual > 0:
            self.balance *= math.sqrt(min(max(primal / dual / self.balance, 0.1), 10.0))


def _reach_after_shrinking(values: FloatArray, pulls: FloatArray, floor: float) -> float:
    """Solve floor / N^2 + sum values^2 / (N + pulls)^2 = 1 for N, or return 0 if N would be below.

    The left side is convex and decreasing, so Newton's method climbs to the root from the left.
    """
    reach = math.sqrt(floor)
    for _ in range(100):
        shares = (values / (reach + pulls)) ** 2
        left = float(shares.sum()) + (floor / reach**2 if floor > 0 else 0.0)
        if left <= 1.0 + 1e-14:
            break
        slope = -2.0 * float((shares / (reach + pulls)).sum())
        if floor > 0:
            slope -= 2.0 * floor / reach**3
        reach -= (left - 1.0) / slope
    return reach
