"""What a decision costs once the outcome is known."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.typing import ArrayNamespace, FloatArray

# A cumulative weight this close below a level has reached it: ten times 0.1 is not quite 1.
LEVEL_TOL = 1e-12


class Cost(ABC):
    """A cost c(z, y) of decision z under outcome y.

    Formulas are written against an array namespace ``xp`` (``numpy`` or ``jax.numpy``), so one
    definition serves the readable twin, the compiled engines and the certificate.
    """

    @abstractmethod
    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return c(z, y) per row: (..., decisions) and (..., outcomes) give an array of shape (...)."""

    def mean(self, decisions: FloatArray, outcomes: FloatArray, weights: FloatArray) -> float:
        """Return the weighted mean cost of decisions (rows, decisions); weights sum to one."""
        return float(weights @ self.evaluate(decisions, outcomes))

    def n_decisions(self, n_outcomes: int) -> int:
        """How many numbers a decision has when an outcome has so many."""
        return n_outcomes

    def typical(self, outcomes: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a reasonable constant decision and the unit in which decisions vary.

        Learning starts at the first and measures its steps in the second; both have shape
        (decisions,). The default is the mean and the standard deviation of the outcomes, or zero
        and one where decisions are not of the outcomes' kind.
        """
        count = self.n_decisions(outcomes.shape[1])
        if count != outcomes.shape[1]:
            return np.zeros(count), np.ones(count)
        return weights @ outcomes, outcome_spread(outcomes, weights)

    def growth(self) -> float:
        """Return the power with which the cost can grow in the decision, infinite if unknown."""
        return np.inf

    def curvature(self) -> float:
        """Return a bound on the second derivative in the decision, infinite if there is none."""
        return np.inf

    def floor(self) -> float:
        """Return a cost that no decision and outcome can undercut, minus infinity if unknown."""
        return -np.inf

    def why_not(self, n_products: int) -> str | None:
        """Return why this cost cannot be used with so many products, or None if it can."""
        del n_products
        return None

    def why_unlimited(self) -> str | None:
        """Return why decisions must have limits (``decisions=`` of the policy), or None."""
        return None


def check_one_shape(decisions: FloatArray, outcomes: FloatArray) -> None:
    """Refuse shapes that differ: a matrix minus a vector would broadcast to every pair of rows."""
    if decisions.shape != outcomes.shape:
        raise InvalidInputError(
            "decisions and outcomes must have one shape, (rows, products), "
            f"got {decisions.shape} and {outcomes.shape}."
        )


def check_same_rows(decisions: FloatArray, outcomes: FloatArray) -> None:
    """Refuse rows that differ in number, of a cost with decisions of another kind than outcomes."""
    if decisions.ndim == 0 or decisions.shape[:-1] != outcomes.shape[:-1]:
        raise InvalidInputError(
            "decisions and outcomes must have the same rows, (rows, decisions) and (rows, outcomes), "
            f"got {decisions.shape} and {outcomes.shape}."
        )


def outcome_spread(outcomes: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted standard deviation of each outcome, its size or one where that is zero."""
    mean = weights @ outcomes
    spread = np.sqrt(weights @ (outcomes - mean) ** 2)
    fallback = np.where(mean != 0.0, np.abs(mean), 1.0)
    # A spread that is only rounding would make a unit of nothing.
    return np.where(spread > 1e-12 * np.abs(mean), spread, fallback)


def weighted_quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    """Return the smallest value whose cumulative weight reaches ``level`` of the total.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.full(3, 1 / 3), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    covered = np.cumsum(weights[order])
    place = int(np.searchsorted(covered, (level - LEVEL_TOL) * covered[-1]))
    return float(values[order[min(place, len(values) - 1)]])


class AuxiliaryCost(Cost):
    """A cost with variables of its own that are chosen together with the policy: c(z, a, y).

    The value at risk of a portfolio is one. It does not depend on the context.
    """

    @abstractmethod
    def evaluate_at(
        self,
        decisions: FloatArray,
        auxiliary: FloatArray,
        outcomes: FloatArray,
        xp: ArrayNamespace = np,
    ) -> FloatArray:
        """Return c(z, a, y) per row; ``auxiliary`` has shape (variables,)."""

    @abstractmethod
    def best_auxiliary(
        self, decisions: FloatArray, outcomes: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return the variables that minimise the mean cost of given decisions."""

    @abstractmethod
    def typical_auxiliary(
        self, outcomes: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return where the variables start and the unit in which they vary."""

    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return the cost of each row with the variables that suit these rows best."""
        rows = math.prod(decisions.shape[:-1])
        best = self.best_auxiliary(
            np.asarray(decisions).reshape(rows, -1),
            np.asarray(outcomes).reshape(rows, -1),
            np.full(rows, 1.0 / rows),
        )
        return self.evaluate_at(decisions, best, outcomes, xp)

    def mean(self, decisions: FloatArray, outcomes: FloatArray, weights: FloatArray) -> float:
        """Return the smallest weighted mean cost over the variables."""
        best = self.best_auxiliary(decisions, outcomes, weights)
        return float(weights @ self.evaluate_at(decisions, best, outcomes))


@dataclass(frozen=True, slots=True)
class Pieces:
    """The two slopes of a kinked cost: psi(r) = max(up r, -down r), rounded within ``smoothing``.

    Both slopes are positive and in units of cost per unit of r = z - y.
    """

    up: float
    down: float
    smoothing: float = 0.0

    @property
    def steepest(self) -> float:
        """The Lipschitz constant G = max(up, down)."""
        return max(self.up, self.down)

    @property
    def geometric(self) -> float:
        """The slope constant of order 2, sqrt(up down)."""
        return float(np.sqrt(self.up * self.down))

    @property
    def quantile(self) -> float:
        """The fraction of outcomes that the best constant decision covers."""
        return self.down / (self.up + self.down)

    def evaluate(self, residuals: FloatArray, xp: ArrayNamespace = np) -> FloatArray:
        """Return psi(r), elementwise."""
        # Written with >= so that the derivative at the kink is the upper slope in every engine.
        kinked: FloatArray = xp.where(residuals >= 0.0, self.up * residuals, -self.down * residuals)
        if self.smoothing == 0.0:
            return kinked
        # Equation 22 of the paper, in r = z - y: a parabola that meets both lines with their slopes.
        curvature = (self.up + self.down) / (2.0 * self.smoothing)
        rounded = (
            0.5 * curvature * residuals**2
            + 0.5 * (self.up - self.down) * residuals
            + 0.25 * (self.up + self.down) * self.smoothing
        )
        smoothed: FloatArray = xp.where(xp.abs(residuals) < self.smoothing, rounded, kinked)
        return smoothed


class ConvexPiecewiseCost(Cost):
    """A cost that is a sum over products of kinked costs psi_j(z_j - y_j).

    Closed forms and the compiled engine ask for this class, never for a cost by name.
    """

    @abstractmethod
    def pieces(self, n_products: int) -> tuple[Pieces, ...]:
        """Return the slopes of each product."""

    def typical(self, outcomes: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the best constant decision of each product and the spread of its outcome."""
        centre = [
            weighted_quantile(outcomes[:, j], weights, piece.quantile)
            for j, piece in enumerate(self.pieces(outcomes.shape[1]))
        ]
        return np.array(centre), outcome_spread(outcomes, weights)

    def growth(self) -> float:
        """Return one: both arms are straight lines."""
        return 1.0

    def floor(self) -> float:
        """Return zero: no decision is better than a perfect one."""
        return 0.0

    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return the cost summed over products, one number per row."""
        check_one_shape(decisions, outcomes)
        residuals = decisions - outcomes
        columns = [
            piece.evaluate(residuals[..., j], xp)
            for j, piece in enumerate(self.pieces(residuals.shape[-1]))
        ]
        return sum(columns[1:], start=columns[0])
