"""Drive the kernel with memory."""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.engines.canonical import Canonical, canonical
from surefoot.engines.memory import MEAN_SLOPE, N_SCALARS, memory_steps
from surefoot.problem import AffineProblem
from surefoot.typing import FloatArray, IntArray

# Parameters that shrink towards zero for ever stop here, before their squares leave the floats.
SMALLEST_PARAMETER = 1e-100
# Product of primal and dual step sizes, as a share of the largest that is safe.
SAFETY = 0.81
# The start lies this share of a primal step away from the constant order.
FIRST_SHARE = 1e-3
# The primal step starts at this many units of cost / (b + h) / sqrt(rows).
FIRST_BALANCE = 20.0


@dataclass
class MemoryRun:
    """A run that can be continued, also at another radius: the path of radii is one run."""

    problem: AffineProblem
    form: Canonical
    coordinates: FloatArray
    slopes: FloatArray
    gradient: FloatArray
    scalars: FloatArray
    balance: float
    sizes: FloatArray
    middle: float
    steps: int = 0

    @classmethod
    def start(cls, problem: AffineProblem) -> "MemoryRun":
        """Begin at the constant order, with the slopes that go with it."""
        form = canonical(problem)
        decision, slopes = problem.constant_order()
        coordinates = np.zeros(form.rows.shape[1])
        if form.spans_constant:
            coordinates[form.n_priced :] = decision * form.constant
            slopes = slopes.copy()
        else:
            slopes = np.zeros_like(slopes)
        begun = decision if form.spans_constant else 0.0
        cost = float(problem.weights @ problem.pieces.evaluate(begun - problem.outcomes))
        spread = max(cost, 1e-300) / (problem.pieces.up + problem.pieces.down)
        weighted = problem.weights * slopes
        sizes = np.sqrt(np.einsum("ij,ij,j->i", form.rows, form.rows, form.metric))
        sizes = np.maximum(sizes, 1e-12 * max(float(sizes.max()), 1e-300))
        scalars = np.zeros(N_SCALARS)
        scalars[MEAN_SLOPE] = weighted.sum()
        gradient, middle = form.rows.T @ weighted, float(np.median(sizes))
        balance = FIRST_BALANCE * spread / math.sqrt(len(slopes))
        # At exactly zero the norm holds theta; a small step leaves it nothing to crawl away from.
        first = FIRST_SHARE * balance / middle * form.metric[: form.n_priced]
        coordinates[: form.n_priced] = -first * gradient[: form.n_priced]
        return cls(
            problem=problem,
            form=form,
            coordinates=coordinates,
            slopes=slopes,
            gradient=gradient,
            scalars=scalars,
            balance=balance,
            sizes=sizes,
            middle=middle,
        )

    def move_to(self, radius: float) -> None:
        """Continue at another radius from where the run stands."""
        self.problem = self.problem.at_radius(radius)

    def run(self, draws: IntArray) -> None:
        """Take one step per draw and rebalance the step sizes by what moved how far."""
        problem, pieces = self.problem, self.problem.pieces
        before, slopes_before = self.coordinates.copy(), self.slopes.copy()
        middle = self.middle
        share = math.sqrt(SAFETY)
        memory_steps(
            self.form.rows, problem.outcomes, problem.weights, draws,
            pieces.up, pieces.down, problem.radius, problem.order, problem.outcome_pull,
            self.form.spans_constant, self.form.n_priced,
            self.coordinates, self.slopes, self.gradient, self.scalars,
            share * self.balance / middle * self.form.metric,
            share * middle / self.balance / self.sizes**2,
        )  # fmt: skip
        self.steps += len(draws)
        self._rebalance(self.coordinates - before, self.slopes - slopes_before, middle)

    def _rebalance(self, moved: FloatArray, slopes_moved: FloatArray, middle: float) -> None:
        """Let theta and the slopes travel equally far in the metric of their step sizes."""
        primal = middle * math.sqrt(float(moved**2 @ (1.0 / self.form.metric)))
        dual = math.sqrt(float(slopes_moved**2 @ self.sizes**2))
        if primal > 0 and dual > 0:
            change = min(max(primal / dual / self.balance, 0.2), 5.0)
            self.balance *= math.sqrt(change)

    def policy(self) -> tuple[FloatArray, float]:
        """Return (theta, intercept) where the run stands.

        Order 2 with a free constant is solved without its shift (b - h) rho N / (2 sqrt(b h)) of
        the intercept, which is put back here.
        """
        problem, pieces, form = self.problem, self.problem.pieces, self.form
        coordinates = np.where(np.abs(self.coordinates) > SMALLEST_PARAMETER, self.coordinates, 0.0)
        if problem.order == 2 and form.spans_constant:
            squared = float(coordinates[: form.n_priced] @ coordinates[: form.n_priced])
            reach = math.sqrt(squared + problem.outcome_pull)
            shift = (pieces.down - pieces.up) * problem.radius * reach / (2.0 * pieces.geometric)
            coordinates[form.n_priced :] += shift * form.constant
        return form.parameters(problem, coordinates)
