import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from surefoot import PreparedPolicy, RobustNewsvendor
from surefoot.baselines import SAA
from surefoot.estimators.inputs import check_contexts, check_pairs, time_order
from surefoot.exceptions import InvalidInputError

NAMES = list("abcde")


def model(**options):
    return RobustNewsvendor(**{"radius": 0.1, **options})


@pytest.fixture(scope="module")
def fitted(data):
    return model().fit(data.X, data.y)


def spoilt(array, value):
    array = np.array(array, dtype=type(value) if isinstance(value, complex) else None)
    array[3] = value
    return array


def pandas_frame(X):
    return pd.DataFrame(X, columns=NAMES)


def polars_frame(X):
    return pl.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})


FRAMES = pytest.mark.parametrize("frame", [pandas_frame, polars_frame], ids=["pandas", "polars"])


# ---------------------------------------------------------------- frames


@FRAMES
def test_frames_give_the_bits_of_the_array_and_keep_their_names(data, fitted, frame):
    outcomes = {"array": data.y, "pandas": pd.Series(data.y), "polars": pl.Series(data.y)}
    for y in outcomes.values():
        framed = model().fit(frame(data.X), y)
        assert framed.feature_names_in_.tolist() == NAMES
        np.testing.assert_array_equal(framed.predict(frame(data.X_test)), fitted.predict(data.X_test))
        assert framed.cost(frame(data.X), y) == fitted.cost(data.X, data.y)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_outcomes_may_be_a_frame_of_products(data, frame):
    products = frame({"left": data.y, "right": 2.0 * data.y})
    framed = model().fit(data.X, products)
    plain = model().fit(data.X, np.column_stack([data.y, 2.0 * data.y]))
    np.testing.assert_array_equal(framed.predict(data.X_test), plain.predict(data.X_test))


def test_a_model_fitted_on_pandas_decides_on_polars(data):
    framed = model().fit(pandas_frame(data.X), data.y)
    np.testing.assert_array_equal(
        framed.predict(polars_frame(data.X_test)), framed.predict(pandas_frame(data.X_test))
    )


@FRAMES
def test_no_silent_failure_reordered_columns_accepted(data, frame):
    framed = model().fit(frame(data.X), data.y)
    reordered = frame(data.X)[["b", "a", "c", "d", "e"]]
    message = "Feature names must be in the same order as they were in fit."
    for call in (
        lambda: framed.predict(reordered),
        lambda: framed.decide(reordered),
        lambda: framed.cost(reordered, data.y),
        lambda: framed.score(reordered, data.y),
        lambda: framed.worst_case(reordered, data.y),
        lambda: framed.partial_fit(reordered, data.y),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()


@FRAMES
def test_renamed_and_missing_columns_are_refused_by_name(data, frame):
    framed = model().fit(frame(data.X), data.y)
    renamed = frame(data.X)
    renamed = (
        renamed.rename({"c": "price"})
        if isinstance(renamed, pl.DataFrame)
        else renamed.rename(columns={"c": "price"})
    )
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- price\n.*yet now missing:\n- c\n"):
        framed.predict(renamed)
    with pytest.raises(ValueError, match=r"seen at fit time, yet now missing:\n- d\n"):
        framed.predict(frame(data.X)[["a", "b", "c", "e"]])


def test_an_array_after_a_frame_is_taken_with_a_warning(data):
    framed = model().fit(pandas_frame(data.X), data.y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but RobustNewsvendor"):
        decisions = framed.predict(data.X)
    np.testing.assert_array_equal(decisions, framed.predict(pandas_frame(data.X)))


@FRAMES
def test_frozen_by_name_is_frozen_by_position(data, frame):
    named = model(frozen=["d", "a"]).fit(frame(data.X), data.y)
    placed = model(frozen=[3, 0]).fit(data.X, data.y)
    np.testing.assert_array_equal(named.movable_, [False, True, True, False, True])
    np.testing.assert_array_equal(named.predict(frame(data.X)), placed.predict(data.X))
    with pytest.raises(
        InvalidInputError, match=r"frozen must name columns of X \(a, b, c, d, e\), got 'z'\."
    ):
        model(frozen=["z"]).fit(frame(data.X), data.y)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["x"] * 60),
        pd.Series(["x"] * 60, dtype=object),
        pd.Series(["1.5"] * 60, dtype="string"),
        pd.Series(pd.Categorical(["u", "v"] * 30)),
        pd.Series(pd.date_range("2024-01-01", periods=60)),
        pd.Series(pd.date_range("2024-01-01", periods=60, tz="UTC")),
        pd.Series(pd.to_timedelta(np.arange(60), unit="D")),
        pd.Series(pd.period_range("2024-01", periods=60, freq="M")),
        pd.Series([datetime.date(2024, 1, 1)] * 60, dtype=object),
    ],
    ids=lambda column: str(column.dtype),
)
def test_pandas_columns_of_text_and_dates_are_refused_by_name(data, column):
    frame = pandas_frame(data.X).assign(weekday=column, price=1.0)
    message = "X must be numeric, got text or dates in 'weekday': PreparedPolicy(model) takes"
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        model().fit(frame, data.y)


@pytest.mark.parametrize(
    "value",
    [
        pl.lit("x"),
        pl.lit("x").cast(pl.Categorical),
        pl.lit("x").cast(pl.Enum(["x"])),
        pl.lit(datetime.date(2024, 1, 1)),
        pl.lit(datetime.datetime(2024, 1, 1)),
        pl.lit(datetime.time(12)),
        pl.lit(datetime.timedelta(days=1)),
    ],
    ids=["text", "categorical", "enum", "date", "datetime", "time", "duration"],
)
def test_polars_columns_of_text_and_dates_are_refused_by_name(data, value):
    frame = polars_frame(data.X).with_columns(weekday=value)
    message = "X must be numeric, got text or dates in 'weekday': PreparedPolicy(model) takes"
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        model().fit(frame, data.y)


def test_all_columns_of_text_are_named(data):
    frame = pandas_frame(data.X).assign(city="x", shop="y")
    with pytest.raises(InvalidInputError, match="got text or dates in 'city', 'shop': PreparedPolicy"):
        model().fit(frame, data.y)


def test_columns_of_other_numbers_are_taken(data):
    rng = np.random.default_rng(0)
    frame = pandas_frame(data.X).assign(
        flag=rng.random(60) > 0.5,
        count=pd.array(rng.integers(0, 9, 60), dtype="Int64"),
        loose=pd.Series(rng.integers(0, 9, 60).tolist(), dtype=object),
        code=pd.Categorical(rng.integers(0, 3, 60)),
    )
    plain = frame.astype(float)
    np.testing.assert_array_equal(
        model().fit(frame, data.y).predict(frame), model().fit(plain, data.y).predict(plain)
    )


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float32])
def test_other_number_types_are_taken_at_their_value(data, kind):
    X, y = (10 * data.X).astype(kind), (10 * data.y).astype(kind)
    X[:2] = [[0], [1]]  # no column of one value
    typed = model().fit(X, y)
    plain = model().fit(X.astype(float), y.astype(float))
    np.testing.assert_array_equal(typed.predict(X), plain.predict(X.astype(float)))


def test_no_silent_failure_an_empty_x_that_fits(data, fitted):
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 5\)\)"):
        model().fit(data.X[:0], data.y[:0])
    with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\) \(shape=\(60, 0\)\)"):
        model().fit(data.X[:, :0], data.y)
    with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\) \(shape=\(60, 0\)\)"):
        model().fit(data.X, np.zeros((60, 0)))
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 5\)\)"):
        fitted.predict(data.X[:0])


def test_one_row_is_too_few_to_fit_and_enough_to_decide(data, fitted):
    message = r"Found array with 1 sample\(s\) \(shape=\(1, 5\)\) while a minimum of 2 is required"
    with pytest.raises(ValueError, match=message):
        model().fit(data.X[:1], data.y[:1])
    assert fitted.predict(data.X[:1]).shape == (1,)
    assert fitted.cost(data.X[:1], data.y[:1]) >= 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_silent_failure_a_nan_score_returned_as_a_result(data, fitted, value):
    got = "NaN" if np.isnan(value) else "infinity"
    for method in (model().fit, model().partial_fit, fitted.cost, fitted.score, fitted.worst_case):
        with pytest.raises(ValueError, match=rf"X must be finite .* got {got} in row 3, column"):
            method(spoilt(data.X, value), data.y)
        with pytest.raises(InvalidInputError, match=rf"Input y must be finite, got {got}.* in row 3\."):
            method(data.X, spoilt(data.y, value))
    with pytest.raises(ValueError, match=rf"X must be finite .* got {got} in row 3, column"):
        fitted.predict(spoilt(data.X, value))


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist])
def test_who_takes_gaps_is_said_of_nan_alone(data, kind):
    told = r"got NaN in row 3, column \d: PreparedPolicy\(model\) takes gaps in contexts as they are\.$"
    with pytest.raises(InvalidInputError, match=told):
        model().fit(kind(spoilt(data.X, np.nan)), data.y)
    with pytest.raises(InvalidInputError, match=r"got infinity in row 3, column \d\.$"):
        model().fit(kind(spoilt(data.X, np.inf)), data.y)


def test_the_first_bad_outcome_is_named(data):
    y = data.y.copy()
    y[5], y[2] = np.nan, np.inf
    with pytest.raises(InvalidInputError, match=r"y must be finite, got infinity \(inf\) in row 2\."):
        model().fit(data.X, y)
    both = np.column_stack([data.y, data.y])
    both[7, 1] = np.nan
    with pytest.raises(InvalidInputError, match=r"y must be finite, got NaN in row 7\."):
        model().fit(data.X, both)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones(60), np.ones(60), "Expected 2D array, got 1D array instead"),
        (np.ones((60, 5, 1)), np.ones(60), "Found array with dim 3, while dim <= 2 is required"),
        (np.ones((60, 5)), np.ones((60, 1, 1)), "Found array with dim 3, while dim <= 2 is required"),
        (np.ones((60, 5)), np.ones(59), "inconsistent numbers of samples: [60, 59]"),
        (np.ones((60, 5)), np.ones((59, 2)), "inconsistent numbers of samples: [60, 59]"),
        (np.ones((60, 5)), None, "requires y to be passed, but the target y is None"),
        ([[1.0, 2.0], [3.0]], [1.0, 2.0], "X must have rows of equal length"),
        ([[1.0], [3.0]], [[1.0], [2.0, 3.0]], "y must have rows of equal length"),
    ],
    ids=["1-D X", "3-D X", "3-D y", "rows", "rows of products", "no y", "ragged X", "ragged y"],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_wrong_shapes_are_refused(X, y, message, method):
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(model(), method)(X, y)


def test_wrong_number_of_columns_is_refused(data, fitted):
    message = "X has 4 features, but RobustNewsvendor is expecting 5 features as input."
    for call in (
        lambda X: fitted.predict(X),
        lambda X: fitted.cost(X, data.y),
        lambda X: fitted.worst_case(X, data.y),
        lambda X: fitted.partial_fit(X, data.y),
    ):
        with pytest.raises(ValueError, match=message):
            call(data.X[:, :4])


@pytest.mark.parametrize(
    "X",
    [
        np.array([["a", "b"], ["c", "d"]]),
        np.array([["1", "2"], ["3", "4"]]),
        np.array([[b"1", b"2"], [b"3", b"4"]]),
        np.array([[1.0, "2"], [3.0, "4"]], dtype=object),
        np.array([["1", "2"], ["3", "4"]], dtype=np.dtypes.StringDType()),
        [["a", "b"], ["c", "d"]],
        [[1.0, "b"], [2.0, "d"]],
        (("a", "b"), ("c", "d")),
    ],
    ids=["text", "digits", "bytes", "objects", "StringDType", "list", "mixed list", "tuple"],
)
def test_text_contexts_are_refused(fitted, X):
    message = (
        "X must be numeric, got text: PreparedPolicy(model) takes categories and dates as they are."
    )
    for call in (lambda: model().fit(X, [1.0, 2.0]), lambda: fitted.predict(X)):
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            call()


@pytest.mark.parametrize(
    "y",
    [
        np.array(["1", "2"] * 30),
        np.array([b"1", b"2"] * 30),
        ["a", "b"] * 30,
        pd.Series(["a", "b"] * 30),
        pd.Series(pd.Categorical(["a", "b"] * 30)),
        pl.Series(["a", "b"] * 30),
        np.array([1.0, "2"] * 30, dtype=object),
    ],
    ids=["digits", "bytes", "list", "pandas", "categorical", "polars", "objects"],
)
def test_text_outcomes_are_refused(data, fitted, y):
    for method in (model().fit, fitted.cost):
        with pytest.raises(InvalidInputError, match=r"y must be numeric, got text\."):
            method(data.X, y)


def test_dates_are_not_read_as_days_since_1970(data):
    days = np.datetime64("2024-01-01", "ms") + 86_400_000 * np.arange(60)
    for dates in (days, days - days[0]):
        with pytest.raises(InvalidInputError, match="X must be numeric, got dates: PreparedPolicy"):
            model().fit(dates[:, None], data.y)
        for y in (dates, pd.Series(dates), pl.Series(dates)):
            with pytest.raises(InvalidInputError, match=r"y must be numeric, got dates\."):
                model().fit(data.X, y)


def test_complex_numbers_are_refused(data, fitted):
    for call in (
        lambda: model().fit(data.X + 1j, data.y),
        lambda: model().fit(data.X, data.y + 1j),
        lambda: fitted.predict(data.X + 0j),
    ):
        with pytest.raises(ValueError, match="Complex data not supported"):
            call()


def test_sparse_contexts_are_refused_with_a_way_out(data, fitted):
    message = r"Sparse data was passed for X, but dense data is required. Use '.toarray\(\)'"
    for call in (
        lambda: model().fit(csr_array(data.X), data.y),
        lambda: fitted.predict(csr_array(data.X)),
    ):
        with pytest.raises(TypeError, match=message):
            call()


# ---------------------------------------------------------------- what the checks return


def test_checks_return_clean_float_arrays(data):
    estimator = RobustNewsvendor()
    X, y = check_pairs(estimator, np.asfortranarray(data.X), data.y.tolist(), reset=True)
    assert X.flags.c_contiguous
    assert X.dtype == y.dtype == np.float64
    assert y.shape == (60,)
    np.testing.assert_array_equal(X, data.X)
    assert estimator.n_features_in_ == 5
    again = check_contexts(estimator, [[1, 2, 3, 4, 5]], reset=False)
    assert again.dtype == np.float64
    assert again.tolist() == [[1.0, 2.0, 3.0, 4.0, 5.0]]


def test_only_reset_remembers_columns(data):
    estimator = RobustNewsvendor()
    check_contexts(estimator, pandas_frame(data.X), reset=True)
    assert estimator.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="expecting 5 features"), pytest.warns(UserWarning):
        check_contexts(estimator, data.X[:, :2], reset=False)
    check_contexts(estimator, data.X[:, :2], reset=True)
    assert estimator.n_features_in_ == 2
    with pytest.raises(ValueError, match="while a minimum of 3 is required"):
        check_pairs(estimator, data.X[:2], data.y[:2], reset=True, min_rows=3)


# ---------------------------------------------------------------- time


DAYS = pd.to_datetime(["2026-03-01", "2026-01-01", "2026-02-01"])


@pytest.mark.parametrize(
    "time",
    [
        DAYS, DAYS.to_series(), DAYS.to_period("M"), DAYS.to_numpy(), pl.Series(list(DAYS)),
        DAYS.tz_localize("Europe/Berlin"), [day.date() for day in DAYS], [3, 1, 2], np.array([3.5, -1.0, 2.0]),
    ],
)  # fmt: skip
def test_time_may_be_dates_or_numbers(time):
    assert time_order(time, None).tolist() == [2, 0, 1]


def test_a_frame_with_dates_knows_its_time():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    assert time_order(None, frame) is None
    assert time_order(None, frame.to_numpy()) is None
    for index in (DAYS, DAYS.to_period("M")):
        assert time_order(None, frame.set_axis(index)).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (["1.3.2026", "1.1.2026"], "time must be a date or a number for each row, got text"),
        ([[1, 2]], "time must be a date or a number for each row, got shape (1, 2)"),
        ([1.0, np.nan], "time must have no gaps, got one in row 1"),
        (pd.to_datetime(["2026-01-01", None]), "time must have no gaps, got one in row 1"),
        ([True, False], "time must be a date or a number for each row, got bool"),
        ([[1], [2, 3]], "time must have rows of equal length, got rows of different lengths"),
        (
            [pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-01", tz="UTC")],
            "time must be of one kind in all rows, got moments with and without a zone",
        ),
        (
            [1, datetime.date(2026, 1, 1)],
            "time must be of one kind in all rows, got numbers and dates",
        ),
    ],
)
def test_time_that_is_none_is_refused(time, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        time_order(time, None)


def test_times_too_large_for_a_whole_number_of_numpy_are_numbers():
    assert time_order([10**30, 1, 10**31], None).tolist() == [1, 0, 2]


def test_time_has_a_value_for_each_row(data):
    with pytest.raises(InvalidInputError, match=rf"each row of X \({len(data.y)}\), got 3"):
        RobustNewsvendor().fit(data.X, data.y, time=[1, 2, 3])


@pytest.mark.parametrize("maker", [model, SAA, lambda: PreparedPolicy(model())])
def test_outcomes_left_out_are_asked_for(data, maker):
    for given in ((data.X,), (data.X, None)):
        with pytest.raises(
            InvalidInputError, match=r"y must be the outcomes, one for each row of X, as"
        ):
            maker().fit(*given)


def test_masked_entries_are_refused_by_what_they_are(data, fitted):
    X = np.ma.array(data.X, mask=data.X > 0.5)
    y = np.ma.array(data.y, mask=data.y > data.y[0])
    weights = np.ma.array(np.ones(len(data.y)), mask=y.mask)
    cases = {"X": (X, data.y), "y": (data.X, y), "sample_weight": (data.X, data.y, weights)}
    for name, given in cases.items():
        with pytest.raises(InvalidInputError, match=f"{name} must have no masked entries, got"):
            model().fit(*given)
    with pytest.raises(InvalidInputError, match="X must have no masked entries"):
        fitted.predict(X)
    with pytest.raises(InvalidInputError, match="time must have no masked entries"):
        model(radius="auto").fit(data.X, data.y, time=np.ma.array(np.arange(len(data.y)), mask=y.mask))
