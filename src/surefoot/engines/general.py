"""DA-SGD steps for any support, inner step and minibatch, compiled without fusing.

The formulas are those of ``twin.update``; a minibatch steps along the mean of its gradients.
"""

import numpy as np

from surefoot.engines.adaptive import (
    AVERAGED,
    AVERAGED_INTERCEPT,
    INTERCEPT,
    LOG_MULTIPLIER,
    MULTIPLIER_SQUARES,
    SQUARE_SLOPE,
    SQUARES,
    TRAVELLED,
    count_slope,
    order_two_slope,
    step_intercept,
)
from surefoot.engines.compiling import kernel
from surefoot.engines.constants import (
    AVERAGE_EVERY,
    HOLDING_SHARE,
    LOG_STEP,
)
from surefoot.engines.moves import box_move, cost_slope, gradient_move, holding_multiplier


@kernel()
def _answer(
    x, y, theta, residual, gamma, boxed, rho, order, up, down, smoothing, kappa,
    lower, upper, low_y, high_y, n_movable, inner_steps, squared, move, other,
):  # fmt: skip
    """Write the best move of one row into ``move``; return the slope there and the distance."""
    if gamma <= 0.0 or rho == 0.0:
        move[:] = 0.0
        return order_two_slope(residual, 0.0, up, down, smoothing), 0.0
    if inner_steps > 0:
        moved, distance = gradient_move(
            x, theta, residual, gamma, order, up, down, smoothing, lower, upper,
            n_movable, inner_steps, move,
        )  # fmt: skip
        return cost_slope(moved, up, down, smoothing), distance
    if not boxed:
        reach2 = squared + 1.0 / kappa
        k = reach2 / (2.0 * gamma) if order == 2 else 0.0
        slope = order_two_slope(residual, k, up, down, smoothing)
        pace = slope / (2.0 * gamma) if order == 2 else 0.0
        for j in range(n_movable):
            move[j] = pace * theta[j]
        move[n_movable:] = 0.0
        return slope, pace * pace * reach2
    gain, outcome_move, distance = box_move(
        x, y, theta, up, gamma, order, kappa, lower, upper, low_y, high_y, n_movable, move
    )
    value = up * (residual + gain - outcome_move) - gamma * distance
    gain, outcome_move, second = box_move(
        x, y, theta, -down, gamma, order, kappa, lower, upper, low_y, high_y, n_movable, other
    )
    if -down * (residual + gain - outcome_move) - gamma * second > value:
        move[:] = other
        return -down, second
    return up, distance


@kernel(inline=True)
def _multiplier(scalars, squared, up, down, rho, order, kappa, boxed):
    """Gamma: learned in a box (an open one adds what holds the adversary), profiled otherwise."""
    if boxed:
        return np.exp(scalars[LOG_MULTIPLIER])
    if order == 1:
        return max(up, down) * max(np.sqrt(squared), 1.0 / kappa)
    if rho == 0.0:
        return 0.0
    return np.sqrt(scalars[SQUARE_SLOPE] * (squared + 1.0 / kappa)) / (2.0 * rho)


@kernel(inline=True)
def _step_theta(theta, gradient, scalars):
    """Step theta by the distance it has travelled over its summed squared gradients."""
    for j in range(theta.shape[0]):
        scalars[SQUARES] += gradient[j] * gradient[j]
    step = scalars[TRAVELLED] / np.sqrt(scalars[SQUARES] + 1e-300)
    far = 0.0
    for j in range(theta.shape[0]):
        theta[j] -= step * gradient[j]
        far += theta[j] * theta[j]
    scalars[TRAVELLED] = max(scalars[TRAVELLED], np.sqrt(far))


@kernel(inline=True)
def _step_multiplier(scalars, left):
    """Step the learned log-multiplier by what the budget has left."""
    pull = np.exp(scalars[LOG_MULTIPLIER]) * left
    scalars[MULTIPLIER_SQUARES] += pull * pull
    scale = np.sqrt(scalars[MULTIPLIER_SQUARES] + 1e-300)
    scalars[LOG_MULTIPLIER] -= LOG_STEP * pull / scale


@kernel()
def general_steps(
    rows, outcomes, draws, batch, up, down, smoothing, rho, order, kappa, n_movable,
    with_intercept, boxed, lower, upper, low_y, high_y, inner_steps,
    theta, scalars, average, slope_sums, visits,
):  # fmt: skip
    """One step for each ``batch`` draws, updating theta and the running numbers in place."""
    size = theta.shape[0]
    move = np.zeros(size)
    other = np.zeros(size)
    gradient = np.zeros(size)
    hold = np.zeros(size)
    budget = rho**order
    for first in range(0, draws.shape[0] - batch + 1, batch):
        squared = 0.0
        for j in range(n_movable):
            squared += theta[j] * theta[j]
        norm = np.sqrt(squared)
        gamma = _multiplier(scalars, squared, up, down, rho, order, kappa, boxed)
        if boxed and order == 1:
            gamma += (1.0 + HOLDING_SHARE) * holding_multiplier(
                theta, up, down, kappa, lower, upper, low_y, high_y, n_movable, hold
            )
        gradient[:] = 0.0
        mean_slope = 0.0
        mean_distance = 0.0
        mean_square = 0.0
        for k in range(first, first + batch):
            i = draws[k]
            residual = scalars[INTERCEPT] - outcomes[i]
            for j in range(size):
                residual += rows[i, j] * theta[j]
            slope, distance = _answer(
                rows[i], outcomes[i], theta, residual, gamma, boxed, rho, order, up, down,
                smoothing, kappa, lower, upper, low_y, high_y, n_movable, inner_steps, squared,
                move, other,
            )  # fmt: skip
            for j in range(size):
                gradient[j] += slope * (rows[i, j] + move[j]) / batch
            mean_slope += slope / batch
            mean_distance += distance / batch
            mean_square += slope * slope / batch
            slope_sums[i] += slope
            visits[i] += 1
        if order == 1 and not boxed and norm > 0.0 and norm >= 1.0 / kappa:
            for j in range(n_movable):
                gradient[j] += rho * max(up, down) / norm * theta[j]
        if order == 1 and boxed:
            for j in range(n_movable):
                gradient[j] += (1.0 + HOLDING_SHARE) * (budget - mean_distance) * hold[j]
        _step_theta(theta, gradient, scalars)
        step_intercept(scalars, mean_slope, with_intercept)
        if boxed:
            _step_multiplier(scalars, budget - mean_distance)
        count_slope(scalars, mean_square)
        if (first // batch) % AVERAGE_EVERY == 0:
            scalars[AVERAGED] += 1.0
            scalars[AVERAGED_INTERCEPT] += scalars[INTERCEPT]
            for j in range(size):
                average[j] += theta[j]
