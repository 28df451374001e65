"""
Words, dates and missing values
===============================

Tables of people have words, dates and holes.
:class:`~surefoot.estimators.preparation.PreparedPolicy`
takes them as they are, and what it cannot know at decision time has a defined answer.
"""

# %%
# The restaurant's days as a frame: a date, a word for the weekday, weather with gaps.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from surefoot import PreparedPolicy, RobustNewsvendor
from surefoot.datasets import load_yaz
from surefoot.random import rng_for

data = load_yaz(drop_closed=True)
rng = rng_for(0, "gaps")
frame = pd.DataFrame({name: data.contexts[:, data.feature_names.index(name)] for name in data.numeric})
flags = [j for j, name in enumerate(data.feature_names) if "weekday" in name]
words = [data.feature_names[flags[k]] for k in data.contexts[:, flags].argmax(axis=1)]
frame["weekday"] = words
y = data.product("chicken")
past, future = slice(420, 520), slice(520, 640)

# %%
# We lose more and more of the weather, in past and future alike, and look at what it costs.

shares, costs = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0], []
for share in shares:
    holed = frame.copy()
    for name in data.numeric:
        holed.loc[rng.random(len(holed)) < share, name] = np.nan
    if share == 1.0:
        holed = holed[["weekday"]]  # nothing is left of the weather
    model = PreparedPolicy(RobustNewsvendor(backorder=15, holding=10, radius=0.1))
    model.fit(holed[past], y[past])
    costs.append(model.cost(holed[future], y[future]))
    if share == 0.25:
        print(model.plan_)

best = np.quantile(y[past], 15 / 25)
constant = np.where(y[future] > best, 15 * (y[future] - best), 10 * (best - y[future])).mean()
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.plot(np.array(shares) * 100, costs, "o-", color="#0b6e72", label="prepared policy")
axes.axhline(constant, color="#8a8577", linestyle="--", label="same order every day")
axes.set(
    xlabel="share of the weather that is missing, %", ylabel="cost a day", ylim=(0, 1.1 * constant)
)
axes.set_title("Gaps cost little: weekdays carry most")
axes.legend(frameon=False, loc="center right")
