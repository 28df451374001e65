"""Cross-validation that every baseline does in the same way."""

from collections.abc import Callable

import numpy as np

from surefoot.estimators.radius_selection import fold_rows
from surefoot.typing import FloatArray, IntArray


def cross_validate(
    weights: FloatArray, seed: int, costs_of: Callable[[IntArray, IntArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return held-out costs, shape (folds, candidates), and the weight of each fold.

    Parameters
    ----------
    weights
        One for each distinct row, so that a repeated row never stands on both sides of a split.
    seed
        Decides the folds.
    costs_of
        ``costs_of(kept, held_out)`` learns from the kept rows and returns the mean cost of every
        candidate on the held-out rows.

    Examples
    --------
    >>> costs, mass = cross_validate(np.ones(6), 0, lambda kept, out: np.array([len(kept) * 1.0]))
    >>> costs.ravel(), mass
    (array([4., 5., 5., 5., 5.]), array([2., 1., 1., 1., 1.]))
    """
    n, costs = len(weights), []
    parts = fold_rows(n, seed)
    for part in parts:  # threads made it slower: most of the work holds the interpreter's lock
        held_out = np.sort(part)
        costs.append(costs_of(np.setdiff1d(np.arange(n), held_out), held_out))
    return np.array(costs), np.array([weights[part].sum() for part in parts])
