"""
Split a portfolio
=================

Decisions need not be orders. Here they are shares of three assets, which depend on two signals seen
at the beginning of the month; the cost is minus the return plus a penalty on the worst months (CVaR).
Monthly returns are drawn from a model, because then we know what the truth costs.
"""

# %%
# Twenty-four months of past. The shares lie in the simplex: none negative, one in total.

import matplotlib.pyplot as plt
import numpy as np

from surefoot import DASGD, RobustPolicy, Simplex, WassersteinBall
from surefoot.costs import MeanCVaR
from surefoot.policies import Linear
from surefoot.random import rng_for


def months(name, rows):
    """Draw signals and the returns of three assets, in percent."""
    rng = rng_for(0, "portfolio", name)
    signals = rng.normal(size=(rows, 2))
    means = np.array([0.3, 0.6, 0.8]) + signals @ np.array([[0.0, 0.4, 0.9], [0.0, -0.3, 0.6]])
    return signals, means + rng.normal(size=(rows, 3)) * np.array([0.5, 2.5, 5.0])


X, y = months("past", 24)
X_new, y_new = months("future", 20_000)
cost = MeanCVaR(risk_aversion=0.5, level=0.9)
radii = [0.0, 0.1, 0.2, 0.4, 0.8]
fits = []
for radius in radii:
    policy = RobustPolicy(
        cost, Linear(decisions=Simplex()), ball=WassersteinBall(radius), solver=DASGD(max_steps=12_000)
    )
    fits.append(policy.fit(X, y))

# %%
# The share of each asset against the first signal, for a policy that trusts 24 months and for one
# that does not.

line = np.column_stack([np.linspace(-2.5, 2.5, 60), np.zeros(60)])
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for panel, fit, radius in ((axes[0], fits[0], 0.0), (axes[1], fits[3], 0.4)):
    shares = fit.predict(line)
    panel.stackplot(
        line[:, 0], shares.T, labels=["bonds", "shares", "commodities"],
        colors=["#d9d4c7", "#5cc3c7", "#b3541e"],
    )  # fmt: skip
    panel.set(xlabel="first signal", ylim=(0, 1), title=f"shares at radius {radius:g}")
axes[0].legend(loc="lower left")
costs = [fit.cost(X_new, y_new) for fit in fits]
axes[2].plot(radii, costs, "o-", color="#0b6e72", label="policy")
thirds = cost.evaluate(np.full((len(y_new), 3), 1 / 3), y_new).mean()
axes[2].axhline(thirds, color="#8a8577", linestyle="--", label="a third each")
axes[2].set(xlabel="radius", ylabel="cost of new months", title="20,000 new months")
axes[2].legend(frameon=False)
print({radius: round(cost, 3) for radius, cost in zip(radii, costs, strict=True)})
