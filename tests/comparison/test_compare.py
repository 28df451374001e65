"""The laws of a comparison, its failures and its refusals."""

import importlib
from typing import ClassVar

import numpy as np
import pandas
import polars
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surefoot import RobustNewsvendor
from surefoot.baselines import ERM, SAA, Shapley
from surefoot.comparison import Folds, RollingWindow, compare
from surefoot.comparison.methods import NAMES, SHAPLEY_ROWS, chosen_methods
from surefoot.costs import Newsvendor, Quadratic
from surefoot.estimators.preparation import PreparedPolicy, read_table
from surefoot.exceptions import InvalidInputError, InvalidTypeError

COST = Newsvendor(1.0, 0.2)
FOLDS = Folds(4, repeats=1)


def test_costs_are_those_of_fitting_and_judging_by_hand(sample, shifted):
    X, y = sample
    found = compare(X, y, COST, {"a": shifted(0.5), "b": ERM(1.0, 0.2)}, splits=FOLDS, random_state=3)
    for k, split in enumerate(FOLDS.splits(40, 3)):
        r = y[split.train].mean() + 0.5 - y[split.test]
        assert found.costs("a")[k] == pytest.approx(np.mean(np.maximum(0.2 * r, -r)))
        fitted = ERM(1.0, 0.2).fit(X[split.train], y[split.train])
        assert found.costs("b")[k] == pytest.approx(fitted.cost(X[split.test], y[split.test]))


def test_equal_methods_differ_by_exactly_nothing(sample):
    found = compare(*sample, COST, {"a": ERM(1.0, 0.2), "b": ERM(1.0, 0.2)}, splits=FOLDS)
    row = found.row("b")
    assert (row.difference, row.low, row.high, row.wins, row.pairs) == (0.0, 0.0, 0.0, 0, 4)


def test_the_constant_order_scores_zero_and_is_the_yardstick(sample):
    found = compare(*sample, COST, {"constant": SAA(1.0, 0.2), "erm": ERM(1.0, 0.2)}, splits=FOLDS)
    assert found.row("constant").score == 0.0
    assert found.row("erm").score == pytest.approx(
        1.0 - found.costs("erm").mean() / found.costs("constant").mean()
    )
    assert found.row("erm").score > 0.1


def test_swapping_the_reference_swaps_the_sign(sample):
    methods = {"a": ERM(1.0, 0.2), "b": SAA(1.0, 0.2)}
    forth = compare(*sample, COST, methods, splits=FOLDS)
    back = compare(*sample, COST, methods, splits=FOLDS, reference="b")
    row, other = forth.row("b"), back.row("a")
    assert row.difference == pytest.approx(-other.difference)
    assert (row.low, row.high) == pytest.approx((-other.high, -other.low))
    assert row.wins + other.wins == 4


def test_intervals_shrink_with_more_data(shifted):
    widths = []
    for rows in (40, 400):
        rng = np.random.default_rng(1)
        y = rng.normal(size=rows)
        found = compare(np.zeros((rows, 1)), y, COST, {"a": shifted(0.0), "b": shifted(1.0)})
        widths.append(found.row("b").high - found.row("b").low)
    assert widths[1] < 0.5 * widths[0]


def test_intervals_grow_with_the_confidence(sample, shifted):
    methods = {"a": shifted(0.0), "b": shifted(1.0)}
    narrow, wide = (
        compare(*sample, COST, methods, splits=FOLDS, confidence=c).row("b") for c in (0.5, 0.99)
    )
    assert wide.low < narrow.low < narrow.difference < narrow.high < wide.high


def test_other_names_for_rows_change_nothing(sample):
    """Leaving one row out at a time, an order of rows is only another order of splits."""
    X, y = sample
    order = np.random.default_rng(0).permutation(12)
    methods = {"erm": ERM(1.0, 0.2), "saa": SAA(1.0, 0.2)}
    first = compare(X[:12], y[:12], COST, methods, splits=Folds(12, 1))
    again = compare(X[:12][order], y[:12][order], COST, methods, splits=Folds(12, 1))
    for name in methods:
        assert np.sort(first.costs(name)) == pytest.approx(np.sort(again.costs(name)))
    assert first.row("saa").high == pytest.approx(again.row("saa").high)


def test_the_answer_depends_on_the_seed_alone(sample):
    answers = [
        compare(*sample, COST, ["surefoot", "erm-l1"], splits=Folds(3, 1), random_state=seed)
        for seed in (1, 1, 2)
    ]
    assert (answers[0].costs("erm-l1") == answers[1].costs("erm-l1")).all()
    assert (answers[0].costs("surefoot") == answers[1].costs("surefoot")).all()
    assert (answers[0].costs("surefoot") != answers[2].costs("surefoot")).any()


def test_windows_learn_from_the_past_alone(shifted):
    y = np.arange(20.0)
    found = compare(np.zeros((20, 1)), y, Newsvendor(1.0, 1.0), {"mean": shifted()},
                    splits=RollingWindow(4, 2))  # fmt: skip
    # The mean of rows k..k+3 is k + 1.5; rows k+4 and k+5 follow.
    assert found.costs("mean") == pytest.approx(np.full(8, 3.0))
    assert [t.name for t in found.trials][-1] == "rows 18 to 19"


def test_all_methods_by_default_on_a_mixed_frame(sample):
    X, y = sample
    frame = pandas.DataFrame({"x": X[:, 0], "shop": np.where(np.arange(40) % 2, "a", "b")})
    found = compare(frame, y, COST, splits=Folds(2, 1))
    assert tuple(row.method for row in found.rows) == NAMES
    assert found.reasons() == {}
    assert found.reference == "surefoot"
    assert found.complete
    assert found.row("surefoot").cost < found.row("saa").cost


@pytest.mark.parametrize(
    "make", [pandas.DataFrame, polars.DataFrame, lambda c: np.column_stack(list(c.values()))]
)
def test_frames_and_arrays_agree(sample, make):
    X, y = sample
    columns = {"a": X[:, 0], "b": X[:, 1]}
    found = compare(make(columns), y, COST, {"erm": ERM(1.0, 0.2)}, splits=FOLDS)
    assert (
        found.costs("erm") == compare(X, y, COST, {"erm": ERM(1.0, 0.2)}, splits=FOLDS).costs("erm")
    ).all()


def test_lists_and_series_will_do(sample):
    X, y = sample
    lists = compare(X.tolist(), y.tolist(), COST, {"erm": ERM(1.0, 0.2)}, splits=FOLDS)
    series = compare(
        X, pandas.Series(y, index=np.arange(40) + 7), COST, {"erm": ERM(1.0, 0.2)}, splits=FOLDS
    )
    assert (lists.costs("erm") == series.costs("erm")).all()


def test_several_products_add_up(sample, shifted):
    X, y = sample
    both = compare(
        X, np.column_stack([y, y]), COST, {"m": shifted(), "saa": SAA(1.0, 0.2)}, splits=FOLDS
    )
    one = compare(X, y, COST, {"m": shifted(), "saa": SAA(1.0, 0.2)}, splits=FOLDS)
    assert both.costs("m") == pytest.approx(2 * one.costs("m"))
    assert both.row("m").score == pytest.approx(one.row("m").score)


def test_a_method_that_fails_is_an_answer_and_the_others_go_on(sample, shifted, failing):
    X, y = sample
    limit = np.sort(y)[-2]  # exceeded unless the row of the largest outcome is held out
    found = compare(
        X, y, COST, {"a": shifted(), "bad": failing(limit), "c": shifted(1.0)}, splits=FOLDS
    )
    bad = found.row("bad")
    assert (bad.failures, bad.pairs) == (3, 1)
    assert np.isnan(bad.low)
    assert bad.difference == 0.0
    assert found.row("c").pairs == 4
    assert "no answer on 3 of 4 splits" in found.reasons()["bad"]
    assert "ValueError: too much demand" in found.reasons()["bad"]
    assert "ValueError: too much demand" in str(found)


def test_a_method_that_always_fails_has_a_row_too(sample, shifted, failing):
    for error in (ZeroDivisionError, RuntimeError, AttributeError):
        found = compare(*sample, COST, {"bad": failing(0.0, error), "a": shifted()}, splits=FOLDS)
        assert np.isnan(found.row("bad").cost)
        assert np.isnan(found.row("a").difference)  # the reference gave no answer
        assert error.__name__ in str(found)


@pytest.mark.parametrize(
    ("decisions", "reason"),
    [(lambda n: np.full(n, np.nan), "finite"), (lambda n: np.zeros(n + 1), r"shape \(10,\)"),
     (lambda n: ["many"] * n, "ValueError")],
)  # fmt: skip
def test_decisions_that_are_none_count_as_failures(sample, shifted, decisions, reason):
    class Odd(shifted):
        def predict(self, X):
            return decisions(len(X))

    found = compare(*sample, COST, {"odd": Odd(), "a": shifted()}, splits=FOLDS)
    with pytest.raises(AssertionError, match=reason):
        assert not found.reasons(), found.reasons()["odd"]


class Counting:
    """Remembers how many rows it learned from and decided on, and orders the mean."""

    seen: ClassVar = []

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        Counting.seen.append((len(X), float(X[:, 0].sum())))
        self.order = float(np.mean(y))
        return self

    def predict(self, X):
        Counting.seen.append((len(X), float(X[:, 0].sum())))
        return np.full(len(X), self.order)


def test_of_many_rows_all_methods_see_the_same_sample():
    X = np.random.default_rng(0).normal(size=(500, 1))
    Counting.seen.clear()
    options = {"splits": Folds(2, 1), "most_rows": 40}
    found = compare(X, X[:, 0], COST, {"a": Counting(), "b": Counting()}, **options)
    assert [rows for rows, _ in Counting.seen] == [40] * 8
    assert Counting.seen[:2] == Counting.seen[2:4]
    assert "learned from 40 of 250 rows, judged on 40 of 250." in str(found)
    assert found.trials[0].train == 250  # intervals rest on how splits overlap, not on samples
    again = compare(X, X[:, 0], COST, {"a": Counting(), "b": Counting()}, **options)
    np.testing.assert_array_equal(found.costs("a"), again.costs("a"))
    whole = compare(X, X[:, 0], COST, {"a": Counting()}, splits=Folds(2, 1), most_rows=None)
    assert whole.trials[0].learned == 250
    assert whole.sampled() == ""
    with pytest.raises(InvalidInputError, match="most_rows must be"):
        compare(X, X[:, 0], COST, ["saa"], most_rows=1)


def test_shapley_learns_from_a_sample_where_all_pairs_would_take_too_long():
    rows = SHAPLEY_ROWS * 2 + 4
    X = np.random.default_rng(0).normal(size=(rows, 1))
    found = compare(X, X[:, 0], COST, ["saa", "shapley"], splits=Folds(2, 1))
    assert found.row("shapley").failures == 0
    assert f"shapley learned from {SHAPLEY_ROWS} of {rows // 2} rows." in str(found)


def test_many_rows_are_shuffled_once(monkeypatch):
    # The package has a function of that name, too.
    monkeypatch.setattr(importlib.import_module("surefoot.comparison.compare"), "MANY_ROWS", 50)
    X = np.random.default_rng(0).normal(size=(60, 1))
    assert compare(X, X[:, 0], COST, ["saa"]).splits == Folds(5, repeats=1)
    assert compare(X[:50], X[:50, 0], COST, ["saa"]).splits == Folds(5, repeats=3)


def test_warnings_of_fits_are_kept_as_notes(sample):
    X, y = sample
    frame = pandas.DataFrame({"x": X[:, 0], "country": "DE"})
    found = compare(frame, y, COST, ["saa", "erm"], splits=FOLDS)
    ((note, count),) = found.notes().items()
    assert "'country'" in note
    assert count == 8
    assert "8 of 8 fits gave warnings" in str(found)


def test_progress_is_told_before_each_fit(sample, shifted):
    seen = []
    compare(*sample, COST, {"a": shifted(), "b": shifted()}, splits=FOLDS, on_progress=seen.append)
    assert [p.done for p in seen] == list(range(8))
    assert {p.total for p in seen} == {8}
    assert (seen[1].method, seen[1].split) == ("b", "repeat 1, fold 1")


def test_an_interrupt_returns_whole_splits_or_passes_on(sample, shifted):
    def stop_after(fits):
        def stop(progress):
            if progress.done == fits:
                raise KeyboardInterrupt

        return stop

    methods = {"a": shifted(), "b": shifted(1.0)}
    found = compare(*sample, COST, methods, splits=FOLDS, on_progress=stop_after(5))
    assert not found.complete
    assert len(found.trials) == 4
    assert found.status == "Interrupted: 2 of 4 splits are done."
    assert found.status in str(found)
    assert np.isfinite(found.row("b").low)
    with pytest.raises(KeyboardInterrupt):
        compare(*sample, COST, methods, splits=FOLDS, on_progress=stop_after(3))


def test_own_estimators_are_prepared_only_where_they_must_be(sample):
    plain = read_table(sample[0])
    mixed = read_table(pandas.DataFrame({"shop": ["a", "b"], "x": [1.0, 2.0]}))
    pipeline = make_pipeline(StandardScaler(), ERM(1.0, 0.2))
    ready = PreparedPolicy(ERM(1.0, 0.2), freeze=False)
    own = {"erm": ERM(1.0, 0.2), "pipeline": pipeline, "ready": ready}
    assert [type(m.estimator) for m in chosen_methods(own, COST, plain, 0)] == [
        ERM, type(pipeline), PreparedPolicy,
    ]  # fmt: skip
    kinds = chosen_methods(own, COST, mixed, 0)
    assert type(kinds[0].estimator) is PreparedPolicy
    assert kinds[1].estimator is pipeline
    assert kinds[2].estimator is ready


def test_methods_by_name_have_the_costs_asked_for():
    for method in chosen_methods(None, Newsvendor(3.0, 0.5), None, 7):
        inner = method.estimator.model
        if method.name == "surefoot":
            assert (inner.backorder, inner.holding) == (3.0, 0.5)
        else:
            assert inner.cost_function == Newsvendor(3.0, 0.5)
        assert getattr(inner, "random_state", 7) == 7 or method.name == "erm"
    assert {type(m.estimator.model) for m in chosen_methods(None, COST, None, 0)} >= {
        RobustNewsvendor, SAA, Shapley,
    }  # fmt: skip


def test_other_costs_have_the_methods_that_take_them(sample):
    chosen = chosen_methods(None, Quadratic(), None, 7)
    assert [method.name for method in chosen] == ["surefoot", "saa"]
    with pytest.raises(InvalidInputError, match="among surefoot, saa for a Quadratic cost.*got 'erm'"):
        chosen_methods(["erm"], Quadratic(), None, 7)
    X, y = sample
    found = compare(X, y, Quadratic(), ["saa"], splits=FOLDS)
    for k, split in enumerate(FOLDS.splits(40, 0)):
        expected = np.mean((y[split.train].mean() - y[split.test]) ** 2)
        assert found.costs("saa")[k] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cost": 1.0}, InvalidTypeError, "cost must be a cost such as Newsvendor"),
        ({"cost": Newsvendor((1.0, 2.0), 0.2)}, InvalidInputError, "one per product"),
        ({"y": None}, InvalidTypeError, "y must be the outcomes"),
        ({"y": np.zeros(39)}, InvalidInputError, "one row per row of X"),
        ({"y": ["a"] * 40}, InvalidInputError, "y must be numeric"),
        ({"y": np.full(40, np.nan)}, InvalidInputError, "y must be finite"),
        ({"X": [1.0, 2.0]}, InvalidInputError, "frame or a matrix"),
        ({"methods": "erm"}, InvalidTypeError, "methods must be None, a sequence"),
        ({"methods": 3}, InvalidTypeError, "methods must be None, a sequence"),
        ({"methods": ["erm", "em"]}, InvalidInputError, "among surefoot, erm, .*got 'em'"),
        ({"methods": ["erm", "erm"]}, InvalidInputError, "distinct names"),
        ({"methods": []}, InvalidInputError, "one or more distinct names"),
        ({"methods": {}}, InvalidInputError, "empty dictionary"),
        ({"methods": {1: SAA()}}, InvalidTypeError, "names as keys"),
        ({"methods": {"a": SAA}}, InvalidTypeError, "unfitted estimators"),
        ({"methods": {"a": 1.0}}, InvalidTypeError, "fit and predict"),
        ({"splits": 5}, InvalidTypeError, r"splits must be Folds"),
        ({"splits": RollingWindow(30, 10)}, InvalidInputError, "at least 50 rows"),
        ({"reference": "em"}, InvalidInputError, "reference must be one of the methods"),
        ({"confidence": 1.0}, InvalidInputError, "confidence must be < 1"),
        ({"confidence": 0}, InvalidInputError, "confidence must be > 0"),
        ({"random_state": -1}, InvalidInputError, "random_state must be >= 0"),
        ({"on_progress": 1}, InvalidTypeError, "on_progress must be a function"),
    ],
)
def test_bad_input_is_refused_before_any_work(sample, options, error, message):
    given = {"X": sample[0], "y": sample[1], "cost": COST, "methods": ["saa"], **options}
    with pytest.raises(error, match=message):
        compare(**given)
