"""Algorithm 1 of the paper exactly as printed: the readable twin of ``engines.literal_kernel``."""

import numpy as np

from surefoot.typing import FloatArray


def kinked_slope(residual: float, up: float, down: float, smoothing: float) -> float:
    """Return the derivative of the (smoothed) kinked cost; at the kink itself the upper slope."""
    if abs(residual) < smoothing:
        return (up + down) / (2.0 * smoothing) * residual + 0.5 * (up - down)
    return up if residual >= 0.0 else -down


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
        slope = kinked_slope(float(theta @ x_adv) - y, up, down, smoothing)
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
    slope = kinked_slope(float(theta @ x_adv) - y, up, down, smoothing)
    return theta - alpha * slope * x_adv, gamma - beta * (radius**order - distance)
