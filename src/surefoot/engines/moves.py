"""Adversarial moves of one row, compiled: exact inside a box, or by proximal gradient steps."""

import numpy as np

from surefoot.engines.compiling import kernel


@kernel(inline=True)
def cost_slope(residual, up, down, smoothing):
    """Derivative of the (smoothed) kinked cost; at the kink itself the upper slope."""
    if smoothing > 0.0 and abs(residual) < smoothing:
        return (up + down) / (2.0 * smoothing) * residual + 0.5 * (up - down)
    return up if residual >= 0.0 else -down


@kernel()
def box_move(x, y, theta, slope, gamma, order, kappa, lower, upper, low_y, high_y, n_movable, out):
    """Best move of one row inside the box for a given slope of the cost.

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
    if order == 2:
        if kappa < np.inf:
            outcome_move = min(high_y - y, max(low_y - y, -slope / (2.0 * gamma * kappa)))
        distance = length
        if outcome_move != 0.0:
            distance += kappa * outcome_move * outcome_move
    else:
        if abs(slope) > gamma * kappa:
            outcome_move = low_y - y if slope > 0 else high_y - y
        distance = np.sqrt(length)
        if outcome_move != 0.0:
            distance += kappa * abs(outcome_move)
    return gain, outcome_move, distance


@kernel()
def _order_one_pace(x, theta, slope, gamma, lower, upper, n_movable):
    """Tau with ||clip(tau slope theta)|| = gamma tau; 0 if the multiplier holds every move."""
    total = 0.0
    for j in range(n_movable):
        total += slope * slope * theta[j] * theta[j]
    if total <= gamma * gamma:
        return 0.0
    reach = np.empty(n_movable)
    for j in range(n_movable):
        pull = slope * theta[j]
        room = upper[j] - x[j] if pull > 0 else x[j] - lower[j]
        reach[j] = room / abs(pull) if pull != 0.0 else np.inf
    order = np.argsort(reach)
    held = 0.0
    free = total
    for k in range(n_movable):
        j = order[k]
        slack = gamma * gamma - free
        if slack > 0.0:
            tau = np.sqrt(held / slack)
            if tau <= reach[j]:
                return tau
        if reach[j] == np.inf:
            return np.inf
        square = slope * slope * theta[j] * theta[j]
        free -= square
        held += reach[j] * reach[j] * square
    return np.sqrt(held) / gamma


@kernel()
def holding_multiplier(theta, up, down, kappa, lower, upper, low_y, high_y, n_movable, out):
    """Smallest multiplier of order 1 that holds the adversary where a box is open.

    Writes its gradient in theta into ``out``; see ``twin.holding_multiplier``.
    """
    out[:] = 0.0
    smallest = 0.0
    for piece in range(2):
        slope = up if piece == 0 else -down
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
        if (-low_y if slope > 0.0 else high_y) == np.inf and abs(slope) / kappa > smallest:
            smallest = abs(slope) / kappa
            out[:] = 0.0
    return smallest


@kernel()
def gradient_move(
    x, theta, residual, gamma, order, up, down, smoothing, lower, upper, n_movable, inner_steps, out,
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
        slope = cost_slope(moved, up, down, smoothing)
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
