"""
Many problems at once, on a GPU if there is one
===============================================

:func:`~surefoot.solvers.solve_many` takes any list of problems. With ``engine="batch"`` they become one
JAX program, which runs on a GPU where JAX finds one and on the processor elsewhere, each problem to its
certified gap; nothing in the code changes.
"""

# %%
# How much is luck? Forty samples of thirty days from the restaurant's two years, at four radii.

import jax
import matplotlib.pyplot as plt
import numpy as np

from surefoot import Problem, WassersteinBall, solve_many
from surefoot.costs import Newsvendor
from surefoot.datasets import load_yaz
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.random import rng_for

print("runs on:", jax.devices()[0].platform)
data = load_yaz(drop_closed=True)
numbers = [data.feature_names.index(name) for name in data.numeric]
X, y = data.contexts[:600, numbers], data.product("fish")[:600]
cost, linear, radii = Newsvendor(backorder=15, holding=10), Linear(), (0.05, 0.2, 0.5, 1.0)
samples = [rng_for(0, "sample", k).choice(600, 30, replace=False) for k in range(40)]
problems = [
    Problem(cost, linear, Empirical(X[rows], y[rows]), WassersteinBall(radius))
    for radius in radii
    for rows in samples
]
solutions = solve_many(problems, engine="batch")
print(f"largest certified gap: {max(s.certificate.gap for s in solutions):.2%}")

# %%
# What the 160 policies cost on the days that none of them saw.

X_new, y_new = data.contexts[600:, numbers], data.product("fish")[600:, None]
paid = [cost.evaluate(linear.decide(s.parameters, X_new), y_new).mean() for s in solutions]
paid = np.reshape(paid, (len(radii), len(samples)))
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
boxes = axes.boxplot(paid.T, tick_labels=[f"{radius:g}" for radius in radii], widths=0.5)
axes.plot(np.arange(1, 5), paid.mean(axis=1), "o-", color="#0b6e72", label="mean over 40 samples")
boxes["medians"][0].set_label("median")
axes.set(xlabel="radius", ylabel="cost a day", title="Policies from thirty days: the radius tames luck")
axes.legend(frameon=False)
print({radius: round(float(row.std()), 2) for radius, row in zip(radii, paid, strict=True)})
