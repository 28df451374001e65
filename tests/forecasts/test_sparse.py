"""A forecast from few of many columns: honest, equivariant, and heard only where it is clearly better."""

import numpy as np
import pytest

from surefoot import RobustNewsvendor
from surefoot.costs import Pieces
from surefoot.datasets import synthetic
from surefoot.forecasts.candidates import candidates
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.sparse import (
    FOLDS,
    MOST_COLUMNS,
    MOST_ROWS,
    SparseForecaster,
    _paths,
    may_be_sparse,
)

COST = Pieces.kinked(up=1.0, down=4.0)
NO_PAST = np.zeros(0, dtype=np.int64)


def few_of_many(n=60, s=80, used=1, seed=0):
    """Rows of which the first columns alone tell of the outcome."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, s))
    return X, 20.0 + 3.0 * X[:, :used].sum(axis=1) + rng.normal(size=n)


def learned(X, y, masses=None, seed=0):
    return SparseForecaster().fit_rows(Rows.of(X, y, masses), COST, seed)


@pytest.mark.parametrize("s", [20, 80, MOST_COLUMNS + 50])
def test_the_columns_that_tell_are_used_and_errors_are_honest(s):
    X, y = few_of_many(s=s, used=2)
    honest = learned(X, y)
    assert np.argsort(-np.abs(honest.forecast.theta))[:2].tolist() in ([0, 1], [1, 0])
    new, then = few_of_many(n=4_000, s=s, used=2, seed=1)
    errors = then - honest.forecast(new)
    assert errors.std() < 1.3
    assert 0.75 < honest.errors.std() / errors.std() < 1.3


def test_rows_that_are_left_out_have_no_say():
    X, y = few_of_many()
    masses = np.where(np.arange(60) % FOLDS == 3, 0.0, 1.0)
    other = np.where(masses == 0.0, 1e3, y)
    penalties = np.geomspace(1.0, 0.01, 6)
    for one, two in zip(
        _paths(X, y, masses, penalties), _paths(X, other, masses, penalties), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_a_mass_of_two_is_the_row_twice():
    X, y = few_of_many()
    twice, penalties = np.r_[np.arange(60), 5], np.geomspace(1.0, 0.01, 6)
    masses = np.where(np.arange(60) == 5, 2.0, 1.0)
    one, two = _paths(X, y, masses, penalties), _paths(X[twice], y[twice], np.ones(61), penalties)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_change_nothing(unit):
    X, y = few_of_many()
    plain, scaled = learned(X, y), learned(unit * X, 1e3 * y)
    np.testing.assert_allclose(scaled.errors, 1e3 * plain.errors, rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(scaled.forecast(unit * X), 1e3 * plain.forecast(X), rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize(("n", "s", "sparse"), [
    (60, 80, True), (9, 80, False), (60, 5, False), (60, 6, True), (61, 6, False), (100, 10, True),
    (MOST_ROWS, 300, True), (MOST_ROWS + 1, 300, False),
])  # fmt: skip
def test_it_is_tried_where_columns_are_many_beside_rows(n, s, sparse):
    X, y = few_of_many(n, s)
    assert may_be_sparse(Rows.of(X, y, None)) is sparse


@pytest.mark.parametrize("outcomes", [np.full(12, 3.0), np.arange(12.0)])
def test_nothing_to_learn_is_a_constant(outcomes):
    honest = learned(np.zeros((12, 8)), outcomes)
    assert (honest.forecast.theta == 0.0).all()
    assert honest.forecast.constant == pytest.approx(outcomes.mean())


@pytest.mark.parametrize("seed", range(3))
def test_it_joins_where_few_of_many_columns_tell(seed):
    rows = Rows.of(*few_of_many(seed=seed), None)
    assert len(candidates(rows, COST, 0, NO_PAST, constant=False)) == 6


@pytest.mark.parametrize("seed", range(3))
def test_it_does_not_where_all_columns_tell_a_little(seed):
    data = synthetic(n=60, s=80, seed=seed)
    rows = Rows.of(data.X, data.y, None)
    assert len(candidates(rows, COST, 0, NO_PAST, constant=False)) == 5


def test_the_default_decides_nearly_as_if_it_knew_the_column():
    """With one of 80 columns and 100 rows the default cost 1.6 times the lasso before it had this member."""
    for seed in range(3):
        X, y = few_of_many(n=100, seed=seed)
        new, then = few_of_many(n=4_000, seed=seed + 10)
        knows = RobustNewsvendor(4.0, 1.0).fit(X[:, :1], y).cost(new[:, :1], then)
        assert RobustNewsvendor(4.0, 1.0).fit(X, y).cost(new, then) < 1.25 * knows
