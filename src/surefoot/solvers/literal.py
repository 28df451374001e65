"""Algorithm 1 of the paper, as printed."""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.engines.literal import literal_steps
from surefoot.problem import AffineProblem, Problem, affine_problems, why_not_affine
from surefoot.random import rng_for
from surefoot.solvers.base import DEFAULT_GAP, AffineSolution, Solution, Solver, assemble
from surefoot.validation import check_integer, check_number


@dataclass(frozen=True)
class LiteralDASGD(Solver):
    """Algorithm 1 exactly as printed; made by ``DASGD.literal``.

    It differs from ``DASGD`` in everything that the paper gets wrong or leaves open: constant step
    sizes, a multiplier that may turn negative, K + 1 plain gradient steps that start where the norm
    has no gradient, the last policy instead of an average, and a random start (theta standard
    normal, gamma uniform on [0, 1]). The intercept, if any, is a column of ones that never moves.
    """

    alpha: float
    beta: float
    eta: float
    K: int
    epsilon: float
    steps: int

    def __post_init__(self) -> None:
        """Check every option by name."""
        for name in ("alpha", "beta", "eta"):
            check_number(name, getattr(self, name), above=0)
        check_integer("K", self.K, at_least=0)
        check_number("epsilon", self.epsilon, at_least=0)
        check_integer("steps", self.steps, at_least=1)

    def why_not(self, problem: Problem) -> str | None:
        """Return what the printed algorithm has no room for, or None."""
        reason = why_not_affine(problem)
        if reason is None and problem.ball.support is not None:
            return "the printed algorithm has no support; use DASGD() or support=None"
        if reason is None and math.isfinite(problem.ball.outcome_cost):
            return "the printed algorithm moves contexts only; use DASGD() or outcome_cost=inf"
        return reason

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Run all steps; the certificate says how good the outcome is."""
        check_integer("seed", seed, at_least=0)
        self.refuse_unless_fit(problem)
        problems = affine_problems(problem)
        products, negative = zip(
            *(self._product(p, seed, j) for j, p in enumerate(problems)), strict=True
        )
        return assemble(
            problems,
            products,
            gap_tol=DEFAULT_GAP,
            advice="the printed algorithm has no stopping rule; its multiplier was negative in "
            f"{100 * max(negative):.0f} % of the steps. DASGD() solves the same problem.",
        )

    def _product(self, problem: AffineProblem, seed: int, number: int) -> tuple[AffineSolution, float]:
        """Return the answer for one product and the share of steps with a negative multiplier."""
        rng = rng_for(seed, "literal", number)
        rows, movable = problem.contexts, problem.movable.astype(np.float64)
        if problem.intercept:
            rows = np.ascontiguousarray(np.column_stack([rows, np.ones(len(rows))]))
            movable = np.append(movable, 0.0)
        theta = np.asarray(rng.normal(size=rows.shape[1:]))
        gamma = rng.uniform()
        draws = rng.choice(len(rows), size=self.steps, p=problem.weights)
        pieces = problem.pieces
        _, negative = literal_steps(
            rows, problem.outcomes, draws, pieces.up, pieces.down, pieces.smoothing,
            problem.radius, problem.order, self.alpha, self.beta, self.eta, self.K, self.epsilon,
            movable, theta, gamma,
        )  # fmt: skip
        split = len(problem.movable)
        intercept = float(theta[split]) if problem.intercept else 0.0
        slopes = np.where(problem.residuals(theta[:split], intercept) >= 0, pieces.up, -pieces.down)
        solution = AffineSolution(theta[:split], intercept, slopes, self.steps, "steps")
        return solution, negative / self.steps
