"""A run of the primal-dual kernel: coordinates, step sizes, and where it stands."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.engines.canonical import Canonical, canonical
from surefoot.engines.compiling import as_compiled
from surefoot.engines.primal_dual_kernel import primal_dual_steps
from surefoot.typing import FloatArray, IntArray

# Parameters that shrink towards zero for ever stop here, before their squares leave the floats.
SMALLEST_PARAMETER = 1e-100
# Product of primal and dual step sizes, as a share of the largest that is safe.
SAFETY = 0.81
# The start lies this share of a primal step away from the constant order.
FIRST_SHARE = 1e-3
# The primal step starts at this many units of cost / (b + h) / sqrt(rows).
FIRST_BALANCE = 20.0
# Costs are lopsided from this ratio on. A run that may stick there, and has not ended after so many
# steps, does.
LOPSIDED, STEPS_WHERE_STUCK = 20.0, 300_000


@dataclass
class PrimalDualRun:
    """A run that can be continued, also at another radius: the path of radii is one run."""

    form: WassersteinForm
    coordinates: Canonical
    theta: FloatArray
    slopes: FloatArray
    gradient: FloatArray
    mean_slope: float
    balance: float
    sizes: FloatArray
    middle: float
    steps: int = 0

    @classmethod
    def start(cls, form: WassersteinForm, *, penalised: bool | None = None) -> "PrimalDualRun":
        """Begin at the constant order, with the slopes that go with it.

        A run that will come to other radii than the form's says whether one of them is positive.
        """
        coordinates = canonical(form, penalised=form.radius > 0.0 if penalised is None else penalised)
        decision, slopes = form.constant_order()
        theta = np.zeros(coordinates.rows.shape[1])
        if coordinates.spans_constant:
            theta[coordinates.n_penalised :] = decision * coordinates.constant
            slopes = slopes.copy()
        else:
            slopes = np.zeros_like(slopes)
        begun = decision if coordinates.spans_constant else 0.0
        cost = form.mean_cost(begun - form.outcomes)
        spread = max(cost, 1e-300) / (form.pieces.up + form.pieces.down)
        weighted = form.weights * slopes
        rows, metric = coordinates.rows, coordinates.metric
        sizes = np.sqrt(np.einsum("ij,ij,j->i", rows, rows, metric))
        sizes = np.maximum(sizes, 1e-12 * max(float(sizes.max()), 1e-300))
        gradient, middle = rows.T @ weighted, float(np.median(sizes))
        balance = FIRST_BALANCE * spread / math.sqrt(len(slopes))
        # At exactly zero the norm holds theta; a small step leaves it nothing to crawl away from.
        count = coordinates.n_penalised
        theta[:count] = -FIRST_SHARE * balance / middle * metric[:count] * gradient[:count]
        return cls(
            form=form, coordinates=coordinates, theta=theta, slopes=slopes, gradient=gradient,
            mean_slope=float(weighted.sum()), balance=balance, sizes=sizes, middle=middle,
        )  # fmt: skip

    def move_to(self, form: WassersteinForm) -> None:
        """Continue at another radius from where the run stands."""
        self.form = form

    def run(self, draws: IntArray) -> None:
        """Take one step per draw and rebalance the step sizes by what moved how far."""
        form, pieces, at = self.form, self.form.pieces, self.coordinates
        before, slopes_before = self.theta.copy(), self.slopes.copy()
        share = math.sqrt(SAFETY)
        self.mean_slope = primal_dual_steps(
            at.rows, as_compiled(form.outcomes), as_compiled(form.weights), draws,
            pieces.up, pieces.down, form.radius, form.order, form.inverse_kappa,
            at.spans_constant, at.n_penalised,
            self.theta, self.slopes, self.gradient, self.mean_slope,
            share * self.balance / self.middle * at.metric,
            share * self.middle / self.balance / self.sizes**2,
        )  # fmt: skip
        self.steps += len(draws)
        self._rebalance(self.theta - before, self.slopes - slopes_before)

    def _rebalance(self, moved: FloatArray, slopes_moved: FloatArray) -> None:
        """Let theta and the slopes travel equally far in the metric of their step sizes."""
        primal = self.middle * math.sqrt(float(moved**2 @ (1.0 / self.coordinates.metric)))
        dual = math.sqrt(float(slopes_moved**2 @ self.sizes**2))
        if primal > 0 and dual > 0:
            change = min(max(primal / dual / self.balance, 0.2), 5.0)
            self.balance *= math.sqrt(change)

    def policy(self) -> tuple[FloatArray, float]:
        """Return (theta, intercept) where the run stands."""
        return policy_at(self.form, self.coordinates, self.theta)


def policy_at(
    form: WassersteinForm, coordinates: Canonical, theta: FloatArray
) -> tuple[FloatArray, float]:
    """Return (theta, intercept) in the form's own columns, from canonical coordinates.

    Order 2 with a free constant is solved without its shift (b - h) rho N / (2 sqrt(b h)) of the
    intercept, which is put back here.
    """
    pieces, count = form.pieces, coordinates.n_penalised
    theta = np.where(np.abs(theta) > SMALLEST_PARAMETER, theta, 0.0)
    if form.order == 2 and coordinates.spans_constant:
        norm = math.sqrt(float(theta[:count] @ theta[:count]) + form.inverse_kappa)
        shift = (pieces.down - pieces.up) * form.radius * norm / (2.0 * pieces.geometric)
        theta[count:] += shift * coordinates.constant
    return coordinates.parameters(form, theta)


def may_stick(form: WassersteinForm) -> bool:
    """Whether a run may stay at zero; see ``sticks``."""
    pieces = form.pieces
    return bool(sticks(form.order, form.intercept, pieces.up, pieces.down))


def sticks(order: Any, intercept: Any, up: Any, down: Any) -> Any:
    """Whether the method may stay at zero: takes numbers, or arrays of many problems.

    A policy without intercept can pass through rows at hardly any cost. With lopsided costs of order 2
    the constant of the ball then depends on slopes that are tiny beside the others.
    """
    lopsided = np.maximum(up, down) > LOPSIDED * np.minimum(up, down)
    return np.not_equal(order, 1) & np.logical_not(intercept) & lopsided
