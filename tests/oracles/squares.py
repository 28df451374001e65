"""Least squares in a ball of order 2, by a program in CVXPY that knows only what one row can lose.

Moving a row by t along the policy's slope changes its residual r to r + N t at a price of gamma t^2. The
most that gains is r^2 / (1 / w - N^2 / gamma) where gamma > w N^2, and without limit elsewhere.
"""

import math

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize_scalar


def worst_square(residuals, weights, norm, radius, weight=1.0):
    """Return the worst expected square of given residuals, by a search for the multiplier."""
    if radius == 0.0 or norm == 0.0:
        return weight * float(weights @ residuals**2)

    def dual(logarithm):
        gamma = weight * norm**2 * (1.0 + math.exp(logarithm))
        return gamma * radius**2 + float(weights @ residuals**2) / (1 / weight - norm**2 / gamma)

    return minimize_scalar(dual, bounds=(-30.0, 30.0), options={"xatol": 1e-10}, method="bounded").fun


def best_worst_square(X, y, weights, radius, *, weight=1.0, still=0.0, moving=None, intercept=True):
    """Return the least worst case of all linear policies; ``still`` is 1 / sqrt(kappa)."""
    n, s = X.shape
    moving = np.ones(s, dtype=bool) if moving is None else moving
    theta, constant, gamma, q = cp.Variable(s), cp.Variable(), cp.Variable(nonneg=True), cp.Variable()
    residuals = X @ theta - y + (constant if intercept else 0.0)
    if radius == 0.0:
        problem = cp.Problem(cp.Minimize(weight * (weights @ cp.square(residuals))))
    else:
        sizes = [cp.quad_over_lin(residuals[i], 1 / weight - q) for i in range(n)]
        slope = cp.hstack([theta[np.flatnonzero(moving)], still])
        within = [cp.quad_over_lin(slope, gamma) <= q]
        problem = cp.Problem(cp.Minimize(gamma * radius**2 + weights @ cp.hstack(sizes)), within)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)
