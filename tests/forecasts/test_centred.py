import re

import numpy as np
import pytest

from surefoot import DASGD, Box, Contamination, Exact, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor, Pieces, Quadratic
from surefoot.datasets import synthetic
from surefoot.estimators.recipe import nominal_parts
from surefoot.exceptions import (
    DataWarning,
    InvalidInputError,
    InvalidTypeError,
    UnsupportedProblemError,
)
from surefoot.forecasts import Ensemble, Forecast, Forecaster, Forecasts, centred
from surefoot.forecasts.centred import smoothed, why_not_centred
from surefoot.io import pack, unpack
from surefoot.nominals import Empirical
from surefoot.policies import MLP, Linear, Select
from surefoot.sets import Budget, Simplex

COST = Newsvendor(1.0, 0.2)
TWO = Newsvendor((1.0, 0.5), (0.2, 2.0))
LINEAR, BENT = Forecaster(smooth=False), Forecaster(trees=False)


def wave(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 3))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + (0.1 + 0.1 * np.abs(X[:, 2])) * rng.normal(size=n)


def question(rows, cost=COST, policy=None, ball=None, forecaster=BENT):
    policy, ball = policy or Linear(), ball or WassersteinBall("auto")
    return centred(cost, policy, ball, forecaster, rows, 0)


def errors_of(nominal):
    return nominal.outcomes - nominal.offsets


def offset_of(model):
    return model.problem_.policy.offset


def kinked(r, backorder=1.0, holding=0.2):
    return np.maximum(holding * r, -backorder * r)


# ---------------------------------------------------------------- smoothing


@pytest.mark.parametrize("n", [2, 3, 10, 21, 22, 49, 50, 75])
@pytest.mark.parametrize("weighted", [False, True])
def test_smoothing_keeps_mean_variance_contexts_and_weights(n, weighted):
    rng = np.random.default_rng(n)
    masses = rng.uniform(0.5, 3.0, n) if weighted else None
    errors = Empirical(rng.normal(size=(n, 2)), rng.gamma(2.0, size=(n, 2)), masses)
    made = smoothed(errors)
    atoms = len(made.weights) // n
    assert atoms == min(150 // n, 7) > 1
    for power in (1, 2):
        np.testing.assert_allclose(
            made.weights @ made.outcomes**power, errors.weights @ errors.outcomes**power
        )
    np.testing.assert_allclose(made.weights.reshape(n, atoms).sum(axis=1), errors.weights)
    np.testing.assert_array_equal(made.contexts[::atoms], errors.contexts)
    np.testing.assert_array_equal(made.contexts, np.repeat(errors.contexts, atoms, axis=0))
    # Each row's atoms surround what the row was shrunk to, by n^(-1/3) deviations of all rows.
    mean = errors.weights @ errors.outcomes
    spread = np.sqrt(errors.weights @ (errors.outcomes - mean) ** 2)
    own = made.outcomes.reshape(n, atoms, 2)
    np.testing.assert_allclose(own.std(axis=1), np.tile(spread * n ** (-1 / 3), (n, 1)))
    np.testing.assert_allclose(
        own.mean(axis=1), mean + np.sqrt(1.0 - n ** (-2 / 3)) * (errors.outcomes - mean)
    )


@pytest.mark.parametrize("n", [76, 150, 400])
def test_enough_rows_are_not_smoothed(n):
    rng = np.random.default_rng(0)
    errors = Empirical(rng.normal(size=(n, 2)), rng.normal(size=n))
    assert smoothed(errors) is errors


def test_smoothing_keeps_names_and_leaves_constant_errors_alone():
    errors = Empirical(np.arange(6.0).reshape(3, 2), np.zeros(3), names=("a", "b"))
    made = smoothed(errors)
    assert made.names == ("a", "b")
    np.testing.assert_array_equal(made.outcomes, 0.0)


@pytest.mark.parametrize("n", [3, 20, 75, 76])
def test_smoothing_moves_errors_and_leaves_offsets(n):
    rng = np.random.default_rng(n)
    X, y, offsets = rng.normal(size=(n, 2)), rng.gamma(2.0, size=(n, 2)), rng.normal(size=(n, 2))
    made = smoothed(Empirical(X, y, offsets=offsets))
    bare = smoothed(Empirical(X, y - offsets))
    atoms = len(made.weights) // n
    np.testing.assert_array_equal(made.offsets, np.repeat(offsets, atoms, axis=0))
    np.testing.assert_allclose(errors_of(made), bare.outcomes, rtol=1e-12, atol=1e-12)
    assert bare.offsets is None


def test_smoothing_counts_observations_and_not_rows():
    rng = np.random.default_rng(0)
    errors = Empirical(rng.normal(size=(10, 2)), rng.normal(size=10))
    assert smoothed(errors, 100.0) is errors
    assert len(smoothed(errors, 50.0).weights) == 30
    width = smoothed(errors, 50.0).outcomes.reshape(10, 3).std(axis=1)
    np.testing.assert_allclose(width, errors.outcomes.std() * 50 ** (-1 / 3))


def test_smoothed_quantiles_are_better_than_those_of_ten_numbers():
    plain, smooth = [], []
    for seed in range(200):
        sample = np.random.default_rng(seed).normal(size=(10, 1))
        errors = Empirical(np.zeros((10, 1)), sample)
        for found, nominal in ((plain, errors), (smooth, smoothed(errors))):
            found.append(np.quantile(nominal.outcomes[:, 0], 1 / 1.2, method="inverted_cdf"))
    truth = 0.9674
    assert np.mean(np.square(np.array(smooth) - truth)) < 0.8 * np.mean(
        np.square(np.array(plain) - truth)
    )


# ---------------------------------------------------------------- the forecasts


def two_forecasts():
    X, y = wave(40)
    fits = [
        f.fit(X, y * (j + 1), None, Pieces.kinked(0.2, 1.0), 0) for j, f in enumerate((BENT, LINEAR))
    ]
    return X, Forecasts(tuple(fit.forecast for fit in fits))


def test_forecasts_are_one_function_with_a_column_for_each_product():
    X, forecasts = two_forecasts()
    assert forecasts(X).shape == (40, 2)
    for j in range(2):
        np.testing.assert_array_equal(forecasts(X)[:, j], forecasts.forecasts[j](X))
    assert repr(forecasts) == "Forecasts(2 of the outcome)"


def test_forecasts_come_back_from_a_file():
    X, forecasts = two_forecasts()
    arrays = {}
    again = unpack(pack("offset", forecasts, arrays), arrays)
    np.testing.assert_array_equal(again(X), forecasts(X))


def test_more_than_ten_forecasts_are_not_mixed_up():
    ones = np.ones(1)
    forecasts = Forecasts(tuple(Forecast(float(j), 0 * ones, 0 * ones, ones) for j in range(12)))
    arrays = {}
    again = unpack(pack("offset", forecasts, arrays), arrays)
    np.testing.assert_array_equal(again(np.zeros((1, 1)))[0], np.arange(12.0))


# ---------------------------------------------------------------- the question


def test_errors_are_honest_and_stand_beside_their_contexts():
    X, y = wave(40)
    found = question(Empirical(X, y))
    rows, forecasts = found.rehearsal.nominal, found.problem.policy.offset
    order = np.argsort(y)
    np.testing.assert_array_equal(rows.contexts, X[order])
    np.testing.assert_array_equal(rows.outcomes[:, 0], y[order])
    honest = BENT.fit(X[order], y[order], None, Pieces.kinked(up=0.2, down=1.0), 0)
    np.testing.assert_allclose(errors_of(rows)[:, 0], honest.errors)
    np.testing.assert_allclose(forecasts(X)[:, 0], honest.forecast(X))
    assert len(found.problem.nominal.weights) == 40 * 3
    inside = y - forecasts(X)[:, 0]
    assert errors_of(rows).std() > 1.1 * inside.std()


def test_a_question_is_ready_but_for_its_radius():
    X, y = wave(40)
    ball = WassersteinBall("auto", order=1, outcome_cost=3.0)
    found = question(Empirical(X, y, names=("a", "b", "c")), ball=ball)
    assert found.corrects
    assert found.problem.ball == found.rehearsal.ball == ball.at(0.0)
    assert found.problem.cost == COST
    assert found.problem.policy == found.rehearsal.policy
    assert found.problem.policy.features is None
    assert found.problem.nominal.names == found.rehearsal.nominal.names == ("a", "b", "c")


def test_rows_of_whole_weights_may_be_held_out_one_by_one():
    X, y = wave(40)
    X = np.round(X[:, :2])  # contexts that repeat: whole weights are then counts of observations
    weight = np.random.default_rng(0).integers(1, 4, 40)
    rows = question(Empirical(X, y, weight)).rehearsal.nominal
    assert len(rows.masses) == weight.sum()
    assert (rows.masses == 1.0).all()
    order = np.repeat(np.argsort(y), weight[np.argsort(y)])
    np.testing.assert_array_equal(rows.contexts, X[order])
    np.testing.assert_array_equal(rows.outcomes[:, 0], y[order])
    assert len(question(Empirical(X, y, weight / 3.0)).rehearsal.nominal.masses) == 40


def test_frozen_columns_are_no_part_of_the_correction():
    X, y = wave(40)
    rows = Empirical(X, y, names=("a", "b", "c"))
    ball = WassersteinBall("auto", frozen=("b",), order=1)
    found = question(rows, ball=ball)
    for problem in (found.problem, found.rehearsal):
        assert problem.policy.features == Select((0, 2))
        assert problem.ball == WassersteinBall(0.0, order=1)
    everything = question(rows, ball=WassersteinBall("auto", frozen=(0, 1, 2)))
    assert everything.problem.policy.features == Select(())


def test_each_product_is_forecast_for_its_own_cost():
    X, y = wave(40)
    both = np.column_stack([y, np.exp(y)])
    found = question(Empirical(X, both), TWO)
    order = np.argsort(y)
    for j, pieces in enumerate((Pieces.kinked(up=0.2, down=1.0), Pieces.kinked(up=2.0, down=0.5))):
        honest = BENT.fit(X[order], both[order, j], None, pieces, 0)
        np.testing.assert_allclose(found.problem.policy.offset(X)[:, j], honest.forecast(X))
        np.testing.assert_allclose(errors_of(found.rehearsal.nominal)[:, j], honest.errors)


def test_without_anything_to_forecast_errors_are_not_smoothed():
    y = np.array([1.0, 4.0, 2.0, 9.0])
    found = question(Empirical(np.ones((4, 1)), y), forecaster=Forecaster())
    assert found.problem.nominal is found.rehearsal.nominal
    np.testing.assert_allclose(np.sort(errors_of(found.problem.nominal)[:, 0]), np.sort(y) - 4.0)
    with pytest.warns(DataWarning):
        model = RobustNewsvendor(nominal=Forecaster()).fit(np.ones((4, 1)), y)
    np.testing.assert_allclose(model.predict([[1.0], [3.0]]), 9.0)  # the constant order


# ---------------------------------------------------------------- the estimator around it


@pytest.fixture(scope="module", params=["linear", "smooth", "trees", "two products"])
def fitted(request):
    """A model that corrects a forecast, with rows and fresh rows; decided at a radius that moves."""
    X, y = wave()
    fresh = wave(40, seed=1)
    forecaster = {"linear": LINEAR, "smooth": BENT}.get(request.param, Forecaster())
    cost = COST
    if request.param == "two products":
        cost, y = TWO, np.column_stack([y, 3.0 - y])
        fresh = fresh[0], np.column_stack([fresh[1], 3.0 - fresh[1]])
    ball = WassersteinBall(0.02, adversary="each")
    model = RobustPolicy(cost, nominal=forecaster, ball=ball).fit(X, y)
    assert (offset_of(model).forecasts[0].smooth is None) == (request.param == "linear")
    assert (offset_of(model).forecasts[0].trees is None) == (request.param in ("linear", "smooth"))
    return model, X, y, *fresh


def test_decisions_are_the_forecast_and_a_linear_correction(fitted):
    model, _, _, X, y = fitted
    decisions = X @ model.parameters_.theta + model.parameters_.intercept + offset_of(model)(X)
    np.testing.assert_allclose(model.predict(X).reshape(len(X), -1), decisions, rtol=1e-12, atol=1e-12)
    assert model.predict(X).shape == y.shape
    r = (model.predict(X) - y).reshape(len(X), -1)
    pieces = model.problem_.cost.pieces(r.shape[1])
    by_hand = sum(kinked(r[:, j], piece.down, piece.up).mean() for j, piece in enumerate(pieces))
    assert model.cost(X, y) == pytest.approx(by_hand) == -model.score(X, y)


def test_the_correction_is_the_robust_policy_of_the_errors(fitted):
    model, _, y, X, _ = fitted
    nominal = model.nominal_
    errors = errors_of(nominal) if y.ndim == 2 else errors_of(nominal)[:, 0]
    plain = RobustPolicy(model.cost_function, ball=model.ball).fit(
        nominal.contexts, errors, nominal.masses
    )
    forecasts = offset_of(model)(X) if y.ndim == 2 else offset_of(model)(X)[:, 0]
    np.testing.assert_allclose(model.predict(X), forecasts + plain.predict(X), rtol=1e-9, atol=1e-9)
    assert plain.certificate_ == model.certificate_
    assert np.abs(plain.parameters_.theta).max() > 1e-3  # else nothing would have been corrected


def test_the_certificate_is_the_worst_case_over_the_nominal_of_errors(fitted):
    model, _, y, _, _ = fitted
    nominal, errors = model.nominal_, errors_of(model.nominal_)
    outcomes = errors + offset_of(model)(nominal.contexts)
    outcomes = outcomes if y.ndim == 2 else outcomes[:, 0]
    found = model.worst_case(nominal.contexts, outcomes, sample_weight=nominal.masses)
    assert found.value == pytest.approx(model.certificate_.upper, rel=1e-6)
    assert model.converged_
    assert model.certificate_.gap <= 0.01
    exact = RobustPolicy(model.cost_function, ball=model.ball, solver=Exact(gap_tol=1e-6))
    bare = Empirical(nominal.contexts, errors, nominal.masses)
    best = exact.set_params(nominal=bare).fit(bare.contexts, bare.outcomes).certificate_
    assert model.certificate_.lower <= best.upper * (1 + 1e-9)
    assert best.lower * (1 - 1e-9) <= model.certificate_.upper <= 1.011 * best.upper


def test_worst_case_grows_with_the_radius_from_the_realised_cost(fitted):
    model, _, _, X, y = fitted
    values = [model.worst_case(X, y, radius=radius).value for radius in (0.0, 0.02, 0.1, 0.5)]
    assert values[0] == pytest.approx(model.cost(X, y))
    assert (np.diff(values) > 1e-6).all()
    assert model.worst_case(X, y).value == pytest.approx(values[1])


def test_the_adversarial_sample_lies_in_the_ball_of_errors(fitted):
    model, _, _, X, y = fitted
    radius = 0.3
    sample = model.worst_case(X, y, radius=radius)
    y = y.reshape(len(y), -1)
    moved = (sample.contexts - X[sample.rows]) / model.scale_
    distances = (moved**2).sum(axis=1)
    spent = np.bincount(sample.products, weights=sample.weights * distances)
    assert (spent <= radius**2 * (1 + 1e-6)).all()
    assert spent.max() > 0.9 * radius**2
    np.testing.assert_allclose(sample.transport_cost, spent, rtol=1e-9)
    # A moved context leaves outcome and forecast, and with them the error, where they are.
    own = np.arange(len(sample.rows)), sample.products
    np.testing.assert_array_equal(sample.outcomes, y[sample.rows, sample.products])
    # What the decisions cost there, in the user's own coordinates, is the worst case.
    forecasts = offset_of(model)(X)[sample.rows]
    decisions = model.problem_.policy.decide(model.parameters_, sample.contexts, forecasts)[own]
    pieces = [model.problem_.cost.pieces(y.shape[1])[j] for j in sample.products]
    costs = [
        kinked(r, piece.down, piece.up)
        for r, piece in zip(decisions - sample.outcomes, pieces, strict=True)
    ]
    assert sample.weights @ np.array(costs) == pytest.approx(sample.value, rel=1e-6)
    assert sample.expected_cost == pytest.approx(sample.value, rel=1e-6)


def test_augmentation_speaks_of_outcomes(fitted):
    model, _, _, X, y = fitted
    given = model.augmentation(X, y, radius=0.3)
    sample = model.worst_case(X, y, radius=0.3)
    np.testing.assert_allclose(given.outcomes, sample.outcomes)
    assert given.cost_before == pytest.approx(model.cost(X, y))
    assert given.worst_case == pytest.approx(sample.value)
    own = np.arange(len(given.rows)), given.products
    np.testing.assert_allclose(given.outcomes_before, y.reshape(len(y), -1)[given.rows, given.products])
    np.testing.assert_allclose(
        given.decisions_before, model.predict(X).reshape(len(X), -1)[given.rows, given.products]
    )
    forecasts = offset_of(model)(X)[given.rows]
    np.testing.assert_allclose(
        given.decisions,
        model.problem_.policy.decide(model.parameters_, given.contexts, forecasts)[own],
    )
    of_fit = model.augmentation()
    assert of_fit.worst_case == pytest.approx(model.certificate_.upper, rel=1e-6)


def test_learning_on_moves_decisions_and_keeps_the_forecast(fitted):
    model, X, y, fresh, more = fitted
    again = RobustPolicy(**model.get_params(deep=False)).fit(X, y)
    nominal = model.nominal_
    plain = RobustPolicy(model.cost_function, ball=model.ball).fit(
        nominal.contexts, errors_of(nominal), nominal.masses
    )
    forecasts, before = offset_of(again), again.predict(fresh)
    again.partial_fit(fresh, more + 2.0)
    plain.partial_fit(fresh, (more + 2.0).reshape(len(fresh), -1) - forecasts(fresh))
    assert offset_of(again) is forecasts
    assert (again.predict(fresh) > before).all()  # outcomes were higher than ever
    np.testing.assert_allclose(
        again.predict(fresh).reshape(len(fresh), -1),
        plain.predict(fresh).reshape(len(fresh), -1) + forecasts(fresh),
        rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    assert again.certificate_.upper == pytest.approx(
        again.worst_case(fresh, more + 2.0).value, rel=1e-6
    )


def test_at_the_collapse_radius_the_forecast_gets_a_constant():
    data = synthetic(n=60, s=5, noise_variance=0.05, seed=0, test=500)
    model = RobustNewsvendor(nominal=Forecaster()).fit(data.X, data.y)
    assert model.radius_ == model.radius_path_.radii[0]
    added = model.predict(data.X_test) - offset_of(model)(data.X_test)[:, 0]
    assert np.ptp(added) < 1e-9
    errors = errors_of(model.nominal_)[:, 0]
    assert added[0] == pytest.approx(np.quantile(errors, 1 / 1.2, method="inverted_cdf"), abs=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_weights_are_repetitions_and_order_is_forgotten(order):
    X, y = wave(40)
    weight = np.random.default_rng(0).integers(1, 4, 40)
    heavy = RobustNewsvendor(order=order).fit(X, y, sample_weight=weight)
    assert len(offset_of(heavy).forecasts[0].members) >= 3
    times = np.random.default_rng(1).permutation(np.repeat(np.arange(40), weight))
    repeated = RobustNewsvendor(order=order).fit(X[times], y[times])
    fresh = wave(30, seed=1)[0]
    np.testing.assert_allclose(repeated.predict(fresh), heavy.predict(fresh), rtol=1e-9)
    assert repeated.radius_ == pytest.approx(heavy.radius_)
    assert np.abs(heavy.predict(fresh) - RobustNewsvendor().fit(X, y).predict(fresh)).max() > 1e-3


def test_rows_of_no_weight_do_not_exist():
    X, y = wave(40)
    weight = np.repeat([1.0, 0.0], 20)
    without = RobustNewsvendor().fit(X, y, sample_weight=weight)
    alone = RobustNewsvendor().fit(X[:20], y[:20])
    np.testing.assert_allclose(without.predict(X), alone.predict(X), rtol=1e-9)


@pytest.mark.parametrize(("factor", "offset"), [(4.0, -8.0), (2.0**-10, 0.0)])
def test_decisions_follow_the_units_of_outcomes(factor, offset):
    X, y = wave(40)
    X = 1e3 * X  # no column has the unit of outcomes, as their own past would
    one, other = RobustNewsvendor().fit(X, y), RobustNewsvendor().fit(X, factor * y + offset)
    np.testing.assert_allclose(other.predict(X), factor * one.predict(X) + offset, rtol=1e-6, atol=1e-6)
    assert other.radius_ == pytest.approx(one.radius_, rel=1e-6)


def test_decisions_do_not_depend_on_the_units_of_columns():
    X, y = wave(40)
    fresh = wave(30, seed=1)[0]
    factor, offset = np.array([1e9, 1e-6, 3.0]), np.array([1e9, 0.0, -7.0])
    one = RobustNewsvendor(nominal=BENT).fit(X, y)
    other = RobustNewsvendor(nominal=BENT).fit(factor * X + offset, y)
    np.testing.assert_allclose(other.predict(factor * fresh + offset), one.predict(fresh), atol=1e-6)


def test_data_frames_keep_their_names_and_frozen_columns():
    pd = pytest.importorskip("pandas")
    X, y = wave(40)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    ball = WassersteinBall(0.05, frozen=("b",))
    model = RobustPolicy(COST, nominal=Forecaster(), ball=ball).fit(frame, y)
    # The correction speaks of the other columns, and moves no other.
    assert model.problem_.policy.features == Select((0, 2))
    np.testing.assert_array_equal(model.movable_, [True, True])
    assert model.nominal_.names == ("a", "b", "c")
    assert model.augmentation().columns == ("a", "c")
    moved = model.worst_case(frame, y, radius=0.5)
    lengths = (((moved.contexts - X[moved.rows]) / X.std(axis=0)) ** 2).sum(axis=1)
    np.testing.assert_allclose(moved.distances, lengths, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_frozen_columns_are_left_to_the_forecast(order):
    X, y = wave()
    ball = WassersteinBall(0.01, order=order, frozen=(0, 1))
    model = RobustPolicy(COST, nominal=LINEAR, ball=ball).fit(X, y)
    assert np.abs(offset_of(model).forecasts[0].theta[:2]).min() > 0.01
    assert model.parameters_.theta.shape == (1, 1)
    assert model.parameters_.theta[0, 0] != 0.0
    np.testing.assert_array_equal(model.nominal_.contexts[::2], X[np.argsort(y)])
    added = model.predict(X) - offset_of(model)(X)[:, 0]
    expected = X[:, 2] * model.parameters_.theta[0, 0] + model.parameters_.intercept[0]
    np.testing.assert_allclose(added, expected, rtol=1e-9, atol=1e-12)
    assert np.linalg.matrix_rank(np.column_stack([np.ones(60), X[:, 2], added]), tol=1e-8) == 2
    assert model.augmentation().worst_case == pytest.approx(model.certificate_.upper, rel=1e-6)


def test_learning_on_leaves_frozen_columns_to_the_forecast():
    (X, y), (fresh, more) = wave(), wave(30, seed=1)
    units = np.array([1.0, 1.0, 100.0])
    X, fresh = units * X + 10.0 * units, units * fresh + 10.0 * units
    model = RobustNewsvendor(frozen=(2,)).fit(X, y)
    cost = model.cost(fresh, more)
    model.partial_fit(fresh, more)
    assert model.cost(fresh, more) < 1.2 * cost
    # Another value of the frozen column changes the forecast, and nothing but the forecast.
    elsewhere = fresh + np.array([0.0, 0.0, 50.0])
    change = model.predict(elsewhere) - model.predict(fresh)
    forecast = offset_of(model)
    np.testing.assert_allclose(
        change, (forecast(elsewhere) - forecast(fresh))[:, 0], rtol=1e-9, atol=1e-12
    )


# ---------------------------------------------------------------- limits and supports


@pytest.mark.parametrize("order", [1, 2])
def test_limits_cut_the_corrected_forecast(order):
    X, y = wave()
    policy, ball = Linear(decisions=Box(0.0, 0.9)), WassersteinBall(0.02, order=order)
    model = RobustPolicy(COST, policy, nominal=LINEAR, ball=ball).fit(X, y)
    fresh = wave(40, seed=1)[0]
    free = fresh @ model.parameters_.theta + model.parameters_.intercept + offset_of(model)(fresh)
    np.testing.assert_allclose(model.predict(fresh), np.clip(free, 0.0, 0.9)[:, 0], rtol=1e-12)
    assert (free < 0.0).any()
    assert (free > 0.9).any()
    # No decision within the limits can avoid what foresight would cost.
    outcomes = model.nominal_.outcomes[:, 0]
    least = model.nominal_.weights @ kinked(np.clip(outcomes, 0.0, 0.9) - outcomes)
    assert model.certificate_.lower == pytest.approx(least, rel=1e-9)
    assert model.certificate_.upper >= model.augmentation().cost_before - 1e-9


@pytest.mark.parametrize("order", [1, 2])
def test_a_support_holds_the_adversary_of_a_corrected_forecast(order):
    X, y = wave()
    support = Box(-2.0, 2.0)
    free, held = (
        RobustPolicy(
            COST, nominal=LINEAR, ball=WassersteinBall(0.005, order=order, support=box)
        ).fit(X, y)
        for box in (None, support)
    )  # fmt: skip
    assert held.converged_
    assert held.certificate_.upper <= free.certificate_.upper * 1.011
    sample = held.worst_case(X, y, radius=0.5)
    assert np.abs(sample.contexts).max() <= 2.0 + 1e-9
    assert np.abs(free.worst_case(X, y, radius=0.5).contexts).max() > 2.1


@pytest.mark.parametrize(
    "options",
    [{"support": Box((-9.0, -2.0, -2.0), (9.0, 2.0, 2.0))}, {"scale": (1.0, 2.0, 3.0)}],
    ids=["support", "scale"],
)
def test_what_a_ball_says_column_by_column_holds_beside_frozen_columns(options):
    X, y = wave()
    ball = WassersteinBall(0.005, frozen=(0,), **options)
    model = RobustPolicy(COST, nominal=LINEAR, ball=ball).fit(X, y)
    assert model.problem_.policy.features == Select((1, 2))
    if "scale" in options:
        np.testing.assert_array_equal(model.scale_, [2.0, 3.0])
    else:
        assert np.abs(model.worst_case(X, y, radius=0.5).contexts).max() <= 2.0 + 1e-9


# ---------------------------------------------------------------- what is refused


def test_a_linear_policy_of_a_piecewise_linear_cost_can_be_centred():
    assert why_not_centred(COST, Linear()) is None
    assert why_not_centred(TWO, Linear(decisions=Box(0.0, 5.0))) is None
    assert why_not_centred(COST, Linear(decisions=Budget(5.0))) is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cost_function": Quadratic()}, "a piecewise linear cost such as Newsvendor, got Quadratic"),
        ({"policy": MLP((4,))}, "a Linear policy with an intercept"),
        ({"policy": Linear(intercept=False)}, "a Linear policy with an intercept"),
        (
            {"policy": Linear(features=np.square)},
            "a policy without a feature map and without an offset",
        ),
        ({"policy": Linear(offset=np.square)}, "a policy without a feature map and without an offset"),
        ({"policy": Linear(decisions=Simplex())}, "decisions in units of the outcome"),
    ],
    ids=["quadratic", "mlp", "no intercept", "features", "offset", "shares"],
)
@pytest.mark.parametrize("nominal", ["auto", Forecaster(trees=False)], ids=["auto", "forecaster"])
def test_what_cannot_start_from_a_forecast_is_refused_with_the_reason(options, reason, nominal):
    model = RobustPolicy(**({"cost_function": COST} | options), nominal=nominal)
    message = f"nominal='auto' cannot treat this: it needs {reason}; use nominal=None."
    with pytest.raises(UnsupportedProblemError, match=f"^{re.escape(message)}$"):
        model.fit(*wave(20))


@pytest.mark.parametrize("rule", ["profile", "paper"])
@pytest.mark.parametrize("nominal", ["auto", Forecaster()], ids=["auto", "forecaster"])
def test_a_rule_for_the_radius_is_refused_beside_a_forecast(rule, nominal):
    model = RobustPolicy(COST, nominal=nominal, ball=WassersteinBall(rule))
    with pytest.raises(InvalidInputError, match=f"^nominal must be None beside radius='{rule}'"):
        model.fit(*wave(20))


def test_nominal_must_be_one_of_its_kinds():
    ball = WassersteinBall("auto")
    assert nominal_parts("auto", ball) == {"forecaster": Ensemble()}
    assert nominal_parts("auto", ball, None, 0.5) == {"forecaster": Ensemble(protect=0.5)}
    assert nominal_parts("auto", Contamination(0.1)) == {"forecaster": Forecaster()}
    assert nominal_parts("auto", ball, DASGD()) == {"forecaster": Forecaster()}
    assert nominal_parts(BENT, ball) == {"forecaster": BENT}
    assert nominal_parts(None, ball) == {"nominal": None}
    for estimator in (RobustNewsvendor(nominal="foo"), RobustPolicy(COST, nominal="foo")):
        with pytest.raises(
            InvalidInputError, match=r"^nominal must be a Nominal, 'auto' or None, got 'foo'\.$"
        ):
            estimator.fit(*wave(20))
    for wrong in (3, Forecaster):
        with pytest.raises(InvalidTypeError, match=r"^nominal must be a nominal such as Empirical"):
            RobustNewsvendor(nominal=wrong).fit(*wave(20))
