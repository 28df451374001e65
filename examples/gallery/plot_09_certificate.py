"""
Read a certificate
==================

A robust linear policy comes with two numbers computed by code that knows no solver: the worst case of
this policy, and a bound that no linear policy can beat. If they meet, there is nothing left to find.
"""

# %%
# One radius: what the certificate says.

import matplotlib.pyplot as plt
import numpy as np

from surefoot import RobustNewsvendor
from surefoot.datasets import load_yaz

data = load_yaz(drop_closed=True)
numbers = [data.feature_names.index(name) for name in data.numeric]
X, y = data.contexts[:120, numbers], data.product("steak")[:120]

model = RobustNewsvendor(backorder=15, holding=10, radius=0.2).fit(X, y)
print(model.certificate_.message)
print(f"upper {model.certificate_.upper:.3f}, lower {model.certificate_.lower:.3f}")

# %%
# Many radii: the worst case grows, and so does the lower bound. The cost on the data themselves is
# what robustness is paid with. From some radius on the policy is a constant order, and nothing
# more can be taken away from it.

radii = np.linspace(0.0, 0.4, 17)
fits = [RobustNewsvendor(15, 10, radius=float(radius)).fit(X, y) for radius in radii]

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(radii, [fit.certificate_.upper for fit in fits], color="#b3541e", label="worst case (upper)")
axes.plot(
    radii,
    [fit.certificate_.lower for fit in fits],
    "--",
    color="#0b6e72",
    label="no policy below (lower)",
)
axes.plot(radii, [fit.cost(X, y) for fit in fits], color="#8a8577", label="cost on the data")
axes.set(xlabel="radius, standard deviations", ylabel="cost a day", title="What each radius certifies")
axes.legend(frameon=False)
print("largest gap:", f"{max(fit.certificate_.gap for fit in fits):.2%}")
