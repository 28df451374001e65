"""A panel is cut by key, whatever the frame is made of; odd rows are named."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from surefoot.estimators.preparation import read_table
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.panels.series import PanelColumns, Series, key_order, key_text, raw_columns, split_series

NAMED = PanelColumns(("shop", "product"), "sales", "date", ("price", "promo"))


def test_series_hold_their_own_rows_in_order_of_time(frame):
    columns, declared = raw_columns(frame)
    assert declared == ()
    found = list(split_series(columns, NAMED))
    assert [series.key for series in found] == [
        (shop, product) for shop in ("north", "south") for product in ("1", "2", "10")
    ]
    for series in found:
        shop, product = series.key
        own = frame[(frame["shop"] == shop) & (frame["product"] == int(product))].sort_values("date")
        np.testing.assert_array_equal(series.outcomes, own["sales"])
        np.testing.assert_array_equal(series.contexts["promo"].tolist(), own["promo"].tolist())
        np.testing.assert_array_equal(series.rows, own.index)
        assert series.take(np.array([2, 0])).rows.tolist() == own.index[[2, 0]].tolist()


@pytest.mark.parametrize("make", [pl.DataFrame, read_table, pd.DataFrame])
def test_every_kind_of_frame_gives_the_same_series(frame, make):
    columns, _ = raw_columns(make(frame))
    for one, two in zip(
        split_series(columns, NAMED), split_series(raw_columns(frame)[0], NAMED), strict=True
    ):
        assert one.key == two.key
        np.testing.assert_array_equal(one.clean_outcomes(), two.clean_outcomes())
        assert [c.kind for c in one.table().columns] == [c.kind for c in two.table().columns]


def test_numbers_as_keys_are_one_whatever_their_type():
    assert key_text(3) == key_text(3.0) == key_text("3") == key_text(np.int64(3)) == "3"
    assert key_text(2.5) == "2.5"
    assert sorted([("b",), ("-2",), ("10",), ("9",)], key=key_order) == [
        ("-2",),
        ("9",),
        ("10",),
        ("b",),
    ]


def test_declared_categories_are_told():
    given = pd.DataFrame({"a": pd.Categorical([1, 2]), "b": [1.0, 2.0]})
    assert raw_columns(given)[1] == ("a",)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan, np.inf], "must be finite, got NaN or infinity in 2 of 3 rows"),
        (np.array([1, None, 2], dtype=object), "NaN or infinity in 1 of 3"),
        (np.array(["a", "b", "c"]), "^The outcome must be a number, got <U1.$"),
        (np.array([True, False]), "^The outcome must be a number, got bool.$"),
        (np.array(["a", "b", "c"], dtype=object), "must be a number, got could not convert"),
    ],
)
def test_odd_outcomes_are_named(values, message):
    series = Series(("a",), {}, np.asarray(values), np.arange(3))
    with pytest.raises(InvalidInputError, match=message):
        series.clean_outcomes()


def test_what_is_no_panel_is_refused(frame):
    with pytest.raises(InvalidTypeError, match="data must be a pandas or polars frame"):
        raw_columns([1, 2])
    with pytest.raises(InvalidTypeError, match="collect a lazy one"):
        raw_columns(pl.LazyFrame({"a": [1]}))
    with pytest.raises(InvalidInputError, match="distinct column names, got 'a' twice"):
        raw_columns(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InvalidInputError, match="data must have the column 'sales', got shop"):
        list(split_series({"shop": np.array(["a"])}, PanelColumns(("shop",), "sales", None, ())))
    for gap in (None, np.nan, pd.NaT, pd.NA):
        columns = {"shop": np.array(["a", gap], dtype=object), "sales": np.ones(2)}
        with pytest.raises(
            InvalidInputError, match="'shop' must name a series in each row, got none in row 1"
        ):
            list(split_series(columns, PanelColumns(("shop",), "sales", None, ())))


@pytest.mark.parametrize(
    "times",
    [
        np.array(["2024-01-02", "NaT", "2024-01-01"], "datetime64[ns]"),
        np.array([2.0, np.nan, 1.0]),
        np.array([2, None, 1], dtype=object),
    ],
)
def test_a_gap_in_time_is_the_fault_of_its_series(times):
    columns = {"shop": np.array(["a"] * 3 + ["b"] * 3), "sales": np.arange(6.0), "x": np.arange(6.0)}
    columns["day"] = np.concatenate([times, times[[2, 0, 0]]])
    first, second = split_series(columns, PanelColumns(("shop",), "sales", "day", ("x",)))
    with pytest.raises(InvalidInputError, match="time must be known in every row, got a gap in 1 of 3"):
        first.table()
    assert second.table().shape == (3, 1)


@pytest.mark.parametrize(
    ("times", "got"),
    [
        (
            np.array(["02.01.2024", "01.02.2024", "03.01.2024"]),
            r"'02\.01\.2024': turn texts into dates",
        ),
        (np.array([1, "never", 3], dtype=object), "'never': turn texts into dates"),
        (np.array([1.0, np.inf, 3.0]), r"inf\.$"),
    ],
)
def test_times_that_are_no_times_are_the_fault_of_their_series(times, got):
    columns = {"shop": np.array(["a"] * 3), "sales": np.arange(3.0), "x": np.arange(3.0), "day": times}
    (series,) = split_series(columns, PanelColumns(("shop",), "sales", "day", ("x",)))
    words = f"time must be a date or a finite number in every row, got {got}"
    with pytest.raises(InvalidInputError, match=words):
        series.table()


def test_rows_of_one_time_share_their_number():
    columns = {
        "shop": np.array(["a"] * 4), "sales": np.arange(4.0), "x": np.arange(4.0),
        "day": np.array(["2024-01-03", "2024-01-01", "2024-01-03", "2024-01-02"], "datetime64[D]"),
    }  # fmt: skip
    (series,) = split_series(columns, PanelColumns(("shop",), "sales", "day", ("x",)))
    assert series.rows.tolist() == [1, 3, 0, 2]
    assert series.times.tolist() == [0, 1, 2, 2]
    assert series.take(np.array([0, 3])).times.tolist() == [0, 2]
