"""Empirical risk minimisation over linear policies (NV-ERM1, and NV-ERM2 with an l1 penalty)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import ThreadpoolController

from surefoot.ambiguity import AffineRows
from surefoot.baselines.base import Baseline
from surefoot.baselines.folds import cross_validate
from surefoot.baselines.l1_path import L1Path, PathLostError, Vertex
from surefoot.baselines.linear_program import is_unique, least_norm, solve_program
from surefoot.costs import ConvexPiecewiseCost, Pieces
from surefoot.estimators.scikit_learn_habits import LinearCoefficients, seed_from
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_choice, check_flag, check_number

# Strengths tried by "auto": from the one that zeroes theta down to this share of it.
SMALLEST_SHARE = 1e-3
N_STRENGTHS = 10
# Two threads made the small products of a walk up to ten times slower.
_THREADS = ThreadpoolController()
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


@dataclass(frozen=True, eq=False)
class _Product:
    """The training problem of one product."""

    X: FloatArray
    y: FloatArray
    weights: FloatArray
    pieces: Pieces
    intercept: bool

    def subset(self, rows: IntArray) -> "_Product":
        weights = self.weights[rows] / self.weights[rows].sum()
        return _Product(self.X[rows], self.y[rows], weights, self.pieces, self.intercept)

    def cost(self, vertex: Vertex) -> float:
        residuals = self.X @ vertex.theta + vertex.intercept - self.y
        return float(self.weights @ self.pieces.evaluate(residuals))

    def largest_strength(self) -> float:
        """Return a strength that zeroes theta."""
        if self.pieces.two:
            return self._path().strength
        rows = AffineRows(
            self.X, self.y, self.weights, True, self.pieces, np.zeros_like(self.y),
            np.ones(self.X.shape[1]),
        )  # fmt: skip
        slopes = rows.constant_order()[1] if self.intercept else self.pieces.slope_at(-self.y)
        return float(np.abs(self.X.T @ (self.weights * slopes)).max())

    def _path(self) -> L1Path:
        return L1Path(self.X, self.y, self.weights, self.pieces, intercept=self.intercept)

    def program(self, l1: float) -> Vertex:
        return solve_program(self.X, self.y, self.weights, self.pieces, l1, intercept=self.intercept)

    def vertices(self, strengths: FloatArray) -> list[Vertex]:
        """Return solutions at falling positive strengths, by one walk; where it fails, by programs."""
        if not self.pieces.two:  # the walk knows two lines
            return [self.program(float(strength)) for strength in strengths]
        path, found = self._path(), []
        try:
            for strength in strengths:
                found.append(path.descend(float(strength)))
        except PathLostError:
            found += [self.program(float(strength)) for strength in strengths[len(found) :]]
        return found

    def least_norm(self) -> Vertex:
        """Return the optimal policy of least norm among those with the same training decisions."""
        theta, constant = least_norm(self.X, self.y, intercept=self.intercept)
        misses = np.abs(self.X @ theta + constant - self.y).max()
        if misses > FIT_TOL * np.abs(self.y).max() or not self.pieces.two:
            vertex = self.program(0.0)
            decisions = self.X @ vertex.theta + vertex.intercept
            theta, constant = least_norm(self.X, decisions, intercept=self.intercept)
            return Vertex(theta, constant, vertex.slopes)
        return Vertex(theta, constant, np.zeros(len(self.y)))


def _choose_strength(product: _Product, seed: int) -> StrengthPath:
    """Cross-validate the strength: each fold is one walk down the path."""
    largest = product.largest_strength()
    if largest == 0.0 or len(product.y) < 2:
        return StrengthPath(np.zeros(1), np.zeros((1, 1)), np.ones(1), 0.0)
    strengths = np.geomspace(largest, SMALLEST_SHARE * largest, N_STRENGTHS)

    def costs_of(kept: IntArray, held_out: IntArray) -> FloatArray:
        judge = product.subset(held_out)
        return np.array([judge.cost(vertex) for vertex in product.subset(kept).vertices(strengths)])

    costs, weights = cross_validate(product.weights, seed, costs_of)
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
        if isinstance(self.l1, str):
            if self.l1 != "auto":
                raise InvalidInputError(f"l1 must be a number >= 0 or 'auto', got {self.l1!r}.")
        else:
            check_number("l1", self.l1, at_least=0)
        check_flag("intercept", self.intercept)
        check_choice("tie_break", self.tie_break, ("vertex", "minimum_norm"))
        if self.tie_break == "minimum_norm" and self.l1 != 0:
            raise InvalidInputError(
                f"tie_break must be 'vertex' with a penalty (l1={self.l1!r}), got 'minimum_norm'."
            )
        self.seed_ = seed_from(self.random_state)

    def _learn(self, rows: Empirical, pieces: tuple[Pieces, ...]) -> None:
        with _THREADS.limit(limits=1, user_api="blas"):
            self._learn_products(rows, pieces)

    def _learn_products(self, rows: Empirical, pieces: tuple[Pieces, ...]) -> None:
        products = [
            _Product(rows.contexts, rows.outcomes[:, j], rows.weights, piece, bool(self.intercept))
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

    def _solve(self, product: _Product, l1: float) -> tuple[Vertex, bool | None]:
        if l1 > 0:
            vertex = product.vertices(np.array([l1]))[0]
        elif self.tie_break == "vertex":
            vertex = product.program(0.0)
        else:
            vertex = product.least_norm()
        unique = is_unique(
            product.X, product.weights, product.pieces, l1, vertex, intercept=product.intercept
        )
        return vertex, unique

    def _sentence(self) -> str:
        if self.unique_ is True:
            return "The only optimal policy: there was no tie to break."
        many = "One of many optimal policies" if self.unique_ is False else "Perhaps not the only one"
        if self.tie_break == "vertex":
            return f"{many}: the vertex that the linear program met first."
        return f"{many}: the one of least ||theta||_2 with these decisions on the training rows."

    def _decide(self, X: FloatArray) -> FloatArray:
        return np.asarray(X @ self.parameters_.theta + self.parameters_.intercept)
