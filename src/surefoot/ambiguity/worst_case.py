"""The worst case of a given policy: its value, its multiplier and the distribution that attains it."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity.form import Adversary
from surefoot.ambiguity.moves import Moves, best_moves, stay
from surefoot.ambiguity.transport import TransportForm, chords
from surefoot.typing import BoolArray, FloatArray

# Tries for the multiplier: tangents need about ten; if they fail, halvings exhaust a double.
HALVINGS = 70
# The search ends where the tangents promise no more than this share.
SEARCH_TOL = 1e-14
# A box can hold all the mass there is for less than the budget; the multiplier is then zero, and
# this share of its largest value stands in for it.
SMALLEST_SHARE = 1e-13
# Just above the multiplier that holds the steepest piece, or rounding could let it escape.
ABOVE = 1.0 + 1e-12
# Mass that crosses to the steep side before it goes far loses at most this share of the cost.
CROSSING_SHARE = 1e-4


def worst_value(form: TransportForm, theta: FloatArray, intercept: float) -> tuple[float, float]:
    """Return the worst-case expected cost of a policy and the multiplier that attains it.

    Any multiplier gives an upper bound, so the value is valid however roughly gamma was found.
    """
    residuals = form.residuals(theta, intercept)
    norm = form.dual_norm(theta)
    moves = form.radius > 0.0 and norm > 0.0
    straight = form.pieces.two and form.pieces.smoothing == 0.0
    if moves and form.order == 2 and straight and not form.boxed:
        return _order_two_free(form, residuals, norm)
    nominal = form.mean_cost(residuals)
    if not moves:
        return nominal, 0.0
    if form.order == 1 and not form.boxed:
        gamma = form.pieces.steepest * norm
        return nominal + form.radius * gamma, gamma
    if form.boxed and form.pieces.smoothing > 0.0:
        # In a box moves are known for straight lines: chords, which lie nowhere below a rounded kink.
        form = replace(form, pieces=chords(form.pieces))
    value, gamma = _search_multiplier(form, theta, intercept)[:1:-1]
    return max(value, nominal), gamma


def _order_two_free(form: TransportForm, residuals: FloatArray, norm: float) -> tuple[float, float]:
    """Order 2, free support, two lines: the multiplier solves gamma = norm sqrt(E w^2) / (2 rho).

    E w^2 depends on gamma only through which residuals lie below (b - h) norm^2 / (4 gamma). For
    each number of them, gamma and that threshold are explicit; the right number is where sorted
    residuals and falling thresholds cross, or gamma puts the threshold on a residual in between.
    """
    up, down, rho, signed = form.pieces.up, form.pieces.down, form.radius, residuals
    if down < up:  # the same problem seen in a mirror
        up, down, signed = down, up, -residuals
    order = np.argsort(signed)
    ranked = signed[order]
    below = np.concatenate([[0.0], np.cumsum(form.weights[order])])
    gammas = norm * np.sqrt(up**2 * (1.0 - below) + down**2 * below) / (2.0 * rho)
    thresholds = 0.25 * (down - up) * norm**2 / gammas
    crossed = ranked >= thresholds[:-1]
    count = int(np.argmax(crossed)) if crossed.any() else len(ranked)
    gamma = float(gammas[count])
    if count > 0 and thresholds[count] < ranked[count - 1]:
        gamma = 0.25 * (down - up) * norm**2 / float(ranked[count - 1])
    quarter = 0.25 * norm**2 / gamma
    values = np.maximum(up * signed + up**2 * quarter, -down * signed + down**2 * quarter)
    return gamma * rho**2 + float(form.weights @ values), gamma


class Around(NamedTuple):
    """Multipliers on both sides of the best (low spends more than the budget), and the best found."""

    low: float
    high: float
    best: float
    value: float


class Tangent(NamedTuple):
    """The dual at a multiplier: its value, and what the moves there cost and spend."""

    gamma: float
    value: float
    cost: float
    spent: float


def _search_multiplier(form: TransportForm, theta: FloatArray, intercept: float) -> Around:
    """Minimise gamma rho^p + E[value(gamma)], which is convex in gamma, by where tangents meet."""

    def at(gamma: float) -> Tangent:
        moves = best_moves(form, theta, intercept, gamma)
        return tangent(form, gamma, moves.value, moves.distance)

    top = ABOVE * form.pieces.steepest * form.dual_norm(theta)
    if form.order == 2:
        top /= 2.0 * form.radius
    return search_multiplier(at, form.budget, top, ABOVE * _holding_multiplier(form, theta))


def tangent(form: Any, gamma: float, values: FloatArray, distances: FloatArray) -> Tangent:
    """Return the dual of a form at a multiplier, from what the best moves gain and cost."""
    if not np.isfinite(values).all():
        return Tangent(gamma, math.inf, math.inf, math.inf)
    spent, value = float(form.weights @ distances), float(form.weights @ values)
    return Tangent(gamma, gamma * form.budget + value, value + gamma * spent, spent)


def search_multiplier(at: Callable[[float], Tangent], budget: float, top: float, held: float) -> Around:
    """Minimise a dual in its multiplier by where tangents meet.

    Each multiplier gives a tangent, and the tangents of both sides meet below the least value, at the
    next multiplier to try. Where that is slow, the bracket is halved on the logarithm's scale.

    Parameters
    ----------
    at
        The dual at a multiplier.
    budget
        Most transport cost that may be spent.
    top, held
        A multiplier at which no more is spent, and the least at which nothing goes for ever.
    """
    first = max(top * SMALLEST_SHARE, held)
    low = at(first)
    if not low.spent > budget:
        below = (1.0 - 1e-9) * held if held >= first else first
        return Around(below, first, first, low.value)
    high = at(top)
    best = min(low, high, key=lambda line: line.value)
    slow = 0
    for _ in range(HALVINGS):
        width = high.gamma / low.gamma
        gamma = math.sqrt(low.gamma * high.gamma)
        if low.cost < math.inf and low.spent > high.spent and slow < 2:
            met = (low.cost - high.cost) / (low.spent - high.spent)
            promised = high.cost + met * (budget - high.spent)
            if best.value - promised <= SEARCH_TOL * abs(best.value):
                break
            gamma = met if low.gamma < met < high.gamma else gamma
        tried = at(gamma)
        if not low.gamma < gamma < high.gamma:
            break
        low, high = (tried, high) if tried.spent > budget else (low, tried)
        best = min(best, tried, key=lambda line: line.value)
        slow = slow + 1 if (high.gamma / low.gamma) ** 2 > width and slow < 2 else 0
    return Around(low.gamma, high.gamma, best.gamma, best.value)


def _holding_multiplier(form: TransportForm, theta: FloatArray) -> float:
    """Return the smallest multiplier of order 1 at which nothing is gained by going for ever."""
    if form.order == 2 or form.radius == 0.0:
        return 0.0
    most = 0.0
    for slope in form.pieces.slopes:
        way = np.where(open_columns(form, slope * theta), slope * theta, 0.0)
        norm = float(np.linalg.norm(way))
        if norm > 0.0:
            most = max(most, abs(slope * float(way / norm @ theta)))
        bounds = form.outcome_lower if slope > 0 else form.outcome_upper
        if form.inverse_kappa > 0.0 and np.isinf(bounds).all():
            most = max(most, abs(slope) * form.inverse_kappa)
    return most


class MovedMass(NamedTuple):
    """A share of every row's mass and where it goes: the moves of one product, or of several."""

    weights: FloatArray
    moves: Any


def adversary(form: TransportForm, theta: FloatArray, intercept: float) -> Adversary:
    """Return the adversarial distribution of a policy, as atoms that respect the budget."""
    value, gamma = worst_value(form, theta, intercept)
    if form.radius == 0.0 or form.dual_norm(theta) == 0.0:
        parts = [MovedMass(form.weights, stay(form, theta, intercept))]
    elif form.order == 1 and not form.boxed:
        parts = _far_parts(form, theta, intercept, stay(form, theta, intercept), value)
    else:
        parts = _mixed_parts(form, theta, intercept, value)

    def cost(contexts: FloatArray, outcomes: FloatArray) -> FloatArray:
        return form.pieces.evaluate(contexts @ theta + intercept - outcomes)

    return gathered(form, parts, (value, gamma), cost)


def gathered(
    form: Any,
    parts: list[MovedMass],
    worst: tuple[float, float],
    cost: Callable[[FloatArray, FloatArray], FloatArray],
) -> Adversary:
    """Return the distribution that shares of the mass make up, of one product or of several.

    Parameters
    ----------
    form
        Whose rows are moved.
    parts
        The shares, and where they go.
    worst
        The worst case and the multiplier that attains it.
    cost
        What moved contexts and outcomes cost.
    """
    kept = [(part, np.flatnonzero(part.weights > 0.0)) for part in parts if part.weights.any()]
    rows = np.concatenate([rows for _, rows in kept])
    weights = np.concatenate([part.weights[rows] for part, rows in kept])
    distances = np.concatenate([part.moves.distance[rows] for part, rows in kept])
    contexts = form.contexts[rows] + np.concatenate([part.moves.contexts[rows] for part, rows in kept])
    outcomes = form.outcomes[rows] + np.concatenate([part.moves.outcomes[rows] for part, rows in kept])
    value, gamma = worst
    return Adversary(
        value=value,
        expected_cost=float(weights @ cost(contexts, outcomes)),
        multiplier=np.array([gamma]),
        transport_cost=np.array([weights @ distances]),
        rows=rows,
        products=np.zeros(len(rows), dtype=np.int64),
        contexts=contexts,
        outcomes=outcomes,
        weights=weights,
        distances=distances,
    )


def _mixed_parts(
    form: TransportForm, theta: FloatArray, intercept: float, value: float
) -> list[MovedMass]:
    """Mix the answers just below and just above the multiplier so that the budget is just spent."""
    low, high, *_ = _search_multiplier(form, theta, intercept)
    below, above = (best_moves(form, theta, intercept, gamma) for gamma in (low, high))
    spent = [float(form.weights @ moves.distance) for moves in (below, above)]
    if not np.isfinite(spent[0]):  # an open side: what is left of the budget goes far
        return _far_parts(form, theta, intercept, above, value)
    over = spent[0] - form.budget
    share = 0.0 if over <= 0 else min(1.0, over / max(spent[0] - spent[1], over))
    mixed = [MovedMass((1.0 - share) * form.weights, below), MovedMass(share * form.weights, above)]
    return [part for part in mixed if part.weights.any()]


def _far_parts(
    form: TransportForm, theta: FloatArray, intercept: float, moves: Moves, value: float
) -> list[MovedMass]:
    """Order 1, an open side: spend what the given moves leave of the budget on moves that go far.

    On the line that gains most by the way, a row climbs at the full slope however far it goes, so
    moving all such rows equally far attains the supremum. Without one, a little mass of the row that
    is nearest to that line crosses over and goes: what the crossing loses falls with the mass.
    """
    line, direction, outcome_direction = _open_line(form, theta)
    residuals = (form.contexts + moves.contexts) @ theta + intercept
    residuals -= form.outcomes + moves.outcomes
    on_line = form.pieces.slopes[line] * residuals + form.pieces.intercepts[line]
    costs = form.pieces.evaluate(residuals)
    # What a unit of a row's mass loses by leaving for that line; less is rounding.
    lost = np.where(form.weights > 0, costs - on_line, np.inf)
    weights = np.where(lost <= 1e-12 * (np.abs(costs) + np.abs(on_line)), form.weights, 0.0)
    if not weights.any():
        nearest = int(np.argmin(lost))
        weights[nearest] = min(form.weights[nearest], CROSSING_SHARE * abs(value) / lost[nearest])
    left = max(form.budget - float(form.weights @ moves.distance), 0.0)
    length = np.where(weights > 0, left / weights.sum(), 0.0)
    contexts = moves.contexts + np.outer(length, direction)
    outcomes = moves.outcomes + length * outcome_direction
    distance = np.sqrt((contexts**2).sum(axis=1))
    if form.inverse_kappa > 0.0:
        distance = distance + form.outcome_cost * np.abs(outcomes)
    far = moves._replace(contexts=contexts, outcomes=outcomes, distance=distance)
    return [MovedMass(form.weights - weights, moves), MovedMass(weights, far)]


def value_and_multipliers(
    form: TransportForm, theta: FloatArray, intercept: float
) -> tuple[float, tuple[float, ...]]:
    """Return the worst case of a policy, and multipliers whose moves together attain it."""
    if form.radius == 0.0 or form.dual_norm(theta) == 0.0:
        return form.mean_cost(form.residuals(theta, intercept)), ()
    if not form.boxed:
        value, gamma = worst_value(form, theta, intercept)
        return value, (gamma,) if form.order == 2 else ()
    bracket = _search_multiplier(form, theta, intercept)
    return bracket.value, (bracket.low, bracket.high)


def _open_line(form: TransportForm, theta: FloatArray) -> tuple[int, FloatArray, float]:
    """Return the line that gains most per unit of far transport, and the way: contexts or outcome."""
    best = (-1.0, 0, np.zeros_like(theta), 0.0)
    for line, slope in reversed(list(enumerate(form.pieces.slopes))):
        way = np.where(open_columns(form, slope * theta), slope * theta, 0.0)
        norm = float(np.linalg.norm(way))
        if norm > best[0]:
            best = (norm, line, way / norm if norm > 0.0 else way, 0.0)
        bounds = form.outcome_lower if slope > 0 else form.outcome_upper
        outcome_open = form.inverse_kappa > 0.0 and bool(np.isinf(bounds).any())
        gain, side = abs(slope) * form.inverse_kappa, -np.sign(slope)
        if outcome_open and gain > best[0]:
            best = (gain, line, np.zeros_like(theta), side * form.inverse_kappa)
    return best[1], best[2], float(best[3])


def open_columns(form: TransportForm, push: FloatArray) -> BoolArray:
    """Return the movable columns on whose side no bound stops a move along ``push``."""
    return np.asarray(form.movable & np.isinf(np.where(push > 0, form.upper, form.lower)))
