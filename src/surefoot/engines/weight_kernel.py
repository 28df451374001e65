"""Convex weights of several decisions, by what their average would have cost."""

import math

import numpy as np

from surefoot.engines.compiling import kernel

# Steps shrink with the square root of their number, from a change of the logarithms by this much.
FIRST_STEP, LARGEST_STEP = 0.5, 0.2
TINY = 1e-12


@kernel()
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
    logs, weights, total = np.log(prior), prior.copy(), np.zeros(size)
    for step in range(steps):
        gradient = np.zeros(size)
        for i in range(n):
            residual = -outcomes[i]
            for j in range(size):
                residual += decisions[i, j] * weights[j]
            line = 0
            while line < len(kinks) and residual >= kinks[line]:
                line += 1
            for j in range(size):
                gradient[j] += shares[i] * slopes[line] * decisions[i, j]
        gradient = strength * (gradient - gradient @ weights)
        length = min(
            FIRST_STEP / math.sqrt(1.0 + step) / max(np.abs(gradient).max(), TINY), LARGEST_STEP
        )
        logs = (1.0 - length) * logs + length * (np.log(prior) - gradient)
        logs -= logs.max()
        weights = np.exp(logs) / np.exp(logs).sum()
        if step >= steps // 2:
            total += weights
    return total / total.sum()
