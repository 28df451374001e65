"""The update of DA-SGD as a formula: the slow, pure NumPy twin of ``engines.affine_kernels``.

``update(state, sample, form) -> (state, info)`` is the one step. Fitting, learning from a stream and
every kernel do exactly this.
"""

from dataclasses import dataclass, replace

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.ambiguity.moves import best_moves, stay
from surefoot.engines.affine_kernels import HOLDING_SHARE, LOG_STEP, PRIOR_SLOPES, SLOPE_WINDOW
from surefoot.engines.arrangement import Arrangement
from surefoot.typing import FloatArray

Sample = tuple[FloatArray, float]
Bounds = tuple[float, float]


@dataclass(frozen=True, eq=False)
class State:
    """All that the next step needs to know.

    Attributes
    ----------
    theta, intercept
        The policy, in the units of the form.
    start
        Where the intercept began.
    spread
        How far outcomes vary: the first distance of theta, once a context varies.
    log_multiplier
        Logarithm of gamma, or of its excess over the ``holding_multiplier``; used where the
        multiplier has no closed form (a box support).
    square_slope
        Running mean of squared slopes E[p^2], from which gamma is profiled otherwise.
    travelled, intercept_travelled
        Largest distance from the origin and from the start: the numerators of the step sizes.
    squares, intercept_squares, multiplier_squares
        Sums of squared gradients: the denominators.
    steps
        Steps taken.
    """

    theta: FloatArray
    intercept: float
    start: float
    spread: float
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
    """What a person wants to see of one step: the moved sample, its slope, multiplier and distance."""

    slope: float
    distance: float
    multiplier: float
    context: FloatArray
    outcome: float


def arranged(form: WassersteinForm, arrangement: Arrangement) -> WassersteinForm:
    """Return a form in the coordinates of an arrangement, in which the kernels step."""
    rows = arrangement.rows(form.contexts)
    count = rows.shape[1]
    return replace(
        form,
        contexts=rows,
        scale=np.ones(count),
        movable=np.arange(count) < arrangement.n_movable,
        lower=arrangement.bounds(form.lower),
        upper=arrangement.bounds(form.upper),
    )


def initial_state(form: WassersteinForm) -> State:
    """Start at the constant order (at zero without an intercept) with a guess of the scale."""
    decision, _ = form.constant_order()
    cost = float(form.weights @ form.pieces.evaluate(decision - form.outcomes))
    cost -= min(form.pieces.least, 0.0)  # a profit is no size
    # First rows with one and the same outcome say nothing about the scale: guess, and grow from there.
    spread = cost / form.pieces.steepest or 0.01 * max(abs(decision), 1.0)
    size = float(np.sqrt(form.weights @ (form.contexts**2).sum(axis=1)))
    travelled = spread / size if size > 0.0 else 0.0
    log_multiplier = 0.0
    if form.radius > 0.0:
        norm = travelled if size > 0.0 else spread / np.sqrt(form.contexts.shape[1])
        if form.order == 1:
            guess = form.slope_constant * max(norm, form.inverse_kappa)
        else:
            guess = form.slope_constant * max(norm, np.sqrt(form.inverse_kappa)) / (2.0 * form.radius)
        log_multiplier = float(np.log(guess))
    return State(
        theta=np.zeros(form.contexts.shape[1]),
        intercept=decision if form.intercept else 0.0,
        start=decision if form.intercept else 0.0,
        spread=spread,
        log_multiplier=log_multiplier,
        square_slope=form.pieces.up * form.pieces.down,
        travelled=travelled,
        intercept_travelled=spread,
    )


def multiplier(state: State, form: WassersteinForm) -> float:
    """Return gamma: learned for a box, otherwise profiled from the policy and E[p^2]."""
    if form.boxed:
        held, _ = holding_multiplier(state.theta, form)
        return float(np.exp(state.log_multiplier)) + (1.0 + HOLDING_SHARE) * held
    norm = form.dual_norm(state.theta)
    if form.order == 1:
        return form.pieces.steepest * norm
    if form.radius == 0.0:
        return 0.0
    return float(np.sqrt(state.square_slope)) * norm / (2.0 * form.radius)


def holding_multiplier(theta: FloatArray, form: WassersteinForm) -> tuple[float, FloatArray]:
    """Return the smallest multiplier that holds the adversary in an open box, and its gradient.

    For order 1 a move along theta over the columns whose side is open gains |w| ||theta|| for each
    unit of transport, however far it goes (the outcome |w| / kappa). Below that the supremum is
    infinite. For order 2 any positive multiplier holds.
    """
    smallest, gradient = 0.0, np.zeros_like(theta)
    if form.order == 2:
        return smallest, gradient
    for slope in form.pieces.slopes[::-1]:
        open_side = np.isinf(np.where(slope * theta > 0, form.upper, form.lower))
        escaping = np.where(form.movable & open_side, theta, 0.0)
        norm = float(np.linalg.norm(escaping))
        if abs(slope) * norm > smallest:
            smallest, gradient = abs(slope) * norm, abs(slope) / norm * escaping
        outcome_open = np.isinf(form.outcome_lower if slope > 0 else form.outcome_upper).any()
        if outcome_open and abs(slope) * form.inverse_kappa > smallest:
            smallest, gradient = abs(slope) * form.inverse_kappa, np.zeros_like(theta)
    return smallest, gradient


def first_distance(state: State, square: float) -> float:
    """Return how far theta has travelled, or may at first when a context (of this squared length) varies."""
    if state.travelled > 0.0 or square == 0.0:
        return state.travelled
    return state.spread / float(np.sqrt(max(square, len(state.theta))))


def update(
    state: State, sample: Sample, form: WassersteinForm, bounds: Bounds | None = None,
    origin: FloatArray | None = None,
) -> tuple[State, Info]:  # fmt: skip
    """Take one step of DA-SGD: move the sample adversarially, step theta, t and gamma.

    Parameters
    ----------
    state
        Where the method stands; it is not changed.
    sample
        (x, y) drawn from the nominal, or the newest pair of a stream, in the units of the form.
    form
        The geometry: lines, radius, order, support. Its rows are not looked at.
    bounds
        The support of this outcome; None takes that of the form's first row.
    origin
        Parameters from which the distance travelled counts; None is zero.
    """
    x, y = sample
    low, high = (form.outcome_lower[0], form.outcome_upper[0]) if bounds is None else bounds
    theta, intercept = state.theta, state.intercept
    gamma = multiplier(state, form)
    row = replace(
        form, contexts=x[None, :], outcomes=np.array([y]), weights=np.ones(1), offsets=np.zeros(1),
        outcome_lower=np.array([low]), outcome_upper=np.array([high]),
    )  # fmt: skip
    # With theta = 0 or radius = 0 there is nothing to gain from a move.
    moves = gamma > 0.0 and form.radius > 0.0
    answer = best_moves(row, theta, intercept, gamma) if moves else stay(row, theta, intercept)
    slope, distance = float(answer.slope[0]), float(answer.distance[0])
    moved = x + answer.contexts[0]

    gradient = slope * moved
    norm = float(np.linalg.norm(theta[form.movable]))
    if form.order == 1 and not form.boxed and norm > 0.0 and norm >= form.inverse_kappa:
        # The multiplier G ||theta|| is part of theta's own cost; samples stay where they are.
        price = form.radius * form.pieces.steepest / norm
        gradient = gradient + price * np.where(form.movable, theta, 0.0)
    if form.boxed:
        # The part of the multiplier that theta itself dictates is part of theta's cost, too.
        _, hold = holding_multiplier(theta, form)
        gradient = gradient + (1.0 + HOLDING_SHARE) * (form.budget - distance) * hold
    travelled = first_distance(state, float(x @ x))
    squares = state.squares + float(gradient @ gradient)
    stepped = theta - travelled / np.sqrt(squares + 1e-300) * gradient

    intercept_squares = state.intercept_squares + slope**2
    if form.intercept:
        intercept -= state.intercept_travelled / np.sqrt(intercept_squares + 1e-300) * slope

    log_multiplier, multiplier_squares = state.log_multiplier, state.multiplier_squares
    if form.boxed:
        derivative = float(np.exp(log_multiplier)) * (form.budget - distance)
        multiplier_squares += derivative**2
        log_multiplier -= LOG_STEP * derivative / np.sqrt(multiplier_squares + 1e-300)
    rate = max(1.0 / (state.steps + PRIOR_SLOPES), 1.0 / SLOPE_WINDOW)
    return State(
        theta=stepped,
        intercept=intercept,
        start=state.start,
        spread=state.spread,
        log_multiplier=log_multiplier,
        square_slope=state.square_slope + rate * (slope**2 - state.square_slope),
        travelled=max(travelled, float(np.linalg.norm(stepped - (0.0 if origin is None else origin)))),
        intercept_travelled=max(state.intercept_travelled, abs(intercept - state.start)),
        squares=squares,
        intercept_squares=intercept_squares,
        multiplier_squares=multiplier_squares,
        steps=state.steps + 1,
    ), Info(slope, distance, gamma, moved, y + float(answer.outcomes[0]))
