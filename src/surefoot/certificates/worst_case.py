"""The worst case of a given policy: its value, its multiplier and the distribution that attains it."""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.certificates.inner import Response, best_response
from surefoot.problem import AffineProblem
from surefoot.typing import FloatArray, IntArray

# Bisection of the multiplier: each halving of its logarithm gains a bit, and 60 exhaust a double.
HALVINGS = 60
# A box can hold all the mass there is for less than the budget; the multiplier is then zero, and
# this share of its largest value stands in for it.
SMALLEST_SHARE = 1e-13


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A distribution in the ball that makes the policy cost most, as weighted atoms.

    Attributes
    ----------
    value
        sup of the expected cost over the ball.
    expected_cost
        Expected cost under the atoms; equal to ``value`` whenever the supremum is attained.
    multiplier
        The optimal gamma.
    rows
        Which row of the nominal each atom comes from.
    contexts, outcomes, weights
        The atoms (x_adv, y_adv) and their probabilities.
    distances
        Transport cost d_p of each atom; their weighted mean is at most radius^p.
    """

    value: float
    expected_cost: float
    multiplier: float
    rows: IntArray
    contexts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    distances: FloatArray

    @property
    def transport_cost(self) -> float:
        """Expected transport cost, at most radius^p."""
        return float(self.weights @ self.distances)


def worst_case_value(
    problem: AffineProblem, theta: FloatArray, intercept: float
) -> tuple[float, float]:
    """Return the worst-case expected cost of a policy and the multiplier that attains it.

    Any multiplier gives an upper bound, so the value is valid however roughly gamma was found.
    """
    residuals = problem.residuals(theta, intercept)
    nominal = float(problem.weights @ problem.pieces.evaluate(residuals))
    reach = problem.reach(theta)
    if problem.radius == 0.0 or reach == 0.0:
        return nominal, 0.0
    if problem.boxed:
        _, gamma = _bisect_multiplier(problem, theta, intercept)
        answer = best_response(problem, theta, intercept, gamma)
        rounding = 0.25 * (problem.pieces.up + problem.pieces.down) * problem.pieces.smoothing
        value = gamma * problem.radius**problem.order + float(problem.weights @ answer.value)
        return max(value + rounding, nominal), gamma
    if problem.order == 1:
        gamma = problem.pieces.steepest * reach
        return nominal + problem.radius * gamma, gamma
    if problem.pieces.smoothing > 0.0:
        _, gamma = _bisect_multiplier(problem, theta, intercept)
        answer = best_response(problem, theta, intercept, gamma)
        return gamma * problem.radius**2 + float(problem.weights @ answer.value), gamma
    return _order_two_free(problem, residuals, reach)


def _order_two_free(problem: AffineProblem, residuals: FloatArray, reach: float) -> tuple[float, float]:
    """Order 2, free support: the multiplier solves gamma = reach sqrt(E w^2) / (2 rho).

    E w^2 depends on gamma only through which residuals lie below (b - h) reach^2 / (4 gamma). For
    each number of them, gamma and that threshold are explicit; the right number is where sorted
    residuals and falling thresholds cross, or gamma puts the threshold on a residual in between.
    """
    up, down, rho, signed = problem.pieces.up, problem.pieces.down, problem.radius, residuals
    if down < up:  # the same problem seen in a mirror
        up, down, signed = down, up, -residuals
    order = np.argsort(signed)
    ranked = signed[order]
    below = np.concatenate([[0.0], np.cumsum(problem.weights[order])])
    gammas = reach * np.sqrt(up**2 * (1.0 - below) + down**2 * below) / (2.0 * rho)
    thresholds = 0.25 * (down - up) * reach**2 / gammas
    crossed = ranked >= thresholds[:-1]
    count = int(np.argmax(crossed)) if crossed.any() else len(ranked)
    gamma = float(gammas[count])
    if count > 0 and thresholds[count] < ranked[count - 1]:
        gamma = 0.25 * (down - up) * reach**2 / float(ranked[count - 1])
    quarter = 0.25 * reach**2 / gamma
    values = np.maximum(up * signed + up**2 * quarter, -down * signed + down**2 * quarter)
    return gamma * rho**2 + float(problem.weights @ values), gamma


def _bisect_multiplier(
    problem: AffineProblem, theta: FloatArray, intercept: float
) -> tuple[float, float]:
    """Return multipliers just below and just above the one at which the budget is spent."""
    budget = problem.radius**problem.order
    # Just above the multiplier that holds the steepest piece, or rounding could let it escape.
    high = (1.0 + 1e-12) * problem.pieces.steepest * problem.reach(theta)
    if problem.order == 2:
        high /= 2.0 * problem.radius
    low = high * SMALLEST_SHARE

    def spends(gamma: float) -> bool:
        answer = best_response(problem, theta, intercept, gamma)
        spent = float(problem.weights @ answer.distance)
        return not np.isfinite(answer.value).all() or spent > budget

    if not spends(low):
        return low, low
    for _ in range(HALVINGS):
        gamma = math.sqrt(low * high)
        low, high = (gamma, high) if spends(gamma) else (low, gamma)
    return low, high


def worst_case(problem: AffineProblem, theta: FloatArray, intercept: float) -> WorstCase:
    """Return the adversarial distribution of a policy, as atoms that respect the budget."""
    value, gamma = worst_case_value(problem, theta, intercept)
    if problem.radius == 0.0 or problem.reach(theta) == 0.0:
        still = np.zeros_like(problem.outcomes)
        moves = [(problem.weights, still, np.zeros_like(problem.contexts), still)]
    elif problem.order == 1 and not problem.boxed:
        moves = [_far_moves(problem, theta, intercept)]
    else:
        moves = _mixed_moves(problem, theta, intercept)
    atoms = [
        (rows, weights[rows], distance[rows], shift[rows], outcome_shift[rows])
        for weights, distance, shift, outcome_shift in moves
        for rows in [np.flatnonzero(weights > 0)]
    ]
    rows, weights, distances, shift, outcome_shift = (
        np.concatenate(part) for part in zip(*atoms, strict=True)
    )
    contexts = problem.contexts[rows] + shift
    outcomes = problem.outcomes[rows] + outcome_shift
    costs = problem.pieces.evaluate(contexts @ theta + intercept - outcomes)
    return WorstCase(
        value=value,
        expected_cost=float(weights @ costs),
        multiplier=gamma,
        rows=rows,
        contexts=contexts,
        outcomes=outcomes,
        weights=weights,
        distances=distances,
    )


_Moves = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def _mixed_moves(problem: AffineProblem, theta: FloatArray, intercept: float) -> list[_Moves]:
    """Mix the answers just below and just above the multiplier so that the budget is just spent."""
    budget = problem.radius**problem.order
    low, high = _bisect_multiplier(problem, theta, intercept)
    answers = [best_response(problem, theta, intercept, gamma) for gamma in (low, high)]
    spent = [float(problem.weights @ answer.distance) for answer in answers]
    over = spent[0] - budget
    share = 0.0 if over <= 0 else min(1.0, over / max(spent[0] - spent[1], over))
    if not np.isfinite(spent[0]):
        share = 1.0

    def part(weight: float, answer: Response) -> _Moves:
        weights = weight * problem.weights
        return weights, answer.distance, answer.context_moves, answer.outcome_moves

    return [
        part(weight, answer)
        for weight, answer in zip((1.0 - share, share), answers, strict=True)
        if weight > 0
    ]


def _far_moves(problem: AffineProblem, theta: FloatArray, intercept: float) -> _Moves:
    """Order 1, free support: spend the budget on rows already on the steep side of the kink.

    Each such row climbs at the full slope G however far it goes, so moving all of them equally far
    attains the supremum. Without such a row the nearest one goes, and the supremum is approached
    only in the limit of ever less mass moving ever farther.
    """
    up, down = problem.pieces.up, problem.pieces.down
    residuals = problem.residuals(theta, intercept)
    sign = 1.0 if up >= down else -1.0
    weighted = problem.weights > 0
    chosen = (sign * residuals >= problem.pieces.smoothing) & weighted
    if not chosen.any():
        chosen[np.argmax(np.where(weighted, sign * residuals, -np.inf))] = True
    distance = np.where(chosen, problem.radius / problem.weights[chosen].sum(), 0.0)
    norm = float(np.linalg.norm(theta[problem.movable]))
    still = np.zeros_like(residuals)
    if norm >= problem.outcome_pull:
        direction = np.where(problem.movable, theta, 0.0) / norm
        return problem.weights, distance, sign * np.outer(distance, direction), still
    moves = -sign * distance * problem.outcome_pull
    return problem.weights, distance, np.zeros_like(problem.contexts), moves
