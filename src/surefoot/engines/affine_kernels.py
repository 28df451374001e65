"""DA-SGD for affine policies and piecewise linear costs, compiled: draw, move, step.

Step sizes need no tuning: each block (theta, intercept) steps by the distance it has travelled over
the root of its summed squared gradients (distance over gradients, Ivgi et al. 2023), the
log-multiplier by AdaGrad. ``tests.oracles.affine_twin`` is the formula, slow and readable.

Columns come movable first. ``geometry`` is one record of ``GEOMETRY``; ``numbers`` has a record of
``NUMBERS`` for each product, updated in place.
"""

import numpy as np

from surefoot.engines.affine_moves import best_line, box_move, cost_slope, gradient_move, held_from
from surefoot.engines.compiling import kernel

# The running mean of squared slopes starts as if this many slopes had been seen...
PRIOR_SLOPES = 10.0
# ...and never averages over more than this many, so that it can follow a moving policy.
SLOPE_WINDOW = 10_000.0
# A step of the log-multiplier: this many units over the root of its summed squared gradients.
LOG_STEP = 1.0
# In a box that is open on a side, the multiplier of order 1 stays this share above the one at which
# the adversary could leave for infinity.
HOLDING_SHARE = 1e-6
# Policies are averaged once in this many steps: neighbours are too alike to count each.
AVERAGE_EVERY = 16

# How samples move; ``movable`` is how many leading columns may move, ``batch`` the samples of a step,
# and ``inner_steps`` zero for the exact move.
GEOMETRY = np.dtype(
    [("radius", "f8"), ("inverse_kappa", "f8"), ("smoothing", "f8"), ("steepest", "f8"),
     ("order", "i8"), ("movable", "i8"), ("intercept", "i8"), ("boxed", "i8"), ("batch", "i8"),
     ("inner_steps", "i8")]
)  # fmt: skip
# Where a product stands beside its parameters: the multiplier's logarithm and the running mean of
# squared slopes, distances travelled (numerators of the step sizes) and summed squared gradients
# (denominators). ``spread`` is how far outcomes vary: the first distance, once a context varies.
NUMBERS = np.dtype(
    [(name, "f8") for name in (
        "intercept", "start", "spread", "log_multiplier", "square_slope", "travelled",
        "intercept_travelled", "squares", "intercept_squares", "multiplier_squares", "steps",
        "averaged", "averaged_intercept", "mean_intercept",
    )]
)  # fmt: skip


@kernel(fastmath=True, inline=True)
def _step_intercept(own, slope, with_intercept):
    """Step the intercept by the distance it has travelled over its summed squared gradients."""
    own.intercept_squares += slope * slope
    if with_intercept:
        scale = np.sqrt(own.intercept_squares + 1e-300)
        own.intercept -= own.intercept_travelled / scale * slope
        own.intercept_travelled = max(own.intercept_travelled, abs(own.intercept - own.start))


@kernel(fastmath=True, inline=True)
def _count_slope(own, square):
    """Take a squared slope into the running mean, and count the step."""
    rate = max(1.0 / (own.steps + PRIOR_SLOPES), 1.0 / SLOPE_WINDOW)
    own.square_slope += rate * (square - own.square_slope)
    own.steps += 1.0


@kernel(fastmath=True, inline=True)
def _first_distance(own, norm, count):
    """Set the first distance of theta when a context first differs from zero: never on a floor."""
    if own.travelled == 0.0 and norm > 0.0:
        own.travelled = own.spread / np.sqrt(max(norm, float(count)))


@kernel(fastmath=True, inline=True)
def _line(residual, k, two, first, last, apart, slopes, intercepts, smoothing):
    """``best_line``, of two sharp lines without a look at memory."""
    if two:
        return last if (last - first) * (residual + 0.5 * k * (last + first)) + apart >= 0.0 else first
    return best_line(residual, k, slopes, intercepts, smoothing)


@kernel(inline=True)
def _constants(g, slopes, intercepts):
    """Return what no step changes, as numbers: those of a record are read anew after each write."""
    two, apart = slopes.shape[0] == 2 and g.smoothing == 0.0, intercepts[-1] - intercepts[0]
    step = g.order, g.radius, g.inverse_kappa, g.smoothing, g.steepest, g.intercept
    return (*step, two, slopes[0], slopes[-1], apart)


@kernel(fastmath=True, inline=True)
def _free_step(own, residual, movable_dot, squared, norm, size, constants, slopes, intercepts):
    """Advance a product's numbers by one row of a free support; return its slope and theta's step.

    The step is keep * theta + push * row where columns may move, theta + push * row elsewhere.
    """
    order, rho, inverse_kappa, smoothing, steepest, with_intercept, two, low, high, apart = constants
    # The slope p of the moved sample and theta's own coefficient: gradient = p x + own theta.
    k_move = 0.0
    itself = 0.0
    gamma = 0.0
    if order == 1:
        length = np.sqrt(squared)
        if length > 0.0 and length >= inverse_kappa:
            itself = rho * steepest / length
    elif rho > 0.0 and squared + inverse_kappa > 0.0:
        gamma = np.sqrt(own.square_slope * (squared + inverse_kappa)) / (2.0 * rho)
        k_move = (squared + inverse_kappa) / (2.0 * gamma)
    slope = _line(residual, k_move, two, low, high, apart, slopes, intercepts, smoothing)
    if gamma > 0.0:
        itself = slope * slope / (2.0 * gamma)
    _first_distance(own, norm, size)
    own.squares += max(
        slope * slope * norm + 2.0 * slope * itself * movable_dot + itself * itself * squared, 0.0
    )
    step = own.travelled / np.sqrt(own.squares + 1e-300)
    _step_intercept(own, slope, with_intercept)
    _count_slope(own, slope * slope)
    return slope, 1.0 - step * itself, -step * slope


@kernel(fastmath=True)
def fused_steps(
    rows, outcomes, norms, draws, slopes, intercepts, geometry, theta, own, origin, average, slope_sums,
    visits,
):  # fmt: skip
    """One step per draw for a free support: axpy with this row and dot with the next, in one pass."""
    size = theta.shape[0]
    count = draws.shape[0]
    g = geometry[0]
    n_movable, constants = g.movable, _constants(g, slopes, intercepts)
    movable_dot = 0.0
    frozen_dot = 0.0
    squared = 0.0
    for j in range(n_movable):
        movable_dot += rows[draws[0], j] * theta[j]
        squared += theta[j] * theta[j]
    for j in range(n_movable, size):
        frozen_dot += rows[draws[0], j] * theta[j]
    for k in range(count):
        i = draws[k]
        following = draws[k + 1] if k + 1 < count else draws[0]
        residual = movable_dot + frozen_dot + own.intercept - outcomes[i]
        slope, keep, push = _free_step(
            own, residual, movable_dot, squared, norms[i], size, constants, slopes, intercepts
        )
        slope_sums[i] += slope
        visits[i] += 1
        movable_dot = 0.0
        squared = 0.0
        far = 0.0
        for j in range(n_movable):
            value = keep * theta[j] + push * rows[i, j]
            theta[j] = value
            squared += value * value
            far += (value - origin[j]) * (value - origin[j])
            movable_dot += rows[following, j] * value
        frozen_dot = 0.0
        for j in range(n_movable, size):
            value = theta[j] + push * rows[i, j]
            theta[j] = value
            far += (value - origin[j]) * (value - origin[j])
            frozen_dot += rows[following, j] * value
        own.travelled = max(own.travelled, np.sqrt(far))
        if k % AVERAGE_EVERY == 0:
            own.averaged += 1.0
            own.averaged_intercept += own.intercept
            for j in range(size):
                average[j] += theta[j]


@kernel(inline=True)
def one_step(row, outcome, norm, g, slopes, intercepts, theta, own):
    """Take the step of one row for a free support, from an origin of zero.

    Swallowed by the caller: handing over arrays would take as long as the step.
    """
    size = theta.shape[0]
    movable_dot = 0.0
    frozen_dot = 0.0
    squared = 0.0
    for j in range(g.movable):
        movable_dot += row[j] * theta[j]
        squared += theta[j] * theta[j]
    for j in range(g.movable, size):
        frozen_dot += row[j] * theta[j]
    residual = movable_dot + frozen_dot + own.intercept - outcome
    _, keep, push = _free_step(
        own, residual, movable_dot, squared, norm, size, _constants(g, slopes, intercepts), slopes,
        intercepts,
    )  # fmt: skip
    far = 0.0
    for j in range(size):
        theta[j] = (keep if j < g.movable else 1.0) * theta[j] + push * row[j]
        far += theta[j] * theta[j]
    own.travelled = max(own.travelled, np.sqrt(far))


@kernel(reassociate=True)
def _move(
    x, y, low_y, high_y, theta, residual, gamma, squared, slopes, intercepts, lower, upper, g,
    move, other,
):  # fmt: skip
    """Write the best move of one row into ``move``; return the slope there and the distance."""
    n_movable = g.movable
    if gamma <= 0.0 or g.radius == 0.0:
        move[:] = 0.0
        return best_line(residual, 0.0, slopes, intercepts, g.smoothing), 0.0
    if g.inner_steps > 0:
        moved, distance = gradient_move(
            x, theta, residual, gamma, g.order, slopes, intercepts, g.smoothing, lower, upper,
            n_movable, g.inner_steps, move,
        )  # fmt: skip
        return cost_slope(moved, slopes, intercepts, g.smoothing), distance
    if not g.boxed:
        squared_norm = squared + g.inverse_kappa
        k = squared_norm / (2.0 * gamma) if g.order == 2 else 0.0
        slope = best_line(residual, k, slopes, intercepts, g.smoothing)
        pace = slope / (2.0 * gamma) if g.order == 2 else 0.0
        for j in range(n_movable):
            move[j] = pace * theta[j]
        move[n_movable:] = 0.0
        return slope, pace * pace * squared_norm
    best_slope, best_distance, best_value = 0.0, 0.0, -np.inf
    for line in range(slopes.shape[0] - 1, -1, -1):
        slope = slopes[line]
        gain, outcome_move, distance = box_move(
            x, y, theta, slope, gamma, g.order, g.inverse_kappa, lower, upper, low_y, high_y,
            n_movable, other,
        )  # fmt: skip
        value = slope * (residual + gain - outcome_move) + intercepts[line] - gamma * distance
        if value > best_value:
            best_value, best_slope, best_distance = value, slope, distance
            for j in range(len(move)):  # a slice would compile the text of an error about shapes
                move[j] = other[j]
    return best_slope, best_distance


@kernel(reassociate=True)
def general_steps(
    rows, outcomes, low_y, high_y, draws, slopes, intercepts, lower, upper, geometry,
    theta, own, origin, average, slope_sums, visits,
):  # fmt: skip
    """One step for each ``batch`` draws, for any support and inner step, in place."""
    size = theta.shape[0]
    move = np.zeros(size)
    other = np.zeros(size)
    gradient = np.zeros(size)
    hold = np.zeros(size)
    g = geometry[0]
    n_movable, batch, order, rho, boxed = g.movable, g.batch, g.order, g.radius, g.boxed
    inverse_kappa, budget = g.inverse_kappa, rho**order
    for first in range(0, draws.shape[0] - batch + 1, batch):
        squared = 0.0
        for j in range(n_movable):
            squared += theta[j] * theta[j]
        norm = np.sqrt(squared)
        # Gamma: learned in a box (an open one adds what holds the adversary), profiled otherwise.
        if boxed:
            gamma = np.exp(own.log_multiplier)
            if order == 1:
                gamma += (1.0 + HOLDING_SHARE) * held_from(
                    theta, slopes, inverse_kappa, lower, upper, low_y[draws[first]],
                    high_y[draws[first]], n_movable, hold,
                )  # fmt: skip
        elif order == 1:
            gamma = g.steepest * max(norm, inverse_kappa)
        elif rho == 0.0:
            gamma = 0.0
        else:
            gamma = np.sqrt(own.square_slope * (squared + inverse_kappa)) / (2.0 * rho)
        gradient[:] = 0.0
        mean_slope = 0.0
        mean_distance = 0.0
        mean_square = 0.0
        mean_norm = 0.0
        for k in range(first, first + batch):
            i = draws[k]
            residual = own.intercept - outcomes[i]
            row_norm = 0.0
            for j in range(size):
                residual += rows[i, j] * theta[j]
                row_norm += rows[i, j] * rows[i, j]
            slope, distance = _move(
                rows[i], outcomes[i], low_y[i], high_y[i], theta, residual, gamma, squared, slopes,
                intercepts, lower, upper, g, move, other,
            )  # fmt: skip
            for j in range(size):
                gradient[j] += slope * (rows[i, j] + move[j]) / batch
            mean_slope += slope / batch
            mean_distance += distance / batch
            mean_square += slope * slope / batch
            mean_norm += row_norm / batch
            slope_sums[i] += slope
            visits[i] += 1
        if order == 1 and not boxed and norm > 0.0 and norm >= inverse_kappa:
            for j in range(n_movable):
                gradient[j] += rho * g.steepest / norm * theta[j]
        if order == 1 and boxed:
            for j in range(n_movable):
                gradient[j] += (1.0 + HOLDING_SHARE) * (budget - mean_distance) * hold[j]
        _first_distance(own, mean_norm, size)
        _step_theta(theta, gradient, own, origin)
        _step_intercept(own, mean_slope, g.intercept)
        if boxed:
            _step_multiplier(own, budget - mean_distance)
        _count_slope(own, mean_square)
        if (first // batch) % AVERAGE_EVERY == 0:
            own.averaged += 1.0
            own.averaged_intercept += own.intercept
            for j in range(size):
                average[j] += theta[j]


@kernel(reassociate=True, inline=True)
def _step_theta(theta, gradient, own, origin):
    """Step theta by the distance it has travelled over its summed squared gradients."""
    square = 0.0
    for j in range(theta.shape[0]):
        square += gradient[j] * gradient[j]
    own.squares += square
    step = own.travelled / np.sqrt(own.squares + 1e-300)
    far = 0.0
    for j in range(theta.shape[0]):
        theta[j] -= step * gradient[j]
        far += (theta[j] - origin[j]) * (theta[j] - origin[j])
    own.travelled = max(own.travelled, np.sqrt(far))


@kernel(inline=True)
def _step_multiplier(own, left):
    """Step the learned log-multiplier by what the budget has left."""
    derivative = np.exp(own.log_multiplier) * left
    own.multiplier_squares += derivative * derivative
    own.log_multiplier -= LOG_STEP * derivative / np.sqrt(own.multiplier_squares + 1e-300)


@kernel(inline=True)
def affine_steps(
    rows, outcomes, low_y, high_y, norms, draws, slopes, intercepts, lower, upper, geometry,
    theta, numbers, product, origin, average, slope_sums, visits,
):  # fmt: skip
    """Take one step for each ``batch`` draws: the update of DA-SGD, by the quickest way there is.

    Parameters
    ----------
    rows, outcomes, low_y, high_y, norms
        Contexts (rows, columns), outcomes and their bounds, and squared lengths of the contexts.
    draws
        Which rows are drawn, in order.
    slopes, intercepts, lower, upper, geometry
        The lines of the cost, the support of contexts, and the rest of the geometry.
    theta, numbers, product
        Where the product stands; updated in place.
    origin
        Parameters from which the distance travelled counts.
    average, slope_sums, visits
        Sums of policies, and of slopes and draws of each row; added to in place.
    """
    g = geometry[0]
    own = numbers[product]
    if g.boxed or g.batch > 1 or g.inner_steps > 0:
        general_steps(
            rows, outcomes, low_y, high_y, draws, slopes, intercepts, lower, upper, geometry,
            theta, own, origin, average, slope_sums, visits,
        )  # fmt: skip
    else:
        fused_steps(
            rows, outcomes, norms, draws, slopes, intercepts, geometry,
            theta, own, origin, average, slope_sums, visits,
        )  # fmt: skip
