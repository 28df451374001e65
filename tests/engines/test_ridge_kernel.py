import numpy as np
import pytest

from surefoot.costs import Pieces
from surefoot.engines.ridge_kernel import average_coefficients
from surefoot.forecasts import Forecaster
from surefoot.forecasts.forecaster import LEAST_LOG_PROBABILITY, LEVELS_LOOKED_AT, SHARED, SPREADS
from surefoot.forecasts.rows import CONSTANT_COLUMN, Rows
from surefoot.forecasts.spectrum import RANK_TOL

LIMITS = CONSTANT_COLUMN, RANK_TOL, LEAST_LOG_PROBABILITY, LEVELS_LOOKED_AT


def compiled(rows):
    strengths = SPREADS, SHARED
    return average_coefficients(
        rows.contexts, rows.outcomes, rows.masses, rows.count, strengths, LIMITS
    )


@pytest.mark.parametrize("seed", range(6))
def test_coefficients_are_those_of_the_readable_twin(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 5)) * [1.0, 1e6, 1e-6, 1.0, 1.0] + 3.0
    X[:, 3] = rng.random(40) < 0.3  # a flag
    X[:, 4] = X[:, 0] if seed % 2 else 7.0  # a copy, or a constant
    y = X[:, 0] + 1e-6 * X[:, 1] + rng.normal(size=40)
    masses = rng.integers(1, 4, 40).astype(float) if seed % 3 else None
    rows = Rows.of(X, y, masses)
    twin = Forecaster(smooth=False, trees=False).fit_rows(rows, Pieces.kinked(0.2, 1.0), seed=0)
    units = np.where(np.isfinite(rows.spread), rows.spread, 1.0)
    np.testing.assert_allclose(compiled(rows) * units, twin.forecast.theta * units, atol=1e-9)


def test_columns_that_never_vary_have_none():
    rows = Rows.of(np.full((9, 2), 4.0), np.arange(9.0), None)
    np.testing.assert_array_equal(compiled(rows), np.zeros(2))
