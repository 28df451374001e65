"""Algorithm 1 of the paper, as printed."""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.ambiguity import AffineForm, WassersteinBall, WassersteinForm
from surefoot.engines.literal_kernel import literal_steps
from surefoot.io import register
from surefoot.problem import Problem, affine_forms
from surefoot.random import rng_for
from surefoot.solvers.base import DEFAULT_GAP, AffineSolver, ProductAnswer, Solution, assemble
from surefoot.validation import check_integer, check_number


@register
@dataclass(frozen=True)
class LiteralDASGD(AffineSolver):
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
        reason = super().why_not(problem)
        if reason is not None:
            return reason
        if not isinstance(problem.ball, WassersteinBall):
            return f"the printed algorithm needs a WassersteinBall, got {type(problem.ball).__name__}"
        if problem.ball.support is not None:
            return "the printed algorithm has no support; use DASGD() or support=None"
        if math.isfinite(problem.ball.outcome_cost):
            return "the printed algorithm moves contexts only; use DASGD() or outcome_cost=inf"
        if not all(form.pieces.two for form in affine_forms(problem)):
            return "the printed algorithm has two slopes; use DASGD()"
        return None

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Run all steps; the certificate says how good the outcome is."""
        check_integer("seed", seed, at_least=0)
        self.refuse_unless_fit(problem)
        answers = [self._product(form, seed, j) for j, form in enumerate(affine_forms(problem))]
        negative = max(share for _, share in answers)
        return assemble(
            self,
            [answer for answer, _ in answers],
            gap_tol=DEFAULT_GAP,
            advice="the printed algorithm has no stopping rule; its multiplier was negative in "
            f"{100 * negative:.0f} % of the steps. DASGD() solves the same problem.",
        )

    def _product(self, form: AffineForm, seed: int, number: int) -> tuple[ProductAnswer, float]:
        """Return the answer for one product and the share of steps with a negative multiplier.

        The steps are taken in the user's units of outcomes and costs, in which step sizes are given.
        """
        assert isinstance(form, WassersteinForm)  # or it was refused
        rng = rng_for(seed, "literal", number)
        rows, movable = form.contexts * form.column_unit, form.movable.astype(np.float64)
        if form.intercept:
            rows = np.ascontiguousarray(np.column_stack([rows, np.ones(len(rows))]))
            movable = np.append(movable, 0.0)
        theta = np.asarray(rng.normal(size=rows.shape[1:]))
        gamma = rng.uniform()
        draws = rng.choice(len(rows), size=self.steps, p=form.weights)
        pieces = form.pieces.scaled(1.0 / form.cost_unit, 1.0 / form.outcome_unit)
        _, negative = literal_steps(
            rows, form.outcomes * form.outcome_unit, draws, pieces.up, pieces.down, pieces.smoothing,
            form.radius * form.column_unit, form.order, self.alpha, self.beta, self.eta, self.K,
            self.epsilon, movable, theta, gamma,
        )  # fmt: skip
        split = len(form.movable)
        intercept = float(theta[split]) / form.outcome_unit if form.intercept else 0.0
        own = theta[:split] * form.column_unit / form.outcome_unit
        slopes = form.pieces.slope_at(form.residuals(own, intercept))
        return ProductAnswer(form, own, intercept, slopes, self.steps), negative / self.steps
