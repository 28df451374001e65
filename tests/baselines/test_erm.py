import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import QuantileRegressor

from surefoot.baselines import ERM
from surefoot.datasets import synthetic
from surefoot.random import rng_for

B, H = 1.0, 0.2


def training_cost(model, X, y, weight=None):
    penalty = np.sum(np.atleast_1d(model.l1_) * np.abs(model.parameters_.theta).sum(axis=0))
    return model.cost(X, y, weight) + penalty


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l1", [0.0, 0.003, 0.05])
@pytest.mark.parametrize(("n", "s"), [(40, 5), (12, 12), (10, 30)])
def test_it_is_scikit_learns_quantile_regression_at_alpha_l1_over_b_plus_h(n, s, l1, intercept):
    data = synthetic(n=n, s=s, seed=1, test=1)
    weight = np.linspace(0.5, 1.5, n)
    model = ERM(B, H, l1=l1, intercept=intercept).fit(data.X, data.y, sample_weight=weight)
    theirs = QuantileRegressor(
        quantile=B / (B + H), alpha=l1 / (B + H), fit_intercept=intercept, solver="highs"
    ).fit(data.X, data.y, sample_weight=weight / weight.mean())
    residuals = theirs.predict(data.X) - data.y
    best = np.average(np.maximum(H * residuals, -B * residuals), weights=weight)
    best += l1 * np.abs(theirs.coef_).sum()
    assert training_cost(model, data.X, data.y, weight) == pytest.approx(best, rel=1e-6, abs=1e-8)
    if not intercept:
        assert model.parameters_.intercept[0] == 0.0


@given(st.integers(0, 30), st.sampled_from([0.1, 5.0]), st.sampled_from([0.5, 4.0]))
@settings(deadline=None, max_examples=15)
def test_scaling_outcomes_and_costs_scales_the_answer(seed, unit, price):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    y = X @ rng.normal(size=3) + rng.normal(size=20)
    for l1 in (0.0, 0.02):
        plain = ERM(B, H, l1=l1).fit(X, y)
        scaled = ERM(price * B, price * H, l1=price * l1).fit(X, unit * y)
        assert training_cost(scaled, X, unit * y) == pytest.approx(
            unit * price * training_cost(plain, X, y), rel=1e-6
        )


def test_a_stronger_penalty_costs_more_and_shrinks_theta(data):
    models = [ERM(B, H, l1=l1).fit(data.X, data.y) for l1 in (0.0, 0.001, 0.01, 0.05, 1.0)]
    costs = [model.cost(data.X, data.y) for model in models]
    norms = [np.abs(model.parameters_.theta).sum() for model in models]
    assert costs == sorted(costs)
    assert norms == sorted(norms, reverse=True)
    assert norms[-1] == 0.0
    assert norms[0] > norms[2] > 0.0


def test_auto_takes_the_strength_of_least_cross_validated_cost():
    data = synthetic(n=60, s=80, seed=0)
    model = ERM(B, H, l1="auto").fit(data.X, data.y)
    (path,) = model.l1_paths_
    assert len(path.strengths) == 10
    assert path.strengths[-1] == pytest.approx(1e-3 * path.strengths[0])
    assert path.fold_costs.shape == (5, 10)
    assert model.l1_ == path.l1 == path.strengths[path.mean_costs.argmin()]
    assert "10 strengths" in repr(path)
    # Its costs are those of fits without the fold, judged on the fold.
    order = np.lexsort([data.y])
    X, y = data.X[order], data.y[order]
    parts = np.array_split(rng_for(0, "folds").permutation(60), 5)
    for k in (0, 3):
        kept = np.setdiff1d(np.arange(60), parts[k])
        for j in (2, 8):
            fold = ERM(B, H, l1=path.strengths[j]).fit(X[kept], y[kept])
            assert fold.cost(X[parts[k]], y[parts[k]]) == pytest.approx(path.fold_costs[k, j], rel=1e-4)
    fixed = ERM(B, H, l1=model.l1_).fit(data.X, data.y)
    np.testing.assert_allclose(fixed.parameters_.theta, model.parameters_.theta, atol=1e-9)
    assert not hasattr(model.set_params(l1=0.1).fit(data.X, data.y), "l1_paths_")
    assert (
        ERM(l1="auto", random_state=5).fit(data.X, data.y).l1_paths_[0].fold_costs[0, 3]
        != path.fold_costs[0, 3]
    )


def test_auto_weighs_rows_in_its_folds(data):
    order = np.argsort(data.y)[:40]
    X, y, weight = data.X[order], data.y[order], np.random.default_rng(0).uniform(0.1, 5.0, size=40)
    (path,) = ERM(B, H, l1="auto").fit(X, y, sample_weight=weight).l1_paths_
    parts = np.array_split(rng_for(0, "folds").permutation(40), 5)
    np.testing.assert_allclose(path.fold_weights, [weight[part].sum() / weight.sum() for part in parts])
    kept = np.setdiff1d(np.arange(40), parts[1])
    fold = ERM(B, H, l1=path.strengths[4]).fit(X[kept], y[kept], sample_weight=weight[kept])
    held_out = fold.cost(X[parts[1]], y[parts[1]], weight[parts[1]])
    assert held_out == pytest.approx(path.fold_costs[1, 4], rel=1e-5)


def test_auto_beats_the_unpenalised_policy_where_columns_outnumber_rows():
    data = synthetic(n=60, s=100, seed=0)
    auto, plain = ERM(B, H, l1="auto").fit(data.X, data.y), ERM(B, H).fit(data.X, data.y)
    assert auto.cost(data.X_test, data.y_test) < 0.5 * plain.cost(data.X_test, data.y_test)


def test_auto_with_nothing_to_learn_is_the_constant(data):
    constant = ERM(B, H, l1="auto").fit(np.ones((6, 2)), np.arange(6.0))
    np.testing.assert_array_equal(constant.parameters_.theta, 0.0)
    assert constant.predict([[1.0, 1.0]])[0] == pytest.approx(4.0)
    same = ERM(B, H, l1="auto").fit(data.X[[0, 0]], data.y[[0, 0]])
    assert same.predict(data.X[:1])[0] == pytest.approx(data.y[0])
    assert repr(same.l1_paths_[0]).startswith("StrengthPath(l1=0, 1 strengths")


def test_ties_are_reported_and_can_be_broken_by_the_norm():
    data = synthetic(n=20, s=40, seed=0)
    vertex = ERM(B, H).fit(data.X, data.y)
    least = ERM(B, H, tie_break="minimum_norm").fit(data.X, data.y)
    for model in (vertex, least):
        assert model.cost(data.X, data.y) == pytest.approx(0.0, abs=1e-8)
        assert model.unique_ is False
        assert model.tie_break_.startswith("One of many optimal policies: ")
    assert vertex.tie_break_.endswith("the vertex that the linear program met first.")
    assert "least ||theta||_2" in least.tie_break_
    assert (np.abs(vertex.parameters_.theta) > 1e-9).sum() <= 20  # a vertex of twenty equations
    by_hand = np.linalg.pinv(data.X - data.X.mean(axis=0)) @ (data.y - data.y.mean())
    np.testing.assert_allclose(least.parameters_.theta[:, 0], by_hand, atol=1e-9)
    assert least.cost(data.X_test, data.y_test) < vertex.cost(data.X_test, data.y_test)


def test_a_unique_optimum_is_reported_as_such(data):
    for model in (ERM(B, H), ERM(B, H, tie_break="minimum_norm"), ERM(B, H, l1=0.01)):
        model.fit(data.X, data.y)
        assert model.unique_ is True
        assert model.tie_break_ == "The only optimal policy: there was no tie to break."
    same = [
        ERM(B, H, tie_break=rule).fit(data.X, data.y).predict(data.X)
        for rule in ("vertex", "minimum_norm")
    ]
    np.testing.assert_allclose(*same, rtol=1e-6)


def test_minimum_norm_shares_a_doubled_column_evenly(data):
    double = np.hstack([data.X, data.X[:, :1]])
    model = ERM(B, H, tie_break="minimum_norm").fit(double, data.y)
    theta = model.parameters_.theta[:, 0]
    assert theta[0] == pytest.approx(theta[5], rel=1e-6)
    assert model.unique_ is False
    assert model.cost(double, data.y) == pytest.approx(
        ERM(B, H).fit(data.X, data.y).cost(data.X, data.y), rel=1e-6
    )


def test_columns_of_very_different_units(data):
    units = np.array([1e-6, 1.0, 1e6, 1e3, 1e-3])
    plain, scaled = ERM(B, H).fit(data.X, data.y), ERM(B, H).fit(data.X * units, data.y)
    assert scaled.cost(data.X * units, data.y) == pytest.approx(plain.cost(data.X, data.y), rel=1e-6)
