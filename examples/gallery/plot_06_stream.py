"""
Learn while deciding: a stream
==============================

An :class:`~surefoot.online.OnlinePolicy` orders in the morning and learns at night, day after day, from
the first day on. Nothing is refitted.
"""

# %%
# Two years of a restaurant, in order. Contexts are dictionaries; a weekday is a text.

import matplotlib.pyplot as plt
import numpy as np

from surefoot.costs import Newsvendor
from surefoot.datasets import load_yaz
from surefoot.online import OnlinePolicy

data = load_yaz(drop_closed=True)
flags = [j for j, name in enumerate(data.feature_names) if "weekday" in name]
numbers = [data.feature_names.index(name) for name in data.numeric]
demand, cost = data.product("koefte"), Newsvendor(backorder=15, holding=10)

policy = OnlinePolicy(cost)
orders, constant = np.zeros(len(demand)), np.zeros(len(demand))
for day, outcome in enumerate(demand):
    weekday = str(int(np.argmax(data.contexts[day, flags])))
    context = {"weekday": weekday, **dict(zip(data.numeric, data.contexts[day, numbers], strict=True))}
    orders[day] = policy.decide_one(context)
    constant[day] = np.quantile(demand[:day], 15 / 25) if day else 0.0  # the best constant so far
    policy.learn_one(context, outcome)

# %%
# The mean cost of the last ninety days, along the way.


def recent(decisions, window=90):
    """Return the mean cost over a window that moves along."""
    paid = cost.evaluate(decisions[:, None], demand[:, None])
    return np.convolve(paid, np.ones(window) / window, mode="valid")


figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
axes.plot(recent(constant), color="#8a8577", label="best constant so far")
axes.plot(recent(orders), color="#0b6e72", label="online policy")
axes.set(
    xlabel="day (end of the first 90 days = 0)", ylabel="cost a day, last 90 days",
    title="Deciding first, learning afterwards",
)  # fmt: skip
axes.legend(frameon=False)
print(f"last year: {recent(orders)[-270:].mean():.1f} against {recent(constant)[-270:].mean():.1f}")
