import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from surefoot import DASGD, Box, Exact, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError, InvalidTypeError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.solvers import PrimalDual

COST = Newsvendor(1.0, 0.2)


@pytest.mark.parametrize(
    "model",
    [
        RobustPolicy(COST),
        # Wide enough for the data of every check; five per cent keeps the plain method quick.
        pytest.param(
            RobustPolicy(
                COST,
                ball=WassersteinBall(0.1, support=Box(-1000, 1000)),
                solver=DASGD(gap_tol=0.05),
            ),
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["defaults", "box"],
)
def test_every_scikit_learn_check_passes(model):
    pytest.importorskip("pandas")  # some of the checks need it
    results = check_estimator(model, on_skip=None, on_fail="raise")
    left_out = {result["check_name"] for result in results if result["status"] != "passed"}
    # That one needs SCIPY_ARRAY_API in the environment; arrays other than NumPy's are not promised.
    assert left_out <= {"check_array_api_input"}
    assert len(results) > 40


def test_no_silent_failure_defaults_that_raise(data):
    model = RobustPolicy(COST).fit(data.X, data.y)
    assert model.converged_
    assert model.radius_ == model.radius_path_.radius
    assert model.certificate_.kind == "exact"


def test_no_silent_failure_misspelt_option_ignored():
    with pytest.raises(TypeError, match="unexpected keyword argument 'cost'"):
        RobustPolicy(cost=COST)
    with pytest.raises(TypeError, match="unexpected keyword argument 'radius'"):
        RobustPolicy(COST, radius=0.1)


def test_parameters_are_stored_as_given_and_can_be_cloned(data):
    ball, solver = WassersteinBall(0.1), Exact()
    model = RobustPolicy(COST, ball=ball, solver=solver)
    assert model.get_params(deep=False) == {
        "cost_function": COST, "policy": None, "ball": ball, "solver": solver, "nominal": None,
        "random_state": 0,
    }  # fmt: skip
    copy = clone(model)
    assert copy.get_params(deep=False) == model.get_params(deep=False)
    expected = model.fit(data.X, data.y).predict(data.X_test)
    np.testing.assert_array_equal(copy.fit(data.X, data.y).predict(data.X_test), expected)
    assert model.policy is None
    assert model.nominal is None


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "cost_function must be a cost such as Newsvendor(1.0, 0.2), got None."),
        ({"cost_function": "newsvendor"}, "cost_function must be a cost such as"),
        ({"cost_function": Newsvendor}, "cost_function must be a cost such as"),
        ({"cost_function": COST, "policy": "linear"}, "policy must be a policy such as Linear()"),
        ({"cost_function": COST, "ball": 0.3}, "ball must be a WassersteinBall, got 0.3."),
        (
            {"cost_function": COST, "solver": 3},
            "solver must be a solver such as DASGD() or None, got 3.",
        ),
        ({"cost_function": COST, "nominal": 3}, "nominal must be a nominal such as Empirical(X, y)"),
        (
            {"cost_function": COST, "random_state": 1.5},
            "random_state must be a whole number, got 1.5.",
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_parts_of_the_wrong_kind_are_refused_by_name(data, parts, message, method):
    with pytest.raises(InvalidTypeError, match=re.escape(message)):
        getattr(RobustPolicy(**parts), method)(data.X, data.y)


def test_nominal_is_the_centre_of_the_ball(data):
    nominal = Empirical(data.X[:30], data.y[:30])
    ball = WassersteinBall(0.1)
    given = RobustPolicy(COST, ball=ball, nominal=nominal).fit(data.X[30:], data.y[30:])
    fitted = RobustPolicy(COST, ball=ball).fit(data.X[:30], data.y[:30])
    np.testing.assert_array_equal(given.predict(data.X_test), fitted.predict(data.X_test))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_nominal_must_fit_the_data(data, method):
    def train(nominal):
        getattr(RobustPolicy(COST, ball=WassersteinBall(0.1), nominal=nominal), method)(data.X, data.y)

    with pytest.raises(InvalidInputError, match=r"nominal must have the columns of X \(5\), got 2\."):
        train(Empirical(data.X[:, :2], data.y))
    both = np.column_stack([data.y, data.y])
    with pytest.raises(InvalidInputError, match=r"nominal must have the products of y \(1\), got 2\."):
        train(Empirical(data.X, both))


def test_sample_weight_beside_a_nominal_is_refused_and_not_ignored(data):
    model = RobustPolicy(COST, ball=WassersteinBall(0.1), nominal=Empirical(data.X, data.y))
    with pytest.raises(InvalidInputError, match="sample_weight must be None beside a nominal"):
        model.fit(data.X, data.y, sample_weight=np.ones(60))


def test_solver_refuses_before_the_radius_is_chosen(data, monkeypatch):
    def no_selection(*_):
        raise AssertionError("the radius was chosen for a problem that is refused")

    monkeypatch.setattr("surefoot.estimators.robust_estimator.choose_radius", no_selection)
    smoothed = RobustPolicy(Newsvendor(1.0, 0.2, smoothing=0.1), solver=Exact())
    boxed = RobustPolicy(COST, ball=WassersteinBall("auto", support=Box(0.0, 1.0)), solver=PrimalDual())
    for model, message in (
        (smoothed, r"Exact cannot solve this: it needs an unsmoothed cost: set smoothing=0\."),
        (boxed, r"PrimalDual cannot solve this: it needs .*\."),
    ):
        for method in (model.fit, model.partial_fit):
            with pytest.raises(UnsupportedProblemError, match=message):
                method(data.X, data.y)


def test_data_outside_the_support_are_refused(data):
    ball = WassersteinBall(0.1, support=Box(0.0, (1.0, 1.0, 0.5, 1.0, 1.0)))
    with pytest.raises(InvalidInputError, match="support must contain every context, got column 2"):
        RobustPolicy(COST, ball=ball).fit(data.X, data.y)
    ball = WassersteinBall(0.1, support=Box(0.0, 1.0, outcome=(0.0, 99.0)), outcome_cost=1.0)
    with pytest.raises(InvalidInputError, match="support must contain every outcome, got values in"):
        RobustPolicy(COST, ball=ball).fit(data.X, data.y - 5.0)


def test_adversary_stays_in_the_box(data):
    tight = WassersteinBall(0.3, support=Box(0.0, 1.0))
    boxed = RobustPolicy(COST, ball=tight).fit(data.X, data.y)
    sample = boxed.worst_case(data.X, data.y)
    assert sample.contexts.min() >= -1e-12
    assert sample.contexts.max() <= 1.0 + 1e-12
    free = RobustPolicy(COST, ball=WassersteinBall(0.3)).fit(data.X, data.y)
    assert free.worst_case(data.X, data.y).contexts.max() > 1.01
    # Less room for the adversary, smaller worst case.
    assert boxed.certificate_.lower < free.certificate_.upper


def test_features_are_part_of_the_policy(data):
    def squares(X):
        return np.hstack([X, X**2])

    mapped = RobustPolicy(COST, Linear(features=squares), ball=WassersteinBall(0.05))
    mapped.fit(data.X, data.y)
    plain = RobustPolicy(COST, ball=WassersteinBall(0.05)).fit(squares(data.X), data.y)
    assert mapped.n_features_in_ == 5
    assert mapped.parameters_.theta.shape == (10, 1)
    np.testing.assert_array_equal(mapped.predict(data.X_test), plain.predict(squares(data.X_test)))
    assert mapped.worst_case(data.X, data.y).contexts.shape[1] == 10
    streamed = mapped.partial_fit(data.X, data.y).predict(data.X_test)
    plain.partial_fit(squares(data.X), data.y)
    np.testing.assert_array_equal(streamed, plain.predict(squares(data.X_test)))


def test_grid_search_over_balls(data):
    balls = [WassersteinBall(radius) for radius in (0.0, 0.1, 5.0)]
    search = GridSearchCV(RobustPolicy(COST), {"ball": balls}, cv=3).fit(data.X, data.y)
    assert search.best_params_["ball"] in balls
    # A huge ball makes the order constant, which costs more here.
    assert np.argmin(search.cv_results_["mean_test_score"]) == 2


def test_another_solver_reaches_the_same_value(data):
    ball = WassersteinBall(0.1)
    stochastic = RobustPolicy(COST, ball=ball).fit(data.X, data.y)
    exact = RobustPolicy(COST, ball=ball, solver=Exact(gap_tol=1e-6)).fit(data.X, data.y)
    best = exact.certificate_.upper
    assert exact.certificate_.gap <= 1e-6
    assert best * (1 - 1e-6) <= stochastic.certificate_.upper <= best * 1.01
    assert stochastic.certificate_.lower <= best
