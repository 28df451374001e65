import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.ambiguity import AffineRows
from surefoot.baselines import l1_path as module
from surefoot.baselines.l1_path import l1_path, largest_strength
from surefoot.baselines.linear_program import is_unique, least_norm, solve_program
from surefoot.costs import Pieces

PIECES = Pieces.kinked(up=0.2, down=1.0)


def rows_of(X, y, weights, pieces=PIECES, intercept=True):
    return AffineRows(X, y, weights, intercept, pieces, np.zeros(len(y)), np.ones(X.shape[1]))


def value(rows, l1, vertex):
    return (
        rows.mean_cost(rows.residuals(vertex.theta, vertex.intercept)) + l1 * np.abs(vertex.theta).sum()
    )


def brute_force(rows, l1):
    """The same program through CVXPY and another solver."""
    X, y, pieces = rows.contexts, rows.outcomes, rows.pieces
    theta, t = cp.Variable(X.shape[1]), cp.Variable()
    r = X @ theta - y + (t if rows.intercept else 0.0)
    cost = rows.weights @ cp.maximum(pieces.up * r, -pieces.down * r) + l1 * cp.norm1(theta)
    return float(cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL))


SHAPES = [(8, 3), (6, 6), (5, 12), (15, 4), (2, 1), (3, 9), (1, 2)]


@pytest.mark.sweep
@pytest.mark.parametrize("ties", [False, True], ids=["generic", "ties"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_point_of_the_path_is_as_good_as_a_convex_program(small, shape, intercept, ties):
    for seed in range(2):
        X, y, weights = small(seed, rows=shape[0], columns=shape[1], ties=ties, weighted=not ties)
        rows = rows_of(X, y, weights, intercept=intercept)
        top = largest_strength(rows)
        if top == 0.0:
            continue
        strengths = top * np.array([1.0, 0.6, 0.2, 0.01])
        for l1, vertex in zip(strengths, l1_path(rows, strengths), strict=True):
            found = value(rows, l1, vertex)
            assert found == pytest.approx(brute_force(rows, l1), rel=1e-6, abs=1e-8)
            program = solve_program(rows, l1)
            assert found == pytest.approx(value(rows, l1, program), rel=1e-7, abs=1e-9)
            # The slopes are a dual solution: they prove the value.
            for slopes in (vertex.slopes, program.slopes):
                assert -y @ slopes == pytest.approx(found, rel=1e-6, abs=1e-8)
                assert (np.abs(X.T @ slopes) <= l1 * (1 + 1e-6) + 1e-9).all()
                assert (slopes <= weights * 0.2 + 1e-8).all()
                assert (slopes >= -weights - 1e-8).all()


def test_whole_numbers_are_as_good_as_programs(small):
    for seed in range(40):
        rows = rows_of(*small(seed, rows=12, columns=5, ties=True, weighted=False))
        strengths = largest_strength(rows) * np.array([0.5, 0.1, 0.01])
        for l1, vertex in zip(strengths, l1_path(rows, strengths), strict=True):
            program = solve_program(rows, l1)
            assert value(rows, l1, vertex) == pytest.approx(
                value(rows, l1, program), rel=1e-6, abs=1e-9
            )


def test_the_largest_strength_zeroes_theta_and_a_little_less_does_not(small):
    for intercept in (True, False):
        rows = rows_of(*small(3, rows=20, columns=4), intercept=intercept)
        far, top, below = l1_path(rows, largest_strength(rows) * np.array([2.0, 1.0, 0.99]))
        assert (far.theta == 0).all()
        assert (top.theta == 0).all()
        assert (below.theta != 0).any()


def test_a_path_is_its_points_one_by_one(small):
    rows = rows_of(*small(4, rows=12, columns=20))
    strengths = largest_strength(rows) * np.array([0.9, 0.5, 0.3, 0.1, 0.6])  # and up again
    for l1, vertex in zip(strengths, l1_path(rows, strengths), strict=True):
        np.testing.assert_allclose(l1_path(rows, np.array([l1]))[0].theta, vertex.theta, atol=1e-9)


@given(st.integers(0, 50), st.sampled_from([0.01, 7.0, 1e6]), st.sampled_from([-1e5, 0.0, 3.0]))
@settings(deadline=None, max_examples=20)
def test_units_and_origins_of_columns_change_only_the_units_of_theta(seed, unit, origin):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(15, 4)), np.full(15, 1 / 15)
    y = X @ rng.normal(size=4) + rng.normal(size=15)
    # Outcomes and strength in other units: theta follows.
    plain, other = rows_of(X, y, weights), rows_of(X + origin, unit * y, weights)
    assert largest_strength(other) == pytest.approx(largest_strength(plain), rel=1e-5)
    at = np.array([0.2 * largest_strength(plain)])
    one, two = l1_path(plain, at)[0], l1_path(other, at)[0]
    np.testing.assert_allclose(two.theta / unit, one.theta, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["one-hot", "whole"])
def test_columns_that_depend_on_each_other_are_no_trouble(kind):
    rng = np.random.default_rng(0)
    for case in range(25):
        n, s = int(rng.integers(3, 30)), int(rng.integers(1, 10))
        X = (
            np.eye(s)[rng.integers(s, size=n)]
            if kind == "one-hot"
            else 1.0 * rng.integers(0, 3, (n, s))
        )
        y, pieces = 1.0 * rng.integers(0, 5, n), Pieces.kinked(1.0, 1.0 + case % 3)
        rows = rows_of(X, y, np.full(n, 1 / n), pieces, intercept=bool(case % 5))
        strengths = largest_strength(rows) * np.array([0.7, 0.2, 0.001])
        for l1, vertex in zip(strengths, l1_path(rows, strengths), strict=True):
            program = solve_program(rows, l1)
            assert value(rows, l1, vertex) == pytest.approx(
                value(rows, l1, program), rel=1e-7, abs=1e-9
            )


def test_once_every_row_is_fitted_smaller_strengths_change_nothing(small):
    X, y, weights = small(2, rows=6, columns=15)
    rows = rows_of(X, y, weights)
    fitted, later = l1_path(rows, largest_strength(rows) * np.array([1e-4, 1e-7]))
    np.testing.assert_allclose(X @ fitted.theta + fitted.intercept, y, atol=1e-9)
    np.testing.assert_allclose(later.theta, fitted.theta, atol=1e-9)


def test_equal_outcomes_need_no_theta():
    X, weights = np.random.default_rng(0).normal(size=(9, 3)), np.full(9, 1 / 9)
    rows = rows_of(X, np.full(9, 3.3), weights)
    (vertex,) = l1_path(rows, np.array([1e-3 * largest_strength(rows)]))
    np.testing.assert_allclose(X @ vertex.theta + vertex.intercept, 3.3, rtol=1e-12)


def test_constant_and_equal_columns_are_no_trouble(small):
    X, y, weights = small(5, rows=10, columns=3)
    narrow = rows_of(X, y, weights)
    wide = rows_of(np.hstack([X, np.full((10, 1), 0.1), X[:, :1], np.zeros((10, 1))]), y, weights)
    strengths = largest_strength(narrow) * np.array([0.5, 0.05])
    for l1, few, many in zip(
        strengths, l1_path(narrow, strengths), l1_path(wide, strengths), strict=True
    ):
        assert value(wide, l1, many) == pytest.approx(value(narrow, l1, few), rel=1e-7)
        assert many.theta[3] == many.theta[5] == 0.0


def test_where_a_path_fails_programs_are_solved(small, monkeypatch):
    rows = rows_of(*small(6, rows=12, columns=6))
    strengths = largest_strength(rows) * np.array([0.5, 0.1])
    monkeypatch.setattr(module, "_solved", lambda highs: None)
    for l1, vertex in zip(strengths, l1_path(rows, strengths), strict=True):
        np.testing.assert_array_equal(vertex.theta, solve_program(rows, l1).theta)


def test_columns_beyond_the_first_are_found(monkeypatch):
    """Steep columns become rows of the program few at a time; with one at a time the answer is the same."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(60, 150)), rng.normal(size=60)
    rows = rows_of(X, y, np.full(60, 1 / 60))
    strengths = largest_strength(rows) * np.geomspace(1, 1e-3, 5)
    path = l1_path(rows, strengths)
    monkeypatch.setattr(module, "NEW_ROWS", 1)
    for l1, vertex, again in zip(strengths, path, l1_path(rows, strengths), strict=True):
        np.testing.assert_allclose(vertex.theta, again.theta, atol=1e-7)
        # Proved optimal by its own slopes.
        slopes = np.clip(vertex.slopes, -rows.weights, 0.2 * rows.weights)
        assert np.abs(X.T @ slopes).max() <= l1 + 1e-8
        assert abs(slopes.sum()) < 1e-8
        assert value(rows, l1, vertex) == pytest.approx(-y @ slopes, rel=1e-6, abs=1e-8)


# ---------------------------------------------------------------- uniqueness and least norm


def test_uniqueness_is_proved_denied_or_left_open(small):
    X, y, weights = small(0, rows=20, columns=3)
    rows, double = (rows_of(M, y, weights) for M in (X, np.hstack([X, X[:, :1]])))
    assert is_unique(rows, 0.0, solve_program(rows, 0.0)) is True
    assert is_unique(double, 0.0, solve_program(double, 0.0)) is False
    # Two rows and b = h: any constant between the outcomes is optimal, and the column is constant.
    flat = rows_of(np.zeros((2, 1)), np.array([0.0, 1.0]), np.full(2, 0.5), Pieces.kinked(1.0, 1.0))
    assert is_unique(flat, 0.1, solve_program(flat, 0.1)) is None


@pytest.mark.parametrize("intercept", [True, False])
def test_least_norm_is_the_smallest_of_all_interpolants(small, intercept):
    X, y, _ = small(1, rows=4, columns=7)
    theta, constant = least_norm(X, y, intercept=intercept)
    np.testing.assert_allclose(X @ theta + constant, y, atol=1e-10)
    variable, t = cp.Variable(7), cp.Variable()
    fits = [X @ variable + (t if intercept else 0.0) == y]
    best = cp.Problem(cp.Minimize(cp.norm2(variable)), fits).solve(solver=cp.CLARABEL)
    assert np.linalg.norm(theta) == pytest.approx(best, rel=1e-6)
