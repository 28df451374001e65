"""
Coming from scikit-learn
========================

Quantile regression at level b / (b + h) is what scikit-learn offers for this problem. The same
estimator habits carry over; what changes is the score, which is a cost, and what small data do.
"""

# %%
# The two side by side on forty days. ``QuantileRegressor`` without a penalty is our baseline ``ERM``:
# the linear policy of least cost on the past.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import GridSearchCV

from surefoot import RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import load_yaz

data = load_yaz(drop_closed=True)
names = [name for name in data.numeric if name != "rain"]  # it hardly ever rains
numbers = [data.feature_names.index(name) for name in names]
X, y = data.contexts[:, numbers], data.product("lamb")
shuffled = np.random.default_rng(1).permutation(np.arange(300, 600))
past, future = shuffled[:40], shuffled[40:]
cost = Newsvendor(backorder=15, holding=10)

quantile = QuantileRegressor(quantile=15 / 25, alpha=0.0).fit(X[past], y[past])
robust = RobustPolicy(cost, ball=WassersteinBall(0.1))
search = GridSearchCV(robust, {"ball__radius": [0.03, 0.1, 0.3, 1.0]}, cv=5).fit(X[past], y[past])
robust = search.best_estimator_
default = RobustNewsvendor(15, 10).fit(X[past], y[past])
print(search.best_params_, "score", round(search.best_score_, 1))

# %%
# Coefficients, in standard deviations of the columns: the radius holds them back.

spread = X[past].std(axis=0)
width, places = 0.38, np.arange(len(numbers))
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", width_ratios=(3, 2))
axes[0].barh(
    places + width / 2, quantile.coef_ * spread, width, color="#8a8577", label="quantile regression"
)
axes[0].barh(places - width / 2, robust.coef_ * spread, width, color="#0b6e72", label="robust linear")
axes[0].set_yticks(places, names)
axes[0].set(xlabel="change of the order for one standard deviation", title="Coefficients")
axes[0].legend(frameon=False)

models = {"quantile\nregression": quantile, "robust\nlinear": robust, "default": default}
costs = [
    cost.evaluate(m.predict(X[future])[:, None], y[future][:, None]).mean() for m in models.values()
]
bars = axes[1].bar(list(models), costs, color=["#8a8577", "#0b6e72", "#b3541e"])
axes[1].bar_label(bars, fmt="%.1f")
axes[1].set(ylim=(0, 1.15 * max(costs)), ylabel="cost a day", title="260 days never seen")
