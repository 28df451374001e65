"""
Coming from CVXPY
=================

The robust linear newsvendor of order 1 is a small convex program, and that is how one would write it in
CVXPY. Here it is one line; the program is a check, and a clock.
"""

# %%
# Twelve lines of CVXPY, and one of Surefoot.

import time

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

from surefoot import RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import load_yaz

data = load_yaz(drop_closed=True)
numbers = [data.feature_names.index(name) for name in data.numeric]
contexts, demand = data.contexts[:, numbers], data.product("lamb")
contexts = contexts / contexts.std(axis=0)


def program(X, y, radius, backorder=15.0, holding=10.0):
    """Return the least worst case and the policy of order 1, by a convex program."""
    theta, intercept = cp.Variable(X.shape[1]), cp.Variable()
    residual = X @ theta + intercept - y
    mean = cp.sum(cp.maximum(holding * residual, -backorder * residual)) / len(y)
    problem = cp.Problem(cp.Minimize(mean + radius * backorder * cp.norm(theta, 2)))
    return problem.solve(solver=cp.CLARABEL), theta.value


def policy(X, y, radius):
    """Return the same from Surefoot."""
    ball = WassersteinBall(radius, order=1, scale=False)
    model = RobustPolicy(Newsvendor(backorder=15.0, holding=10.0), ball=ball).fit(X, y)
    return model.certificate_.upper, model.coef_


sizes, seconds = [50, 100, 200, 400, 700], {"CVXPY": [], "Surefoot, 1 % gap": []}
policy(contexts[:50], demand[:50], 0.02)  # the first fit compiles
for n in sizes:
    for name, solve in (("CVXPY", program), ("Surefoot, 1 % gap", policy)):
        start = time.perf_counter()
        value, theta = solve(contexts[:n], demand[:n], 0.02)
        seconds[name].append(time.perf_counter() - start)
        print(f"n = {n:3}  {name:18} worst case {value:8.3f}")

# %%
# The same values, within the certified gap. ``Exact()`` and ``ConvexProgram()`` go further where that
# is wanted; the latter is the program above, for any order and support.

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for (name, taken), colour in zip(seconds.items(), ("#8a8577", "#0b6e72"), strict=True):
    axes.plot(sizes, np.multiply(taken, 1e3), "o-", color=colour, label=name)
axes.set(ylim=(0, None), xlabel="past days", ylabel="milliseconds", title="Time to an answer")
axes.legend(frameon=False)
