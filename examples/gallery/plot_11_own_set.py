"""
An ambiguity set of your own
============================

Every outcome may have been misread by up to ``radius``: a set that is not in the box, in one file with
public imports. Certificates, cross-validation and worst cases work with it.
"""

# %%
# ``form`` returns the rows of one product with the set around them. ``adversary`` is the worst
# distribution for a linear policy; ``lower_bound`` must hold for any slopes, and lets solvers stop.

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np

from surefoot import RobustPolicy
from surefoot.ambiguity import Adversary, AffineForm, AffineRows, AmbiguitySet
from surefoot.costs import Newsvendor
from surefoot.datasets import load_yaz


@dataclass(frozen=True)
class Misread(AmbiguitySet):
    """All distributions in which each outcome is within ``radius`` of what was recorded."""

    rules: ClassVar[tuple[str, ...]] = ("auto",)  # an estimator may choose the radius

    radius: float | str

    def __post_init__(self):
        """Check the radius."""
        self.check_radius()

    def form(self, rows, movable):
        """Return rows with the set around them."""
        own = {field.name: getattr(rows, field.name) for field in fields(AffineRows)}
        return MisreadForm(**own, error=self.size / rows.outcome_unit)


@dataclass(frozen=True, eq=False, kw_only=True)
class MisreadForm(AffineForm):
    """Rows whose outcomes may be off by ``error``."""

    error: float
    tight = True  # the lower bound meets the optimum at the right slopes

    def adversary(self, theta, intercept):
        """Return the worst distribution for a policy: each outcome on its dearer side."""
        residuals, n = self.residuals(theta, intercept), len(self.outcomes)
        over = self.pieces.evaluate(residuals + self.error)
        short = self.pieces.evaluate(residuals - self.error)
        value = float(self.weights @ np.maximum(over, short))
        return Adversary(
            value=value,
            expected_cost=value,
            multiplier=np.zeros(1),
            transport_cost=np.array([self.error * self.outcome_unit]),
            rows=np.arange(n),
            products=np.zeros(n, dtype=int),
            contexts=self.contexts,
            outcomes=self.outcomes + np.where(over >= short, -self.error, self.error),
            weights=self.weights,
            distances=np.full(n, self.error * self.outcome_unit),
        )

    def lower_bound(self, slopes):
        """Return a number that no policy can beat."""
        # Slopes u with E[u (x, 1)] = 0 leave no policy anything to gain.
        ones = np.ones((len(slopes), int(self.intercept)))
        columns, root = np.hstack([self.contexts, ones]), np.sqrt(self.weights)
        part = np.linalg.lstsq(columns * root[:, None], slopes * root, rcond=None)[0]
        u = slopes - columns @ part
        u = u / max(1.0, u.max() / self.pieces.up, -u.min() / self.pieces.down)
        lines = np.array(self.pieces.slopes)
        raised = np.array(self.pieces.intercepts) + self.error * np.abs(lines)
        bound = float(self.weights @ (np.interp(u, lines, raised) - u * self.outcomes))
        return max(self.pieces.least, bound)

    def at_radius(self, radius):
        """Return the form at another radius."""
        return replace(self, error=radius / self.outcome_unit)

    def collapse_radius(self):
        """Return a radius from which on little changes."""
        return float(np.std(self.outcomes)) * self.outcome_unit


# %%
# Counts of portions may be off by up to four. What does that do to an order?

data = load_yaz(drop_closed=True)
columns = [j for j, name in enumerate(data.feature_names) if "weekday" in name][1:]
columns += [data.feature_names.index("temperature")]
X, y = data.contexts[:150, columns], data.product("calamari")[:150]
errors = [0.0, 1.0, 2.0, 3.0, 4.0]
fits = [RobustPolicy(Newsvendor(15, 10), ball=Misread(error)).fit(X, y) for error in errors]
print(fits[2].certificate_.message)

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.plot(errors, [fit.certificate_.upper for fit in fits], "o-", color="#b3541e", label="worst case")
axes.plot(errors, [fit.certificate_.lower for fit in fits], "--", color="#8a8577", label="lower bound")
axes.plot(errors, [fit.cost(X, y) for fit in fits], "o-", color="#0b6e72", label="as recorded")
axes.set(xlabel="portions that a count may be off", ylabel="cost a day", title="Misread outcomes")
axes.legend(frameon=False)
