import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.baselines import l1_path
from surefoot.baselines.l1_path import L1Path, PathLostError
from surefoot.baselines.linear_program import is_unique, least_norm, solve_program
from surefoot.costs import Pieces

PIECES = Pieces.kinked(up=0.2, down=1.0)


def value(X, y, weights, pieces, l1, theta, intercept):
    return weights @ pieces.evaluate(X @ theta + intercept - y) + l1 * np.abs(theta).sum()


def brute_force(X, y, weights, pieces, l1, intercept):
    """The same program through CVXPY and another solver."""
    theta, t = cp.Variable(X.shape[1]), cp.Variable()
    r = X @ theta - y + (t if intercept else 0.0)
    cost = weights @ cp.maximum(pieces.up * r, -pieces.down * r) + l1 * cp.norm1(theta)
    return float(cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL))


SHAPES = [(8, 3), (6, 6), (5, 12), (15, 4), (2, 1), (3, 9), (1, 2)]


@pytest.mark.sweep
@pytest.mark.parametrize("ties", [False, True], ids=["generic", "ties"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_point_of_the_path_is_as_good_as_a_convex_program(small, shape, intercept, ties):
    for seed in range(2):
        X, y, weights = small(seed, rows=shape[0], columns=shape[1], ties=ties, weighted=not ties)
        path = L1Path(X, y, weights, PIECES, intercept=intercept)
        top = path.strength
        for share in (1.0, 0.6, 0.2, 0.01):
            if top == 0.0:
                continue
            try:
                vertex = path.descend(share * top)
            except PathLostError:
                assert ties  # the estimator then solves a linear program
                break
            found = value(X, y, weights, PIECES, share * top, vertex.theta, vertex.intercept)
            best = brute_force(X, y, weights, PIECES, share * top, intercept)
            assert found == pytest.approx(best, rel=1e-6, abs=1e-8)
            program = solve_program(X, y, weights, PIECES, share * top, intercept=intercept)
            again = value(X, y, weights, PIECES, share * top, program.theta, program.intercept)
            assert found == pytest.approx(again, rel=1e-7, abs=1e-9)
            # The slopes are a dual solution: they prove the value.
            for slopes in (vertex.slopes, program.slopes):
                assert -y @ slopes == pytest.approx(found, rel=1e-6, abs=1e-8)
                assert (np.abs(X.T @ slopes) <= share * top * (1 + 1e-6) + 1e-9).all()
                assert (slopes <= weights * 0.2 + 1e-8).all()
                assert (slopes >= -weights - 1e-8).all()


def test_whole_numbers_seldom_lose_the_path(small):
    lost = 0
    for seed in range(40):
        X, y, weights = small(seed, rows=12, columns=5, ties=True, weighted=False)
        path = L1Path(X, y, weights, PIECES, intercept=True)
        top = path.strength
        try:
            for share in (0.5, 0.1, 0.01):
                vertex = path.descend(share * top)
                program = solve_program(X, y, weights, PIECES, share * top, intercept=True)
                ours, theirs = (
                    value(X, y, weights, PIECES, share * top, v.theta, v.intercept)
                    for v in (vertex, program)
                )
                assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9)
        except PathLostError:
            lost += 1
    assert lost <= 1


def test_the_start_zeroes_theta_and_a_little_less_does_not(small):
    X, y, weights = small(3, rows=20, columns=4)
    path = L1Path(X, y, weights, PIECES, intercept=True)
    top = path.strength
    assert (path.descend(2 * top).theta == 0).all()
    assert (path.descend(top).theta == 0).all()
    assert (path.descend(0.99 * top).theta != 0).any()


def test_a_walk_in_pieces_is_the_walk_in_one_go(small):
    X, y, weights = small(4, rows=12, columns=20)
    one, many = (L1Path(X, y, weights, PIECES, intercept=True) for _ in range(2))
    for share in (0.9, 0.5, 0.3):
        many.descend(share * one.strength)
    top = one.strength
    np.testing.assert_allclose(one.descend(0.1 * top).theta, many.descend(0.1 * top).theta, atol=1e-9)


@given(st.integers(0, 50), st.sampled_from([0.01, 7.0, 1e6]), st.sampled_from([-1e5, 0.0, 3.0]))
@settings(deadline=None, max_examples=20)
def test_units_and_origins_of_columns_change_only_the_units_of_theta(seed, unit, origin):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(15, 4)), np.full(15, 1 / 15)
    y = X @ rng.normal(size=4) + rng.normal(size=15)
    plain = L1Path(X, y, weights, PIECES, intercept=True)
    # Outcomes and strength in other units: theta follows.
    other = L1Path(X + origin, unit * y, weights, PIECES, intercept=True)
    assert other.strength == pytest.approx(plain.strength, rel=1e-5)
    at = 0.2 * plain.strength
    np.testing.assert_allclose(
        other.descend(at).theta / unit, plain.descend(at).theta, atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize("kind", ["one-hot", "whole"])
def test_columns_that_depend_on_each_other_lose_no_path(kind):
    rng = np.random.default_rng(0)
    for case in range(25):
        n, s = int(rng.integers(3, 30)), int(rng.integers(1, 10))
        X = (
            np.eye(s)[rng.integers(s, size=n)]
            if kind == "one-hot"
            else 1.0 * rng.integers(0, 3, (n, s))
        )
        y, weights, pieces = (
            1.0 * rng.integers(0, 5, n),
            np.full(n, 1 / n),
            Pieces.kinked(1.0, 1.0 + case % 3),
        )
        path = L1Path(X, y, weights, pieces, intercept=bool(case % 5))
        for strength in path.strength * np.array([0.7, 0.2, 0.001]):
            one = path.descend(strength)
            two = solve_program(X, y, weights, pieces, strength, intercept=bool(case % 5))
            ours, theirs = (
                value(X, y, weights, pieces, strength, v.theta, v.intercept) for v in (one, two)
            )
            assert ours == pytest.approx(theirs, rel=1e-7, abs=1e-9)


def test_once_every_row_is_fitted_smaller_strengths_change_nothing(small):
    X, y, weights = small(2, rows=6, columns=15)
    path = L1Path(X, y, weights, PIECES, intercept=True)
    top = path.strength
    fitted = path.descend(1e-4 * top)
    np.testing.assert_allclose(X @ fitted.theta + fitted.intercept, y, atol=1e-9)
    events = path._events
    np.testing.assert_array_equal(path.descend(1e-13 * top).theta, fitted.theta)
    assert path._events == events


def test_a_singular_basis_is_a_lost_path(small, monkeypatch):
    X, y, weights = small(2)
    path = L1Path(X, y, weights, PIECES, intercept=True)

    def singular(matrix):
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(np.linalg, "inv", singular)
    with pytest.raises(PathLostError, match="depend on each other"):
        path.descend(0.1 * path.strength)


def test_equal_outcomes_need_no_theta():
    X, weights = np.random.default_rng(0).normal(size=(9, 3)), np.full(9, 1 / 9)
    path = L1Path(X, np.full(9, 3.3), weights, PIECES, intercept=True)
    vertex = path.descend(1e-3 * path.strength)
    np.testing.assert_allclose(X @ vertex.theta + vertex.intercept, 3.3, rtol=1e-12)


def test_constant_and_equal_columns_are_no_trouble(small):
    X, y, weights = small(5, rows=10, columns=3)
    wide = np.hstack([X, np.full((10, 1), 0.1), X[:, :1], np.zeros((10, 1))])
    for share in (0.5, 0.05):
        narrow_path, wide_path = (L1Path(M, y, weights, PIECES, intercept=True) for M in (X, wide))
        at = share * narrow_path.strength
        narrow, vertex = narrow_path.descend(at), wide_path.descend(at)
        assert value(wide, y, weights, PIECES, at, vertex.theta, vertex.intercept) == pytest.approx(
            value(X, y, weights, PIECES, at, narrow.theta, narrow.intercept), rel=1e-7
        )
        assert vertex.theta[3] == vertex.theta[5] == 0.0


def test_a_wrong_answer_is_never_returned(small, monkeypatch):
    X, y, weights = small(6, rows=12, columns=6)
    path = L1Path(X, y, weights, PIECES, intercept=True)
    monkeypatch.setattr(path, "_to_next_event", lambda strength: setattr(path, "_strength", strength))
    with pytest.raises(PathLostError, match="A gap of .* at strength"):
        path.descend(0.1 * path.strength)
    path = L1Path(X, y, weights, PIECES, intercept=True)
    monkeypatch.setattr(l1_path, "MOST_EVENTS", 0)
    with pytest.raises(PathLostError, match="No end after 0 events"):
        path.descend(0.01 * path.strength)


def test_a_large_walk_is_proved_optimal_by_its_own_slopes():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(60, 150)), rng.normal(size=60)
    weights = np.full(60, 1 / 60)
    path = L1Path(X, y, weights, PIECES, intercept=True)
    top = path.strength
    for share in np.geomspace(1, 1e-3, 5):
        vertex = path.descend(share * top)
        primal = value(X, y, weights, PIECES, share * top, vertex.theta, vertex.intercept)
        slopes = np.clip(vertex.slopes, -weights, 0.2 * weights)
        assert np.abs(X.T @ slopes).max() <= share * top + 1e-8
        assert abs(slopes.sum()) < 1e-8
        assert primal == pytest.approx(-y @ slopes, rel=1e-6, abs=1e-8)


# ---------------------------------------------------------------- uniqueness and least norm


def test_uniqueness_is_proved_denied_or_left_open(small):
    X, y, weights = small(0, rows=20, columns=3)
    vertex = solve_program(X, y, weights, PIECES, 0.0, intercept=True)
    assert is_unique(X, weights, PIECES, 0.0, vertex, intercept=True) is True
    double = np.hstack([X, X[:, :1]])
    vertex = solve_program(double, y, weights, PIECES, 0.0, intercept=True)
    assert is_unique(double, weights, PIECES, 0.0, vertex, intercept=True) is False
    # Two rows and b = h: any constant between the outcomes is optimal, and the column is constant.
    flat, outcomes = np.zeros((2, 1)), np.array([0.0, 1.0])
    even, half = Pieces.kinked(1.0, 1.0), np.full(2, 0.5)
    vertex = solve_program(flat, outcomes, half, even, 0.1, intercept=True)
    assert is_unique(flat, half, even, 0.1, vertex, intercept=True) is None


@pytest.mark.parametrize("intercept", [True, False])
def test_least_norm_is_the_smallest_of_all_interpolants(small, intercept):
    X, y, _ = small(1, rows=4, columns=7)
    theta, constant = least_norm(X, y, intercept=intercept)
    np.testing.assert_allclose(X @ theta + constant, y, atol=1e-10)
    variable, t = cp.Variable(7), cp.Variable()
    fits = [X @ variable + (t if intercept else 0.0) == y]
    best = cp.Problem(cp.Minimize(cp.norm2(variable)), fits).solve(solver=cp.CLARABEL)
    assert np.linalg.norm(theta) == pytest.approx(best, rel=1e-6)
