import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from surefoot import DASGD, Exact, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import DataWarning, InvalidInputError, InvalidTypeError
from surefoot.forecasts import Ensemble, Forecaster
from surefoot.nominals import Empirical
from surefoot.policies import Linear


@pytest.mark.parametrize(
    "model",
    [RobustNewsvendor(), RobustNewsvendor(radius=0.1, order=1, intercept=False)],
    ids=["defaults", "order 1 without intercept"],
)
def test_every_scikit_learn_check_passes(model):
    pytest.importorskip("pandas")  # some of the checks need it
    results = check_estimator(model, on_skip=None, on_fail="raise")
    left_out = {result["check_name"] for result in results if result["status"] != "passed"}
    # That one needs SCIPY_ARRAY_API in the environment; arrays other than NumPy's are not promised.
    assert left_out <= {"check_array_api_input"}
    assert len(results) > 40


def test_it_is_a_shorthand_for_a_policy_of_its_parts(data):
    short = RobustNewsvendor(
        2.0, 0.5, radius=0.2, order=1, intercept=False, frozen=(1,), solver=DASGD(gap_tol=0.02),
        random_state=7,
    ).fit(data.X, data.y)  # fmt: skip
    long = RobustPolicy(
        Newsvendor(2.0, 0.5),
        Linear(intercept=False),
        ball=WassersteinBall(0.2, order=1, frozen=(1,)),
        solver=DASGD(gap_tol=0.02),
        random_state=7,
    ).fit(data.X, data.y)
    np.testing.assert_array_equal(short.predict(data.X_test), long.predict(data.X_test))
    assert short.certificate_ == long.certificate_


def test_parameters_are_stored_as_given_and_can_be_read_set_and_cloned():
    given = {
        "backorder": [1.0, 2.0], "holding": 0.3, "radius": "auto", "order": 1, "intercept": False,
        "protect": 0.0, "nominal": None, "frozen": ["a"], "solver": Exact(), "random_state": 3,
    }  # fmt: skip
    model = RobustNewsvendor(**given)
    assert model.get_params(deep=False) == given
    assert all(model.get_params(deep=False)[name] is value for name, value in given.items())
    copy = clone(model)
    assert copy is not model
    assert copy.get_params(deep=False) == given
    assert model.set_params(radius=0.5, order=2) is model
    assert (model.radius, model.order) == (0.5, 2)
    assert copy.radius == "auto"
    assert repr(RobustNewsvendor(radius=0.1)) == "RobustNewsvendor(radius=0.1)"


def test_no_silent_failure_misspelt_option_ignored():
    with pytest.raises(TypeError, match="unexpected keyword argument 'raduis'"):
        RobustNewsvendor(raduis=0.1)
    with pytest.raises(ValueError, match=r"Invalid parameter 'raduis' .*'radius'"):
        RobustNewsvendor().set_params(raduis=0.1)
    with pytest.raises(TypeError, match="from 1 to 3 positional arguments but 4 were given"):
        RobustNewsvendor(1.0, 0.2, 0.1)


def test_no_silent_failure_defaults_that_raise(data):
    model = RobustNewsvendor().fit(data.X, data.y)
    assert model.converged_
    assert np.isfinite(model.predict(data.X_test)).all()
    # Better than the best constant order, worse than the oracle.
    constant = np.quantile(data.y, 1 / 1.2, method="inverted_cdf")
    r = constant - data.y_test
    assert data.oracle_cost(1.0, 0.2) < model.cost(data.X_test, data.y_test)
    assert model.cost(data.X_test, data.y_test) < np.maximum(0.2 * r, -r).mean()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"radius": -1.0}, InvalidInputError, "radius must be >= 0, got -1.0."),
        ({"radius": np.nan}, InvalidInputError, "radius must be >= 0, got nan."),
        ({"radius": np.inf}, InvalidInputError, "radius must be finite, got inf."),
        (
            {"radius": "cv"},
            InvalidInputError,
            "radius must be a number >= 0, 'auto', 'paper' or 'profile', got 'cv'.",
        ),
        ({"radius": None}, InvalidTypeError, "radius must be a number, got None."),
        ({"radius": True}, InvalidTypeError, "radius must be a number, got True."),
        ({"order": 3}, InvalidInputError, "order must be 1 or 2, got 3."),
        ({"order": "2"}, InvalidInputError, "order must be 1 or 2, got '2'."),
        ({"intercept": "yes"}, InvalidTypeError, "intercept must be True or False, got 'yes'."),
        ({"backorder": 0}, InvalidInputError, "backorder must be > 0, got 0.0."),
        ({"holding": -0.2}, InvalidInputError, "holding must be > 0, got -0.2."),
        ({"holding": np.nan}, InvalidInputError, "holding must be finite (no NaN, no infinity)"),
        ({"backorder": []}, InvalidInputError, "backorder must be a number or one number per product"),
        (
            {"backorder": (1.0, 2.0)},
            InvalidInputError,
            "backorder must be one number or one per product (1), got 2 numbers.",
        ),
        (
            {"frozen": "holiday"},
            InvalidInputError,
            "frozen must be a sequence of columns such as ('holiday',), got the text 'holiday'.",
        ),
        (
            {"frozen": ("holiday",)},
            InvalidInputError,
            "frozen names the column 'holiday', but X has no column names",
        ),
        (
            {"frozen": (5,)},
            InvalidInputError,
            "frozen must hold column names or positions below 5, got 5.",
        ),
        (
            {"solver": "dasgd"},
            InvalidTypeError,
            "solver must be a solver such as DASGD() or None, got 'dasgd'.",
        ),
        (
            {"solver": DASGD},
            InvalidTypeError,
            "solver must be a solver such as DASGD() or None, got <class",
        ),
        ({"random_state": -1}, InvalidInputError, "random_state must be >= 0, got -1."),
        ({"random_state": 1.5}, InvalidTypeError, "random_state must be a whole number, got 1.5."),
        (
            {"random_state": np.random.RandomState(0)},
            InvalidTypeError,
            "random_state must be a whole number, got RandomState",
        ),
    ],
    ids=lambda part: str(part).split(" at 0x")[0].split(" at 0X")[0],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_refused_when_fitting_with_a_message(data, options, error, message, method):
    model = RobustNewsvendor(**{"radius": 0.1, **options})  # the constructor only stores
    with pytest.raises(error, match=re.escape(message)):
        getattr(model, method)(data.X, data.y)


def test_frozen_columns_never_move(data):
    model = RobustNewsvendor(radius=0.3, frozen=(1, -1)).fit(data.X, data.y)
    np.testing.assert_array_equal(model.movable_, [True, False, True, True, False])
    sample = model.worst_case(data.X, data.y)
    moved = np.abs(sample.contexts - data.X[sample.rows]).max(axis=0)
    assert (moved[[1, 4]] < 1e-14).all()
    assert (moved[[0, 2, 3]] > 1e-3).all()


def test_no_silent_failure_fit_intercept_false_ignored(data):
    y = data.y + 100.0
    without = RobustNewsvendor(radius=0.01, intercept=False).fit(data.X, y)
    np.testing.assert_array_equal(without.parameters_.intercept, [0.0])
    np.testing.assert_array_equal(without.predict(np.zeros((2, 5))), [0.0, 0.0])
    free = RobustNewsvendor(radius=0.01).fit(data.X, y)
    assert free.parameters_.intercept[0] > 90.0
    assert free.cost(data.X, y) < 0.2 * without.cost(data.X, y)


@pytest.mark.parametrize("order", [1, 2])
def test_each_product_has_its_own_costs(data, order):
    outcomes = np.column_stack([data.y, 10.0 - 2.0 * data.y])
    backorder, holding = (1.0, 3.0), (0.2, 4.0)
    solver = Exact(gap_tol=1e-6)
    both = RobustNewsvendor(backorder, holding, radius=0.05, order=order, solver=solver)
    both.fit(data.X, outcomes)
    apart = [
        RobustNewsvendor(b, h, radius=0.05, order=order, solver=solver).fit(data.X, outcomes[:, j])
        for j, (b, h) in enumerate(zip(backorder, holding, strict=True))
    ]
    total = sum(model.certificate_.upper for model in apart)
    assert both.certificate_.upper == pytest.approx(total, rel=3e-6)
    decisions = both.predict(data.X_test)
    for j, model in enumerate(apart):
        np.testing.assert_allclose(decisions[:, j], model.predict(data.X_test), atol=1e-3)
    # One number serves every product.
    same = RobustNewsvendor(1.0, (0.2, 0.2), radius=0.05, order=order).fit(data.X, outcomes)
    shared = RobustNewsvendor(1.0, 0.2, radius=0.05, order=order).fit(data.X, outcomes)
    np.testing.assert_array_equal(same.predict(data.X), shared.predict(data.X))


def test_more_expensive_shortage_orders_more(data):
    means = [
        RobustNewsvendor(b, 1.0, radius=0.05).fit(data.X, data.y).predict(data.X_test).mean()
        for b in (0.2, 1.0, 5.0)
    ]
    assert means[0] + 0.1 < means[1] < means[2] - 0.1


# ---------------------------------------------------------------- the default: forecast first


def forecast(model):
    """The forecast that the policy corrects, None without one."""
    return model.problem_.policy.offset


def kinked(r):
    return np.maximum(0.2 * r, -r).mean()


def constant_order(y):
    return np.quantile(y, 1 / 1.2, method="inverted_cdf")


def test_by_default_an_ensemble_decides(data):
    model = RobustNewsvendor().fit(data.X, data.y)
    assert forecast(model).decides
    long = RobustPolicy(Newsvendor(1.0, 0.2), nominal="auto").fit(data.X, data.y)
    given = RobustNewsvendor(nominal=Ensemble()).fit(data.X, data.y)
    for other in (long, given):
        np.testing.assert_array_equal(other.predict(data.X_test), model.predict(data.X_test))
        assert other.certificate_ == model.certificate_


@pytest.mark.parametrize(
    "options",
    [{"radius": 0.1}, {"radius": 0.0}, {"intercept": False}, {"nominal": None}, {"radius": "profile"}],
    ids=str,
)
def test_choices_of_the_user_are_taken_at_their_word(data, options):
    model = RobustNewsvendor(**options).fit(data.X, data.y)
    assert forecast(model) is None
    plain = RobustNewsvendor(**({"nominal": None} | options)).fit(data.X, data.y)
    np.testing.assert_array_equal(model.predict(data.X_test), plain.predict(data.X_test))
    np.testing.assert_array_equal(model.nominal_.outcomes[:, 0], data.y)
    np.testing.assert_allclose(
        model.predict(data.X_test),
        data.X_test @ model.parameters_.theta[:, 0] + model.parameters_.intercept[0],
    )


def test_a_nominal_of_the_users_own_is_used(data):
    nominal = Empirical(data.X[:30], data.y[:30])
    model = RobustNewsvendor(nominal=nominal).fit(data.X, data.y)
    assert model.nominal_ is nominal
    assert forecast(model) is None
    alone = RobustNewsvendor(nominal=None).fit(data.X[:30], data.y[:30])
    np.testing.assert_array_equal(model.predict(data.X_test), alone.predict(data.X_test))


def test_a_forecaster_may_stand_beside_a_radius(data):
    model = RobustNewsvendor(radius=0.01, nominal=Forecaster()).fit(data.X, data.y)
    assert model.radius_ == 0.01
    assert forecast(model) is not None
    assert not hasattr(model, "radius_path_")


def test_a_refit_forgets_the_forecast(data):
    model = RobustNewsvendor().fit(data.X, data.y)
    model.set_params(radius=0.1).fit(data.X, data.y)
    assert forecast(model) is None
    fresh = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    np.testing.assert_array_equal(model.predict(data.X_test), fresh.predict(data.X_test))


def test_a_stream_begins_without_a_forecast(data):
    model = RobustNewsvendor().partial_fit(data.X[:30], data.y[:30])
    assert forecast(model) is None
    plain = RobustNewsvendor(nominal=None).partial_fit(data.X[:30], data.y[:30])
    np.testing.assert_array_equal(model.predict(data.X_test), plain.predict(data.X_test))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_few_rows_are_decided_with_care(data, n, order):
    model = RobustNewsvendor(order=order).fit(data.X[:n], data.y[:n])
    assert model.converged_
    with pytest.warns(DataWarning, match="far outside those seen"):
        assert np.isfinite(model.predict(100.0 * data.X_test)).all()
    if n == 2:  # nothing to learn a forecast from
        few = model.predict(data.X[:2])
        assert few[0] == few[1]
        assert data.y[:2].min() <= few[0] <= data.y[:2].max() + np.ptp(data.y[:2])


def test_repeated_contexts_with_different_outcomes():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.concatenate([np.linspace(0.0, 1.0, 20), 10.0 + np.linspace(0.0, 1.0, 20)])
    model = RobustNewsvendor().fit(X, y)
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [0.83, 10.83], atol=0.25)


def test_noise_costs_little_more_than_the_constant_order():
    excess = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(50, 6)), rng.normal(size=50)
        X_test, y_test = rng.normal(size=(4000, 6)), rng.normal(size=4000)
        model = RobustNewsvendor().fit(X, y)
        excess.append(model.cost(X_test, y_test) / kinked(constant_order(y) - y_test))
    assert np.mean(excess) < 1.05


def test_plenty_of_clean_data_come_close_to_the_oracle():
    theta = np.arange(5.0) - 1.0
    excess = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, X_test = rng.normal(size=(400, 5)), rng.normal(size=(4000, 5))
        y, y_test = (Z @ theta + 0.5 * rng.normal(size=len(Z)) for Z in (X, X_test))
        oracle = kinked(X_test @ theta + 0.5 * 0.96742 - y_test)
        excess.append(RobustNewsvendor().fit(X, y).cost(X_test, y_test) / oracle)
    assert np.mean(excess) < 1.035


def test_a_spread_that_depends_on_the_context_is_corrected_for():
    rng = np.random.default_rng(0)

    def draw(n):
        X = rng.uniform(size=(n, 3))
        return X, X[:, 1] + (0.1 + 2.0 * X[:, 0]) * rng.normal(size=n)

    (X, y), (X_test, y_test) = draw(1000), draw(4000)
    ensemble = RobustNewsvendor().fit(X, y)
    model = RobustNewsvendor(nominal=Forecaster()).fit(X, y)
    assert model.radius_ < 0.5 * model.radius_path_.radii[0]
    errors = model.nominal_.outcomes - model.nominal_.offsets
    stayed = forecast(model)(X_test)[:, 0] + constant_order(errors)
    assert model.cost(X_test, y_test) < 0.95 * kinked(stayed - y_test)
    oracle = X_test[:, 1] + (0.1 + 2.0 * X_test[:, 0]) * 0.96742
    for one in (model, ensemble):
        assert one.cost(X_test, y_test) < 1.05 * kinked(oracle - y_test)


def test_bending_outcomes_are_met_by_what_bends():
    rng = np.random.default_rng(0)

    def draw(n):
        X = rng.uniform(-2.0, 2.0, size=(n, 2))
        return X, np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=n)

    (X, y), (X_test, y_test) = draw(150), draw(2000)
    straight, smooth, full = (
        RobustNewsvendor(nominal=Forecaster(**options)).fit(X, y).cost(X_test, y_test)
        for options in ({"smooth": False}, {"trees": False}, {})
    )
    assert smooth < 0.4 * straight
    assert full < 0.4 * straight


def test_forecasts_do_not_depend_on_the_costs_of_other_products(data):
    outcomes = np.column_stack([data.y, 10.0 - 2.0 * data.y])
    both = RobustNewsvendor((1.0, 3.0), (0.2, 4.0)).fit(data.X, outcomes)
    for j, (backorder, holding) in enumerate([(1.0, 0.2), (3.0, 4.0)]):
        alone = RobustNewsvendor(backorder, holding).fit(data.X, outcomes[:, j])
        # The second product's rows are sorted the other way, which only rounding sees.
        np.testing.assert_allclose(
            forecast(both)(data.X_test)[:, j], forecast(alone)(data.X_test)[:, 0], rtol=1e-6
        )
