"""
How many people to call in: staffing
====================================

Guests of the day decide how many cooks are needed. Too few is dear, and dearer the more are missing
(first overtime, then lost guests); too many costs their wage. That is a cost with tiers.
"""

# %%
# Forty portions a cook and day. The first cook missing is covered by overtime (90), from the second on
# guests leave (300 a cook); a cook too many costs 60.

import matplotlib.pyplot as plt
import numpy as np

from surefoot import RobustPolicy, WassersteinBall
from surefoot.costs import TieredNewsvendor
from surefoot.datasets import load_yaz

data = load_yaz(drop_closed=True)
past, future = slice(300, 420), slice(420, 600)
kept = data.contexts[past].std(axis=0) > 0
X, cooks = data.contexts[:, kept], data.outcomes.sum(axis=1) / 40
cost = TieredNewsvendor(shortage=((0, 90), (1, 300)), leftover=((0, 60),))

model = RobustPolicy(cost, ball=WassersteinBall(0.1)).fit(X[past], cooks[past])
print(model.status_)
rota = np.round(model.predict(X[future]))

# %%
# A rota that follows the day, against the same number of cooks every day.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", width_ratios=(3, 2))
days = np.arange(60)
axes[0].bar(days, cooks[future][:60], color="#d9d4c7", label="cooks needed")
axes[0].step(days, rota[:60], where="mid", color="#0b6e72", linewidth=2, label="cooks called in")
axes[0].set(xlabel="day", ylabel="cooks", title="The next sixty days")
axes[0].legend(frameon=False)
fixed = np.arange(2, 8)
paid = [cost.evaluate(np.full((180, 1), float(n)), cooks[future][:, None]).mean() for n in fixed]
axes[1].plot(fixed, paid, "o-", color="#8a8577", label="same number every day")
spent = cost.evaluate(rota[:, None], cooks[future][:, None]).mean()
axes[1].axhline(spent, color="#0b6e72", label="rota of the policy")
axes[1].set(xlabel="cooks", ylabel="cost a day", title="180 days never seen")
axes[1].legend(frameon=False)
print(f"rota {spent:.0f} a day, best fixed number in hindsight {min(paid):.0f}")
