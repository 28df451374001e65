"""A quantile forest from trees that are grown anyhow, with honest decisions."""

import numpy as np

from surefoot.forecasts.forecast import Forecast
from surefoot.forecasts.members import LeafQuantile
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.trees import Forest
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray, IntArray

PER_LEAF = 4  # outcomes that stand for a leaf
PIECE = 2048


def leaf_quantiles(
    forest: Forest, forecast: Forecast, rows: Rows, quantile: float, seed: int
) -> tuple[LeafQuantile, FloatArray]:
    """Return the member, and for each row what the trees that never saw it decide."""
    n, rng = len(rows.outcomes), rng_for(seed, "leaves")
    trees, seen = forest.trees, forest.seen
    nodes = np.concatenate(
        [trees.leaves(rows.scaled[k : k + PIECE]) for k in range(0, n, PIECE)]
    )  # (n, trees)
    names, place = np.unique(nodes, return_inverse=True)
    place = place.reshape(nodes.shape)
    samples = np.empty((len(names), PER_LEAF))
    # Rows in random order, those that a tree was grown from first: the first of each leaf stand for it.
    order = rng.permutation(n)
    flat = place[order].T.ravel()  # tree by tree
    values = np.tile(rows.outcomes[order], nodes.shape[1])
    grown = seen[order].T.ravel()
    ranked = np.lexsort((~grown, flat))
    flat, values, grown = flat[ranked], values[ranked], grown[ranked]
    starts = np.searchsorted(flat, np.arange(len(names)))
    sizes = np.add.reduceat(grown.astype(np.int64), starts)
    for k in range(PER_LEAF):
        samples[:, k] = values[starts + k % np.maximum(sizes, 1)]
    leaf = np.zeros(len(trees.value), dtype=np.int64)
    leaf[names] = np.arange(len(names))
    member = LeafQuantile(trees, forecast.mean, forecast.spread, leaf, samples, quantile)
    return member, _honest(samples, place, seen, rows, quantile)


def _honest(
    samples: FloatArray, place: IntArray, seen: BoolArray, rows: Rows, quantile: float
) -> FloatArray:
    """Return quantiles over the trees that never saw a row; the plain one where all trees saw it."""
    decided = np.empty(len(place))
    for k in range(0, len(place), PIECE):
        some = np.repeat(seen[k : k + PIECE], PER_LEAF, axis=1)
        values = samples[place[k : k + PIECE]].reshape(len(some), -1)
        ordered = np.sort(np.where(some, np.inf, values), axis=1)
        count = (~some).sum(axis=1)
        at = np.clip(np.ceil(quantile * count - 1e-9).astype(np.int64) - 1, 0, None)
        decided[k : k + PIECE] = ordered[np.arange(len(some)), np.minimum(at, ordered.shape[1] - 1)]
    lost = ~np.isfinite(decided)
    decided[lost] = np.quantile(rows.outcomes, quantile)
    return decided
