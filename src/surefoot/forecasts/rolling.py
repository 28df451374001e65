"""What decisions would have cost in order of time: each block is decided from the rows before it.

Leaving out single rows, whose neighbours stay, flatters decisions about days to come. Rolling origins
do not: rows are cut into blocks, and what has seen only the rows before a block decides it.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from surefoot.forecasts.rows import observed
from surefoot.nominals import Empirical
from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray

BLOCKS = 5
# An ensemble learns from so many rows at least, and so many blocks are needed to see how they vary.
LEAST_ROWS, LEAST_BLOCKS = 8, 3
# So many rows of a block, a random choice, say what it costs.
MOST_ROWS = 20_000


class Rolling(NamedTuple):
    """The mean cost of each block, and how many rows a block has."""

    costs: FloatArray
    rows: int

    def bound(self, confidence: float) -> float:
        r"""Return a prediction bound for the mean cost of the next block.

        With K blocks of mean m and standard deviation s it is
        :math:`m + t_{K-1} s \sqrt{1 + 1/K}`, which holds at the stated confidence if block costs are
        independent normal draws. They seldom are: ``benchmarks/quality/robust.py`` measures how often
        it holds on real series.

        >>> round(Rolling(np.array([1.0, 2.0, 3.0]), 10).bound(0.95), 2)
        5.37
        """
        count = len(self.costs)
        spread = float(self.costs.std(ddof=1)) * math.sqrt(1.0 + 1.0 / count)
        return float(self.costs.mean() + stdtrit(count - 1, confidence) * spread)


def rolling(
    rows: Empirical,
    times: IntArray,
    learn: Callable[[Empirical], Callable[[FloatArray], FloatArray]],
    cost: Callable[[FloatArray, FloatArray], FloatArray],
) -> Rolling | None:
    """Return what blocks cost, or None where rows are too few.

    Parameters
    ----------
    rows
        In order of time.
    times
        When each row was; rows of one time stay together.
    learn
        Makes a policy from rows: a function from contexts to decisions of shape (rows, products).
    cost
        The cost of each row from decisions and outcomes.
    """
    blocks, costs = later_blocks(times, rows.masses), []
    for whole in blocks:
        decide = learn(rows.take(np.arange(whole[0])))
        block = whole
        if len(whole) > MOST_ROWS:  # every seventh row might be a Monday
            block = np.sort(rng_for(0, "block").choice(whole, MOST_ROWS, replace=False))
        paid = cost(decide(rows.contexts[block]), rows.outcomes[block])
        costs.append(float(np.average(paid, weights=rows.masses[block])))
    if not blocks:
        return None
    return Rolling(np.array(costs), round(float(observed(rows.masses)[blocks[-1]].sum())))


def later_blocks(times: IntArray, masses: FloatArray | None = None) -> list[IntArray]:
    """Return the blocks of rows in order of time that have rows to learn from before them.

    Rows of one time stay together, and a mass of two counts as two rows; masses that are not whole
    only say how much rows matter beside each other. Empty where rows or times are
    too few to see how blocks vary.

    >>> [len(block) for block in later_blocks(np.arange(40))], later_blocks(np.arange(12))
    ([8, 8, 8, 8], [])
    >>> [len(block) for block in later_blocks(np.repeat(np.arange(6), 10))]
    [10, 10, 10, 20]
    """
    rows = np.cumsum(np.ones(len(times)) if masses is None else observed(masses))
    shares = np.floor(rows[-1] * np.arange(1, BLOCKS) / BLOCKS + 1e-9)
    edges = np.searchsorted(rows, shares, side="right")
    edges = np.unique(np.searchsorted(times, times[np.minimum(edges, len(times) - 1)]))
    sound = [edge for edge in edges if edge > 0 and rows[edge - 1] >= LEAST_ROWS]
    blocks = [np.arange(a, b) for a, b in pairwise([*sound, len(times)])]
    return blocks if len(blocks) >= LEAST_BLOCKS else []
