"""A linear forecast that uses few of many columns: the lasso, with its honest errors.

Ridge regression spreads what few of many columns know over all of them. The lasso chooses, and least
squares on what it chose (the relaxed lasso) takes back what its penalty has shrunk. Which columns are
chosen depends on the outcomes, so honest errors cannot be had from one fit: rows are left out by folds.

References
----------
Tibshirani (1996); Hastie, Tibshirani and Tibshirani (2020), "Best subset, forward stepwise or lasso?",
Statist. Sci. 35; Fan and Lv (2008) for many columns cut to those that say most by themselves.
"""

import numpy as np

from surefoot.costs import Pieces
from surefoot.engines.compiling import as_compiled
from surefoot.engines.lasso_kernel import lasso_path
from surefoot.forecasts.forecast import Forecast
from surefoot.forecasts.forecaster import Bases, HonestForecast, constant_forecast, weights_by_cost
from surefoot.forecasts.rows import Rows
from surefoot.random import rng_for
from surefoot.typing import FloatArray

FOLDS = 10
# Penalties as shares of the one from which on no column is used.
SHARES = np.geomspace(1.0, 1e-3, 25)
# Of more columns those that say most by themselves are looked at; used are up to a share of the rows.
MOST_COLUMNS, MOST_USED = 300, 1.0 / 3.0
TOLERANCE = 1e-5  # of coefficients, in standard deviations of outcomes
# With fewer rows or columns, or with so many rows a column, it has nothing to add.
LEAST_ROWS, MOST_ROWS, LEAST_COLUMNS, ROWS_OF_COLUMN = 10, 2_000, 6, 10


class SparseForecaster:
    """How a forecast that uses few columns is learned.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 60))
    >>> rows = Rows.of(X, 3.0 * X[:, 7] + 0.1 * rng.normal(size=40), None)
    >>> honest = SparseForecaster().fit_rows(rows, Pieces.kinked(up=1.0, down=1.0), seed=0)
    >>> honest.forecast.theta[7].round(1), np.abs(np.delete(honest.forecast.theta, 7)).max() < 0.1
    (np.float64(3.0), np.True_)
    """

    def fit_rows(
        self, rows: Rows, pieces: Pieces, seed: int, bases: Bases | None = None
    ) -> HonestForecast:
        """Learn from rows; ``bases``, which other forecasters share, has nothing to say here."""
        if rows.trivial or rows.count < FOLDS:
            return constant_forecast(rows)
        centred = rows.outcomes - rows.average
        unit = float(np.sqrt(rows.masses @ centred**2 / rows.masses.sum()))
        X, y = rows.scaled, centred / unit
        penalties = SHARES * float(np.abs((rows.masses * y) @ X).max()) / rows.masses.sum()
        coefficients, constants = _paths(X, y, rows.masses, penalties)
        folds = rng_for(seed, "sparse").permutation(len(y)) % FOLDS
        errors = np.empty((len(constants), len(y)))
        for fold in range(FOLDS):
            own = folds == fold
            others = _paths(X, y, np.where(own, 0.0, rows.masses), penalties)
            errors[:, own] = y[own] - others[0] @ X[own].T - others[1][:, None]
        weights = weights_by_cost(unit * errors, rows, pieces)
        theta = np.zeros(rows.contexts.shape[1])
        theta[rows.varies] = unit * (weights @ coefficients) / rows.spread[rows.varies]
        constant = rows.average + unit * float(weights @ constants)
        forecast = Forecast(constant, theta, rows.mean, rows.spread)
        return HonestForecast(forecast, weights @ (unit * errors), 1.0, rows.units)


def may_be_sparse(rows: Rows) -> bool:
    """Whether columns are many enough, beside the rows, that it may pay to use few of them."""
    n, s = len(rows.outcomes), int(rows.varies.sum())
    return s >= LEAST_COLUMNS and LEAST_ROWS <= n <= min(MOST_ROWS, ROWS_OF_COLUMN * s)


def _paths(
    X: FloatArray, y: FloatArray, masses: FloatArray, penalties: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and constants along the path, shapes (paths, columns) and (paths,)."""
    shares = masses / masses.sum()
    mean, average = shares @ X, float(shares @ y)
    products = (shares * (y - average)) @ (X - mean)
    looked_at = np.arange(X.shape[1])
    if len(looked_at) > MOST_COLUMNS:
        looked_at = np.sort(np.argsort(-np.abs(products), kind="stable")[:MOST_COLUMNS])
    kept = masses > 0.0
    centred = (X[kept][:, looked_at] - mean[looked_at]) * np.sqrt(shares[kept])[:, None]
    path = lasso_path(
        as_compiled(centred.T @ centred), as_compiled(products[looked_at]), penalties,
        int(MOST_USED * kept.sum()), TOLERANCE,
    )  # fmt: skip
    coefficients = np.zeros((len(path), X.shape[1]))
    coefficients[:, looked_at] = path
    return coefficients, average - coefficients @ mean
