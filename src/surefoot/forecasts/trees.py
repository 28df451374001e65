"""A forest of regression trees as plain arrays, so that it can be saved and read by anyone."""

from dataclasses import dataclass

import numpy as np

from surefoot.engines.row_draws import generator_words
from surefoot.engines.tree_kernels import grow_trees, walk
from surefoot.exceptions import InvalidInputError
from surefoot.forecasts.rows import Rows
from surefoot.io import register
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray, IntArray
from surefoot.validation import check_array

# More trees swing less from seed to seed; where they are slow to grow there are fewer.
FEW_TREES, MANY_TREES = 64, 100
MOST_NUMBERS_FOR_MANY = 20_000
MIN_LEAF = 3
COLUMN_SHARE, MOST_COLUMNS = 1 / 3, 60  # asked at each split
MOST_ROWS_OF_A_TREE = 2_000
# Rows are sent through all trees at once, in pieces of this many.
PIECE = 4096
# So many ways through trees are walked by NumPy sooner than a process loads its first kernel.
FEW_WAYS = 100_000


@register
@dataclass(frozen=True, eq=False)
class Trees:
    """All trees in one table of nodes; a leaf is its own child.

    Attributes
    ----------
    feature, threshold, below, above, value
        Of each node: the column asked, the limit, the node for values up to it and for values
        above it, and the mean outcome there (already divided by the number of trees).
    roots
        The first node of each tree.
    """

    feature: IntArray
    threshold: FloatArray
    below: IntArray
    above: IntArray
    value: FloatArray
    roots: IntArray

    def __post_init__(self) -> None:
        """Check that every branch leads forward to a node there is."""
        nodes = np.arange(len(self.value))
        for name in ("feature", "below", "above"):
            check_array(name, getattr(self, name), nodes.shape, int)
        check_array("roots", self.roots, (len(self.roots),), int)
        for name in ("threshold", "value"):
            check_array(name, getattr(self, name), nodes.shape)
        below, above = self.below, self.above
        leaf = (below == nodes) & (above == nodes)
        forward = (np.minimum(below, above) > nodes) & (np.maximum(below, above) < len(nodes))
        rooted = (self.roots >= 0) & (self.roots < len(nodes))
        if not ((leaf | forward).all() and rooted.all() and (self.feature >= 0).all()):
            raise InvalidInputError(
                "below, above, roots and feature must lead forward through the nodes, got others."
            )

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the sum over trees for each row."""
        parts = [
            self.value[self.leaves(contexts[k : k + PIECE])].sum(axis=1)
            for k in range(0, len(contexts), PIECE)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def leaves(self, contexts: FloatArray) -> IntArray:
        """Return the node that each row ends at in each tree, shape (rows, trees)."""
        loaded = walk.loaded or grow_trees.loaded
        if not loaded and len(contexts) * len(self.roots) <= FEW_WAYS:
            return self._leaves_by_level(contexts)
        table = self.feature, self.threshold, self.below, self.above, self.roots
        return np.asarray(walk(np.ascontiguousarray(contexts, dtype=float), *table))

    def _leaves_by_level(self, contexts: FloatArray) -> IntArray:
        """Return the same as the kernel, all ways one level down at a time.

        A process that only decides, as ``surefoot decide``, then loads no kernel: that takes half a
        second.
        """
        nodes = np.tile(self.roots, (len(contexts), 1))
        rows = np.arange(len(contexts))[:, None]
        while (self.below[nodes] != nodes).any():
            low = contexts[rows, self.feature[nodes]] <= self.threshold[nodes]
            nodes = np.where(low, self.below[nodes], self.above[nodes])
        return nodes

    def scaled(self, share: float) -> "Trees":
        """Return the trees with every value multiplied."""
        return Trees(
            self.feature, self.threshold, self.below, self.above, share * self.value, self.roots
        )


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees with what they know of the rows that they were grown from.

    Attributes
    ----------
    trees
        As plain arrays; their sum is the mean outcome.
    leaves
        The node that each row ends at in each tree, shape (n, trees).
    errors
        Outcome minus the mean of the trees that never saw the row, shape (n,).
    seen
        Which rows each tree was grown from, shape (n, trees).
    """

    trees: Trees
    leaves: IntArray
    errors: FloatArray
    seen: BoolArray


def grow(rows: Rows, seed: int) -> Forest:
    """Return a forest, and what the trees that never saw a row say of it.

    Contexts and outcomes should be in standard deviations. scikit-learn's forest needs as long for
    the Python around a tree of a hundred rows as a forest of fifty takes here.
    """
    n, columns = rows.contexts.shape
    many = rows.contexts.size <= MOST_NUMBERS_FOR_MANY
    by_column = np.ascontiguousarray(rows.contexts.T)
    order = np.argsort(by_column, axis=1, kind="stable").astype(np.int32)
    *table, times = grow_trees(
        by_column, order, np.ascontiguousarray(rows.outcomes), rows.masses,
        MANY_TREES if many else FEW_TREES, min(n, MOST_ROWS_OF_A_TREE), MIN_LEAF,
        max(int(min(COLUMN_SHARE * columns, MOST_COLUMNS)), 1), generator_words(rng_for(seed, "trees")),
    )  # fmt: skip
    feature, threshold, below, above, value, roots = table
    trees = Trees(feature, threshold, below, above, value / len(roots), roots)
    leaves, seen = trees.leaves(rows.contexts), times.T > 0
    return Forest(trees, leaves, _unseen_errors(rows, value[leaves], seen), seen)


def _unseen_errors(rows: Rows, told: FloatArray, seen: BoolArray) -> FloatArray:
    """Return outcome minus the mean of what those trees told whose draw left the row out."""
    total, count = np.where(seen, 0.0, told).sum(axis=1), (~seen).sum(axis=1)
    # With a hundred trees a row that all of them saw is a matter of one in 10^20.
    return rows.outcomes - np.where(count > 0, total / np.maximum(count, 1), rows.average)
