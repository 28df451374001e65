"""A forest of regression trees as plain arrays, so that it can be saved and read by anyone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from surefoot.exceptions import InvalidInputError
from surefoot.forecasts.rows import Rows
from surefoot.io import register
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray, IntArray
from surefoot.validation import check_array

# More trees swing less from seed to seed; where they are slow to grow, or rows so few that they
# swing anyhow, there are fewer.
FEW_TREES, MANY_TREES = 64, 200
ROWS_FOR_MANY, MOST_NUMBERS_FOR_MANY = 100, 20_000
MIN_LEAF = 3
COLUMN_SHARE, MOST_COLUMNS = 1 / 3, 60  # asked at each split
MOST_ROWS_OF_A_TREE = 2_000
# Rows are sent through all trees at once, in pieces of this many.
PIECE = 4096


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
        children = np.stack([self.below, self.above])
        leaf = (children == nodes).all(axis=0)
        forward = (children > nodes).all(axis=0) & (children < len(nodes)).all(axis=0)
        rooted = (self.roots >= 0) & (self.roots < len(nodes))
        if not ((leaf | forward).all() and rooted.all() and (self.feature >= 0).all()):
            raise InvalidInputError(
                "below, above, roots and feature must lead forward through the nodes, got others."
            )

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the sum over trees for each row."""
        # scikit-learn compares single-precision contexts with double-precision limits.
        single = contexts.astype(np.float32)
        parts = [self._sum(single[k : k + PIECE]) for k in range(0, len(single), PIECE)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _sum(self, contexts: NDArray[np.float32]) -> FloatArray:
        return np.asarray(self.value[self._leaves(contexts)].sum(axis=1))

    def leaves(self, contexts: FloatArray) -> IntArray:
        """Return the node that each row ends at in each tree, shape (rows, trees)."""
        return self._leaves(contexts.astype(np.float32))

    def _leaves(self, contexts: NDArray[np.float32]) -> IntArray:
        count, columns = contexts.shape
        values = contexts.ravel()
        nodes = np.tile(self.roots, count)
        first = np.repeat(columns * np.arange(count), len(self.roots))  # of each row among the values
        walking = np.arange(len(nodes))  # pairs of row and tree that have not reached their leaf
        while len(walking):
            here = nodes[walking]
            asked = values[first[walking] + self.feature[here]]
            following = np.where(asked <= self.threshold[here], self.below[here], self.above[here])
            nodes[walking] = following
            walking = walking[following != here]
        return nodes.reshape(count, -1)

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
    errors
        Outcome minus the mean of the trees that never saw the row, shape (n,).
    seen
        Which rows each tree was grown from, shape (n, trees).
    """

    trees: Trees
    errors: FloatArray
    seen: BoolArray


def grow(rows: Rows, seed: int) -> Forest:
    """Return a forest, and what the trees that never saw a row say of it."""
    n = len(rows.outcomes)
    many = n >= ROWS_FOR_MANY and rows.contexts.size <= MOST_NUMBERS_FOR_MANY
    forest = RandomForestRegressor(
        MANY_TREES if many else FEW_TREES,
        min_samples_leaf=MIN_LEAF,
        max_features=min(COLUMN_SHARE, MOST_COLUMNS / rows.contexts.shape[1]),
        max_samples=min(n, MOST_ROWS_OF_A_TREE),
        random_state=int(rng_for(seed, "trees").integers(1 << 31)),
    )
    forest.fit(rows.contexts, rows.outcomes, sample_weight=rows.masses)
    seen = np.zeros((n, len(forest.estimators_)), dtype=bool)
    for k, drawn in enumerate(forest.estimators_samples_):
        seen[drawn, k] = True
    errors = _unseen_errors(forest, rows, seen)
    return Forest(flatten([tree.tree_ for tree in forest.estimators_]), errors, seen)


def flatten(trees: list[Any]) -> Trees:
    """Return scikit-learn's trees as one table."""
    parts: dict[str, list[Any]] = {name: [] for name in ("f", "t", "b", "a", "v")}
    roots, first = [], 0
    for tree in trees:
        count = tree.node_count
        own = np.arange(count)
        below, above = tree.children_left, tree.children_right
        leaf = below < 0
        parts["f"].append(np.where(leaf, 0, tree.feature))
        parts["t"].append(np.where(leaf, 0.0, tree.threshold))
        parts["b"].append(np.where(leaf, own, below) + first)
        parts["a"].append(np.where(leaf, own, above) + first)
        parts["v"].append(tree.value[:, 0, 0] / len(trees))
        roots.append(first)
        first += count
    f, t, b, a, v = (np.concatenate(part) for part in parts.values())
    return Trees(f, t, b, a, v, np.array(roots))


def _unseen_errors(forest: RandomForestRegressor, rows: Rows, seen: BoolArray) -> FloatArray:
    """Return outcome minus the mean of those trees whose bootstrap left the row out."""
    n = len(rows.outcomes)
    total, count = np.zeros(n), np.zeros(n)
    single = rows.contexts.astype(np.float32)
    for k, tree in enumerate(forest.estimators_):
        unseen = ~seen[:, k]
        total[unseen] += tree.tree_.predict(single[unseen])[:, 0]
        count += unseen
    # With a hundred trees a row that all of them saw is a matter of one in 10^20.
    return rows.outcomes - np.where(count > 0, total / np.maximum(count, 1), rows.average)
