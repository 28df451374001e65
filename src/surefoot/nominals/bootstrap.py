"""Past pairs, each drawn with noise around it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.nominals.base import SizedNominal
from surefoot.nominals.gaussian import correlation_root, weighted_moments
from surefoot.nominals.shapes import column_mask, column_names, count, settle, sizes
from surefoot.typing import ArrayLike, BoolArray, FloatArray
from surefoot.validation import (
    check_choice,
    check_flag,
    check_number,
    context_matrix,
    outcome_matrix,
    weight_vector,
)


def silverman_bandwidth(n_noisy: int, weights: FloatArray) -> float:
    """Return Silverman's bandwidth (4 / ((d + 2) n))^(1 / (d + 4)) in standard deviations.

    d is the number of columns that get noise, n the effective number of rows, 1 / sum w^2.

    >>> round(silverman_bandwidth(1, np.full(100, 0.01)), 3)
    0.422
    """
    rows = 1.0 / float(weights @ weights)
    return float((4.0 / ((n_noisy + 2.0) * rows)) ** (1.0 / (n_noisy + 4.0)))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SmoothedBootstrap(SizedNominal):
    r"""Draw a past pair and add Gaussian noise.

    .. math:: v = m + \frac{v_I - m + b e}{\sqrt{1 + b^2}}, \quad v = (x, y), \ e \sim N(0, S)

    with I a row drawn by weight, m and S mean and covariance of the rows, b the bandwidth. So the
    noise of each column is b of its standard deviations, and noise goes along with the correlations
    of the data, contexts and outcomes together: independent noise on x would wash out how y depends
    on x, the more so as b nears 1 with many columns. The division keeps mean and covariance as they
    were; b = 0 is the empirical distribution, and with growing b it becomes the Gaussian one.

    Parameters
    ----------
    contexts, outcomes
        Past pairs, shapes (rows, columns) and (rows,) or (rows, products).
    bandwidth
        b >= 0 in standard deviations, or "auto": Silverman's rule with the number of noisy columns.
    keep_variance
        True divides by sqrt(1 + b^2) as above; False leaves variances larger by the factor 1 + b^2.
    sample_weight
        Non-negative, one per row; None means equal weights. Weights are scaled to sum to one.
    names
        Column names; None takes those of a data frame.
    frozen
        Columns (names or positions) without noise: categories, calendar flags. Columns and
        outcomes that never vary have none either. Values are drawn as they were, and the
        covariance of noisy columns with them shrinks by sqrt(1 + b^2) if ``keep_variance``.

    Examples
    --------
    >>> import numpy as np
    >>> nominal = SmoothedBootstrap([[0.0], [1.0], [2.0]], [1.0, 3.0, 2.0])
    >>> nominal
    SmoothedBootstrap(3 rows, 1 column, 1 product, bandwidth 0.83)
    >>> X, y = nominal.sample(np.random.default_rng(0), 5)
    >>> X.shape, y.shape
    ((5, 1), (5, 1))

    References
    ----------
    Silverman and Young (1987), "The bootstrap: to smooth or not to smooth?"
    """

    contexts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    bandwidth: float
    keep_variance: bool
    noisy: BoolArray
    names: tuple[str, ...] | None
    _mean: FloatArray
    _root: FloatArray

    def __init__(
        self,
        contexts: ArrayLike,
        outcomes: ArrayLike,
        *,
        bandwidth: str | float = "auto",
        keep_variance: bool = True,
        sample_weight: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        frozen: Sequence[str | int] = (),
    ) -> None:
        columns = getattr(contexts, "columns", None) if names is None else names
        X = context_matrix("X", contexts)
        y = outcome_matrix("y", outcomes, len(X))
        weights = weight_vector("sample_weight", sample_weight, len(X))
        labels = column_names(columns, X.shape[1])
        table, kept = np.hstack([X, y]), weights > 0
        mean, spread = weighted_moments(table[kept], weights[kept])
        noisy = spread > 0
        noisy[: X.shape[1]] &= ~column_mask("frozen", frozen, X.shape[1], labels)
        if isinstance(bandwidth, str):
            check_choice("bandwidth", bandwidth, ("auto",))
            width = silverman_bandwidth(int(noisy.sum()), weights)
        else:
            width = check_number("bandwidth", bandwidth, at_least=0)
        standardised = (table - mean)[:, noisy] / spread[noisy]
        root = correlation_root(standardised.T @ (weights[:, None] * standardised)) * spread[noisy]
        settle(
            self, contexts=X, outcomes=y, weights=weights, noisy=noisy, _mean=mean[noisy], _root=root,
            bandwidth=width, keep_variance=check_flag("keep_variance", keep_variance), names=labels,
            _n_columns=X.shape[1], _n_products=y.shape[1],
        )  # fmt: skip

    def __repr__(self) -> str:
        """Print sizes, not data."""
        rows = count(len(self.contexts), "row")
        parts = f"{rows}, {sizes(self.n_columns, self.n_products)}, bandwidth {self.bandwidth:.2g}"
        return f"SmoothedBootstrap({parts})"

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Draw rows by weight, each with noise of its own."""
        rows = rng.choice(len(self.weights), size=size, p=self.weights)
        joint = np.hstack([self.contexts[rows], self.outcomes[rows]])
        noise = rng.standard_normal((size, len(self._mean))) @ self._root
        moved = joint[:, self.noisy] + self.bandwidth * noise
        if self.keep_variance:
            moved = self._mean + (moved - self._mean) / np.sqrt(1.0 + self.bandwidth**2)
        joint[:, self.noisy] = moved
        return joint[:, : self.n_columns], joint[:, self.n_columns :]
