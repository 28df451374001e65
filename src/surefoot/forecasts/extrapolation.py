"""How far decisions follow contexts that lie outside what was seen.

A linear forecast goes on beyond the rows that it was learned from, rightly where sales grow and their
own past is a column, wrongly where a season looked like a trend. So several are learned: from all rows,
without those of the lowest and of the highest forecasts (which have to be extrapolated to), and from
random halves. What all of them agree on is followed, at the size of the most cautious one. A number
that is far outside while the others of its row are not looks like an error and is not followed.
"""

import numpy as np

from surefoot.costs import Pieces
from surefoot.forecasts.forecaster import Forecaster
from surefoot.forecasts.rows import Rows
from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray

# Rows of the lowest, and of the highest, forecasts that are left out; and how many random halves.
TAIL, HALVES = 0.35, 4
# With fewer rows nothing is followed, and no more than this many are looked at.
LEAST_ROWS, MOST_ROWS = 10, 2_000


def linear_trends(rows: Rows, pieces: Pieces, seed: int) -> FloatArray:
    """Return coefficients of linear forecasts from parts of the rows, shape (forecasts, columns).

    Parameters
    ----------
    rows
        Distinct rows.
    pieces
        The cost.
    seed
        Of halves and, with many rows, of the sample.
    """
    columns = rows.contexts.shape[1]
    if len(rows.outcomes) < LEAST_ROWS or rows.trivial:
        return np.zeros((0, columns))
    rng = rng_for(seed, "extrapolation")
    if len(rows.outcomes) > MOST_ROWS:
        rows = _part(rows, np.sort(rng.choice(len(rows.outcomes), MOST_ROWS, replace=False)))
    linear = Forecaster(smooth=False, trees=False)

    n = len(rows.outcomes)
    whole = linear.fit(rows.contexts, rows.outcomes, rows.masses, pieces, seed)
    order = np.argsort(rows.outcomes - whole.errors, kind="stable")
    left_out = round(TAIL * n)
    parts = [order[left_out:], order[: n - left_out]]
    parts += [np.sort(rng.permutation(n)[: n // 2]) for _ in range(HALVES)]
    found = [whole.forecast.theta]
    for chosen in parts:
        part = _part(rows, chosen)
        fitted = linear.fit(part.contexts, part.outcomes, part.masses, pieces, seed)
        found.append(fitted.forecast.theta)
    return np.stack(found)


def _part(rows: Rows, chosen: IntArray) -> Rows:
    return Rows.of(rows.contexts[chosen], rows.outcomes[chosen], rows.masses[chosen])


def agreed_change(moves: FloatArray, trends: FloatArray) -> FloatArray:
    """Return what all trends make of moves of contexts: the smallest change, or none if signs differ.

    Parameters
    ----------
    moves
        Shape (rows, columns).
    trends
        Coefficients, shape (forecasts, columns).

    Examples
    --------
    >>> agreed_change(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[2.0, 1.0], [3.0, -1.0]]))
    array([2., 0.])
    """
    if len(trends) == 0:
        return np.zeros(len(moves))
    changes = moves @ trends.T
    signs = np.sign(changes[:, 0])
    same = (np.sign(changes) == signs[:, None]).all(axis=1)
    return np.asarray(np.where(same, signs * np.abs(changes).min(axis=1), 0.0))


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
