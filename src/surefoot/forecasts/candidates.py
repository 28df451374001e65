"""Members of the default before their constants are chosen, with decisions on rows not seen.

The forecast behind a decision is learned without its row. The constant that is added to it is chosen by
the rows of other folds: the best constant for some rows looks cheaper on them than it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from surefoot.costs import Pieces
from surefoot.forecasts.centred import smooth_atoms
from surefoot.forecasts.explanations import explained
from surefoot.forecasts.extrapolation import nearest_past
from surefoot.forecasts.forecaster import Bases, Forecaster, HonestForecast, standard_forest
from surefoot.forecasts.forest_member import leaf_quantiles
from surefoot.forecasts.members import Exponential, Level, Spreading, with_logarithms
from surefoot.forecasts.robust_scales import robust_scale
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.sparse import SparseForecaster, may_be_sparse
from surefoot.forecasts.stack import Member
from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray

LEAST_LOG_ROWS, LEAST_SPREAD_ROWS, LEAST_LEAF_ROWS = 8, 20, 12
# Outcomes below this share of their median are moved away from zero before the logarithm.
LOG_FLOOR, LOG_SHIFT = 0.05, 0.1
# Positive columns whose largest number is so many times the smallest are read on the logarithm together
# with outcomes, down to this share of the smallest.
LOG_TIMES, COLUMN_FLOOR = 2.0, 0.5
# Constants, and weights of honest decisions, come from the other folds.
FOLDS = 5
# Members learn from outcomes so many robust scales beside their forecast at most, unless many are far.
INFLUENCE, MOST_CUT = 3.0, 0.1
# A forecast from few of many columns joins if it costs less than others by this share, by more if rows
# are few: by so much over the root of their number.
CLEAR_GAIN, CLEAR_ROOTS = 0.1, 1.5
LINEAR = Forecaster(smooth=False, trees=False)
SIZE_FLOOR = 0.1  # of the robust scale of errors: errors of nothing have no logarithm


@dataclass(frozen=True, eq=False)
class Candidate:
    """A member that still lacks its constant.

    Attributes
    ----------
    scores
        Of each row, the number whose best constant the member adds; None if it adds none.
    decide
        From a constant to the decision of each row, whose forecast did not see the row.
    member
        From a constant to the member.
    """

    scores: FloatArray | None
    decide: Callable[[float], FloatArray]
    member: Callable[[float], Member]

    def constant(self, rows: Rows, masses: FloatArray, pieces: Pieces) -> float:
        """Return the constant that is best for rows with these masses, some of which may be zero."""
        if self.scores is None:
            return 0.0
        chosen = masses > 0.0
        shares = masses[chosen] / masses.sum()
        atoms, shares = smooth_atoms(self.scores[chosen], shares, rows.observations(masses))
        return pieces.best_constant(atoms, shares)

    def honest_cost(self, rows: Rows, pieces: Pieces) -> float:
        """Return the mean cost of decisions with the constant that is best for all rows."""
        decided = self.decide(self.constant(rows, rows.masses, pieces))
        return float(rows.masses @ pieces.evaluate(decided - rows.outcomes) / rows.masses.sum())


def fold_masses(rows: Rows, seed: int) -> FloatArray:
    """Return the mass of each row in each fold, shape (rows, folds).

    A row is in one fold; where each unit of mass is an observation of its own, its units are spread.
    """
    n, rng = len(rows.outcomes), rng_for(seed, "folds")
    if rows.units:
        return rng.multinomial(rows.masses.astype(np.int64), np.full(FOLDS, 1.0 / FOLDS)).astype(float)
    folds = rng.permutation(n) % min(FOLDS, n)
    return np.asarray(rows.masses[:, None] * (folds[:, None] == np.arange(folds.max() + 1)))


def by_others(parts: FloatArray, told: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return what is told of rows from the masses of the other folds, averaged over a row's folds.

    Parameters
    ----------
    parts
        Mass of each row in each fold.
    told
        From masses to numbers for all rows, shape (rows,) or (rows, members).
    """
    whole = parts.sum(axis=1)
    total: FloatArray | float = 0.0
    for own in parts.T:
        others = whole - own
        without = told(others if others.any() else whole)
        share = own / whole
        total = total + (share[:, None] if without.ndim == 2 else share) * without
    return np.asarray(total)


def honest_decisions(
    members: list[Candidate], rows: Rows, parts: FloatArray, pieces: Pieces
) -> FloatArray:
    """Return decisions with constants of the other folds, shape (rows, members)."""
    return by_others(
        parts,
        lambda masses: np.column_stack(
            [one.decide(one.constant(rows, masses, pieces)) for one in members]
        ),
    )


def candidates(
    rows: Rows, pieces: Pieces, seed: int, past: IntArray, *, constant: bool
) -> list[Candidate]:
    """Learn every member that the rows allow.

    ``past`` names the columns that are the outcome's own past; ``constant`` adds the constant decision.
    """
    y, n = rows.outcomes, len(rows.outcomes)
    bases = Bases()
    plain = _learned(Forecaster(), rows, pieces, seed, bases)
    nearest = nearest_past(rows, past)
    members = [_level(plain, y), _level(_since(LINEAR, rows, pieces, seed, bases, nearest), y)]
    if may_be_sparse(rows):
        sparse = _level(_since(SparseForecaster(), rows, pieces, seed, bases, nearest), y)
        costs = [one.honest_cost(rows, pieces) for one in (*members, sparse)]
        if costs[-1] < (1.0 - max(CLEAR_GAIN, CLEAR_ROOTS / np.sqrt(n))) * min(costs[:-1]):
            members.append(sparse)
    if constant:
        members.append(_flat(plain, rows, pieces, seed))
    if not pieces.two or n < LEAST_LOG_ROWS:
        return members
    if y.min() >= 0.0 and (y > 0.0).sum() > 0.5 * n:
        members.append(_exponential(rows, pieces, seed, bases, nearest))
    if n >= LEAST_SPREAD_ROWS:
        since = plain if nearest is None else _since(Forecaster(), rows, pieces, seed, bases, nearest)
        scale = float(robust_scale(since.errors[:, None])[0]) or float(since.errors.std()) or 1.0
        sizes = np.log(np.abs(since.errors) + SIZE_FLOOR * scale)
        told = Forecaster(trees=False).fit_rows(rows.telling(sizes), pieces, seed, bases)
        members.append(_spreading(since, y, told, sizes))
    if n >= LEAST_LEAF_ROWS and not rows.trivial:
        forest = plain.forest or standard_forest(rows, seed)[0]
        member, decided = leaf_quantiles(forest, plain.forecast, rows, pieces.quantile, seed)
        members.append(Candidate(None, lambda _: decided, lambda _: member))
    return members


def _learned(
    forecaster: Forecaster | SparseForecaster, rows: Rows, pieces: Pieces, seed: int, bases: Bases
) -> HonestForecast:
    """Learn a forecast in which no outcome has more than a bounded say.

    Where outcomes lie far from what rows without them forecast, and no context tells why, it is learned
    again from outcomes that are cut there. Its errors are those of the outcomes as they are.
    """
    honest = forecaster.fit_rows(rows, pieces, seed, bases)
    n, middle = len(rows.outcomes), float(np.median(honest.errors))
    most = INFLUENCE * float(robust_scale(honest.errors[:, None])[0])
    far = np.abs(honest.errors - middle) > most
    if n < LEAST_SPREAD_ROWS or most == 0.0 or not 0 < far.sum() <= MOST_CUT * n:
        return honest
    far &= ~explained(rows.contexts, far)
    if not far.any():
        return honest
    told = rows.outcomes - honest.errors + middle
    cut = np.where(far, np.clip(rows.outcomes, told - most, told + most), rows.outcomes)
    again = forecaster.fit_rows(rows.telling(cut), pieces, seed, bases)
    return replace(again, errors=again.errors + rows.outcomes - cut)


def _level(plain: HonestForecast, y: FloatArray) -> Candidate:
    told = y - plain.errors
    return Candidate(plain.errors, lambda c: told + c, lambda c: Level(plain.forecast, c))


def _since(
    forecaster: Forecaster | SparseForecaster,
    rows: Rows,
    pieces: Pieces,
    seed: int,
    bases: Bases,
    past: int | None,
) -> HonestForecast:
    """Return a forecast of outcomes, learned as one of their change since a column of their own past.

    Few rows draw a forecast of outcomes to their mean, and one of changes to what was last.
    """
    if past is None:
        return _learned(forecaster, rows, pieces, seed, bases)
    since = rows.telling(rows.outcomes - rows.contexts[:, past])
    honest = _learned(forecaster, since, pieces, seed, bases)
    forecast = honest.forecast
    theta = forecast.theta + (np.arange(len(forecast.theta)) == past)
    constant = forecast.constant + float(forecast.mean[past])
    return replace(honest, forecast=replace(forecast, theta=theta, constant=constant), forest=None)


def linear_errors(rows: Rows, past: int | None) -> FloatArray:
    """Return the errors of a linear forecast on rows that it had not seen."""
    flat = Pieces.kinked(up=1.0, down=1.0)  # which a linear forecast does not ask
    return _since(LINEAR, rows, flat, 0, Bases(), past).errors


def _flat(plain: HonestForecast, rows: Rows, pieces: Pieces, seed: int) -> Candidate:
    """Return the decision that is the same everywhere."""
    n = len(rows.outcomes)
    middle = Forecaster(smooth=False).fit(np.zeros((n, 1)), rows.outcomes, rows.masses, pieces, seed)
    flat = replace(
        plain.forecast, constant=middle.forecast.constant, smooth=None, trees=None,
        theta=np.zeros_like(plain.forecast.theta),
    )  # fmt: skip
    return Candidate(
        rows.outcomes - flat.constant, lambda c: np.full(n, flat.constant + c), lambda c: Level(flat, c)
    )


def _exponential(rows: Rows, pieces: Pieces, seed: int, bases: Bases, past: int | None) -> Candidate:
    """Return a forecast of the logarithm, from logarithms of columns like sales and their past.

    Where one of these is the own past it is a forecast of the growth since then.
    """
    y = rows.outcomes
    middle, least = float(np.median(y[y > 0.0])), rows.contexts.min(axis=0)
    grows = past is not None and y.min() > 0.0 and least[past] > 0.0
    shift = 0.0 if grows or y.min() > LOG_FLOOR * middle else LOG_SHIFT * middle
    logs = np.log(y + shift)
    floors = np.where(
        (least > 0.0) & (rows.contexts.max(axis=0) >= LOG_TIMES * least), COLUMN_FLOOR * least, 0.0
    )
    if grows:
        floors[past] = COLUMN_FLOOR * least[past]
    if floors.any():
        told_of = replace(rows, contexts=with_logarithms(rows.contexts, floors), outcomes=logs)
        bases = Bases()
    else:
        told_of = rows.telling(logs)
    forecaster = Forecaster(trees=False)
    honest = _since(forecaster, told_of, pieces, seed, bases, past if grows else None)
    told, top = logs - honest.errors, float(logs.max()) + 2.0
    return Candidate(
        honest.errors,
        lambda c: np.asarray(np.exp(np.minimum(told + c, top)) - shift),
        lambda c: Exponential(honest.forecast, c, shift, top, floors if floors.any() else None),
    )


def _spreading(
    plain: HonestForecast, y: FloatArray, of_sizes: HonestForecast, sizes: FloatArray
) -> Candidate:
    told = sizes - of_sizes.errors
    spread, middle = np.exp(told), y - plain.errors
    least, most = float(told.min()), float(told.max())
    return Candidate(
        plain.errors / spread,
        lambda c: middle + c * spread,
        lambda c: Spreading(plain.forecast, of_sizes.forecast, c, least, most),
    )
