import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Exact, RobustNewsvendor
from surefoot.baselines import SAA, Shapley, shapley
from surefoot.random import rng_for

B, H = 1.0, 0.2


def nominal_cost(z, y, weights=None):
    return np.average(np.where(y > z, B * (y - z), H * (z - y)), weights=weights)


@given(st.integers(0, 200), st.sampled_from([0.05, 0.4]), st.sampled_from([0.5, 4.0]))
@settings(deadline=None, max_examples=20)
def test_scaling_outcomes_costs_contexts_and_radius_scales_the_answer(seed, radius, unit):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    plain = Shapley(B, H, radius=radius).fit(X, y)
    scaled = Shapley(3 * B, 3 * H, radius=unit * radius).fit(unit * X + 1.0, 2.0 * y - 1.0)
    assert scaled.worst_case_ == pytest.approx(6.0 * plain.worst_case_, rel=1e-6)
    assert scaled.lipschitz_ == pytest.approx(2.0 * plain.lipschitz_ / unit, rel=1e-5, abs=1e-8)


@given(st.integers(0, 200))
@settings(deadline=None, max_examples=15)
def test_the_worst_case_grows_with_the_radius_and_is_concave(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(10, 2)), rng.normal(size=10)
    values = np.array([Shapley(B, H, radius=r).fit(X, y).worst_case_ for r in np.linspace(0, 1, 6)])
    assert (np.diff(values) >= -1e-8).all()
    assert (np.diff(values, 2) <= 1e-7).all()  # a minimum of functions linear in the radius


def test_radius_zero_interpolates_and_a_huge_radius_is_the_constant(data):
    plain = Shapley(B, H, radius=0).fit(data.X, data.y)
    np.testing.assert_allclose(plain.predict(data.X), data.y, rtol=1e-12)
    assert plain.worst_case_ == pytest.approx(0.0, abs=1e-12)
    collapsed = Shapley(B, H, radius=1e6).fit(data.X, data.y)
    constant = SAA(B, H).fit(data.X, data.y)
    assert collapsed.lipschitz_ == pytest.approx(0.0, abs=1e-9)
    assert collapsed.cost(data.X, data.y) == pytest.approx(constant.cost(data.X, data.y), rel=1e-6)
    assert np.ptp(collapsed.predict(data.X_test)) < 1e-6


def test_the_attributes_tell_one_story(data):
    model = Shapley(B, H, radius=0.2).fit(data.X, data.y)
    assert model.radius_ == 0.2
    assert model.values_.shape == (60,)
    np.testing.assert_array_equal(model.predict(model.contexts_), model.values_)
    gaps = np.linalg.norm(model.contexts_[:, None] - model.contexts_, axis=2) + np.eye(60)
    steepest = np.max(np.abs(model.values_[:, None] - model.values_) / gaps)
    assert model.lipschitz_ == pytest.approx(steepest, rel=1e-6)
    mean = model.cost(data.X, data.y)
    assert model.worst_case_ == pytest.approx(B * 0.2 * model.lipschitz_ + mean, rel=1e-9)
    two = Shapley(B, H, radius=0.2).fit(data.X, np.column_stack([data.y, data.y]))
    assert two.values_.shape == (60, 2)
    np.testing.assert_allclose(two.lipschitz_, model.lipschitz_, rtol=1e-6)
    assert two.worst_case_ == pytest.approx(2 * model.worst_case_, rel=1e-6)


def test_no_affine_policy_has_a_smaller_worst_case(data):
    """Ours of order 1 is the best among affine policies; Shapley's is the best among all functions."""
    spread = data.X.std(axis=0)
    affine = RobustNewsvendor(B, H, radius=0.1, order=1, solver=Exact(gap_tol=1e-5)).fit(data.X, data.y)
    best = Shapley(B, H, radius=0.1).fit(data.X / spread, data.y)
    assert best.worst_case_ <= affine.certificate_.upper
    assert best.worst_case_ > 0.1 * affine.certificate_.upper


def test_moving_mass_never_costs_more_than_the_worst_case(data):
    """Any distribution at distance rho: move every context by rho, in any direction."""
    model = Shapley(B, H, radius=0.3).fit(data.X, data.y)
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = rng.normal(size=data.X.shape)
        step *= 0.3 / np.linalg.norm(step, axis=1, keepdims=True)
        assert nominal_cost(model.predict(data.X + step), data.y) <= model.worst_case_ + 1e-9


def test_outcomes_that_move_cost_at_least_their_price(data):
    free = Shapley(B, H, radius=0.3).fit(data.X, data.y)
    for kappa in (0.1, 0.5, 1e9):
        model = Shapley(B, H, radius=0.3, outcome_cost=kappa).fit(data.X, data.y)
        assert model.lipschitz_ >= 1 / kappa
        assert model.worst_case_ >= free.worst_case_ - 1e-9
        assert model.worst_case_ >= B * 0.3 / kappa
    assert model.worst_case_ == pytest.approx(free.worst_case_, rel=1e-6)
    assert Shapley(outcome_cost=math.inf, radius=0.0).fit(data.X, data.y).worst_case_ < 1e-12


def test_repeated_contexts_share_one_decision(data):
    X, y = np.repeat(data.X[:5], 6, axis=0), data.y[:30]
    model = Shapley(B, H, radius=0.01).fit(X, y)
    assert model.contexts_.shape == (5, 5)
    decisions = model.predict(X)
    for k in range(5):
        assert np.ptp(decisions[6 * k : 6 * k + 6]) == 0.0


def test_auto_takes_the_radius_of_least_cross_validated_cost(data):
    X, y = data.X[:30], data.y[:30]
    model = Shapley(B, H).fit(X, y)
    path = model.radius_path_
    assert len(path.radii) == 12
    assert path.radii[-1] == 0.0
    assert path.fold_costs.shape == (5, 12)
    assert model.radius_ == path.radius == path.radii[path.mean_costs.argmin()]
    # Its costs are those of fits without the fold, judged on the fold; rows are ordered by outcome.
    order = np.argsort(y)
    X, y = X[order], y[order]
    part = np.array_split(rng_for(0, "folds").permutation(30), 5)[2]
    kept = np.setdiff1d(np.arange(30), part)
    for j in (5, 11):
        fold = Shapley(B, H, radius=path.radii[j]).fit(X[kept], y[kept])
        assert fold.cost(X[part], y[part]) == pytest.approx(path.fold_costs[2, j], rel=0.02)
    # The largest radius lies beyond the collapse.
    assert Shapley(B, H, radius=path.radii[0]).fit(X, y).lipschitz_ == pytest.approx(0.0, abs=1e-7)
    assert not hasattr(model.set_params(radius=0.1).fit(X, y), "radius_path_")


def test_auto_weighs_rows_in_its_folds(data):
    order = np.argsort(data.y)[:25]
    X, y, weight = data.X[order], data.y[order], np.random.default_rng(0).uniform(0.1, 5.0, size=25)
    path = Shapley(B, H).fit(X, y, sample_weight=weight).radius_path_
    parts = np.array_split(rng_for(0, "folds").permutation(25), 5)
    np.testing.assert_allclose(path.fold_weights, [weight[part].sum() / weight.sum() for part in parts])
    kept = np.setdiff1d(np.arange(25), parts[1])
    fold = Shapley(B, H, radius=path.radii[7]).fit(X[kept], y[kept], sample_weight=weight[kept])
    held_out = fold.cost(X[parts[1]], y[parts[1]], weight[parts[1]])
    assert held_out == pytest.approx(path.fold_costs[1, 7], rel=1e-5)


def test_auto_with_nothing_to_learn_is_the_constant():
    model = Shapley(B, H).fit(np.ones((6, 2)), np.arange(6.0))
    assert model.radius_ == 0.0
    assert model.predict([[3.0, 3.0]])[0] == 4.0
    flat = Shapley(B, H).fit(np.arange(6.0)[:, None], np.full(6, 2.0))
    np.testing.assert_allclose(flat.predict([[9.0]]), 2.0)


def test_blocks_change_nothing(data, monkeypatch):
    model = Shapley(B, H, radius=0.1).fit(data.X, data.y)
    whole = model.predict(data.X_test)
    monkeypatch.setattr(shapley, "BLOCK_ENTRIES", 7 * 60)
    np.testing.assert_array_equal(model.predict(data.X_test), whole)
