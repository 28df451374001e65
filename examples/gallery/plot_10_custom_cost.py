"""
A cost of your own
==================

Waste that hurts more and more, a lost sale that always hurts the same: write it for one row with
``jax.numpy``, and everything else (policies, balls, worst cases) works with it.
"""

# %%
# The cost is tried when it is made: a function that cannot be differentiated is refused at once.

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from surefoot import DASGD, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import CustomCost
from surefoot.datasets import load_yaz


def stale(z, y):
    """Return what an order z costs when y is asked for: the square of the waste, 15 a lost sale."""
    over, short = jnp.maximum(z - y, 0.0), jnp.maximum(y - z, 0.0)
    return jnp.sum(0.8 * over**2 + 15.0 * short)


cost = CustomCost(stale)
data = load_yaz(drop_closed=True)
columns = [data.feature_names.index(name) for name in data.numeric]
columns += [j for j, name in enumerate(data.feature_names) if "weekday" in name]
past, future = slice(300, 420), slice(420, 540)
X, y = data.contexts[:, columns], data.product("shrimp")

own = RobustPolicy(cost, ball=WassersteinBall(0.05), solver=DASGD(max_steps=20_000)).fit(
    X[past], y[past]
)
linear = RobustNewsvendor(backorder=15, holding=10, radius=0.05).fit(X[past], y[past])
print(own.status_)

# %%
# The same days, two ideas of what waste costs. A little waste is cheap under our own: that policy
# orders more, and is short less often.

left = {"cost of our own": own, "10 a portion": linear}
paid = {
    n: cost.evaluate(m.predict(X[future])[:, None], y[future][:, None]).mean() for n, m in left.items()
}
print({name: round(float(value), 1) for name, value in paid.items()})
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
miss = np.linspace(-8, 8, 200)[:, None]
curve = cost.evaluate(miss, np.zeros_like(miss))
axes[0].plot(miss[:, 0], curve, color="#0b6e72", label="cost of our own")
axes[0].plot(miss[:, 0], np.maximum(10 * miss, -15 * miss)[:, 0], color="#b3541e", label="10 a portion")
axes[0].set(xlabel="order minus demand", ylabel="cost", title="What a miss costs")
axes[0].legend(frameon=False)
bins = np.arange(-12, 13, 2)
for (name, model), colour in zip(left.items(), ("#0b6e72", "#b3541e"), strict=True):
    axes[1].hist(
        model.predict(X[future]) - y[future],
        bins,
        histtype="step",
        linewidth=2,
        color=colour,
        label=name,
    )
axes[1].set(xlabel="order minus demand", ylabel="days", title="120 days never seen")
axes[1].set_ylim(0, 32)
axes[1].legend(frameon=False)
