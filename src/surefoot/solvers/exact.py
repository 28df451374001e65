"""The deterministic solver: restarted primal-dual hybrid gradient with both bounds.

The affine problem is  min over theta, max over u in [-b, h]^n  of
sum_i w_i u_i (x_i'theta - y_i) + rho C(u) N(theta); see
``engines.primal_dual_kernel``. Here every iteration uses
all rows, the norm is treated by its exact proximal map, and the run restarts from its own average
whenever that is better, which makes convergence linear (Applegate et al. 2021).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surefoot.ambiguity import AffineForm, WassersteinForm
from surefoot.engines.affine_proof import why_no_dual
from surefoot.engines.primal_dual import PrimalDualRun, policy_at
from surefoot.io import register
from surefoot.problem import Problem, affine_forms
from surefoot.solvers.base import (
    AffineSolver,
    Callback,
    ProductAnswer,
    Solution,
    assemble,
    check_options,
)
from surefoot.solvers.convex_program import ConvexProgram
from surefoot.solvers.loop import run_until
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_integer

# Iterations between checks.
BLOCK = 100


@register
@dataclass(frozen=True)
class Exact(AffineSolver):
    """Solve an affine newsvendor problem to high precision, without randomness.

    Free supports are solved by a restarted primal-dual method with a certificate. Box supports and
    costs of more than two lines are handed to ``ConvexProgram`` with the same tolerance, which needs
    ``pip install "surefoot[exact]"``.

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
        check_options(self)

    def why_not(self, problem: Problem) -> str | None:
        """Return why there is no exact method for the problem, or None."""
        return super().why_not(problem) or ConvexProgram().why_not(problem)

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the seed is not used."""
        check_integer("seed", seed, at_least=0)
        self.refuse_unless_fit(problem)
        forms = affine_forms(problem)
        if any(why_no_dual(form) is not None for form in forms):
            return ConvexProgram(gap_tol=self.gap_tol).solve(problem, seed)
        return assemble(self, [self.solve_form(form) for form in forms], gap_tol=self.gap_tol)

    def solve_form(self, form: AffineForm) -> ProductAnswer:
        """Solve one product with free support."""
        assert isinstance(form, WassersteinForm)  # or it went to the convex program
        run = DeterministicRun(form)
        return run_until(run, self._blocks(), gap_tol=self.gap_tol, callback=self.callback)

    def _blocks(self) -> Iterator[IntArray]:
        for first in range(0, self.max_steps, BLOCK):
            yield np.arange(first, min(first + BLOCK, self.max_steps))


class DeterministicRun:
    """Deterministic primal-dual iterations on the canonical form, restarted from their average."""

    def __init__(self, form: WassersteinForm) -> None:
        self.form, start = form, PrimalDualRun.start(form)
        self.at, self.theta, self.slopes = start.coordinates, start.theta, start.slopes
        # With this metric the largest singular value of the weighted rows decides both step sizes.
        root = np.sqrt(form.weights)[:, None] * np.sqrt(self.at.metric)
        self.size = float(np.linalg.norm(self.at.rows * root, ord=2)) or 1.0
        begun = form.constant_order()[0] if self.at.spans_constant else 0.0
        cost = form.mean_cost(begun - form.outcomes)
        self.balance = max(cost, 1e-300) / (form.pieces.up + form.pieces.down)
        self.steps = 0

    def run(self, draws: IntArray) -> None:
        """Take one iteration per entry of ``draws``, then restart from the average."""
        theta, slopes = self.theta, self.slopes
        theta_sum, slope_sum = np.zeros_like(theta), np.zeros_like(slopes)
        for _ in draws:
            theta, slopes = self._iterated(theta, slopes)
            theta_sum += theta
            slope_sum += slopes
        self.steps += len(draws)
        average = theta_sum / len(draws), slope_sum / len(draws)
        if self._residual(*average) < self._residual(theta, slopes):
            theta, slopes = average
        self._rebalance(theta - self.theta, slopes - self.slopes)
        self.theta, self.slopes = theta, slopes

    def _step_sizes(self) -> tuple[FloatArray, float]:
        return 0.95 * self.balance / self.size * self.at.metric, 0.95 / (self.balance * self.size)

    def _iterated(self, theta: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return where an iteration leads."""
        form, at, (primal, dual) = self.form, self.at, self._step_sizes()
        constant, shift = self._constant_and_shift(theta, slopes)
        gradient = at.rows.T @ (form.weights * slopes)
        stepped = self._shrink(theta - primal * gradient, primal, form.radius * constant)
        residuals = at.rows @ (2.0 * stepped - theta) - form.outcomes - shift
        return stepped, np.clip(slopes + dual * residuals, -form.pieces.down, form.pieces.up)

    def policy(self) -> tuple[FloatArray, float]:
        """Return (theta, intercept) where the run stands."""
        return policy_at(self.form, self.at, self.theta)

    def _constant_and_shift(self, theta: FloatArray, slopes: FloatArray) -> tuple[float, float]:
        form, pieces = self.form, self.form.pieces
        if form.order == 1:
            return pieces.steepest, 0.0
        if self.at.spans_constant:
            return pieces.geometric, 0.0
        mean = float(form.weights @ slopes)
        constant = math.sqrt(max(pieces.up * pieces.down + (pieces.up - pieces.down) * mean,
                                 min(pieces.up, pieces.down) ** 2))  # fmt: skip
        penalised = theta[: self.at.n_penalised]
        norm = math.sqrt(float(penalised @ penalised) + form.inverse_kappa)
        return constant, (pieces.down - pieces.up) * form.radius * norm / (2.0 * constant)

    def _shrink(self, theta: FloatArray, primal: FloatArray, weight: float) -> FloatArray:
        """Proximal map of weight N(theta) over the penalised coordinates, in the metric of the steps.

        Each coordinate shrinks by 1 + step weight / N, and N is the fixed point of the norm that
        results. For order 1 no penalty is due while the norm is below 1/kappa.
        """
        count, inverse_kappa = self.at.n_penalised, self.form.inverse_kappa
        v, steps = theta[:count], primal[:count]
        if count == 0 or weight == 0.0:
            return theta
        floor = inverse_kappa if self.form.order == 2 else 0.0
        norm = _norm_after_shrinking(v, steps * weight, floor)
        out = theta.copy()
        if self.form.order == 1 and inverse_kappa > 0.0 and norm < inverse_kappa:
            norm = math.sqrt(float(v @ v))
            if norm <= inverse_kappa:
                return theta
            # On the sphere ||theta|| = 1/kappa: any smaller weight that keeps theta there will do.
            low, high = 0.0, weight
            for _ in range(60):
                middle = 0.5 * (low + high)
                on = float(np.linalg.norm(v / (1.0 + steps * middle / inverse_kappa)))
                low, high = (middle, high) if on > inverse_kappa else (low, middle)
            out[:count] = v / (1.0 + steps * high / inverse_kappa)
            return out
        out[:count] = v / (1.0 + steps * weight / norm) if norm > 0.0 else 0.0
        return out

    def _residual(self, theta: FloatArray, slopes: FloatArray) -> float:
        """How far one more iteration would move: the restart criterion."""
        stepped, moved = self._iterated(theta, slopes)
        primal, dual = self._step_sizes()
        away = self.form.weights @ (moved - slopes) ** 2 / dual
        return float(((stepped - theta) ** 2 / primal).sum() + away)

    def _rebalance(self, moved: FloatArray, slopes_moved: FloatArray) -> None:
        primal = math.sqrt(float(moved**2 @ (1.0 / self.at.metric)))
        dual = math.sqrt(float(self.form.weights @ slopes_moved**2))
        if primal > 0 and dual > 0:
            self.balance *= math.sqrt(min(max(primal / dual / self.balance, 0.1), 10.0))


def _norm_after_shrinking(values: FloatArray, shrinkage: FloatArray, floor: float) -> float:
    """Solve floor / N^2 + sum values^2 / (N + shrinkage)^2 = 1 for N, or return 0 if N would be below.

    The left side is convex and decreasing, so Newton's method climbs to the root from the left.
    """
    norm = math.sqrt(floor)
    for _ in range(100):
        shares = (values / (norm + shrinkage)) ** 2
        held = floor / norm / norm if floor > 0 else 0.0  # a square would overflow first
        left = float(shares.sum()) + held
        if left <= 1.0 + 1e-14:
            break
        slope = -2.0 * float((shares / (norm + shrinkage)).sum())
        if floor > 0:
            slope -= 2.0 * held / norm
        norm -= (left - 1.0) / slope
    return norm
