"""A Gaussian distribution of contexts and outcomes, given or fitted with shrinkage."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.nominals.base import SizedNominal
from surefoot.nominals.shapes import column_names, context_columns, settle, sizes
from surefoot.typing import ArrayLike, FloatArray
from surefoot.validation import (
    check_choice,
    check_number,
    context_matrix,
    numeric_array,
    outcome_matrix,
    weight_vector,
)

# Correlations may differ across the diagonal, and eigenvalues be negative, by this much rounding.
ROUNDING = 1e-8
# A column whose spread is this small a share of its size is constant but for rounding.
CONSTANT_COLUMN = 1e-12


def weighted_moments(table: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of each column; the latter is 0 where it is rounding."""
    largest = np.abs(table).max(axis=0)
    # A constant column has its value as mean to the last bit, which a weighted sum would not.
    mean = np.where(np.ptp(table, axis=0) == 0.0, table[0], weights @ table)
    # Divided by its size a column has squares that neither overflow nor vanish.
    size = np.where(largest > 0.0, largest, 1.0)
    spread = np.sqrt(weights @ ((table - mean) / size) ** 2)
    return mean, np.where(spread > CONSTANT_COLUMN, spread * size, 0.0)


def correlation_root(correlation: FloatArray) -> FloatArray:
    """Return the symmetric square root R of a correlation matrix, R R = C.

    It exists for singular matrices and is unique, so that draws do not depend on how a library
    orders or signs eigenvectors.
    """
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def ledoit_wolf_shrinkage(standardised: FloatArray, weights: FloatArray) -> float:
    r"""Return the share of the identity that makes a correlation matrix S least wrong.

    .. math:: \frac{\sum_i w_i^2 \|z_i z_i' - S\|_F^2}{\|S - I\|_F^2}, \quad S = \sum_i w_i z_i z_i'

    and at most one. The numerator estimates the squared error of S, the denominator its squared
    distance from the target.

    References
    ----------
    Ledoit and Wolf (2004), "A well-conditioned estimator for large-dimensional covariance matrices".
    """
    scatter = standardised.T @ (weights[:, None] * standardised)
    square = float((scatter**2).sum())
    lengths = (standardised**2).sum(axis=1)
    along = np.einsum("ij,ij->i", standardised @ scatter, standardised)
    error = float(weights**2 @ (lengths**2 - 2.0 * along + square))
    distance = square - 2.0 * float(np.trace(scatter)) + len(scatter)
    # One column, or columns without any correlation, are their own target.
    return min(error / distance, 1.0) if distance > ROUNDING * len(scatter) else 0.0


def cross_shrinkage(contexts: FloatArray, outcomes: FloatArray, weights: FloatArray) -> float:
    r"""Return the share by which correlations s of contexts and outcomes are best scaled down.

    .. math:: \frac{\sum_i w_i^2 \|z_i v_i' - s\|_F^2}{\|s\|_F^2}, \quad s = \sum_i w_i z_i v_i'

    and at most one: Ledoit and Wolf's rule for this block alone, with zero as its target.
    """
    cross = contexts.T @ (weights[:, None] * outcomes)
    square = float((cross**2).sum())
    lengths = (contexts**2).sum(axis=1) * (outcomes**2).sum(axis=1)
    along = np.einsum("ij,ij->i", contexts @ cross, outcomes)
    error = float(weights**2 @ (lengths - 2.0 * along + square))
    return min(error / square, 1.0) if square > ROUNDING * cross.size else 0.0


def _checked_covariance(covariance: ArrayLike, size: int) -> FloatArray:
    """Return a symmetric, positive semidefinite matrix of this size, or refuse it."""
    matrix = numeric_array("covariance", covariance)
    if matrix.shape != (size, size):
        raise InvalidInputError(
            f"covariance must have one row and one column per entry of mean, shape ({size}, {size}), "
            f"got shape {matrix.shape}."
        )
    variances = np.diag(matrix)
    if (variances < 0).any():
        raise InvalidInputError(f"covariance must have a diagonal >= 0, got {variances.min():g}.")
    # Judged as correlations: a column in grams weighs as much as one in tonnes.
    root = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlation = matrix / root[:, None] / root
    if not np.abs(correlation - correlation.T).max() <= ROUNDING:
        i, j = np.unravel_index(np.abs(correlation - correlation.T).argmax(), correlation.shape)
        raise InvalidInputError(
            f"covariance must be symmetric, got {matrix[i, j]:g} and {matrix[j, i]:g} "
            f"in entries ({i}, {j}) and ({j}, {i})."
        )
    smallest = float(np.linalg.eigvalsh(correlation).min())
    if not smallest >= -ROUNDING * size:
        raise InvalidInputError(
            "covariance must be positive semidefinite, got a correlation matrix with "
            f"eigenvalue {smallest:.3g}."
        )
    return np.asarray(0.5 * (matrix + matrix.T))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Gaussian(SizedNominal):
    r"""(x, y) is jointly Gaussian.

    .. math:: (x, y) \sim N(\mu, \Sigma)

    Parameters
    ----------
    mean
        Shape (columns + products,): the context first, the outcome last.
    covariance
        Shape (columns + products, columns + products), symmetric and positive semidefinite; a
        column of variance zero is constant.
    n_products
        How many of the last entries are outcomes.
    names
        Names of the context's columns, or None.

    Attributes
    ----------
    shrinkage
        Shares (a, c) of the contexts' correlations, and of those between contexts and outcomes,
        that a fit shrank away; zeros for given moments.

    Examples
    --------
    >>> import numpy as np
    >>> nominal = Gaussian(mean=[0.0, 5.0], covariance=[[1.0, 0.8], [0.8, 2.0]])
    >>> nominal
    Gaussian(1 column, 1 product)
    >>> X, y = nominal.sample(np.random.default_rng(0), 3)
    >>> X.shape, y.shape
    ((3, 1), (3, 1))
    >>> nominal.cross_covariance
    array([[0.8]])
    """

    mean: FloatArray
    covariance: FloatArray
    shrinkage: tuple[float, float]
    names: tuple[str, ...] | None
    _root: FloatArray

    def __init__(
        self,
        mean: ArrayLike,
        covariance: ArrayLike,
        *,
        n_products: int = 1,
        names: Sequence[str] | None = None,
    ) -> None:
        centre = numeric_array("mean", mean)
        if centre.ndim != 1:
            raise InvalidInputError(f"mean must be a vector, got an array of shape {centre.shape}.")
        n_columns = context_columns("mean", len(centre), n_products)
        matrix = _checked_covariance(covariance, len(centre))
        spread = np.sqrt(np.diag(matrix))
        unit = np.where(spread > 0, spread, 1.0)
        root = correlation_root(matrix / unit[:, None] / unit) * spread
        settle(
            self, mean=centre, covariance=matrix, _root=root, shrinkage=(0.0, 0.0),
            names=column_names(names, n_columns), _n_columns=n_columns,
            _n_products=len(centre) - n_columns,
        )  # fmt: skip

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        shrinkage: str | float = "ledoit-wolf",
        sample_weight: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> "Gaussian":
        r"""Fit the moments of past pairs, with correlations shrunk.

        .. math:: \Sigma_{xx} = D ((1 - a) S + a I) D, \quad \Sigma_{xy} = (1 - c) S_{xy}

        with S the correlations of the contexts, D their standard deviations and S_xy their
        covariances with the outcomes. Outcomes are what these imply and the rows' own residuals,
        Sigma_yy = B' Sigma_xx B + Cov(y - B'x) with B = Sigma_xx^-1 Sigma_xy, so that the whole is
        always a covariance. Shrinking correlations makes the fit independent of units: with
        scikit-learn's ``LedoitWolf`` a column in grams swallows one in tonnes. And one share for
        all would be wrong: contexts that hardly correlate deserve a = 1, which must not wipe out
        how y depends on x.

        Parameters
        ----------
        X, y
            Past contexts (rows, columns) and outcomes (rows,) or (rows, products).
        shrinkage
            "ledoit-wolf" estimates the a and the c with the least squared error of their block; a
            number in [0, 1] is the share by which all correlations shrink, variances staying.
        sample_weight
            Non-negative, one per row; scaled to sum to one. None means equal weights.
        names
            Column names; None takes those of a data frame.

        Examples
        --------
        >>> from surefoot.datasets import synthetic
        >>> data = synthetic(n=50, s=20, seed=0)
        >>> Gaussian.fit(data.X, data.y)
        Gaussian(20 columns, 1 product, shrinkage 0.94 and 0.46)
        """
        columns = getattr(X, "columns", None) if names is None else names
        contexts = context_matrix("X", X)
        outcomes = outcome_matrix("y", y, len(contexts))
        weights = weight_vector("sample_weight", sample_weight, len(contexts))
        kept = weights > 0
        if kept.sum() < 2:
            raise InvalidInputError(
                f"X must have at least two rows of positive weight, got {kept.sum()}."
            )
        table = np.hstack([contexts, outcomes])[kept]
        mean, covariance, shares = _shrunk_moments(table, weights[kept], contexts.shape[1], shrinkage)
        fitted = cls(mean, covariance, n_products=outcomes.shape[1], names=columns)
        settle(fitted, shrinkage=shares)
        return fitted

    def __repr__(self) -> str:
        """Print sizes, not data."""
        contexts, cross = self.shrinkage
        shrunk = f", shrinkage {contexts:.2g} and {cross:.2g}" if max(contexts, cross) > 0 else ""
        return f"Gaussian({sizes(self.n_columns, self.n_products)}{shrunk})"

    @property
    def context_mean(self) -> FloatArray:
        """E x, shape (columns,)."""
        return self.mean[: self._n_columns]

    @property
    def outcome_mean(self) -> FloatArray:
        """E y, shape (products,)."""
        return self.mean[self._n_columns :]

    @property
    def context_covariance(self) -> FloatArray:
        """Cov x, shape (columns, columns)."""
        return self.covariance[: self._n_columns, : self._n_columns]

    @property
    def outcome_covariance(self) -> FloatArray:
        """Cov y, shape (products, products)."""
        return self.covariance[self._n_columns :, self._n_columns :]

    @property
    def cross_covariance(self) -> FloatArray:
        """Cov(x, y), shape (columns, products)."""
        return self.covariance[: self._n_columns, self._n_columns :]

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Draw independent pairs."""
        joint = rng.standard_normal((size, len(self.mean))) @ self._root
        joint += self.mean
        return joint[:, : self._n_columns], joint[:, self._n_columns :]


def _shrunk_moments(
    table: FloatArray, weights: FloatArray, n_columns: int, shrinkage: str | float
) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
    """Return mean, covariance with shrunk correlations, and by how much; constants stay out."""
    mean, spread = weighted_moments(table, weights)
    varies = spread > 0
    standardised = (table - mean)[:, varies] / spread[varies]
    n_contexts = int(varies[:n_columns].sum())
    if isinstance(shrinkage, str):
        check_choice("shrinkage", shrinkage, ("ledoit-wolf",))
        block, shares = _ledoit_wolf(standardised, weights, n_contexts)
    else:
        share = check_number("shrinkage", shrinkage, at_least=0)
        if share > 1:
            raise InvalidInputError(f"shrinkage must be 'ledoit-wolf' or lie in [0, 1], got {share}.")
        block, shares = (1.0 - share) * _scatter(standardised, weights), (share, share)
        np.fill_diagonal(block, 1.0)
    correlation = np.zeros((len(mean), len(mean)))
    correlation[np.ix_(varies, varies)] = block
    return mean, spread[:, None] * correlation * spread, shares


def _scatter(standardised: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(standardised.T @ (weights[:, None] * standardised))


def _ledoit_wolf(
    standardised: FloatArray, weights: FloatArray, n_contexts: int
) -> tuple[FloatArray, tuple[float, float]]:
    """Return the joint matrix with each block shrunk by its own share; see ``Gaussian.fit``."""
    contexts, outcomes = standardised[:, :n_contexts], standardised[:, n_contexts:]
    if contexts.shape[1] == 0 or outcomes.shape[1] == 0:
        share = ledoit_wolf_shrinkage(contexts, weights) if n_contexts else 0.0
        block = (1.0 - share) * _scatter(standardised, weights)
        np.fill_diagonal(block, 1.0)
        return block, (share, 0.0)
    a, c = ledoit_wolf_shrinkage(contexts, weights), cross_shrinkage(contexts, outcomes, weights)
    within = (1.0 - a) * _scatter(contexts, weights) + a * np.eye(n_contexts)
    cross = (1.0 - c) * (contexts.T @ (weights[:, None] * outcomes))
    slopes = np.linalg.pinv(within, hermitian=True) @ cross
    explained, residuals = within @ slopes, outcomes - contexts @ slopes
    below = slopes.T @ explained + _scatter(residuals, weights)
    return np.block([[within, explained], [explained.T, below]]), (a, c)
