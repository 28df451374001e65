"""Adversarial moves of one row, compiled: along theta, inside a box, or by proximal gradient steps."""

import numpy as np

from surefoot.engines.compiling import kernel


@kernel(fastmath=True, inline=True)
def best_line(residual, k, slopes, intercepts, smoothing):
    """Slope at the global maximiser for order 2; see ``ambiguity.moves.order_two_slope``."""
    last = slopes.shape[0] - 1
    if smoothing > 0.0:
        down, up = -slopes[0], slopes[last]
        curvature = (up + down) / (2.0 * smoothing)
        if curvature * k < 1.0:
            middle = 0.5 * (up - down)
            return min(up, max(-down, (curvature * residual + middle) / (1.0 - curvature * k)))
    slope = slopes[last]
    value = slope * residual + intercepts[last] + 0.5 * k * slope * slope
    for line in range(last - 1, -1, -1):
        other = slopes[line] * residual + intercepts[line] + 0.5 * k * slopes[line] * slopes[line]
        if other > value:
            value = other
            slope = slopes[line]
    return slope


@kernel(inline=True)
def cost_slope(residual, slopes, intercepts, smoothing):
    """Derivative of the (smoothed) piecewise linear cost; at a kink the upper slope."""
    return best_line(residual, 0.0, slopes, intercepts, smoothing)


@kernel(reassociate=True)
def box_move(
    x, y, theta, slope, gamma, order, inverse_kappa, lower, upper, low_y, high_y, n_movable, out
):
    """Best move of one row inside the box on a given line of the cost.

    Writes the displacement into ``out``; returns theta'move, the outcome's move and the distance.
    """
    for j in range(n_movable, theta.shape[0]):
        out[j] = 0.0
    pace = 1.0 / (2.0 * gamma)
    if order == 1:
        pace = _order_one_pace(x, theta, slope, gamma, lower, upper, n_movable)
    gain = 0.0
    length = 0.0
    for j in range(n_movable):
        move = min(upper[j] - x[j], max(lower[j] - x[j], pace * slope * theta[j]))
        out[j] = move
        gain += move * theta[j]
        length += move * move
    outcome_move = 0.0
    distance = length if order == 2 else np.sqrt(length)
    if inverse_kappa > 0.0:
        if order == 2:
            outcome_move = min(high_y - y, max(low_y - y, -slope * inverse_kappa / (2.0 * gamma)))
            distance += outcome_move * outcome_move / inverse_kappa
        elif abs(slope) * inverse_kappa > gamma:
            outcome_move = low_y - y if slope > 0 else high_y - y
            distance += abs(outcome_move) / inverse_kappa
    return gain, outcome_move, distance


@kernel()
def _order_one_pace(x, theta, slope, gamma, lower, upper, n_movable):
    """Tau with ||clip(tau slope theta)|| = gamma tau; 0 if the multiplier holds every move."""
    total = 0.0
    for j in range(n_movable):
        total += slope * slope * theta[j] * theta[j]
    if total <= gamma * gamma:
        return 0.0
    stops = np.empty(n_movable)
    for j in range(n_movable):
        push = slope * theta[j]
        room = upper[j] - x[j] if push > 0 else x[j] - lower[j]
        stops[j] = room / abs(push) if push != 0.0 else np.inf
    order = np.argsort(stops)
    held = 0.0
    free = total
    for k in range(n_movable):
        j = order[k]
        slack = gamma * gamma - free
        if slack > 0.0:
            tau = np.sqrt(held / slack)
            if tau <= stops[j]:
                return tau
        if stops[j] == np.inf:
            return np.inf
        square = slope * slope * theta[j] * theta[j]
        free -= square
        held += stops[j] * stops[j] * square
    return np.sqrt(held) / gamma


@kernel()
def held_from(theta, slopes, inverse_kappa, lower, upper, low_y, high_y, n_movable, out):
    """Smallest multiplier of order 1 that holds the adversary where a box is open.

    A move along theta over the columns whose side is open gains |w| ||theta|| for each unit of
    transport, however far it goes (the outcome |w| / kappa). Writes the gradient in theta into ``out``.
    """
    out[:] = 0.0
    smallest = 0.0
    for line in range(slopes.shape[0] - 1, -1, -1):
        slope = slopes[line]
        squared = 0.0
        for j in range(n_movable):
            if (upper[j] if slope * theta[j] > 0.0 else -lower[j]) == np.inf:
                squared += theta[j] * theta[j]
        norm = np.sqrt(squared)
        if abs(slope) * norm > smallest:
            smallest = abs(slope) * norm
            for j in range(n_movable):
                is_open = (upper[j] if slope * theta[j] > 0.0 else -lower[j]) == np.inf
                out[j] = abs(slope) / norm * theta[j] if is_open else 0.0
        if (-low_y if slope > 0.0 else high_y) == np.inf and abs(slope) * inverse_kappa > smallest:
            smallest = abs(slope) * inverse_kappa
            out[:] = 0.0
    return smallest


@kernel(reassociate=True)
def gradient_move(
    x, theta, residual, gamma, order, slopes, intercepts, smoothing, lower, upper, n_movable,
    inner_steps, out,
):  # fmt: skip
    """Move one context by ``inner_steps`` proximal gradient steps, projected on the box.

    Order 2 steps by 1/(2 gamma), the inverse curvature of the transport cost, and so never diverges;
    order 1 treats the norm by its proximal map: v = move + eta grad, move = (1 - eta gamma/||v||)^+ v.
    """
    for j in range(theta.shape[0]):
        out[j] = 0.0
    eta = 1.0 / (2.0 * gamma)
    moved = residual
    for _ in range(inner_steps):
        slope = cost_slope(moved, slopes, intercepts, smoothing)
        length = 0.0
        for j in range(n_movable):
            if order == 2:
                out[j] = eta * slope * theta[j]
            else:
                out[j] += eta * slope * theta[j]
            length += out[j] * out[j]
        keep = 1.0
        if order == 1:
            length = np.sqrt(length)
            keep = max(0.0, 1.0 - eta * gamma / length) if length > 0.0 else 0.0
        moved = residual
        for j in range(n_movable):
            out[j] = min(upper[j] - x[j], max(lower[j] - x[j], keep * out[j]))
            moved += out[j] * theta[j]
    distance = 0.0
    for j in range(n_movable):
        distance += out[j] * out[j]
    return moved, distance if order == 2 else np.sqrt(distance)
