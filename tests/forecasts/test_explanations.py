import numpy as np
import pytest

from surefoot.forecasts.explanations import explained


@pytest.mark.parametrize(("columns", "rows", "told"), [(2, 4, True), (20, 4, False), (20, 7, True)])
def test_a_corner_explains_unless_chance_would_fill_one_of_so_many(columns, rows, told):
    X = np.random.default_rng(0).normal(size=(100, columns))
    far = np.zeros(100, dtype=bool)
    far[np.argsort(X[:, 0])[-rows:]] = True
    assert explained(X, far).tolist() == (far & told).tolist()


@pytest.mark.parametrize(("columns", "told"), [(1, True), (10, True), (1000, False)])
def test_two_wild_outcomes_explain_each_other_unless_chance_would_pair_them(columns, told):
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(100, columns)) < 0.5).astype(float)
    X[:, 0] = far = np.arange(100) < 2
    assert explained(X, far, np.where(far, 30.0, 1.0)).tolist() == (far & told).tolist()


@pytest.mark.parametrize(("times", "alike", "told"), [
    (6.0, 1, True), (9.0, 1, False), (30.0, 1, False), (30.0, 2, True), (np.inf, 1, False),
])  # fmt: skip
def test_a_wild_outcome_needs_another_like_it(times, alike, told):
    flag, size = np.zeros(60), np.ones(60)
    flag[:2], size[:alike] = 1.0, times
    far = np.arange(60) < 2
    assert explained(flag[:, None], far, size)[0] == told


def test_far_outcomes_elsewhere_explain_no_wild_one():
    """Two outcomes that are merely far, at one level with a slip, make no promotion of the slip."""
    flag, times = np.zeros(200), np.ones(200)
    flag[:3], times[[0, 50, 100, 150]] = 1.0, 60.0
    far = (np.arange(200) < 3) | (times > 1.0)
    assert explained(flag[:, None], far, times)[:3].tolist() == [False, True, True]


def test_a_level_of_most_rows_and_a_column_of_many_levels_explain_nothing():
    far = np.arange(40) < 30
    assert not explained(far[:, None].astype(float), far).any()
    single = np.arange(40) == 3
    assert not explained(np.arange(40.0)[:, None], single).any()
