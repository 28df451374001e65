"""
Several products, one truck
===========================

Three ingredients share a delivery of ninety portions. Where the limit does not bind, orders are left
alone; where it binds, all are cut. One adversary moves the context for all of them.
"""

# %%
# The limit is a set of allowed decisions, part of the policy.

import matplotlib.pyplot as plt
import numpy as np

from surefoot import DASGD, Budget, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import load_yaz
from surefoot.policies import Linear

data = load_yaz(drop_closed=True)
names, limit = ("chicken", "koefte", "lamb"), 90.0
columns = [j for j, name in enumerate(data.feature_names) if "weekday" in name]
columns += [data.feature_names.index("temperature")]
X, demand = data.contexts[:, columns], np.column_stack([data.product(name) for name in names])
past, future = slice(300, 420), slice(420, 480)
cost = Newsvendor(backorder=(12, 15, 20), holding=10)


def fitted(policy):
    """Return a policy that has learned from the past."""
    solver = DASGD(max_steps=6_000, gap_tol=0.05)
    model = RobustPolicy(cost, policy, ball=WassersteinBall(0.05), solver=solver)
    return model.fit(X[past], demand[past])


shared = fitted(Linear(decisions=Budget(total=limit)))
free = RobustPolicy(cost, Linear(), ball=WassersteinBall(0.05)).fit(X[past], demand[past])
print(shared.status_)

# %%
# Orders of sixty days. Without the limit the truck would be too small on the days above the line.

colours = ["#d9a441", "#0b6e72", "#b3541e"]
figure, axes = plt.subplots(2, 1, figsize=(8, 5.2), sharex=True, layout="constrained")
for panel, model, title in ((axes[0], free, "without a limit"), (axes[1], shared, "one truck")):
    orders = np.maximum(model.predict(X[future]), 0.0)
    panel.stackplot(np.arange(60), orders.T, labels=names, colors=colours)
    panel.axhline(limit, color="black", linestyle="--", label="what fits the truck")
    panel.set(ylabel="portions", title=f"Orders, {title}", ylim=(0, 160))
axes[0].legend(ncols=4, loc="upper left", frameon=False)
axes[1].set_xlabel("day")
print("largest delivery:", orders.sum(axis=1).max().round(1), "of", limit)
