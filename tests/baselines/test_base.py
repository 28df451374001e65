"""What all baselines promise alike."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from surefoot import ConvexProgram, Problem, WassersteinBall
from surefoot.baselines import ERM, SAA, Forest, Shapley
from surefoot.costs import ConvexPiecewiseCost, Newsvendor, Pieces, Quadratic
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Empirical
from surefoot.policies import Linear

MODELS = {
    "SAA": SAA(),
    "ERM": ERM(),
    "ERM minimum norm": ERM(tie_break="minimum_norm"),
    "ERM l1": ERM(l1=0.02),
    "ERM l1 without intercept": ERM(l1=0.02, intercept=False),
    "ERM auto": ERM(l1="auto"),
    "Forest": Forest(n_trees=10),
    "Shapley": Shapley(radius=0.1),
    "Shapley auto": Shapley(),
    "Shapley outcomes move": Shapley(radius=0.1, outcome_cost=2.0),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, id=name, marks=[pytest.mark.nightly] if name == "Shapley auto" else [])
        for name, model in MODELS.items()
    ],
)
def test_every_scikit_learn_check_passes(model):
    results = check_estimator(clone(model), on_skip=None, on_fail="raise")
    left_out = {result["check_name"] for result in results if result["status"] != "passed"}
    # That one needs SCIPY_ARRAY_API in the environment; arrays other than NumPy's are not promised.
    assert left_out <= {"check_array_api_input"}
    assert len(results) > 40


@every_model
def test_fit_predict_decide_cost_score_agree(model, data):
    model = clone(model)
    assert model.fit(data.X, data.y) is model
    decisions = model.predict(data.X_test)
    assert decisions.shape == (500,)
    assert decisions.dtype == np.float64
    np.testing.assert_array_equal(model.decide(data.X_test), decisions)
    residuals = decisions - data.y_test
    costs = np.maximum(0.2 * residuals, -1.0 * residuals)
    assert model.cost(data.X_test, data.y_test) == pytest.approx(costs.mean(), rel=1e-12)
    assert model.score(data.X_test, data.y_test) == -model.cost(data.X_test, data.y_test)
    weight = np.linspace(0.0, 2.0, 500)
    weighted = np.average(costs, weights=weight)
    assert model.cost(data.X_test, data.y_test, weight) == pytest.approx(weighted, rel=1e-12)
    assert is_regressor(model)
    assert not is_classifier(model)


@every_model
def test_a_fit_repeats_and_leaves_parameters_and_data_alone(model, data):
    X, y, weight = data.X.copy(), data.y.copy(), np.linspace(1.0, 2.0, 60)
    model = clone(model)
    before = {name: id(value) for name, value in vars(model).items()}
    first = model.fit(X, y, sample_weight=weight).predict(data.X_test)
    assert {name: id(vars(model)[name]) for name in before} == before
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    np.testing.assert_array_equal(model.fit(X, y, sample_weight=weight).predict(data.X_test), first)


@every_model
def test_the_order_of_rows_and_repeated_rows_change_nothing(model, data):
    X, y = data.X[:30], data.y[:30]
    weight = np.arange(30) % 3
    once = clone(model).fit(X, y, sample_weight=weight).predict(data.X_test)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(30), weight))
    np.testing.assert_array_equal(clone(model).fit(X[rows], y[rows]).predict(data.X_test), once)


@every_model
def test_products_are_problems_of_their_own(model, data):
    outcomes = np.column_stack([data.y, 10.0 - 2.0 * data.y])
    costs = {"backorder": (1.0, 3.0), "holding": (0.2, 4.0)}
    both = clone(model).set_params(**costs).fit(data.X, outcomes)
    decisions = both.predict(data.X_test)
    assert decisions.shape == (500, 2)
    if isinstance(model, Shapley):  # one radius serves all products
        model = clone(model).set_params(radius=both.radius_)
    total = 0.0
    for j in range(2):
        alone = clone(model).set_params(backorder=costs["backorder"][j], holding=costs["holding"][j])
        alone.fit(data.X, outcomes[:, j])
        total += alone.cost(data.X, outcomes[:, j])
        if not (isinstance(model, Forest) and j):  # the second forest has a seed of its own
            np.testing.assert_allclose(decisions[:, j], alone.predict(data.X_test), rtol=1e-6)
    assert both.cost(data.X, outcomes) == pytest.approx(
        total, rel=0.3 if "Forest" in repr(model) else 1e-6
    )
    column = clone(model).fit(data.X, data.y[:, None])
    assert column.predict(data.X_test).shape == (500, 1)
    with pytest.raises(InvalidInputError, match="y must have 2 products as in fit, got 1"):
        both.cost(data.X, data.y)
    with pytest.raises(InvalidInputError, match="backorder must be one number or one per product"):
        clone(model).set_params(backorder=(1.0, 2.0, 3.0)).fit(data.X, outcomes)


@every_model
def test_frames_pipelines_and_searches_work(model, data):
    plain = clone(model).fit(data.X, data.y).predict(data.X_test)
    for frame in (pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)):
        names = list("abcde")
        fitted = clone(model).fit(frame(data.X, columns=names), data.y)
        np.testing.assert_array_equal(fitted.predict(frame(data.X_test, columns=names)), plain)
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(frame(data.X_test, columns=names[::-1]))
    assert np.isfinite(
        make_pipeline(StandardScaler(), clone(model)).fit(data.X, data.y).predict(data.X)
    ).all()
    search = GridSearchCV(clone(model), {"backorder": [1.0]}, cv=2).fit(data.X, data.y)
    assert search.best_score_ < 0


BAD_DATA = {
    "NaN in X": ([[np.nan], [1.0]], [1.0, 2.0], "X must be finite|contains NaN"),
    "infinite X": (np.array([[np.inf], [1.0]]), [1.0, 2.0], "X must be finite"),
    "NaN in y": ([[0.0], [1.0]], [1.0, np.nan], "y must be finite"),
    "no rows": (np.zeros((0, 2)), [], "0 sample"),
    "no columns": (np.zeros((3, 0)), [1.0, 2.0, 3.0], r"0 feature\(s\)"),
    "one row": ([[0.0]], [1.0], "minimum of 2 is required"),
    "a vector": (np.zeros(3), [1.0, 2.0, 3.0], "Expected 2D array"),
    "other rows": ([[0.0], [1.0]], [1.0, 2.0, 3.0], "inconsistent numbers of samples"),
    "ragged": ([[0.0], [1.0, 2.0]], [1.0, 2.0], "rows of equal length"),
    "text": (pd.DataFrame({"day": ["mon", "tue"]}), [1.0, 2.0], "text or dates in 'day'"),
    "text outcomes": ([[0.0], [1.0]], ["a", "b"], "y must be numeric, got text"),
    "three dimensions": (np.zeros((2, 2, 2)), [1.0, 2.0], "Found array with dim 3"),
}  # fmt: skip


@pytest.mark.parametrize(("X", "y", "message"), BAD_DATA.values(), ids=BAD_DATA.keys())
@pytest.mark.parametrize(
    "model", [SAA(), ERM(), Forest(n_trees=3), Shapley()], ids=lambda m: type(m).__name__
)
def test_bad_data_are_refused(model, X, y, message):
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y)


@pytest.mark.parametrize(
    "model", [SAA(), ERM(), Forest(n_trees=3), Shapley()], ids=lambda m: type(m).__name__
)
def test_misuse_is_refused(model, data):
    model = clone(model)
    with pytest.raises(NotFittedError):
        model.predict(data.X)
    with pytest.raises(NotFittedError):
        model.cost(data.X, data.y)
    for weight, message in [
        (-np.ones(60), "sample_weight must be >= 0, got -1.0"),
        (np.zeros(60), "sample_weight must have a positive sum"),
        (np.ones(59), "one entry per row"),
        (np.full(60, np.nan), "sample_weight must be finite"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            model.fit(data.X, data.y, sample_weight=weight)
    model.fit(data.X, data.y)
    with pytest.raises(ValueError, match="X has 4 features, but .* is expecting 5"):
        model.predict(data.X[:, :4])
    with pytest.raises(ValueError, match="X must be finite"):
        model.predict(np.full((1, 5), np.nan))


BAD_OPTIONS = [
    (SAA(backorder=0.0), InvalidInputError, "backorder must be > 0, got 0.0."),
    (SAA(holding=-1.0), InvalidInputError, "holding must be > 0, got -1.0."),
    (ERM(l1=-1.0), InvalidInputError, "l1 must be >= 0, got -1.0."),
    (ERM(l1=np.nan), InvalidInputError, "l1 must be >= 0, got nan."),
    (ERM(l1=np.inf), InvalidInputError, "l1 must be finite, got inf."),
    (ERM(l1="cv"), InvalidInputError, "l1 must be a number >= 0 or 'auto', got 'cv'."),
    (ERM(l1=None), InvalidTypeError, "l1 must be a number, got None."),
    (ERM(intercept="yes"), InvalidTypeError, "intercept must be True or False, got 'yes'."),
    (
        ERM(tie_break="best"),
        InvalidInputError,
        "tie_break must be 'vertex' or 'minimum_norm', got 'best'.",
    ),
    (
        ERM(l1=0.1, tie_break="minimum_norm"),
        InvalidInputError,
        "tie_break must be 'vertex' with a penalty (l1=0.1), got 'minimum_norm'.",
    ),
    (ERM(random_state=-1), InvalidInputError, "random_state must be >= 0, got -1."),
    (Forest(n_trees=0), InvalidInputError, "n_trees must be >= 1, got 0."),
    (Forest(min_leaf=0.5), InvalidTypeError, "min_leaf must be a whole number, got 0.5."),
    (Forest(max_features=1.5), InvalidInputError, "max_features must be <= 1, got 1.5."),
    (Forest(max_features=0), InvalidInputError, "max_features must be > 0, got 0.0."),
    (Forest(random_state=1.5), InvalidTypeError, "random_state must be a whole number, got 1.5."),
    (Shapley(radius=-0.1), InvalidInputError, "radius must be >= 0, got -0.1."),
    (Shapley(radius=np.inf), InvalidInputError, "radius must be finite, got inf."),
    (Shapley(radius="cv"), InvalidInputError, "radius must be a number >= 0 or 'auto', got 'cv'."),
    (Shapley(outcome_cost=0), InvalidInputError, "outcome_cost must be > 0, got 0.0."),
    (Shapley(outcome_cost=np.nan), InvalidInputError, "outcome_cost must be > 0, got nan."),
    (Shapley(random_state=1.5), InvalidTypeError, "random_state must be a whole number, got 1.5."),
]


@pytest.mark.parametrize(("model", "error", "message"), BAD_OPTIONS, ids=lambda part: str(part)[:60])
def test_bad_parameters_are_refused_when_fitting(model, error, message, data):
    with pytest.raises(error, match=re.escape(message)):
        model.fit(data.X, data.y)


def test_parameters_are_keywords_after_the_costs():
    for kind in (ERM, Forest, Shapley):
        with pytest.raises(TypeError, match="from 1 to 3 positional arguments"):
            kind(1.0, 0.2, 0.1)
    assert SAA(2.0, 1.0).get_params() == {"backorder": 2.0, "holding": 1.0, "cost_function": None}


# Costs of other kinds


@dataclass(frozen=True)
class Tiered(ConvexPiecewiseCost):
    """A shortage beyond 0.3 costs three times as much."""

    def pieces(self, n_products):
        return (Pieces((-3.0, -1.0, 0.2), (-0.6, 0.0, 0.0)),) * n_products


@every_model
def test_a_cost_takes_the_place_of_both_numbers(model, data):
    given = clone(model).set_params(backorder=3.0, holding=0.5).fit(data.X, data.y)
    cost = Newsvendor(3.0, 0.5)
    own = clone(model).set_params(cost_function=cost, backorder=7.0).fit(data.X, data.y)
    np.testing.assert_array_equal(own.predict(data.X_test), given.predict(data.X_test))
    assert own.cost(data.X_test, data.y_test) == given.cost(data.X_test, data.y_test)


@every_model
def test_costs_of_three_lines_are_judged_and_learned(model, data):
    own = clone(model).set_params(cost_function=Tiered()).fit(data.X, data.y)
    decisions = own.predict(data.X)
    r = decisions - data.y
    costs = np.maximum.reduce([-3.0 * r - 0.6, -r, 0.2 * r])
    assert own.cost(data.X, data.y) == pytest.approx(costs.mean(), rel=1e-12)
    # Shortages weigh more than where every unit short costs the same.
    assert decisions.mean() > clone(model).fit(data.X, data.y).predict(data.X).mean() - 1e-9


def test_the_best_constant_and_the_best_line_of_three_lines(data):
    def cost(decisions):
        r = decisions - data.y
        return np.maximum.reduce([-3.0 * r - 0.6, -r, 0.2 * r]).mean()

    constant = SAA(cost_function=Tiered()).fit(data.X, data.y)
    grid = np.linspace(data.y.min(), data.y.max(), 4_001)
    assert cost(constant.decision_) <= min(cost(z) for z in grid) + 1e-12
    line = ERM(cost_function=Tiered()).fit(data.X, data.y)
    problem = Problem(Tiered(), Linear(), Empirical(data.X, data.y), WassersteinBall(0.0))
    best = ConvexProgram().solve(problem).certificate
    assert best.lower * (1 - 1e-6) <= line.cost(data.X, data.y) <= best.upper * (1 + 1e-6)


def test_the_best_constant_of_any_cost(data):
    found = SAA(cost_function=Quadratic()).fit(data.X, data.y)
    assert found.decision_ == pytest.approx(data.y.mean(), abs=1e-4)
    assert found.cost(data.X, data.y) == pytest.approx(data.y.var(), rel=1e-6)


@pytest.mark.parametrize("kind", [ERM, Forest, Shapley])
def test_other_costs_than_piecewise_linear_ones_are_refused(kind, data):
    message = "cost_function must be a piecewise linear cost such as Newsvendor"
    for cost in (Quadratic(), 1.0):
        with pytest.raises(InvalidTypeError, match=message):
            kind(cost_function=cost).fit(data.X, data.y)
