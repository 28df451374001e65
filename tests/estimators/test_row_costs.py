"""Costs that differ by row: stakes are weights, ratios choose the quantile."""

import pickle

import numpy as np
import pytest
import sklearn
from scipy.optimize import linprog
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

from surefoot import PreparedPolicy, RobustNewsvendor, load
from surefoot.baselines import SAA
from surefoot.diagnostics import adversary_path, price_of_robustness, theory
from surefoot.estimators.row_costs import (
    MOST_LEVELS,
    RowCosts,
    between_levels,
    cost_levels,
    within_levels,
)
from surefoot.exceptions import ConvergenceWarning, DataWarning, InvalidInputError, ModelFileError
from surefoot.forecasts import Forecaster
from surefoot.nominals import Empirical
from surefoot.online import OnlinePolicy
from surefoot.solvers import DASGD, PrimalDual
from tests.io.forging import edit

LINEAR = RobustNewsvendor(radius=0.0, solver=PrimalDual(gap_tol=1e-4))


def table(rows, ratios, seed=0):
    """Demand that depends on a column and on the ratio; stakes that do not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    ratio = rng.choice(ratios, rows)
    stake = rng.gamma(3.0, 1.0, rows) + 0.5
    y = 20.0 + 3.0 * X[:, 0] + 10.0 * ratio + 2.0 * rng.normal(size=rows)
    return X, y, stake * ratio, stake * (1.0 - ratio)


def best_linear_cost(X, y, backorder, holding):
    """Least mean cost over policies theta'x + t, each row with its own costs: a linear program."""
    n, s = X.shape
    matrix = np.hstack([X, np.ones((n, 1)), np.eye(n), -np.eye(n)])
    prices = np.concatenate([np.zeros(s + 1), backorder / n, holding / n])
    bounds = [(None, None)] * (s + 1) + [(0.0, None)] * (2 * n)
    return linprog(prices, A_eq=matrix, b_eq=y, bounds=bounds).fun


# --- one ratio: stakes are weights ----------------------------------------------------------------


def test_one_ratio_is_the_weighted_linear_program():
    X, y, b, h = table(80, [0.75])
    model = clone(LINEAR).fit(X, y, backorder=b, holding=h)
    assert model.cost_levels_ == pytest.approx([0.75])
    assert model.cost(X, y, backorder=b, holding=h) == pytest.approx(
        best_linear_cost(X, y, b, h), rel=1e-3
    )
    np.testing.assert_allclose(model.predict(X), model.predict(X, b, h))


def test_one_ratio_is_a_model_with_weights():
    X, y, b, h = table(80, [0.75])
    stake = b + h
    weighted = RobustNewsvendor(0.75 * stake.mean(), 0.25 * stake.mean()).fit(
        X, y, sample_weight=stake / stake.mean()
    )
    model = RobustNewsvendor().fit(X, y, backorder=b, holding=h)
    np.testing.assert_allclose(model.predict(X), weighted.predict(X), rtol=1e-9)
    assert model.levels_[0].certificate_.upper == pytest.approx(weighted.certificate_.upper, rel=1e-9)


def test_whole_stakes_do_not_count_observations():
    costs = RowCosts.of([1.0, 1.0, 3.0], [1.0, 1.0, 3.0], (None, None), 3)
    np.testing.assert_allclose(costs.masses(np.ones(3)), [0.6, 0.6, 1.8])
    equal = RowCosts.of(3.0, 1.0, (None, None), 2)
    np.testing.assert_array_equal(equal.masses(np.array([2.0, 1.0])), [2.0, 1.0])


def test_the_same_costs_in_each_row_are_those_of_the_constructor():
    X, y, *_ = table(60, [0.5])
    plain = RobustNewsvendor(3.0, 1.0).fit(X, y)
    model = RobustNewsvendor(9.0, 1.0).fit(X, y, backorder=np.full(60, 3.0))
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert model.cost(X, y) == pytest.approx(plain.cost(X, y))


# --- several ratios -------------------------------------------------------------------------------


def test_each_level_is_the_linear_program_of_its_ratio():
    X, y, b, h = table(120, [0.5, 0.9])
    model = clone(LINEAR).fit(X, y, backorder=b, holding=h)
    assert model.cost_levels_ == pytest.approx([0.5, 0.9])
    ratios, stake = b / (b + h), b + h
    for level, policy in zip(model.cost_levels_, model.levels_, strict=True):
        z = policy.predict(X)
        costs = RowCosts(stake * level, stake * (1.0 - level))
        assert costs.mean(z, y, np.full(120, 1 / 120)) == pytest.approx(
            best_linear_cost(X, y, costs.backorder, costs.holding), rel=1e-3
        )
        mine = np.isclose(ratios, level)
        np.testing.assert_allclose(model.predict(X, b, h)[mine], z[mine])


def test_no_worse_than_one_linear_policy_of_context_and_ratio():
    X, y, b, h = table(200, [0.5, 0.7, 0.95])
    columns = np.column_stack([X, b / (b + h)])
    model = clone(LINEAR).fit(columns, y, backorder=b, holding=h)
    joint = best_linear_cost(columns, y, b, h)
    assert model.cost(columns, y, backorder=b, holding=h) <= 1.02 * joint


@pytest.mark.parametrize("radius", ["auto", 0.1])
@pytest.mark.parametrize("seed", [0, 102])
def test_a_dearer_shortage_never_orders_less(radius, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    y = np.maximum(0.0, 20.0 + X @ [3.0, -2.0, 1.0] + 3.0 * rng.normal(size=30))
    model = RobustNewsvendor(radius=radius).fit(X, y, backorder=rng.uniform(0.2, 20.0, 30), holding=1.0)
    rising = np.linspace(2.0, 15.0, 40)
    for context in rng.normal(size=(10, 3)):
        orders = model.predict(np.tile(context, (40, 1)), rising, 1.0)
        assert (np.diff(orders) >= -1e-9).all()


@pytest.mark.nightly
@pytest.mark.parametrize("model", [RobustNewsvendor(), RobustNewsvendor(radius=0.1)], ids=str)
def test_decisions_are_near_the_best_there_are(model):
    """Ratios all different: between levels, decisions follow the true quantile of each row."""
    ratios = np.linspace(0.5, 0.95, 1000)
    X, y, b, h = table(300, ratios)
    new, outcome, short, left = table(4000, ratios, seed=1)
    X, new = np.column_stack([X, b / (b + h)]), np.column_stack([new, short / (short + left)])
    model = clone(model).fit(X, y, backorder=b, holding=h)
    assert len(model.levels_) == MOST_LEVELS
    ratio, weights = short / (short + left), np.full(4000, 1 / 4000)
    best = 20.0 + 3.0 * new[:, 0] + 10.0 * ratio + 2.0 * ndtri(ratio)
    least = RowCosts(short, left).mean(best, outcome, weights)
    one = RobustNewsvendor(b.mean(), h.mean()).fit(X[:, :2], y).predict(new[:, :2])
    with pytest.warns(DataWarning, match="have a cost ratio"):
        cost = model.cost(new, outcome, backorder=short, holding=left)
    assert cost < 1.05 * least
    assert RowCosts(short, left).mean(one, outcome, weights) > 1.3 * least


def test_levels_and_what_lies_between():
    np.testing.assert_array_equal(cost_levels(np.array([0.8, 0.5, 0.8 + 1e-12])), [0.5, 0.8])
    many = cost_levels(np.linspace(0.2, 0.9, 50))
    assert len(many) == MOST_LEVELS
    assert (many[0], many[-1]) == (0.2, 0.9)
    exact = 5.0 + 2.0 * ndtri(many)  # the quantiles of a normal outcome
    asked = np.array([0.2, 0.33, 0.5, 0.71, 0.9])
    found = between_levels(np.tile(exact, (5, 1)), asked, many)
    np.testing.assert_allclose(found, 5.0 + 2.0 * ndtri(asked), rtol=1e-9)
    with pytest.warns(
        DataWarning, match=r"1 of 2 rows .* of fit \(0.2 to 0.9\), such as 0.95 in row 1"
    ):
        np.testing.assert_array_equal(within_levels(np.array([0.5, 0.95]), many), [0.5, 0.9])


def test_rows_without_weight_set_no_level():
    X, y, b, h = table(60, [0.5, 0.9])
    ratio = b / (b + h)
    model = clone(LINEAR).fit(X, y, (ratio < 0.7).astype(float), backorder=b, holding=h)
    assert model.cost_levels_ == pytest.approx([0.5])


# --- scikit-learn ---------------------------------------------------------------------------------


def test_costs_are_routed_through_cross_validation_and_searches():
    X, y, b, h = table(90, [0.5, 0.9])
    columns = {"backorder": True, "holding": True}
    with sklearn.config_context(enable_metadata_routing=True):
        model = RobustNewsvendor(radius=0.1).set_fit_request(**columns).set_score_request(**columns)
        costs = {"backorder": b, "holding": h}
        found = cross_validate(model, X, y, params=costs, cv=KFold(3), error_score="raise")
        search = GridSearchCV(model, {"radius": [0.0, 0.1]}, cv=KFold(3), error_score="raise")
        search.fit(X, y, **costs)
    train, test = next(KFold(3).split(X))
    alone = RobustNewsvendor(radius=0.1).fit(X[train], y[train], backorder=b[train], holding=h[train])
    assert found["test_score"][0] == pytest.approx(
        -alone.cost(X[test], y[test], backorder=b[test], holding=h[test])
    )
    assert search.best_estimator_.cost_levels_ == pytest.approx([0.5, 0.9])


def test_frames_names_and_copies():
    pd = pytest.importorskip("pandas")
    X, y, b, h = table(60, [0.5, 0.9])
    frame = pd.DataFrame(X, columns=["price", "wind"])
    model = RobustNewsvendor(radius=0.1, frozen=["wind"]).fit(
        frame, pd.Series(y, name="sold"), backorder=pd.Series(b), holding=h
    )
    assert [policy.movable_.tolist() for policy in model.levels_] == [[True, False]] * 2
    decided = model.decide(frame, b, h)
    assert decided.name == "sold"
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame, b, h), decided)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"wind": "sun"}), b, h)


def test_a_category_beside_costs_of_each_row():
    X, y, b, h = table(80, [0.5, 0.9])
    shop = np.where(X[:, 1] > 0, "north", "south")
    rows = [[float(x), s] for x, s in zip(X[:, 0], shop, strict=True)]
    model = PreparedPolicy(RobustNewsvendor(radius=0.1)).fit(rows, y, backorder=b, holding=h)
    assert len(model.model_.levels_) == 2
    assert model.score(rows, y, backorder=b, holding=h) == -model.cost(rows, y, backorder=b, holding=h)
    np.testing.assert_array_equal(
        model.decide(rows, b, h), model.model_.predict(model.prepare(rows), b, h)
    )
    with pytest.raises(InvalidInputError, match="must be None for a model other than RobustNewsvendor"):
        PreparedPolicy(SAA(1.0, 1.0)).fit(rows, y, backorder=b)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratios", [[0.5], [0.5, 0.9]], ids=str)
def test_a_file_has_all_levels(tmp_path, ratios):
    pl = pytest.importorskip("polars")
    X, y, b, h = table(60, ratios)
    frame = pl.DataFrame({"heat": X[:, 0], "shop": np.where(X[:, 1] > 0, "north", "south")})
    plain = RobustNewsvendor(nominal=Forecaster()).fit(X, y, backorder=b, holding=h)
    policy = PreparedPolicy(RobustNewsvendor(radius=0.1))
    prepared = policy.fit(frame, pl.Series("sold", y), backorder=b, holding=h)
    for model, rows in ((plain, X), (prepared, frame)):
        model.save(tmp_path / "m")
        again = load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(rows, b, h), model.predict(rows, b, h))
        assert again.cost(rows, y, backorder=b, holding=h) == model.cost(
            rows, y, backorder=b, holding=h
        )
    assert again.decide(frame, b, h).name == "sold"
    levels = again.model_.levels_
    assert [one.certificate_.upper for one in levels] == [
        one.certificate_.upper for one in prepared.model_.levels_
    ]


def test_far_contexts_are_named_behind_a_file(tmp_path):
    X, y, b, h = table(60, [0.5, 0.9])
    rows = [[float(x), "north" if k % 2 else "south"] for k, x in enumerate(X[:, 0])]
    model = PreparedPolicy(RobustNewsvendor()).fit(rows, y, backorder=b, holding=h)
    model.save(tmp_path / "m")
    far = [[900.0, "north"]]
    for one in (model, load(tmp_path / "m")):
        with pytest.warns(DataWarning, match=r"\(column 0 is 900 in row 0\)") as caught:
            one.predict(far, b[:1], h[:1])
        assert len(caught) == 1  # not once for each level


def _other_ratio(levels):
    levels["ratios"][0] = 0.6


def _not_rising(levels):
    levels["ratios"].reverse()
    levels["models"].reverse()


def _one_too_few(levels):
    levels["models"].pop()


def _nested(levels):
    levels["models"][0] = {**levels["models"][0], "levels": levels["ratios"]}
    del levels["models"][0]["fitted"]


def _none(levels):
    levels["models"], levels["ratios"] = [], []


def _more_columns(levels):
    levels["columns"] += 1


def _text_for_columns(levels):
    levels["columns"] = "2"


@pytest.mark.parametrize(
    "change",
    [_other_ratio, _not_rising, _one_too_few, _nested, _none, _more_columns, _text_for_columns],
)
def test_levels_made_to_do_harm_are_refused(tmp_path, change):
    X, y, b, h = table(40, [0.5, 0.9])
    RobustNewsvendor(radius=0.1).fit(X, y, backorder=b, holding=h).save(tmp_path / "m")
    edit(tmp_path / "m", lambda header, arrays: change(header["levels"]))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


# --- what is refused ------------------------------------------------------------------------------


def test_the_ratio_must_be_known_to_decide():
    X, y, b, h = table(60, [0.5, 0.9])
    model = clone(LINEAR).fit(X, y, backorder=b, holding=h)
    with pytest.raises(InvalidInputError, match="backorder or holding must be given for each row"):
        model.predict(X)
    with pytest.raises(InvalidInputError, match="backorder or holding must be given for each row"):
        model.score(X, y)
    plain = RobustNewsvendor(3.0, 1.0, radius=0.0).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X, np.full(60, 6.0), 2.0), plain.predict(X))
    with pytest.raises(InvalidInputError, match=r"must be 0.75 as in fit, got 0.5 in row 0"):
        plain.predict(X, np.full(60, 1.0))


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"backorder": [1.0, 2.0]}, r"backorder must be a number or one for each row of X \(60\)"),
        ({"holding": [1.0] * 59 + [0.0]}, "holding must be > 0 and finite, got 0 in row 59"),
        ({"holding": [float("nan")] * 60}, "holding must"),
    ],
)
def test_costs_that_are_none(costs, message):
    X, y, *_ = table(60, [0.5])
    model = clone(LINEAR).fit(X, y)
    before = model.predict(X)
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, y, **costs)
    np.testing.assert_array_equal(model.predict(X), before)  # a fit that fails loses nothing


def test_one_product_and_no_nominal_of_ones_own():
    X, y, b, h = table(60, [0.5])
    with pytest.raises(InvalidInputError, match=r"y must have shape \(rows,\) beside costs"):
        clone(LINEAR).fit(X, np.column_stack([y, y]), backorder=b)
    with pytest.raises(InvalidInputError, match="nominal must be 'auto', None or a Forecaster"):
        RobustNewsvendor(radius=0.1, nominal=Empirical(X, y)).fit(X, y, holding=h)


@pytest.mark.parametrize("prepared", [False, True])
def test_what_one_policy_answers_is_asked_of_a_level(tmp_path, prepared):
    X, y, b, h = table(60, [0.5, 0.9])
    estimator = PreparedPolicy(clone(LINEAR)) if prepared else clone(LINEAR)
    model = estimator.fit(X, y).fit(X, y, backorder=b, holding=h)
    for asked in (
        model.guarantee, model.augmentation,
        lambda: model.worst_case(X, y), lambda: model.augmentation(X, y),
        lambda: model.partial_fit(X, y),
        lambda: model.report(X, y, tmp_path / "report.html"),
    ):  # fmt: skip
        with pytest.raises(
            InvalidInputError, match=r"must have one policy.*ask the policies in levels_"
        ):
            asked()
    assert not list(tmp_path.iterdir())


def test_streams_and_diagnostics_ask_a_level():
    X, y, b, h = table(60, [0.5, 0.9])
    model = clone(LINEAR).fit(X, y, backorder=b, holding=h)
    options = model.levels_[0].stream_options()
    for asked in (
        lambda: OnlinePolicy.from_model(model), model.stream, model.stream_options,
        model.stream_arrays, lambda: model.new_stream(options),
        lambda: theory(model, X, y), lambda: adversary_path(model, X, y),
        lambda: price_of_robustness(model, X, y, X, y),
    ):  # fmt: skip
        with pytest.raises(
            InvalidInputError, match=r"must have one policy.*ask the policies in levels_"
        ):
            asked()
    with pytest.raises(AttributeError, match="no certificate_ as a whole: ask the policies in levels_"):
        _ = model.certificate_
    with pytest.raises(AttributeError, match="no attribute 'explain'"):  # levels have none, either
        _ = model.explain
    plain = model.fit(X, y)
    assert not hasattr(plain, "levels_")
    assert plain.certificate_.gap < 0.01


def test_what_can_be_said_of_all_levels(tmp_path):
    X, y, b, h = table(60, [0.5, 0.9])
    model = clone(LINEAR).set_params(random_state=None).fit(X, y, backorder=b, holding=h)
    again = clone(model).set_params(random_state=model.seed_).fit(X, y, backorder=b, holding=h)
    assert np.array_equal(again.predict(X, b, h), model.predict(X, b, h))
    again.save(tmp_path / "m.surefoot")
    for one in (again, load(tmp_path / "m.surefoot")):
        assert one.converged_ is True
        assert one.n_steps_ == sum(level.n_steps_ for level in one.levels_)
        assert one.status_.startswith("A policy for each of 2 cost ratios, see levels_; number 0: ")
        assert (one.n_outcomes, one.single, one.seed_) == (1, True, model.seed_)
    short = clone(LINEAR).set_params(solver=DASGD(gap_tol=1e-9, max_steps=20))
    with pytest.warns(ConvergenceWarning):
        short.fit(X, y, backorder=b, holding=h)
    assert short.converged_ is False
