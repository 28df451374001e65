"""Rows in a Wasserstein ball: how far samples may move, and what a move can gain."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from surefoot.ambiguity.form import AffineRows, Geometry
from surefoot.costs import Pieces
from surefoot.typing import BoolArray, FloatArray, IntArray

# Chords of a rounded kink in a box: so many lie above it by a thousandth of what rounding adds at most.
CHORDS = 32


def chords(pieces: Pieces) -> Pieces:
    """Return the outer lines and chords between them, which lie nowhere below a rounded kink.

    >>> rounded = Pieces.kinked(up=1.0, down=3.0, smoothing=2.0)
    >>> residuals = np.linspace(-3.0, 3.0, 7)
    >>> bool((chords(rounded).evaluate(residuals) >= rounded.evaluate(residuals) - 1e-12).all())
    True
    """
    ends = np.linspace(-pieces.smoothing, pieces.smoothing, CHORDS + 1)
    costs = pieces.evaluate(ends)
    slopes = np.diff(costs) / np.diff(ends)
    levels = costs[:-1] - slopes * ends[:-1]
    return Pieces((pieces.slopes[0], *slopes.tolist(), pieces.slopes[-1]), (0.0, *levels.tolist(), 0.0))


@dataclass(frozen=True, eq=False, kw_only=True)
class TransportForm(AffineRows):
    """Rows of one product in a Wasserstein ball.

    Attributes
    ----------
    movable
        Shape (columns,): which columns the adversary may move.
    radius, order, outcome_cost
        Of the ball, in the units of the form.
    lower, upper
        Shape (columns,): the support of contexts, in the units of the form.
    outcome_lower, outcome_upper
        Shape (rows,): the support of each row's outcome; with an offset, of what it leaves over.
    """

    movable: BoolArray
    radius: float
    order: int
    outcome_cost: float
    lower: FloatArray
    upper: FloatArray
    outcome_lower: FloatArray
    outcome_upper: FloatArray

    @property
    def boxed(self) -> bool:
        """Whether the support stops the adversary anywhere; at radius zero there is none to stop."""
        return self.radius > 0.0 and self.supported

    @cached_property
    def supported(self) -> bool:
        """Whether the support would stop an adversary of some radius."""
        held = (
            np.isfinite(self.lower[self.movable]).any() or np.isfinite(self.upper[self.movable]).any()
        )
        bounds = (self.outcome_lower, self.outcome_upper)
        outcome_held = math.isfinite(self.outcome_cost) and any(np.isfinite(b).any() for b in bounds)
        return bool(held) or outcome_held

    @property
    def inverse_kappa(self) -> float:
        """1/kappa, zero when outcomes cannot move."""
        return 1.0 / self.outcome_cost

    @property
    def budget(self) -> float:
        """Most transport cost that the adversary may spend: radius^order."""
        return float(self.radius**self.order)

    @property
    def slope_constant(self) -> float:
        """Cost per unit of radius and of ||theta||: G for order 1, sqrt(b h) for order 2."""
        return self.pieces.steepest if self.order == 1 else self.pieces.geometric

    def dual_norm(self, theta: FloatArray) -> float:
        """How far the cost moves per unit of transport: ||theta|| joined with the outcome's share.

        max(||theta||, 1/kappa) for order 1, sqrt(||theta||^2 + 1/kappa) for order 2, over movable
        columns.
        """
        m = float(np.linalg.norm(theta[self.movable]))
        if self.order == 1:
            return max(m, self.inverse_kappa)
        return math.sqrt(m * m + self.inverse_kappa)

    @cached_property
    def largest_radius(self) -> float:
        """rho_max in the units of the form: from it on, the best policy with intercept is constant.

        ||X'u|| / C with u the slopes of the constant order, X centred, C the slope constant. Exact
        for two lines, a free support and no frozen columns; otherwise the right scale for radii.
        """
        _, slopes = self.constant_order()
        gradient = self.contexts.T @ (self.weights * slopes)
        return float(np.linalg.norm(gradient[self.movable])) / self.slope_constant

    @property
    def collapses(self) -> bool:
        """Whether the largest radius is exact: a free support, an intercept, and only contexts move.

        Frozen columns that vary keep their parameters at any radius, and so does a policy whose
        outcomes move: sqrt(||theta||^2 + 1/kappa) is flat at theta = 0.
        """
        still = (self.movable | (np.ptp(self.contexts, axis=0) == 0.0)).all()
        return bool(still and self.intercept and not self.supported and self.inverse_kappa == 0.0)

    @property
    def geometry(self) -> Geometry:
        """What the compiled kernels need to move samples.

        In a box moves are known for straight lines, so that a rounded kink is moved by its chords.
        """
        pieces = chords(self.pieces) if self.boxed and self.pieces.smoothing > 0.0 else self.pieces
        return Geometry(
            slopes=np.array(pieces.slopes), intercepts=np.array(pieces.intercepts),
            smoothing=pieces.smoothing, radius=self.radius, order=self.order,
            inverse_kappa=self.inverse_kappa, boxed=self.boxed, lower=self.lower, upper=self.upper,
        )  # fmt: skip

    def subset(self, rows: IntArray) -> Self:
        """Return the form on some of the rows, in the same units."""
        kept = super().subset(rows)
        return replace(
            kept, outcome_lower=self.outcome_lower[rows], outcome_upper=self.outcome_upper[rows]
        )

    def in_plain_units(self) -> Self:
        """Return the form in units of the ball and of the user's outcomes and costs."""
        c, unit = self.column_unit, self.outcome_unit
        share = (c / unit) ** self.order
        return replace(
            self, contexts=self.contexts * c, outcomes=self.outcomes * unit,
            pieces=self.pieces.scaled(1.0 / self.cost_unit, 1.0 / unit), offsets=self.offsets * unit,
            cut=None if self.cut is None else self.cut * unit,
            scale=self.scale / c, column_unit=1.0, outcome_unit=1.0, cost_unit=1.0,
            radius=self.radius * c, outcome_cost=self.outcome_cost * share,
            lower=self.lower * c, upper=self.upper * c,
            outcome_lower=self.outcome_lower * unit, outcome_upper=self.outcome_upper * unit,
        )  # fmt: skip
