"""The worst case of a policy of several products under one adversary, as ``worst_case`` for one."""

from functools import partial
from typing import NamedTuple

import numpy as np

from surefoot.ambiguity.form import Adversary
from surefoot.ambiguity.joint_rows import JointPolicy, JointRows
from surefoot.ambiguity.moves import better, context_moves, order_one_moves
from surefoot.ambiguity.worst_case import (
    ABOVE,
    CROSSING_SHARE,
    Around,
    MovedMass,
    Tangent,
    gathered,
    open_columns,
    search_multiplier,
    tangent,
)
from surefoot.typing import FloatArray, IntArray


class JointMoves(NamedTuple):
    """The adversary's best answer, row by row: what it gains, on which line, how far, and where to."""

    value: FloatArray
    line: IntArray
    distance: FloatArray
    contexts: FloatArray
    outcomes: FloatArray


class Way(NamedTuple):
    """Where mass on a line gains for ever, for each unit of transport."""

    gain: float
    line: int
    contexts: FloatArray
    outcomes: FloatArray


def worst_value(form: JointRows, theta: FloatArray, intercept: FloatArray) -> tuple[float, float]:
    """Return the worst-case expected cost of a policy and the multiplier that attains it."""
    policy = theta, intercept
    nominal = float(form.weights @ form.costs(form.contexts, form.outcomes, policy))
    steepest = float(form.line_norms(theta).max())
    if form.radius == 0.0 or steepest == 0.0:
        return nominal, 0.0
    if form.order == 1 and not form.boxed:
        return nominal + form.radius * steepest, steepest
    bracket = search(form, policy)
    return max(bracket.value, nominal), bracket.best


def value_and_multipliers(form: JointRows, policy: JointPolicy) -> tuple[float, tuple[float, ...]]:
    """Return the worst case of a policy, and multipliers whose moves together attain it."""
    value, _ = worst_value(form, *policy)
    if form.radius == 0.0 or not form.line_norms(policy[0]).any():
        return value, ()
    if form.order == 1 and not form.boxed:
        return value, ()
    bracket = search(form, policy)
    return value, (bracket.low, bracket.high)


def search(form: JointRows, policy: JointPolicy) -> Around:
    """Return multipliers around the best one, and the worst case."""
    on_lines = form.on_lines(policy)
    norms = form.line_norms(policy[0])

    def at(gamma: float) -> Tangent:
        if form.boxed:
            moves = best_moves(form, policy, gamma)
            return tangent(form, gamma, moves.value, moves.distance)
        gains = norms**2 / (4.0 * gamma)
        best = np.argmax(on_lines + gains, axis=1)
        values = on_lines[np.arange(len(best)), best] + gains[best]
        return tangent(form, gamma, values, gains[best] / gamma)

    top = ABOVE * float(norms.max()) / (2.0 * form.radius if form.order == 2 else 1.0)
    holding = max((way.gain for way in open_ways(form, policy[0])), default=0.0)
    return search_multiplier(at, form.budget, top, ABOVE * holding)


def best_moves(form: JointRows, policy: JointPolicy, gamma: float) -> JointMoves:
    """Return the exact inner maximiser for every row."""
    on_lines = form.on_lines(policy)
    best: JointMoves | None = None
    for line in range(len(form.lines.levels)):
        contexts, outcomes, distance = line_moves(form, policy[0], line, gamma)
        slopes = form.lines.slopes[line]
        # An infinite move costs and gains infinitely; the gain wins, as the multiplier is small.
        with np.errstate(invalid="ignore"):
            gained = contexts @ (policy[0] @ slopes) - outcomes @ slopes
            value = on_lines[:, line] + gained - gamma * distance
        value = np.where(np.isnan(value), np.inf, value)
        moves = JointMoves(value, np.full(len(value), line), distance, contexts, outcomes)
        best = moves if best is None else better(best, moves)
    assert best is not None  # there are at least four lines
    return best


def line_moves(
    form: JointRows, theta: FloatArray, line: int, gamma: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the best moves of every row on one line: contexts, outcomes and transport cost."""
    slopes = form.lines.slopes[line]
    contexts, distance = context_moves(form.first, theta @ slopes, gamma)
    outcomes = np.zeros_like(form.outcomes)
    if not form.inverse_kappas.any():
        return contexts, outcomes, distance
    low = np.column_stack([one.outcome_lower - one.outcomes for one in form.products])
    high = np.column_stack([one.outcome_upper - one.outcomes for one in form.products])
    if form.order == 2:
        outcomes = np.clip(-slopes * form.inverse_kappas / (2.0 * gamma), low, high)
        return contexts, outcomes, distance + outcomes**2 @ (1.0 / form.inverse_kappas)
    scaled = order_one_moves(
        -slopes * form.inverse_kappas, low / form.inverse_kappas, high / form.inverse_kappas, gamma
    )
    # An infinite move costs infinitely.
    return contexts, scaled * form.inverse_kappas, distance + np.sqrt((scaled**2).sum(axis=1))


def open_ways(form: JointRows, theta: FloatArray) -> list[Way]:
    """Return the ways by which mass on some line gains for ever (order 1), for each line."""
    if form.order == 2 or form.radius == 0.0:
        return []
    ways, still = [], np.zeros(len(form.products))
    open_below = np.array([np.isinf(one.outcome_lower).all() for one in form.products])
    open_above = np.array([np.isinf(one.outcome_upper).all() for one in form.products])
    for line, slopes in enumerate(form.lines.slopes):
        gradient = theta @ slopes
        way = np.where(open_columns(form.first, gradient), gradient, 0.0)
        norm = float(np.linalg.norm(way))
        if norm > 0.0:
            ways.append(Way(norm, line, way / norm, still))
        free = np.where(slopes > 0.0, open_below, open_above)
        rates = np.where(free, -slopes * form.inverse_kappas, 0.0)
        rate = float(np.linalg.norm(rates))
        if rate > 0.0:
            ways.append(Way(rate, line, np.zeros(len(theta)), rates / rate * form.inverse_kappas))
    return ways


def adversary(form: JointRows, theta: FloatArray, intercept: FloatArray) -> Adversary:
    """Return the worst distribution for a policy, as atoms that respect the budget."""
    policy = theta, intercept
    value, gamma = worst_value(form, theta, intercept)
    return gathered(form, _parts(form, policy, value), (value, gamma), partial(_paid, form, policy))


def _paid(
    form: JointRows, policy: JointPolicy, contexts: FloatArray, outcomes: FloatArray
) -> FloatArray:
    return form.costs(contexts, outcomes, policy)


def _parts(form: JointRows, policy: JointPolicy, value: float) -> list[MovedMass]:
    """Return shares of the mass that together spend the budget and attain the worst case."""
    stays = stay(form, policy)
    if form.radius == 0.0 or not form.line_norms(policy[0]).any():
        return [MovedMass(form.weights, stays)]
    if form.order == 1 and not form.boxed:
        return _far_parts(form, policy, stays, value)
    bracket = search(form, policy)
    below, above = (best_moves(form, policy, gamma) for gamma in (bracket.low, bracket.high))
    spent = [float(form.weights @ moves.distance) for moves in (below, above)]
    if not np.isfinite(spent[0]):  # an open side: what is left of the budget goes far
        return _far_parts(form, policy, above, value)
    over = spent[0] - form.budget
    share = 0.0 if over <= 0 else min(1.0, over / max(spent[0] - spent[1], over))
    return [MovedMass((1.0 - share) * form.weights, below), MovedMass(share * form.weights, above)]


def stay(form: JointRows, policy: JointPolicy) -> JointMoves:
    """Return the answer of an adversary that moves nothing."""
    on_lines = form.on_lines(policy)
    return JointMoves(
        on_lines.max(axis=1), np.argmax(on_lines, axis=1), np.zeros(len(on_lines)),
        np.zeros_like(form.contexts), np.zeros_like(form.outcomes),
    )  # fmt: skip


def _far_parts(
    form: JointRows, policy: JointPolicy, moves: JointMoves, value: float
) -> list[MovedMass]:
    """Order 1, an open side: what is left of the budget goes far; see ``worst_case``."""
    way = max(open_ways(form, policy[0]), key=lambda one: one.gain)
    at = form.contexts + moves.contexts, form.outcomes + moves.outcomes
    residuals = at[0] @ policy[0] + policy[1] - at[1]
    on_line = residuals @ form.lines.slopes[way.line] + form.lines.levels[way.line]
    costs = form.costs(*at, policy)
    # What a unit of a row's mass loses by leaving for that line; less is rounding.
    lost = np.where(form.weights > 0, costs - on_line, np.inf)
    weights = np.where(lost <= 1e-12 * (np.abs(costs) + np.abs(on_line)), form.weights, 0.0)
    if not weights.any():
        nearest = int(np.argmin(lost))
        most = CROSSING_SHARE * abs(value) / lost[nearest]
        weights[nearest] = min(form.weights[nearest], most)
    left = max(form.budget - float(form.weights @ moves.distance), 0.0)
    length = np.where(weights > 0, left / weights.sum(), 0.0)
    contexts = moves.contexts + np.outer(length, way.contexts)
    outcomes = moves.outcomes + np.outer(length, way.outcomes)
    distance = np.sqrt((contexts**2).sum(axis=1))
    if form.inverse_kappas.any():
        distance = distance + np.sqrt(((outcomes / form.inverse_kappas) ** 2).sum(axis=1))
    far = moves._replace(contexts=contexts, outcomes=outcomes, distance=distance)
    return [MovedMass(form.weights - weights, moves), MovedMass(weights, far)]
