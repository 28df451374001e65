"""The adversary's best move for a given multiplier: the inner problem of the dual.

For a policy z = theta'x + t the cost sees a moved context only through theta'x', so each geometry
has a closed form (one function here for each). All of them answer the same question, row by row:

    sup over (x', y') of  psi(theta'x' + t - y') - gamma d_p((x', y'), (x, y))

The supremum of a maximum of lines is the maximum of the suprema: each line is moved by itself.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np

from surefoot.ambiguity.transport import TransportForm
from surefoot.costs import Pieces
from surefoot.typing import FloatArray

AnyMoves = TypeVar("AnyMoves", bound=Any)  # of one product or of several, with a field ``value``


class Moves(NamedTuple):
    """The adversary's best answer, row by row.

    Attributes
    ----------
    value
        The supremum, infinite where the multiplier is too small to hold the adversary.
    slope
        The slope of the cost at the moved sample.
    distance
        Transport cost d_p of the move.
    contexts
        Displacement of the contexts, shape (rows, columns).
    outcomes
        Displacement of the outcomes, shape (rows,).
    """

    value: FloatArray
    slope: FloatArray
    distance: FloatArray
    contexts: FloatArray
    outcomes: FloatArray


def best_moves(form: TransportForm, theta: FloatArray, intercept: float, gamma: float) -> Moves:
    """Return the exact inner maximiser for every row of the form."""
    if form.order == 1 and not form.boxed:
        stays = stay(form, theta, intercept)
        # Nothing moves once gamma reaches G max(||theta||, 1/kappa); below it nothing holds.
        if gamma >= form.pieces.steepest * form.dual_norm(theta):
            return stays
        return stays._replace(value=np.full_like(stays.value, np.inf))
    residuals = form.residuals(theta, intercept)
    if form.boxed:
        return _boxed(form, theta, residuals, gamma)
    norm = form.dual_norm(theta)
    slope = order_two_slope(form.pieces, residuals, norm**2 / (2.0 * gamma))
    pace = slope / (2.0 * gamma)
    distance = (pace * norm) ** 2
    return Moves(
        value=form.pieces.evaluate(residuals + pace * norm**2) - gamma * distance,
        slope=slope,
        distance=distance,
        contexts=np.outer(pace, np.where(form.movable, theta, 0.0)),
        outcomes=-pace * form.inverse_kappa,
    )


def order_two_slope(pieces: Pieces, residuals: FloatArray, k: float) -> FloatArray:
    """Return the slope p at the global maximiser for order 2, where r' = r + p k.

    The line with the largest w r + v + w^2 k / 2 wins, of two equal ones the upper. Smoothed cost,
    with A = (b + h) / (2 delta) and M = (h - b) / 2: p = clip((A r + M) / (1 - A k), -b, h) while
    A k < 1; from there on the parabola no longer holds the adversary back and p jumps between lines.
    """
    up, down = pieces.up, pieces.down
    if pieces.smoothing > 0.0:
        curvature, middle = (up + down) / (2.0 * pieces.smoothing), 0.5 * (up - down)
        if curvature * k < 1.0:
            return np.clip((curvature * residuals + middle) / (1.0 - curvature * k), -down, up)
    slopes = np.array(pieces.slopes)
    lines = np.multiply.outer(residuals, slopes) + (pieces.intercepts + 0.5 * k * slopes**2)
    return np.asarray(slopes[::-1][np.argmax(lines[..., ::-1], axis=-1)])


def stay(form: TransportForm, theta: FloatArray, intercept: float) -> Moves:
    """Return the answer of an adversary that moves nothing."""
    residuals = form.residuals(theta, intercept)
    nothing = np.zeros_like(residuals)
    return Moves(
        value=form.pieces.evaluate(residuals),
        slope=order_two_slope(form.pieces, residuals, 0.0),
        distance=nothing,
        contexts=np.zeros_like(form.contexts),
        outcomes=nothing,
    )


def line_moves(
    form: TransportForm, theta: FloatArray, slope: float, gamma: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the best moves of every row on one line: contexts, outcomes and transport cost.

    In an open box a move may be infinite, and so may its cost.
    """
    moves, distance = context_moves(form, slope * theta, gamma)
    outcomes = _outcome_moves(form, slope, gamma)
    # An infinite move costs and gains infinitely.
    with np.errstate(invalid="ignore"):
        distance = distance + _outcome_transport_cost(form, outcomes)
    return moves, outcomes, distance


def context_moves(
    form: TransportForm, gradient: FloatArray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    """Return the best moves of every row's context against a gradient, and their transport cost."""
    push = np.where(form.movable, gradient, 0.0)
    low, high = form.lower - form.contexts, form.upper - form.contexts
    if form.order == 2:
        moves = np.clip(push / (2.0 * gamma), low, high)
        return moves, (moves**2).sum(axis=1)
    moves = order_one_moves(push, low, high, gamma)
    return moves, np.sqrt((moves**2).sum(axis=1))


def _boxed(form: TransportForm, theta: FloatArray, residuals: FloatArray, gamma: float) -> Moves:
    """Move every line by itself; given the slope, the best move is separable."""
    best: Moves | None = None
    # From the last line down, so that of two equal ones the upper wins.
    for slope, level in zip(form.pieces.slopes[::-1], form.pieces.intercepts[::-1], strict=True):
        moves, outcomes, distance = line_moves(form, theta, slope, gamma)
        # An infinite move costs and gains infinitely; the gain wins, as the multiplier is small.
        with np.errstate(invalid="ignore"):
            value = slope * (residuals + (moves @ theta - outcomes)) + level - gamma * distance
        value = np.where(np.isnan(value), np.inf, value)
        line = Moves(value, np.full_like(residuals, slope), distance, moves, outcomes)
        best = line if best is None else better(best, line)
    assert best is not None  # a cost has at least two lines
    return best


def better(first: AnyMoves, second: AnyMoves) -> AnyMoves:
    """Return the better answer of each row, of two equal ones the first."""
    keep = first.value >= second.value
    picked = [
        np.where(keep[:, None] if a.ndim == 2 else keep, a, b)
        for a, b in zip(first, second, strict=True)
    ]
    made: AnyMoves = type(first)(*picked)
    return made


def _outcome_transport_cost(form: TransportForm, moves: FloatArray) -> FloatArray:
    """Kappa |dy|^p, zero where nothing moves (so that an infinite kappa costs nothing)."""
    if form.inverse_kappa == 0.0:
        return np.zeros_like(moves)
    return np.asarray(form.outcome_cost * np.abs(moves) ** form.order)


def _outcome_moves(form: TransportForm, slope: float, gamma: float) -> FloatArray:
    """Best displacement of the outcome, against the slope and inside its bounds."""
    if form.inverse_kappa == 0.0:  # bounds on outcomes that cannot move may not push them either
        return np.zeros_like(form.outcomes)
    low, high = form.outcome_lower - form.outcomes, form.outcome_upper - form.outcomes
    if form.order == 2:
        return np.asarray(np.clip(-slope * form.inverse_kappa / (2.0 * gamma), low, high))
    if abs(slope) <= gamma * form.outcome_cost:
        return np.zeros_like(form.outcomes)
    return low if slope > 0 else high


def order_one_moves(push: FloatArray, low: FloatArray, high: FloatArray, gamma: float) -> FloatArray:
    """Maximise push'd - gamma ||d|| over a box, for every row.

    The maximiser is clip(tau push) with ||clip(tau push)|| = gamma tau. Coordinates reach their
    bound in the order of room / |push|; once those that have reached it are known, tau is explicit.
    """
    strength = np.abs(push)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(push > 0, high, -low)
        held_from = np.where(strength > 0, room / strength, np.inf)
    order = np.argsort(held_from, axis=1)
    sorted_from = np.take_along_axis(held_from, order, axis=1)
    free_after = strength[order] ** 2
    free_before = np.cumsum(free_after[:, ::-1], axis=1)[:, ::-1]
    held = np.where(np.isfinite(sorted_from), np.take_along_axis(room, order, axis=1), 0.0) ** 2
    held_before = np.cumsum(held, axis=1) - held
    # Candidate j: the first j coordinates are held, the rest are free. The norm meets gamma tau
    # where held = (gamma^2 - free) tau^2; the first candidate not beyond its own range is right.
    slack = gamma**2 - free_before
    with np.errstate(divide="ignore", invalid="ignore"):
        tau = np.where(slack > 0, np.sqrt(held_before / np.maximum(slack, 1e-300)), np.inf)
    tau = np.concatenate([tau, np.sqrt(held_before[:, -1:] + held[:, -1:]) / gamma], axis=1)
    limit = np.concatenate([sorted_from, np.full((len(room), 1), np.inf)], axis=1)
    first = np.argmax(tau <= limit, axis=1)
    chosen = np.take_along_axis(tau, first[:, None], axis=1)
    stays = (strength**2).sum() <= gamma**2
    chosen = np.zeros_like(chosen) if stays else chosen
    with np.errstate(invalid="ignore"):
        moves = np.clip(chosen * push, low, high)
    return np.where(strength > 0, moves, 0.0)
