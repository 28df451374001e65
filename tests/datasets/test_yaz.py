import datetime
import importlib
import math

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

from surefoot.datasets import YazData, load_yaz
from surefoot.exceptions import InvalidInputError, InvalidTypeError, MissingExtraError

BACKORDER, HOLDING = 15.0, 10.0
PRODUCTS = ("steak", "lamb", "chicken", "koefte", "shrimp", "fish", "calamari")
SAA = (86.09, 114.58, 108.15, 96.03, 43.30, 23.24, 23.15)
# Linear quantile regression: cost on the last 165 days, and cost on the 600 days learnt from.
PUBLISHED = (74.06, 98.73, 101.69, 83.15, 43.14, 21.95, 22.09)
CORRECTED = (74.14, 98.76, 101.16, 83.15, 43.43, 21.94, 22.11)
CORRECTED_TRAIN = (65.169, 80.830, 74.231, 60.871, 36.254, 24.207, 22.909)
# Demands are whole numbers, so the regression has ties, and another version of the solver may
# break them differently: what equivalent encodings moved the cost on the last 165 days by.
TIES = {"steak": 0.4, "calamari": 0.2, "shrimp": 0.1, "fish": 0.1}
CLOSED = ["2013-12-25", "2014-12-24", "2014-12-25", "2014-12-26", "2014-12-31"]


@pytest.fixture(scope="module")
def data() -> YazData:
    return load_yaz()


def cost(decisions, outcomes):
    r = decisions - outcomes
    return np.maximum(HOLDING * r, -BACKORDER * r).mean()


def column(data, name):
    return data.contexts[:, data.feature_names.index(name)]


def block(data, prefix):
    names = [name for name in data.feature_names if name.startswith(prefix)]
    return names, np.column_stack([column(data, name) for name in names])


def regression_costs(contexts, outcomes):
    model = QuantileRegressor(quantile=BACKORDER / (BACKORDER + HOLDING), alpha=0, solver="highs").fit(
        contexts[:600], outcomes[:600]
    )
    decisions = model.predict(contexts)
    return cost(decisions[:600], outcomes[:600]), cost(decisions[600:], outcomes[600:])


def test_shapes_and_names(data):
    assert data.contexts.shape == (765, 30)
    assert data.outcomes.shape == (765, 7)
    assert data.contexts.dtype == data.outcomes.dtype == np.float64
    assert data.contexts.flags.c_contiguous
    assert len(set(data.feature_names)) == 30
    assert set(data.products) == set(PRODUCTS)
    assert np.isfinite(data.contexts).all()
    assert (data.outcomes >= 0).all()


def test_one_row_by_hand(data):
    # 2013-10-05,SAT,OCT,2013,0,0,1,2.7,6.9,10.7,0,13.2 and 8,8,5,44,36,37,30
    row = dict(zip(data.feature_names, data.contexts[1], strict=True))
    weather = {"wind": 2.7, "clouds": 6.9, "rain": 10.7, "sunshine": 0, "temperature": 13.2}
    ones = {"weekend", "weekday_SAT", "month_OCT", "year_2013"}
    assert {name: row[name] for name in data.numeric} == weather
    assert {name for name in data.frozen if row[name] == 1} == ones
    assert {row[name] for name in data.frozen} == {0, 1}
    assert dict(zip(data.products, data.outcomes[1], strict=True)) == {
        "calamari": 8, "fish": 8, "shrimp": 5, "chicken": 44, "koefte": 36, "lamb": 37, "steak": 30
    }  # fmt: skip


def test_dates_are_consecutive(data):
    assert data.dates.dtype == np.dtype("datetime64[D]")
    assert str(data.dates[0]) == "2013-10-04"
    assert str(data.dates[-1]) == "2015-11-07"
    assert (np.diff(data.dates) == np.timedelta64(1, "D")).all()


@pytest.mark.parametrize(("prefix", "form"), [("weekday_", "%a"), ("month_", "%b"), ("year_", "%Y")])
def test_calendar_is_right_on_every_day(data, prefix, form):
    # The standard library's calendar, which the loader does not use.
    names, columns = block(data, prefix)
    days = [datetime.date.fromisoformat(str(date)) for date in data.dates]
    expected = [prefix + day.strftime(form).upper() for day in days]
    assert [names[level] for level in columns.argmax(axis=1)] == expected
    assert (columns.sum(axis=1) == 1).all()
    assert set(np.unique(columns)) == {0, 1}


def test_weekend_follows_the_date_but_for_one_published_day(data):
    weekend = column(data, "weekday_SAT") + column(data, "weekday_SUN")
    differs = data.dates[column(data, "weekend") != weekend]
    assert [str(date) for date in differs] == ["2014-12-26"]


def test_frozen_and_numeric_partition_the_columns(data):
    assert data.numeric == ("wind", "clouds", "rain", "sunshine", "temperature")
    assert data.numeric + data.frozen == data.feature_names
    for name in data.numeric:
        assert not set(np.unique(column(data, name))) <= {0, 1}


def test_drop_closed(data):
    closed = column(data, "is_closed") == 1
    open_days = load_yaz(drop_closed=True)
    assert [str(date) for date in data.dates[closed]] == CLOSED
    assert (data.outcomes[closed] == 0).all()
    assert open_days.feature_names == data.feature_names
    np.testing.assert_array_equal(open_days.contexts, data.contexts[~closed])
    np.testing.assert_array_equal(open_days.outcomes, data.outcomes[~closed])
    np.testing.assert_array_equal(open_days.dates, data.dates[~closed])


def test_split_keeps_order_and_loses_nothing(data):
    train, test = data.split()
    assert train.contexts.shape == (600, 30)
    assert test.outcomes.shape == (165, 7)
    assert train.dates[-1] < test.dates[0]
    for name in ("contexts", "outcomes", "dates"):
        joined = np.concatenate([getattr(train, name), getattr(test, name)])
        np.testing.assert_array_equal(joined, getattr(data, name))


def test_parts_do_not_share_memory(data):
    before = data.outcomes.copy()
    train, _ = data.split()
    train.outcomes[:] = -1
    data.product("steak")[:] = -1
    np.testing.assert_array_equal(data.outcomes, before)


@pytest.mark.parametrize("train", [1, 764])
def test_split_at_the_edges(data, train):
    first, second = data.split(train)
    assert (len(first.dates), len(second.dates)) == (train, 765 - train)


@pytest.mark.parametrize(
    ("train", "error", "message"),
    [
        (0, InvalidInputError, "train must be >= 1, got 0."),
        (765, InvalidInputError, r"train must be < 765 \(the number of days\), got 765."),
        (0.8, InvalidTypeError, "train must be a whole number, got 0.8."),
    ],
)
def test_bad_split(data, train, error, message):
    with pytest.raises(error, match=message):
        data.split(train)


def test_unknown_product_lists_the_allowed_ones(data):
    with pytest.raises(InvalidInputError, match=r"^product must be .*, got 'beef'\.$") as caught:
        data.product("beef")
    assert all(repr(name) in str(caught.value) for name in PRODUCTS)


def test_bad_drop_closed():
    with pytest.raises(InvalidTypeError, match=r"drop_closed must be .*, got 'yes'\."):
        load_yaz(drop_closed="yes")


def test_repr_is_one_short_line(data):
    assert repr(data.split(1)[0]) == (
        "YazData(1 days, 2013-10-04 to 2013-10-04, 30 contexts, 7 products)"
    )


def test_to_pandas(data):
    pandas = pytest.importorskip("pandas")
    contexts, outcomes = data.to_pandas()
    assert tuple(contexts.columns) == data.feature_names
    np.testing.assert_array_equal(contexts.to_numpy(), data.contexts)
    np.testing.assert_array_equal(outcomes["lamb"].to_numpy(), data.product("lamb"))
    assert contexts.index.equals(outcomes.index)
    assert outcomes.index[-1] == pandas.Timestamp("2015-11-07")


def test_to_pandas_without_pandas(data, monkeypatch):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        data.to_pandas()


@pytest.mark.parametrize(("product", "expected"), [*zip(PRODUCTS, SAA, strict=True)])
def test_reference_cost_of_the_sample_average(data, product, expected):
    train, test = data.split(600)
    ordered = np.sort(train.product(product))
    decision = ordered[math.ceil(600 * BACKORDER / (BACKORDER + HOLDING)) - 1]
    assert cost(decision, test.product(product)) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("product", "expected"), [*zip(PRODUCTS, PUBLISHED, strict=True)])
def test_reference_cost_with_the_mislabelled_day_put_back(data, product, expected):
    contexts = data.contexts.copy()
    row = data.dates == np.datetime64("2014-12-31")
    for name, value in {"weekday_WED": 0, "weekday_SAT": 1, "weekend": 1}.items():
        contexts[row, data.feature_names.index(name)] = value
    _, judged = regression_costs(contexts, data.product(product))
    assert judged == pytest.approx(expected, abs=0.05 + TIES.get(product, 0))


@pytest.mark.parametrize(
    ("product", "expected_train", "expected"),
    [*zip(PRODUCTS, CORRECTED_TRAIN, CORRECTED, strict=True)],
)
def test_reference_cost_as_loaded(data, product, expected_train, expected):
    learnt, judged = regression_costs(data.contexts, data.product(product))
    assert learnt == pytest.approx(expected_train, abs=0.001)
    assert judged == pytest.approx(expected, abs=0.05 + TIES.get(product, 0))
