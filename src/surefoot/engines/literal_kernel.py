"""Algorithm 1 of the paper exactly as printed, compiled.

Kept as printed, faults included: the norm of order 1 has no gradient at the start (taken as zero),
``k <= K`` allows K + 1 inner steps, one constant step size each for theta and gamma, and nothing
keeps gamma positive. The one reading that the text leaves open, a vector compared with a number,
is read as its norm.
"""

import numpy as np

from surefoot.engines.compiling import kernel


@kernel(fastmath=True, inline=True)
def kinked_slope(residual, up, down, smoothing):
    """Derivative of the (smoothed) kinked cost; at the kink itself the upper slope."""
    if smoothing > 0.0 and abs(residual) < smoothing:
        return (up + down) / (2.0 * smoothing) * residual + 0.5 * (up - down)
    return up if residual >= 0.0 else -down


@kernel(fastmath=True)
def literal_steps(
    rows, outcomes, draws, up, down, smoothing, rho, order, alpha, beta, eta, inner_steps, epsilon,
    movable, theta, gamma,
):  # fmt: skip
    """Run one step per draw; return gamma and in how many steps it was negative.

    Moves lie along theta, so the K inner steps cost O(K), not O(K s).
    """
    size = theta.shape[0]
    negative = 0
    for k in range(draws.shape[0]):
        i = draws[k]
        decision = 0.0
        squared = 0.0
        for j in range(size):
            decision += rows[i, j] * theta[j]
            squared += movable[j] * theta[j] * theta[j]
        norm = np.sqrt(squared)
        along = 0.0  # the move is along * theta over the movable columns
        inner = 0
        while True:
            slope = kinked_slope(decision + along * squared - outcomes[i], up, down, smoothing)
            if order == 2:
                derivative = slope - 2.0 * gamma * along
            elif along * norm != 0.0:
                derivative = slope - gamma * np.sign(along) / norm
            else:
                derivative = slope
            if abs(derivative) * norm <= epsilon or inner > inner_steps:
                break
            along += eta * derivative
            inner += 1
        slope = kinked_slope(decision + along * squared - outcomes[i], up, down, smoothing)
        distance = (abs(along) * norm) ** order
        for j in range(size):
            theta[j] -= alpha * slope * (rows[i, j] + movable[j] * along * theta[j])
        gamma -= beta * (rho**order - distance)
        if gamma < 0.0:
            negative += 1
    return gamma, negative
