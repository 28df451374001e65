"""What users hand in becomes clean columns, whatever made them."""

import datetime
import decimal

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse

from surefoot.estimators.preparation import Table, read_table
from surefoot.exceptions import InvalidInputError, InvalidTypeError

DAYS = [datetime.date(2024, 1, 1), None, datetime.date(2024, 2, 29)]
COLUMNS = {
    "price": [1.5, None, 2.0],
    "count": [1, 2, 3],
    "shop": ["north", None, "south"],
    "open": [True, False, None],
    "day": DAYS,
}


def kinds(table):
    return {column.name: column.kind for column in table.columns}


def assert_equal(left, right):
    assert kinds(left) == kinds(right)
    for a, b in zip(left.columns, right.columns, strict=True):
        if a.kind == "number":
            np.testing.assert_array_equal(a.values, b.values)
        else:
            assert [str(v) for v in a.values] == [str(v) for v in b.values]
        np.testing.assert_array_equal(a.gaps, b.gaps)


def test_pandas_polars_and_plain_columns_read_the_same():
    plain = Table.of(COLUMNS)
    pandas_frame = pandas.DataFrame(COLUMNS)
    pandas_typed = pandas_frame.astype({"shop": "category", "open": "boolean", "count": "Int64"})
    pandas_typed["day"] = pandas.to_datetime(pandas_typed["day"])
    polars_frame = polars.DataFrame(COLUMNS, schema_overrides={"shop": polars.Categorical})
    for frame in (pandas_frame, pandas_typed, polars_frame):
        assert_equal(read_table(frame), plain)
    assert kinds(plain) == {
        "price": "number", "count": "number", "shop": "category", "open": "category", "day": "date",
    }  # fmt: skip


def test_a_pandas_category_of_numbers_is_a_category():
    frame = pandas.DataFrame({"store": pandas.Categorical([3, 1, 3])})
    assert read_table(frame).columns[0].values.tolist() == ["3", "1", "3"]


def test_one_level_has_one_name_whatever_its_type():
    column = Table.of({"store": [1.0, 2.0, np.nan]}).columns[0].as_category()
    assert column.values.tolist() == ["1", "2", None]
    assert Table.of({"store": ["1", 2, None]}).columns[0].values.tolist() == ["1", "2", None]


def test_numbers_of_other_kinds_are_numbers():
    table = Table.of({"a": [decimal.Decimal("1.5"), 2, np.float32(3)], "b": [np.int8(1), None, 2]})
    assert kinds(table) == {"a": "number", "b": "number"}
    assert table.columns[0].values.tolist() == [1.5, 2.0, 3.0]


def test_gaps_of_every_spelling():
    values = [None, float("nan"), pandas.NA, pandas.NaT, 1.0]
    assert Table.of({"a": np.array(values, dtype=object)}).columns[0].gaps.tolist() == [True] * 4 + [
        False
    ]


def test_arrays_have_positions_as_names():
    table = read_table([[1, "a"], [2.5, "b"]])
    assert not table.named
    assert kinds(table) == {"0": "number", "1": "category"}
    assert read_table(np.eye(2)).plain
    assert not read_table([[1.0, None]]).plain


def test_rows_are_taken_in_the_order_asked_for():
    taken = Table.of(COLUMNS).take([2, 0])
    assert taken.shape == (2, 5)
    assert taken.columns[1].values.tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1.0], [2.0, 3.0]], "rows of equal length"),
        ([1.0, 2.0], r"got shape \(2,\)"),
        (np.zeros((0, 2)), "at least one row"),
        (np.zeros((2, 0)), "at least one row and one column"),
        (pandas.DataFrame(), "at least one row"),
        ([[np.inf], [1.0]], "infinity .* row 0, column '0'"),
        (np.array([[1j]]), "complex"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), "'a' twice"),
        (pandas.DataFrame({"t": pandas.to_timedelta([1, 2])}), "durations in 't'"),
        (pandas.DataFrame({"t": pandas.to_datetime(["2024-01-01 10:00"])}), "whole days.*'t'"),
        (pandas.DataFrame({"t": [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)]}), "whole days"),
        (np.array([[{}]], dtype=object), "got dict in '0'"),
    ],
)
def test_unusable_input_is_refused_by_name(bad, message):
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        read_table(bad)


def test_sparse_data_are_refused_with_advice():
    with pytest.raises(InvalidTypeError, match=r"toarray"):
        read_table(sparse.csr_array(np.eye(2)))


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InvalidInputError, match=r"one length, got \[1, 2\]"):
        Table.of({"a": [1.0], "b": [1.0, 2.0]})


def test_masked_entries_are_gaps():
    hidden = [False, True, False]
    table = read_table(
        np.ma.array([[1, 2], [999, 3], [4, 5]], mask=[[False] * 2, [True, False], [False] * 2])
    )
    np.testing.assert_array_equal(table.columns[0].values, [1.0, np.nan, 4.0])
    days = np.array(["2024-01-01", "1999-09-09", "2024-01-03"], "datetime64[D]")
    columns = {
        "shop": np.ma.array(["a", "hidden", "b"], mask=hidden),
        "day": np.ma.array(days, mask=hidden),
    }
    shop, day = Table.of(columns).columns
    assert (shop.kind, shop.values.tolist()) == ("category", ["a", None, "b"])
    assert day.kind == "date"
    assert day.gaps.tolist() == hidden
