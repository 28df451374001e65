r"""A level that drifts: what recent errors say about the next decisions.

Honest errors in order of time, less their median, are smoothed: with :math:`e_t` the median of the last
three and a cut where it is far from the level,

.. math:: s_{t+1} = s_t + a \, (e_t - s_t), \qquad s_0 = 0,

and a decision is moved by the last :math:`s` and by a constant, since errors that are left ask for
another quantile. How fast old errors are forgotten is chosen by what the moves would have cost on rows
that came later; without a clear gain nothing is moved. Only a level that contexts do not know about
leaves errors that resemble their neighbours, so with the outcome's own past among the contexts there is
less left to move.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from surefoot.costs import Pieces
from surefoot.costs.quantiles import weighted_quantile
from surefoot.forecasts.rows import observed
from surefoot.typing import FloatArray, IntArray

# After so many times an error counts for half.
HALF_LIVES = (8, 16, 32, 64)
# A move is judged so many times later, and from this share of the times on.
AHEAD, FIRST_SHARE = (1, 14), 0.2
# Judged times are cut into so many blocks, and a gain counts from this many standard errors on.
LEAST_BLOCKS, MOST_BLOCKS, ROWS_OF_BLOCK, MARGIN = 4, 10, 5, 0.5
LEAST_TIMES = 8
# The constant is half of what errors ask for where so many rows were judged.
FEW_ROWS = 50.0
# Errors are cut at so many median absolute deviations beside the level.
GROSS = 8.0


class Drift(NamedTuple):
    """How far decisions are moved: those of each row by the errors before it, and those to come."""

    moves: FloatArray
    ahead: float


def drift(
    decided: FloatArray,
    outcomes: FloatArray,
    masses: FloatArray,
    times: IntArray,
    pieces: Pieces,
    lowest: float,
) -> Drift:
    """Return how far recent errors move decisions.

    Parameters
    ----------
    decided
        Honest decisions, shape (rows,).
    outcomes, masses
        Of each row.
    times
        When each row was: a whole number; rows of one time do not know of each other.
    pieces
        The cost.
    lowest
        What decisions are at least, after they have moved.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot.costs import Pieces
    >>> rng, cost = np.random.default_rng(0), Pieces.kinked(up=1.0, down=1.0)
    >>> steady, times = rng.normal(size=200), np.arange(200)
    >>> walk = 0.3 * np.cumsum(rng.normal(size=200))
    >>> found = [
    ...     drift(np.full(200, np.median(y)), y, np.ones(200), times, cost, -np.inf).ahead
    ...     for y in (steady, steady + walk)
    ... ]
    >>> [round(one, 1) for one in found], round(float(walk[-1] - np.median(walk)), 1)
    ([0.0, -2.4], -1.3)
    """
    masses = observed(masses)
    known, places = np.unique(times, return_inverse=True)
    errors = outcomes - decided
    errors = errors - weighted_quantile(errors, masses, 0.5)
    size = weighted_quantile(np.abs(errors), masses, 0.5)
    stay = Drift(np.zeros(len(decided)), 0.0)
    first = max(int(FIRST_SHARE * len(known)), *_steps_ahead(len(known)))
    if size == 0.0 or len(known) - first < LEAST_TIMES:
        return stay
    total = np.bincount(places, masses)
    errors = np.bincount(places, masses * errors) / total
    judged, steps = places >= first, _steps_ahead(len(known))
    before = pieces.evaluate(decided - outcomes)
    best, chosen = 0.0, stay
    for smooth in _smoothed(_of_three(errors), GROSS * size):
        follow = np.array([smooth[np.maximum(places - step + 1, 0)] for step in steps])
        constant = _constant((outcomes - decided - follow)[:, judged], masses[judged], pieces)
        moved = np.maximum(decided + follow + constant, lowest)
        costs = (pieces.evaluate(moved - outcomes) - before).sum(axis=0)
        change = _sure_mean((np.bincount(places, masses * costs) / total)[first:])
        if change < best:
            best = change
            chosen = Drift(smooth[places] + constant, float(smooth[-1]) + constant)
    return chosen


def _constant(errors: FloatArray, masses: FloatArray, pieces: Pieces) -> float:
    """Return what the errors that are left ask for, drawn to zero where they are few."""
    best = pieces.best_constant(errors.ravel(), np.tile(masses, len(errors)))
    return best * float(masses.sum()) / (float(masses.sum()) + FEW_ROWS)


def _steps_ahead(times: int) -> list[int]:
    """Return how many times later moves are judged; few times have no room for many."""
    return [max(1, min(steps, int(FIRST_SHARE * times))) for steps in AHEAD]


def _of_three(errors: FloatArray) -> FloatArray:
    """Return the median of each error and the two before it, so that a single one has no say.

    >>> _of_three(np.array([1.0, 2.0, 90.0, 4.0, 5.0]))
    array([1., 1., 2., 4., 5.])
    """
    before = np.concatenate([errors[:1], errors[:1], errors])
    return np.asarray(np.median([before[:-2], before[1:-1], before[2:]], axis=0))


def _smoothed(errors: FloatArray, most: float) -> Iterator[FloatArray]:
    """Yield the level of errors before each time, and after the last, for each half-life.

    An error counts for ``most`` beside the level at most.
    """
    for life in HALF_LIVES:
        share, levels = 1.0 - 0.5 ** (1.0 / life), [0.0]
        for error in errors.tolist():
            levels.append(levels[-1] + share * min(max(error - levels[-1], -most), most))
        yield np.array(levels)


def _sure_mean(changes: FloatArray) -> float:
    """Return the mean of changes in order of time, plus some of its standard error between blocks."""
    count = min(max(len(changes) // ROWS_OF_BLOCK, LEAST_BLOCKS), MOST_BLOCKS)
    blocks = np.array([block.mean() for block in np.array_split(changes, count)])
    return float(blocks.mean() + MARGIN * blocks.std(ddof=1) / np.sqrt(count))
