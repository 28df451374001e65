"""Splits: what is learned from is never judged on, and intervals hold what they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from surefoot.comparison import Folds, RollingWindow, paired_interval
from surefoot.exceptions import InvalidInputError, InvalidTypeError


@given(st.integers(2, 6), st.integers(1, 3), st.integers(4, 40), st.integers(0, 5))
def test_folds_judge_every_row_once_a_repeat_and_never_learn_from_it(folds, repeats, rows, seed):
    if rows < folds:
        return
    splits = Folds(folds, repeats).splits(rows, seed)
    assert len(splits) == folds * repeats
    for split in splits:
        assert not set(split.train) & set(split.test)
        assert len(split.train) + len(split.test) == rows
        assert len(split.train) >= 2
    judged = np.concatenate([split.test for split in splits])
    np.testing.assert_array_equal(np.bincount(judged, minlength=rows), repeats)


def test_folds_depend_on_the_seed_and_repeats_differ():
    def tests(seed):
        return [split.test.tolist() for split in Folds(3, 2).splits(12, seed)]

    assert tests(0) == tests(0)
    assert tests(0) != tests(1)
    assert tests(0)[:3] != tests(0)[3:]


@given(st.integers(2, 30), st.integers(1, 10), st.integers(0, 10), st.integers(0, 60))
def test_windows_keep_the_order_of_time_and_judge_no_row_twice(train, test, more, extra):
    step = test + more
    rows = train + test + step + extra
    splits = RollingWindow(train, test, step).splits(rows, seed=0)
    assert len(splits) >= 2
    assert splits[-1].test[-1] == rows - 1
    assert splits[0].train[0] < step  # no whole window is left out
    for split in splits:
        assert len(split.train) == train
        assert len(split.test) == test
        assert split.train[-1] + 1 == split.test[0]
        assert (np.diff(split.train) == 1).all()
        assert (np.diff(split.test) == 1).all()
    judged = np.concatenate([split.test for split in splits])
    assert len(set(judged)) == len(judged)
    assert (np.diff(judged) > 0).all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Folds(1), InvalidInputError, "folds must be >= 2, got 1"),
        (lambda: Folds(2.0), InvalidTypeError, "folds must be a whole number"),
        (lambda: Folds(5, repeats=0), InvalidInputError, "repeats must be >= 1"),
        (lambda: RollingWindow(1, 5), InvalidInputError, "train must be >= 2"),
        (lambda: RollingWindow(5, 0), InvalidInputError, "test must be >= 1"),
        (lambda: RollingWindow(5, 4, 3), InvalidInputError, r"step must be >= test \(4\)"),
        (lambda: Folds(5).splits(4, 0), InvalidInputError, "at least 5 rows for Folds"),
        (lambda: Folds(2).splits(3, 0), InvalidInputError, "at least 4 rows"),
        (lambda: RollingWindow(5, 4).splits(12, 0), InvalidInputError, "at least 13 rows for two"),
    ],
)
def test_what_cannot_be_split_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_the_interval_of_uncorrelated_windows_is_the_paired_t_interval():
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=12), rng.normal(size=12) + 0.3
    differences = left - right
    centred = differences - differences.mean()
    assert centred[1:] @ centred[:-1] < 0  # so that nothing is widened
    error = RollingWindow(10, 5).standard_error(differences, 10, 5)
    oracle = stats.ttest_rel(left, right).confidence_interval(0.9)
    assert paired_interval(differences, error, 0.9) == pytest.approx((oracle.low, oracle.high))


def test_windows_that_move_together_count_as_fewer():
    differences = np.repeat([1.0, -1.0, 2.0, 0.5], 4)
    window = RollingWindow(10, 5)
    plain = stats.sem(differences)
    centred = differences - differences.mean()
    r = (centred[1:] @ centred[:-1]) / (centred @ centred)
    assert window.standard_error(differences, 10, 5) == pytest.approx(
        plain * np.sqrt((1 + r) / (1 - r))
    )
    assert window.standard_error(differences, 10, 5) > 1.5 * plain
    assert window.standard_error(np.ones(5), 10, 5) == 0.0


def test_the_interval_of_folds_is_that_of_nadeau_and_bengio_by_hand():
    differences = np.array([0.5, 1.0, 1.5, 2.0])
    # s^2 = 5/12; 1/4 + 10/30 = 7/12; t(0.975, 3) = 3.182446.
    error = Folds(4, 1).standard_error(differences, train=30, test=10)
    assert error == pytest.approx(np.sqrt(5 / 12 * 7 / 12))
    low, high = paired_interval(differences, error, 0.95)
    assert (high - low) / 2 == pytest.approx(3.182446 * np.sqrt(35) / 12, rel=1e-6)
    assert (high + low) / 2 == 1.25


def test_one_difference_has_no_interval():
    assert np.isnan(paired_interval([1.0], 0.0, 0.95)).all()


def _difference(X, y, train, test):
    """Cost of the mean order less that of a fitted line, for the absolute error."""
    line = np.polyfit(X[train], y[train], 1)
    return np.mean(np.abs(y[test] - y[train].mean())) - np.mean(
        np.abs(y[test] - np.polyval(line, X[test]))
    )


def _coverage(splits, rows, repetitions=300):
    """How often the 95 % interval holds the expected difference, itself the mean of all."""
    found = []
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, rows])
        X = rng.normal(size=rows)
        y = 0.5 * X + rng.normal(size=rows)
        found.append([_difference(X, y, s.train, s.test) for s in splits.splits(rows, repetition)])
    found = np.array(found)
    parts = splits.splits(rows, 0)
    sizes = np.mean([len(s.train) for s in parts]), np.mean([len(s.test) for s in parts])
    truth, inside, naive = found.mean(), 0, 0
    for differences in found:
        low, high = paired_interval(differences, splits.standard_error(differences, *sizes), 0.95)
        inside += low <= truth <= high
        low, high = paired_interval(differences, stats.sem(differences), 0.95)
        naive += low <= truth <= high
    return inside / repetitions, naive / repetitions


def test_intervals_over_folds_hold_the_truth_where_naive_ones_do_not():
    inside, naive = _coverage(Folds(5, 3), rows=40)
    assert 0.92 <= inside <= 1.0
    assert naive < 0.85


def test_intervals_over_windows_hold_the_truth():
    inside, _ = _coverage(RollingWindow(30, 10), rows=150)
    assert 0.91 <= inside <= 0.995
