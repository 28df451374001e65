import numpy as np
import pytest

from surefoot.forecasts.rows import Rows


def rows(X, y=None, masses=None):
    X = np.asarray(X, dtype=float)
    y = np.arange(len(X), dtype=float) if y is None else np.asarray(y, dtype=float)
    return Rows(X, y, np.ones(len(X)) if masses is None else np.asarray(masses, dtype=float))


def test_columns_are_measured_in_standard_deviations():
    X = np.random.default_rng(0).normal(3.0, [1.0, 20.0, 0.1], size=(50, 3))
    made = rows(X)
    np.testing.assert_allclose(made.mean, X.mean(axis=0))
    np.testing.assert_allclose(made.spread, X.std(axis=0))
    np.testing.assert_allclose(made.scaled.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(made.scaled.std(axis=0), 1.0)


def test_a_row_of_mass_two_counts_as_the_row_twice():
    X, y = np.random.default_rng(1).normal(size=(4, 2)), np.array([1.0, 2.0, 3.0, 10.0])
    heavy = rows(X, y, [1.0, 2.0, 1.0, 3.0])
    times = [0, 1, 1, 2, 3, 3, 3]
    repeated = rows(X[times], y[times])
    np.testing.assert_allclose(heavy.mean, repeated.mean)
    np.testing.assert_allclose(heavy.spread, repeated.spread)
    np.testing.assert_allclose(heavy.scaled[times], repeated.scaled)
    assert heavy.average == pytest.approx(repeated.average)


def test_constant_columns_are_left_out():
    X = np.column_stack([np.full(5, 0.1), np.arange(5.0), np.zeros(5)])
    made = rows(X)
    np.testing.assert_array_equal(made.varies, [False, True, False])
    np.testing.assert_array_equal(np.isinf(made.spread), [True, False, True])
    assert made.scaled.shape == (5, 1)


def test_large_columns_that_vary_are_kept_and_rounding_is_not():
    wiggle = np.array([0.0, 1.0, 2.0, 3.0])
    made = rows(np.column_stack([1e9 + wiggle, 1e9 * wiggle, 1e9 + 1e-7 * wiggle]))
    np.testing.assert_array_equal(made.varies, [True, True, False])
    np.testing.assert_allclose(made.scaled[:, 0], made.scaled[:, 1], atol=1e-6)


@pytest.mark.parametrize(
    ("X", "y", "trivial"),
    [
        ([[1.0], [2.0]], [1.0, 2.0], False),
        ([[1.0], [1.0]], [1.0, 2.0], True),
        ([[1.0], [2.0]], [5.0, 5.0], True),
        ([[1.0], [2.0]], [0.0, 0.0], True),
        ([[1.0], [2.0]], [0.1 + 0.2, 0.3], True),
        ([[1.0], [2.0]], [1e-200, 2e-200], False),
        ([[1.0], [2.0]], [1e9, 1e9 + 1.0], False),
    ],
    ids=[
        "varied",
        "one context",
        "one outcome",
        "zeros",
        "rounding",
        "tiny outcomes",
        "large outcomes",
    ],
)
def test_there_is_nothing_to_forecast_without_a_column_or_an_outcome_that_varies(X, y, trivial):
    assert rows(X, y).trivial is trivial


def test_rows_with_other_outcomes_share_what_is_known_of_columns():
    rng = np.random.default_rng(0)
    rows = Rows.of(rng.normal(size=(9, 2)), np.arange(9.0), None)
    other = rows.telling(np.arange(9.0) ** 2)
    assert other.average == pytest.approx(204.0 / 9.0)
    assert other.mean is rows.mean
    assert other.scaled is rows.scaled
