"""Eigenvectors by compiled rotations: NumPy's, for every shape that rows take."""

import numpy as np
import pytest

from surefoot.engines.eigen_kernel import SMALL_SIDE, symmetric_eigenvectors
from surefoot.random import rng_for


def gram(side, rows, seed=0):
    columns = rng_for(seed, "gram", str(side)).standard_normal((rows, side))
    return columns.T @ columns / rows


CASES = {
    **{
        f"side {side}": gram(side, side + 5) for side in (1, 2, 3, 4, 7, 20, SMALL_SIDE, SMALL_SIDE + 1)
    },
    "fewer rows than columns": gram(12, 5),
    "all alike": np.eye(6),
    "nothing": np.zeros((5, 5)),
    "diagonal, not in order": np.diag([3.0, 1.0, 2.0, 1.0]),
    "blocks": np.kron(np.eye(3), gram(4, 9)),
    "two copies of a column": np.kron(np.ones((2, 2)), gram(5, 9)),
    "far apart": np.diag(10.0 ** np.arange(-6, 6)) @ gram(12, 20) @ np.diag(10.0 ** np.arange(-6, 6)),
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_vectors_are_those_of_the_matrix(case):
    matrix = CASES[case]
    values, vectors = symmetric_eigenvectors(matrix)
    size = np.abs(matrix).max() + 1e-300
    rounding = 1e-15 * len(matrix) * size
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), rtol=0, atol=4 * rounding)
    assert (np.diff(values) >= 0.0).all()
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(len(matrix)), rtol=0, atol=1e-13)
    np.testing.assert_allclose(vectors @ matrix, values[:, None] * vectors, rtol=0, atol=10 * rounding)
