"""Centre a nominal on a forecast: the robust policy then corrects the forecast's errors.

With a forecast m the policy is z = m(x) + theta'x + t (an estimator's ``parameters_`` add the linear
part of m to theta and t), and the ball lives in the coordinates
(x, e) with e = y - m(x): an adversary moves a context, and the outcome follows the forecast. In these
coordinates the problem is the affine one, exact certificate included, with e in the place of y. At the
collapse radius theta is zero, and the decision is the forecast plus the best constant.

The errors are those of a forecast that had not seen the row. With few rows each is replaced by several
atoms of a smoothed bootstrap with the same variance, because the quantile of ten numbers is a poor one.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from surefoot.costs import ConvexPiecewiseCost
from surefoot.estimators.recipe import Recipe
from surefoot.exceptions import UnsupportedProblemError
from surefoot.forecasts import Forecast, Forecaster
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters
from surefoot.typing import BoolArray, FloatArray

# A nominal of fewer rows than this is filled up with atoms, up to so many for each row.
FULL_ROWS, MOST_ATOMS = 150, 7
# Weights that stand for more rows than this are not written out as rows.
MOST_UNMERGED = 100_000


@dataclass(frozen=True, eq=False)
class Centre:
    """Forecasts of all products, one function of the context."""

    forecasts: tuple[Forecast, ...]

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the forecasts, shape (rows, products)."""
        return np.column_stack([forecast(contexts) for forecast in self.forecasts])

    def bend(self, contexts: FloatArray) -> FloatArray:
        """Return what the forecasts add to their linear parts, shape (rows, products)."""
        return np.column_stack([forecast.bend(contexts) for forecast in self.forecasts])

    def whole(self, correction: LinearParameters) -> LinearParameters:
        """Return the linear parts of the forecasts and their correction together."""
        theta = np.column_stack([forecast.theta for forecast in self.forecasts])
        intercept = np.array([forecast.intercept for forecast in self.forecasts])
        return LinearParameters(correction.theta + theta, correction.intercept + intercept)

    def arrays(self) -> dict[str, FloatArray]:
        """Return all that a file needs to hold."""
        return {
            f"forecast_{j}_{name}": array
            for j, forecast in enumerate(self.forecasts)
            for name, array in forecast.arrays().items()
        }

    @classmethod
    def restore(cls, count: int, arrays: dict[str, FloatArray]) -> "Centre | None":
        """Return the centre of so many products that a file holds, or None if it holds none."""
        found = []
        for j in range(count):
            mark = f"forecast_{j}_"
            own = {name.removeprefix(mark): a for name, a in arrays.items() if name.startswith(mark)}
            if not own:
                return None
            found.append(Forecast.restore(own))
        return cls(tuple(found))


@dataclass(frozen=True, eq=False)
class Centred:
    """A centre with the nominal of its errors.

    Attributes
    ----------
    centre
        The forecasts.
    errors, nominal
        The errors as they were, to choose a radius with, and smoothed, to solve with. Frozen columns
        are zero in both: the forecast has used them, and a correction that no radius holds back
        would only learn their noise.
    whole
        The smoothed errors beside all columns.
    """

    centre: Centre
    errors: Empirical
    nominal: Empirical
    whole: Empirical


def why_not_centred(recipe: Recipe) -> str | None:
    """Return why a recipe cannot start from a forecast, or None if it can."""
    policy = recipe.policy
    if not isinstance(recipe.cost, ConvexPiecewiseCost):
        return f"it needs a kinked cost such as Newsvendor, got {type(recipe.cost).__name__}"
    if not isinstance(policy, Linear) or not policy.intercept:
        return "it needs a Linear policy with an intercept"
    if policy.features is not None:
        return "it needs a policy without a feature map"
    if policy.decisions is not None:
        return "it needs decisions without limits"
    if recipe.ball.support is not None:
        return "it needs a ball without a support"
    return None


def centred(recipe: Recipe, forecaster: Forecaster, rows: Empirical, seed: int) -> Centred:
    """Learn a forecast for each product, and return the nominal of its errors."""
    reason = why_not_centred(recipe)
    if reason is not None:
        raise UnsupportedProblemError(f"nominal='auto' cannot treat this: {reason}; use nominal=None.")
    assert isinstance(recipe.cost, ConvexPiecewiseCost)  # or there would have been a reason
    distinct = rows.distinct()
    found = [
        forecaster.fit(distinct.contexts, distinct.outcomes[:, j], distinct.masses, pieces, seed)
        for j, pieces in enumerate(recipe.cost.pieces(rows.n_products))
    ]
    errors = np.column_stack([honest.errors for honest in found])
    centre = Centre(tuple(honest.forecast for honest in found))
    plain = Empirical(distinct.contexts, errors, distinct.masses, names=rows.names)
    bare = all(not forecast.theta.any() and forecast.smooth is None for forecast in centre.forecasts)
    count = float(plain.masses.sum()) if found[0].units else float(len(errors))
    whole = plain if bare else smoothed(plain, count)
    frozen = recipe.ball.frozen_mask(rows.n_columns, rows.names)
    observed = _unmerged(plain) if found[0].units else plain
    return Centred(centre, without_columns(observed, frozen), without_columns(whole, frozen), whole)


def _unmerged(errors: Empirical) -> Empirical:
    """Return rows of whole masses as so many rows: each may be held out alone."""
    masses = errors.masses
    if (masses == 1.0).all() or masses.sum() > MOST_UNMERGED:
        return errors
    again = np.repeat(np.arange(len(masses)), masses.astype(np.int64))
    return Empirical(errors.contexts[again], errors.outcomes[again], names=errors.names)


def without_columns(errors: Empirical, frozen: BoolArray) -> Empirical:
    """Return the errors beside contexts whose frozen columns say nothing."""
    if not frozen.any():
        return errors
    contexts = np.where(frozen, 0.0, errors.contexts)
    return Empirical(contexts, errors.outcomes, errors.masses, names=errors.names)


def smoothed(errors: Empirical, count: float | None = None) -> Empirical:
    """Return the errors as several atoms each, of the same mean and variance, where rows are few.

    The bandwidth is n^(-1/3) standard deviations: that of a quantile, not of a density. ``count`` is
    how many observations n the rows stand for; None is one each.

    References
    ----------
    Silverman and Young (1987), "The bootstrap: to smooth or not to smooth?", Biometrika.
    """
    n = len(errors.weights)
    count = float(n) if count is None else count
    atoms = min(max(int(FULL_ROWS / count), 1), MOST_ATOMS)
    if atoms == 1:
        return errors
    normal = NormalDist()
    offsets = np.array([normal.inv_cdf((k + 0.5) / atoms) for k in range(atoms)])
    offsets /= np.sqrt(np.mean(offsets**2))
    width = count ** (-1.0 / 3.0)
    mean = errors.weights @ errors.outcomes
    deviation = np.sqrt(errors.weights @ (errors.outcomes - mean) ** 2)
    shrunk = mean + np.sqrt(1.0 - width**2) * (errors.outcomes - mean)
    moved = shrunk[:, None, :] + width * deviation * offsets[None, :, None]
    return Empirical(
        np.repeat(errors.contexts, atoms, axis=0),
        moved.reshape(n * atoms, -1),
        np.repeat(errors.masses, atoms),
        names=errors.names,
    )
