"""Columns that hold outcomes of earlier rows: sales of yesterday, or of the same day a week ago.

Where rows come in order of time such a column agrees with the outcomes some rows before, number by
number. No other column does: agreement is measured beyond that of chance, as counts of few levels agree
with anything now and then.
"""

import numpy as np

from surefoot.typing import BoolArray, FloatArray

# So many rows are looked at, and outcomes so many rows before; fewer rows tell nothing.
MOST_ROWS, MOST_LAG, LEAST_ROWS, LEAST_PAIRS = 500, 400, 10, 8
# A column of which fewer numbers are outcomes is not looked at.
LEAST_SHARE = 0.2
# Agreement beyond chance (Cohen's kappa), and by how many standard deviations, counting one pair more.
LEAST_AGREEMENT, LEAST_DEVIATIONS = 0.7, 5.0


def lagged_columns(contexts: FloatArray, outcomes: FloatArray) -> BoolArray:
    """Return which columns hold outcomes of earlier rows, if rows are in order of time.

    Some rows may be missing in between.

    References
    ----------
    Cohen (1960), "A coefficient of agreement for nominal scales", for agreement beyond chance.

    Examples
    --------
    >>> sales = np.array([5.0, 7.0, 6.0, 9.0, 8.0, 11.0, 10.0, 13.0, 12.0, 15.0, 14.0, 17.0, 16.0])
    >>> before = np.append(4.0, sales[:-1])
    >>> lagged_columns(np.column_stack([before, before + 0.5, np.sort(sales)]), sales)
    array([ True, False, False])
    """
    outcomes = outcomes[:MOST_ROWS]
    contexts, n = contexts[: len(outcomes)], len(outcomes)
    lagged = np.zeros(contexts.shape[1], dtype=bool)
    if n < LEAST_ROWS:
        return lagged
    looked_at = np.flatnonzero(np.isin(contexts, outcomes).mean(axis=0) >= LEAST_SHARE)
    numbers, counts = np.unique(outcomes, return_counts=True)
    contexts = contexts[:, looked_at]
    places = np.minimum(np.searchsorted(numbers, contexts), len(numbers) - 1)
    chance = np.where(numbers[places] == contexts, counts[places] / n, 0.0).mean(axis=0)
    # Sorted rows, and outcomes that change seldom, agree with those before if a column is theirs.
    now = (contexts == outcomes[:, None]).mean(axis=0)
    for lag in range(1, min(n - LEAST_PAIRS, MOST_LAG) + 1 if len(looked_at) else 1):
        pairs = n - lag
        agree = (contexts[lag:] == outcomes[:-lag, None]).sum(axis=0)
        beyond = agree - chance * pairs
        deviation = np.sqrt(pairs * chance * (1.0 - chance) + 1.0)
        clear = beyond >= LEAST_AGREEMENT * (1.0 - chance) * pairs
        clear &= (beyond >= LEAST_DEVIATIONS * deviation) & (agree > now * pairs)
        lagged[looked_at[clear]] = True
    return lagged
