"""A random forest that prescribes: Bertsimas and Kallus weights, then a quantile."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor

from surefoot.baselines.base import Baseline
from surefoot.costs import ConvexPiecewiseCost, Pieces
from surefoot.costs.quantiles import LEVEL_TOL
from surefoot.estimators.scikit_learn_habits import seed_from
from surefoot.nominals import Empirical
from surefoot.problem.affine_form import power_of_two
from surefoot.random import rng_for
from surefoot.typing import FloatArray
from surefoot.validation import check_integer, check_number

# Weights of queries on training rows are made dense for so many entries at a time (16 MB).
BLOCK_ENTRIES = 2_000_000
# Scikit-learn reads contexts in single precision, and takes those closer than 1e-7, or outcomes with a
# variance of 2e-16, to be equal. Numbers of other sizes than these count in powers of two of their own.
PLAIN_SIZES = 1e-3, 1e30


def _unit(values: FloatArray) -> float:
    """Return the unit in which scikit-learn sees values as they are."""
    size, (least, most) = float(np.abs(values).max()), PLAIN_SIZES
    return 1.0 if size == 0.0 or least <= size <= most else power_of_two(size)


class _Grove:
    """The forest of one product, and which training row lies in which leaf."""

    def __init__(self, forest: Any, X: FloatArray, y: FloatArray, masses: FloatArray) -> None:
        order = np.argsort(y, kind="stable")
        self.units = np.array([_unit(column) for column in X.T])
        self.forest = forest.fit(X / self.units, y / _unit(y), sample_weight=masses)
        self.outcomes = y[order]
        leaves = forest.apply(X[order] / self.units)
        # Leaves are numbered through all trees: node k of tree t is offset[t] + k.
        sizes = [tree.tree_.node_count for tree in forest.estimators_]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)])
        columns = (leaves + self.offsets[:-1]).ravel()
        shape = (int(self.offsets[-1]), len(y))
        rows = np.repeat(np.arange(len(y)), len(sizes))
        mass = np.repeat(masses[order], len(sizes))
        members = sparse.csr_array((mass, (columns, rows)), shape=shape)
        total = np.bincount(columns, weights=mass, minlength=shape[0]) * len(sizes)
        share = np.divide(1.0, total, out=np.zeros(shape[0]), where=total > 0)
        self.members = sparse.csr_array(sparse.diags_array(share) @ members)

    def weights(self, X: FloatArray) -> FloatArray:
        """Return w_i(x), shape (queries, training rows in the order of their outcomes)."""
        leaves = self.forest.apply(X / self.units) + self.offsets[:-1]
        trees = leaves.shape[1]
        starts = np.arange(0, leaves.size + 1, trees)
        shape = (len(X), int(self.offsets[-1]))
        hits = sparse.csr_array((np.ones(leaves.size), leaves.ravel(), starts), shape=shape)
        return np.asarray((hits @ self.members).toarray())

    def decisions(self, X: FloatArray, pieces: Pieces) -> FloatArray:
        """Return the smallest decision of least cost under the weights of each query.

        The slope of the mean cost rises by a row's weight times the change of slope at each kink that
        the decision passes; for two lines that is the quantile of the outcomes.
        """
        places = (self.outcomes[:, None] + pieces.kinks).ravel()
        rows = np.repeat(np.arange(len(self.outcomes)), len(pieces.kinks))
        order = np.argsort(places, kind="stable")
        places, rows = places[order], rows[order]
        rises = np.tile(np.diff(pieces.slopes), len(self.outcomes))[order]
        total = pieces.up + pieces.down
        block = max(1, BLOCK_ENTRIES // len(places))
        parts = []
        for start in range(0, len(X), block):
            weights = self.weights(X[start : start + block])[:, rows]
            reached = np.cumsum(weights * (rises / total), axis=1) >= pieces.quantile - LEVEL_TOL
            reached[:, -1] = True  # rounding may leave the total just below the level
            parts.append(places[reached.argmax(axis=1)])
        return np.concatenate(parts)


class Forest(Baseline):
    r"""Order the outcome quantile under the weights of a random forest.

    .. math:: w_i(x) = \frac1T \sum_t \frac{1\{x_i \in \ell_t(x)\}}{\#\{k : x_k \in \ell_t(x)\}},
              \quad z(x) = \min \{ y_k : \sum_{y_i \le y_k} w_i(x) \ge b / (b + h) \}

    :math:`\ell_t(x)` is the leaf of tree t in which x falls; every training row counts, whether or
    not the tree's bootstrap sample had it. With sample weights rows count by their weight.

    Parameters
    ----------
    backorder
        Cost per unit short; one number, or one for each product.
    holding
        Cost per unit left over; one number, or one for each product.
    cost_function
        Another piecewise linear cost in the place of both, such as ``TieredNewsvendor``, or None.
    n_trees
        How many trees.
    min_leaf
        Fewest rows of the tree's sample in a leaf.
    max_features
        Share of the columns that a split may choose from, in (0, 1]. A third is Breiman's advice for
        outcomes that are numbers; scikit-learn's own default is 1.
    random_state
        A whole number; the fit depends on it and on the data alone.

    Attributes
    ----------
    forests_
        The fitted scikit-learn forest of each product; it counts columns and outcomes that are smaller
        than 0.001 or larger than 1e30 in powers of two near their size.

    Examples
    --------
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=100, s=5, seed=0)
    >>> model = Forest(backorder=1.0, holding=0.2, n_trees=20).fit(data.X, data.y)
    >>> bool(np.isin(model.predict(data.X_test), data.y).all())  # orders are outcomes seen before
    True

    References
    ----------
    Bertsimas and Kallus, From predictive to prescriptive analytics, Management Science 66 (2020).
    """

    def __init__(
        self,
        backorder: float | Sequence[float] = 1.0,
        holding: float | Sequence[float] = 0.2,
        *,
        n_trees: int = 100,
        min_leaf: int = 5,
        max_features: float = 1 / 3,
        cost_function: ConvexPiecewiseCost | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.backorder = backorder
        self.holding = holding
        self.n_trees = n_trees
        self.min_leaf = min_leaf
        self.max_features = max_features
        self.cost_function = cost_function
        self.random_state = random_state

    def _check_options(self) -> None:
        check_integer("n_trees", self.n_trees, at_least=1)
        check_integer("min_leaf", self.min_leaf, at_least=1)
        check_number("max_features", self.max_features, above=0, at_most=1)
        self.seed_ = seed_from(self.random_state)

    def _learn(self, rows: Empirical, pieces: tuple[Pieces, ...]) -> None:
        self._groves = [self._grow(rows, j) for j in range(len(pieces))]
        self.forests_ = [grove.forest for grove in self._groves]

    def _grow(self, rows: Empirical, product: int) -> _Grove:
        seed = int(rng_for(self.seed_, "forest", product).integers(1 << 31))
        forest = RandomForestRegressor(
            n_estimators=self.n_trees, min_samples_leaf=self.min_leaf,
            max_features=float(self.max_features), random_state=seed,
        )  # fmt: skip
        return _Grove(forest, rows.contexts, rows.outcomes[:, product], rows.masses)

    def _decide(self, X: FloatArray) -> FloatArray:
        columns = [
            grove.decisions(X, pieces)
            for grove, pieces in zip(self._groves, self._fitted_pieces, strict=True)
        ]
        return np.column_stack(columns)
