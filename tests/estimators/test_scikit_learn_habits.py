"""What scikit-learn users do without thinking about it works, or says why not."""

import copy

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_regressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import surefoot
from surefoot import Box, PreparedPolicy, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.baselines import ERM, SAA, Forest, Shapley
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.solvers import PrimalDual

DATA = synthetic(n=60, s=3, seed=0)
X, Y = DATA.X, DATA.y
TWO = np.column_stack([Y, 2.0 * Y])
LINEAR = RobustNewsvendor(1.0, 0.2, radius=0.1)


def policy(**parts):
    return RobustPolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1), **parts)


# --- coefficients ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LINEAR, policy(), ERM(1.0, 0.2)], ids=lambda m: type(m).__name__)
def test_coefficients_are_the_policy(model):
    one = clone(model).fit(X, Y)
    assert one.coef_.shape == (3,)
    assert isinstance(one.intercept_, float)
    np.testing.assert_allclose(X @ one.coef_ + one.intercept_, one.predict(X), rtol=1e-12)
    two = clone(model).fit(X, TWO)
    assert two.coef_.shape == (2, 3)
    np.testing.assert_allclose(X @ two.coef_.T + two.intercept_, two.predict(X), rtol=1e-12)
    assert list(one.get_feature_names_out()) == ["x0", "x1", "x2"]
    assert list(one.get_feature_names_out(["a", "b", "c"])) == ["a", "b", "c"]


def test_coefficients_belong_to_features():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["price", "wind", "sun"])
    plain = clone(LINEAR).fit(frame, Y)
    assert list(plain.get_feature_names_out()) == ["price", "wind", "sun"]
    with pytest.raises(InvalidInputError, match="input_features must be the columns of fit, got"):
        plain.get_feature_names_out(["a", "b", "c"])
    squares = PolynomialFeatures(2, include_bias=False)
    mapped = policy(policy=Linear(features=squares)).fit(frame, Y)
    names = list(mapped.get_feature_names_out())
    assert names[:3] == ["price", "wind", "sun"]
    assert "price wind" in names
    assert mapped.coef_.shape == (len(names),)
    numbered = policy(policy=Linear(features=lambda rows: rows[:, :2])).fit(frame, Y)
    assert list(numbered.get_feature_names_out()) == ["feature0", "feature1"]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (RobustNewsvendor(1.0, 0.2), "an ensemble or a forecast decides"),
        (policy(policy=Linear(decisions=Box(0.0, 1.0))), "its decisions have limits"),
    ],
)
def test_other_policies_have_no_coefficients_and_say_why(model, reason):
    fitted = clone(model).fit(X, Y)
    for name in ("coef_", "intercept_", "get_feature_names_out"):
        assert not hasattr(fitted, name)
        with pytest.raises(AttributeError) as caught:
            getattr(fitted, name)
        told = caught.value if name != "get_feature_names_out" else caught.value.__cause__
        assert reason in str(told)


def test_an_unfitted_model_has_no_coefficients():
    assert not hasattr(clone(LINEAR), "coef_")
    assert not hasattr(SAA().fit(X, Y), "coef_")


def test_prepared_policies_have_coefficients_of_prepared_columns():
    rows = [[20.0, "Sat"], [21.0, "Mon"], [25.0, "Sat"], [18.0, "Mon"], [26.0, "Mon"], [19.0, "Sat"]]
    model = PreparedPolicy(LINEAR).fit(rows, [30.0, 11.0, 36.0, 8.0, 14.0, 29.0])
    assert list(model.get_feature_names_out()) == ["0", "1=Sat"]
    expected = model.prepare(rows) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(expected, model.predict(rows), rtol=1e-12)
    assert not hasattr(PreparedPolicy(SAA()).fit(rows, range(6)), "coef_")


# --- nested parameters ----------------------------------------------------------------------------


def test_parameters_of_parts_are_seen():
    model = policy(solver=PrimalDual(gap_tol=0.02))
    deep = model.get_params()
    assert deep["ball__radius"] == 0.1
    assert deep["ball__order"] == 2
    assert deep["cost_function__backorder"] == 1.0
    assert deep["solver__gap_tol"] == 0.02
    assert "ball__radius" not in model.get_params(deep=False)
    supported = RobustPolicy(ball=WassersteinBall(0.1, support=Box(0.0, 1.0)))
    assert supported.get_params()["ball__support__lower"] == 0.0
    assert not any(key.startswith("nominal__") for key in policy(nominal=Empirical(X, Y)).get_params())


def test_setting_a_parameter_of_a_part_replaces_the_part():
    ball = WassersteinBall(0.1, frozen=(1,))
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball).set_params(
        ball__radius=0.5, ball__order=1, cost_function__holding=0.4
    )
    assert model.ball == WassersteinBall(0.5, order=1, frozen=(1,))
    assert model.cost_function == Newsvendor(1.0, 0.4)
    assert ball.radius == 0.1
    both = model.set_params(ball__radius=0.3, ball=WassersteinBall(9.0))
    assert both.ball == WassersteinBall(0.3)
    deep = RobustPolicy(ball=WassersteinBall(0.1, support=Box(0.0, 1.0)))
    assert deep.set_params(ball__support__upper=2.0).ball.support == Box(0.0, 2.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"ball__radios": 1.0},
            "WassersteinBall has the parameters radius, order, .* got ball__radios",
        ),
        ({"policy__intercept": False}, "policy__intercept needs policy to be a part .* got None"),
        ({"radius": 1.0}, "Invalid parameter 'radius' for estimator RobustPolicy"),
        ({"ball__radius": -1.0}, "radius must be >= 0, got -1.0"),
        ({"random_state__x": 1}, "random_state__x needs random_state to be a part .* got 0"),
        ({"bell__radius": 1.0}, "Invalid parameter 'bell' for estimator RobustPolicy"),
    ],
)
def test_parameters_that_do_not_exist_are_refused_by_name(given, message):
    model = policy()
    with pytest.raises((ValueError, AttributeError), match=message):
        model.set_params(**given)
    assert model.ball == WassersteinBall(0.1)


def test_a_grid_search_over_the_radius_of_the_ball():
    search = GridSearchCV(policy(), {"ball__radius": [0.0, 5.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"ball__radius": 0.0}
    assert search.best_estimator_.radius_ == 0.0
    nested = PreparedPolicy(make := policy())
    grid = GridSearchCV(nested, {"model__ball__radius": [0.0, 5.0]}, cv=3).fit(X, Y)
    assert grid.best_params_ == {"model__ball__radius": 0.0}
    assert make.ball.radius == 0.1


# --- seeds ----------------------------------------------------------------------------------------


def test_no_seed_is_a_new_seed_each_time():
    one, two = (RobustNewsvendor(1.0, 0.2, radius=0.1, random_state=None).fit(X, Y) for _ in range(2))
    assert one.seed_ != two.seed_
    again = RobustNewsvendor(1.0, 0.2, radius=0.1, random_state=one.seed_).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), one.predict(X))
    assert clone(LINEAR).fit(X, Y).seed_ == 0


@pytest.mark.parametrize("cls", [ERM, Forest, Shapley])
def test_baselines_take_no_seed_too(cls):
    assert cls(1.0, 0.2, random_state=None).fit(X, Y).seed_ != 0
    with pytest.raises(InvalidInputError, match="random_state must be"):
        cls(1.0, 0.2, random_state=-1).fit(X, Y)


def test_a_model_without_seed_learns_on_and_is_saved(tmp_path):
    model = RobustNewsvendor(1.0, 0.2, radius=0.1, random_state=None).fit(X, Y)
    model.save(tmp_path / "m.surefoot")
    loaded = surefoot.load(tmp_path / "m.surefoot")
    assert loaded.random_state is None
    np.testing.assert_array_equal(
        loaded.partial_fit(X, Y).predict(X), model.partial_fit(X, Y).predict(X)
    )


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [LINEAR, PreparedPolicy(LINEAR), SAA()], ids=["robust", "prepared", "saa"]
)
def test_decisions_are_frames_where_contexts_are(model):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["price", "wind", "sun"]).set_index(np.arange(100, 160))
    outcomes = pd.DataFrame(TWO, columns=["lamb", "steak"], index=frame.index)
    two = clone(model).fit(frame, outcomes)
    decided = two.decide(frame[:5])
    assert list(decided.columns) == ["lamb", "steak"]
    assert list(decided.index) == [100, 101, 102, 103, 104]
    np.testing.assert_array_equal(decided.to_numpy(), two.predict(frame[:5]))
    assert isinstance(two.predict(frame), np.ndarray)
    one = clone(model).fit(frame, outcomes["lamb"]).decide(frame[:5])
    assert isinstance(one, pd.Series)
    assert one.name == "lamb"
    unnamed = clone(model).fit(frame, Y).decide(frame[:5])
    assert unnamed.name == "decision"


def test_decisions_are_polars_where_contexts_are():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(X, schema=["price", "wind", "sun"])
    two = clone(LINEAR).fit(frame, pl.DataFrame(TWO, schema=["lamb", "steak"]))
    assert two.decide(frame).columns == ["lamb", "steak"]
    one = clone(LINEAR).fit(frame, pl.Series("lamb", Y)).decide(frame)
    assert isinstance(one, pl.Series)
    assert one.name == "lamb"
    assert clone(LINEAR).fit(frame, TWO).decide(frame).columns == ["decision0", "decision1"]


def test_names_of_outcomes_are_saved(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["price", "wind", "sun"])
    model = clone(LINEAR).fit(frame, pd.DataFrame(TWO, columns=["lamb", "steak"]))
    model.save(tmp_path / "m.surefoot")
    assert list(surefoot.load(tmp_path / "m.surefoot").decide(frame).columns) == ["lamb", "steak"]


def test_arrays_stay_arrays():
    assert isinstance(clone(LINEAR).fit(X, Y).decide(X), np.ndarray)


# --- inspection, weights, pipelines ---------------------------------------------------------------


@pytest.mark.parametrize("model", [LINEAR, RobustNewsvendor(1.0, 0.2), Forest(n_trees=10)], ids=str)
def test_inspection_tools_work(model):
    fitted = clone(model).fit(X, Y)
    assert is_regressor(fitted)
    found = partial_dependence(fitted, X, [0], grid_resolution=5)
    assert found["average"].shape == (1, 5)
    importance = permutation_importance(fitted, X, Y, n_repeats=3, random_state=0)
    assert importance.importances_mean.shape == (3,)
    assert importance.importances_mean.max() > 0.0


def test_partial_dependence_of_a_linear_policy_is_its_coefficient():
    fitted = clone(LINEAR).fit(X, Y)
    found = partial_dependence(fitted, X, [1], grid_resolution=5)
    slopes = np.diff(found["average"][0]) / np.diff(found["grid_values"][0])
    np.testing.assert_allclose(slopes, fitted.coef_[1], rtol=1e-9)


def test_weights_are_routed_through_a_pipeline():
    weights = np.where(np.arange(60) < 30, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(LINEAR).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        piped = make_pipeline(scaler, model).fit(X, Y, sample_weight=weights)
    alone = make_pipeline(StandardScaler(), clone(LINEAR)).fit(X[:30], Y[:30])
    np.testing.assert_allclose(piped.predict(X), alone.predict(X), rtol=1e-6)


def test_scores_are_minus_costs():
    scores = cross_val_score(LINEAR, X, Y, cv=3)
    assert (scores < 0.0).all()


# --- what people read -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "page"),
    [
        (LINEAR, "surefoot.estimators.RobustNewsvendor"),
        (PreparedPolicy(LINEAR), "surefoot.estimators.preparation.PreparedPolicy"),
        (SAA(), "surefoot.baselines.SAA"),
    ],
)
def test_the_html_of_a_model_links_to_its_page(model, page):
    assert f'href="https://surefoot.github.io/surefoot/api/{page}.html"' in model._repr_html_()


def test_text_columns_lead_to_prepared_policies():
    with pytest.raises(InvalidInputError, match=r"got text.*PreparedPolicy\(model\)"):
        clone(LINEAR).fit([["Sat"], ["Mon"]], [1.0, 2.0])
    pd = pytest.importorskip("pandas")
    with pytest.raises(InvalidInputError, match=r"text or dates in 'day'.*PreparedPolicy\(model\)"):
        clone(LINEAR).fit(pd.DataFrame({"day": ["Sat", "Mon"]}), [1.0, 2.0])


def test_copies_are_whole():
    fitted = clone(LINEAR).fit(X, Y)
    np.testing.assert_array_equal(copy.deepcopy(fitted).coef_, fitted.coef_)
