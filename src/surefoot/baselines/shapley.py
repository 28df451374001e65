"""The robust policy over all functions, with the Shapley extension (order 1)."""

import math
from collections.abc import Sequence

import numpy as np

from surefoot.ambiguity import AffineRows
from surefoot.baselines.base import Baseline
from surefoot.baselines.extension import distances, extend
from surefoot.baselines.folds import cross_validate
from surefoot.baselines.lipschitz import LipschitzProgram, Trained
from surefoot.costs import ConvexPiecewiseCost, Pieces
from surefoot.estimators import RadiusPath
from surefoot.estimators.scikit_learn_habits import seed_from
from surefoot.nominals import Empirical
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_number, check_number_or_auto

# Radii tried by "auto": zero, and from a radius beyond the collapse down to this share of it.
SMALLEST_SHARE = 0.003
N_RADII = 12
# Distances of queries to known contexts are held for so many entries at a time (16 MB).
BLOCK_ENTRIES = 2_000_000


class _Training:
    """Distinct contexts, the rows on them and their distances: made once, used by every fold."""

    def __init__(self, rows: Empirical, pieces: tuple[Pieces, ...], least_slope: float) -> None:
        self.contexts, places = np.unique(rows.contexts, axis=0, return_inverse=True)
        self.places: IntArray = places.reshape(-1)
        self.outcomes, self.weights = rows.outcomes, rows.weights
        self.pieces, self.least_slope = pieces, least_slope
        self.distances = distances(self.contexts, self.contexts)

    def programs(self, kept: IntArray) -> tuple[IntArray, list[LipschitzProgram]]:
        """Return the contexts of the kept rows and the program of each product on them."""
        known, places = np.unique(self.places[kept], return_inverse=True)
        weights = self.weights[kept] / self.weights[kept].sum()
        apart = self.distances[np.ix_(known, known)]
        return known, [
            LipschitzProgram(apart, places, self.outcomes[kept, j], weights, piece, self.least_slope)
            for j, piece in enumerate(self.pieces)
        ]

    def collapse_radius(self) -> float:
        """Return a radius from which on the best policy is a constant.

        The collapse radius is the Wasserstein distance between the slopes above and below zero
        of the best constant, divided by G; any transport plan, such as the product, bounds it.
        """
        radius = 0.0
        for j, piece in enumerate(self.pieces):
            slopes = self._constant_slopes(j, piece)
            masses = self.weights * slopes
            upper = np.bincount(self.places, np.maximum(masses, 0.0), len(self.contexts))
            lower = np.bincount(self.places, np.maximum(-masses, 0.0), len(self.contexts))
            if upper.sum() > 0:
                plan = float(upper @ self.distances @ lower) / float(upper.sum())
                radius = max(radius, plan / piece.steepest)
        return radius

    def _constant_slopes(self, product: int, piece: Pieces) -> FloatArray:
        """Return the slopes of the best constant, which sum to zero under the weights."""
        y = self.outcomes[:, product]
        nothing = np.zeros((len(y), 1))
        rows = AffineRows(nothing, y, self.weights, True, piece, np.zeros(len(y)), np.ones(1))
        return rows.constant_order()[1]

    def choose_radius(self, seed: int) -> RadiusPath:
        """Cross-validate the radius; folds share the distances and each is one warm-started path."""
        largest = self.collapse_radius()
        if largest == 0.0 or len(self.places) < 2:
            return RadiusPath(np.zeros(1), np.zeros((1, 1)), np.ones(1), 0.0)
        radii = np.append(np.geomspace(largest, SMALLEST_SHARE * largest, N_RADII - 1), 0.0)

        def costs_of(kept: IntArray, held_out: IntArray) -> FloatArray:
            known, programs = self.programs(kept)
            apart = self.distances[np.ix_(self.places[held_out], known)]
            weights = self.weights[held_out] / self.weights[held_out].sum()
            costs = np.zeros(len(radii))
            for j, program in enumerate(programs):
                for k, radius in enumerate(radii):
                    decisions = extend(program.solve(float(radius)).values, apart)
                    residuals = decisions - self.outcomes[held_out, j]
                    costs[k] += weights @ self.pieces[j].evaluate(residuals)
            return costs

        costs, weights = cross_validate(self.weights, seed, costs_of)
        return RadiusPath(radii, costs, weights, float(radii[int(np.argmin(weights @ costs))]))


class Shapley(Baseline):
    r"""The policy of least worst-case cost among all functions of the context.

    Over the Wasserstein ball of order 1 the worst case of any policy f is its mean cost plus
    :math:`G \rho` times its Lipschitz constant, with G = max(b, h). So decisions f_k at the contexts
    seen come from a linear program, and the Shapley extension carries them to all contexts without
    making any slope steeper:

    .. math:: \min_{f, L} G \rho L + \sum_i w_i c(f_{k(i)}, y_i) \;\text{s.t.}\;
              |f_j - f_k| \le L \|x_j - x_k\|, \quad
              f(x) = \arg\min_z \max_k \frac{|z - f_k|}{\|x - x_k\|}

    Distances are in the units of the columns; put a ``StandardScaler`` before it if those differ.

    Parameters
    ----------
    backorder
        Cost per unit short; one number, or one for each product.
    holding
        Cost per unit left over; one number, or one for each product.
    cost_function
        Another piecewise linear cost in the place of both, such as ``TieredNewsvendor``, or None.
    radius
        A number >= 0 in units of the context, or "auto" to choose it by five-fold cross-validation.
        One radius serves all products.
    outcome_cost
        Transport cost kappa > 0 of moving an outcome by one unit; infinity: only contexts move.
    random_state
        A whole number; it decides the folds of "auto".

    Attributes
    ----------
    radius_
        The radius used.
    radius_path_
        What cross-validation saw; only after ``radius="auto"``.
    contexts_, values_
        The distinct contexts seen, and the decisions there, shape (contexts,) or
        (contexts, products).
    lipschitz_
        L; with several products, one for each.
    worst_case_
        G rho L + mean cost, summed over products: the largest expected cost over the ball.

    Examples
    --------
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=50, s=5, seed=0)
    >>> model = Shapley(backorder=1.0, holding=0.2, radius=0.1).fit(data.X, data.y)
    >>> bool(np.allclose(model.predict(model.contexts_), model.values_))
    True
    >>> model.cost(data.X, data.y) <= model.worst_case_
    True

    References
    ----------
    Zhang, Yang and Gao, Optimal robust policy for feature-based newsvendor,
    Management Science 70 (2024).
    """

    def __init__(
        self,
        backorder: float | Sequence[float] = 1.0,
        holding: float | Sequence[float] = 0.2,
        *,
        radius: float | str = "auto",
        outcome_cost: float = math.inf,
        cost_function: ConvexPiecewiseCost | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.backorder = backorder
        self.holding = holding
        self.radius = radius
        self.outcome_cost = outcome_cost
        self.cost_function = cost_function
        self.random_state = random_state

    def _check_options(self) -> None:
        check_number_or_auto("radius", self.radius)
        check_number("outcome_cost", self.outcome_cost, above=0, finite=False)
        self.seed_ = seed_from(self.random_state)

    def _learn(self, rows: Empirical, pieces: tuple[Pieces, ...]) -> None:
        training = _Training(rows, pieces, 1.0 / float(self.outcome_cost))
        if isinstance(self.radius, str):
            self.radius_path_ = training.choose_radius(self.seed_)
            self.radius_ = self.radius_path_.radius
        else:
            self.radius_ = float(self.radius)
            if hasattr(self, "radius_path_"):
                del self.radius_path_
        _, programs = training.programs(np.arange(len(training.places)))
        trained: list[Trained] = [program.solve(self.radius_) for program in programs]
        self.contexts_ = training.contexts
        self._values = np.column_stack([part.values for part in trained])
        self.values_ = self._values[:, 0] if self._single else self._values
        self.lipschitz_ = self._per_product([part.slope for part in trained])
        self.worst_case_ = sum(part.worst_case for part in trained)

    def _decide(self, X: FloatArray) -> FloatArray:
        result = np.empty((len(X), self._values.shape[1]))
        block = max(1, BLOCK_ENTRIES // len(self.contexts_))
        for start in range(0, len(X), block):
            apart = distances(X[start : start + block], self.contexts_)
            for j, values in enumerate(self._values.T):
                result[start : start + block, j] = extend(values, apart)
        return result
