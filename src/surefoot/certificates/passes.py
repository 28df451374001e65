"""Both bounds of affine policies over rows that do not fit into memory, from sums over batches.

For two lines and a free support everything that is proved is a sum over rows. The worst case of a
policy is its mean cost plus a multiple of its norm. A lower bound needs slopes u_i in [-b, h], one for
each row: here they are those of the rounded cost at some policy, so that a policy and a width describe
all of them, and the bound asks only for E[u y], E[u x] and E[u].
"""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from surefoot.ambiguity import WassersteinBall, WassersteinForm
from surefoot.ambiguity.lower_bound import free_bound
from surefoot.certificates.certificate import Certificate, make_certificate
from surefoot.costs import ConvexPiecewiseCost, Pieces
from surefoot.nominals import RowBatches
from surefoot.nominals.row_batches import Moments
from surefoot.policies import Linear
from surefoot.problem import Problem, affine_forms, fitted_problem, why_not_affine
from surefoot.problem.columns import batch_moments
from surefoot.typing import BoolArray, FloatArray

Batch = tuple[FloatArray, FloatArray]
# What balancing leaves of slopes, beside their size, is rounding up to this share.
BALANCED = 1e-11
# Directions of columns without a penalty with less of the largest second moment are rounding.
RANK_SHARE = 1e-13


class Point(NamedTuple):
    """A policy in the units of a form, and the half-width within which the kink is rounded.

    The intercept is the one on centred rows, of order 2 without the shift of the ball.
    """

    theta: FloatArray
    intercept: float
    width: float


class RowSums(NamedTuple):
    """Sums over rows at a point, with u the slope of the rounded cost and a = (x, 1) centred.

    ``curvature`` is the second derivative of the rounded cost in (theta, intercept), ``columns`` and
    ``outcome`` are the sums of a and y.
    """

    cost: float
    rounded_cost: float
    slope_outcome: float
    gradient: FloatArray
    curvature: FloatArray
    columns: FloatArray
    outcome: float

    def plus(self, other: "RowSums") -> "RowSums":
        """Return the sums over both sets of rows."""
        return RowSums._make(map(operator.add, self, other))

    def over(self, count: int) -> "RowSums":
        """Return means over so many rows."""
        return RowSums._make(part / count for part in self)


def why_no_passes(problem: Problem) -> str | None:
    """Return why bounds over all rows are no sums over batches, or None."""
    reason = why_not_affine(problem)
    if reason is not None:
        return reason
    policy, cost, ball = problem.policy, problem.cost, problem.ball
    if not isinstance(ball, WassersteinBall):
        return f"rows in batches need a Wasserstein ball, got {type(ball).__name__}"
    assert isinstance(policy, Linear)  # or it were not affine
    assert isinstance(cost, ConvexPiecewiseCost)
    pieces = cost.pieces(problem.nominal.n_products)
    if not all(one.two and one.smoothing == 0.0 for one in pieces):
        return "rows in batches need a cost of two lines that meet at zero, without smoothing"
    if ball.support is not None:
        return "rows in batches need a free support"
    if policy.decisions is not None:
        return "rows in batches need decisions without limits"
    if ball.order == 2 and not policy.intercept:
        return "rows in batches need an intercept for order 2"
    return None


@dataclass(frozen=True, eq=False)
class RowPasses:
    """A problem around rows in batches, and sums over them.

    Attributes
    ----------
    problem
        In the units of all rows.
    forms
        One for each product, on a sample of the rows, in those units.
    moments
        Of all rows' features.
    """

    problem: Problem
    forms: tuple[WassersteinForm, ...]
    moments: Moments

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return a problem for which ``why_no_passes`` has no reason."""
        nominal, fitted = problem.nominal, fitted_problem(problem)
        assert isinstance(nominal, RowBatches)  # or it was refused
        forms = affine_forms(fitted.around(nominal.survey.sample))
        kept = tuple(form for form in forms if isinstance(form, WassersteinForm))
        return cls(fitted, kept, batch_moments(problem.policy, nominal))

    @property
    def nominal(self) -> RowBatches:
        """The rows."""
        assert isinstance(self.problem.nominal, RowBatches)
        return self.problem.nominal

    @cached_property
    def centre(self) -> FloatArray:
        """What is taken from contexts: their mean, or nothing without an intercept."""
        form = self.forms[0]
        return self.moments.mean / form.scale if form.intercept else np.zeros(len(form.scale))

    @cached_property
    def outcome_centres(self) -> tuple[float, ...]:
        """What is taken from the outcomes of each product: their mean in the sample, or nothing."""
        return tuple(
            float(form.weights @ form.outcomes) if form.intercept else 0.0 for form in self.forms
        )

    @cached_property
    def sizes(self) -> FloatArray:
        """The largest absolute value of each centred column, and of the constant."""
        scale = self.forms[0].scale
        ends = [np.abs(end / scale - self.centre) for end in (self.moments.least, self.moments.most)]
        return np.append(np.maximum(*ends), 1.0)

    def centred(self, product: int, theta: FloatArray, intercept: float, width: float) -> Point:
        """Return the point of a policy in the units of a form."""
        form = self.forms[product]
        moved = intercept - ball_shift(form, theta) - self.outcome_centres[product]
        return Point(theta, moved + float(theta @ self.centre), width)

    def policy(self, product: int, point: Point) -> tuple[FloatArray, float]:
        """Return the policy of a point: (theta, intercept) in the units of its form."""
        intercept = point.intercept - float(point.theta @ self.centre)
        form = self.forms[product]
        shifted = intercept + self.outcome_centres[product] + ball_shift(form, point.theta)
        return point.theta, shifted if form.intercept else 0.0

    def rows(self, contexts: FloatArray, outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a batch as (x, 1) and outcomes less offsets, centred, in the units of the forms."""
        policy = self.problem.policy
        features = policy.transform(contexts)
        columns = np.empty((len(features), features.shape[1] + 1))
        np.divide(features, self.forms[0].scale, out=columns[:, :-1])
        columns[:, :-1] -= self.centre
        columns[:, -1] = 1.0
        offsets = policy.offsets(contexts) if isinstance(policy, Linear) else None
        errors = outcomes if offsets is None else outcomes - offsets
        units = np.array([form.outcome_unit for form in self.forms])
        return columns, errors / units - np.array(self.outcome_centres)

    def sums(self, batches: Iterable[Batch], points: Sequence[Sequence[Point]]) -> list[list[RowSums]]:
        """Return means over all rows of the batches, at some points of each product."""
        count, totals = 0, list[list[RowSums]]()
        for batch in batches:
            columns, outcomes = self.rows(*batch)
            own_sums = [
                [batch_sums(form.pieces, columns, outcomes[:, j], point) for point in points[j]]
                for j, form in enumerate(self.forms)
            ]
            count += len(columns)
            if totals:
                own_sums = [
                    [one.plus(other) for one, other in zip(*product, strict=True)]
                    for product in zip(totals, own_sums, strict=True)
                ]
            totals = own_sums
        return [[one.over(count) for one in product] for product in totals]

    @cached_property
    def second_moments(self) -> tuple[FloatArray, FloatArray]:
        """E[a a'] and E[a y] of each product, a = (x, 1) centred, by a pass of their own."""
        size, total = len(self.sizes), 0
        squares, products = np.zeros((size, size)), np.zeros((size, len(self.forms)))
        for batch in self.nominal.batches():
            columns, outcomes = self.rows(*batch)
            squares += columns.T @ columns
            products += columns.T @ outcomes
            total += len(columns)
        return squares / total, products / total

    def upper(self, product: int, point: Point, sums: RowSums) -> float:
        """Return what the worst case of a point's policy is at most, in the units of its form.

        For order 1 it is the worst case, for order 2 the dual at the multiplier that is optimal where
        the intercept is.
        """
        form = self.forms[product]
        return sums.cost + form.radius * form.slope_constant * form.dual_norm(point.theta)

    def multipliers(self, thetas: Sequence[FloatArray]) -> FloatArray:
        """Return the multiplier of each product's upper bound, in the user's units."""
        multipliers = []
        for form, theta in zip(self.forms, thetas, strict=True):
            gamma = form.slope_constant * form.dual_norm(theta) if form.radius > 0.0 else 0.0
            gamma /= 2.0 * form.radius if form.order == 2 and form.radius > 0.0 else 1.0
            multipliers.append(gamma * form.value_unit / form.column_unit**form.order)
        return np.array(multipliers)

    def lower(self, product: int, sums: RowSums) -> float:
        """Return a value that the worst case of no policy can go below, from the slopes of a point.

        Slopes must balance with the columns whose parameters have no penalty: what they lack is taken
        off, u' = (u - c'a) / (1 + e), with e so large that u' stays within [-b, h] in every row.
        """
        form = self.forms[product]
        free = self.unpenalised(form)
        gradient, paid, shrink = sums.gradient, sums.slope_outcome, 0.0
        if free.any():
            with_free, outcomes = self._free_moments(product, free, sums)
            share = _balancing(with_free[free], gradient[free])
            gradient = gradient - with_free @ share
            paid = paid - float(outcomes @ share)
            if (np.abs(gradient[free]) > BALANCED * form.pieces.steepest * self.sizes[free]).any():
                return form.pieces.least
            excess = float(np.abs(share) @ self.sizes[free])
            shrink = excess / min(form.pieces.up, form.pieces.down)
        gradient, paid = gradient / (1.0 + shrink), paid / (1.0 + shrink)
        mean = 0.0 if form.intercept else float(gradient[-1])
        gradient_norm = float(np.linalg.norm(gradient[:-1][~free[:-1]]))
        bound = free_bound(
            form, gradient_norm, -paid, mean, lambda lines, part: lines.at_mean(part * mean)
        )
        return max(form.pieces.least, bound)

    def _free_moments(
        self, product: int, free: BoolArray, sums: RowSums
    ) -> tuple[FloatArray, FloatArray]:
        """Return E[a f'] and E[f y], with f those of a = (x, 1) that have no penalty."""
        if not free[:-1].any():  # the constant alone: means will do, and they need no pass of their own
            return sums.columns[:, None], np.array([sums.outcome])
        columns, outcomes = self.second_moments
        return columns[:, free], outcomes[free, product]

    def unpenalised(self, form: WassersteinForm) -> BoolArray:
        """Return which of (x, 1) have parameters without a penalty."""
        still = ~form.movable if form.radius > 0.0 else np.ones(len(form.movable), dtype=bool)
        return np.append(still, form.intercept)

    def certificate(self, uppers: Sequence[float], lowers: Sequence[float]) -> Certificate:
        """Return what bounds of each product, in the units of their forms, prove together."""
        units = [form.value_unit for form in self.forms]
        upper, lower = (
            float(sum(value * unit for value, unit in zip(values, units, strict=True)))
            for values in (uppers, lowers)
        )
        floor = sum(form.gap_floor * form.value_unit for form in self.forms)
        made = make_certificate(upper, lower, floor, "bound")
        if made.kind != "bound":
            return made
        message = (
            f"Over all {self.nominal.n_rows:,} rows the worst-case expected cost is at most "
            f"{upper:.6g}; no policy of this family has one below {lower:.6g}, so this one is within "
            f"{100 * made.gap:.2g} % of the best."
        )
        return replace(made, message=message)


def ball_shift(form: WassersteinForm, theta: FloatArray) -> float:
    """Return the part (b - h) rho N / (2 sqrt(b h)) of the intercept that order 2 adds."""
    if form.order == 1 or not form.intercept:
        return 0.0
    pieces = form.pieces
    norm = form.radius * form.dual_norm(theta)
    return (pieces.down - pieces.up) * norm / (2.0 * pieces.geometric)


def batch_sums(pieces: Pieces, columns: FloatArray, outcomes: FloatArray, point: Point) -> RowSums:
    """Return sums over the rows of a batch, columns (x, 1) and outcomes of one product."""
    rounded = replace(pieces, smoothing=point.width)
    residuals = columns @ np.append(point.theta, point.intercept) - outcomes
    near = np.abs(residuals) < point.width
    inside = residuals[near]
    slopes = np.where(residuals >= 0.0, pieces.up, -pieces.down)
    steepness = (pieces.up + pieces.down) / (2.0 * point.width)
    slopes[near] = 0.5 * (pieces.up - pieces.down) + steepness * inside
    costs = pieces.evaluate(residuals)
    cost = float(costs.sum())
    costs[near] = rounded.evaluate(inside)
    kinked = columns[near]
    return RowSums(
        cost=cost,
        rounded_cost=float(costs.sum()),
        slope_outcome=float(slopes @ outcomes),
        gradient=columns.T @ slopes,
        curvature=steepness * (kinked.T @ kinked),
        columns=columns.sum(axis=0),
        outcome=float(outcomes.sum()),
    )


def _balancing(squares: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return c with E[a a'] c = E[u a], for columns of any size that may depend on each other."""
    sizes = np.sqrt(np.maximum(np.diag(squares), np.finfo(np.float64).tiny))
    scaled = squares / np.outer(sizes, sizes)
    return (
        np.asarray(np.linalg.pinv(scaled, rcond=RANK_SHARE, hermitian=True) @ (gradient / sizes))
        / sizes
    )
