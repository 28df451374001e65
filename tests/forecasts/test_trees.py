import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from surefoot.forecasts import trees as trees_module
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.trees import grow

FRESH = np.random.default_rng(5).uniform(-3.0, 3.0, size=(300, 3))


def rows(n=60, masses=None):
    rng = np.random.default_rng(n)
    X = rng.uniform(-2.0, 2.0, size=(n, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return Rows(X, y, np.ones(n) if masses is None else masses)


@pytest.fixture(scope="module", params=["equal", "masses"])
def grown(request):
    masses = np.random.default_rng(1).uniform(0.3, 2.0, 60) if request.param == "masses" else None
    made = rows(masses=masses)
    return made, grow(made, 4)


def test_the_mean_of_the_trees_is_as_good_as_scikit_learns():
    """Two forests of the same kind: over samples neither is better, and they agree."""
    ours, theirs, apart = [], [], []
    for k in range(15):
        rng = np.random.default_rng(k)
        X, new = rng.normal(size=(80, 5)), rng.normal(size=(500, 5))
        truth = (X[:, 0] + np.sin(2.0 * X[:, 1]), new[:, 0] + np.sin(2.0 * new[:, 1]))
        y = truth[0] + 0.5 * rng.normal(size=80)
        told = grow(Rows(X, y, np.ones(80)), k).trees(new)
        forest = RandomForestRegressor(200, min_samples_leaf=3, max_features=1 / 3, random_state=k)
        other = forest.fit(X, y).predict(new)
        ours.append(np.mean((told - truth[1]) ** 2))
        theirs.append(np.mean((other - truth[1]) ** 2))
        apart.append(np.mean((told - other) ** 2))
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.05)
    assert np.mean(apart) < 0.05 * np.mean(theirs)


def test_leaves_errors_and_the_sum_belong_together(grown):
    made, forest = grown
    values = len(forest.trees.roots) * forest.trees.value[forest.leaves]
    np.testing.assert_array_equal(forest.leaves, forest.trees.leaves(made.contexts))
    np.testing.assert_allclose(forest.trees(made.contexts), values.mean(axis=1), rtol=1e-12)
    for i in range(60):
        unseen = values[i][~forest.seen[i]]
        assert forest.errors[i] == pytest.approx(made.outcomes[i] - unseen.mean(), rel=1e-12)


def test_a_row_that_every_tree_saw_keeps_the_error_of_the_mean(monkeypatch):
    monkeypatch.setattr(trees_module, "MANY_TREES", 1)
    made = rows()
    forest = grow(made, 0)
    seen = forest.seen[:, 0]
    assert 0 < seen.sum() < 60
    np.testing.assert_allclose(forest.errors[seen], (made.outcomes - made.average)[seen])
    np.testing.assert_allclose(
        forest.errors[~seen], (made.outcomes - forest.trees(made.contexts))[~seen]
    )


def test_errors_are_honest(grown):
    made, forest = grown
    inside = made.outcomes - forest.trees(made.contexts)
    truth = np.sin(3.0 * FRESH[:, 0]) + FRESH[:, 1]
    near = (np.abs(FRESH) < 2.0).all(axis=1)
    outside = (truth - forest.trees(FRESH))[near]
    assert forest.errors.std() > 1.3 * inside.std()
    assert 0.7 < forest.errors.std() / outside.std() < 1.4


def test_a_share_scales_every_value_and_pieces_of_rows_change_nothing(grown, monkeypatch):
    trees = grown[1].trees
    np.testing.assert_allclose(trees.scaled(0.3)(FRESH), 0.3 * trees(FRESH), rtol=1e-12)
    whole = trees(FRESH)
    monkeypatch.setattr(trees_module, "PIECE", 7)
    np.testing.assert_array_equal(trees(FRESH), whole)
    assert trees(FRESH[:0]).shape == (0,)


def test_many_numbers_are_given_fewer_trees(monkeypatch):
    monkeypatch.setattr(trees_module, "MOST_NUMBERS_FOR_MANY", 100)
    assert len(grow(rows(30), 0).trees.roots) == trees_module.MANY_TREES
    assert len(grow(rows(40), 0).trees.roots) == trees_module.FEW_TREES


def test_the_seed_settles_the_forest():
    made = rows(30)
    (first, one), (again, two), (other, three) = (
        (grown.trees, grown.errors) for grown in (grow(made, seed) for seed in (0, 0, 1))
    )
    np.testing.assert_array_equal(first(FRESH), again(FRESH))
    np.testing.assert_array_equal(one, two)
    assert (first(FRESH) != other(FRESH)).any()
    assert (one != three).any()


class Unloaded:
    """A kernel that is not loaded yet, and must not be."""

    loaded = False

    def __call__(self, *_):
        raise AssertionError("a kernel was loaded")


def test_few_ways_need_no_kernel(grown, monkeypatch):
    trees = grown[1].trees
    compiled, told = trees.leaves(FRESH), trees(FRESH)
    monkeypatch.setattr(trees_module, "walk", Unloaded())
    with pytest.raises(AssertionError, match="a kernel was loaded"):
        trees.leaves(FRESH)  # as one is loaded already, another costs little
    monkeypatch.setattr(trees_module, "grow_trees", Unloaded())
    np.testing.assert_array_equal(trees.leaves(FRESH), compiled)
    np.testing.assert_array_equal(trees(FRESH), told)
    assert trees.leaves(FRESH[:0]).shape == (0, len(trees.roots))
    monkeypatch.setattr(trees_module, "FEW_WAYS", 10)
    with pytest.raises(AssertionError, match="a kernel was loaded"):
        trees.leaves(FRESH)
