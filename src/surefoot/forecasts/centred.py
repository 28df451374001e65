"""Centre a policy on a forecast: its linear part then corrects the forecast's errors.

With a forecast m the policy is z = m(x) + theta'x + t: a linear policy with an offset. The nominal
holds contexts, outcomes and, as offsets, what a forecast that had not seen the row said of it. An
adversary that moves a context leaves the forecast where it is, so the problem is the affine one,
exact certificate included, with the honest error y - m in the place of y. At the collapse radius
theta is zero, and the decision is the forecast plus the best constant.

With few rows each error is replaced by several atoms of a smoothed bootstrap with the same variance,
because the quantile of ten numbers is a poor one.
"""

from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from surefoot.ambiguity import AmbiguitySet
from surefoot.costs import ConvexPiecewiseCost, Cost
from surefoot.exceptions import UnsupportedProblemError
from surefoot.forecasts.cleaning import Suspect
from surefoot.forecasts.forecast import Forecast
from surefoot.forecasts.forecaster import Forecaster
from surefoot.forecasts.rolling import Rolling
from surefoot.forecasts.stack import Stack
from surefoot.io import register
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters, Policy
from surefoot.policies.features import Select
from surefoot.problem import Problem
from surefoot.typing import BoolArray, FloatArray, IntArray

# A nominal of fewer rows than this is filled up with atoms, up to so many for each row.
FULL_ROWS, MOST_ATOMS = 150, 7
# Weights that stand for more rows than this are not written out as rows.
MOST_UNMERGED = 100_000


@register
@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts or decisions of all products, one function of the context: the offset of a policy."""

    forecasts: tuple[Forecast | Stack, ...]

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the forecasts, shape (rows, products)."""
        return np.column_stack([forecast(contexts) for forecast in self.forecasts])

    @property
    def decides(self) -> bool:
        """Whether these are decisions of ensembles, and not forecasts to be corrected."""
        return all(isinstance(one, Stack) for one in self.forecasts)

    @property
    def shifts(self) -> FloatArray:
        """What recent errors add to decisions, shape (products,)."""
        return np.array([one.shift if isinstance(one, Stack) else 0.0 for one in self.forecasts])

    def far(self, contexts: FloatArray) -> BoolArray:
        """Return which numbers lie far outside what was seen, shape of the contexts."""
        far = np.zeros(contexts.shape, dtype=bool)
        for one in self.forecasts:
            if isinstance(one, Stack):
                far |= one.far(contexts)
        return far

    def __repr__(self) -> str:
        """Print how many there are."""
        return f"Forecasts({len(self.forecasts)} of the outcome)"


class Question(NamedTuple):
    """A problem that is ready but for its radius.

    Attributes
    ----------
    problem
        What is to be solved, at radius zero if the radius is yet to be chosen.
    rehearsal
        The same around rows of which each may be held out, to choose a radius with.
    corrects
        Whether the policy corrects a forecast, which then is the better guess until folds say
        otherwise.
    parameters
        Those of the policy where nothing is left to solve; None where something is.
    suspects
        Numbers in the data that look like errors.
    times
        When each row of the rehearsal was, which then are in order; None where that is not known.
    rolling
        What decisions cost in order of time; None where it is not known, or rows are too few.
    """

    problem: Problem
    rehearsal: Problem
    corrects: bool = False
    parameters: LinearParameters | None = None
    suspects: tuple[Suspect, ...] = ()
    times: IntArray | None = None
    rolling: Rolling | None = None


def why_not_centred(cost: Cost, policy: Policy) -> str | None:
    """Return why a policy cannot start from a forecast, or None if it can."""
    if not isinstance(cost, ConvexPiecewiseCost):
        return f"it needs a piecewise linear cost such as Newsvendor, got {type(cost).__name__}"
    if not isinstance(policy, Linear) or not policy.intercept:
        return "it needs a Linear policy with an intercept"
    if policy.features is not None or policy.offset is not None:
        return "it needs a policy without a feature map and without an offset"
    if policy.decisions is not None and not policy.decisions.in_units:
        return "it needs decisions in units of the outcome"
    return None


def centred(
    cost: Cost, policy: Policy, ball: AmbiguitySet, forecaster: Forecaster, rows: Empirical, seed: int
) -> Question:
    """Learn a forecast for each product, and return the question of how to correct it.

    Frozen columns are left to the forecast: a correction that no radius holds back would only learn
    their noise.
    """
    reason = why_not_centred(cost, policy)
    if (
        reason is not None
        or not isinstance(cost, ConvexPiecewiseCost)
        or not isinstance(policy, Linear)
    ):
        raise UnsupportedProblemError(f"nominal='auto' cannot treat this: {reason}; use nominal=None.")
    distinct = rows.distinct()
    honest_forecasts = [
        forecaster.fit(distinct.contexts, distinct.outcomes[:, j], distinct.masses, pieces, seed)
        for j, pieces in enumerate(cost.pieces(rows.n_products))
    ]
    forecasts = Forecasts(tuple(honest.forecast for honest in honest_forecasts))
    offsets = distinct.outcomes - np.column_stack([honest.errors for honest in honest_forecasts])
    plain = Empirical(
        distinct.contexts, distinct.outcomes, distinct.masses, names=rows.names, offsets=offsets
    )
    units = honest_forecasts[0].units
    bare = all(not one.forecast.theta.any() and one.forecast.smooth is None for one in honest_forecasts)
    count = float(plain.masses.sum()) if units else float(len(offsets))
    frozen = ball.frozen_columns(rows.n_columns, rows.names)
    kept = np.flatnonzero(~frozen)
    features = Select(tuple(kept.tolist())) if frozen.any() else None
    question = Problem(
        cost,
        replace(policy, offset=forecasts, features=features),
        plain if bare else smoothed(plain, count),
        (ball if features is None else ball.on_columns(kept)).at(0.0),
    )
    return Question(question, question.around(_unmerged(plain) if units else plain), corrects=True)


def _unmerged(errors: Empirical) -> Empirical:
    """Return rows of whole masses as so many rows: each may be held out alone."""
    masses = errors.masses
    if (masses == 1.0).all() or masses.sum() > MOST_UNMERGED:
        return errors
    return errors.take(np.repeat(np.arange(len(masses)), masses.astype(np.int64)), np.ones(1))


def smoothed(rows: Empirical, count: float | None = None) -> Empirical:
    """Return each error as several atoms, of the same mean and variance, where rows are few.

    The bandwidth is n^(-1/3) standard deviations: that of a quantile, not of a density. ``count`` is
    how many observations n the rows stand for; None is one each.

    References
    ----------
    Silverman and Young (1987), "The bootstrap: to smooth or not to smooth?", Biometrika.
    """
    count = float(len(rows.weights)) if count is None else count
    offsets = np.zeros_like(rows.outcomes) if rows.offsets is None else rows.offsets
    errors = (rows.outcomes - offsets).T
    made = [smooth_atoms(column, rows.weights, count)[0] for column in errors]
    atoms = len(made[0]) // len(rows.weights)
    if atoms == 1:
        return rows
    again = np.repeat(offsets, atoms, axis=0)
    return Empirical(
        np.repeat(rows.contexts, atoms, axis=0),
        np.column_stack(made) + again,
        np.repeat(rows.masses, atoms),
        names=rows.names,
        offsets=None if rows.offsets is None else again,
    )


def smooth_atoms(errors: FloatArray, shares: FloatArray, count: float) -> tuple[FloatArray, FloatArray]:
    """Return errors of one product as several atoms each, one after the other, and their shares.

    See ``smoothed``; where there are many rows errors are as they were.
    """
    atoms = min(max(int(FULL_ROWS / count), 1), MOST_ATOMS)
    if atoms == 1:
        return errors, shares
    width = count ** (-1.0 / 3.0)
    mean = shares @ errors
    deviation = np.sqrt(shares @ (errors - mean) ** 2)
    shrunk = mean + np.sqrt(1.0 - width**2) * (errors - mean)
    moved = shrunk[:, None] + width * deviation * _normal_places(atoms)
    return moved.ravel(), np.repeat(shares / atoms, atoms)


@cache
def _normal_places(atoms: int) -> FloatArray:
    """Return places of equal mass of a normal distribution, of variance one together."""
    normal = NormalDist()
    places = np.array([normal.inv_cdf((k + 0.5) / atoms) for k in range(atoms)])
    return np.asarray(places / np.sqrt(np.mean(places**2)))
