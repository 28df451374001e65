"""One product of a problem with an affine policy and a piecewise linear cost, as plain arrays.

Every exact formula, certificate and compiled kernel speaks about this form. Columns are divided by
``scale``, outcomes by ``outcome_unit`` and costs by ``cost_unit``, so that a problem in grams and
one in tons are the same numbers. The last two are powers of two: they change no digit of an answer.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from surefoot.costs import Pieces
from surefoot.typing import FloatArray, IntArray

# The gap is relative to the optimum, but never to less than this share of the best constant cost:
# where the optimum is nearly zero, a relative gap would ask for digits that nobody needs.
FLOOR_SHARE = 0.01


class Adversary(NamedTuple):
    """The worst distribution in an ambiguity set around some rows, as weighted atoms.

    Attributes
    ----------
    value
        Worst-case expected cost, summed over products.
    expected_cost
        Expected cost under the atoms: ``value`` wherever the supremum is attained.
    multiplier
        The optimal gamma of each adversary.
    transport_cost
        Expected transport cost of each adversary's atoms, at most radius^p.
    rows, products
        Which row of the data each atom comes from (-1: from none), and which product's adversary moved
        it; where one adversary faces all products, its atoms count as product 0.
    contexts, outcomes
        The moved contexts (atoms, columns; features if the policy has a feature map) and outcomes.
    weights
        Probabilities; they sum to one for each adversary.
    distances
        Transport cost d_p of each atom, in units of the set.
    """

    value: float
    expected_cost: float
    multiplier: FloatArray
    transport_cost: FloatArray
    rows: IntArray
    products: IntArray
    contexts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    distances: FloatArray

    def __repr__(self) -> str:
        """Print the numbers that matter rather than every atom."""
        return (
            f"Adversary(value={self.value:.6g}, expected_cost={self.expected_cost:.6g}, "
            f"{len(self.weights)} atoms, transport_cost={np.array2string(self.transport_cost)})"
        )


class Geometry(NamedTuple):
    """The numbers that decide how a sample moves, in the units of a form.

    ``inverse_kappa`` is 1/kappa, zero where outcomes cannot move; bounds are those of contexts.
    """

    slopes: FloatArray
    intercepts: FloatArray
    smoothing: float
    radius: float
    order: int
    inverse_kappa: float
    boxed: bool
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class AffineRows:
    """Rows, cost and units of one product.

    The policy is z = theta'x + t with r = z - y, and the cost psi(r) = max_k (w_k r + v_k).

    Attributes
    ----------
    contexts
        Shape (rows, columns), divided by ``scale``.
    outcomes, weights
        Shape (rows,); weights sum to one, and are positive where rows were merged.
    intercept
        Whether t is free.
    pieces
        The lines of the cost.
    offsets
        Shape (rows,): the policy's fixed part, which was taken from the outcomes; zero without one.
    scale
        Shape (columns,): what the contexts were divided by, ``column_unit`` included.
    column_unit
        What columns were divided by beyond the units of the ambiguity set.
    outcome_unit, cost_unit
        What outcomes, and slopes of the cost, were divided by.
    cut
        Shape (rows,): how far outcomes were cut to the limits of decisions; None without limits.
        For a decision z within them, psi(z - y) = psi(z - cut(y)) + psi(cut(y) - y), and cutting z
        too can only lower the first term. So the affine problem on cut outcomes bounds that of the
        cut policy from above.
    """

    contexts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    intercept: bool
    pieces: Pieces
    offsets: FloatArray
    scale: FloatArray
    column_unit: float = 1.0
    outcome_unit: float = 1.0
    cost_unit: float = 1.0
    cut: FloatArray | None = None

    @property
    def value_unit(self) -> float:
        """One unit of expected cost, in the user's units."""
        return self.cost_unit * self.outcome_unit

    @property
    def limited(self) -> bool:
        """Whether decisions have limits."""
        return self.cut is not None

    @property
    def unavoidable(self) -> float:
        """The expected cost that no decision within the limits avoids."""
        return 0.0 if self.cut is None else self.mean_cost(self.cut)

    def residuals(self, theta: FloatArray, intercept: float) -> FloatArray:
        """Return r = theta'x + t - y for each row."""
        return np.asarray(self.contexts @ theta + (intercept - self.outcomes))

    def mean_cost(self, residuals: FloatArray) -> float:
        """Return the expected cost of residuals."""
        return float(self.weights @ self.pieces.evaluate(residuals))

    def constant_order(self) -> tuple[float, FloatArray]:
        """Return the best constant decision and its slopes u, which sum to zero under the weights.

        For two lines the decision is the outcome quantile at b / (b + h) (sample average
        approximation). Rows whose residual lies on a kink share what makes the sum zero. The slopes
        are computed once and read-only.
        """
        return self._constant_order

    @cached_property
    def _constant_order(self) -> tuple[float, FloatArray]:
        pieces = self.pieces
        decision = pieces.best_constant(self.outcomes, self.weights)
        residuals = decision - self.outcomes
        slopes = pieces.slope_at(residuals)
        # Two lines meet at zero, where a tie is exact; others meet where rounding may part them.
        slack = 0.0 if pieces.two else 1e-13 * float(np.abs(self.outcomes).max() + abs(decision))
        on_kink = np.abs(residuals[:, None] - pieces.kinks) <= slack
        tied = on_kink.any(axis=1)
        if tied.any():
            low = np.asarray(pieces.slopes)[:-1][on_kink.argmax(axis=1)]
            high = np.asarray(pieces.slopes)[1:][on_kink.argmax(axis=1)]
            rest = float(self.weights[~tied] @ slopes[~tied])
            mass = self.weights * tied
            # A row lighter than the slack of a quantile could be asked for more than a slope.
            room = float(mass @ (high - low))
            share = min(max((-rest - float(mass @ low)) / room, 0.0), 1.0) if room > 0.0 else 0.0
            slopes = np.where(tied, low + share * (high - low), slopes)
        slopes.flags.writeable = False
        return decision, slopes

    @cached_property
    def gap_floor(self) -> float:
        """The size below which a gap stops being relative."""
        decision, _ = self.constant_order()
        least = min(self.pieces.least, 0.0)  # a profit is no size
        cost = self.mean_cost(decision - self.outcomes) - least
        nothing = self.mean_cost(-self.outcomes) - least
        # Equal outcomes cost nothing at the constant order; the cost of deciding zero is a scale then.
        return max(FLOOR_SHARE * cost, 1e-9 * nothing)

    @cached_property
    def column_sizes(self) -> FloatArray:
        """Largest absolute value of each column."""
        return np.asarray(np.maximum(self.contexts.max(axis=0), -self.contexts.min(axis=0)))

    def subset(self, rows: IntArray) -> Self:
        """Return the form on some of the rows, in the same units."""
        weights = self.weights[rows]
        return replace(
            self,
            contexts=np.ascontiguousarray(self.contexts[rows]),
            outcomes=self.outcomes[rows],
            weights=weights / weights.sum(),
            offsets=self.offsets[rows],
            cut=None if self.cut is None else self.cut[rows],
        )

    def in_user_units(self, theta: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """Return a policy of this form in the user's units."""
        return theta * self.outcome_unit / self.scale, intercept * self.outcome_unit

    def from_user_units(self, theta: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """Return a policy in the user's units as one of this form."""
        return theta * self.scale / self.outcome_unit, intercept / self.outcome_unit


class AffineForm(AffineRows, ABC):
    """Rows with the ambiguity set around them: what a certificate needs to know.

    A set of one's own subclasses this and answers ``adversary``; everything else has a default.
    """

    @abstractmethod
    def adversary(self, theta: FloatArray, intercept: float) -> Adversary:
        """Return the worst distribution for a policy, in the units of this form."""

    def worst_value(self, theta: FloatArray, intercept: float) -> tuple[float, float]:
        """Return the worst-case expected cost of a policy and the multiplier that attains it."""
        adversary = self.adversary(theta, intercept)
        return adversary.value, float(adversary.multiplier[0])

    def start(self) -> tuple[tuple[FloatArray, Any], Any]:
        """Return the best constant decision (zero without an intercept) as a policy, and its slopes."""
        decision, slopes = self.constant_order()
        return (np.zeros(len(self.scale)), decision if self.intercept else 0.0), slopes

    def lower_bound(self, slopes: Any) -> float:
        """Return a value that the worst case of no policy can go below.

        ``slopes`` has one entry per row, ideally the slopes of the cost at the optimum; the bound
        must be valid for any. A Wasserstein ball takes a whole ``Plan`` of the adversary, too. The
        default is the least cost there is.
        """
        del slopes
        return self.pieces.least

    @property
    def tight(self) -> bool:
        """Whether the lower bound meets the optimum at the right slopes."""
        return False

    @property
    def unresolved(self) -> float:
        """What a policy could gain by telling columns apart that differ in their last digits alone.

        Lower bounds are lowered by it, and speak of policies with parameters up to
        ``balance.LARGEST_PARAMETER``.
        """
        return 0.0

    @property
    def geometry(self) -> Geometry | None:
        """What the compiled kernels need to move samples; None where they cannot."""
        return None

    @abstractmethod
    def at_radius(self, radius: float) -> Self:
        """Return the form at another radius, in units of the set."""

    def collapse_radius(self) -> float:
        """Return a radius, in units of the set, of which useful ones are shares."""
        return 1.0
