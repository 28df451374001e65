"""How decisions follow an outcome's own past to a level that was never seen.

Sales of last week, or of the same month a year ago, are columns with the outcome's own distribution, in
its own unit. Where they lie outside what was seen, sales have grown or shrunk, and trees, kernels and
cut contexts know nothing of it. Such rows are decided at the nearest level that was seen, and the
decision is taken to their own level in two ways, averaged: moved by as much as the past was moved, as
if errors stayed the same, and stretched by the same factor, as if they grew with the level.

Columns that rise with the outcome, such as an indicator that leads it, are taken to that level with the
past. By themselves they are not followed: a season looks like a trend. And a number that is far outside
while the others of its row are not looks like an error.

Columns with a long tail, such as incomes or rain, are another matter: their farthest rows lie far
outside the others, and so show whether a line goes on there. Where it does, it is followed.
"""

import numpy as np

from surefoot.costs import Pieces
from surefoot.forecasts.rows import Rows
from surefoot.typing import BoolArray, FloatArray, IntArray

# With fewer rows nothing is followed; those without sales, or of another common outcome, do not count.
# About so many rows are looked at, at most twice as many.
LEAST_ROWS, MANY_ROWS = 10, 2_000
# Of a column's sorted numbers with sorted outcomes: the least correlation of an own past, and of the
# numbers as they come: what says nothing of outcomes is not worth following.
LEAST_LIKENESS, LEAST_CORRELATION = 0.94, 0.25
# Columns of this correlation with outcomes rise with them.
CLEAR_CORRELATION = 0.5
# Spreads in the same unit differ by less than this factor, and means by less than a spread.
SAME_SPREAD = 2.0
# Decisions shrink to this share of those at the lowest level seen, at most.
LEAST_FACTOR = 1e-3
# A number is followed so many times as far outside as another of its row is.
TIMES_WITNESS = 10.0
# So many rows are farthest out on each side of a column, or this share of few rows. A tail is long from
# so many ranges of the others on, and a line is known to go on for so many times its length if it costs
# the farthest rows at most this share of a line that ends near the others.
TAIL_ROWS, TAIL_SHARE, LONG_TAIL, TIMES_TAIL, LINE_SHARE = 5, 0.15, 0.5, 6.0, 0.33
# What lies beyond all rows seen is left out of a bound where the farthest row is so many times as far
# from the median as this quantile, and its mirror image below.
UNBOUNDED_REACH, MIDDLE = 5.0, 0.8


def own_past(rows: Rows) -> IntArray:
    """Return the columns that are the outcome's own past.

    They are distributed like it (the sorted numbers are those of the outcomes but for a few), in its
    unit, and tell of it.

    >>> y = np.array([5.0, 6.0, 9.0, 11.0, 12.0, 16.0, 15.0, 17.0, 21.0, 22.0])
    >>> past, flags = np.append(3.0, y[:-1]), 1.0 * (y > 20.0)
    >>> own_past(Rows.of(np.column_stack([past, -past, 5.0 * past, flags]), y, None))
    array([0])
    """
    every = len(rows.outcomes) // MANY_ROWS
    if every > 1:
        rows = Rows(rows.contexts[::every], rows.outcomes[::every], rows.masses[::every])
    # Columns of many zeros are alike, whatever they hold.
    repeats = np.unique(rows.outcomes, return_counts=True)[1]
    common = repeats[repeats > 1].max(initial=0)
    if len(rows.outcomes) - common < LEAST_ROWS or rows.trivial:
        return np.zeros(0, dtype=np.int64)
    scaled, kept, centred = rows.scaled, rows.varies, rows.outcomes - rows.average
    deviation = np.sqrt(rows.masses @ centred**2 / rows.masses.sum())
    telling = (rows.masses * centred) @ scaled / (rows.masses.sum() * deviation) >= LEAST_CORRELATION
    times = rows.spread[kept] / deviation
    unit = (times < SAME_SPREAD) & (times > 1.0 / SAME_SPREAD)
    unit &= np.abs(rows.mean[kept] - rows.average) <= deviation
    past = telling & unit & (_likeness(rows, scaled, centred) >= LEAST_LIKENESS)
    return np.asarray(np.flatnonzero(kept)[past])


def _likeness(rows: Rows, scaled: FloatArray, centred: FloatArray) -> FloatArray:
    """Return the correlation of each column's quantiles with those of outcomes."""
    order = np.argsort(centred, kind="stable")
    masses, wanted = rows.masses[order], centred[order]
    levels = np.cumsum(masses) - 0.5 * masses
    places = np.argsort(scaled, axis=0, kind="stable")
    below = np.cumsum(rows.masses[places], axis=0).T
    ranks = np.array([column.searchsorted(levels) for column in below], dtype=np.int64)
    ranks = np.minimum(ranks.reshape(below.shape).T, len(wanted) - 1)
    quantiles = np.take_along_axis(scaled, np.take_along_axis(places, ranks, axis=0), axis=0)
    quantiles = quantiles - masses @ quantiles / masses.sum()
    size = np.sqrt(masses @ wanted**2)
    return np.asarray((masses * wanted) @ quantiles / (size * np.sqrt(masses @ quantiles**2)))


def nearest_past(rows: Rows, past: IntArray) -> int | None:
    """Return the column of the own past that outcomes differ least from, None if it helps nothing."""
    if not len(past):
        return None
    shares = rows.masses / rows.masses.sum()
    changes = rows.outcomes[:, None] - rows.contexts[:, past]
    squares = shares @ (changes - shares @ changes) ** 2
    best = int(np.argmin(squares))
    helps = squares[best] < shares @ (rows.outcomes - rows.average) ** 2
    return int(past[best]) if helps else None


def moving_along(rows: Rows, past: IntArray) -> FloatArray:
    """Return how much each column rises with an outcome that rises by one, shape (columns,).

    That is one for the own past and a slope for columns that clearly rise with outcomes; zero for
    others, and for flags.
    """
    slopes_along = np.zeros(rows.contexts.shape[1])
    slopes_along[past] = 1.0
    centred, kept = rows.outcomes - rows.average, np.flatnonzero(rows.varies)
    square = rows.masses @ centred**2
    if not len(past) or square == 0.0:
        return slopes_along
    slopes = (rows.masses * centred) @ (rows.contexts[:, kept] - rows.mean[kept]) / square
    shares = slopes * np.sqrt(square / rows.masses.sum()) / rows.spread[kept]
    least, most = rows.contexts[:, kept].min(axis=0), rows.contexts[:, kept].max(axis=0)
    between = ((rows.contexts[:, kept] > least) & (rows.contexts[:, kept] < most)).any(axis=0)
    slopes_along[kept] = np.where((shares >= CLEAR_CORRELATION) & between, slopes, 0.0)
    slopes_along[past] = 1.0
    return slopes_along


def ranges_of_lines(
    rows: Rows, past: IntArray, decided: FloatArray, slopes: FloatArray, pieces: Pieces, usual: float
) -> FloatArray:
    """Return for how many ranges below and above a line is known to go on, shape (2, columns).

    It is zero where no line is known to go on.

    Parameters
    ----------
    rows
        What the line was learned from.
    past
        Columns that are the outcome's own past, of which no line is asked.
    decided
        What the line decides for each row, learned without it.
    slopes
        Of the line, one for each column.
    pieces
        The cost.
    usual
        How many ranges lines go on otherwise.

    Examples
    --------
    >>> incomes = np.exp(1.5 * np.random.default_rng(0).standard_normal((50, 2)))
    >>> line, none, cost = incomes[:, 0], np.zeros(0, dtype=int), Pieces.kinked(up=1.0, down=1.0)
    >>> rows = Rows.of(incomes, line + 0.1, None)
    >>> ranges_of_lines(rows, none, line, np.array([1.0, 0.0]), cost, 0.3).round()
    array([[0., 0.],
           [4., 0.]])
    """
    ranges, m = np.zeros((2, len(slopes))), min(TAIL_ROWS, int(TAIL_SHARE * len(decided)))
    if m < 2:
        return ranges
    ordered = np.sort(rows.contexts, axis=0)
    low, high = ordered[m - 1], ordered[-m]
    width, tails = high - low, np.stack([low - ordered[0], ordered[-1] - high])
    for side, j in np.argwhere((width > 0.0) & (tails >= LONG_TAIL * width)):
        column, room = rows.contexts[:, j], usual * width[j]
        if j in past:
            continue
        beyond = (
            np.maximum(column - high[j] - room, 0.0)
            if side
            else np.minimum(column - low[j] + room, 0.0)
        )
        line, ending = (
            rows.masses[beyond != 0.0] @ pieces.evaluate((told - rows.outcomes)[beyond != 0.0])
            for told in (decided, decided - slopes[j] * beyond)
        )
        if line < LINE_SHARE * ending:
            ranges[side, j] = TIMES_TAIL * tails[side, j] / width[j]
    return ranges


def unbounded_columns(contexts: FloatArray, slopes: FloatArray, most: float) -> BoolArray:
    """Return the columns whose rows to come may cost more than rows seen can tell.

    The farthest row lies far beyond most others, and one as far beyond it would change the mean cost by
    more than ``most``.

    Parameters
    ----------
    contexts
        Shape (rows, columns).
    slopes
        What a unit of each column may cost.
    most
        The change of the mean cost that is not worth a word.

    Examples
    --------
    >>> incomes = np.exp(1.5 * np.random.default_rng(0).standard_normal((50, 2)))
    >>> unbounded_columns(incomes, np.array([1.0, 0.0]), 0.1)
    array([ True, False])
    """
    middle, low, high = np.quantile(contexts, [0.5, 1.0 - MIDDLE, MIDDLE], axis=0)
    reach = np.stack([middle - contexts.min(axis=0), contexts.max(axis=0) - middle])
    usual = np.stack([middle - low, high - middle])
    far = (usual > 0.0) & (reach >= UNBOUNDED_REACH * usual)
    return np.asarray((far & (np.abs(slopes) * reach > most * len(contexts))).any(axis=0))


def level_outside(
    past: FloatArray, least: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return by how much, and how many times, the past of each row lies outside what was seen.

    Taken back by either, nothing of a row lies above, or below, what was seen.

    Parameters
    ----------
    past
        Shape (rows, columns).
    least, most
        What was seen of each column.

    Examples
    --------
    >>> seen = np.array([2.0, 1.0]), np.array([10.0, 20.0])
    >>> level_outside(np.array([[5.0, 5.0], [15.0, 22.0], [1.0, 3.0]]), *seen)
    (array([ 0.,  5., -1.]), array([1. , 1.5, 0.5]))
    """
    move = np.maximum(past - most, 0.0).max(axis=1) - np.maximum(least - past, 0.0).max(axis=1)
    times = np.maximum(past / np.where(most > 0.0, most, np.inf), 1.0).max(axis=1)
    share = np.where(least > 0.0, past, 1.0) / np.where(least > 0.0, least, 1.0)
    return move, times * np.clip(share, LEAST_FACTOR, 1.0).min(axis=1)


def trust_of_farthest(outside: FloatArray) -> FloatArray:
    """Return by which share the number of each row that lies farthest outside is followed; others are.

    It is followed up to the far margin, beyond only as far as another one bears witness: all the way if
    that is at least half as far outside as the margin and a tenth as far as the number itself, and not
    at all from twice the margin on if all others are inside.

    Parameters
    ----------
    outside
        How many far margins each number lies outside, shape (rows, columns).

    Examples
    --------
    >>> trust_of_farthest(np.array([[0.9, 0.0], [1.5, 0.0], [9.0, 0.0], [5.0, 0.5], [50.0, 0.5]]))
    array([[1. , 1. ],
           [0.5, 1. ],
           [0. , 1. ],
           [1. , 1. ],
           [0.1, 1. ]])
    """
    shares = np.ones_like(outside)
    if outside.shape[1] == 0:
        return shares
    rows, farthest = np.arange(len(outside)), outside.argmax(axis=1)
    others = outside.copy()
    others[rows, farthest] = 0.0
    most, witness = outside[rows, farthest], others.max(axis=1)
    borne_out = witness * np.minimum(2.0, TIMES_WITNESS / np.maximum(most, 1.0))
    shares[rows, farthest] = np.clip(np.maximum(2.0 - most, borne_out), 0.0, 1.0)
    return shares


def trust_of_each(outside: FloatArray, past: IntArray) -> FloatArray:
    """Return by which share each number is followed, whatever others of its row are.

    It is followed up to the far margin, and not at all from twice as far on: an error of who wrote it
    down may be in several columns at once. Beyond the margin only the outcome's own past bears witness,
    as it does in ``trust_of_farthest``.

    Parameters
    ----------
    outside
        How many far margins each number lies outside, shape (rows, columns).
    past
        Columns of the own past.

    Examples
    --------
    >>> far = np.array([[0.9, 0.0, 0.0], [1.5, 9.0, 0.0], [9.0, 9.0, 3.0]])
    >>> trust_of_each(far, np.array([1, 2]))
    array([[1., 1., 1.],
           [1., 0., 1.],
           [1., 1., 1.]])
    >>> trust_of_each(far, np.zeros(0, dtype=np.int64))
    array([[1. , 1. , 1. ],
           [0.5, 0. , 1. ],
           [0. , 0. , 0. ]])
    """
    witness = np.zeros_like(outside)
    for j in past:
        others = np.arange(outside.shape[1]) != j
        witness[:, others] = np.maximum(witness[:, others], outside[:, [j]])
    borne_out = witness * np.minimum(2.0, TIMES_WITNESS / np.maximum(outside, 1.0))
    return np.asarray(np.clip(np.maximum(2.0 - outside, borne_out), 0.0, 1.0))
