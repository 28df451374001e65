"""What a decision costs once the outcome is known."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.typing import ArrayNamespace, FloatArray


class Cost(ABC):
    """A cost c(z, y) of decision z under outcome y.

    Formulas are written against an array namespace ``xp`` (``numpy`` or ``jax.numpy``), so one
    definition serves the readable twin, the compiled engines and the certificate.
    """

    @abstractmethod
    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return c(z, y) per row: two arrays of shape (rows, products) give one of shape (rows,)."""

    def why_not(self, n_products: int) -> str | None:
        """Return why this cost cannot be used with so many products, or None if it can."""
        del n_products
        return None


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
        kinked: FloatArray = xp.maximum(self.up * residuals, -self.down * residuals)
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

    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return the cost summed over products, one number per row."""
        if decisions.shape != outcomes.shape:
            # A matrix minus a vector would broadcast to every pair of rows, silently.
            raise InvalidInputError(
                "decisions and outcomes must have one shape, (rows, products), "
                f"got {decisions.shape} and {outcomes.shape}."
            )
        residuals = decisions - outcomes
        columns = [
            piece.evaluate(residuals[..., j], xp)
            for j, piece in enumerate(self.pieces(residuals.shape[-1]))
        ]
        return sum(columns[1:], start=columns[0])
