"""
A policy for each of many series
================================

A planner has one decision for each product, not one. :func:`~surefoot.panels.fit_many` fits a policy
for each series of a table, and says which of them are worth it.
"""

# %%
# The restaurant's table in long form: one row for each day and ingredient.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from surefoot import RobustNewsvendor, fit_many
from surefoot.datasets import load_yaz

data = load_yaz(drop_closed=True)
numbers = [data.feature_names.index(name) for name in data.numeric]
days = pd.DataFrame(data.contexts[:, numbers], columns=list(data.numeric))
for j, name in enumerate(data.feature_names):
    if "weekday" in name:
        days[name] = data.contexts[:, j]
days["day"] = np.arange(len(days))
long = pd.concat(
    [days.assign(ingredient=name, demand=data.product(name)) for name in data.products],
    ignore_index=True,
)
past, future = long[long["day"].between(300, 419)], long[long["day"].between(420, 599)]

model = RobustNewsvendor(backorder=15, holding=10, radius=0.1)
contexts = [name for name in days.columns if name != "day"]
table = fit_many(past, by="ingredient", outcome="demand", model=model, time="day", contexts=contexts)
print(table)

# %%
# Each series against the best constant order of its own past.

costs, constants = {}, {}
for name in data.products:
    rows, before = (frame[frame["ingredient"] == name] for frame in (future, past))
    level = np.quantile(before["demand"], 15 / 25)
    missed = rows["demand"] - level
    constants[name] = np.where(missed > 0, 15 * missed, -10 * missed).mean()
    costs[name] = table.cost(rows)
names = sorted(costs, key=lambda name: costs[name] / constants[name])
places = np.arange(len(names))
figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
axes.bar(places - 0.2, [constants[n] for n in names], 0.4, color="#d9d4c7", label="best constant order")
axes.bar(places + 0.2, [costs[n] for n in names], 0.4, color="#0b6e72", label="policy of the series")
axes.set_xticks(places, names)
axes.set(ylabel="cost a day", title="180 days after 120 days of learning")
axes.legend(frameon=False)
