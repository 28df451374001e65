"""The adversary's best move for a given multiplier: the inner problem of the dual.

For a policy z = theta'x + t the cost sees a moved context only through theta'x', so each geometry
has a closed form (one function here for each). All of them answer the same question, row by row:

    sup over (x', y') of  psi(theta'x' + t - y') - gamma d_p((x', y'), (x, y))
"""

from dataclasses import dataclass, replace

import numpy as np

from surefoot.costs import Pieces
from surefoot.problem import AffineProblem
from surefoot.typing import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Response:
    """The adversary's best answer, row by row.

    Attributes
    ----------
    value
        The supremum, infinite where the multiplier is too small to hold the adversary.
    slope
        The slope of the cost at the moved sample, in [-b, h].
    distance
        Transport cost d_p of the move.
    context_moves
        Displacement of the (scaled) contexts, shape (rows, columns).
    outcome_moves
        Displacement of the outcomes, shape (rows,).
    """

    value: FloatArray
    slope: FloatArray
    distance: FloatArray
    context_moves: FloatArray
    outcome_moves: FloatArray


def best_response(
    problem: AffineProblem, theta: FloatArray, intercept: float, gamma: float
) -> Response:
    """Return the exact inner maximiser for every row of the problem."""
    if problem.order == 1 and not problem.boxed:
        return _order_one_free(problem, theta, intercept, gamma)
    residuals = problem.residuals(theta, intercept)
    if problem.boxed:
        return _boxed(problem, theta, residuals, gamma)
    reach = problem.reach(theta)
    slope = order_two_slope(problem.pieces, residuals, reach**2 / (2.0 * gamma))
    pull = slope / (2.0 * gamma)
    moved = residuals + pull * reach**2
    distance = (pull * reach) ** 2
    return Response(
        value=problem.pieces.evaluate(moved) - gamma * distance,
        slope=slope,
        distance=distance,
        context_moves=np.outer(pull, np.where(problem.movable, theta, 0.0)),
        outcome_moves=-pull * problem.outcome_pull,
    )


def order_two_slope(pieces: Pieces, residuals: FloatArray, k: float) -> FloatArray:
    """Return the slope p at the global maximiser for order 2, where r' = r + p k.

    Kinked cost: p = h if r >= (b - h) k / 2, else -b. Smoothed cost, with A = (b + h) / (2 delta)
    and M = (h - b) / 2: p = clip((A r + M) / (1 - A k), -b, h) while A k < 1; from there on the
    parabola no longer holds the adversary back and p jumps as for the kinked cost.
    """
    up, down = pieces.up, pieces.down
    middle = 0.5 * (up - down)
    if pieces.smoothing > 0.0:
        curvature = (up + down) / (2.0 * pieces.smoothing)
        if curvature * k < 1.0:
            return np.clip((curvature * residuals + middle) / (1.0 - curvature * k), -down, up)
    return np.where(residuals + middle * k >= 0.0, up, -down)


def stay(problem: AffineProblem, theta: FloatArray, intercept: float) -> Response:
    """Return the answer of an adversary that moves nothing."""
    residuals = problem.residuals(theta, intercept)
    return Response(
        value=problem.pieces.evaluate(residuals),
        slope=order_two_slope(problem.pieces, residuals, 0.0),
        distance=np.zeros_like(residuals),
        context_moves=np.zeros_like(problem.contexts),
        outcome_moves=np.zeros_like(residuals),
    )


def _order_one_free(
    problem: AffineProblem, theta: FloatArray, intercept: float, gamma: float
) -> Response:
    """Nothing moves once gamma reaches G max(||theta||, 1/kappa); below it nothing holds."""
    answer = stay(problem, theta, intercept)
    if gamma >= problem.pieces.steepest * problem.reach(theta):
        return answer
    return replace(answer, value=np.full_like(answer.value, np.inf))


def _boxed(problem: AffineProblem, theta: FloatArray, residuals: FloatArray, gamma: float) -> Response:
    """Try both slopes of the kinked cost; given the slope, the best move is separable."""
    tries = []
    for slope in (problem.pieces.up, -problem.pieces.down):
        pull = np.where(problem.movable, slope * theta, 0.0)
        low, high = problem.lower - problem.contexts, problem.upper - problem.contexts
        if problem.order == 2:
            moves = np.clip(pull / (2.0 * gamma), low, high)
            distance = (moves**2).sum(axis=1)
        else:
            moves = _order_one_moves(pull, low, high, gamma)
            distance = np.sqrt((moves**2).sum(axis=1))
        outcome_moves = _outcome_moves(problem, slope, gamma)
        # An infinite move costs and gains infinitely; the gain wins, as the multiplier is small.
        with np.errstate(invalid="ignore"):
            distance = distance + _outcome_price(problem, outcome_moves)
            shift = moves @ theta - outcome_moves
            value = slope * (residuals + shift) - gamma * distance
        value = np.where(np.isnan(value), np.inf, value)
        tries.append((value, np.full_like(residuals, slope), distance, moves, outcome_moves))
    (value_up, *rest_up), (value_down, *rest_down) = tries
    better = value_up >= value_down
    value = np.where(better, value_up, value_down)
    picked = [_choose(better, a, b) for a, b in zip(rest_up, rest_down, strict=True)]
    return Response(value, *picked)


def _choose(better: BoolArray, first: FloatArray, second: FloatArray) -> FloatArray:
    return np.where(better[:, None] if first.ndim == 2 else better, first, second)


def _outcome_price(problem: AffineProblem, moves: FloatArray) -> FloatArray:
    """Kappa |dy|^p, zero where nothing moves (so that an infinite kappa costs nothing)."""
    if problem.outcome_pull == 0.0:
        return np.zeros_like(moves)
    return np.asarray(problem.outcome_cost * np.abs(moves) ** problem.order)


def _outcome_moves(problem: AffineProblem, slope: float, gamma: float) -> FloatArray:
    """Best displacement of the outcome, against the slope and inside its bounds."""
    if problem.outcome_pull == 0.0:  # bounds on outcomes that cannot move may not push them either
        return np.zeros_like(problem.outcomes)
    low, high = (bound - problem.outcomes for bound in problem.outcome_bounds)
    if problem.order == 2:
        return np.asarray(np.clip(-slope * problem.outcome_pull / (2.0 * gamma), low, high))
    if abs(slope) <= gamma * problem.outcome_cost:
        return np.zeros_like(problem.outcomes)
    return low if slope > 0 else high


def _order_one_moves(pull: FloatArray, low: FloatArray, high: FloatArray, gamma: float) -> FloatArray:
    """Maximise pull'd - gamma ||d|| over a box, for every row.

    The maximiser is clip(tau pull) with ||clip(tau pull)|| = gamma tau. Coordinates reach their
    bound in the order of room / |pull|; once those that have reached it are known, tau is explicit.
    """
    strength = np.abs(pull)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(pull > 0, high, -low)
        reach_at = np.where(strength > 0, room / strength, np.inf)
    order = np.argsort(reach_at, axis=1)
    sorted_reach = np.take_along_axis(reach_at, order, axis=1)
    free_after = strength[order] ** 2
    free_before = np.cumsum(free_after[:, ::-1], axis=1)[:, ::-1]
    held = np.where(np.isfinite(sorted_reach), np.take_along_axis(room, order, axis=1), 0.0) ** 2
    held_before = np.cumsum(held, axis=1) - held
    # Candidate j: the first j coordinates are held, the rest are free. The norm meets gamma tau
    # where held = (gamma^2 - free) tau^2; the first candidate not beyond its own range is right.
    slack = gamma**2 - free_before
    with np.errstate(divide="ignore", invalid="ignore"):
        tau = np.where(slack > 0, np.sqrt(held_before / np.maximum(slack, 1e-300)), np.inf)
    tau = np.concatenate([tau, np.sqrt(held_before[:, -1:] + held[:, -1:]) / gamma], axis=1)
    limit = np.concatenate([sorted_reach, np.full((len(room), 1), np.inf)], axis=1)
    first = np.argmax(tau <= limit, axis=1)
    chosen = np.take_along_axis(tau, first[:, None], axis=1)
    stays = (strength**2).sum() <= gamma**2
    chosen = np.zeros_like(chosen) if stays else chosen
    with np.errstate(invalid="ignore"):
        moves = np.clip(chosen * pull, low, high)
    return np.where(strength > 0, moves, 0.0)
