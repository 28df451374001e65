"""Convex weights of several decisions, by what their average would have cost."""

import math

import numpy as np

from surefoot.engines.compiling import kernel

# Steps shrink with the square root of their number, from a change of the logarithms by this much.
FIRST_STEP, LARGEST_STEP = 0.5, 0.2
TINY = 1e-12


@kernel(reassociate=True)
def exponentiated_gradient(decisions, outcomes, shares, slopes, kinks, prior, strength, steps):
    """Return weights w that minimise strength * mean cost(D w) + KL(w | prior).

    Mirror descent on the simplex with shrinking steps; the average of its second half.

    Parameters
    ----------
    decisions
        D, shape (rows, members).
    outcomes, shares
        Shape (rows,); shares sum to one.
    slopes, kinks
        Of the cost of r = z - y: its lines from left to right, and where they meet.
    prior
        Positive weights that sum to one.
    strength
        How much the cost counts.
    steps
        How many.
    """
    n, size = decisions.shape
    first = np.log(prior)
    logs, weights, total, gradient = first.copy(), prior.copy(), np.zeros(size), np.empty(size)
    # Members one after the other, all rows of one at once: sums over rows run in parallel lanes.
    by_member, residuals, pushes = np.ascontiguousarray(decisions.T), np.empty(n), np.empty(n)
    for step in range(steps):
        for i in range(n):
            residuals[i] = -outcomes[i]
        for j in range(size):
            for i in range(n):
                residuals[i] += by_member[j, i] * weights[j]
        for i in range(n):
            slope = slopes[0]
            for line in range(len(kinks)):
                slope = slopes[line + 1] if residuals[i] >= kinks[line] else slope
            pushes[i] = shares[i] * slope
        middle = 0.0
        for j in range(size):
            gradient[j] = 0.0
            for i in range(n):
                gradient[j] += pushes[i] * by_member[j, i]
            middle += gradient[j] * weights[j]
        steepest = TINY
        for j in range(size):
            gradient[j] = strength * (gradient[j] - middle)
            steepest = max(steepest, abs(gradient[j]))
        length = min(FIRST_STEP / math.sqrt(1.0 + step) / steepest, LARGEST_STEP)
        most, whole = -np.inf, 0.0
        for j in range(size):
            logs[j] = (1.0 - length) * logs[j] + length * (first[j] - gradient[j])
            most = max(most, logs[j])
        for j in range(size):
            logs[j] -= most
            weights[j] = math.exp(logs[j])
            whole += weights[j]
        for j in range(size):
            weights[j] /= whole
            total[j] += weights[j] if step >= steps // 2 else 0.0
    return total / total.sum()
