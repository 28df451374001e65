"""Whether contexts tell why outcomes are far from all others: a promotion, a holiday, a heat wave.

Slips of the pen do not choose their context, but by chance some share one: of corners there are very
many, and of levels of rare flags a few.
"""

import importlib

import numpy as np
from scipy.special import bdtrc

from surefoot.typing import BoolArray, FloatArray, IntArray

# A level of a column of so few at which so many outcomes are far explains them.
MOST_LEVELS, LEVEL_SHARE = 12, 0.5
# A corner of so many rows of which this share is far explains them, too, unless chance would make one.
CORNER_ROWS, CORNER_SHARE, CORNER_CHANCE = 3, 0.75, 1e-3
# An outcome so many times as large as any sound one, or turned around, needs a second one of so many
# times at its level, and so many levels, at most, that would do as well by chance.
WILD_TIMES, WITNESS_TIMES, WILD_CHANCE = 7.0, 5.0, 0.3


def explained(contexts: FloatArray, far: BoolArray, times: FloatArray | None = None) -> BoolArray:
    """Return which far outcomes come with a context that tells them from the others.

    That is a level of a flag or category at which most outcomes are far, or a corner of one or two
    columns with several rows of which nearly all are.

    Parameters
    ----------
    contexts
        Shape (rows, columns).
    far
        Which outcomes are far from what is expected of them.
    times
        How many times as large as any sound outcome each is; infinite for one that cannot be. None is
        once.

    Examples
    --------
    >>> promotion = np.array([1.0, 1.0] + 30 * [0.0])
    >>> explained(promotion[:, None], promotion > 0.0)[:3]
    array([ True,  True, False])
    """
    told = np.zeros_like(far)
    if not far.any():
        return told
    times = np.ones(len(far)) if times is None else times
    wild, witnesses = far & (times > WILD_TIMES), far & (times > WITNESS_TIMES)
    columns = [np.unique(column, return_inverse=True)[1] for column in contexts.T]
    columns = [places for places in columns if places.max() < MOST_LEVELS]
    levels = sum(int(places.max()) + 1 for places in columns)
    for places in columns:
        rows = np.bincount(places)
        of_far, of_wild = (np.bincount(places, weights=one) for one in (far, witnesses))
        # A level of nearly all rows tells nothing.
        telling = (of_far >= LEVEL_SHARE * rows) & (rows <= 0.5 * len(far))
        borne_out = (of_wild >= 2) & (_by_chance(levels, rows, of_wild, witnesses) < WILD_CHANCE)
        told |= far & telling[places] & (borne_out[places] | ~wild)
    return told | _cornered(contexts, far & ~told)


def _by_chance(groups: int, rows: IntArray | int, hits: IntArray | int, far: BoolArray) -> FloatArray:
    """Return how many groups of so many rows would hold so many far ones if far ones were anywhere."""
    return np.asarray(groups * bdtrc(hits - 1.0, rows, far.mean()))


def _cornered(contexts: FloatArray, far: BoolArray) -> BoolArray:
    """Return which far outcomes lie in a corner of one or two columns where nearly all are far."""
    cornered, count = np.zeros_like(far), int(far.sum())
    sides = (2 * contexts.shape[1]) ** 2  # about so many corners of two columns start at any row
    if count == 0 or _by_chance(count * sides, count, count, far) >= CORNER_CHANCE:
        return cornered  # not even a corner of all of them would tell
    # Not at the top: it is slow to load, and few tables have far outcomes.
    trees = importlib.import_module("sklearn.tree")
    tree = trees.DecisionTreeClassifier(
        max_depth=2, min_samples_leaf=CORNER_ROWS, class_weight="balanced", random_state=0
    )
    leaves = tree.fit(contexts, far).apply(contexts)
    for leaf in np.unique(leaves):
        inside = leaves == leaf
        rows, hits = int(inside.sum()), int(far[inside].sum())
        telling = hits >= CORNER_SHARE * rows and rows <= 0.5 * len(far)
        if telling and _by_chance(rows * sides, rows, hits, far) < CORNER_CHANCE:
            cornered |= far & inside
    return cornered
