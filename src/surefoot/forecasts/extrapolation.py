"""How far decisions follow contexts that lie outside what was seen.

A linear forecast goes on beyond the rows that it was learned from, rightly where sales grow and their
own past is a column, wrongly where a season looked like a trend. So only columns that are distributed
like outcomes, up to their unit, and rise with them are followed. And several forecasts are learned:
from all rows, without those of the lowest and of the highest forecasts (which have to be extrapolated
to), and from random halves. Where all of them agree on the direction, their median is followed, up to
a few times the smallest. The larger the change is beside the errors of the linear forecast, the more it
starts from the linear decision at the edge of what was seen, because other forecasts bend there. A
number that is far outside while the others of its row are not looks like an error and is not followed.
"""

from dataclasses import dataclass

import numpy as np

from surefoot.costs import Pieces
from surefoot.forecasts.cleaning import robust_scale
from surefoot.forecasts.forecaster import Bases, Forecaster
from surefoot.forecasts.members import Level
from surefoot.forecasts.rows import Rows
from surefoot.io import register
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray, IntArray
from surefoot.validation import check_array, check_instance, check_number

# Rows of the lowest, and of the highest, forecasts that are left out; and how many random halves.
TAIL, HALVES = 0.35, 4
# With fewer rows nothing is followed, and no more than this many are looked at.
LEAST_ROWS, MOST_ROWS = 10, 2_000
# Of a column's sorted numbers with sorted outcomes: the least correlation at which it is followed.
LEAST_LIKENESS = 0.94
# The median change is followed up to this many times the smallest.
MOST_TIMES_SMALLEST = 4.0
# A change of this many robust standard deviations of errors starts half-way to the linear decision.
HALF_WAY = 0.25


@register
@dataclass(frozen=True, eq=False)
class Trend:
    """What linear forecasts make of contexts outside what was seen.

    Attributes
    ----------
    coefficients
        Of linear forecasts from parts of the rows, shape (forecasts, columns); zero where a column is
        not followed.
    line
        The decision by the linear forecast from all rows.
    error
        Robust standard deviation of its errors on rows left out.
    """

    coefficients: FloatArray
    line: Level
    error: float

    def __post_init__(self) -> None:
        """Check that the parts fit."""
        check_instance("line", self.line, Level, "a Level")
        check_array("coefficients", self.coefficients, (len(self.coefficients), self.line.n_columns))
        check_number("error", self.error, at_least=0)

    def follow(self, decided: FloatArray, inside: FloatArray, moves: FloatArray) -> FloatArray:
        """Return decisions for contexts that lie outside by ``moves``.

        Parameters
        ----------
        decided
            Decisions at the nearest contexts inside, shape (rows,).
        inside, moves
            Those contexts, and how far the contexts asked for lie beyond, shape (rows, columns).
        """
        change = agreed_change(moves, self.coefficients)
        size = np.abs(change)
        share = size / np.maximum(size + HALF_WAY * self.error, np.finfo(float).tiny)
        return np.asarray(decided + share * (self.line(inside) - decided) + change)


def linear_trend(rows: Rows, pieces: Pieces, seed: int, bases: Bases | None = None) -> Trend | None:
    """Learn linear forecasts from parts of the rows; None where rows are too few or say nothing.

    Parameters
    ----------
    rows
        Distinct rows.
    pieces
        The cost.
    seed
        Of halves and, with many rows, of the sample.
    bases
        What others have learned from these rows.
    """
    if len(rows.outcomes) < LEAST_ROWS or rows.trivial:
        return None
    rng = rng_for(seed, "extrapolation")
    if len(rows.outcomes) > MOST_ROWS:
        rows = _part(rows, np.sort(rng.choice(len(rows.outcomes), MOST_ROWS, replace=False)))
        bases = None
    linear = Forecaster(smooth=False, trees=False)

    n = len(rows.outcomes)
    whole = linear.fit_rows(rows, pieces, seed, bases)
    order = np.argsort(rows.outcomes - whole.errors, kind="stable")
    left_out = round(TAIL * n)
    parts = [order[left_out:], order[: n - left_out]]
    parts += [np.sort(rng.permutation(n)[: n // 2]) for _ in range(HALVES)]
    found = [whole.forecast.theta]
    found += [linear.coefficients(_part(rows, chosen)) for chosen in parts]
    constant = pieces.best_constant(whole.errors, rows.masses / rows.masses.sum())
    error = float(robust_scale(whole.errors[:, None])[0])
    return Trend(np.stack(found) * like_outcomes(rows), Level(whole.forecast, constant), error)


def like_outcomes(rows: Rows) -> BoolArray:
    """Return which columns are distributed like outcomes, up to their unit, and rise with them.

    An outcome's own past does: its sorted numbers are those of the outcomes but for a few.

    >>> y = np.array([5.0, 6.0, 9.0, 11.0, 12.0, 16.0])
    >>> past, flag = [3.0, 5.0, 6.0, 9.0, 11.0, 12.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    >>> like_outcomes(Rows.of(np.column_stack([past, -np.array(past), flag]), y, None))
    array([ True, False, False])
    """
    y, scaled = rows.outcomes - rows.average, rows.scaled
    order = np.argsort(y, kind="stable")
    masses, wanted = rows.masses[order], y[order]
    levels = np.cumsum(masses) - 0.5 * masses
    size = np.sqrt(masses @ wanted**2)
    places = np.argsort(scaled, axis=0, kind="stable")
    below = np.cumsum(rows.masses[places], axis=0).T
    ranks = np.array([column.searchsorted(levels) for column in below], dtype=np.int64)
    ranks = np.minimum(ranks.reshape(below.shape).T, len(y) - 1)
    quantiles = np.take_along_axis(scaled, np.take_along_axis(places, ranks, axis=0), axis=0)
    quantiles = quantiles - masses @ quantiles / masses.sum()
    likeness = (masses * wanted) @ quantiles / (size * np.sqrt(masses @ quantiles**2))
    like = np.zeros(rows.contexts.shape[1], dtype=bool)
    like[rows.varies] = (likeness >= LEAST_LIKENESS) & ((rows.masses * y) @ scaled >= 0.0)
    return like


def _part(rows: Rows, chosen: IntArray) -> Rows:
    return Rows.of(rows.contexts[chosen], rows.outcomes[chosen], rows.masses[chosen])


def agreed_change(moves: FloatArray, trends: FloatArray) -> FloatArray:
    """Return what trends make of moves of contexts: the median, or none if their signs differ.

    It is at most a few times the smallest, so that nothing jumps where one of them changes its sign.

    Parameters
    ----------
    moves
        Shape (rows, columns).
    trends
        Coefficients, shape (forecasts, columns).

    Examples
    --------
    >>> trends = np.array([[2.0, 1.0], [3.0, -1.0], [2.5, 1.0]])
    >>> agreed_change(np.array([[1.0, 0.0], [0.0, 1.0]]), trends)
    array([2.5, 0. ])
    """
    changes = moves @ trends.T
    middle = np.median(changes, axis=1)
    smallest = (changes * np.sign(middle)[:, None]).min(axis=1)
    most = MOST_TIMES_SMALLEST * np.maximum(smallest, 0.0)
    return np.asarray(np.sign(middle) * np.minimum(np.abs(middle), most))


def trust_of_farthest(outside: FloatArray) -> FloatArray:
    """Return by which share the number of each row that lies farthest outside is followed; others are.

    It is followed up to the far margin, beyond only as far as another one bears witness by being at
    least half as far outside as the margin, and not at all from twice the margin on if all others are
    inside.

    Parameters
    ----------
    outside
        How many far margins each number lies outside, shape (rows, columns).

    Examples
    --------
    >>> trust_of_farthest(np.array([[0.9, 0.0], [1.5, 0.0], [9.0, 0.0], [9.0, 0.5]]))
    array([[1. , 1. ],
           [0.5, 1. ],
           [0. , 1. ],
           [1. , 1. ]])
    """
    shares = np.ones_like(outside)
    if outside.shape[1] == 0:
        return shares
    rows, farthest = np.arange(len(outside)), outside.argmax(axis=1)
    others = outside.copy()
    others[rows, farthest] = 0.0
    witness = 2.0 * others.max(axis=1)
    shares[rows, farthest] = np.clip(np.maximum(2.0 - outside[rows, farthest], witness), 0.0, 1.0)
    return shares
