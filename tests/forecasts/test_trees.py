import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from surefoot.forecasts import trees as trees_module
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.trees import grow
from surefoot.random import rng_for

FRESH = np.random.default_rng(5).uniform(-3.0, 3.0, size=(300, 3))


def rows(n=60, masses=None):
    rng = np.random.default_rng(n)
    X = rng.uniform(-2.0, 2.0, size=(n, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    return Rows(X, y, np.ones(n) if masses is None else masses)


@pytest.fixture(scope="module", params=["equal", "masses"])
def grown(request):
    """Rows, the flattened trees with their errors, and scikit-learn's forest of the same seed."""
    masses = np.random.default_rng(1).uniform(0.3, 2.0, 60) if request.param == "masses" else None
    made = rows(masses=masses)
    forest = RandomForestRegressor(
        trees_module.FEW_TREES, min_samples_leaf=3, max_features=1 / 3, oob_score=True,
        random_state=int(rng_for(4, "trees").integers(1 << 31)),
    ).fit(made.contexts, made.outcomes, sample_weight=made.masses)  # fmt: skip
    grown = grow(made, 4)
    return made, grown.trees, grown.errors, forest


def test_flattened_trees_forecast_what_scikit_learn_forecasts(grown):
    made, trees, _, forest = grown
    for X in (made.contexts, FRESH):
        np.testing.assert_allclose(trees(X), forest.predict(X), rtol=1e-12, atol=1e-13)
    assert len(trees.roots) == trees_module.FEW_TREES


def test_errors_are_out_of_bag(grown):
    made, _, errors, forest = grown
    np.testing.assert_allclose(errors, made.outcomes - forest.oob_prediction_, rtol=1e-10, atol=1e-12)


def test_contexts_on_a_limit_go_the_way_of_scikit_learn(grown):
    _, trees, _, forest = grown
    first = trees.roots[0]
    X = np.zeros((3, 3))
    limit = trees.threshold[first]
    X[:, trees.feature[first]] = [limit, np.nextafter(limit, 9.0), np.nextafter(limit, -9.0)]
    np.testing.assert_allclose(trees(X), forest.predict(X), rtol=1e-12)


def test_a_row_that_every_tree_saw_keeps_the_error_of_the_mean(monkeypatch):
    monkeypatch.setattr(trees_module, "FEW_TREES", 1)
    made = rows()
    grown = grow(made, 0)
    trees, errors = grown.trees, grown.errors
    seed = int(rng_for(0, "trees").integers(1 << 31))
    forest = RandomForestRegressor(
        1, min_samples_leaf=3, max_features=1 / 3, random_state=seed
    ).fit(made.contexts, made.outcomes, sample_weight=made.masses)  # fmt: skip
    seen = np.isin(np.arange(60), forest.estimators_samples_[0])
    assert 0 < seen.sum() < 60
    np.testing.assert_allclose(errors[seen], (made.outcomes - made.average)[seen])
    np.testing.assert_allclose(errors[~seen], (made.outcomes - trees(made.contexts))[~seen])


def test_errors_are_honest(grown):
    made, trees, errors, _ = grown
    inside = made.outcomes - trees(made.contexts)
    truth = np.sin(3.0 * FRESH[:, 0]) + FRESH[:, 1]
    near = (np.abs(FRESH) < 2.0).all(axis=1)
    outside = (truth - trees(FRESH))[near]
    assert errors.std() > 1.3 * inside.std()
    assert 0.7 < errors.std() / outside.std() < 1.4


def test_a_share_scales_every_value_and_pieces_of_rows_change_nothing(grown, monkeypatch):
    _, trees, _, _ = grown
    np.testing.assert_allclose(trees.scaled(0.3)(FRESH), 0.3 * trees(FRESH), rtol=1e-12)
    whole = trees(FRESH)
    monkeypatch.setattr(trees_module, "PIECE", 7)
    np.testing.assert_array_equal(trees(FRESH), whole)
    assert trees(FRESH[:0]).shape == (0,)


def test_the_seed_settles_the_forest():
    made = rows(30)
    (first, one), (again, two), (other, three) = (
        (grown.trees, grown.errors) for grown in (grow(made, seed) for seed in (0, 0, 1))
    )
    np.testing.assert_array_equal(first(FRESH), again(FRESH))
    np.testing.assert_array_equal(one, two)
    assert (first(FRESH) != other(FRESH)).any()
    assert (one != three).any()
