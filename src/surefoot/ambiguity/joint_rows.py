"""Several products in one ball, as arrays: what they share, and the lines of their total cost."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from surefoot.ambiguity.wasserstein import WassersteinForm
from surefoot.costs import Pieces
from surefoot.typing import FloatArray, IntArray

JointPolicy = tuple[FloatArray, FloatArray]
# Most choices of a line of every product: ten newsvendors have so many.
MOST_LINES = 1024


class JointLines(NamedTuple):
    """All choices of a line of every product: which, their slopes (lines, products) and levels."""

    picks: IntArray
    slopes: FloatArray
    levels: FloatArray


def why_no_joint_lines(pieces: Sequence[Pieces]) -> str | None:
    """Return why costs of several products have no exact worst case under one adversary, or None."""
    count = math.prod(len(one.slopes) for one in pieces)
    if count > MOST_LINES:
        return (
            f"one adversary for {len(pieces)} products needs at most {MOST_LINES:,} choices of a line "
            f"of every cost, got {count:,}: adversary='each' bounds it from above"
        )
    if any(one.smoothing > 0.0 for one in pieces):
        return "one adversary for several products needs an unsmoothed cost: set smoothing=0"
    return None


@dataclass(frozen=True, eq=False)
class JointRows:
    """Several products in one Wasserstein ball, as arrays; policies are (Theta, t).

    Theta has shape (columns, products) and t shape (products,). Costs are in units of the largest
    ``value_unit`` of the products.

    Attributes
    ----------
    products
        The forms of the products, which share contexts, weights and the ball.
    """

    products: tuple[WassersteinForm, ...]

    # --- what the products share ------------------------------------------------------------------

    @property
    def first(self) -> WassersteinForm:
        """A form that knows what all products share."""
        return self.products[0]

    @property
    def weights(self) -> FloatArray:
        """Shape (rows,)."""
        return self.first.weights

    @property
    def contexts(self) -> FloatArray:
        """Shape (rows, columns)."""
        return self.first.contexts

    @property
    def scale(self) -> FloatArray:
        """What contexts were divided by."""
        return self.first.scale

    @property
    def column_unit(self) -> float:
        """What columns were divided by beyond the units of the ball."""
        return self.first.column_unit

    @property
    def radius(self) -> float:
        """In the units of the forms."""
        return self.first.radius

    @property
    def order(self) -> int:
        """Of the ball."""
        return self.first.order

    @property
    def budget(self) -> float:
        """Most transport cost that the adversary may spend: radius^order."""
        return self.first.budget

    @property
    def intercept(self) -> bool:
        """Whether t is free."""
        return self.first.intercept

    @property
    def boxed(self) -> bool:
        """Whether the support stops the adversary anywhere."""
        return any(form.boxed for form in self.products)

    # --- sums over the products -------------------------------------------------------------------

    @cached_property
    def value_unit(self) -> float:
        """One unit of expected cost, in the user's units."""
        return max(form.value_unit for form in self.products)

    @cached_property
    def shares(self) -> FloatArray:
        """Shape (products,): one unit of each product's cost."""
        return np.array([form.value_unit / self.value_unit for form in self.products])

    @cached_property
    def outcomes(self) -> FloatArray:
        """Shape (rows, products)."""
        return np.column_stack([form.outcomes for form in self.products])

    @property
    def gap_floor(self) -> float:
        """The size below which a gap stops being relative."""
        return float(self.shares @ [form.gap_floor for form in self.products])

    @property
    def least(self) -> float:
        """The least cost there is."""
        return float(self.shares @ [form.pieces.least for form in self.products])

    @property
    def limited(self) -> bool:
        """Whether decisions have limits."""
        return self.first.limited

    @property
    def unavoidable(self) -> float:
        """The expected cost that no decision within the limits avoids."""
        return float(self.shares @ [form.unavoidable for form in self.products])

    @cached_property
    def unresolved(self) -> float:
        """What columns without a penalty that differ in their last digits alone could gain."""
        return float(self.shares @ [form.unresolved for form in self.products])

    @property
    def tight(self) -> bool:
        """Whether the lower bound meets the optimum for the right plan."""
        return self.unresolved == 0.0

    @cached_property
    def inverse_kappas(self) -> FloatArray:
        """Shape (products,): 1/kappa in the units of each outcome, zero where outcomes cannot move."""
        return np.array([form.inverse_kappa for form in self.products])

    @cached_property
    def lines(self) -> JointLines:
        """All choices of a line of every product."""
        own = [form.pieces for form in self.products]
        picks = np.array(list(itertools.product(*(range(len(p.slopes)) for p in own))))
        slopes = np.column_stack([np.array(p.slopes)[picks[:, j]] for j, p in enumerate(own)])
        levels = np.column_stack([np.array(p.intercepts)[picks[:, j]] for j, p in enumerate(own)])
        return JointLines(picks, slopes * self.shares, levels @ self.shares)

    def costs(self, contexts: FloatArray, outcomes: FloatArray, policy: JointPolicy) -> FloatArray:
        """Return the total cost of each context and outcome under a policy."""
        residuals = contexts @ policy[0] + policy[1] - outcomes
        each = [form.pieces.evaluate(residuals[:, j]) for j, form in enumerate(self.products)]
        return np.asarray(np.column_stack(each) @ self.shares)

    def line_norms(self, theta: FloatArray) -> FloatArray:
        """Return how far each line moves per unit of transport: ||Theta w|| and the outcomes' share."""
        slopes = self.lines.slopes
        along = np.linalg.norm(theta[self.first.movable] @ slopes.T, axis=0)
        if self.order == 1:
            return np.asarray(np.maximum(along, np.linalg.norm(slopes * self.inverse_kappas, axis=1)))
        return np.asarray(np.sqrt(along**2 + slopes**2 @ self.inverse_kappas))

    def on_lines(self, policy: JointPolicy) -> FloatArray:
        """Return the cost of every row on every line, shape (rows, lines)."""
        residuals = self.contexts @ policy[0] + (policy[1] - self.outcomes)
        return np.asarray(residuals @ self.lines.slopes.T + self.lines.levels)
