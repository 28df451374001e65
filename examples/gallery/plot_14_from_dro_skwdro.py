"""
Coming from dro or skwdro
=========================

The same ball has other names there. With order 1 and the 2-norm the worst case is the mean cost plus
radius times slope times the norm of theta, so the translation can be checked by hand.
"""

# %%
# ===========================  ==============================  =====================================
# here                          dro                             skwdro
# ===========================  ==============================  =====================================
# ``radius``                    ``eps`` (in some models its     ``rho``
#                               square)
# ``order=1`` or ``2``          by the model chosen             ``"t-NC-1-2"``, ``"t-NC-2-2"``
# ``outcome_cost`` (infinite)   ``kappa``                       ``kappa``; ``"t-NC"`` leaves outcomes
# ``scale=False``               always                          always
# ``certificate_``              --                              --
# ===========================  ==============================  =====================================
#
# Two differences matter. There, distances are in the units of the columns: ``scale=False`` does the
# same, but then one radius means different things for degrees and for minutes. And what comes back is
# a point without a bound; here it is certified.

import matplotlib.pyplot as plt
import numpy as np

from surefoot import RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import load_yaz

data = load_yaz(drop_closed=True)
numbers = [data.feature_names.index(name) for name in data.numeric]
X, y = data.contexts[:100, numbers], data.product("steak")[:100]
X = (X - X.mean(axis=0)) / X.std(axis=0)
cost = Newsvendor(backorder=1.0, holding=0.5)


def by_hand(model, radius):
    """Return mean cost plus radius times the steepest slope times the 2-norm of the coefficients."""
    return model.cost(X, y) + radius * 1.0 * np.linalg.norm(model.coef_)


radii = np.geomspace(0.01, 0.3, 9)
fits = [
    RobustPolicy(cost, ball=WassersteinBall(float(r), order=1, scale=False)).fit(X, y) for r in radii
]
theirs = [by_hand(fit, radius) for fit, radius in zip(fits, radii, strict=True)]
ours = [fit.worst_case(X, y).value for fit in fits]
print("largest difference:", f"{np.max(np.abs(np.subtract(theirs, ours))):.1e}")

# %%
# The worst cases agree, and the certificate says that no linear policy does better.

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.plot(
    radii, theirs, "o", markersize=9, markerfacecolor="none", color="#b3541e", label="formula by hand"
)
axes.plot(radii, ours, color="#0b6e72", label="worst case here")
axes.plot(
    radii, [fit.certificate_.lower for fit in fits], "--", color="#8a8577", label="no policy below this"
)
axes.set(xscale="log", xlabel="radius (eps, rho)", ylabel="cost a day", title="Order 1, outcomes fixed")
axes.legend(frameon=False)
