"""A lower bound on the best worst case, from slopes alone.

Slopes u_i between the steepest two describe an adversary: row i sits on two neighbouring lines of the
cost with probabilities that make u_i its mean slope. If the adversary can move mass so that no policy
gains to first order, that is E[w x'] = 0 with w the line's slope, then no policy costs less than
E[v] - E[w y']. Making the given slopes feasible and paying for the moves out of the budget is all that
happens here, so the bound is valid for any slopes handed in.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from surefoot.ambiguity.balance import HALVINGS, balanced, balanced_value
from surefoot.ambiguity.plan import Plan, plan_bound
from surefoot.ambiguity.transport import TransportForm
from surefoot.costs import Pieces
from surefoot.typing import FloatArray

# Halvings of the share that can be paid for.
SHARE_HALVINGS = 22
# Reweightings that turn the separable order-2 plan into the order-1 plan.
REWEIGHTINGS = 30
# ...which end early once one of them gains less than this share.
STALLED = 1e-6
# Below this share of the largest radius no move is worth paying for: slopes balance exactly instead.
NEGLIGIBLE_SHARE = 1e-6
# Below this one, balancing is tried beside shrinking; it costs a factorisation of the contexts.
SMALL_SHARE = 0.003
# Golden sections leave 0.618 of an interval each: so many find a maximum to nine digits, or to four.
SECTIONS, FEW_SECTIONS = 44, 20
# Tangents of a rounded kink: so many leave a sixteen thousandth of what rounding adds to the cost at
# most. In a box every row has an atom on each of them, so there are fewer; and reweighting, in a box of
# order 1, does worse with many atoms.
TANGENTS, BOX_TANGENTS = 129, {1: 9, 2: 25}
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


class Lines(NamedTuple):
    """Some lines of a cost, the first and the last among them."""

    slopes: FloatArray
    intercepts: FloatArray

    def means(
        self, form: TransportForm, slopes: FloatArray, mean: float, share: float
    ) -> tuple[float, float]:
        """Return E[v] and E[w^2] of the two lines around each of the slopes times a share.

        ``mean`` is that of the slopes.
        """
        if len(self.slopes) == 2:  # both are straight lines in the slope, so its mean will do
            return self.at_mean(share * mean)
        gain, square = (
            float(form.weights @ np.interp(share * slopes, self.slopes, table))
            for table in (self.intercepts, self.slopes**2)
        )
        return gain, square

    def at_mean(self, mean: float) -> tuple[float, float]:
        """Return E[v] and E[w^2] of two lines, from the mean slope alone."""
        (low, high), (first, last) = self.slopes.tolist(), self.intercepts.tolist()
        step = (mean - low) / (high - low)
        return first + step * (last - first), low * low + step * (high * high - low * low)


def line_sets(pieces: Pieces, tangents: int) -> list[Lines]:
    """Return the lines that can matter together: all, then ever fewer of those in the middle.

    A move along the gradient gains with the square of the slope, so as moves grow longer the lines
    in the middle drop out one by one; with the outermost two alone the bound is that of long moves.
    A rounded kink has so many ``tangents`` for lines, which all drop out at once.
    """
    slopes, intercepts = np.array(pieces.slopes), np.array(pieces.intercepts)
    sets = [Lines(slopes, intercepts)]
    if pieces.smoothing > 0.0:
        touching = np.linspace(slopes[0], slopes[-1], tangents)
        return [Lines(touching, pieces.levels_at(touching)), *sets]
    while len(slopes) > 2:
        squares = slopes**2
        # Middle line k drops where w_k^2 q + v_k meets the chord between its neighbours.
        share = (slopes[1:-1] - slopes[:-2]) / (slopes[2:] - slopes[:-2])
        above = intercepts[1:-1] - (1.0 - share) * intercepts[:-2] - share * intercepts[2:]
        rise = (1.0 - share) * squares[:-2] + share * squares[2:] - squares[1:-1]
        dropped = 1 + int(np.argmin(above / rise))
        slopes, intercepts = np.delete(slopes, dropped), np.delete(intercepts, dropped)
        sets.append(Lines(slopes, intercepts))
    return sets


def lower_bound(form: TransportForm, slopes: FloatArray | Plan) -> float:
    """Return a value that the worst case of no policy can go below, from slopes or a whole plan."""
    if isinstance(slopes, Plan):
        return max(form.pieces.least, plan_bound(form, slopes))
    return max(form.pieces.least, _slopes_bound(form, slopes))  # the least needs no slope


def unpenalised(form: TransportForm) -> FloatArray:
    """Return the columns whose parameters have no penalty: frozen ones, or all without a radius."""
    return form.contexts if _radius_share(form) <= NEGLIGIBLE_SHARE else form.contexts[:, ~form.movable]


def _radius_share(form: TransportForm) -> float:
    return form.radius / max(form.largest_radius, np.finfo(np.float64).tiny)


def _slopes_bound(form: TransportForm, slopes: FloatArray) -> float:
    """Return what slopes prove once they balance with the columns that have no penalty."""
    inside = balanced(form, np.clip(slopes, -form.pieces.down, form.pieces.up), unpenalised(form))
    share = _radius_share(form)
    if share <= NEGLIGIBLE_SHARE:
        return balanced_value(form, inside)
    if form.boxed:
        sets = line_sets(form.pieces, BOX_TANGENTS[form.order])
        return max(_boxed_bound(form, inside, one) for one in sets)
    bound = _free_bound(form, inside)
    if share > SMALL_SHARE:
        return bound
    return max(bound, _free_bound(form, _nearly_balanced(form, inside)))


def _gradient_norm(form: TransportForm, slopes: FloatArray) -> float:
    """||X'u|| over movable columns, what making the slopes feasible costs."""
    weighted = form.weights * slopes
    gradient = form.contexts.T @ weighted
    # Sums that cancel leave rounding behind, for which nothing has to be paid.
    rounding = 1e-15 * form.column_sizes * float(np.abs(weighted).sum())
    owed = form.movable & (np.abs(gradient) > rounding)
    return float(np.linalg.norm(gradient[owed]))


def _nearly_balanced(form: TransportForm, slopes: FloatArray) -> FloatArray:
    """Move slopes towards balance with all columns until a small budget pays for what is left.

    Shrinking them towards zero would pay too, but at a small radius it throws away nearly all.
    """
    still = balanced(form, slopes, form.contexts)
    budget = form.radius * form.slope_constant
    share = min(1.0, budget / max(_gradient_norm(form, slopes), np.finfo(np.float64).tiny))
    return np.asarray(still + share * (slopes - still))


def _free_bound(form: TransportForm, slopes: FloatArray) -> float:
    """Return what slopes prove in a free support."""
    gradient_norm, paid = _gradient_norm(form, slopes), -float((form.weights * slopes) @ form.outcomes)
    mean = float(form.weights @ slopes)
    return free_bound(
        form, gradient_norm, paid, mean, lambda lines, share: lines.means(form, slopes, mean, share)
    )


def free_bound(
    form: TransportForm,
    gradient_norm: float,
    paid: float,
    mean: float,
    means: Callable[[Lines, float], tuple[float, float]],
) -> float:
    """Free support: the moves cost ||X'u||, to be paid from rho G or rho sqrt(E w^2).

    Parameters
    ----------
    form
        The ball and the cost; its rows are not asked.
    gradient_norm, paid, mean
        ||X'u|| over movable columns, -E[u y] and E[u].
    means
        E[v] and E[w^2] of some lines around a share of the slopes.
    """
    most = _most_affordable(form, gradient_norm, mean)
    if form.inverse_kappa == 0.0 and _straight(form):
        return most * paid
    sets = line_sets(form.pieces, TANGENTS)[: None if form.order == 2 else 1]

    def gain(share: float) -> float:
        """Spend on the outcomes what the contexts leave over."""
        moments = [means(lines, share) for lines in sets]
        if form.order == 1:
            left = form.radius * form.pieces.steepest - share * gradient_norm
            return moments[0][0] + share * paid + max(left, 0.0) * form.inverse_kappa
        return share * paid + _best_mixture(form, moments, (share * gradient_norm) ** 2)

    return _best(gain, most, SECTIONS)


def _most_affordable(form: TransportForm, gradient_norm: float, mean: float) -> float:
    """Return the largest share of slopes with a gradient norm and a mean that a free ball pays for.

    It pays most where rows sit on the outermost two lines, which have E[w^2] = b h + (h - b) E[u]; of
    order 2 the share is then the root of a quadratic.
    """
    up, down = form.pieces.up, form.pieces.down
    flat, tilt = (form.pieces.steepest**2, 0.0) if form.order == 1 else (up * down, (up - down) * mean)
    if not gradient_norm > form.radius * math.sqrt(max(0.0, flat + tilt)):
        return 1.0
    square = (form.radius / gradient_norm) ** 2
    half = 0.5 * square * tilt
    root = math.sqrt(half**2 + square * flat)
    # Of two ways to write the root, the one without a difference.
    return min(half + root if half >= 0.0 else square * flat / (root - half), 1.0)


def _straight(form: TransportForm) -> bool:
    """Whether all slopes have lines of one level, so that the largest share is always the best."""
    return form.pieces.two and form.pieces.smoothing == 0.0


def _best_mixture(form: TransportForm, means: list[tuple[float, float]], owed: float) -> float:
    """Return the best of E[v] + sqrt((rho^2 E[w^2] - owed) / kappa) over mixtures of neighbouring sets.

    Fewer lines have a larger E[w^2], which pays for more, and a smaller E[v].
    """
    budget, best = form.radius**2, -math.inf
    for (gain, square), (next_gain, next_square) in itertools.pairwise([*means, means[-1]]):
        left, rise, fall = budget * square - owed, budget * (next_square - square), gain - next_gain
        shares = [0.0, 1.0]
        if rise > 0.0:
            # The least share that pays; and, if outcomes move, the one at which another does not pay.
            shares.append(-left / rise)
            if fall > 0.0:
                shares.append((form.inverse_kappa * (0.5 * rise / fall) ** 2 - left) / rise)
        for share in np.clip(shares, 0.0, 1.0).tolist():
            over = left + share * rise
            if over >= -1e-12 * owed:
                best = max(best, gain - share * fall + math.sqrt(max(over, 0.0) * form.inverse_kappa))
    return best


def _best(gain: Callable[[float], float], most: float, sections: int) -> float:
    """Return the largest gain over shares up to the most that can be paid for; gains are concave."""
    low, high = 0.0, most
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = gain(left), gain(right)
    best = max(gain(most), at_left, at_right)
    for _ in range(sections):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = gain(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = gain(right)
        best = max(best, at_left, at_right)
    return best


def _boxed_bound(form: TransportForm, slopes: FloatArray, lines: Lines) -> float:
    """Box support: build the plan of moves column by column and keep the share it can pay for."""
    mean, paid = float(form.weights @ slopes), -float((form.weights * slopes) @ form.outcomes)
    moving = form.inverse_kappa > 0.0

    def gain(share: float) -> float:
        left = form.budget - _plan_cost(form, share * slopes, lines)
        if left < 0.0:  # reweighting can find a dearer plan for a smaller share
            return -math.inf
        earned = lines.means(form, slopes, mean, share)[0] + share * paid
        return earned + _outcome_gain(form, share * slopes, left, lines) if moving else earned

    most = _largest_share(lambda share: _plan_cost(form, share * slopes, lines) <= form.budget)
    return _best(gain, most, FEW_SECTIONS) if moving or not _straight(form) else gain(most)


def _atoms(form: TransportForm, slopes: FloatArray, lines: Lines) -> list[tuple[float, FloatArray]]:
    """Return the mass that sits on each line, row by row."""
    above = np.clip(np.searchsorted(lines.slopes, slopes, side="right"), 1, len(lines.slopes) - 1)
    low, high = lines.slopes[above - 1], lines.slopes[above]
    share = (slopes - low) / (high - low)
    return [
        (float(w), form.weights * ((above == k) * share + (above == k + 1) * (1.0 - share)))
        for k, w in enumerate(lines.slopes)
    ][::-1]  # fmt: skip


def _outcome_gain(form: TransportForm, slopes: FloatArray, budget: float, lines: Lines) -> float:
    """What moving outcomes against the slopes, inside their bounds, earns for a budget.

    Order 2 moves every outcome in proportion to its slope; order 1 spends on the steeper line
    first, because there a unit of transport earns most.
    """
    low, high = form.outcome_lower - form.outcomes, form.outcome_upper - form.outcomes
    atoms = _atoms(form, slopes, lines)
    groups = [atoms] if form.order == 2 else [[a] for a in sorted(atoms, key=lambda a: -abs(a[0]))]
    gain = 0.0
    for group in groups:
        earned, spent = _spend(form, group, low, high, budget)
        gain, budget = gain + earned, budget - spent
    return gain


def _spend(
    form: TransportForm,
    atoms: list[tuple[float, FloatArray]],
    low: FloatArray,
    high: FloatArray,
    budget: float,
) -> tuple[float, float]:
    """Move the outcomes of these atoms at one pace until the budget is spent: (earned, spent)."""

    def at(pace: float) -> tuple[float, float]:
        moves = [(w, mass, np.clip(-w * pace, low, high)) for w, mass in atoms]
        earned = sum(-w * float(mass @ dy) for w, mass, dy in moves)
        distance = sum(float(mass @ np.abs(dy) ** form.order) for _, mass, dy in moves)
        return earned, form.outcome_cost * distance

    most = 1.0
    for _ in range(HALVINGS):
        if at(most)[1] > budget:
            break
        most *= 4.0
    return at(most * _largest_share(lambda share: at(share * most)[1] <= budget))


def _largest_share(affordable: Callable[[float], bool]) -> float:
    """Largest share in [0, 1] that is affordable; 0 always is."""
    if affordable(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(SHARE_HALVINGS):
        share = 0.5 * (low + high)
        low, high = (share, high) if affordable(share) else (low, share)
    return low


def _plan_cost(form: TransportForm, slopes: FloatArray, lines: Lines) -> float:
    """Transport cost of a plan inside the box that makes E[w x'] vanish; infinite if none is found.

    With moves c_i w d_j clipped to the box, each column is one monotone equation in d_j. Equal c_i
    make the plan optimal for order 2; for order 1 they are reweighted by the length of each move.
    """
    columns = form.movable
    X = form.contexts[:, columns]
    target = -(form.weights * slopes) @ X
    if not target.any():
        return 0.0
    # The atoms of every row, one for each line, stacked: slope w, probability, room for the move.
    atoms = _atoms(form, slopes, lines)
    w = np.concatenate([np.full(len(X), slope) for slope, _ in atoms])[:, None]
    mass = np.concatenate([mass for _, mass in atoms])
    low, high = (np.tile(bound[columns] - X, (len(atoms), 1)) for bound in (form.lower, form.upper))
    lengths = np.ones(len(mass))
    best = math.inf
    for _ in range(1 if form.order == 2 else REWEIGHTINGS):
        moves = _solve_columns(w * lengths[:, None], w, mass, low, high, target)
        if moves is None:
            return best
        squared = (moves**2).sum(axis=1)
        if form.order == 2:
            return float(mass @ squared)
        norms = np.sqrt(squared)
        before, best = best, min(best, float(mass @ norms))
        if best >= before * (1.0 - STALLED):
            return best
        lengths = norms + 1e-9 * max(float(norms.max()), 1e-300)
    return best


def _solve_columns(
    pace: FloatArray, w: FloatArray, mass: FloatArray, low: FloatArray, high: FloatArray,
    target: FloatArray,
) -> FloatArray | None:  # fmt: skip
    """Find d with sum of mass w clip(pace d, low, high) = target, column by column.

    Pace and w have one sign, so the left side grows with d: every atom moves until the box stops it
    at d = room / pace. Sorted by these stops the left side is known at each of them, and d lies on
    the segment on which it passes the target. None if the box stops all atoms before that.
    """
    sign, need = np.sign(target), np.abs(target)
    room = np.where(pace * sign > 0, high, -low)
    with np.errstate(divide="ignore", invalid="ignore"):  # a line without slope never moves
        stops = np.where(pace == 0.0, np.inf, room / np.abs(pace))
    push = (mass * np.abs(w[:, 0]))[:, None]
    order = np.argsort(stops, axis=0)
    stops = np.take_along_axis(stops, order, axis=0)
    rates, held = (
        np.take_along_axis(np.broadcast_to(part, order.shape), order, axis=0)
        for part in (push * np.abs(pace), push * np.where(np.isfinite(room), room, 0.0))
    )
    held_before = np.cumsum(held, axis=0) - held
    rates = np.cumsum(rates[::-1], axis=0)[::-1]
    with np.errstate(invalid="ignore"):  # an atom without mass or bound
        sums = np.where(rates > 0, held_before + rates * stops, held_before)
    passed = sums >= need
    if not passed.any(axis=0).all():
        return None
    first = np.argmax(passed, axis=0)[None, :]
    before, rate, stop = (
        np.take_along_axis(part, first, axis=0)[0] for part in (held_before, rates, stops)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        d = np.where(need > 0, np.minimum((need - before) / rate, stop), 0.0)
    moves = np.clip(pace * (sign * d), low, high)
    short = need - (push * np.abs(moves)).sum(axis=0)
    return moves if (np.abs(short) <= 1e-9 * need).all() else None
