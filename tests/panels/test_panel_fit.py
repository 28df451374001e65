"""One policy for each series: that of the series alone, whatever stands around it."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config

from surefoot import PreparedPolicy, RobustNewsvendor, RobustPolicy, RollingWindow, fit_many
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.exceptions import DataWarning, InvalidInputError, InvalidTypeError
from surefoot.panels import PanelColumns, fitting, panel_fit
from surefoot.panels.running import PanelProgress
from surefoot.random import rng_for

from .conftest import panel

BY = ("shop", "product")


def fit(data, model, **options):
    return fit_many(data, BY, "sales", model=model, time="date", **options)


def same(one, two, data):
    """Tables with the same records and, to the last bit, the same decisions."""
    assert [(r.key, r.status, r.reason, r.warnings) for r in one.records] == [
        (r.key, r.status, r.reason, r.warnings) for r in two.records
    ]
    np.testing.assert_array_equal([r.gap for r in one.records], [r.gap for r in two.records])
    np.testing.assert_array_equal(one.decide(data), two.decide(data))


@pytest.fixture(scope="module")
def table(frame, quick):
    return fit(frame, quick)


# Each series is its own fit


def own_fit(frame, model, shop, product, seed=0):
    own = frame[(frame["shop"] == shop) & (frame["product"] == product)].sort_values("date")
    state = int(rng_for(seed, "series", shop, str(product)).integers(2**31))
    contexts = own[["date", "price", "promo"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a window may lie in one month
        policy = PreparedPolicy(model.set_params(random_state=state))
        policy.fit(contexts, own["sales"], time=own["date"])
    return policy, contexts, own


@pytest.mark.parametrize("shop", ["north", "south"])
@pytest.mark.parametrize("product", [1, 10])
def test_a_policy_is_that_of_its_series_alone(table, frame, shop, product):
    alone, contexts, own = own_fit(frame, RobustNewsvendor(1.0, 0.2, radius=0.1), shop, product)
    np.testing.assert_array_equal(table.decide(own), alone.predict(contexts))
    record = next(r for r in table.records if r.key == (shop, str(product)))
    assert (record.rows, record.radius, record.status) == (30, 0.1, "fitted")
    assert record.gap == alone.model_.certificate_.gap
    assert table[shop, product].model_.radius_ == 0.1
    assert table.cost(own) == pytest.approx(alone.cost(contexts, own["sales"]))


def test_everything_is_automatic_if_only_the_cost_is_given():
    data = panel(rows=36, shops=("north",), products=(1, 2))
    found = fit_many(data, BY, "sales", cost=Newsvendor(1.0, 0.2), time="date")
    alone, contexts, own = own_fit(data, RobustPolicy(Newsvendor(1.0, 0.2), nominal="auto"), "north", 2)
    np.testing.assert_array_equal(found.decide(own), alone.predict(contexts))
    record = found.records[1]
    honest = alone.model_.nominal_
    assert record.cost == alone.model_.problem_.cost.mean(
        honest.offsets, honest.outcomes, honest.weights
    )
    assert 0.0 < record.cost < record.constant_cost
    assert record.saving == pytest.approx(1 - record.cost / record.constant_cost)
    assert "below the constant order" in repr(found)


def test_keys_are_given_in_order_and_looked_up(table):
    assert list(table) == [record.key for record in table.records]
    assert ("north", 1) in table
    assert ("north", "1") in table
    assert "north" not in table
    assert 0 not in table


def test_the_seed_comes_from_the_key(quick):
    def state(key, seed=0):
        named = PanelColumns(("shop",), "sales", None, ("price",))
        return panel_fit.FitSettings(named, quick, seed).policy(key).model.random_state

    assert len({state(("a", "1")), state(("a", "2")), state(("a1",)), state(("a", "1"), 1)}) == 4
    assert state(("a", "1")) == state(("a", "1"))


# Laws


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 100), size=st.integers(1, 7))
def test_order_of_rows_and_tasks_change_nothing(table, frame, quick, seed, size):
    shuffled = frame.sample(frac=1.0, random_state=seed)
    same(fit(shuffled, quick, task_size=size), table, frame)


def test_other_series_change_nothing(table, frame, quick):
    north = frame[frame["shop"] == "north"]
    few = fit(north, quick)
    np.testing.assert_array_equal(few.decide(north), table.decide(north))


def test_polars_gives_the_same_policies(table, frame, quick):
    given = pl.from_pandas(frame)
    found = fit(given, quick)
    same(found, table, frame)
    np.testing.assert_array_equal(found.decide(given), table.decide(frame))
    assert isinstance(found.summary(), pl.DataFrame)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_backends_give_the_same_bits(table, frame, quick, backend):
    with parallel_config(backend=backend):
        same(fit(frame, quick, n_jobs=2, task_size=2), table, frame)


# Odd series


@pytest.fixture
def odd(frame):
    """A good panel with a single row, a NaN, constants, text and an infinity among its series."""
    base = frame[(frame["shop"] == "north") & (frame["product"] == 1)]
    pieces = {
        "single row": base[:1],
        "gap": base.assign(sales=base["sales"].where(base.index != base.index[3])),
        "constant outcome": base.assign(sales=7.0),
        "constant contexts": base.assign(price=1.0, promo="no", date=base["date"].iloc[0]),
        "infinite context": base.assign(price=np.inf),
        "two rows": base[:2],
        "good": base,
    }
    return pd.concat([part.assign(shop=name) for name, part in pieces.items()])


def test_odd_series_are_rows_with_a_reason(odd, quick):
    table = fit(odd, quick)
    found = {record.key[0]: record for record in table.records}
    assert found["single row"].reason == "A series must have at least 2 rows, got 1."
    assert "must be finite, got NaN or infinity in 1 of 30 rows" in found["gap"].reason
    assert "infinity" in found["infinite context"].reason
    failed = {name for name, record in found.items() if record.status == "failed"}
    assert failed == {"single row", "gap", "infinite context"}, found["two rows"].reason
    assert any("never varied" in note for note in found["constant outcome"].warnings)
    assert any("decisions are constant" in note for note in found["constant contexts"].warnings)
    assert found["good"].warnings == ()
    constant = odd[odd["shop"] == "constant outcome"]
    np.testing.assert_allclose(table.decide(constant), 7.0, rtol=1e-6)
    assert repr(table).startswith("PolicyTable(7 series by shop, product: 4 fitted, 3 failed;")
    summary = table.summary().set_index("shop")
    assert summary.loc["gap", "status"] == "failed"
    assert np.isnan(summary.loc["gap", "gap"])


def test_an_error_of_the_user_s_own_is_a_reason_too(frame, quick, monkeypatch):
    monkeypatch.setattr(fitting, "model_bytes", lambda policy: 1 / 0)
    table = fit(frame, quick)
    assert {record.reason for record in table.records} == {"division by zero"}


def test_unknown_series_decide_nan_and_are_named(odd, frame, quick):
    table = fit(odd, quick)
    asked = pd.concat([odd[odd["shop"].isin(["good", "gap"])], frame[frame["shop"] == "south"]])
    with pytest.warns(DataWarning) as caught:
        decisions = table.decide(asked)
    message = str(caught[0].message)
    assert message.startswith("4 series have no decision: ")
    assert "gap / 1: the series was not fitted: The outcome must be finite" in message
    assert "south / 10: no such series was fitted." in message
    np.testing.assert_array_equal(np.isnan(decisions), asked["shop"] != "good")
    with pytest.warns(DataWarning, match="3 series have no decision"):
        assert np.isfinite(table.cost(asked[asked["shop"] != "gap"]))
    with pytest.raises(InvalidInputError, match="^nowhere / 1: no such series was fitted.$"):
        table["nowhere", 1]


def test_odd_rows_at_decision_time_stop_no_other_series(table, frame):
    north = (frame["shop"] == "north") & (frame["product"] == 1)
    odd = frame.assign(price=frame["price"].where(~north, np.inf))
    with pytest.warns(
        DataWarning, match="1 series has no decision: north / 1: X must be finite"
    ) as told:
        decisions = table.decide(odd)
    assert f" in row {north.argmax()}, column 'price'." in str(told[0].message)  # of the whole frame
    np.testing.assert_array_equal(decisions, np.where(north, np.nan, table.decide(frame)))
    gap = frame.assign(sales=frame["sales"].where(~north))
    with pytest.warns(DataWarning, match="north / 1: The outcome must be finite"):
        assert table.cost(gap) == pytest.approx(table.cost(frame[~north]))


@pytest.mark.parametrize("ask", ["decide", "judge"])
def test_what_all_series_warn_of_is_said_once(table, frame, ask):
    new = frame.assign(promo=frame["promo"].where(frame["product"] == 1, "half"))
    with pytest.warns(DataWarning) as caught:
        getattr(table, ask)(new)
    assert [str(one.message).split(": ")[:2] for one in caught] == [[
        "4 series (north / 2, north / 10, south / 2, south / 10)", "Not seen by the fit",
    ]]  # fmt: skip
    assert caught[0].filename == __file__


def test_a_warning_names_its_series_and_many_are_counted(table, frame):
    south = (frame["shop"] == "south") & (frame["product"] == 2)
    with pytest.warns(DataWarning, match="^south / 2: Not seen by the fit: 'promo' is 'half'"):
        table.decide(frame.assign(promo=frame["promo"].where(~south, "half")))
    with pytest.warns(DataWarning) as caught:
        table.decide(frame.assign(promo=frame["shop"] + frame["product"].astype(str)))
    messages = [str(one.message) for one in caught]
    assert [message.split(":")[0] for message in messages[:2]] == ["north / 1", "north / 2"]
    assert messages[5:] == ["1 more series warns of values of their own."]


def test_all_series_may_be_odd(frame, quick):
    table = fit(frame.assign(sales=np.nan), quick)
    assert repr(table) == "PolicyTable(6 series by shop, product: 0 fitted, 6 failed)"
    with pytest.warns(DataWarning, match="6 series have no decision: .* And 1 more.$"):
        assert np.isnan(table.decide(frame)).all()
    with pytest.raises(InvalidInputError, match="cost and evaluate need a series that was fitted"):
        table.evaluate(frame, RollingWindow(10, 5))


# Interruptions


def test_finished_series_are_never_fitted_again(frame, quick, table, tmp_path, monkeypatch):
    first = fit(frame[frame["shop"] == "north"], quick, folder=tmp_path, task_size=2)
    asked = []
    fitted = fitting.fit_series

    def watched(series, *rest):
        asked.append(series.key)
        return fitted(series, *rest)

    monkeypatch.setattr(panel_fit, "fit_series", watched)
    same(first, fit(frame[frame["shop"] == "north"], quick), frame[frame["shop"] == "north"])
    asked.clear()
    whole = fit(frame, quick, folder=tmp_path, task_size=2)
    assert asked == [("south", "1"), ("south", "2"), ("south", "10")]
    same(whole, table, frame)
    asked.clear()
    fit(frame, quick, folder=tmp_path)
    assert asked == []
    fit(frame.assign(price=frame["price"] * 2.0), quick, folder=tmp_path)
    assert len(asked) == 6  # other data
    asked.clear()
    fit(frame, RobustNewsvendor(1.0, 0.2, radius=0.2), folder=tmp_path)
    assert len(asked) == 6  # another policy


def test_a_damaged_part_is_done_again(frame, quick, table, tmp_path):
    fit(frame, quick, folder=tmp_path, task_size=3)
    part = sorted(tmp_path.glob("part-*"))[0]
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.warns(DataWarning, match="A finished task cannot be read and is done again"):
        found = fit(frame, quick, folder=tmp_path, task_size=3)
    same(found, table, frame)


# What is asked for


def test_progress_tells_what_is_left(frame, quick, capsys):
    told = []
    fit(frame, quick, task_size=2, progress=told.append)
    assert [(p.tasks_done, p.tasks, p.series, p.failed) for p in told] == [
        (1, 3, 2, 0), (2, 3, 4, 0), (3, 3, 6, 0),
    ]  # fmt: skip
    assert told[-1].seconds_left == 0.0
    line = str(PanelProgress(1, 4, 100, 3, 30.0))
    assert line == "100 series (3 failed), 25 %, 30.0 s so far, about 1 min 30 s left"
    assert str(PanelProgress(4, 4, 400, 0, 75.0)) == "400 series in 1 min 15 s"
    fit(frame, quick, progress=True, task_size=2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, "in a file the end alone"
    assert re.fullmatch(r"6 series in \d+\.\d s", lines[0])


def test_a_terminal_sees_each_line_in_the_place_of_the_last(frame, quick, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    fit(frame, quick, progress=True, task_size=2)
    lines = capsys.readouterr().err.split("\r")[1:]
    assert [line.split(",")[0] for line in lines[:2]] == ["2 series", "4 series"]
    assert "left" in lines[0]
    assert {len(line.rstrip("\n")) for line in lines} == {79}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ()}, "by must name distinct columns"),
        ({"by": ("shop", "shop")}, "by must name distinct columns"),
        ({"by": "where"}, "data must have the column 'where'"),
        ({"outcome": "demand"}, "data must have the column 'demand'"),
        ({"time": "hour"}, "data must have the column 'hour'"),
        ({"contexts": ("weather",)}, "data must have the column 'weather'"),
        ({"contexts": ("sales",)}, "contexts must not hold keys or the outcome, got 'sales'"),
        ({"contexts": ()}, "contexts must name at least one column"),
        ({"model": None}, "Either cost or model must be given"),
        ({"cost": Newsvendor(1.0, 0.2)}, "Either cost or model must be given"),
        ({"task_size": 0}, "task_size must be >= 1"),
        ({"random_state": -1}, "random_state must be >= 0"),
        ({"data": "no such folder"}, "data must be a frame or a folder of Parquet files"),
    ],
)
def test_options_are_checked_by_name(frame, quick, options, message):
    given = {"data": frame, "by": BY, "outcome": "sales", "model": quick, **options}
    with pytest.raises(InvalidInputError, match=message):
        fit_many(**given)


def test_kinds_are_checked_by_name(frame, quick):
    for options, message in (
        ({"by": None}, "by must be the name of a column, or a sequence of names, got None"),
        ({"by": BY, "contexts": 3}, "contexts must be the name of a column, or a sequence of"),
        ({"by": BY, "folder": 3}, "folder must be the path of a folder or file, got 3"),
    ):
        with pytest.raises(InvalidTypeError, match=message):
            fit_many(frame, outcome="sales", model=quick, **options)
    with pytest.raises(InvalidTypeError, match="cost must be a cost such as"):
        fit_many(frame, BY, "sales", cost=1.0)
    with pytest.raises(InvalidTypeError, match="model must be a policy such as"):
        fit_many(frame, BY, "sales", model="newsvendor")


def test_time_that_is_no_date_orders_and_no_more(frame, quick):
    counted = frame.assign(day=(frame["date"] - frame["date"].min()).dt.days).drop(columns="date")
    table = fit_many(counted, BY, "sales", model=quick, time="day")
    assert table.columns.contexts == ("price", "promo")
    with_day = fit_many(counted, BY, "sales", model=quick)
    assert with_day.columns.contexts == ("price", "promo", "day")


def test_other_costs_and_one_key(frame):
    north = frame[(frame["shop"] == "north") & (frame["product"] < 3)].drop(columns=["shop", "date"])
    cost = TieredNewsvendor(((0, 1.0), (5, 3.0)), 0.2)
    table = fit_many(
        north, "product", "sales", model=RobustPolicy(cost, ball=None), contexts=("price",)
    )
    assert [record.status for record in table.records] == ["fitted", "fitted"], table.records[0].reason
    assert np.isfinite(table.decide(north)).all()


# Windows in order of time


def test_windows_are_judged_in_order_of_time(frame, table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = table.evaluate(frame, RollingWindow(train=15, test=5))
    assert found["windows"].tolist() == [3] * 6
    assert found["rows"].tolist() == [15] * 6
    assert (found["saving"] == 1 - found["cost"] / found["constant_cost"]).all()
    assert found["saving"].median() > 0.0
    own = frame[(frame["shop"] == "north") & (frame["product"] == 1)].sort_values("date")
    costs = []
    for end in (20, 25, 30):
        past, ahead = own[end - 20 : end - 5], own[end - 5 : end]
        model, *_ = own_fit(past, RobustNewsvendor(1.0, 0.2, radius=0.1), "north", 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # a month that training never saw
            costs.append(model.cost(ahead[["date", "price", "promo"]], ahead["sales"]))
    assert found["cost"][0] == pytest.approx(np.mean(costs), rel=1e-12)


def test_series_too_short_for_windows_say_so(odd, quick):
    table = fit(odd, quick)
    found = table.evaluate(odd, RollingWindow(train=10, test=5), n_jobs=1).set_index("shop")
    assert "at least 20 rows for two windows" in found.loc["single row", "reason"]
    assert found.loc["good", "reason"] == ""
    with pytest.raises(InvalidTypeError, match="window must be RollingWindow"):
        table.evaluate(odd, 5)


def test_records_are_plain(table):
    text = json.dumps([record.key for record in table.records])
    assert "north" in text
    assert len(table) == 6
    assert table.time_taken.endswith("s")


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("sales", "time must be neither a key nor the outcome, got 'sales'"),
        ("shop", "time must be neither a key nor the outcome, got 'shop'"),
        (3, "time must be the name of a column, got"),
    ],
)
def test_a_time_that_is_something_else_is_refused(frame, quick, time, message):
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        fit_many(frame, BY, "sales", model=quick, time=time)


def test_a_level_that_walks_is_followed_series_by_series():
    rng = np.random.default_rng(0)
    days, walk = pd.date_range("2024-03-01", periods=178), np.arange(178) * 0.3
    data = pd.DataFrame({"shop": "a", "date": days, "x": rng.normal(size=178)})
    data["sales"] = 100.0 + 3.0 * data["x"] + walk + 2.0 * rng.normal(size=178)
    past, ahead = data[:150], data[150:]
    found = fit_many(past, "shop", "sales", cost=Newsvendor(3.0, 1.0), time="date")
    assert found["a"].drift_ > 10.0
    still = fit_many(past, "shop", "sales", cost=Newsvendor(3.0, 1.0), contexts=["x"])
    assert found.cost(ahead) < 0.3 * still.cost(ahead)
