"""The worst case of an affine policy whose decisions are cut to limits, in the units of a form.

The cost of a moved sample is psi(clip(theta'x' + t, low, high) - y). Beyond a limit a move gains no
more, so on the line of slope w the best move goes as far as it would without limits, or to the limit:

    order 2, free support:  z' = clip(z + w m^2 / (2 gamma), low, high),  at (z' - z)^2 / m^2
    order 1, free support:  z' = the limit ahead if |w| m > gamma,        at |z' - z| / m

and staying is better where a decision that was cut would first have to come back. The dual in the
multiplier is convex as ever, so its least value is the worst case.
"""

from typing import NamedTuple

import numpy as np

from surefoot.ambiguity import Adversary, AffineForm, WassersteinForm
from surefoot.ambiguity.moves import Moves
from surefoot.ambiguity.worst_case import (
    ABOVE,
    CROSSING_SHARE,
    Around,
    MovedMass,
    Tangent,
    gathered,
    search_multiplier,
    tangent,
)
from surefoot.sets import DecisionSet
from surefoot.typing import FloatArray


class Cut(NamedTuple):
    """A form whose decisions are cut, and a policy of it.

    ``lower`` and ``upper`` have one entry for each row: limits of theta'x + t, which differ by row
    where the policy has an offset.
    """

    form: WassersteinForm
    theta: FloatArray
    intercept: float
    lower: FloatArray
    upper: FloatArray

    @property
    def norm(self) -> float:
        """How far a decision moves for each unit of transport."""
        return self.form.dual_norm(self.theta)

    @property
    def still(self) -> bool:
        """Whether no move changes a decision."""
        return self.form.radius == 0.0 or self.norm == 0.0

    @property
    def decided(self) -> FloatArray:
        """Decisions before they are cut."""
        return np.asarray(self.form.contexts @ self.theta + self.intercept)

    def moves(self, gamma: float) -> Moves:
        """Return the adversary's best answer of every row at a multiplier."""
        form, decided, norm = self.form, self.decided, self.norm
        inside = np.clip(decided, self.lower, self.upper)
        value, aim = form.pieces.evaluate(inside - form.outcomes), decided
        for slope in form.pieces.slopes:
            if form.order == 2:
                there = np.clip(decided + slope * norm**2 / (2.0 * gamma), self.lower, self.upper)
            elif abs(slope) * norm > gamma:
                there = self.upper if slope > 0.0 else self.lower
            else:
                continue
            with np.errstate(invalid="ignore"):  # an infinite move costs and gains infinitely
                gain = slope * (there - form.outcomes)
                gain = gain - gamma * (np.abs(there - decided) / norm) ** form.order
            gain = np.where(np.isnan(gain), np.inf, gain)
            value, aim = np.where(gain > value, [gain, there], [value, aim])
        shift, nothing = aim - decided, np.zeros_like(decided)
        way = np.where(form.movable, self.theta, 0.0) / norm**2
        with np.errstate(invalid="ignore"):
            contexts = np.outer(shift, way)
        return Moves(value, nothing, (np.abs(shift) / norm) ** form.order, contexts, nothing)

    def around(self) -> Around:
        """Return multipliers around the best one, and the worst case."""
        form = self.form

        def at(gamma: float) -> Tangent:
            moves = self.moves(gamma)
            return tangent(form, gamma, moves.value, moves.distance)

        top = ABOVE * form.pieces.steepest * self.norm
        if form.order == 2:
            return search_multiplier(at, form.budget, top / (2.0 * form.radius), 0.0)
        return search_multiplier(at, form.budget, top, ABOVE * abs(self.open_slope) * self.norm)

    @property
    def open_slope(self) -> float:
        """The steeper slope on whose side there is no limit, zero if there is one on both."""
        sides = zip(self.form.pieces.slopes, (self.lower, self.upper), strict=True)
        return max((slope for slope, end in sides if np.isinf(end).any()), key=abs, default=0.0)

    def far(self, moves: Moves, value: float) -> list[MovedMass]:
        """Order 1, an open side: spend what moves leave of the budget on mass that goes far.

        A row on the open line gains by all of its way. Without one, a little mass of the row that is
        nearest to that line crosses over: what the crossing loses falls with the mass.
        """
        form, slope = self.form, self.open_slope
        shift = moves.contexts @ self.theta
        line = slope * (self.decided + shift - form.outcomes)
        inside = np.clip(self.decided + shift, self.lower, self.upper)
        lost = form.pieces.evaluate(inside - form.outcomes) - line
        lost = np.where(form.weights > 0.0, lost, np.inf)
        weights = np.where(lost <= 1e-12 * (np.abs(line) + 1.0), form.weights, 0.0)
        if not weights.any():
            nearest = int(np.argmin(lost))
            weights[nearest] = min(form.weights[nearest], CROSSING_SHARE * abs(value) / lost[nearest])
        # A hair less than is left: what is spent is summed in another order afterwards.
        left = max((1.0 - 1e-9) * form.budget - float(form.weights @ moves.distance), 0.0)
        shift = shift + np.sign(slope) * self.norm * left / weights.sum()
        contexts = np.outer(shift, np.where(form.movable, self.theta, 0.0) / self.norm**2)
        gone = moves._replace(contexts=contexts, distance=np.abs(shift) / self.norm)
        return [MovedMass(form.weights - weights, moves), MovedMass(weights, gone)]


def cut_form(
    form: AffineForm,
    policy: tuple[FloatArray, float],
    limits: DecisionSet | None,
    product: int,
    count: int,
) -> Cut | None:
    """Return a product with its limits where its worst case is known exactly, else None.

    In a support that stops the adversary it is known where no move changes a decision.
    """
    if limits is None or not isinstance(form, WassersteinForm) or not form.limited:
        return None
    ends = [limits.map_into(np.full((1, count), end))[0, product] for end in (-np.inf, np.inf)]
    low, high = (end / form.outcome_unit - form.offsets for end in ends)
    cut = Cut(form, *policy, low, high)
    return cut if cut.still or not form.boxed else None


def cut_value(cut: Cut) -> tuple[float, float]:
    """Return the worst case before what no decision avoids, and the multiplier that attains it."""
    inside = np.clip(cut.decided, cut.lower, cut.upper)
    nominal = cut.form.mean_cost(inside - cut.form.outcomes)
    if cut.still:
        return nominal, 0.0
    found = cut.around()
    return max(found.value, nominal), found.best


def cut_adversary(cut: Cut) -> Adversary:
    """Return the worst distribution; its ``expected_cost`` is that of decisions before they are cut."""
    form, worst = cut.form, cut_value(cut)

    def cost(contexts: FloatArray, outcomes: FloatArray) -> FloatArray:
        return form.pieces.evaluate(contexts @ cut.theta + cut.intercept - outcomes)

    if cut.still:
        nothing = np.zeros_like(form.outcomes)
        stays = Moves(nothing, nothing, nothing, np.zeros_like(form.contexts), nothing)
        return gathered(form, [MovedMass(form.weights, stays)], worst, cost)
    found = cut.around()
    below, above = (cut.moves(gamma) for gamma in (found.low, found.high))
    if not np.isfinite(below.distance).all():
        return gathered(form, cut.far(above, worst[0]), worst, cost)
    spent = [float(form.weights @ moves.distance) for moves in (below, above)]
    # The share that moves far is computed by itself: as what is left of one it would lose its digits.
    share = 1.0
    if spent[0] > form.budget:
        share = max(form.budget - spent[1], 0.0) / max(spent[0] - spent[1], spent[0] - form.budget)
    parts = [MovedMass(share * form.weights, below), MovedMass((1.0 - share) * form.weights, above)]
    return gathered(form, [part for part in parts if part.weights.any()], worst, cost)
