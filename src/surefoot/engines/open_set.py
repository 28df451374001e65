"""Steps for ambiguity sets that the kernels do not know: the set itself moves the rows, in NumPy.

One step moves all rows at once: the gradient of the worst case is that of the cost under the worst
distribution (Danskin), and parameters step by distance over gradients, as in the kernels.
"""

import math
from typing import Any

import numpy as np

from surefoot.ambiguity import AffineForm
from surefoot.engines.arrangement import Arrangement
from surefoot.typing import FloatArray


def open_steps(
    form: AffineForm, arrangement: Arrangement, theta: FloatArray, numbers: Any, draws: int
) -> tuple[tuple[FloatArray, float], FloatArray]:
    """Take as many steps as ``draws`` passes over the rows; return average policy and slopes.

    ``theta`` and ``numbers`` are updated in place.
    """
    own, n = numbers[0], len(form.outcomes)
    steps = max(1, math.ceil(draws / n))
    average, average_intercept, slopes = np.zeros_like(theta), 0.0, np.zeros(n)
    for _ in range(steps):
        policy = arrangement.original(theta, float(own["intercept"]))
        adversary = form.adversary(*policy)
        residuals = adversary.contexts @ policy[0] + policy[1] - adversary.outcomes
        slope = adversary.weights * form.pieces.derivative_at(residuals)
        gradient = slope @ arrangement.rows(adversary.contexts)
        total = float(slope.sum())
        own["squares"] += gradient @ gradient
        own["intercept_squares"] += total**2
        if own["squares"] > 0.0:
            theta -= own["travelled"] / math.sqrt(own["squares"]) * gradient
        if form.intercept and own["intercept_squares"] > 0.0:
            pace = own["intercept_travelled"] / math.sqrt(own["intercept_squares"])
            own["intercept"] -= pace * total
        own["travelled"] = max(own["travelled"], float(np.linalg.norm(theta)))
        far = abs(own["intercept"] - own["start"])
        own["intercept_travelled"] = max(own["intercept_travelled"], far)
        own["steps"] += 1.0
        average += theta / steps
        average_intercept += float(own["intercept"]) / steps
        own_rows = adversary.rows >= 0  # the rest of the mass comes from nowhere
        sums, mass = np.zeros(n), np.zeros(n)
        np.add.at(sums, adversary.rows[own_rows], slope[own_rows])
        np.add.at(mass, adversary.rows[own_rows], adversary.weights[own_rows])
        slopes += sums / np.where(mass > 0.0, mass, 1.0) / steps
    return arrangement.original(average, average_intercept), slopes
