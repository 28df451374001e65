"""Policies on mixed tables: freezing, surprises, scikit-learn, saving."""

import warnings

import numpy as np
import pandas
import polars
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_estimator

import surefoot
from surefoot import Box, Contamination, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.baselines import ERM, SAA, Forest, Shapley
from surefoot.costs import Newsvendor
from surefoot.estimators.preparation import PreparedPolicy, Table
from surefoot.exceptions import (
    DataWarning,
    InvalidInputError,
    InvalidTypeError,
    ModelFileError,
    UnsupportedProblemError,
)
from surefoot.nominals import Empirical
from surefoot.policies import Linear, Polynomial

EFFECTS = {"north": 0.0, "south": 6.0, "west": 3.0}


def mixed(rows=90, seed=0):
    rng = np.random.default_rng(seed)
    shop = rng.choice(list(EFFECTS), size=rows)
    price = rng.uniform(1.0, 3.0, size=rows)
    promo = rng.random(rows) < 0.4
    y = 10.0 - 2.0 * price + np.array([EFFECTS[name] for name in shop]) + 4.0 * promo
    return {"price": price, "shop": shop, "promo": promo}, y + rng.normal(scale=0.5, size=rows)


@pytest.fixture(scope="module")
def data():
    columns, y = mixed()
    return pandas.DataFrame(columns), y


@pytest.fixture(scope="module")
def model(data):
    return PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.1)).fit(*data)


def test_a_set_that_freezes_no_column_is_taken_as_it_is(data):
    robust = RobustPolicy(Newsvendor(1.0, 0.2), ball=Contamination(0.05))
    model = PreparedPolicy(robust).fit(*data)
    assert model.model_.problem_.ball == Contamination(0.05)
    assert model.model_.converged_


def test_effects_of_categories_are_learned(data, model):
    base = {"price": [2.0], "promo": [False]}
    orders = {s: model.predict(pandas.DataFrame({**base, "shop": [s]})[["price", "shop", "promo"]])[0]
              for s in EFFECTS}  # fmt: skip
    assert orders["south"] - orders["north"] == pytest.approx(6.0, abs=0.8)
    assert orders["west"] - orders["north"] == pytest.approx(3.0, abs=0.8)
    assert model.cost(*data) < 0.3 * PreparedPolicy(SAA(1.0, 0.2)).fit(*data).cost(*data)


def test_flags_are_frozen_and_numbers_move(data, model):
    assert model.prepared_names == ("price", "shop=north", "shop=south", "shop=west", "promo=True")
    assert model.model_.movable_.tolist() == [True, False, False, False, False]
    sample = model.worst_case(*data)
    np.testing.assert_array_equal(sample.contexts[:, 1:], model.prepare(data[0])[sample.rows, 1:])
    assert not np.allclose(sample.contexts[:, 0], model.prepare(data[0])[sample.rows, 0])


def test_without_freezing_all_columns_move(data):
    free = PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.1), freeze=False).fit(*data)
    assert free.model_.movable_.all()


@pytest.mark.parametrize("column", ["price", 0, -3])
def test_the_models_own_frozen_columns_are_columns_of_x(data, column):
    for inner in (
        RobustNewsvendor(1.0, 0.2, radius=0.1, frozen=(column,)),
        RobustPolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1, frozen=(column,))),
    ):
        fitted = PreparedPolicy(inner, freeze=False).fit(*data)
        assert fitted.model_.movable_.tolist() == [False, True, True, True, True]
        assert inner.get_params(deep=False).get("frozen", (column,)) == (column,)


def test_a_policy_without_a_ball_gets_the_usual_one(data):
    fitted = PreparedPolicy(RobustPolicy(Newsvendor(1.0, 0.2))).fit(*data)
    assert fitted.model_.movable_.sum() == 1
    assert fitted.model_.radius_ >= 0


@pytest.mark.parametrize("inner", [SAA(1.0, 0.2), ERM(1.0, 0.2), Forest(1.0, 0.2, n_trees=5),
                                   Shapley(1.0, 0.2, radius=0.1)])  # fmt: skip
def test_baselines_are_prepared_too_and_have_nothing_to_freeze(data, inner):
    fitted = PreparedPolicy(inner).fit(*data)
    assert fitted.predict(data[0]).shape == (90,)
    assert fitted.score(*data) == -fitted.cost(*data)
    with pytest.raises(UnsupportedProblemError, match=f"robust model .* got {type(inner).__name__}"):
        fitted.worst_case(*data)
    assert not hasattr(fitted, "partial_fit")
    with pytest.raises(UnsupportedProblemError, match="save needs"):
        fitted.save("nowhere")


def test_all_numbers_give_the_decisions_of_the_plain_model():
    rng = np.random.default_rng(3)
    X = rng.uniform(1.0, 5.0, size=(60, 3)) * [1.0, 10.0, 0.1]
    y = X @ [1.0, 0.2, 5.0] + rng.normal(size=60)
    plain = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(X, y)
    prepared = PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.1)).fit(X, y)
    assert prepared.cost(X, y) == pytest.approx(plain.cost(X, y), rel=0.01)
    assert prepared.model_.certificate_.upper == pytest.approx(plain.certificate_.upper, rel=0.02)


def test_an_unknown_level_gets_the_average_decision(data, model):
    rows = pandas.DataFrame({"price": [2.0], "shop": ["east"], "promo": [True]})
    with pytest.warns(DataWarning, match=r"Not seen.*'shop' is 'east'"):
        unknown = model.predict(rows)
    shares = dict(data[0]["shop"].value_counts(normalize=True))
    known = sum(share * model.predict(rows.assign(shop=shop))[0] for shop, share in shares.items())
    assert unknown[0] == pytest.approx(known)


def test_one_warning_speaks_of_all_surprises(data, model):
    rows = pandas.DataFrame({"price": [None], "shop": [None], "promo": [None]}, dtype=object)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        decisions = model.predict(rows)
    assert len(caught) == 1
    assert all(name in str(caught[0].message) for name in ("'price'", "'shop'", "'promo'"))
    assert np.isfinite(decisions).all()


def test_known_rows_raise_no_warning(data, model):
    model.predict(data[0])  # warnings are errors here


def test_pandas_polars_arrays_and_tables_agree():
    columns, y = mixed()
    rows = [list(row) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]
    decisions = []
    for X in (pandas.DataFrame(columns), polars.DataFrame(columns), Table.of(columns), rows):
        fitted = PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.1)).fit(X, y)
        decisions.append(fitted.decide(X))
    for other in decisions[1:]:
        np.testing.assert_array_equal(other, decisions[0])


def test_columns_in_another_order_or_number_are_refused(data, model):
    X = data[0]
    with pytest.raises(ValueError, match="order|match"):
        model.predict(X[["shop", "price", "promo"]])
    with pytest.raises(ValueError, match="feature|names"):
        model.predict(X[["price", "shop"]])
    columns, y = mixed()
    table = Table.of(columns)
    fitted = PreparedPolicy(SAA(1.0, 0.2)).fit(table, y)
    with pytest.raises(InvalidInputError, match="columns of fit .* in their order, got shop, price"):
        fitted.predict(Table.of({name: columns[name] for name in ("shop", "price", "promo")}))


def test_columns_that_say_nothing_are_left_out_with_a_warning(data):
    X = data[0].assign(country="DE", year=2024)
    with pytest.warns(DataWarning, match="hardly varied are left out: 'country', 'year'"):
        fitted = PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.1)).fit(X, data[1])
    assert "country=DE" not in fitted.prepared_names


def test_row_names_are_called_what_they_are(data):
    X = data[0].assign(id=[f"r{k}" for k in range(90)])
    with pytest.warns(DataWarning, match=r"\('id'\) name rows"):
        PreparedPolicy(SAA(1.0, 0.2)).fit(X, data[1])


@pytest.mark.parametrize("inner", [RobustNewsvendor(1.0, 0.2), ERM(1.0, 0.2), SAA(1.0, 0.2)])
def test_with_nothing_left_decisions_are_the_constant_order(inner):
    X = pandas.DataFrame({"shop": ["a"] * 12})
    y = np.arange(12.0)
    with pytest.warns(DataWarning, match="No column is left: decisions are constant"):
        fitted = PreparedPolicy(inner).fit(X, y)
    best = SAA(1.0, 0.2).fit(np.zeros((12, 1)), y).cost(np.zeros((12, 1)), y)
    assert fitted.cost(X, y) == pytest.approx(best, rel=0.02)
    assert np.ptp(fitted.predict(X)) == 0.0


def test_a_weight_of_two_is_the_row_twice(data):
    X, y = data
    twice = np.arange(90) < 30
    weighted = PreparedPolicy(ERM(1.0, 0.2)).fit(X, y, 1.0 + twice)
    repeated = PreparedPolicy(ERM(1.0, 0.2)).fit(pandas.concat([X, X[twice]]), np.append(y, y[twice]))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    assert weighted.plan_.categories[0].levels == repeated.plan_.categories[0].levels


def test_clone_pipeline_and_grid_search(data):
    X, y = data
    policy = PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.1), min_rows=2)
    copy = clone(policy).set_params(model__radius=0.3, freeze=False)
    assert (copy.model.radius, copy.freeze, copy.min_rows) == (0.3, False, 2)
    assert policy.model.radius == 0.1
    assert Pipeline([("policy", policy)]).fit(X, y).predict(X).shape == (90,)
    search = GridSearchCV(policy, {"model__radius": [0.0, 50.0], "freeze": [True, False]}, cv=3)
    assert search.fit(X, y).best_params_["model__radius"] == 0.0


@pytest.mark.parametrize("inner", [RobustNewsvendor(1.0, 0.2, radius=0.1), SAA(1.0, 0.2)])
def test_it_is_a_good_scikit_learn_estimator(inner):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(PreparedPolicy(inner))


def test_streams_learn_on_with_the_preparation_of_the_first_rows(data):
    X, y = data
    policy = PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.05))
    policy.partial_fit(X[:40], y[:40])
    plan = policy.plan_
    before = policy.cost(X, y)
    for _ in range(20):
        policy.partial_fit(X, y)
    assert policy.plan_ is plan
    assert policy.cost(X, y) < before


def test_a_fit_that_fails_leaves_no_policy_behind(data):
    policy = PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.1)).fit(*data)
    with pytest.raises(InvalidInputError):
        policy.fit(data[0], np.full(90, np.nan))
    with pytest.raises(AttributeError, match="not fitted"):
        policy.predict(data[0])


@pytest.mark.parametrize(
    ("policy", "error", "message"),
    [
        (PreparedPolicy(), InvalidTypeError, "model must be a policy such as"),
        (PreparedPolicy(PreparedPolicy(SAA())), InvalidTypeError, "must not be prepared already"),
        (PreparedPolicy(SAA(), freeze=1), InvalidTypeError, "freeze must be True or False"),
        (PreparedPolicy(SAA(), scale="no"), InvalidTypeError, "scale must be True or False"),
        (PreparedPolicy(SAA(), min_rows=0), InvalidInputError, "min_rows must be >= 1"),
        (PreparedPolicy(SAA(), categories="shop"), InvalidTypeError, r"such as \('shop',\)"),
        (PreparedPolicy(SAA(), categories=("stop",)), InvalidInputError, "categories must name"),
        (
            PreparedPolicy(RobustNewsvendor(1.0, 0.2, frozen=("stop",))),
            InvalidInputError,
            "frozen must name columns of X",
        ),
        (
            PreparedPolicy(
                RobustPolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1, support=Box(0, 1)))
            ),
            InvalidInputError,
            "support=None",
        ),
        (
            PreparedPolicy(
                RobustPolicy(Newsvendor(1.0, 0.2), nominal=Empirical([[1.0], [2.0]], [1.0, 2.0]))
            ),
            InvalidInputError,
            "nominal must be None",
        ),
        (
            PreparedPolicy(RobustPolicy(Newsvendor(1.0, 0.2), Linear(features=Polynomial(2)))),
            InvalidInputError,
            "freeze must be False",
        ),
    ],
)
def test_what_cannot_be_prepared_is_refused_by_name(data, policy, error, message):
    with pytest.raises(error, match=message):
        policy.fit(*data)


def test_a_saved_policy_decides_the_same(data, model, tmp_path):
    path = tmp_path / "m.surefoot"
    model.save(path)
    again = surefoot.load(path)
    assert type(again) is PreparedPolicy
    X = data[0].assign(shop="east")
    with pytest.warns(DataWarning, match="'east'"):
        decisions = again.predict(X)
    with pytest.warns(DataWarning, match="'east'"):
        np.testing.assert_array_equal(decisions, model.predict(X))
    assert again.plan_ == model.plan_
    assert again.model_.certificate_ == model.model_.certificate_
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert again.model.frozen == ()
    assert again.model_.frozen == (1, 2, 3, 4)
    with pytest.raises(ValueError, match="match"):
        again.predict(data[0][["shop", "price", "promo"]])
    again.partial_fit(*data)
    again.save(path)


def test_parameters_changed_after_the_fit_are_not_saved(data, tmp_path):
    policy = PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.1)).fit(*data)
    policy.set_params(freeze=False)
    with pytest.raises(ModelFileError, match="call fit again"):
        policy.save(tmp_path / "m.surefoot")


def test_the_column_transformer_prepares_what_the_policy_sees():
    rng = np.random.default_rng(0)
    shop = rng.choice(["north", "south", "west"], 40)
    X = pandas.DataFrame({"price": rng.normal(size=40), "shop": shop, "rain": rng.random(40)})
    X.loc[:5, "rain"] = np.nan
    model = PreparedPolicy(RobustNewsvendor(1.0, 0.2, radius=0.1)).fit(X, rng.random(40))
    encoded = model.plan_.encode(Table.of(dict(X)))[0]
    np.testing.assert_array_equal(model.transformer_.transform(encoded), model.prepare(X))


def test_in_order_of_time_months_count_to_the_default_once_all_were_seen():
    days = np.datetime64("2024-01-01", "s") + np.arange(90) * np.timedelta64(86_400, "s")
    frame = pandas.DataFrame({"day": days, "heat": np.random.default_rng(0).normal(size=90)})
    sold = 20.0 + frame["heat"]

    def months(model, **known):
        names = PreparedPolicy(model).fit(frame, sold, **known).prepared_names
        return any("month" in name for name in names)

    assert months(RobustNewsvendor(1.0, 0.2))
    assert not months(RobustNewsvendor(1.0, 0.2), time=days)
    assert months(RobustNewsvendor(1.0, 0.2, radius=0.1), time=days)
