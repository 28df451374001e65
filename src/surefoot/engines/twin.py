"""The updates as formulas: slow, pure NumPy twins of the compiled kernels.

``update(state, sample, problem) -> (state, info)`` is the one step of DA-SGD. Fitting, learning from
a stream and every kernel do exactly this; tests hold the kernels to these functions.
"""

from dataclasses import dataclass, replace

import numpy as np

from surefoot.certificates import best_response
from surefoot.engines.constants import LOG_STEP, PRIOR_SLOPES, SLOPE_WINDOW
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
        Logarithm of gamma; used where the multiplier has no closed form (a box support).
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
    spread = max(cost / problem.pieces.steepest, 1e-12)
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
        return float(np.exp(state.log_multiplier))
    reach = problem.reach(state.theta)
    if problem.order == 1:
        return problem.pieces.steepest * reach
    return float(np.sqrt(state.square_slope)) * reach / (2.0 * problem.radius)


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
    if gamma > 0.0 and problem.radius > 0.0:
        answer = best_response(row, theta, intercept, gamma)
    else:  # theta = 0 or radius = 0: there is nothing to gain from a move
        answer = best_response(replace(row, order=1, lower=-np.inf * np.ones(len(x)),
                                       upper=np.inf * np.ones(len(x)), outcome_cost=np.inf),
                               theta, intercept, np.inf)  # fmt: skip
    slope, distance = float(answer.slope[0]), float(answer.distance[0])
    x_adv = x + answer.context_moves[0]

    gradient = slope * x_adv
    norm = float(np.linalg.norm(theta[problem.movable]))
    if problem.order == 1 and not problem.boxed and norm > 0.0 and norm >= problem.outcome_pull:
        # The multiplier G ||theta|| is part of theta's own cost; samples stay where they are.
        price = problem.radius * problem.pieces.steepest / norm
        gradient = gradient + price * np.where(problem.movable, theta, 0.0)
    squares = state.squares + float(gradient @ gradient)
    stepped = theta - state.travelled / np.sqrt(squares + 1e-300) * gradient

    intercept_squares = state.intercept_squares + slope**2
    if problem.intercept:
        intercept -= state.intercept_travelled / np.sqrt(intercept_squares) * slope

    log_multiplier, multiplier_squares = state.log_multiplier, state.multiplier_squares
    if problem.boxed:
        pull = gamma * (problem.radius**problem.order - distance)
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
