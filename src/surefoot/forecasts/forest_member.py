"""A quantile forest from trees that are grown anyhow, with honest decisions."""

import numpy as np

from surefoot.engines.tree_kernels import leaf_samples, unseen_quantiles
from surefoot.forecasts.forecast import Forecast
from surefoot.forecasts.members import LeafQuantile
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.trees import Forest
from surefoot.random import rng_for
from surefoot.typing import FloatArray

PER_LEAF = 4  # outcomes that stand for a leaf


def leaf_quantiles(
    forest: Forest, forecast: Forecast, rows: Rows, quantile: float, seed: int
) -> tuple[LeafQuantile, FloatArray]:
    """Return the member, and for each row what the trees that never saw it decide."""
    order = rng_for(seed, "leaves").permutation(len(rows.outcomes))
    rising = np.argsort(rows.outcomes, kind="stable")
    places, outcomes = np.empty(len(rising), dtype=np.int64), rows.outcomes[rising]
    places[rising] = np.arange(len(rising))
    samples, leaf = leaf_samples(
        forest.leaves, forest.seen, places, order, len(forest.trees.value), PER_LEAF
    )
    member = LeafQuantile(
        forest.trees, forecast.mean, forecast.spread, leaf, samples, quantile, outcomes
    )
    decided = unseen_quantiles(samples, leaf[forest.leaves], forest.seen, quantile)
    told, lost = outcomes[decided], decided < 0
    if lost.any():
        told[lost] = np.quantile(outcomes, quantile)
    return member, told
