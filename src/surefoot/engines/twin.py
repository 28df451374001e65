"""The updates as formulas: slow, pure NumPy twins of the compiled kernels.

``update(state, sample, problem) -> (state, info)`` is the one step of DA-SGD. Fitting, learning from
a stream and every kernel do exactly this; tests hold the kernels to these functions.
"""

from dataclasses import dataclass, replace

import numpy as np

from surefoot.certificates import best_response, stay
from surefoot.engines.canonical import Canonical
from surefoot.engines.constants import (
    HOLDING_SHARE,
    LOG_STEP,
    PRIOR_SLOPES,
    SLOPE_WINDOW,
    SPHERE_WIDTH,
    STIFF_SHARE,
)
from surefoot.problem import AffineProblem
from surefoot.typing import FloatArray

Sample = tuple[FloatArray, float]


@dataclass(frozen=True, eq=False)
class State:
    """All that the next step needs to know.

    Attributes
    ----------
    theta, intercept
        The policy, in scaled units.
    log_multiplier
        Logarithm of gamma, or of its excess over the ``holding_multiplier``; used where the
        multiplier has no closed form (a box support).
    square_slope
        Running mean of squared slopes E[p^2], from which gamma is profiled otherwise.
    travelled, intercept_travelled
        Largest distance from zero and from the start: the numerators of the step sizes.
    squares, intercept_squares, multiplier_squares
        Sums of squared gradients: the denominators.
    steps
        Steps taken.
    """

    theta: FloatArray
    intercept: float
    start: float
    log_multiplier: float
    square_slope: float
    travelled: float
    intercept_travelled: float
    squares: float = 0.0
    intercept_squares: float = 0.0
    multiplier_squares: float = 0.0
    steps: int = 0


@dataclass(frozen=True, eq=False)
class Info:
    """What a person wants to see of one step: the moved sample, its slope, price and distance."""

    slope: float
    distance: float
    multiplier: float
    context: FloatArray
    outcome: float


def initial_state(problem: AffineProblem) -> State:
    """Start at the constant order (at zero without an intercept) with a guess of the scale."""
    decision, _ = problem.constant_order()
    cost = float(problem.weights @ problem.pieces.evaluate(decision - problem.outcomes))
    # First rows with one and the same outcome say nothing about the scale: guess, and grow from there.
    spread = cost / problem.pieces.steepest or 0.01 * max(abs(decision), 1.0)
    size = float(np.sqrt(problem.weights @ (problem.contexts**2).sum(axis=1)))
    travelled = spread / max(size, 1e-12)
    guess = problem.slope_constant * max(travelled, problem.outcome_pull)
    if problem.order == 2:
        guess /= 2.0 * max(problem.radius, 1e-12)
    return State(
        theta=np.zeros(len(problem.movable)),
        intercept=decision if problem.intercept else 0.0,
        start=decision if problem.intercept else 0.0,
        log_multiplier=float(np.log(guess)),
        square_slope=problem.pieces.up * problem.pieces.down,
        travelled=travelled,
        intercept_travelled=spread,
    )


def multiplier(state: State, problem: AffineProblem) -> float:
    """Return gamma: learned for a box, otherwise profiled from the policy and E[p^2]."""
    if problem.boxed:
        held, _ = holding_multiplier(state.theta, problem)
        return float(np.exp(state.log_multiplier)) + (1.0 + HOLDING_SHARE) * held
    reach = problem.reach(state.theta)
    if problem.order == 1:
        return problem.pieces.steepest * reach
    if problem.radius == 0.0:
        return 0.0
    return float(np.sqrt(state.square_slope)) * reach / (2.0 * problem.radius)


def holding_multiplier(theta: FloatArray, problem: AffineProblem) -> tuple[float, FloatArray]:
    """Return the smallest multiplier that holds the adversary in an open box, and its gradient.

    For order 1 a move along theta over the columns whose side is open gains |w| ||theta|| for each
    unit of transport, however far it goes (the outcome |w| / kappa). Below that the supremum is
    infinite. For order 2 any positive multiplier holds.
    """
    smallest, gradient = 0.0, np.zeros_like(theta)
    if problem.order == 2:
        return smallest, gradient
    low_y, high_y = problem.outcome_bounds
    for slope in (problem.pieces.up, -problem.pieces.down):
        open_side = np.isinf(np.where(slope * theta > 0, problem.upper, problem.lower))
        escaping = np.where(problem.movable & open_side, theta, 0.0)
        norm = float(np.linalg.norm(escaping))
        if abs(slope) * norm > smallest:
            smallest, gradient = abs(slope) * norm, abs(slope) / norm * escaping
        outcome_open = np.isinf(low_y if slope > 0 else high_y)
        if outcome_open and abs(slope) * problem.outcome_pull > smallest:
            smallest, gradient = abs(slope) * problem.outcome_pull, np.zeros_like(theta)
    return smallest, gradient


def update(state: State, sample: Sample, problem: AffineProblem) -> tuple[State, Info]:
    """Take one step of DA-SGD: move the sample adversarially, step theta, t and gamma.

    Parameters
    ----------
    state
        Where the method stands; it is not changed.
    sample
        (x, y) drawn from the nominal, or the newest pair of a stream, in scaled units.
    problem
        The geometry: slopes, radius, order, support. Its rows are not looked at.
    """
    x, y = sample
    theta, intercept = state.theta, state.intercept
    gamma = multiplier(state, problem)
    row = replace(problem, contexts=x[None, :], outcomes=np.array([y]), weights=np.ones(1))
    # With theta = 0 or radius = 0 there is nothing to gain from a move.
    moves = gamma > 0.0 and problem.radius > 0.0
    answer = best_response(row, theta, intercept, gamma) if moves else stay(row, theta, intercept)
    slope, distance = float(answer.slope[0]), float(answer.distance[0])
    x_adv = x + answer.context_moves[0]

    gradient = slope * x_adv
    norm = float(np.linalg.norm(theta[problem.movable]))
    if problem.order == 1 and not problem.boxed and norm > 0.0 and norm >= problem.outcome_pull:
        # The multiplier G ||theta|| is part of theta's own cost; samples stay where they are.
        price = problem.radius * problem.pieces.steepest / norm
        gradient = gradient + price * np.where(problem.movable, theta, 0.0)
    if problem.boxed:
        # The part of the multiplier that theta itself dictates is part of theta's cost, too.
        _, hold = holding_multiplier(theta, problem)
        left = problem.radius**problem.order - distance
        gradient = gradient + (1.0 + HOLDING_SHARE) * left * hold
    squares = state.squares + float(gradient @ gradient)
    stepped = theta - state.travelled / np.sqrt(squares + 1e-300) * gradient

    intercept_squares = state.intercept_squares + slope**2
    if problem.intercept:
        intercept -= state.intercept_travelled / np.sqrt(intercept_squares + 1e-300) * slope

    log_multiplier, multiplier_squares = state.log_multiplier, state.multiplier_squares
    if problem.boxed:
        pull = float(np.exp(log_multiplier)) * (problem.radius**problem.order - distance)
        multiplier_squares += pull**2
        log_multiplier -= LOG_STEP * pull / np.sqrt(multiplier_squares + 1e-300)
    rate = max(1.0 / (state.steps + PRIOR_SLOPES), 1.0 / SLOPE_WINDOW)
    return State(
        theta=stepped,
        intercept=intercept,
        start=state.start,
        log_multiplier=log_multiplier,
        square_slope=state.square_slope + rate * (slope**2 - state.square_slope),
        travelled=max(state.travelled, float(np.linalg.norm(stepped))),
        intercept_travelled=max(state.intercept_travelled, abs(intercept - state.start)),
        squares=squares,
        intercept_squares=intercept_squares,
        multiplier_squares=multiplier_squares,
        steps=state.steps + 1,
    ), Info(slope, distance, gamma, x_adv, y + float(answer.outcome_moves[0]))


@dataclass(frozen=True, eq=False)
class MemoryState:
    """All that the next step of DA-SGD with memory needs to know.

    Attributes
    ----------
    coordinates
        The policy in canonical coordinates.
    slopes
        The slope at which each row was last seen.
    gradient
        sum_i w_i u_i x_i, kept up to date.
    mean_slope
        sum_i w_i u_i, kept up to date.
    """

    coordinates: FloatArray
    slopes: FloatArray
    gradient: FloatArray
    mean_slope: float


def memory_update(
    state: MemoryState,
    row: int,
    problem: AffineProblem,
    form: Canonical,
    step_sizes: tuple[FloatArray, FloatArray],
) -> MemoryState:
    """Take one step of DA-SGD with memory; the formula of ``engines.memory``.

    ``step_sizes`` is (one for each coordinate, one for each row).
    """
    primal, dual = step_sizes
    x, theta = form.rows[row], state.coordinates
    price, shift = _price_and_shift(state, problem, form)
    residual = float(x @ theta) - problem.outcomes[row] - shift
    proposal = state.slopes[row] + dual[row] * residual
    slope = float(np.clip(proposal, -problem.pieces.down, problem.pieces.up))
    news = slope - state.slopes[row]
    gradient = state.gradient + problem.weights[row] * news * x

    prices = np.where(np.arange(len(theta)) < form.n_priced, price, 0.0)
    if (primal * prices).max(initial=0.0) < STIFF_SHARE:
        stepped = theta - primal * (gradient + news * x + prices * theta)
    else:  # near theta = 0 the norm is stiff: treat it implicitly
        stepped = (theta - primal * (gradient + news * x)) / (1.0 + primal * prices)
    slopes = state.slopes.copy()
    slopes[row] = slope
    return MemoryState(stepped, slopes, gradient, state.mean_slope + problem.weights[row] * news)


def _price_and_shift(
    state: MemoryState, problem: AffineProblem, form: Canonical
) -> tuple[float, float]:
    """Return rho C / N, the pull of the norm on theta, and the kink's shift (b - h) q / 4."""
    up, down, pull = problem.pieces.up, problem.pieces.down, problem.outcome_pull
    norm = float(np.linalg.norm(state.coordinates[: form.n_priced]))
    tiny = 1e-150
    if problem.order == 1:
        share = 1.0
        if pull > 0.0:  # the price sets in at ||theta|| = 1/kappa, where it may take any share
            share = float(np.clip(0.5 + (norm / pull - 1.0) / SPHERE_WIDTH, 0.0, 1.0))
        return share * problem.radius * max(up, down) / (norm + tiny), 0.0
    reach = float(np.sqrt(norm**2 + pull))
    if form.spans_constant:  # the shift is part of the free constant
        return problem.radius * float(np.sqrt(up * down)) / (reach + tiny), 0.0
    square = max(up * down + (up - down) * state.mean_slope, min(up, down) ** 2)
    constant = float(np.sqrt(square))
    shift = (down - up) * problem.radius * reach / (2.0 * constant)
    return problem.radius * constant / (reach + tiny), shift
