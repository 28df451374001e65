import copy
import inspect
import io
import pickle
import re

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surefoot import Box, Exact, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import ConvergenceWarning, DataWarning, InvalidInputError
from surefoot.policies import Linear
from surefoot.solvers import DASGD, PrimalDual
from tests.global_randomness import left_alone

B, H = 1.0, 0.2
COST = Newsvendor(B, H)


def hand_cost(decisions, outcomes, b=B, h=H):
    return np.where(outcomes > decisions, b * (outcomes - decisions), h * (decisions - outcomes))


def state(model):
    """Everything a user can see of a fitted model, as comparable values."""
    return (
        model.parameters_.theta.tobytes(), model.parameters_.intercept.tobytes(), model.certificate_,
        model.radius_, np.asarray(model.multiplier_).tobytes(), model.n_steps_, model.status_,
        model.converged_, model.scale_.tobytes(), model.movable_.tobytes(), model.history_,
        copy.deepcopy(model.get_params()),
    )  # fmt: skip


def slopes(model):
    """What a unit of each column adds to the decision, the forecast's linear part included."""
    offset = model.problem_.policy.offset
    forecasts = (
        () if offset is None else [getattr(one, "members", (one,))[0] for one in offset.forecasts]
    )
    thetas = [getattr(one, "forecast", one).theta for one in forecasts]  # of an ensemble, the first's
    linear = np.stack(thetas, axis=1) if thetas else 0.0
    return model.parameters_.theta + linear


@pytest.fixture(scope="module")
def fitted(data):
    return RobustNewsvendor(radius=0.1).fit(data.X, data.y)


# ---------------------------------------------------------------- fit, predict, cost, score


def test_fit_returns_self_and_leaves_parameters_and_data_alone(data):
    X, y, weight = data.X.copy(), data.y.copy(), np.linspace(1.0, 2.0, 60)
    frozen = ["a", 1]
    names = pd.DataFrame(X, columns=list("abcde"))
    for radius in (0.1, "auto"):
        model = RobustNewsvendor(radius=radius, frozen=frozen)
        before = {name: id(value) for name, value in vars(model).items()}
        assert model.fit(names, y, sample_weight=weight) is model
        assert model.partial_fit(names, y) is model
        assert {name: id(vars(model)[name]) for name in before} == before
        assert frozen == ["a", 1]
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    np.testing.assert_array_equal(weight, np.linspace(1.0, 2.0, 60))
    np.testing.assert_array_equal(names.to_numpy(), data.X)


def test_fitted_attributes_have_the_promised_kinds(data, fitted):
    assert fitted.n_features_in_ == 5
    assert fitted.radius_ == 0.1
    assert fitted.n_steps_ > 0
    assert isinstance(fitted.multiplier_, float)
    assert fitted.parameters_.theta.shape == (5, 1)
    assert fitted.converged_ is True
    assert fitted.status_.startswith(
        f"PrimalDual converged after {fitted.n_steps_:,} steps (certified gap"
    )
    assert fitted.certificate_.kind == "exact"
    assert 0 <= fitted.certificate_.gap <= 0.01
    assert fitted.certificate_.lower <= fitted.certificate_.upper
    assert fitted.history_[-1].upper == pytest.approx(fitted.certificate_.upper)
    assert not hasattr(fitted, "feature_names_in_")
    assert not hasattr(fitted, "radius_path_")


def test_scikit_learn_takes_it_for_a_regressor_with_a_poor_score(fitted):
    assert is_regressor(fitted)
    assert fitted.__sklearn_tags__().regressor_tags.poor_score
    assert not is_classifier(fitted)


def test_decisions_are_the_affine_function_of_the_parameters(data, fitted):
    by_hand = data.X_test @ fitted.parameters_.theta[:, 0] + fitted.parameters_.intercept[0]
    np.testing.assert_allclose(fitted.predict(data.X_test), by_hand, rtol=1e-12)
    assert fitted.predict(data.X_test).shape == (500,)
    assert fitted.predict(data.X_test).dtype == np.float64


def test_decide_is_predict(data, fitted):
    np.testing.assert_array_equal(fitted.decide(data.X_test), fitted.predict(data.X_test))


def test_cost_is_the_mean_realised_cost_computed_by_hand(data, fitted):
    costs = hand_cost(fitted.predict(data.X_test), data.y_test)
    assert fitted.cost(data.X_test, data.y_test) == pytest.approx(costs.mean(), rel=1e-12)
    weight = np.linspace(0.0, 3.0, 500)
    weighted = np.average(costs, weights=weight)
    assert fitted.cost(data.X_test, data.y_test, weight) == pytest.approx(weighted, rel=1e-12)
    assert isinstance(fitted.cost(data.X_test, data.y_test), float)


def test_cost_of_two_decisions_known_beforehand():
    model = RobustNewsvendor(radius=0.0).fit([[0.0], [1.0]], [5.0, 5.0])  # always orders five
    assert model.cost([[0.0], [1.0]], [7.0, 4.0]) == pytest.approx((2 * B + 1 * H) / 2)


def test_cost_sums_over_products(data):
    outcomes = np.column_stack([data.y, 2.0 * data.y])
    model = RobustNewsvendor((1.0, 3.0), (0.2, 0.5), radius=0.1).fit(data.X, outcomes)
    decisions = model.predict(data.X)
    total = hand_cost(decisions[:, 0], outcomes[:, 0]) + hand_cost(
        decisions[:, 1], outcomes[:, 1], 3.0, 0.5
    )
    assert model.cost(data.X, outcomes) == pytest.approx(total.mean(), rel=1e-12)


def test_score_is_minus_cost(data, fitted):
    assert fitted.score(data.X_test, data.y_test) == -fitted.cost(data.X_test, data.y_test)
    weight = np.linspace(0.0, 3.0, 500)
    assert fitted.score(data.X_test, data.y_test, sample_weight=weight) == -fitted.cost(
        data.X_test, data.y_test, sample_weight=weight
    )
    assert fitted.score(data.X_test, data.y_test) != fitted.score(
        data.X_test, data.y_test, sample_weight=weight
    )


@pytest.mark.parametrize("radius", [0.1, "auto"])
def test_no_silent_failure_y_of_shape_n_1_giving_theta_zero(data, radius):
    flat = RobustNewsvendor(radius=radius).fit(data.X, data.y)
    column = RobustNewsvendor(radius=radius).fit(data.X, data.y[:, None])
    assert np.abs(slopes(column)).max() > 0.1
    assert flat.predict(data.X_test).shape == (500,)
    assert column.predict(data.X_test).shape == (500, 1)
    np.testing.assert_array_equal(flat.predict(data.X_test), column.predict(data.X_test)[:, 0])
    assert column.multiplier_.shape == (1,)
    # Either shape of y is understood afterwards.
    for y in (data.y_test, data.y_test[:, None]):
        assert column.cost(data.X_test, y) == flat.cost(data.X_test, y)


@pytest.mark.parametrize("products", [2, 3])
def test_several_products_give_one_decision_each(data, products):
    outcomes = np.column_stack([data.y + 10.0 * j for j in range(products)])
    model = RobustNewsvendor(radius=0.1).fit(data.X, outcomes)
    decisions = model.predict(data.X_test)
    assert decisions.shape == (500, products)
    assert model.multiplier_.shape == (1,)  # of one adversary
    apart = RobustNewsvendor(radius=0.1, order=1).fit(data.X, outcomes)
    assert apart.multiplier_.shape == (products,)
    # Demand higher by ten asks for an order higher by ten (each product has its own draws).
    np.testing.assert_allclose(np.diff(decisions, axis=1).mean(axis=0), 10.0, atol=0.05)
    with pytest.raises(InvalidInputError, match=f"y must have {products} products as in fit, got 1."):
        model.cost(data.X, data.y)


def test_wrong_number_of_products_is_refused(data, fitted):
    both = np.column_stack([data.y, data.y])
    for method in (fitted.cost, fitted.score, fitted.worst_case, copy.deepcopy(fitted).partial_fit):
        with pytest.raises(InvalidInputError, match="y must have 1 product as in fit, got 2."):
            method(data.X, both)


def test_layout_and_type_of_the_arrays_do_not_matter(data, fitted):
    expected = fitted.predict(data.X_test)
    wide = np.empty((60, 10))
    wide[:, ::2] = data.X
    for X, y in (
        (np.asfortranarray(data.X), data.y),
        (wide[:, ::2], np.repeat(data.y, 2)[::2]),
        (data.X.tolist(), data.y.tolist()),
        (data.X.astype(object), data.y.astype(object)),
    ):
        again = RobustNewsvendor(radius=0.1).fit(X, y)
        np.testing.assert_array_equal(again.predict(np.asfortranarray(data.X_test)), expected)


def test_order_of_rows_does_not_matter(data, fitted):
    shuffled = np.random.default_rng(0).permutation(60)
    again = RobustNewsvendor(radius=0.1).fit(data.X[shuffled], data.y[shuffled])
    np.testing.assert_array_equal(again.predict(data.X_test), fitted.predict(data.X_test))


def test_units_of_the_columns_do_not_matter(data):
    units = np.array([1.0, 1000.0, 0.001, 7.0, 60.0])
    shift = np.array([0.0, 5.0, -3.0, 100.0, 0.5])
    model = RobustNewsvendor(radius=0.1, solver=Exact(gap_tol=1e-8)).fit(data.X, data.y)
    other = RobustNewsvendor(radius=0.1, solver=Exact(gap_tol=1e-8)).fit(data.X * units + shift, data.y)
    assert other.certificate_.upper == pytest.approx(model.certificate_.upper, rel=1e-7)
    np.testing.assert_allclose(
        other.predict(data.X_test * units + shift), model.predict(data.X_test), atol=1e-3
    )


def test_second_fit_forgets_the_first(data, fitted):
    frame = pd.DataFrame(data.X, columns=list("abcde"))
    model = RobustNewsvendor(radius="auto").fit(frame, np.column_stack([data.y, data.y]))
    model.partial_fit(frame, np.column_stack([data.y, data.y]))
    model.set_params(radius=0.1).fit(data.X, data.y)
    np.testing.assert_array_equal(model.predict(data.X_test), fitted.predict(data.X_test))
    assert not hasattr(model, "radius_path_")
    assert not hasattr(model, "feature_names_in_")
    assert state(model)[:6] == state(fitted)[:6]


def test_second_fit_may_have_fewer_or_more_columns(data):
    model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    model.fit(data.X[:, :2], data.y)
    assert model.n_features_in_ == 2
    fresh = RobustNewsvendor(radius=0.1).fit(data.X[:, :2], data.y)
    np.testing.assert_array_equal(model.predict(data.X_test[:, :2]), fresh.predict(data.X_test[:, :2]))
    model.fit(data.X, data.y).predict(data.X_test)


# ---------------------------------------------------------------- before fit, and after a failed fit


@pytest.mark.parametrize(
    "model", [RobustNewsvendor(), RobustPolicy(COST)], ids=["newsvendor", "policy"]
)
def test_no_silent_failure_predict_before_fit_returning_zeros(data, model, tmp_path):
    message = re.escape(f"This {type(model).__name__} instance is not fitted yet.")
    for method, arguments in (
        (model.predict, (data.X,)),
        (model.decide, (data.X,)),
        (model.cost, (data.X, data.y)),
        (model.score, (data.X, data.y)),
        (model.worst_case, (data.X, data.y)),
        (model.save, (tmp_path / "model",)),
    ):
        with pytest.raises(NotFittedError, match=message):
            method(*arguments)
    assert not list(tmp_path.iterdir())


def test_a_failed_fit_leaves_the_model_unfitted(data, tmp_path):
    model = RobustNewsvendor(radius=0.1)
    with pytest.raises(InvalidInputError, match="sample_weight must be >= 0"):
        model.fit(data.X, data.y, sample_weight=-np.ones(60))
    for method in (model.predict, model.save):
        with pytest.raises(NotFittedError):
            method(data.X)
    model.partial_fit(data.X, data.y)
    assert model.predict(data.X).shape == (60,)


# ---------------------------------------------------------------- sample weights


@pytest.mark.parametrize("radius", [0.05, "auto"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("products", [1, 2])
def test_weights_equal_repetition(data, radius, order, products):
    counts = np.random.default_rng(1).integers(0, 4, size=60)
    outcomes = data.y if products == 1 else np.column_stack([data.y, data.y**2])
    weighted = RobustNewsvendor(radius=radius, order=order)
    weighted.fit(data.X, outcomes, sample_weight=counts)
    repeated = RobustNewsvendor(radius=radius, order=order)
    repeated.fit(np.repeat(data.X, counts, axis=0), np.repeat(outcomes, counts, axis=0))
    np.testing.assert_allclose(
        weighted.predict(data.X_test), repeated.predict(data.X_test), rtol=0, atol=1e-10
    )
    assert weighted.radius_ == pytest.approx(repeated.radius_, rel=1e-12)
    assert weighted.certificate_.upper == pytest.approx(repeated.certificate_.upper, rel=1e-12)
    unweighted = RobustNewsvendor(radius=radius, order=order).fit(data.X, outcomes)
    assert np.abs(weighted.predict(data.X_test) - unweighted.predict(data.X_test)).max() > 1e-3


def test_only_the_ratios_of_weights_matter(data, fitted):
    again = RobustNewsvendor(radius=0.1).fit(data.X, data.y, sample_weight=np.full(60, 8.0))
    np.testing.assert_allclose(
        again.predict(data.X_test), fitted.predict(data.X_test), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(60), "sample_weight must be >= 0, got -1.0."),
        (np.zeros(60), "sample_weight must have a positive sum, got all zeros."),
        (np.ones(59), "sample_weight must have one entry per row of X (60), got shape (59,)."),
        (np.ones((60, 1)), "sample_weight must have one entry per row of X (60), got shape (60, 1)."),
        (np.full(60, np.nan), "sample_weight must be finite (no NaN, no infinity), got NaN in row 0."),
        (["a"] * 60, "sample_weight must be numeric"),
    ],
    ids=["negative", "zero", "short", "column", "nan", "text"],
)
def test_bad_weights_are_refused(data, fitted, weight, message):
    for method in (RobustNewsvendor().fit, fitted.cost, fitted.score, fitted.worst_case):
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            method(data.X, data.y, sample_weight=weight)


# ---------------------------------------------------------------- randomness


@pytest.mark.parametrize("radius", [0.1, "auto"])
def test_no_silent_failure_random_state_accepted_and_not_honoured(data, radius):
    def decisions(seed):
        model = RobustNewsvendor(radius=radius, nominal=None, random_state=seed)
        return model.fit(data.X, data.y).predict(data.X)

    first = decisions(0)
    np.testing.assert_array_equal(decisions(0), first)
    np.testing.assert_array_equal(decisions(np.int64(0)), first)
    assert any((decisions(seed) != first).any() for seed in (1, 2))


def test_no_silent_failure_global_random_state_reset_on_every_call(data, tmp_path):
    with left_alone(seed=123):
        model = RobustNewsvendor(radius="auto").fit(data.X, data.y)
        model.worst_case(data.X, data.y)
        model.partial_fit(data.X, data.y)
        model.save(tmp_path / "model")
    with left_alone(seed=99):  # nor does the fit listen to it
        again = RobustNewsvendor(radius="auto").fit(data.X, data.y).partial_fit(data.X, data.y)
    np.testing.assert_array_equal(again.predict(data.X), model.predict(data.X))


# ---------------------------------------------------------------- with scikit-learn and pickle


def test_in_a_pipeline(data):
    pipeline = make_pipeline(StandardScaler(), RobustNewsvendor(radius=0.1)).fit(data.X, data.y)
    plain = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    assert pipeline.score(data.X_test, data.y_test) == pytest.approx(
        plain.score(data.X_test, data.y_test), rel=0.02
    )
    pipeline.set_params(robustnewsvendor__radius=5.0).fit(data.X, data.y)
    assert np.ptp(pipeline.predict(data.X_test)) < 1e-6  # beyond the collapse radius: constant


def test_in_a_grid_search_over_the_radius(data):
    grid = {"radius": [0.01, 0.05, 10.0], "order": [1, 2]}
    search = GridSearchCV(RobustNewsvendor(), grid, cv=3).fit(data.X, data.y)
    assert search.best_params_["radius"] != 10.0
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.predict(data.X_test).shape == (500,)
    assert search.score(data.X_test, data.y_test) == -search.best_estimator_.cost(
        data.X_test, data.y_test
    )


def test_cross_val_score_is_minus_cost(data):
    model = RobustNewsvendor(radius=0.05)
    scores = cross_val_score(model, data.X, data.y, cv=2)
    halves = [(slice(30, 60), slice(0, 30)), (slice(0, 30), slice(30, 60))]
    by_hand = [
        -hand_cost(clone(model).fit(data.X[a], data.y[a]).predict(data.X[b]), data.y[b]).mean()
        for a, b in halves
    ]
    np.testing.assert_allclose(scores, by_hand, rtol=1e-10)


@pytest.mark.parametrize("how", ["pickle", "joblib", "deepcopy"])
@pytest.mark.parametrize(
    "model",
    [
        RobustNewsvendor(frozen=("a",)),
        RobustPolicy(COST, ball=WassersteinBall(0.1, support=Box(-1, 2)), solver=DASGD(gap_tol=0.05)),
    ],
    ids=["newsvendor", "policy"],
)
def test_pickle_round_trip(data, model, how):
    frame = pd.DataFrame(data.X, columns=list("abcde"))
    model = clone(model).fit(frame, data.y)
    if how == "pickle":
        again = pickle.loads(pickle.dumps(model))
    elif how == "joblib":
        buffer = io.BytesIO()
        joblib.dump(model, buffer)
        buffer.seek(0)
        again = joblib.load(buffer)
    else:
        again = copy.deepcopy(model)
    assert state(again) == state(model)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    for one in (model, again):
        one.partial_fit(frame[:20], data.y[:20])
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


# ---------------------------------------------------------------- warnings


def test_a_constant_column_warns_and_gives_the_right_answer(data):
    X = np.insert(data.X, 1, 7.0, axis=1)
    message = (
        "Constant columns in X (1): they have no standard deviation to measure a move in, so the "
        "adversary leaves them alone."
    )
    solver = Exact(gap_tol=1e-7)
    with pytest.warns(DataWarning, match=re.escape(message)) as caught:
        model = RobustNewsvendor(radius=0.05, solver=solver).fit(X, data.y)
    assert caught[0].filename == __file__  # it points at the user's line
    plain = RobustNewsvendor(radius=0.05, solver=solver).fit(data.X, data.y)
    assert model.certificate_.upper == pytest.approx(plain.certificate_.upper, rel=1e-6)
    X_test = np.insert(data.X_test, 1, 7.0, axis=1)
    np.testing.assert_allclose(model.predict(X_test), plain.predict(data.X_test), atol=1e-3)
    assert not model.movable_[1]


def test_a_column_that_varies_too_little_beside_its_size_is_said_to_count_as_constant(data):
    X = data.X.copy()
    X[:, 2] = 1e12 + 0.5 * X[:, 2] / X[:, 2].std()
    with pytest.warns(
        DataWarning, match=r"vary by less than 1e-12 of their size count as constant \(2\)"
    ):
        RobustNewsvendor(radius=0.1).fit(X, data.y)


def test_the_warning_of_constant_columns_names_them(data):
    frame = pd.DataFrame(data.X, columns=list("abcde")).assign(open=1.0, closed=-2.0)
    with pytest.warns(DataWarning, match=r"Constant columns in X \('open', 'closed'\): they"):
        RobustNewsvendor(radius=0.1).fit(frame, data.y)
    many = np.hstack([data.X, np.ones((60, 8))])
    with pytest.warns(DataWarning, match=r"Constant columns in X \(5, 6, 7, 8, 9 and 3 more\): they"):
        RobustNewsvendor(radius=0.1).fit(many, data.y)


def test_a_column_of_zeros_is_a_category_that_did_not_occur(data):
    model = RobustNewsvendor(radius=0.1).fit(np.insert(data.X, 2, 0.0, axis=1), data.y)  # no warning
    np.testing.assert_array_equal(model.movable_, [True, True, False, True, True, True])
    plain = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    assert model.certificate_.upper == pytest.approx(plain.certificate_.upper, rel=0.01)


def test_a_constant_column_in_the_first_rows_of_a_stream_warns_too(data):
    X = np.insert(data.X, 0, 3.0, axis=1)
    model = RobustNewsvendor(radius=0.1)
    with pytest.warns(DataWarning, match=r"Constant columns in X \(0\)") as caught:
        model.partial_fit(X, data.y)
    assert caught[0].filename == __file__
    model.partial_fit(X, data.y)  # said once
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("radius", [0.0, 0.1, "auto"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_all_columns_constant_gives_the_best_constant_order(data, radius, order, intercept):
    X = np.column_stack([np.full(60, 2.0), np.full(60, -1.0)])
    model = RobustNewsvendor(radius=radius, order=order, intercept=intercept)
    with pytest.warns(DataWarning, match=r"Constant columns in X \(0, 1\)"):
        model.fit(X, data.y)
    constant = np.quantile(data.y, B / (B + H), method="inverted_cdf")
    best = hand_cost(constant, data.y).mean()
    assert model.cost(X, data.y) == pytest.approx(best, rel=0.01)
    if radius == "auto" and intercept:  # an ensemble, whose worst case is a confidence bound
        assert best < model.certificate_.upper < 2.0 * best
    else:
        assert model.certificate_.upper == pytest.approx(best, rel=0.01)
    assert model.predict(X[:1])[0] == pytest.approx(constant, abs=0.05)


def test_no_warning_of_constant_columns_in_the_users_own_units(data):
    X = np.insert(data.X, 1, 7.0, axis=1)
    model = RobustPolicy(COST, ball=WassersteinBall(0.05, scale=False)).fit(X, data.y)
    assert model.movable_.all()


def test_running_out_of_steps_warns_and_says_what_to_do(data):
    model = RobustNewsvendor(radius=0.01, solver=DASGD(gap_tol=1e-9, max_steps=100))
    with pytest.warns(ConvergenceWarning, match=r"raise max_steps or loosen gap_tol\.$"):
        model.fit(data.X, data.y)
    assert model.converged_ is False
    assert model.n_steps_ == 100
    assert model.status_.startswith("DASGD ran out of steps after 100 (certified gap")
    assert np.isfinite(model.predict(data.X)).all()


# ---------------------------------------------------------------- the worst case

GEOMETRIES = {
    "free": {},
    "outcomes move": {"outcome_cost": 2.0},
    "frozen": {"frozen": (0, 3)},
    "own units": {"scale": False},
    "box": {"support": Box(-0.5, 1.5)},
    "tight box": {"support": Box(0.0, 1.0)},
    "box, outcomes move": {"support": Box(-0.5, 1.5, outcome=(-5.0, 9.0)), "outcome_cost": 2.0},
}


@pytest.fixture(scope="module", params=GEOMETRIES)
def geometry(request):
    return GEOMETRIES[request.param]


@pytest.fixture(scope="module", params=[1, 2], ids=["order 1", "order 2"])
def order(request):
    return request.param


@pytest.fixture(scope="module", params=[True, False], ids=["intercept", "no intercept"])
def stressed(request, data, geometry, order):
    """A policy fitted at a radius at which something moves."""
    return RobustPolicy(
        COST,
        Linear(intercept=request.param),
        ball=WassersteinBall(0.02, order=order, **geometry),
        solver=DASGD(gap_tol=0.5),  # any policy will do: its worst case is exact
    ).fit(data.X, data.y)


@pytest.mark.sweep
def test_worst_case_on_the_training_data_is_the_certificate(data, stressed):
    sample = stressed.worst_case(data.X, data.y)
    assert sample.value == pytest.approx(stressed.certificate_.upper, rel=1e-6)
    assert sample.multiplier[0] == pytest.approx(stressed.multiplier_, rel=1e-6)


def test_worst_case_is_a_distribution_in_the_ball_that_attains_its_value(data, stressed):
    ball = stressed.ball
    sample = stressed.worst_case(data.X, data.y)
    assert sample.expected_cost == pytest.approx(sample.value, rel=1e-6)
    assert sample.weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert (sample.weights > 0).all()
    np.testing.assert_allclose(
        np.bincount(sample.rows, sample.weights, minlength=60), 1 / 60, rtol=1e-9
    )
    budget = ball.radius**ball.order
    assert sample.transport_cost[0] <= budget * (1 + 1e-6)
    assert sample.transport_cost[0] >= budget * (1 - 1e-6)  # these boxes leave room to spend it
    # Distances again, from the user's own numbers.
    unit = data.X.std(axis=0) if ball.scale else np.ones(5)
    moved = np.linalg.norm((sample.contexts - data.X[sample.rows]) / unit, axis=1) ** ball.order
    shift = np.abs(sample.outcomes - data.y[sample.rows])
    if np.isfinite(ball.outcome_cost):
        moved = moved + ball.outcome_cost * shift**ball.order
    else:
        assert shift.max() < 1e-12
    np.testing.assert_allclose(moved, sample.distances, rtol=1e-6, atol=1e-12)
    assert sample.weights @ sample.distances == pytest.approx(sample.transport_cost[0], rel=1e-12)


def test_worst_case_stays_in_the_ball_at_any_radius(data, stressed):
    for radius in (1e-4, 1e-3, 0.01, 0.1, 1.0):
        sample = stressed.worst_case(data.X, data.y, radius=radius)
        assert sample.transport_cost[0] <= radius**stressed.ball.order * (1 + 1e-6)
        assert sample.expected_cost == pytest.approx(sample.value, rel=1e-6)


def test_worst_case_atoms_are_in_the_users_units(data, stressed):
    sample = stressed.worst_case(data.X, data.y)
    costs = hand_cost(stressed.predict(sample.contexts), sample.outcomes)
    assert sample.weights @ costs == pytest.approx(sample.expected_cost, rel=1e-9)


def test_worst_case_leaves_frozen_columns_and_the_box_alone(data, stressed):
    sample, ball = stressed.worst_case(data.X, data.y), stressed.ball
    frozen = list(ball.frozen)
    np.testing.assert_allclose(sample.contexts[:, frozen], data.X[sample.rows][:, frozen], rtol=1e-13)
    if ball.support is not None:
        assert sample.contexts.min() >= ball.support.lower - 1e-12
        assert sample.contexts.max() <= ball.support.upper + 1e-12
        assert sample.outcomes.min() >= ball.support.outcome[0]
        assert sample.outcomes.max() <= ball.support.outcome[1]


@pytest.mark.sweep
def test_no_silent_failure_robust_value_below_the_nominal_one(data, stressed):
    radii = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)
    for X, y in ((data.X, data.y), (data.X_test[:50], data.y_test[:50])):
        if stressed.ball.support is not None:
            y = np.clip(y, *stressed.ball.support.outcome)
        nominal = stressed.cost(X, y)
        values = [stressed.worst_case(X, y, radius=radius).value for radius in radii]
        assert np.isfinite(values).all()
        assert values[0] == pytest.approx(nominal, rel=1e-12)
        assert (np.diff(values) >= -1e-9 * np.abs(values[:-1])).all()
        assert values[-2] > nominal * 1.01
    assert stressed.certificate_.upper >= stressed.cost(data.X, data.y) * (1 - 1e-12)
    assert stressed.certificate_.lower >= 0


def test_no_silent_failure_a_worst_case_that_refits_the_model(data, stressed):
    before, decisions = state(stressed), stressed.predict(data.X_test)
    stream = pickle.dumps(stressed.stream().arrays())
    stressed.worst_case(data.X[:10], data.y[:10], radius=0.5)
    assert state(stressed) == before
    assert pickle.dumps(stressed.stream().arrays()) == stream
    np.testing.assert_array_equal(stressed.predict(data.X_test), decisions)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("b", "h"), [(1.0, 0.2), (0.3, 2.0), (1.0, 1.0)])
def test_worst_case_value_agrees_with_the_dual_written_anew(data, order, intercept, b, h):
    model = RobustNewsvendor(b, h, radius=0.05, order=order, intercept=intercept).fit(data.X, data.y)
    for rho in (0.03, 0.3):
        norm = np.linalg.norm(model.parameters_.theta[:, 0] * data.X.std(axis=0))
        r = model.predict(data.X_test) - data.y_test
        if order == 1:
            expected = np.maximum(h * r, -b * r).mean() + rho * max(b, h) * norm
        else:

            def dual(log_gamma, r=r, norm=norm, rho=rho):
                gamma = np.exp(log_gamma)
                q = norm**2 / gamma
                inner = np.maximum(h * r + h**2 * q / 4, -b * r + b**2 * q / 4)
                return gamma * rho**2 + inner.mean()

            expected = minimize_scalar(dual, bounds=(-10, 15), method="bounded",
                                       options={"xatol": 1e-9}).fun  # fmt: skip
        value = model.worst_case(data.X_test, data.y_test, radius=rho).value
        assert value == pytest.approx(expected, rel=1e-7)


def test_no_silent_failure_one_name_with_two_units(data):
    """The radius is a distance in standard deviations, or in the user's units, for every order."""
    for scale, unit in ((True, data.X.std(axis=0)), (False, np.ones(5))):
        for p in (1, 2):
            ball = WassersteinBall(0.02, order=p, scale=scale)
            model = RobustPolicy(COST, ball=ball).fit(data.X, data.y)
            sample = model.worst_case(data.X, data.y)
            moved = np.linalg.norm((sample.contexts - data.X[sample.rows]) / unit, axis=1)
            assert (sample.weights @ moved**p) ** (1 / p) == pytest.approx(0.02, rel=1e-6)
            # And the one that worst_case takes is in the same unit.
            same = model.worst_case(data.X, data.y, radius=0.02)
            assert same.value == sample.value
    # Metres or millimetres: with scale=False the radius is in the unit of the columns.
    metres = RobustPolicy(COST, ball=WassersteinBall(0.02, scale=False), solver=Exact(gap_tol=1e-8))
    upper = metres.fit(data.X, data.y).certificate_.upper
    millimetres = clone(metres).set_params(ball=WassersteinBall(20.0, scale=False))
    millimetres.fit(1000.0 * data.X, data.y)
    assert millimetres.certificate_.upper == pytest.approx(upper, rel=1e-6)


def test_worst_case_sums_over_products(data, order):
    outcomes = np.column_stack([data.y, 3.0 - data.y, 2.0 * data.y])
    b, h = (1.0, 2.0, 1.0), (0.2, 0.2, 3.0)
    model = RobustNewsvendor(b, h, radius=0.1, order=order, solver=PrimalDual()).fit(data.X, outcomes)
    sample = model.worst_case(data.X, outcomes)
    assert sample.value == pytest.approx(model.certificate_.upper, rel=1e-6)
    assert sample.expected_cost == pytest.approx(sample.value, rel=1e-6)
    assert sample.multiplier.shape == sample.transport_cost.shape == (3,)
    total = 0.0
    for j in range(3):
        own = sample.products == j
        assert sample.weights[own].sum() == pytest.approx(1.0)
        np.testing.assert_allclose(sample.outcomes[own], outcomes[sample.rows[own], j], rtol=1e-12)
        decisions = model.predict(sample.contexts[own])[:, j]
        costs = hand_cost(decisions, sample.outcomes[own], b[j], h[j])
        total += sample.weights[own] @ costs
        spent = sample.weights[own] @ sample.distances[own]
        assert spent == pytest.approx(sample.transport_cost[j], rel=1e-12)
        assert spent <= 0.1**order * (1 + 1e-6)
    assert total == pytest.approx(sample.expected_cost, rel=1e-9)


def test_worst_case_rows_are_the_rows_of_the_data(data):
    """Equal rows stay apart and rows keep their order, although solvers join and sort them."""
    model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    X = np.vstack([data.X[:3], data.X[1:2], data.X[:1], -0.0 * data.X[:1]])
    y = np.concatenate([data.y[:3], data.y[1:2], [data.y[0] + 1.0], [0.0]])
    sample = model.worst_case(X, y, radius=0.05)
    mass = np.bincount(sample.rows, sample.weights, minlength=6)
    np.testing.assert_allclose(mass, np.full(6, 1 / 6), rtol=1e-9)
    np.testing.assert_array_equal(sample.outcomes, y[sample.rows])


def test_worst_case_weights_equal_repetition(data, fitted):
    counts = np.random.default_rng(2).integers(0, 3, size=60)
    weighted = fitted.worst_case(data.X, data.y, sample_weight=counts)
    repeated = fitted.worst_case(np.repeat(data.X, counts, axis=0), np.repeat(data.y, counts))
    assert weighted.value == pytest.approx(repeated.value, rel=1e-12)
    assert weighted.value != pytest.approx(fitted.worst_case(data.X, data.y).value, rel=1e-6)
    assert set(weighted.rows) == set(np.flatnonzero(counts))


@pytest.mark.parametrize(
    ("radius", "message"),
    [(-1.0, "radius must be >= 0, got -1.0."), (np.nan, "radius must be >= 0, got nan."),
     (np.inf, "radius must be finite, got inf."), ("auto", "radius must be a number, got 'auto'.")],
)  # fmt: skip
def test_worst_case_refuses_a_bad_radius(data, fitted, radius, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        fitted.worst_case(data.X, data.y, radius=radius)


def test_worst_case_prints_numbers_and_no_arrays(data, fitted):
    text = repr(fitted.worst_case(data.X, data.y))
    assert text.startswith("Adversary(value=")
    assert "contexts" not in text


# ---------------------------------------------------------------- partial_fit


@pytest.fixture(params=[1, 2], ids=["single", "two products"])
def outcomes(request, data):
    return data.y if request.param == 1 else np.column_stack([data.y, 5.0 - data.y])


def test_partial_fit_on_an_unfitted_model(data, outcomes):
    model = RobustNewsvendor(radius=0.1)
    assert model.partial_fit(data.X[:20], outcomes[:20]) is model
    assert model.n_steps_ == 20
    assert model.radius_ == 0.1
    assert model.history_ == ()
    np.testing.assert_allclose(model.scale_, data.X[:20].std(axis=0), rtol=1e-12)
    assert model.predict(data.X).shape == outcomes.shape
    model.partial_fit(data.X[20:], outcomes[20:])
    assert model.n_steps_ == 60
    np.testing.assert_allclose(model.scale_, data.X.std(axis=0), rtol=1e-9)  # as the stream has it


def test_partial_fit_chooses_the_radius_from_its_first_rows(data):
    model = RobustNewsvendor().partial_fit(data.X[:30], data.y[:30])
    fitted = RobustNewsvendor(nominal=None).fit(data.X[:30], data.y[:30])
    assert model.radius_ == fitted.radius_ == model.radius_path_.radius
    model.partial_fit(data.X[30:], data.y[30:])
    assert model.radius_ == fitted.radius_


def test_partial_fit_after_fit_goes_on_from_the_fitted_policy(data):
    model = RobustNewsvendor(radius=0.02).fit(data.X, data.y)
    before = model.cost(data.X_test, data.y_test)
    costs = []
    for row in range(20):
        learner = copy.deepcopy(model)
        learner.partial_fit(data.X_test[row : row + 1], data.y_test[row : row + 1])
        assert learner.n_steps_ == model.n_steps_ + 1
        assert (learner.predict(data.X_test) != model.predict(data.X_test)).any()
        costs.append(learner.cost(data.X_test, data.y_test))
    # One more row neither helps nor hurts much; starting over would cost half as much again.
    assert np.mean(costs) == pytest.approx(before, rel=0.05)


def test_partial_fit_speaks_of_the_newest_rows_only(data, outcomes):
    model = RobustNewsvendor(radius=0.1).fit(data.X, outcomes)
    for rows, words in ((slice(0, 7), "newest 7 rows"), (slice(7, 40), "newest 33 rows")):
        model.partial_fit(data.X[rows], outcomes[rows])
        sample = model.worst_case(data.X[rows], outcomes[rows])
        assert model.certificate_.kind == "estimate"
        assert model.certificate_.upper == pytest.approx(sample.value, rel=1e-9)
        np.testing.assert_allclose(np.atleast_1d(model.multiplier_), sample.multiplier, rtol=1e-9)
        assert model.converged_ is None
        assert model.status_ == (
            f"Learning from a stream ({model.n_steps_:,} steps): the certificate is the worst case "
            f"over the {words}; call fit on all data for a proof."
        )


def test_partial_fit_needs_two_rows_at_first_and_then_takes_one(data):
    model = RobustNewsvendor(radius=0.1)
    with pytest.raises(ValueError, match=r"Found array with 1 sample\(s\).* minimum of 2 is required"):
        model.partial_fit(data.X[:1], data.y[:1])
    model.partial_fit(data.X[:2], data.y[:2]).partial_fit(data.X[2:3], data.y[2:3])
    assert model.n_steps_ == 3


def test_partial_fit_refuses_wrong_columns_and_learns_nothing(data):
    model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    before, decisions = state(model), model.predict(data.X)
    with pytest.raises(ValueError, match="X has 4 features, but RobustNewsvendor is expecting 5"):
        model.partial_fit(data.X[:, :4], data.y)
    with pytest.raises(InvalidInputError, match="Input y must be finite, got NaN in row 0"):
        model.partial_fit(data.X, np.full(60, np.nan))
    assert state(model) == before
    np.testing.assert_array_equal(model.predict(data.X), decisions)


def test_partial_fit_refuses_rows_outside_the_box_and_learns_nothing(data):
    ball = WassersteinBall(0.05, support=Box(0.0, 1.0))
    model = RobustPolicy(COST, ball=ball, solver=DASGD(gap_tol=0.05)).fit(data.X, data.y)
    untouched = copy.deepcopy(model)
    with pytest.raises(InvalidInputError, match="support must contain every context"):
        model.partial_fit(data.X + 0.5, data.y)
    for one in (model, untouched):
        one.partial_fit(data.X[:10], data.y[:10])
    np.testing.assert_array_equal(model.predict(data.X), untouched.predict(data.X))


def test_every_public_method_is_documented():
    for cls in (RobustNewsvendor, RobustPolicy):
        for name, member in inspect.getmembers(cls, inspect.isfunction):
            if not name.startswith("_") and member.__module__.startswith("surefoot"):
                assert member.__doc__, name


def test_a_failed_refit_loses_nothing(data):
    model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    before = model.predict(data.X)
    model.set_params(frozen=("nowhere",))
    wider = np.column_stack([data.X, data.X[:, 0]])
    with pytest.raises(InvalidInputError, match="frozen"):
        model.fit(wider, data.y)
    np.testing.assert_array_equal(model.predict(data.X), before)
    assert model.n_features_in_ == data.X.shape[1]
    fresh = RobustNewsvendor(radius=0.1, frozen=("nowhere",))
    for learn in (fresh.fit, fresh.partial_fit):
        with pytest.raises(InvalidInputError, match="frozen"):
            learn(data.X, data.y)
        assert vars(fresh) == vars(RobustNewsvendor(radius=0.1, frozen=("nowhere",)))


@pytest.mark.parametrize("factor", [0.1, 10.0, 1000.0])
def test_the_scale_of_weights_that_are_no_counts_changes_nothing(factor):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (60, 1)).astype(float)
    y = rng.poisson(5 + X[:, 0]).astype(float)
    weight = rng.uniform(1.0, 3.0, 60)
    one = RobustNewsvendor().fit(X, y, weight).predict(X[:5])
    np.testing.assert_allclose(
        RobustNewsvendor().fit(X, y, factor * weight).predict(X[:5]), one, rtol=1e-6
    )


def test_large_counts_as_weights_do_not_become_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (60, 1)).astype(float)
    y = rng.poisson(5 + X[:, 0]).astype(float)
    assert np.isfinite(RobustNewsvendor().fit(X, y, np.full(60, 1e8)).predict(X)).all()
