import numpy as np
import pytest

from surefoot.baselines.distances import distances


@pytest.mark.parametrize("columns", [1, 16, 17, 200])
def test_distances_are_the_norms_of_differences(columns):
    rng = np.random.default_rng(columns)
    left, right = rng.normal(size=(7, columns)), rng.normal(size=(5, columns)) + 3.0
    by_hand = np.linalg.norm(left[:, None, :] - right[None, :, :], axis=2)
    np.testing.assert_allclose(distances(left, right), by_hand, rtol=1e-9)


@pytest.mark.parametrize("apart", [0.0, 1e-12, 1e-8, 1e-5, 1e-3])
def test_contexts_that_nearly_coincide_have_exact_distances(apart):
    rng = np.random.default_rng(0)
    right = rng.uniform(size=(6, 100)) + 1e3
    left = right[[2, 4]].copy()
    left[:, 7] += apart
    found = distances(left, right)
    true = left[:, 7] - right[[2, 4], 7]  # what is left of the step beside a thousand
    np.testing.assert_allclose(found[[0, 1], [2, 4]], true, rtol=1e-9)
    if apart == 0.0:
        assert found[0, 2] == found[1, 4] == 0.0


def test_the_diagonal_is_zero_and_the_matrix_symmetric():
    X = np.random.default_rng(1).normal(size=(30, 64))
    found = distances(X, X)
    np.testing.assert_array_equal(np.diag(found), 0.0)
    np.testing.assert_allclose(found, found.T, rtol=1e-12)
