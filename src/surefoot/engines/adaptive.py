"""DA-SGD without memory, compiled: for streams, samplers, boxes and smoothed costs.

Step sizes need no tuning: each block (theta, intercept) steps by the distance it has travelled over
the root of its summed squared gradients (distance over gradients, Ivgi et al. 2023), the
log-multiplier by AdaGrad. ``twin.update`` is the formula; these kernels are that formula fused.

Columns come movable first. ``scalars`` holds the running numbers in the order of the constants.
"""

import numpy as np

from surefoot.engines.compiling import kernel
from surefoot.engines.constants import AVERAGE_EVERY, PRIOR_SLOPES, SLOPE_WINDOW

INTERCEPT, START, LOG_MULTIPLIER, SQUARE_SLOPE, TRAVELLED, INTERCEPT_TRAVELLED = range(6)
SQUARES, INTERCEPT_SQUARES, MULTIPLIER_SQUARES, STEPS = range(6, 10)
AVERAGED, AVERAGED_INTERCEPT = range(10, 12)
N_SCALARS = 12


@kernel(fastmath=True, inline=True)
def order_two_slope(residual, k, up, down, smoothing):
    """Slope at the global maximiser for order 2; see ``certificates.inner.order_two_slope``."""
    middle = 0.5 * (up - down)
    if smoothing > 0.0:
        curvature = (up + down) / (2.0 * smoothing)
        if curvature * k < 1.0:
            return min(up, max(-down, (curvature * residual + middle) / (1.0 - curvature * k)))
    return up if residual + middle * k >= 0.0 else -down


@kernel(fastmath=True, inline=True)
def _free_answer(residual, squared, square_slope, up, down, smoothing, rho, order, pull):
    """Slope p of the moved sample and the pull c of theta on itself: gradient = p x + c theta."""
    if order == 1:
        slope = order_two_slope(residual, 0.0, up, down, smoothing)
        norm = np.sqrt(squared)
        return slope, (rho * max(up, down) / norm if norm > 0.0 and norm >= pull else 0.0)
    reach2 = squared + pull
    if reach2 == 0.0 or rho == 0.0:
        return order_two_slope(residual, 0.0, up, down, smoothing), 0.0
    gamma = np.sqrt(square_slope * reach2) / (2.0 * rho)
    slope = order_two_slope(residual, reach2 / (2.0 * gamma), up, down, smoothing)
    return slope, slope * slope / (2.0 * gamma)


@kernel(fastmath=True, inline=True)
def step_intercept(scalars, slope, with_intercept):
    """Step the intercept by the distance it has travelled over its summed squared gradients."""
    scalars[INTERCEPT_SQUARES] += slope * slope
    if with_intercept:
        scale = np.sqrt(scalars[INTERCEPT_SQUARES] + 1e-300)
        scalars[INTERCEPT] -= scalars[INTERCEPT_TRAVELLED] / scale * slope
        away = abs(scalars[INTERCEPT] - scalars[START])
        scalars[INTERCEPT_TRAVELLED] = max(scalars[INTERCEPT_TRAVELLED], away)


@kernel(fastmath=True, inline=True)
def count_slope(scalars, square):
    """Take a squared slope into the running mean, and count the step."""
    rate = max(1.0 / (scalars[STEPS] + PRIOR_SLOPES), 1.0 / SLOPE_WINDOW)
    scalars[SQUARE_SLOPE] += rate * (square - scalars[SQUARE_SLOPE])
    scalars[STEPS] += 1.0


@kernel(fastmath=True, inline=True)
def _scalar_steps(scalars, slope, gradient_square, with_intercept):
    """Advance all running numbers but theta's distance; return theta's step size."""
    scalars[SQUARES] += gradient_square
    step = scalars[TRAVELLED] / np.sqrt(scalars[SQUARES] + 1e-300)
    step_intercept(scalars, slope, with_intercept)
    count_slope(scalars, slope * slope)
    return step


@kernel(fastmath=True)
def free_steps(
    rows, outcomes, norms, draws, up, down, smoothing, rho, order, pull, n_movable,
    with_intercept, theta, scalars, average, slope_sums, visits,
):  # fmt: skip
    """One step per draw for a free support: axpy with this row and dot with the next, in one pass."""
    size = theta.shape[0]
    count = draws.shape[0]
    movable_dot = 0.0
    frozen_dot = 0.0
    squared = 0.0
    frozen_squared = 0.0
    for j in range(n_movable):
        movable_dot += rows[draws[0], j] * theta[j]
        squared += theta[j] * theta[j]
    for j in range(n_movable, size):
        frozen_dot += rows[draws[0], j] * theta[j]
        frozen_squared += theta[j] * theta[j]
    for k in range(count):
        i = draws[k]
        following = draws[k + 1] if k + 1 < count else draws[0]
        residual = movable_dot + frozen_dot + scalars[INTERCEPT] - outcomes[i]
        slope, own = _free_answer(
            residual, squared, scalars[SQUARE_SLOPE], up, down, smoothing, rho, order, pull
        )
        gradient_square = max(
            slope * slope * norms[i] + 2.0 * slope * own * movable_dot + own * own * squared, 0.0
        )
        step = _scalar_steps(scalars, slope, gradient_square, with_intercept)
        slope_sums[i] += slope
        visits[i] += 1
        keep = 1.0 - step * own
        push = -step * slope
        movable_dot = 0.0
        squared = 0.0
        for j in range(n_movable):
            value = keep * theta[j] + push * rows[i, j]
            theta[j] = value
            squared += value * value
            movable_dot += rows[following, j] * value
        frozen_dot = 0.0
        frozen_squared = 0.0
        for j in range(n_movable, size):
            value = theta[j] + push * rows[i, j]
            theta[j] = value
            frozen_squared += value * value
            frozen_dot += rows[following, j] * value
        scalars[TRAVELLED] = max(scalars[TRAVELLED], np.sqrt(squared + frozen_squared))
        if k % AVERAGE_EVERY == 0:
            scalars[AVERAGED] += 1.0
            scalars[AVERAGED_INTERCEPT] += scalars[INTERCEPT]
            for j in range(size):
                average[j] += theta[j]


@kernel(fastmath=True)
def gram_steps(
    gram, outcomes, draws, up, down, smoothing, rho, order, pull, with_intercept,
    coefficients, decisions, scalars, average, slope_sums, visits,
):  # fmt: skip
    """The same steps when n < s and all columns move: theta = X'a, so keep X theta and rows of XX'.

    ``coefficients`` is a, ``decisions`` is X theta; ``average`` averages a.
    """
    size = decisions.shape[0]
    squared = 0.0
    for j in range(size):
        squared += coefficients[j] * decisions[j]
    squared = max(squared, 0.0)
    for k in range(draws.shape[0]):
        i = draws[k]
        dot = decisions[i]
        slope, own = _free_answer(
            dot + scalars[INTERCEPT] - outcomes[i], squared, scalars[SQUARE_SLOPE],
            up, down, smoothing, rho, order, pull,
        )  # fmt: skip
        norm = gram[i, i]
        gradient_square = max(slope * slope * norm + 2.0 * slope * own * dot + own * own * squared, 0.0)
        step = _scalar_steps(scalars, slope, gradient_square, with_intercept)
        slope_sums[i] += slope
        visits[i] += 1
        keep = 1.0 - step * own
        push = -step * slope
        squared = max(keep * keep * squared + 2.0 * keep * push * dot + push * push * norm, 0.0)
        for j in range(size):
            decisions[j] = keep * decisions[j] + push * gram[i, j]
            coefficients[j] *= keep
        coefficients[i] += push
        scalars[TRAVELLED] = max(scalars[TRAVELLED], np.sqrt(squared))
        if k % AVERAGE_EVERY == 0:
            scalars[AVERAGED] += 1.0
            scalars[AVERAGED_INTERCEPT] += scalars[INTERCEPT]
            for j in range(size):
                average[j] += coefficients[j]
