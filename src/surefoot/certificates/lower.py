"""A lower bound on the best worst case, from slopes alone.

Slopes u_i in [-b, h] describe an adversary: row i sits on the upper piece of the cost with
probability (u_i + b) / (b + h) and on the lower piece otherwise. If the adversary can move mass so
that no policy gains to first order, that is E[w x'] = 0 with w the piece's slope, then no policy
costs less than -E[w y']. Making the given slopes feasible and paying for the moves out of the budget
is all that happens here, so the bound is valid for any slopes handed in.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import qr
from scipy.optimize import minimize_scalar

from surefoot.problem import AffineProblem
from surefoot.typing import FloatArray

# Passes of "clip to the box, project on the frozen columns" before the final exact repair.
PROJECTIONS = 50
# Halvings of an interval: of the shift that balances slopes, and of the share that can be paid for.
HALVINGS, SHARE_HALVINGS = 50, 22
# Reweightings that turn the separable order-2 plan into the order-1 plan.
REWEIGHTINGS = 30
# ...which end early once one of them gains less than this share.
STALLED = 1e-6
# Below this share of the collapse radius no move is worth paying for: slopes balance exactly instead.
NEGLIGIBLE_SHARE = 1e-6
# Below this one, balancing is tried beside shrinking; it costs a factorisation of the contexts.
SMALL_SHARE = 0.003


def lower_bound(problem: AffineProblem, slopes: FloatArray) -> float:
    """Return a value that the worst case of no policy can go below.

    Parameters
    ----------
    problem
        The affine problem; its optimum over theta (and t) is what is bounded.
    slopes
        Any vector with one entry per row, ideally the slopes at the optimum.
    """
    inside = np.clip(slopes, -problem.pieces.down, problem.pieces.up)
    share = problem.radius / max(problem.collapse_radius(), np.finfo(np.float64).tiny)
    if share <= NEGLIGIBLE_SHARE:
        bound = _gain(problem, _balanced(problem, inside, problem.contexts))
    else:
        feasible = _balanced(problem, inside, problem.contexts[:, ~problem.movable])
        if problem.boxed:
            bound = _boxed_bound(problem, feasible)
        else:
            bound = _free_bound(problem, feasible)
            if share <= SMALL_SHARE:
                bound = max(bound, _free_bound(problem, _nearly_balanced(problem, feasible)))
    # Costs are never negative, and with no slope at all the bound is zero.
    return max(0.0, bound)


def _gain(problem: AffineProblem, slopes: FloatArray) -> float:
    """-E[w y], what the slopes prove once they are feasible."""
    return -float((problem.weights * slopes) @ problem.outcomes)


def _price(problem: AffineProblem, slopes: FloatArray) -> float:
    """||X'u|| over movable columns, what making the slopes feasible costs."""
    weighted = problem.weights * slopes
    gradient = problem.contexts.T @ weighted
    # Sums that cancel leave rounding behind, for which nothing has to be paid.
    rounding = 1e-15 * problem.column_sizes * float(np.abs(weighted).sum())
    owed = problem.movable & (np.abs(gradient) > rounding)
    return float(np.linalg.norm(gradient[owed]))


def _nearly_balanced(problem: AffineProblem, slopes: FloatArray) -> FloatArray:
    """Move slopes towards balance with all columns until a small budget pays for what is left.

    Shrinking them towards zero would pay too, but at a small radius it throws away nearly all.
    """
    balanced = _balanced(problem, slopes, problem.contexts)
    budget = problem.radius * problem.slope_constant
    share = min(1.0, budget / max(_price(problem, slopes), np.finfo(np.float64).tiny))
    return np.asarray(balanced + share * (slopes - balanced))


def _balanced(problem: AffineProblem, slopes: FloatArray, columns: FloatArray) -> FloatArray:
    """Return slopes in [-b, h] whose weighted products with the columns (and with 1) vanish.

    The constant counts as a column when the intercept is free.
    """
    up, down, weights = problem.pieces.up, problem.pieces.down, problem.weights
    if columns.shape[1] == 0:
        return _zero_mean(slopes, weights, down, up) if problem.intercept else slopes
    if problem.intercept:  # centred, a column far from zero keeps its digits
        columns = np.column_stack([np.ones(len(columns)), columns - weights @ columns])
    columns = columns / np.maximum(np.sqrt(weights @ columns**2), np.finfo(np.float64).tiny)
    root = np.sqrt(weights)
    basis = _column_basis(columns * root[:, None])
    for _ in range(PROJECTIONS):
        slopes = _project(slopes, basis, root)
        outside = max((slopes - up).max(), (-down - slopes).max())
        if outside <= 0.0:
            break
        slopes = np.clip(slopes, -down, up)
    slopes = _project(slopes, basis, root)
    # Zero slopes balance and lie inside, so shrinking towards them repairs what is left.
    excess = max(slopes.max() / up, -slopes.min() / down, 1.0)
    return np.asarray(slopes / excess)


def _column_basis(matrix: FloatArray) -> FloatArray:
    """Orthonormal basis of the column space; dependent columns are dropped."""
    basis, triangle, _ = qr(matrix, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(triangle))
    return np.asarray(basis[:, : int((sizes > sizes[0] * 1e-10).sum())])


def _project(slopes: FloatArray, basis: FloatArray, root: FloatArray) -> FloatArray:
    weighted = root * slopes
    return np.asarray((weighted - basis @ (basis.T @ weighted)) / root)


def _zero_mean(slopes: FloatArray, weights: FloatArray, down: float, up: float) -> FloatArray:
    """Shift all slopes by one number, clipped to [-b, h], so that their weighted mean is zero.

    The mean is piecewise linear in the shift, so Newton's method inside a bracket ends at the root.
    """
    low, high = float(slopes.min() - up), float(slopes.max() + down)
    shift = 0.0
    for _ in range(HALVINGS):
        balanced = np.clip(slopes - shift, -down, up)
        mean = float(weights @ balanced)
        if abs(mean) <= 1e-15 * (up + down):
            break
        low, high = (shift, high) if mean > 0 else (low, shift)
        free = float(weights @ (np.abs(balanced - 0.5 * (up - down)) < 0.5 * (up + down)))
        guess = shift + mean / free if free > 0 else low
        shift = guess if low < guess < high else 0.5 * (low + high)
    return np.asarray(balanced)


def _free_bound(problem: AffineProblem, slopes: FloatArray) -> float:
    """Free support: the moves cost ||X'u||, to be paid from rho G or rho sqrt(bh + (h-b) mean u)."""
    up, down, rho = problem.pieces.up, problem.pieces.down, problem.radius
    price, gain = _price(problem, slopes), _gain(problem, slopes)
    mean = float(problem.weights @ slopes)

    def budget(share: float) -> float:
        if problem.order == 1:
            return rho * problem.pieces.steepest
        return rho * math.sqrt(max(up * down + (up - down) * share * mean, 0.0))

    share = _largest_share(lambda share: share * price <= budget(share))
    if problem.outcome_pull == 0.0:
        return share * gain

    def with_outcomes(share: float) -> float:
        """Spend on the outcomes what the contexts leave over."""
        if problem.order == 1:
            return share * gain + max(budget(share) - share * price, 0.0) * problem.outcome_pull
        left = max(budget(share) ** 2 - (share * price) ** 2, 0.0)
        return share * gain + math.sqrt(left * problem.outcome_pull)

    best = minimize_scalar(
        lambda s: -with_outcomes(s), bounds=(0.0, share), method="bounded", options={"xatol": 1e-9}
    )
    return max(with_outcomes(share), -float(best.fun))


def _boxed_bound(problem: AffineProblem, slopes: FloatArray) -> float:
    """Box support: build the plan of moves column by column and keep the share it can pay for."""
    gain, budget = _gain(problem, slopes), problem.radius**problem.order
    share = _largest_share(lambda share: _plan_cost(problem, share * slopes) <= budget)
    if problem.outcome_pull == 0.0:
        return share * gain

    def with_outcomes(share: float) -> float:
        left = budget - _plan_cost(problem, share * slopes)
        if left < 0.0:  # reweighting can find a dearer plan for a smaller share
            return 0.0
        return share * gain + _outcome_gain(problem, share * slopes, left)

    best = minimize_scalar(
        lambda s: -with_outcomes(s), bounds=(0.0, share), method="bounded", options={"xatol": 1e-4}
    )
    return max(with_outcomes(share), -float(best.fun))


def _outcome_gain(problem: AffineProblem, slopes: FloatArray, budget: float) -> float:
    """What moving outcomes against the slopes, inside their bounds, earns for a budget.

    Order 2 moves every outcome in proportion to its slope; order 1 spends on the steeper piece
    first, because there a unit of transport earns most.
    """
    up, down = problem.pieces.up, problem.pieces.down
    share_up = (slopes + down) / (up + down)
    low, high = (bound - problem.outcomes for bound in problem.outcome_bounds)
    atoms = [(up, problem.weights * share_up), (-down, problem.weights * (1.0 - share_up))]
    groups = [atoms] if problem.order == 2 else [[a] for a in sorted(atoms, key=lambda a: -abs(a[0]))]
    gain = 0.0
    for group in groups:
        earned, spent = _spend(problem, group, low, high, budget)
        gain, budget = gain + earned, budget - spent
    return gain


def _spend(
    problem: AffineProblem,
    atoms: list[tuple[float, FloatArray]],
    low: FloatArray,
    high: FloatArray,
    budget: float,
) -> tuple[float, float]:
    """Move the outcomes of these atoms at one pace until the budget is spent: (earned, spent)."""

    def at(pace: float) -> tuple[float, float]:
        moves = [(w, mass, np.clip(-w * pace, low, high)) for w, mass in atoms]
        earned = sum(-w * float(mass @ dy) for w, mass, dy in moves)
        price = sum(float(mass @ np.abs(dy) ** problem.order) for _, mass, dy in moves)
        return earned, problem.outcome_cost * price

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


def _plan_cost(problem: AffineProblem, slopes: FloatArray) -> float:
    """Transport cost of a plan inside the box that makes E[w x'] vanish; infinite if none is found.

    With moves c_i w d_j clipped to the box, each column is one monotone equation in d_j. Equal c_i
    make the plan optimal for order 2; for order 1 they are reweighted by the length of each move.
    """
    up, down = problem.pieces.up, problem.pieces.down
    share_up = (slopes + down) / (up + down)
    columns = problem.movable
    X = problem.contexts[:, columns]
    low, high = problem.lower[columns] - X, problem.upper[columns] - X
    # The two atoms of every row, stacked: slope w, probability, room for the move.
    w = np.concatenate([np.full(len(X), up), np.full(len(X), -down)])[:, None]
    mass = np.concatenate([problem.weights * share_up, problem.weights * (1.0 - share_up)])
    low, high = np.vstack([low, low]), np.vstack([high, high])
    target = -(problem.weights * slopes) @ X
    if not target.any():
        return 0.0
    lengths = np.ones(len(mass))
    best = math.inf
    for _ in range(1 if problem.order == 2 else REWEIGHTINGS):
        moves = _solve_columns(w * lengths[:, None], w, mass, low, high, target)
        if moves is None:
            return best
        squared = (moves**2).sum(axis=1)
        if problem.order == 2:
            return float(mass @ squared)
        norms = np.sqrt(squared)
        before, best = best, min(best, float(mass @ norms))
        if best >= before * (1.0 - STALLED):
            return best
        lengths = norms + 1e-9 * max(float(norms.max()), 1e-300)
    return best


def _solve_columns(
    pace: FloatArray,
    w: FloatArray,
    mass: FloatArray,
    low: FloatArray,
    high: FloatArray,
    target: FloatArray,
) -> FloatArray | None:
    """Find d with sum of mass w clip(pace d, low, high) = target, column by column.

    Pace and w have one sign, so the left side grows with d: every atom moves until the box stops it
    at d = room / pace. Sorted by these stops the left side is known at each of them, and d lies on
    the segment on which it passes the target. None if the box stops all atoms before that.
    """
    sign, need = np.sign(target), np.abs(target)
    room = np.where(pace * sign > 0, high, -low)
    stops = room / np.abs(pace)
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
