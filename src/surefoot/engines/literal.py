"""Algorithm 1 of the paper exactly as printed: a readable twin and its kernel.

Kept as printed, faults included: the norm of order 1 has no gradient at the start (taken as zero),
``k <= K`` allows K + 1 inner steps, one constant step size each for theta and gamma, and nothing
keeps gamma positive. The one reading that the text leaves open, a vector compared with a number,
is read as its norm.
"""

import numpy as np

from surefoot.engines.compiling import kernel
from surefoot.engines.moves import cost_slope
from surefoot.typing import FloatArray


def literal_update(
    theta: FloatArray,
    gamma: float,
    sample: tuple[FloatArray, float],
    *,
    slopes: tuple[float, float, float],
    radius: float,
    order: int,
    step_sizes: tuple[float, float, float],
    inner_steps: int,
    epsilon: float,
    movable: FloatArray,
) -> tuple[FloatArray, float]:
    """Take one step of Algorithm 1 for z = theta'x; ``movable`` is 0 for columns held still.

    ``slopes`` is (h, b, delta) and ``step_sizes`` is (alpha, beta, eta).
    """
    up, down, smoothing = slopes
    alpha, beta, eta = step_sizes
    x, y = sample
    x_adv = x.copy()

    def ascent() -> FloatArray:
        move = x_adv - x
        slope = cost_slope(theta @ x_adv - y, up, down, smoothing)
        norm = np.linalg.norm(move)
        transport = 2.0 * move if order == 2 else move / norm if norm > 0 else np.zeros_like(move)
        return np.asarray(movable * (slope * theta - gamma * transport))

    k = 0
    gradient = ascent()
    while np.linalg.norm(gradient) > epsilon and k <= inner_steps:
        x_adv = x_adv + eta * gradient
        k += 1
        gradient = ascent()
    distance = float(np.linalg.norm(x_adv - x)) ** order
    slope = cost_slope(theta @ x_adv - y, up, down, smoothing)
    return theta - alpha * slope * x_adv, gamma - beta * (radius**order - distance)


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
            slope = cost_slope(decision + along * squared - outcomes[i], up, down, smoothing)
            if order == 2:
                pull = slope - 2.0 * gamma * along
            elif along * norm != 0.0:
                pull = slope - gamma * np.sign(along) / norm
            else:
                pull = slope
            if abs(pull) * norm <= epsilon or inner > inner_steps:
                break
            along += eta * pull
            inner += 1
        slope = cost_slope(decision + along * squared - outcomes[i], up, down, smoothing)
        distance = (abs(along) * norm) ** order
        for j in range(size):
            theta[j] -= alpha * slope * (rows[i, j] + movable[j] * along * theta[j])
        gamma -= beta * (rho**order - distance)
        if gamma < 0.0:
            negative += 1
    return gamma, negative
