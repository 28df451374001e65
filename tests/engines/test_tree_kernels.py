import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from surefoot import RobustNewsvendor
from surefoot.engines.row_draws import generator_words
from surefoot.engines.tree_kernels import grow_trees, leaf_samples, unseen_quantiles, walk

LEAST = 3


def grown(n=80, columns=4, trees=5, drawn=None, asked=None, masses=None, ties=False, seed=0):
    """Contexts, outcomes, masses and what the kernel makes of them."""
    rng = np.random.default_rng(n + columns)
    X = rng.normal(size=(n, columns))
    if ties:
        X = np.round(X)
    y = X[:, 0] + X[:, -1] ** 2 + 0.3 * rng.normal(size=n)
    masses = np.ones(n) if masses is None else masses
    by_column = np.ascontiguousarray(X.T)
    order = np.argsort(by_column, axis=1, kind="stable").astype(np.int32)
    words = generator_words(np.random.default_rng(seed))
    made = grow_trees(by_column, order, y, masses, trees, drawn or n, LEAST, asked or columns, words)
    return X, y, masses, made


@pytest.mark.parametrize("masses", [None, np.random.default_rng(3).uniform(0.2, 3.0, 80)])
def test_a_tree_that_asks_every_column_is_that_of_scikit_learn(masses):
    X, y, masses, (*table, value, roots, times) = grown(masses=masses)
    leaves = walk(X, *table, roots)
    for k in range(len(roots)):
        single = DecisionTreeRegressor(min_samples_leaf=LEAST, random_state=0)
        single.fit(X, y, sample_weight=masses * times[k])
        # Two columns can part six rows in the same way: the tie shows only between the rows.
        drawn = times[k] > 0
        np.testing.assert_allclose(value[leaves[drawn, k]], single.predict(X[drawn]), rtol=1e-9)
        assert np.mean(np.isclose(value[leaves[:, k]], single.predict(X))) > 0.9


@pytest.mark.parametrize("how", [{}, {"asked": 1}, {"ties": True}, {"drawn": 40}])
def test_every_node_is_the_mean_of_its_rows_and_every_leaf_has_enough(how):
    X, y, _, (feature, threshold, below, above, value, roots, times) = grown(**how)
    for k, root in enumerate(roots):
        waiting = [(root, np.flatnonzero(times[k]))]
        while waiting:
            node, inside = waiting.pop()
            assert value[node] == pytest.approx(np.average(y[inside], weights=times[k, inside]))
            assert len(inside) >= LEAST
            if below[node] == node:
                assert above[node] == node
                continue
            low = X[inside, feature[node]] <= threshold[node]
            assert below[node] > node < above[node]
            waiting += [(below[node], inside[low]), (above[node], inside[~low])]


def test_rows_are_drawn_with_replacement_and_all_alike():
    *_, (*_, times) = grown(n=50, trees=2000)
    assert (times.sum(axis=1) == 50).all()
    assert (times > 0).mean() == pytest.approx(1.0 - (1.0 - 1.0 / 50) ** 50, abs=0.01)
    assert np.ptp(times.mean(axis=0)) < 0.2
    *_, (*_, few) = grown(n=50, trees=20, drawn=10)
    assert (few.sum(axis=1) == 10).all()


def test_columns_are_asked_at_random_and_constant_ones_never_split():
    rng = np.random.default_rng(0)
    by_column = np.ascontiguousarray(np.vstack([rng.normal(size=(3, 60)), np.ones((2, 60))]))
    order = np.argsort(by_column, axis=1, kind="stable").astype(np.int32)
    y = rng.normal(size=60)
    words = generator_words(rng)
    feature, _, below, _, _, roots, _ = grow_trees(
        by_column, order, y, np.ones(60), 300, 60, LEAST, 1, words
    )
    assert (below[roots] != roots).all()  # asked on until one varies
    split = feature[below != np.arange(len(below))]
    assert set(split) == {0, 1, 2}
    assert np.bincount(feature[roots]) / 300 == pytest.approx(1 / 3, abs=0.1)


@pytest.mark.parametrize("y", [np.ones(20), np.arange(20) % 2 * 1e-9])
def test_equal_outcomes_and_too_few_rows_are_left_whole(y):
    X = np.random.default_rng(0).normal(size=(1, 20))
    order = np.argsort(X, axis=1).astype(np.int32)
    words = generator_words(np.random.default_rng(0))
    made = grow_trees(X, order, y, np.ones(20), 3, 20, LEAST, 1, words)
    assert made[5].tolist() == [0, 1, 2] == made[2].tolist()
    made = grow_trees(X, order, np.arange(20.0), np.ones(20), 3, 20, 11, 1, words)
    assert len(made[0]) == 3


def test_contexts_on_a_limit_go_below():
    _, _, _, (feature, threshold, below, above, _, roots, _) = grown(trees=1)
    X = np.zeros((2, 4))
    X[:, feature[0]] = [threshold[0], np.nextafter(threshold[0], 9.0)]
    first, second = walk(X, feature, threshold, below, above, roots)[:, 0]
    inside = {int(below[0])}
    for node in range(len(below)):
        if node in inside and below[node] != node:
            inside |= {int(below[node]), int(above[node])}
    assert int(first) in inside
    assert int(second) not in inside


def test_the_first_rows_of_a_leaf_stand_for_it():
    X, y, _, (*table, value, roots, times) = grown(trees=6)
    leaves, seen = walk(X, *table, roots), times.T > 0
    order = np.random.default_rng(1).permutation(len(y))
    told = np.arange(len(y)) ** 2
    samples, place = leaf_samples(leaves, seen, told, order, len(value), 4)
    for node in np.unique(leaves):
        i, _ = np.nonzero((leaves[order] == node) & seen[order])
        assert samples[place[node]].tolist() == np.resize(told[order][i][:4], 4).tolist()
    quantile = 0.7
    decided = unseen_quantiles(samples, place[leaves], seen, quantile)
    for i in range(len(y)):
        values = np.sort(samples[place[leaves[i, ~seen[i]]]].ravel())
        if len(values):
            assert decided[i] == values[int(np.ceil(quantile * len(values) - 1e-9)) - 1]
        else:
            assert decided[i] == -1
    assert (decided < 0).any()


@pytest.mark.parametrize("kind", ["counts", "zero or one"])
@pytest.mark.parametrize("unit", [0.1, 3.0, 1e5])
def test_rounding_does_not_choose_between_splits_that_tie(kind, unit):
    """Outcomes in other units round differently: decisions of the default must not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = (
        rng.poisson(np.exp(0.4 * X[:, 0] + 0.5))
        if kind == "counts"
        else X[:, 0] > rng.logistic(size=80)
    )
    y = y.astype(float)
    first, other = (RobustNewsvendor(1.0, 0.25).fit(X, y * c).predict(X) / c for c in (1.0, unit))
    np.testing.assert_allclose(other, first, rtol=0, atol=1e-9)


@pytest.mark.parametrize("unit", [0.1, 1.0 / 3.0, 7.7])
def test_rounding_does_not_send_rows_halfway_up_or_down(unit):
    """Whole numbers lie halfway between others that were drawn: contexts in other units change nothing."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 7, size=(90, 5)).astype(float)
    y = rng.poisson(np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1])).astype(float)
    first = RobustNewsvendor(3.0, 2.0).fit(X, y).predict(X)
    other = RobustNewsvendor(3.0, 2.0).fit(unit * X - 0.3, y).predict(unit * X - 0.3)
    np.testing.assert_allclose(other, first, rtol=0, atol=1e-9)


@pytest.mark.parametrize("quantile", [0.0, 0.3, 0.5, 1.0])
def test_quantiles_of_numbers_that_are_often_equal(quantile):
    rng = np.random.default_rng(3)
    samples = rng.integers(0, 3, size=(40, 4))
    places = np.sort(rng.integers(0, 40, size=(50, 12)), axis=1)
    decided = unseen_quantiles(samples, places, np.zeros((50, 12), dtype=bool), quantile)
    values = np.sort(samples[places].reshape(50, -1), axis=1)
    np.testing.assert_array_equal(decided, values[:, max(int(np.ceil(quantile * 48)) - 1, 0)])
