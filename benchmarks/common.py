"""What the benchmarks share: the machine's name, result files, and the convex program by hand."""

import time

import cvxpy as cp
import numpy as np

from benchmarks.machine import RESULTS, machine, read_csv, write_csv

__all__ = ["BACKORDER", "HOLDING", "RESULTS", "machine", "read_csv", "write_csv"]
BACKORDER, HOLDING = 1.0, 0.2


def constant_order(y):
    """Best constant order, its cost, and its slopes (no ties in continuous data)."""
    rank = int(np.ceil(BACKORDER / (BACKORDER + HOLDING) * len(y) - 1e-12))
    order = np.sort(y)[rank - 1]
    slopes = np.where(y < order, HOLDING, -BACKORDER)
    at = y == order
    slopes[at] = 0.0
    slopes[at] = -slopes.sum() / at.sum()
    return order, np.maximum(HOLDING * (order - y), BACKORDER * (y - order)).mean(), slopes


def collapse_radius(X, y, order):
    """rho_max of the design: ||X'u|| / (n G), times G / sqrt(b h) for order 2."""
    slopes = constant_order(y)[2]
    constant = max(BACKORDER, HOLDING) if order == 1 else np.sqrt(BACKORDER * HOLDING)
    return np.linalg.norm((X - X.mean(axis=0)).T @ slopes) / len(y) / constant


def convex_program(X, y, radius, order, intercept, solver="CLARABEL"):
    """The robust newsvendor as one writes it by hand in CVXPY; returns (optimum, seconds)."""
    n, s = X.shape
    theta, costs, gamma = cp.Variable(s), cp.Variable(n), cp.Variable(nonneg=True)
    t = cp.Variable() if intercept else 0.0
    residuals = X @ theta + t - y
    if order == 1:
        constraints = [max(BACKORDER, HOLDING) * cp.norm(theta, 2) <= gamma]
        gain = 0.0
    else:
        gain = cp.Variable()  # >= ||theta||^2 / (4 gamma)
        constraints = [cp.SOC(gain + gamma, cp.hstack([theta, gain - gamma]))]
    constraints += [
        costs >= HOLDING * residuals + HOLDING**2 * gain,
        costs >= -BACKORDER * residuals + BACKORDER**2 * gain,
    ]
    program = cp.Problem(cp.Minimize(gamma * radius**order + cp.sum(costs) / n), constraints)
    began = time.perf_counter()
    program.solve(solver=solver)
    return float(program.value), time.perf_counter() - began
