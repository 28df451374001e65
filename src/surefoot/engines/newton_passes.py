"""Newton's method over rows that do not fit into memory: a pass over all of them for each step.

The kink of the cost is rounded within a small width. The rounded problem has a gradient and a second
derivative, which are sums over rows, and where it is solved its slopes balance by themselves: they
prove a bound that falls short of the best by what the rounding hides, which shrinks with the square of
the width. A start from a sample leaves a few steps to take.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.certificates import Certificate
from surefoot.certificates.passes import Point, RowPasses, RowSums, ball_shift
from surefoot.typing import FloatArray

# Most passes over all rows, and most rounds of all that costs no pass.
MOST_PASSES, MOST_ROUNDS = 30, 60
# Where rows of the sample share residuals, the way to a narrow width leads through wider ones: from so
# many spreads of the outcome down by this factor.
WIDEST, WIDTH_STEP = 0.5, 0.3
# What rounding the kink, and the norm at zero, may hide of the gap that is asked for.
ROUNDING_SHARE, NORM_SHARE = 0.15, 0.05
# Rounding that turns out to hide more than this share is narrowed, by the factor below.
NARROW_SHARE, NARROWER = 0.3, 0.6
# The first width is looked for by so many factors at most; none is narrower, in spreads of the outcome.
FACTOR, MOST_FACTORS, NARROWEST = 0.8, 120, 1e-9
# A step that led up is cut to a share between these two.
SHORTEST, LONGEST = 0.1, 0.8
# A step that promises so small a share of the cost changes nothing any more.
SETTLED = 1e-13
# A step in the model must gain this share of what its slope promises, and ends below this length; the
# model is solved to this share of its value.
ARMIJO, SMALLEST_SHARE, MODEL_TOL = 1e-4, 1e-12, 1e-15
# The second derivative gets this share of that of a cost whose kink is as wide as outcomes are, for
# places where no row is near its kink; and a bit of the identity, for columns that depend on others.
RIDGE, TINY_SHARE = 1e-5, 1e-9
# A step moves decisions by at most so many times the length of residuals, and after one that had to be
# cut by so many times the length of what was left of it.
MOST_LENGTHS, LONGER = 2.0, 4.0


class NormTerm(NamedTuple):
    """The weighted norm of theta: its value, its gradient and its second derivative, in all columns."""

    value: float
    gradient: FloatArray
    curvature: FloatArray


def norm_term(form: WassersteinForm, theta: FloatArray, rounding: float) -> NormTerm:
    """Return rho C N(theta), rounded where the norm has a kink: at zero, or where it meets 1/kappa."""
    moving = np.where(form.movable, theta, 0.0)
    length, unit = float(np.linalg.norm(moving)), form.radius * form.slope_constant
    if form.order == 1 and form.inverse_kappa > 0.0:
        over = length - form.inverse_kappa
        share = min(max(over / rounding, 0.0), 1.0)
        norm = form.inverse_kappa + share * over - 0.5 * share**2 * rounding
        bend = 1.0 / rounding if 0.0 < share < 1.0 else 0.0
        ratio = share / length if length > 0.0 else 0.0
    else:
        inverse_kappa = form.inverse_kappa if form.order == 2 else 0.0
        norm = math.sqrt(length**2 + inverse_kappa + rounding**2)
        ratio = 1.0 / norm
        bend = ratio - length**2 / norm**3
    way = moving / length if length > 0.0 else moving
    across = np.diag(form.movable.astype(np.float64)) - np.outer(way, way)
    return NormTerm(
        unit * norm, unit * ratio * moving, unit * (bend * np.outer(way, way) + ratio * across)
    )


def rounding_width(form: WassersteinForm, residuals: FloatArray, most: float) -> float:
    """Return a half-width of the kink that hides no more than ``most`` of the mean cost.

    A row within the width hides psi(r) - u r <= (b + h) width / 8, wherever in it steps may move it:
    many rows can share one residual.
    """
    sizes = np.abs(residuals)
    height = (form.pieces.up + form.pieces.down) / 8.0
    width = max(float(sizes.max()), NARROWEST)
    for _ in range(MOST_FACTORS):
        if height * width * float(form.weights @ (sizes < width)) <= most:
            break
        width *= FACTOR
    return max(width, NARROWEST)


def solved(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return a solution of linear equations; the shortest where rows are fewer than columns."""
    try:
        return np.asarray(np.linalg.solve(matrix, vector))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, vector, rcond=None)[0])


@dataclass
class Descent:
    """One product on its way down: where it stands, and the best that was seen.

    Attributes
    ----------
    point
        Where sums are wanted next.
    upper, lower
        The best bounds so far, in the units of the form.
    best
        The point with the best upper bound.
    moments
        E[a a'] of the sample, with a = (x, 1): how far a change of the policy moves decisions.
    """

    passes: RowPasses
    product: int
    point: Point
    rounding: float
    gap_tol: float
    moments: FloatArray
    upper: float = math.inf
    lower: float = -math.inf
    best: Point | None = None

    def __post_init__(self) -> None:
        """Nothing has been seen yet."""
        self.form = self.passes.forms[self.product]
        self._from, self._value, self._share = self.point, math.inf, 1.0
        self._way, self._fall, self.settled = np.zeros(len(self.point.theta) + 1), 0.0, False
        self._trust_radius = math.inf

    def bound(self, point: Point, sums: RowSums) -> float:
        """Take the bounds that sums over all rows at a point prove; return the upper one."""
        upper = self.passes.upper(self.product, point, sums)
        if upper < self.upper:
            self.upper, self.best = upper, point
        self.lower = max(self.lower, self.passes.lower(self.product, sums))
        return upper

    def step(self, sums: RowSums) -> None:
        """Move on from sums at the point."""
        term = norm_term(self.form, self.point.theta, self.rounding)
        value = sums.rounded_cost + term.value
        gradient = sums.gradient + np.append(term.gradient, 0.0)
        if value > self._value:
            self._go_back(gradient)
            return
        if self._hidden(sums) > NARROW_SHARE * self.gap_tol * abs(sums.cost + term.value):
            self._narrow()
        else:
            self._value = value
        if self._share < 1.0:  # the step had to be cut
            self._trust_radius = max(self._share * self._length(self._way), NARROWEST)
        self._trust_radius *= LONGER
        self._from, self._share = self.point, 1.0
        self._way = self._within_trust_region(self._best_way(sums), sums)
        self._fall = float(gradient @ self._way)
        self.settled = abs(self._fall) <= SETTLED * abs(value)
        self.point = self._ahead()

    def _hidden(self, sums: RowSums) -> float:
        """Return E[psi(r) - u r]: what slopes of the rounded cost fall short of the cost."""
        theta, intercept, _ = self.point
        return sums.cost + sums.slope_outcome - float(sums.gradient @ np.append(theta, intercept))

    def _go_back(self, gradient: FloatArray) -> None:
        """Shorten a step that led up, to where the slope along it would be zero."""
        rise = float(gradient @ self._way)
        share = self._fall / (self._fall - rise) if rise > self._fall else 1.0
        self._share *= min(max(share, SHORTEST), LONGEST)
        self.point = self._ahead()

    def _within_trust_region(self, way: FloatArray, sums: RowSums) -> FloatArray:
        """Cut a step that would move decisions by far more than residuals or the last one are long."""
        length = self._length(way)
        most = min(
            MOST_LENGTHS * sums.cost / min(self.form.pieces.up, self.form.pieces.down),
            self._trust_radius,
        )
        return way * (most / length) if length > most > 0.0 else way

    def _length(self, way: FloatArray) -> float:
        """Return how far a change of the policy moves decisions: the root of the mean square."""
        return math.sqrt(max(float(way @ self.moments @ way), 0.0))

    def _best_way(self, sums: RowSums) -> FloatArray:
        """Return the way to the least of the rounded cost's parabola plus the norm term.

        The norm needs no pass, so it is not replaced by a parabola of its own: its kinks are sharp.
        """
        ridge = self.moments + TINY_SHARE * np.eye(len(sums.gradient))
        curvature = sums.curvature + RIDGE * (self.form.pieces.up + self.form.pieces.down) * ridge
        free = np.append(np.ones(len(self.point.theta), dtype=bool), self.form.intercept)

        def model(way: FloatArray) -> tuple[float, NormTerm]:
            term = norm_term(self.form, self.point.theta + way[:-1], self.rounding)
            return float(sums.gradient @ way + 0.5 * way @ curvature @ way) + term.value, term

        way = np.zeros(len(sums.gradient))
        value, term = model(way)
        for _ in range(MOST_ROUNDS):
            gradient = sums.gradient + curvature @ way + np.append(term.gradient, 0.0)
            bend = curvature.copy()
            bend[:-1, :-1] += term.curvature
            change = np.zeros_like(way)
            change[free] = -solved(bend[np.ix_(free, free)], gradient[free])
            fall = float(gradient @ change)
            share = 1.0
            while share > SMALLEST_SHARE:
                tried, at = model(way + share * change)
                if tried <= value + ARMIJO * share * fall:
                    break
                share *= 0.5
            if not share > SMALLEST_SHARE or -fall <= MODEL_TOL * abs(value):
                break
            way, value, term = way + share * change, tried, at
        return way

    def _narrow(self) -> None:
        """Round less; the value is another one then, with which the next look is not compared."""
        self._value = math.inf
        self.point = self.point._replace(width=NARROWER * self.point.width)

    def _ahead(self) -> Point:
        theta, intercept, width = self._from
        return Point(
            theta + self._share * self._way[:-1], intercept + self._share * float(self._way[-1]), width
        )


@dataclass
class NewtonPasses:
    """All products of a problem on their way down, a pass over all rows for each step.

    Attributes
    ----------
    passes
        The problem and its rows.
    gap_tol
        The gap at which to stop, of all products together.
    taken
        How many passes were taken.
    """

    passes: RowPasses
    descents: list[Descent]
    gap_tol: float
    taken: int = 0

    @classmethod
    def start(
        cls, passes: RowPasses, policies: Sequence[tuple[FloatArray, float]], gap_tol: float
    ) -> "NewtonPasses":
        """Begin at policies in the units of the forms, and go on to the best of the sample."""
        sample = passes.nominal.survey.sample
        columns, _ = passes.rows(sample.contexts, sample.outcomes)
        moments = columns.T @ columns / len(columns)
        descents = []
        for j, (form, (theta, _)) in enumerate(zip(passes.forms, policies, strict=True)):
            # Less the shift of the ball, the best intercept is a quantile, whatever the run's was.
            errors = form.outcomes - form.contexts @ theta
            intercept = form.pieces.best_constant(errors, form.weights) if form.intercept else 0.0
            unit = form.radius * form.slope_constant
            value = form.mean_cost(intercept - errors) + unit * form.dual_norm(theta)
            asked = gap_tol * max(value, form.gap_floor)
            width = rounding_width(form, intercept - errors, ROUNDING_SHARE * asked)
            rounding = NORM_SHARE * asked / max(unit, np.finfo(np.float64).tiny)
            rounding = min(max(rounding, NARROWEST), 1.0)
            point = passes.centred(j, theta, intercept + ball_shift(form, theta), width)
            descents.append(Descent(passes, j, point, rounding, gap_tol, moments))
        run = cls(passes, descents, gap_tol)
        run._settle()
        return run

    def _settle(self) -> None:
        """Go to the best rounded policies of the sample, which cost no pass, from wide to narrow."""
        sample = self.passes.nominal.survey.sample
        held = [(sample.contexts, sample.outcomes)]
        for j, aim in enumerate(self.descents):
            point, width = aim.point, max(aim.point.width, WIDEST)
            while True:
                width = max(WIDTH_STEP * width, aim.point.width)
                descent = replace(aim, point=point._replace(width=width))
                for _ in range(MOST_ROUNDS):
                    points = [[descent.point] if k == j else [] for k in range(len(self.descents))]
                    descent.step(self.passes.sums(held, points)[j][0])
                    if descent.settled:
                        break
                point = descent.point
                if width <= aim.point.width:
                    break
            self.descents[j] = replace(aim, point=point)

    @property
    def gap(self) -> float:
        """The certified gap of the best policies so far."""
        return self.certificate().gap

    def certificate(self) -> Certificate:
        """Return what is proved over all rows of the best policies so far."""
        return self.passes.certificate([descent.upper for descent in self.descents], self.lowers)

    @property
    def lowers(self) -> list[float]:
        """The best lower bound of each product."""
        return [descent.lower for descent in self.descents]

    def policies(self) -> list[tuple[FloatArray, float]]:
        """Return the best policies in the units of their forms."""
        return [
            self.passes.policy(descent.product, descent.point if descent.best is None else descent.best)
            for descent in self.descents
        ]

    def take_pass(self, beside: Sequence[tuple[FloatArray, float]] = ()) -> list[float]:
        """Bound where all products stand by a pass over all rows, and step.

        Policies beside, one for each product in the units of its form, are looked at in the same pass;
        their upper bounds are returned, and the best of all is kept.
        """
        points = [[descent.point] for descent in self.descents]
        for j, (theta, intercept) in enumerate(beside):
            points[j].append(self.passes.centred(j, theta, intercept, points[j][0].width))
        sums = self.passes.sums(self.passes.nominal.batches(), points)
        self.taken += 1
        uppers = []
        for descent, mine, own_sums in zip(self.descents, points, sums, strict=True):
            for point, one in zip(mine[1:], own_sums[1:], strict=True):
                uppers.append(descent.bound(point, one))
            descent.bound(mine[0], own_sums[0])
            descent.step(own_sums[0])
        return uppers
