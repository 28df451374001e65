import numpy as np
import pytest
from sklearn.base import clone

from surefoot.baselines import Forest, forest
from surefoot.datasets import synthetic

B, H = 1.0, 0.2


def by_hand(model, X, y, masses, queries, level):
    """Weights tree by tree and row by row, then the quantile, as the formula says."""
    (fitted,) = model.forests_
    known, asked = fitted.apply(X), fitted.apply(queries)
    decisions = []
    for q in range(len(queries)):
        weights = np.zeros(len(y))
        for t in range(known.shape[1]):
            same = known[:, t] == asked[q, t]
            weights[same] += masses[same] / masses[same].sum()
        weights /= known.shape[1]
        assert weights.sum() == pytest.approx(1.0)
        decisions.append(min(y[k] for k in range(len(y)) if weights[y <= y[k]].sum() >= level - 1e-12))
    return np.array(decisions)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("whole", [False, True], ids=["distinct outcomes", "whole outcomes"])
def test_decisions_are_quantiles_under_the_weights_of_the_formula(weighted, whole):
    data = synthetic(n=40, s=4, seed=0, test=60)
    y = np.round(2 * data.y) if whole else data.y
    masses = np.random.default_rng(0).integers(1, 4, size=40) if weighted else np.ones(40)
    model = Forest(B, H, n_trees=15, min_leaf=3).fit(
        data.X, y, sample_weight=masses if weighted else None
    )
    np.testing.assert_array_equal(
        model.predict(data.X_test), by_hand(model, data.X, y, masses, data.X_test, B / (B + H))
    )


def test_rows_out_of_a_trees_bootstrap_sample_count_too():
    data = synthetic(n=30, s=3, seed=1)
    model = Forest(B, H, n_trees=5).fit(data.X, data.y)
    weights = model._groves[0].weights(data.X_test[:50])
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    leaves, asked = model.forests_[0].apply(data.X), model.forests_[0].apply(data.X_test[:50])
    used = (leaves[None, :, :] == asked[:, None, :]).any(axis=2)
    order = np.argsort(data.y)
    np.testing.assert_array_equal(weights > 0, used[:, order])


def test_trees_are_grown_with_the_weights_of_the_rows(data):
    order = np.argsort(data.y)
    X, y, weight = data.X[order], data.y[order], np.arange(1.0, 61.0)
    model = Forest(B, H, n_trees=8, max_features=0.5).fit(X, y, sample_weight=weight)
    (mine,) = model.forests_
    theirs = clone(mine).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(mine.predict(data.X_test), theirs.predict(data.X_test))
    assert mine.get_params()["max_features"] == 0.5
    assert len(mine.estimators_) == 8


def test_one_leaf_is_the_constant_order(data):
    model = Forest(B, H, n_trees=5, min_leaf=60).fit(data.X, data.y)
    constant = np.quantile(data.y, B / (B + H), method="inverted_cdf")
    np.testing.assert_array_equal(model.predict(data.X_test), constant)


def test_blocks_change_nothing(data, monkeypatch):
    model = Forest(B, H, n_trees=10).fit(data.X, data.y)
    whole = model.predict(data.X_test)
    monkeypatch.setattr(forest, "BLOCK_ENTRIES", 7 * 60)
    np.testing.assert_array_equal(model.predict(data.X_test), whole)


def test_it_learns_and_depends_on_its_seed(data):
    models = [Forest(B, H, n_trees=30, random_state=seed).fit(data.X, data.y) for seed in (0, 0, 1)]
    first, again, other = (model.predict(data.X_test) for model in models)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    constant = np.quantile(data.y, B / (B + H), method="inverted_cdf")
    r = constant - data.y_test
    assert models[0].cost(data.X_test, data.y_test) < 0.95 * np.maximum(H * r, -B * r).mean()


def test_scaling_outcomes_scales_decisions(data):
    # Powers of two: sums of squares, and with them the splits, scale without rounding.
    plain = Forest(B, H, n_trees=10).fit(data.X, data.y).predict(data.X_test)
    scaled = Forest(4 * B, 4 * H, n_trees=10).fit(data.X, 8.0 * data.y).predict(data.X_test)
    np.testing.assert_array_equal(scaled, 8.0 * plain)


@pytest.mark.parametrize(("column", "outcome"), [(-90, 0), (60, 0), (0, -90), (0, 60), (-40, -12)])
def test_units_change_no_tree(data, column, outcome):
    """Scikit-learn itself takes tiny numbers to be equal, and refuses large ones."""
    units, X = 2.0 ** (3 * column), data.X.copy()
    X[:, 0] *= units
    test = data.X_test.copy()
    test[:, 0] *= units
    plain = Forest(n_trees=20).fit(data.X, data.y).predict(data.X_test)
    found = Forest(n_trees=20).fit(X, data.y * 8.0**outcome).predict(test)
    np.testing.assert_array_equal(found, plain * 8.0**outcome)


def test_the_last_outcome_is_ordered_even_if_weights_sum_to_less_than_one(data):
    model = Forest(1e13, 1.0, n_trees=7).fit(data.X, data.y)
    assert (model.predict(data.X_test) <= data.y.max()).all()
    assert (model.predict(data.X_test) >= np.median(data.y)).mean() > 0.9
