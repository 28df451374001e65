import highspy
import numpy as np
import pytest
from scipy.optimize import linprog

from surefoot.baselines.lipschitz import LipschitzProgram
from surefoot.costs import Pieces
from surefoot.exceptions import SurefootError

PIECES = Pieces.kinked(up=0.2, down=1.0)


def full_program(gaps, places, y, weights, pieces, least, radius):
    """All pairs at once, in the user's units."""
    n, rows = len(gaps), len(y)
    j, k = np.nonzero(~np.eye(n, dtype=bool))
    pairs = np.zeros((len(j), n + 1 + rows))
    pairs[np.arange(len(j)), j], pairs[np.arange(len(j)), k] = 1.0, -1.0
    pairs[:, n] = -gaps[j, k]
    sides = []
    for sign in (pieces.up, -pieces.down):  # epigraph: cost_i >= sign (f - y_i)
        block = np.zeros((rows, n + 1 + rows))
        block[np.arange(rows), places] = sign
        block[np.arange(rows), n + 1 + np.arange(rows)] = -1.0
        sides.append(block)
    result = linprog(
        np.concatenate([np.zeros(n), [pieces.steepest * radius], weights]),
        A_ub=np.vstack([pairs, *sides]),
        b_ub=np.concatenate([np.zeros(len(j)), pieces.up * y, -pieces.down * y]),
        bounds=[(None, None)] * n + [(least, None)] + [(None, None)] * rows,
    )
    return result.fun


def instance(small, seed, rows=12, ties=False):
    X, y, weights = small(seed, rows=rows, columns=2, ties=ties)
    contexts, places = np.unique(X, axis=0, return_inverse=True)
    gaps = np.linalg.norm(contexts[:, None] - contexts, axis=2)
    return gaps, places.reshape(-1), y, weights


@pytest.mark.parametrize("ties", [False, True], ids=["generic", "repeated contexts"])
@pytest.mark.parametrize("least", [0.0, 0.7])
@pytest.mark.parametrize("pieces", [PIECES, Pieces.kinked(up=30.0, down=2.0)], ids=["b > h", "h > b"])
def test_the_worst_case_is_that_of_the_program_with_all_pairs(small, pieces, least, ties):
    for seed in range(3):
        parts = instance(small, seed, ties=ties)
        program = LipschitzProgram(*parts, pieces, least)
        for radius in (2.0, 0.3, 0.05, 0.001, 0.0, 0.1):  # up and down: warm starts forget nothing
            found = program.solve(radius)
            best = full_program(*parts, pieces, least, radius)
            assert found.worst_case == pytest.approx(best, rel=1e-6, abs=1e-7)
            gaps = parts[0]
            rises = np.abs(found.values[:, None] - found.values)
            assert (rises <= found.slope * gaps + 1e-7 * np.ptp(parts[2])).all()
            assert found.slope >= least


def test_units_of_outcomes_and_distances_scale_through(small):
    gaps, places, y, weights = instance(small, 7)
    plain = LipschitzProgram(gaps, places, y, weights, PIECES, 0.0).solve(0.1)
    scaled = LipschitzProgram(1e4 * gaps, places, 1e-3 * y + 5.0, weights, PIECES, 0.0).solve(1e3)
    assert scaled.worst_case == pytest.approx(1e-3 * plain.worst_case, rel=1e-6)
    assert scaled.slope == pytest.approx(1e-7 * plain.slope, rel=1e-6)


def test_radius_zero_is_the_quantile_of_each_context(small):
    gaps, places, y, weights = instance(small, 1, rows=30, ties=True)
    assert len(gaps) < 30
    found = LipschitzProgram(gaps, places, y, weights, PIECES, 0.0).solve(0.0)
    for k in range(len(gaps)):
        mine = places == k
        costs = [weights[mine] @ PIECES.evaluate(z - y[mine]) for z in y[mine]]
        assert weights[mine] @ PIECES.evaluate(found.values[k] - y[mine]) == pytest.approx(min(costs))


def test_contexts_that_nearly_coincide_share_nearly_one_decision():
    gaps = np.array([[0.0, 1e-9, 1.0], [1e-9, 0.0, 1.0], [1.0, 1.0, 0.0]])
    y, weights = np.array([0.0, 1.0, 5.0]), np.full(3, 1 / 3)
    found = LipschitzProgram(gaps, np.arange(3), y, weights, Pieces.kinked(1.0, 1.0), 0.0).solve(0.05)
    assert abs(found.values[0] - found.values[1]) < 1e-6
    assert found.worst_case == pytest.approx(0.05 * 4.0 + 1 / 3, rel=1e-6)


def test_equal_outcomes_and_a_single_context():
    flat = LipschitzProgram(np.array([[0.0, 2.0], [2.0, 0.0]]), np.arange(2), np.full(2, 3.0),
                            np.full(2, 0.5), PIECES, 0.0)  # fmt: skip
    for radius in (0.0, 0.5):
        found = flat.solve(radius)
        np.testing.assert_allclose(found.values, 3.0)
        assert found.slope == pytest.approx(0.0, abs=1e-9)
    lone = LipschitzProgram(np.zeros((1, 1)), np.zeros(3, int), np.array([1.0, 2.0, 3.0]),
                            np.full(3, 1 / 3), PIECES, 0.0)  # fmt: skip
    assert lone.solve(0.5).values[0] == pytest.approx(3.0)
    assert lone.solve(0.0).slope == 0.0


def test_a_program_that_is_not_solved_is_an_error(small, monkeypatch):
    program = LipschitzProgram(*instance(small, 0), PIECES, 0.0)
    monkeypatch.setattr(program._highs, "getModelStatus", lambda: highspy.HighsModelStatus.kTimeLimit)
    with pytest.raises(SurefootError, match="was not solved: HiGHS says kTimeLimit"):
        program.solve(0.1)
