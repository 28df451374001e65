"""What decisions would have cost in order of time: each block is decided from the rows before it.

Leaving out single rows, whose neighbours stay, flatters decisions about days to come. Rolling origins
do not: rows are cut into blocks, and what has seen only the rows before a block decides it.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from surefoot.nominals import Empirical
from surefoot.typing import FloatArray, IntArray

BLOCKS = 5
# An ensemble learns from so many rows at least, and so many blocks are needed to see how they vary.
LEAST_ROWS, LEAST_BLOCKS = 8, 3


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
        return float(self.costs.mean() + student.ppf(confidence, count - 1) * spread)


def rolling(
    rows: Empirical,
    learn: Callable[[Empirical], Callable[[FloatArray], FloatArray]],
    cost: Callable[[FloatArray, FloatArray], FloatArray],
) -> Rolling | None:
    """Return what blocks cost, or None where rows are too few.

    Parameters
    ----------
    rows
        In order of time.
    learn
        Makes a policy from rows: a function from contexts to decisions of shape (rows, products).
    cost
        The cost of each row from decisions and outcomes.
    """
    blocks, costs = later_blocks(len(rows.weights)), []
    for block in blocks:
        decide = learn(rows.take(np.arange(block[0])))
        paid = cost(decide(rows.contexts[block]), rows.outcomes[block])
        costs.append(float(np.average(paid, weights=rows.masses[block])))
    return Rolling(np.array(costs), len(blocks[-1])) if blocks else None


def later_blocks(n: int) -> list[IntArray]:
    """Return the blocks of n rows in order of time that have rows to learn from before them.

    None where rows are too few to see how blocks vary.

    >>> [len(block) for block in later_blocks(40)], later_blocks(12)
    ([8, 8, 8, 8], [])
    """
    edges = np.linspace(0, n, BLOCKS + 1).astype(np.int64)
    blocks = [np.arange(a, b) for a, b in pairwise(edges) if a >= LEAST_ROWS]
    return blocks if len(blocks) >= LEAST_BLOCKS else []
