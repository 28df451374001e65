"""The rows of a report keep the make that they came in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.report.rows import ReportRows

DAYS = np.arange("2024-01-01", "2024-01-21", dtype="datetime64[D]")
Y = np.arange(20.0)


def frames():
    columns = {"price": Y + 0.5, "open": Y % 2, "shop": ["a", "b"] * 10}
    return [pd.DataFrame(columns), pl.DataFrame(columns)]


@pytest.mark.parametrize("X", frames(), ids=["pandas", "polars"])
def test_frames_stay_frames(X):
    rows = ReportRows.of(X, Y)
    part = rows.take(np.array([3, 1]))
    assert type(part.X) is type(X)
    assert part.y[:, 0].tolist() == [3.0, 1.0]
    assert list(part.X["price"]) == [3.5, 1.5]
    assert type(rows.shuffled(2, 0)) is type(X)
    assert type(rows.moved(0.5, rows.spread, 0)) is type(X)


@pytest.mark.parametrize("X", [*frames(), np.column_stack([Y + 0.5, Y % 2])], ids=str)
def test_shuffling_keeps_the_values_of_one_column_and_all_of_the_others(X):
    rows = ReportRows.of(X, Y)
    after = ReportRows.of(rows.shuffled(0, 0), Y).table
    assert sorted(after.columns[0].values) == sorted(rows.table.columns[0].values)
    assert after.columns[0].values.tolist() != rows.table.columns[0].values.tolist()
    assert after.columns[1].values.tolist() == rows.table.columns[1].values.tolist()


def test_moves_are_of_one_size_and_leave_flags_and_text_alone():
    for X in frames():
        rows = ReportRows.of(X, Y)
        spread = rows.spread
        assert spread.tolist() == [pytest.approx(np.std(Y)), 0.0, 0.0]
        moved = ReportRows.of(rows.moved(0.5, spread, 0), Y).table
        change = moved.columns[0].values - rows.table.columns[0].values
        assert np.abs(change) == pytest.approx(np.full(20, 0.5 * spread[0]))
        assert 0 < (change > 0).sum() < 20
        assert moved.columns[1].values.tolist() == rows.table.columns[1].values.tolist()
        assert moved.columns[2].values.tolist() == rows.table.columns[2].values.tolist()


def test_lists_of_numbers_and_of_text_are_taken():
    assert ReportRows.of([[value] for value in Y], Y).X.shape == (20, 1)
    rows = ReportRows.of([[value, "a"] for value in Y], Y)
    assert len(rows.take(np.array([0, 1])).X) == 2
    assert ReportRows.of(rows.shuffled(1, 0), Y).table.shape == (20, 2)


def test_time_puts_rows_in_order_and_remembers_their_places():
    X = pd.DataFrame({"day": DAYS[::-1], "price": Y})
    rows = ReportRows.of(X, Y, "day")
    assert rows.ordered
    assert rows.days.tolist() == DAYS.tolist()
    assert rows.y[:, 0].tolist() == Y[::-1].tolist()
    assert rows.places.tolist() == list(range(19, -1, -1))


def test_time_may_be_handed_in_as_days_or_numbers():
    X = Y[:, None]
    assert ReportRows.of(X, Y, DAYS[::-1]).days[0] == DAYS[0]
    assert ReportRows.of(X, Y, [day.astype(object) for day in DAYS]).days is not None
    assert ReportRows.of(X, Y, -Y).places.tolist() == list(range(19, -1, -1))


def test_one_sorted_column_of_dates_is_the_axis_though_not_the_order():
    rows = ReportRows.of(pd.DataFrame({"day": DAYS}), Y)
    assert rows.days is not None
    assert not rows.ordered
    assert ReportRows.of(pd.DataFrame({"day": DAYS[::-1]}), Y).days is None


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("dya", r"^time must be a column of X \(day, shop\) or one moment for each row, got 'dya'"),
        ("shop", "^time must be days or numbers, got the category 'shop'"),
        (np.arange(3.0), r"^time must be one day or number for each row of X \(20\), got shape \(3,\)"),
        (np.full(20, np.nan), "^time must be known in every row, got a gap in row 0"),
    ],
)
def test_times_that_are_none_are_refused(time, message):
    X = pd.DataFrame({"day": DAYS, "shop": ["a", "b"] * 10})
    with pytest.raises(InvalidInputError, match=message):
        ReportRows.of(X, Y, time)


def test_too_few_rows_and_missing_outcomes_are_refused():
    with pytest.raises(InvalidInputError, match="^X must have at least 10 rows to report on, got 3"):
        ReportRows.of(np.ones((3, 1)), np.ones(3))
    with pytest.raises(InvalidTypeError, match="^y must be the outcomes"):
        ReportRows.of(np.ones((20, 1)), None)
    with pytest.raises(InvalidInputError, match="^y must be finite .*, got NaN in row 19"):
        ReportRows.of(np.ones((20, 1)), np.append(Y[1:], np.nan))
    with pytest.raises(InvalidInputError, match="^y must have one row per row of X"):
        ReportRows.of(np.ones((20, 1)), Y[1:])
