"""Several products under one adversary, as programs and grids written without the library's formulas.

The optimum is the dual with one inequality for each row and each choice of overage or underage of every
product, handed to CVXPY in the user's units. The grid adversary of one column tries every place.
"""

import itertools
import warnings

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog


def best_worst_case(X, Y, weights, *, backorder, holding, radius, order, scale, kappa=np.inf,
                    intercept=True):  # fmt: skip
    """Return the least worst case of affine decisions for newsvendors, in a free ball."""
    n, s = X.shape
    d = Y.shape[1]
    theta, t, gamma, costs = cp.Variable((s, d)), cp.Variable(d), cp.Variable(), cp.Variable(n)
    residuals = X @ theta + np.ones((n, 1)) @ cp.reshape(t, (1, d), order="C") - Y
    constraints = [gamma >= 0] + ([] if intercept else [t == 0])
    for sides in itertools.product((False, True), repeat=d):
        slopes = np.array([h if over else -b for over, b, h in zip(sides, backorder, holding)])  # noqa: B905
        gradient = cp.multiply(scale, theta @ slopes)
        outcome = np.linalg.norm(slopes) / (kappa if order == 1 else np.sqrt(kappa))
        if order == 1:
            constraints += [cp.norm(gradient) <= gamma, outcome <= gamma]
            gain = 0.0
        else:
            gain = cp.Variable()
            # gain >= ||(gradient, outcome)||^2 / (4 gamma)
            whole = cp.hstack([gradient, np.array([outcome]), gain - gamma])
            constraints.append(cp.SOC(gain + gamma, whole))
        constraints.append(costs >= residuals @ slopes + gain)
    program = cp.Problem(cp.Minimize(gamma * radius**order + weights @ costs), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value)


def grid_worst_case(x, Y, weights, decide, cost, *, radius, order, places):
    """Return the worst case of any decisions where one column may go to any of some places.

    A linear program over how much mass each row sends to each place; ``decide(x)`` and ``cost(z, y)``
    are those of the user.
    """
    n, m = len(x), len(places)
    gains = np.array([[cost(decide(place), y) for place in places] for y in Y]).ravel()
    lengths = (np.abs(x[:, None] - places[None, :]) ** order).ravel()
    rows = np.kron(np.eye(n), np.ones(m))
    found = linprog(-gains, A_ub=lengths[None, :], b_ub=[radius**order], A_eq=rows, b_eq=weights)
    return -float(found.fun)
