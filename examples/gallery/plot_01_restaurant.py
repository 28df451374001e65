"""
How much to order: a restaurant
===============================

Sixty days of weather, calendar and demand, and what a portion short (15) and a portion left over (10)
costs: that is all :class:`~surefoot.estimators.RobustNewsvendor` has to know.
"""

# %%
# The bundled data are two years of a restaurant's demand for seven ingredients. Days are in order: we
# learn from sixty of them and order for the forty that follow.

import matplotlib.pyplot as plt
import numpy as np

from surefoot import RobustNewsvendor
from surefoot.baselines import SAA
from surefoot.datasets import load_yaz

data = load_yaz(drop_closed=True)
past, future = slice(500, 560), slice(560, 600)
varied = data.contexts[past].std(axis=0) > 0
X, y = data.contexts[:, varied], data.product("lamb")

model = RobustNewsvendor(backorder=15, holding=10).fit(X[past], y[past])
same = SAA(backorder=15, holding=10).fit(X[past], y[past])
orders = model.predict(X[future])
print(model.guarantee())

# %%
# What was ordered, what was asked for, and what the difference cost.

costs = {
    "same order every day": same.cost(X[future], y[future]),
    "Surefoot": model.cost(X[future], y[future]),
}
days = np.arange(len(orders))
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.bar(days, y[future], color="#d9d4c7", label="demand")
axes.step(days, same.predict(X[future]), where="mid", color="#8a8577", label="same order every day")
axes.step(days, orders, where="mid", color="#0b6e72", linewidth=2, label="Surefoot")
axes.set(xlabel="day", ylabel="portions of lamb", title="Orders against demand, days never seen")
axes.set_ylim(0, 80)
axes.legend(frameon=False, ncols=3, loc="upper left")
for name, cost in costs.items():
    print(f"{name:22} {cost:6.1f} a day")
