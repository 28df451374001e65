"""
A price for each day
====================

Not only orders: here the decision is a price. What is learned is how the price should follow the
weather and the weekday, from forty days with prices and sales. The market is drawn from a model, so
that the best price is known.
"""

# %%
# Sales at past prices tell the potential demand: what would have been sold at price zero.

import matplotlib.pyplot as plt
import numpy as np

from surefoot import DASGD, RobustPolicy, WassersteinBall
from surefoot.costs import Pricing
from surefoot.random import rng_for

cost = Pricing(sensitivity=4.0, unit_cost=2.0)  # a euro more sells four ice creams less


def market(name, days):
    """Draw temperatures, weekends and the potential demand of each day."""
    rng = rng_for(0, "ice cream", name)
    X = np.column_stack([rng.normal(22, 5, days), rng.random(days) < 2 / 7])
    return X, 20 + 1.5 * X[:, 0] + 15 * X[:, 1] + 6 * rng.standard_normal(days)


X, potential = market("past", 40)
prices = rng_for(0, "past prices").uniform(5, 9, 40)
sales = np.maximum(potential - 4.0 * prices, 0.0)
y = cost.potential(demand=sales, price=prices)

X_new, y_new = market("future", 5_000)
radii = [0.0, 0.1, 0.3]
fits = [
    RobustPolicy(cost, ball=WassersteinBall(radius), solver=DASGD(max_steps=8_000)).fit(X, y)
    for radius in radii
]

# %%
# Prices against the temperature of an ordinary day, and the profit that the policies earn. Forty
# days are enough here: a larger radius follows the weather less, and earns a little less for it.

heat = np.linspace(8, 36, 50)
line = np.column_stack([heat, np.zeros(50)])
best = (20 + 1.5 * heat + 4.0 * 2.0) / 8.0  # halfway between cost and the price at which nobody buys
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", width_ratios=(3, 2))
axes[0].plot(heat, best, color="#8a8577", linestyle="--", label="best, if the market were known")
for fit, radius, colour in zip(fits, radii, ("#d9a441", "#0b6e72", "#b3541e"), strict=True):
    axes[0].plot(heat, fit.predict(line), color=colour, label=f"radius {radius:g}")
axes[0].set(xlabel="temperature", ylabel="price, euro", title="Price on a weekday")
axes[0].legend(frameon=False)
profit = [-fit.cost(X_new, y_new) for fit in fits]
bars = axes[1].bar([f"radius {r:g}" for r in radii], profit, color=["#d9a441", "#0b6e72", "#b3541e"])
axes[1].bar_label(bars, fmt="%.1f")
axes[1].set(ylabel="profit a day, euro", title="5,000 new days", ylim=(0.9 * min(profit), None))
