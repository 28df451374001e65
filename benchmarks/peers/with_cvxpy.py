"""CVXPY with Clarabel: the dual of the robust newsvendor, written by hand."""

from functools import partial

import cvxpy as cp
from worker import BACKORDER, HOLDING, serve


def fit(X, y, radius, order=2):
    n, s = X.shape
    theta, t = cp.Variable(s), cp.Variable()
    costs, gamma = cp.Variable(n), cp.Variable(nonneg=True)
    residuals = X @ theta + t - y
    gain = 0.0 if order == 1 else cp.Variable()  # >= ||theta||^2 / (4 gamma)
    constraints = [
        costs >= HOLDING * residuals + HOLDING**2 * gain,
        costs >= -BACKORDER * residuals + BACKORDER**2 * gain,
        max(BACKORDER, HOLDING) * cp.norm(theta, 2) <= gamma
        if order == 1
        else cp.SOC(gain + gamma, cp.hstack([theta, gain - gamma])),
    ]
    program = cp.Problem(cp.Minimize(gamma * radius**order + cp.sum(costs) / n), constraints)
    program.solve(solver="CLARABEL")
    return theta.value, t.value


if __name__ == "__main__":
    serve({"order 1": partial(fit, order=1), "order 2": fit})
