"""Paths of the lasso: against scikit-learn, by their optimality conditions, and with what they may use."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from surefoot.engines.lasso_kernel import lasso_path


def problem(n=40, s=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, s)) @ (np.eye(s) + 0.3 * rng.normal(size=(s, s)))
    X -= X.mean(axis=0)
    y = X[:, :3] @ [2.0, -1.0, 0.5] + rng.normal(size=n)
    y -= y.mean()
    products = X.T @ y / n
    return X, y, X.T @ X / n, products, np.geomspace(1.0, 1e-2, 8) * np.abs(products).max()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_coefficients_are_those_of_scikit_learn(seed, shape):
    X, y, gram, products, penalties = problem(*shape, seed=seed)
    path = lasso_path(gram, products, penalties, shape[1], 1e-10)[: len(penalties)]
    for penalty, beta in zip(penalties, path, strict=True):
        other = Lasso(alpha=penalty, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y).coef_

        def value(b, penalty=penalty):
            return 0.5 * np.mean((y - X @ b) ** 2) + penalty * np.abs(b).sum()

        assert value(beta) == pytest.approx(value(other), rel=1e-4)  # sweeps end
        np.testing.assert_allclose(X @ beta, X @ other, atol=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_no_column_could_still_gain(seed):
    _, _, gram, products, penalties = problem(seed=seed)
    for penalty, beta in zip(penalties, lasso_path(gram, products, penalties, 12, 1e-12), strict=False):
        slopes = products - gram @ beta
        assert np.abs(slopes).max() <= penalty * (1 + 1e-6)
        np.testing.assert_allclose(slopes[beta != 0], penalty * np.sign(beta[beta != 0]), rtol=1e-5)


def test_without_the_penalty_it_is_least_squares_on_the_same_columns():
    X, y, gram, products, penalties = problem()
    path = lasso_path(gram, products, penalties, 12, 1e-12)
    for shrunk, free in zip(path[: len(penalties)], path[len(penalties) :], strict=True):
        used = shrunk != 0
        np.testing.assert_array_equal(free[~used], 0.0)
        if used.any():
            best = np.linalg.lstsq(X[:, used], y, rcond=None)[0]
            np.testing.assert_allclose(free[used], best, atol=1e-5)


def test_the_path_stays_where_more_columns_would_be_used():
    _, _, gram, products, penalties = problem()
    whole, few = (lasso_path(gram, products, penalties, most, 1e-10) for most in (12, 3))
    used = (few != 0).sum(axis=1)
    assert used.max() <= 3
    ends = int(np.flatnonzero((whole[: len(penalties)] != 0).sum(axis=1) <= 3)[-1])
    for half in (0, len(penalties)):
        np.testing.assert_array_equal(few[half : half + ends + 1], whole[half : half + ends + 1])
        for later in range(ends + 1, len(penalties)):
            np.testing.assert_array_equal(few[half + later], few[half + ends])


def test_columns_without_spread_and_twins_do_no_harm():
    X, y, _, _, _ = problem()
    X = np.column_stack([X, np.zeros(len(X)), X[:, 0]])
    gram, products = X.T @ X / len(X), X.T @ y / len(X)
    path = lasso_path(gram, products, np.geomspace(1.0, 1e-2, 8) * np.abs(products).max(), 14, 1e-8)
    assert np.isfinite(path).all()
    assert (path[:, 12] == 0.0).all()
