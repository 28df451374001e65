import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from surefoot.baselines.extension import distances, extend


def slope(z, values, gaps):
    return np.max(np.abs(z - values) / gaps)


@given(st.integers(0, 10_000), st.integers(1, 9), st.booleans())
@settings(deadline=None, max_examples=40)
def test_no_other_decision_has_a_smaller_slope(seed, known, whole):
    rng = np.random.default_rng(seed)
    values, gaps = rng.normal(size=known), rng.uniform(0.05, 3.0, size=(4, known))
    if whole:
        values, gaps = np.round(values), np.ceil(gaps)
    found = extend(values, gaps)
    grid = np.linspace(values.min() - 0.1, values.max() + 0.1, 2001)
    for z, row in zip(found, gaps, strict=True):
        mine = slope(z, values, row)
        assert mine <= min(slope(other, values, row) for other in grid) + 1e-12
        # The same as a linear program: minimise t subject to |z - f_k| <= t d_k.
        ones = np.ones(known)
        program = linprog(
            [0.0, 1.0],
            A_ub=np.vstack([np.column_stack([ones, -row]), np.column_stack([-ones, -row])]),
            b_ub=np.concatenate([values, -values]),
            bounds=[(None, None), (0, None)],
        )
        assert mine == pytest.approx(program.fun, abs=1e-8)
        pairs = (values[:, None] - values) / (row[:, None] + row)
        assert mine == pytest.approx(pairs.max(), rel=1e-9, abs=1e-12)


def test_a_known_context_keeps_its_decision():
    rng = np.random.default_rng(0)
    X, values = rng.normal(size=(12, 3)), rng.normal(size=12)
    gaps = np.linalg.norm(X[:, None] - X, axis=2)
    np.testing.assert_array_equal(extend(values, gaps), values)


def test_decisions_at_new_contexts_are_no_steeper_than_the_known_ones():
    rng = np.random.default_rng(1)
    X, values, queries = rng.normal(size=(15, 3)), rng.normal(size=15), rng.normal(size=(200, 3))
    between = np.linalg.norm(X[:, None] - X, axis=2)
    steepest = np.max(np.abs(values[:, None] - values)[between > 0] / between[between > 0])
    gaps = np.linalg.norm(queries[:, None] - X, axis=2)
    found = extend(values, gaps)
    assert all(
        slope(z, values, row) <= steepest * (1 + 1e-12) for z, row in zip(found, gaps, strict=True)
    )


def test_one_value_everywhere_and_one_known_context():
    np.testing.assert_array_equal(extend(np.full(3, 2.5), np.ones((2, 3))), [2.5, 2.5])
    np.testing.assert_array_equal(extend(np.array([4.0]), np.array([[0.0], [7.0]])), [4.0, 4.0])
    assert extend(np.array([4.0]), np.zeros((0, 1))).shape == (0,)


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
