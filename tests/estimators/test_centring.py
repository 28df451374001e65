import re

import numpy as np
import pytest

from surefoot import DASGD, Box, Exact, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor, Pieces, Quadratic
from surefoot.estimators.centring import Centre, centred, smoothed, why_not_centred
from surefoot.estimators.recipe import Recipe, nominal_parts
from surefoot.exceptions import (
    DataWarning,
    InvalidInputError,
    InvalidTypeError,
    UnsupportedProblemError,
)
from surefoot.forecasts import Forecast, Forecaster
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters

COST = Newsvendor(1.0, 0.2)
TWO = Newsvendor((1.0, 0.5), (0.2, 2.0))
LINEAR, BENT = Forecaster(smooth=False), Forecaster(trees=False)


def wave(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 3))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + (0.1 + 0.1 * np.abs(X[:, 2])) * rng.normal(size=n)


def recipe(cost=COST, policy=None, ball=None, forecaster=BENT):
    policy, ball = policy or Linear(), ball or WassersteinBall("auto")
    return Recipe(cost, policy, ball, DASGD(), forecaster=forecaster)


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


# ---------------------------------------------------------------- the centre


def two_forecasts():
    X, y = wave(40)
    fits = [f.fit(X, y * (j + 1), None, Pieces(0.2, 1.0), 0) for j, f in enumerate((BENT, LINEAR))]
    return X, Centre(tuple(fit.forecast for fit in fits))


def test_a_centre_is_linear_parts_and_bends():
    X, centre = two_forecasts()
    assert centre(X).shape == centre.bend(X).shape == (40, 2)
    np.testing.assert_array_equal(centre(X)[:, 1], centre.forecasts[1](X))
    np.testing.assert_array_equal(centre.bend(X)[:, 1], 0.0)
    correction = LinearParameters(np.arange(6.0).reshape(3, 2), np.array([5.0, -5.0]))
    whole = centre.whole(correction)
    np.testing.assert_allclose(
        X @ whole.theta + whole.intercept + centre.bend(X),
        centre(X) + X @ correction.theta + correction.intercept,
    )


def test_a_centre_comes_back_from_its_arrays():
    X, centre = two_forecasts()
    arrays = centre.arrays() | {"theta": np.zeros(3), "scale": np.ones(3)}
    np.testing.assert_array_equal(Centre.restore(2, arrays)(X), centre(X))
    assert Centre.restore(1, {"theta": np.zeros(3)}) is None


def test_more_than_ten_forecasts_are_not_mixed_up():
    ones = np.ones(1)
    centre = Centre(tuple(Forecast(float(j), 0 * ones, 0 * ones, ones) for j in range(12)))
    again = Centre.restore(12, centre.arrays())
    np.testing.assert_array_equal(again(np.zeros((1, 1)))[0], np.arange(12.0))


def test_errors_are_honest_and_stand_beside_their_contexts():
    X, y = wave(40)
    found = centred(recipe(), BENT, Empirical(X, y), 0)
    order = np.argsort(y)
    np.testing.assert_array_equal(found.errors.contexts, X[order])
    honest = BENT.fit(X[order], y[order], None, Pieces(up=0.2, down=1.0), 0)
    np.testing.assert_allclose(found.errors.outcomes[:, 0], honest.errors)
    np.testing.assert_allclose(found.centre(X)[:, 0], honest.forecast(X))
    assert len(found.nominal.weights) == 40 * 3
    inside = y - found.centre(X)[:, 0]
    assert found.errors.outcomes.std() > 1.1 * inside.std()


def test_each_product_is_forecast_for_its_own_cost():
    X, y = wave(40)
    both = np.column_stack([y, np.exp(y)])
    found = centred(recipe(TWO), BENT, Empirical(X, both), 0)
    order = np.argsort(y)
    for j, pieces in enumerate((Pieces(up=0.2, down=1.0), Pieces(up=2.0, down=0.5))):
        honest = BENT.fit(X[order], both[order, j], None, pieces, 0)
        np.testing.assert_allclose(found.centre(X)[:, j], honest.forecast(X))
        np.testing.assert_allclose(found.errors.outcomes[:, j], honest.errors)


def test_without_anything_to_forecast_errors_are_not_smoothed():
    y = np.array([1.0, 4.0, 2.0, 9.0])
    found = centred(recipe(), Forecaster(), Empirical(np.ones((4, 1)), y), 0)
    assert found.nominal is found.errors
    np.testing.assert_allclose(np.sort(found.errors.outcomes[:, 0]), np.sort(y) - 4.0)
    with pytest.warns(DataWarning):
        model = RobustNewsvendor().fit(np.ones((4, 1)), y)
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
    model = RobustPolicy(cost, nominal=forecaster, ball=WassersteinBall(0.02)).fit(X, y)
    assert (model.centre_.forecasts[0].smooth is None) == (request.param == "linear")
    assert (model.centre_.forecasts[0].trees is None) == (request.param in ("linear", "smooth"))
    return model, X, y, *fresh


def test_decisions_are_linear_part_and_bend(fitted):
    model, _, _, X, y = fitted
    decisions = X @ model.parameters_.theta + model.parameters_.intercept + model.centre_.bend(X)
    np.testing.assert_allclose(model.predict(X).reshape(len(X), -1), decisions, rtol=1e-12, atol=1e-12)
    assert model.predict(X).shape == y.shape
    r = (model.predict(X) - y).reshape(len(X), -1)
    cost = model._fitted_recipe.cost
    by_hand = sum(
        kinked(r[:, j], piece.down, piece.up).mean() for j, piece in enumerate(cost.pieces(r.shape[1]))
    )
    assert model.cost(X, y) == pytest.approx(by_hand) == -model.score(X, y)


def test_the_correction_is_the_robust_policy_of_the_errors(fitted):
    model, _, y, X, _ = fitted
    errors = model.nominal_
    outcomes = errors.outcomes if y.ndim == 2 else errors.outcomes[:, 0]
    plain = RobustPolicy(model.cost_function, ball=model.ball).fit(
        errors.contexts, outcomes, errors.masses
    )
    forecasts = model.centre_(X) if y.ndim == 2 else model.centre_(X)[:, 0]
    np.testing.assert_allclose(model.predict(X), forecasts + plain.predict(X), rtol=1e-9, atol=1e-9)
    assert plain.certificate_ == model.certificate_
    assert np.abs(plain.parameters_.theta).max() > 1e-3  # else nothing would have been corrected


def test_the_certificate_is_the_worst_case_over_the_nominal_of_errors(fitted):
    model, _, y, _, _ = fitted
    errors = model.nominal_
    outcomes = errors.outcomes + model.centre_(errors.contexts)
    outcomes = outcomes if y.ndim == 2 else outcomes[:, 0]
    found = model.worst_case(errors.contexts, outcomes, sample_weight=errors.masses)
    assert found.value == pytest.approx(model.certificate_.upper, rel=1e-6)
    assert model.converged_
    assert model.certificate_.gap <= 0.01
    exact = RobustPolicy(model.cost_function, ball=model.ball, solver=Exact(gap_tol=1e-6))
    best = exact.set_params(nominal=errors).fit(errors.contexts, errors.outcomes).certificate_
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
    own = np.arange(len(sample.rows)), sample.products
    before = y[sample.rows, sample.products] - model.centre_(X[sample.rows])[own]
    after = sample.outcomes - model.centre_(sample.contexts)[own]
    np.testing.assert_allclose(after, before, atol=1e-9)  # outcomes follow the forecast
    # What the decisions cost there, in the user's own coordinates, is the worst case.
    decisions = model.predict(sample.contexts).reshape(len(sample.rows), -1)[own]
    pieces = [model._fitted_recipe.cost.pieces(y.shape[1])[j] for j in sample.products]
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
    np.testing.assert_allclose(
        given.decisions, model.predict(given.contexts).reshape(len(own[0]), -1)[own]
    )
    of_fit = model.augmentation()
    assert of_fit.worst_case == pytest.approx(model.certificate_.upper, rel=1e-6)


def test_learning_on_moves_decisions_and_keeps_the_forecast(fitted):
    model, X, y, fresh, more = fitted
    again = RobustPolicy(**model.get_params(deep=False)).fit(X, y)
    errors = model.nominal_
    plain = RobustPolicy(model.cost_function, ball=model.ball).fit(
        errors.contexts, errors.outcomes, errors.masses
    )
    centre, before = again.centre_, again.predict(fresh)
    again.partial_fit(fresh, more + 2.0)
    plain.partial_fit(fresh, (more + 2.0).reshape(len(fresh), -1) - centre(fresh))
    assert again.centre_ is centre
    assert (again.predict(fresh) > before).all()  # outcomes were higher than ever
    np.testing.assert_allclose(
        again.predict(fresh).reshape(len(fresh), -1),
        plain.predict(fresh).reshape(len(fresh), -1) + centre(fresh),
        rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    assert again.certificate_.upper == pytest.approx(
        again.worst_case(fresh, more + 2.0).value, rel=1e-6
    )


def test_at_the_collapse_radius_the_forecast_gets_a_constant(data):
    model = RobustNewsvendor().fit(data.X, data.y)
    assert model.radius_ == model.radius_path_.radii[0]
    added = model.predict(data.X_test) - model.centre_(data.X_test)[:, 0]
    assert np.ptp(added) < 1e-9
    errors = model.nominal_.outcomes[:, 0]
    assert added[0] == pytest.approx(np.quantile(errors, 1 / 1.2, method="inverted_cdf"), abs=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_weights_are_repetitions_and_order_is_forgotten(order):
    X, y = wave(40)
    weight = np.random.default_rng(0).integers(1, 4, 40)
    heavy = RobustNewsvendor(order=order).fit(X, y, sample_weight=weight)
    times = np.random.default_rng(1).permutation(np.repeat(np.arange(40), weight))
    repeated = RobustNewsvendor(order=order).fit(X[times], y[times])
    assert heavy.centre_.forecasts[0].trees is not None
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
    model = RobustPolicy(COST, nominal="auto", ball=ball).fit(frame, y)
    np.testing.assert_array_equal(model.movable_, [True, False, True])
    assert model.nominal_.names == ("a", "b", "c")
    assert model.augmentation().columns == ("a", "b", "c")
    moved = model.worst_case(frame, y, radius=0.5).contexts
    assert set(moved[:, 1]) <= set(X[:, 1])


@pytest.mark.parametrize("order", [1, 2])
def test_frozen_columns_are_left_to_the_forecast(order):
    X, y = wave()
    ball = WassersteinBall(0.01, order=order, frozen=(0, 1))
    model = RobustPolicy(COST, nominal=LINEAR, ball=ball).fit(X, y)
    forecast = model.centre_.forecasts[0].theta
    assert np.abs(forecast[:2]).min() > 0.01
    np.testing.assert_array_equal(model.parameters_.theta[:2, 0], forecast[:2])
    assert model.parameters_.theta[2, 0] != forecast[2]
    np.testing.assert_array_equal(model.nominal_.contexts[::2], X[np.argsort(y)])
    added = model.predict(X) - model.centre_(X)[:, 0]
    assert np.linalg.matrix_rank(np.column_stack([np.ones(60), X[:, 2], added]), tol=1e-8) == 2
    assert model.augmentation().worst_case == pytest.approx(model.certificate_.upper, rel=1e-6)


def test_learning_on_leaves_frozen_columns_to_the_forecast():
    (X, y), (fresh, more) = wave(), wave(30, seed=1)
    units = np.array([1.0, 1.0, 100.0])
    X, fresh = units * X + 10.0 * units, units * fresh + 10.0 * units
    model = RobustNewsvendor(frozen=(2,)).fit(X, y)
    before, cost = model.parameters_.theta[2, 0], model.cost(fresh, more)
    model.partial_fit(fresh, more)
    assert model.cost(fresh, more) < 1.2 * cost
    assert model.parameters_.theta[2, 0] == before


# ---------------------------------------------------------------- what is refused


def test_a_plain_recipe_can_be_centred():
    assert why_not_centred(recipe()) is None
    assert why_not_centred(recipe(ball=WassersteinBall(0.1, order=1, outcome_cost=2.0))) is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cost_function": Quadratic()}, "a kinked cost such as Newsvendor, got Quadratic"),
        ({"policy": Linear(intercept=False)}, "a Linear policy with an intercept"),
        ({"policy": Linear(features=np.square)}, "a policy without a feature map"),
        ({"policy": Linear(decisions=Box(0.0, 5.0))}, "decisions without limits"),
        ({"ball": WassersteinBall("auto", support=Box(-9.0, 9.0))}, "a ball without a support"),
    ],
    ids=["quadratic", "no intercept", "features", "limits", "support"],
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
    assert nominal_parts("auto") == {"forecaster": Forecaster()}
    assert nominal_parts(BENT) == {"forecaster": BENT}
    assert nominal_parts(None) == {"nominal": None}
    for estimator in (RobustNewsvendor(nominal="foo"), RobustPolicy(COST, nominal="foo")):
        with pytest.raises(
            InvalidInputError, match=r"^nominal must be a Nominal, 'auto' or None, got 'foo'\.$"
        ):
            estimator.fit(*wave(20))
    for wrong in (3, Forecaster):
        with pytest.raises(InvalidTypeError, match=r"^nominal must be a nominal such as Empirical"):
            RobustNewsvendor(nominal=wrong).fit(*wave(20))
