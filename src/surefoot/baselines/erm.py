"""Empirical risk minimisation over linear policies (NV-ERM1, and NV-ERM2 with an l1 penalty)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.ambiguity import AffineRows
from surefoot.baselines.base import Baseline
from surefoot.baselines.folds import cross_validate
from surefoot.baselines.l1_path import l1_path, largest_strength
from surefoot.baselines.linear_program import Vertex, is_unique, least_norm, solve_program
from surefoot.costs import ConvexPiecewiseCost, Pieces
from surefoot.estimators.scikit_learn_habits import LinearCoefficients, seed_from
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_choice, check_flag, check_number_or_auto

# Strengths tried by "auto": from the one that zeroes theta down to this share of it.
SMALLEST_SHARE = 1e-3
N_STRENGTHS = 10
# A policy that misses outcomes by less than this share of their size fits them exactly.
FIT_TOL = 1e-9


@dataclass(frozen=True, eq=False)
class StrengthPath:
    """What cross-validation of the l1 strength saw.

    Attributes
    ----------
    strengths
        The strengths tried, from the one that zeroes theta down.
    fold_costs
        Mean cost on held-out rows, shape (folds, strengths).
    fold_weights
        The weight of each fold's held-out rows.
    l1
        The chosen strength: the smallest mean cost, and of equal ones the largest strength.
    """

    strengths: FloatArray
    fold_costs: FloatArray
    fold_weights: FloatArray
    l1: float

    @property
    def mean_costs(self) -> FloatArray:
        """Cross-validated cost of each strength."""
        return np.asarray(self.fold_weights @ self.fold_costs / self.fold_weights.sum())

    def __repr__(self) -> str:
        """Print the choice and what it was chosen from."""
        return (
            f"StrengthPath(l1={self.l1:.4g}, {len(self.strengths)} strengths from "
            f"{self.strengths[-1]:.4g} to {self.strengths[0]:.4g}, {len(self.fold_costs)} folds)"
        )


def _least_norm(rows: AffineRows) -> Vertex:
    """Return the optimal policy of least norm among those with the same training decisions."""
    X, y, slopes = rows.contexts, rows.outcomes, np.zeros(len(rows.outcomes))
    theta, constant = least_norm(X, y, intercept=rows.intercept)
    misses = np.abs(X @ theta + constant - y).max()
    if misses > FIT_TOL * np.abs(y).max() or not rows.pieces.two:
        vertex = solve_program(rows, 0.0)
        decisions, slopes = X @ vertex.theta + vertex.intercept, vertex.slopes
        theta, constant = least_norm(X, decisions, intercept=rows.intercept)
    return Vertex(theta, constant, slopes)


def _choose_strength(rows: AffineRows, seed: int) -> StrengthPath:
    """Cross-validate the strength: each fold is one path."""
    largest = largest_strength(rows)
    if largest == 0.0 or len(rows.outcomes) < 2:
        return StrengthPath(np.zeros(1), np.zeros((1, 1)), np.ones(1), 0.0)
    strengths = np.geomspace(largest, SMALLEST_SHARE * largest, N_STRENGTHS)

    def costs_of(kept: IntArray, held_out: IntArray) -> FloatArray:
        judge, path = rows.subset(held_out), l1_path(rows.subset(kept), strengths)
        return np.array([judge.mean_cost(judge.residuals(v.theta, v.intercept)) for v in path])

    costs, weights = cross_validate(rows.weights, seed, costs_of)
    return StrengthPath(strengths, costs, weights, float(strengths[int(np.argmin(weights @ costs))]))


class ERM(LinearCoefficients, Baseline):
    r"""The linear policy of least cost on the training rows, with or without an l1 penalty.

    .. math:: \min_{\theta, t} \sum_i w_i c(\theta^\top x_i + t, y_i) + \lambda \|\theta\|_1

    It is quantile regression at level b / (b + h), with ``alpha`` = lambda / (b + h) in the units of
    scikit-learn's ``QuantileRegressor``. The intercept carries no penalty. Columns are taken in the
    units they come in: the penalty treats columns alike only if their units are alike.

    Parameters
    ----------
    backorder
        Cost per unit short; one number, or one for each product.
    holding
        Cost per unit left over; one number, or one for each product.
    cost_function
        Another piecewise linear cost in the place of both, such as ``TieredNewsvendor``, or None.
    l1
        Strength lambda >= 0 of the penalty; 0 is NV-ERM1. "auto" chooses it for each product by
        five-fold cross-validation over ten strengths.
    intercept
        Whether the order has a constant part.
    tie_break
        Which of several optimal policies to take when ``l1=0`` (there are several whenever n <= s,
        and they cost very different amounts on new rows): "vertex", whichever the linear program
        meets first, or "minimum_norm", the one of least :math:`\|\theta\|_2`.
    random_state
        A whole number; it decides the folds of "auto".

    Attributes
    ----------
    parameters_
        ``theta``, shape (columns, products), and ``intercept``, shape (products,).
    l1_
        The strength used; with several products, one for each.
    l1_paths_
        What cross-validation saw, one ``StrengthPath`` per product; only after ``l1="auto"``.
    tie_break_
        A sentence: which optimal policy this is, and whether there are others.
    unique_
        True if this is proved to be the only optimal policy, False if there are proved to be
        others, None if neither is proved.

    Examples
    --------
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=60, s=100, seed=0)
    >>> model = ERM(backorder=1.0, holding=0.2, l1="auto").fit(data.X, data.y)
    >>> model.cost(data.X_test, data.y_test) < 0.8
    True
    >>> ERM(1.0, 0.2).fit(data.X, data.y).tie_break_
    'One of many optimal policies: the vertex that the linear program met first.'

    References
    ----------
    Ban and Rudin, The big data newsvendor, Operations Research 67 (2019).
    """

    def __init__(
        self,
        backorder: float | Sequence[float] = 1.0,
        holding: float | Sequence[float] = 0.2,
        *,
        l1: float | str = 0.0,
        intercept: bool = True,
        tie_break: str = "vertex",
        cost_function: ConvexPiecewiseCost | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.backorder = backorder
        self.holding = holding
        self.l1 = l1
        self.intercept = intercept
        self.tie_break = tie_break
        self.cost_function = cost_function
        self.random_state = random_state

    def _check_options(self) -> None:
        check_number_or_auto("l1", self.l1)
        check_flag("intercept", self.intercept)
        check_choice("tie_break", self.tie_break, ("vertex", "minimum_norm"))
        if self.tie_break == "minimum_norm" and self.l1 != 0:
            raise InvalidInputError(
                f"tie_break must be 'vertex' with a penalty (l1={self.l1!r}), got 'minimum_norm'."
            )
        self.seed_ = seed_from(self.random_state)

    def _learn(self, rows: Empirical, pieces: tuple[Pieces, ...]) -> None:
        still, ones = np.zeros(len(rows.weights)), np.ones(rows.n_columns)
        products = [
            AffineRows(
                rows.contexts,
                rows.outcomes[:, j],
                rows.weights,
                bool(self.intercept),
                piece,
                still,
                ones,
            )
            for j, piece in enumerate(pieces)
        ]
        if self.l1 == "auto":
            self.l1_paths_ = tuple(_choose_strength(product, self.seed_) for product in products)
            strengths = [path.l1 for path in self.l1_paths_]
        else:
            strengths = [float(self.l1)] * len(products)
            if hasattr(self, "l1_paths_"):
                del self.l1_paths_
        solved = [self._solve(*pair) for pair in zip(products, strengths, strict=True)]
        self.l1_ = self._per_product(strengths)
        theta = np.column_stack([vertex.theta for vertex, _ in solved])
        self.parameters_ = LinearParameters(theta, np.array([v.intercept for v, _ in solved]))
        proofs = [unique for _, unique in solved]
        self.unique_ = False if False in proofs else None if None in proofs else True
        self.tie_break_ = self._sentence()

    def _solve(self, rows: AffineRows, l1: float) -> tuple[Vertex, bool | None]:
        if l1 > 0:
            (vertex,) = l1_path(rows, np.array([l1]))
        else:
            vertex = solve_program(rows, 0.0) if self.tie_break == "vertex" else _least_norm(rows)
        return vertex, is_unique(rows, l1, vertex)

    def _sentence(self) -> str:
        if self.unique_ is True:
            return "The only optimal policy: there was no tie to break."
        many = "One of many optimal policies" if self.unique_ is False else "Perhaps not the only one"
        if self.tie_break == "vertex":
            return f"{many}: the vertex that the linear program met first."
        return f"{many}: the one of least ||theta||_2 with these decisions on the training rows."

    def _decide(self, X: FloatArray) -> FloatArray:
        return np.asarray(X @ self.parameters_.theta + self.parameters_.intercept)
