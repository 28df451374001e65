"""Problems with an affine policy and a kinked cost, as plain scaled arrays.

Every exact formula, certificate and compiled kernel speaks about this form: one product, contexts
already divided by the column scale, one weight for each distinct row.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from surefoot.costs import ConvexPiecewiseCost, Pieces
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters
from surefoot.problem.problem import Problem
from surefoot.sets import Box
from surefoot.typing import BoolArray, FloatArray, IntArray

# A column whose spread is this small a share of its size is constant but for rounding.
CONSTANT_COLUMN = 1e-12


@dataclass(frozen=True, eq=False)
class AffineProblem:
    """One product of an affine problem, in scaled units.

    The policy is z = theta'x + t with r = z - y, and the cost psi(r) = max(h r, -b r).

    Attributes
    ----------
    contexts
        Shape (rows, columns), divided by ``scale``.
    outcomes, weights
        Shape (rows,); weights sum to one, and are positive where rows were merged.
    movable
        Shape (columns,): which columns the adversary may move.
    lower, upper
        Shape (columns,): the support, in scaled units.
    outcome_bounds
        Support of the outcome.
    scale
        Shape (columns,): what the contexts were divided by.
    limited, unavoidable
        Whether decisions have limits, and the expected cost that no decision within them avoids.
        Outcomes are cut to the limits then: for a decision z within them,
        psi(z - y) = psi(z - cut(y)) + psi(cut(y) - y), and cutting z too can only lower the first
        term. So the affine problem on cut outcomes bounds that of the cut policy from above.
    """

    contexts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    movable: BoolArray
    intercept: bool
    pieces: Pieces
    radius: float
    order: int
    outcome_cost: float
    lower: FloatArray
    upper: FloatArray
    outcome_bounds: tuple[float, float]
    scale: FloatArray
    limited: bool = False
    unavoidable: float = 0.0

    @property
    def boxed(self) -> bool:
        """Whether the support stops the adversary anywhere."""
        held = (
            np.isfinite(self.lower[self.movable]).any() or np.isfinite(self.upper[self.movable]).any()
        )
        outcome_held = math.isfinite(self.outcome_cost) and any(
            math.isfinite(bound) for bound in self.outcome_bounds
        )
        return bool(held) or outcome_held

    @property
    def outcome_pull(self) -> float:
        """1/kappa, zero when outcomes cannot move."""
        return 1.0 / self.outcome_cost

    @property
    def slope_constant(self) -> float:
        """Cost per unit of radius and of ||theta||: G for order 1, sqrt(b h) for order 2."""
        return self.pieces.steepest if self.order == 1 else self.pieces.geometric

    def reach(self, theta: FloatArray) -> float:
        """How far the cost moves per unit of transport: ||theta|| joined with the outcome's share.

        max(||theta||, 1/kappa) for order 1, sqrt(||theta||^2 + 1/kappa) for order 2, over
        movable columns.
        """
        m = float(np.linalg.norm(theta[self.movable]))
        if self.order == 1:
            return max(m, self.outcome_pull)
        return math.sqrt(m * m + self.outcome_pull)

    def residuals(self, theta: FloatArray, intercept: float) -> FloatArray:
        """Return r = theta'x + t - y for each row."""
        return np.asarray(self.contexts @ theta + (intercept - self.outcomes))

    def constant_order(self) -> tuple[float, FloatArray]:
        """Return the best constant decision and its slopes u, which sum to zero under the weights.

        The decision is the outcome quantile at b / (b + h) (sample average approximation). Slopes
        are h below it and -b above it; rows that lie on it share what makes the sum zero. The
        slopes are computed once and read-only.
        """
        return self._constant_order

    @cached_property
    def _constant_order(self) -> tuple[float, FloatArray]:
        b, h = self.pieces.down, self.pieces.up
        order = np.argsort(self.outcomes, kind="stable")
        covered = np.cumsum(self.weights[order])
        # The slack keeps a quantile that falls on a row at that row, whatever the rounding.
        at = int(np.searchsorted(covered, self.pieces.quantile - 1e-12))
        decision = float(self.outcomes[order[min(at, len(order) - 1)]])
        slopes = np.where(self.outcomes < decision, h, -b).astype(np.float64)
        tied = self.outcomes == decision
        slopes[tied] = 0.0
        shared = -float(self.weights @ slopes) / float(self.weights[tied].sum())
        # A row lighter than the slack could be asked for more than a slope.
        slopes[tied] = min(max(shared, -b), h)
        slopes.flags.writeable = False
        return decision, slopes

    def collapse_radius(self) -> float:
        """Return rho_max: from this radius on, the best policy with intercept is constant.

        ||X'u|| / C with u the slopes of the constant order, X centred, C the slope constant. Exact
        for a free support and no frozen columns; otherwise the right scale for a grid of radii.
        """
        return self._collapse_radius

    @property
    def collapses(self) -> bool:
        """Whether the collapse radius is exact: a free support, an intercept, and only contexts move.

        Frozen columns that vary keep their parameters at any radius, and so does a policy whose
        outcomes move: sqrt(||theta||^2 + pull) is flat at theta = 0.
        """
        still = (self.movable | (np.ptp(self.contexts, axis=0) == 0.0)).all()
        return bool(still and self.intercept and not self.boxed and self.outcome_pull == 0.0)

    @cached_property
    def _collapse_radius(self) -> float:
        _, slopes = self.constant_order()
        gradient = self.contexts.T @ (self.weights * slopes)
        return float(np.linalg.norm(gradient[self.movable])) / self.slope_constant

    @cached_property
    def column_sizes(self) -> FloatArray:
        """Largest absolute value of each column."""
        return np.asarray(np.maximum(self.contexts.max(axis=0), -self.contexts.min(axis=0)))

    def at_radius(self, radius: float) -> "AffineProblem":
        """Return the same problem with another radius."""
        return replace(self, radius=radius)

    def subset(self, rows: IntArray) -> "AffineProblem":
        """Return the problem on some of the rows, in the same units."""
        weights = self.weights[rows]
        return replace(
            self,
            contexts=np.ascontiguousarray(self.contexts[rows]),
            outcomes=self.outcomes[rows],
            weights=weights / weights.sum(),
        )


def _affine_parts(problem: Problem) -> tuple[Linear, ConvexPiecewiseCost, Empirical]:
    """Return policy, cost and nominal as the classes that the affine form needs, or refuse."""
    policy, cost, nominal = problem.policy, problem.cost, problem.nominal
    if (
        isinstance(policy, Linear)
        and isinstance(cost, ConvexPiecewiseCost)
        and isinstance(nominal, Empirical)
    ):
        return policy, cost, nominal
    raise UnsupportedProblemError(f"The problem has no affine form: {why_not_affine(problem)}.")


def why_not_affine(problem: Problem) -> str | None:
    """Return why the problem has no affine form, or None if it has one."""
    if not isinstance(problem.policy, Linear):
        return f"it needs a Linear policy, got {type(problem.policy).__name__}"
    if not isinstance(problem.cost, ConvexPiecewiseCost):
        return f"it needs a kinked cost such as Newsvendor, got {type(problem.cost).__name__}"
    if not isinstance(problem.nominal, Empirical):
        return f"it needs an Empirical nominal, got {type(problem.nominal).__name__}"
    return why_not_limits(problem)


def why_not_limits(problem: Problem) -> str | None:
    """Return why the limits on decisions leave no affine form, or None if they do."""
    limits = problem.policy.decisions
    if limits is None:
        return None
    if not isinstance(limits, Box):
        return f"it needs decisions limited one by one (a Box), got {type(limits).__name__}"
    smoothed = isinstance(problem.cost, ConvexPiecewiseCost) and any(
        piece.smoothing > 0 for piece in problem.cost.pieces(problem.nominal.n_products)
    )
    if smoothed:  # cutting splits the cost of a sharp kink only
        return "it needs a cost without smoothing where decisions have limits, got smoothing > 0"
    if math.isfinite(problem.ball.outcome_cost):
        return "it needs outcome_cost=inf where decisions have limits, got a finite one"
    return None


def column_spread(contexts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted standard deviation of each column, zero where it is only rounding."""
    largest = np.maximum(contexts.max(axis=0), -contexts.min(axis=0))
    # Divided by a power of two, numbers keep their digits and squares neither overflow nor vanish.
    size = np.ldexp(1.0, np.frexp(largest)[1])
    centred = contexts / size
    centred -= weights @ centred
    spread = np.sqrt(np.einsum("i,ij,ij->j", weights, centred, centred))
    return np.where(spread > CONSTANT_COLUMN, spread * size, 0.0)


def movable_columns(problem: Problem, names: tuple[str, ...] | None, spread: FloatArray) -> BoolArray:
    """Return the columns that are neither frozen nor, if moves are measured in spreads, constant."""
    ball = problem.ball
    named = [column for column in ball.frozen if isinstance(column, str)]
    if names is None and named and getattr(problem.policy, "features", None) is not None:
        raise InvalidInputError(
            "frozen must hold positions of features when the policy has a feature map, "
            f"got {named[0]!r}."
        )
    movable = ~ball.frozen_mask(len(spread), names)
    return movable & (spread > 0.0) if ball.scale else movable


def affine_problems(
    problem: Problem,
    scale: FloatArray | None = None,
    movable: BoolArray | None = None,
    *,
    merge: bool = True,
) -> tuple[AffineProblem, ...]:
    """Return the problem as one affine problem for each product.

    Parameters
    ----------
    problem
        A problem with a Linear policy, a kinked cost and an Empirical nominal.
    scale, movable
        The column scale and the columns that move, of an earlier fit; None finds both from the
        nominal.
    merge
        Whether equal rows are joined and ordered, as solvers want it, or rows stay as they came.
    """
    policy, cost, given = _affine_parts(problem)
    ball, nominal = problem.ball, given.distinct() if merge else given
    features = policy.transform(nominal.contexts)
    if movable is None or scale is None:
        spread = column_spread(features, nominal.weights)
        names = given.names if policy.features is None else None
        movable = movable_columns(problem, names, spread)
        scale = np.where(spread > 0.0, spread, 1.0) if ball.scale else np.ones(len(spread))
    lower, upper, outcome_bounds = support_bounds(problem, features, nominal.outcomes)
    scaled = np.ascontiguousarray(features / scale)
    outcomes = nominal.outcomes
    if policy.decisions is not None:
        reason = policy.decisions.why_not(outcomes.shape[1])
        if reason is not None:
            raise InvalidInputError(f"{reason}.")
        outcomes = policy.decisions.map_into(outcomes)
    return tuple(
        AffineProblem(
            contexts=scaled,
            outcomes=np.ascontiguousarray(outcomes[:, j]),
            weights=nominal.weights,
            movable=movable,
            intercept=policy.intercept,
            pieces=pieces,
            radius=problem.radius,
            order=ball.order,
            outcome_cost=ball.outcome_cost,
            lower=lower / scale,
            upper=upper / scale,
            outcome_bounds=outcome_bounds,
            scale=scale,
            limited=policy.decisions is not None,
            unavoidable=float(
                nominal.weights @ pieces.evaluate(outcomes[:, j] - nominal.outcomes[:, j])
            ),
        )
        for j, pieces in enumerate(cost.pieces(nominal.n_products))
    )


def support_bounds(
    problem: Problem, features: FloatArray, outcomes: FloatArray
) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
    """Return the box in the user's units, after checking that the nominal lies inside."""
    n_columns = features.shape[1]
    box = problem.ball.support
    if box is None:
        return np.full(n_columns, -np.inf), np.full(n_columns, np.inf), (-np.inf, np.inf)
    lower, upper = box.arrays(n_columns)
    outside = (features < lower) | (features > upper)
    if outside.any():
        column = int(np.argwhere(outside)[0, 1])
        raise InvalidInputError(
            f"support must contain every context, got column {column} with values in "
            f"[{features[:, column].min():g}, {features[:, column].max():g}] and a box "
            f"[{lower[column]:g}, {upper[column]:g}]."
        )
    if math.isfinite(problem.ball.outcome_cost):
        low, high = box.outcome
        if outcomes.min() < low or outcomes.max() > high:
            raise InvalidInputError(
                f"support must contain every outcome, got values in [{outcomes.min():g}, "
                f"{outcomes.max():g}] and bounds [{low:g}, {high:g}]."
            )
    return lower, upper, box.outcome


def user_parameters(
    problems: tuple[AffineProblem, ...], solutions: tuple[tuple[FloatArray, float], ...]
) -> LinearParameters:
    """Return scaled (theta, intercept) of each product as parameters in the user's units."""
    theta = np.stack([th / p.scale for p, (th, _) in zip(problems, solutions, strict=True)], axis=1)
    return LinearParameters(theta=theta, intercept=np.array([t for _, t in solutions]))
