"""The paired bootstrap: its laws, and how often it covers."""

import numpy as np
import pytest

from surefoot.report.intervals import bootstrap_means, by_row, interval, run_length


def test_equal_columns_differ_nowhere():
    values = np.random.default_rng(0).normal(size=50)
    means = bootstrap_means(np.column_stack([values, values]), 1, 0)
    assert (means[:, 0] == means[:, 1]).all()


def test_a_common_shift_does_not_touch_differences():
    values = np.random.default_rng(0).normal(size=(50, 2))
    plain = bootstrap_means(values, 1, 0)
    shifted = bootstrap_means(values + 10.0, 1, 0)
    assert np.diff(shifted) == pytest.approx(np.diff(plain), abs=1e-9)


def test_it_repeats_and_depends_on_its_seed():
    values = np.random.default_rng(0).normal(size=(30, 1))
    assert (bootstrap_means(values, 1, 0) == bootstrap_means(values, 1, 0)).all()
    assert (bootstrap_means(values, 1, 0) != bootstrap_means(values, 1, 1)).any()


def test_independent_rows_are_covered_about_as_often_as_promised():
    rng = np.random.default_rng(1)
    hits = 0
    for seed in range(30):
        low, high = interval(bootstrap_means(rng.exponential(size=(60, 1)), 1, seed), 60)
        hits += low <= 1.0 <= high
    assert hits >= 25


def test_runs_of_rows_widen_the_interval_of_rows_that_go_together():
    rng = np.random.default_rng(2)
    values = np.repeat(rng.normal(size=30), 10)[:, None]
    alone = np.diff(interval(bootstrap_means(values, 1, 0), 300))
    together = np.diff(interval(bootstrap_means(values, 10, 0), 300))
    assert together > 2.0 * alone


def test_a_run_of_all_rows_is_all_rows():
    values = np.random.default_rng(0).normal(size=(12, 1))
    assert bootstrap_means(values, 12, 0) == pytest.approx(np.full((2000, 1), values.mean()))


def test_there_are_runs_enough_to_draw_from():
    assert run_length(3, ordered=True) == 1
    assert run_length(40, ordered=True) == 5
    assert run_length(100, ordered=True) == 7
    assert run_length(100, ordered=False) == 1


def test_few_rows_and_equal_rows_have_no_interval():
    values = np.random.default_rng(0).normal(size=(9, 1))
    assert np.isnan(interval(bootstrap_means(values, 1, 0), 9)).all()
    assert np.isnan(interval(bootstrap_means(np.ones((50, 1)), 1, 0), 50)).all()


def test_a_row_that_was_judged_twice_counts_once():
    rows, means = by_row(np.array([1, 0, 1, 0]), np.array([[1.0], [2.0], [3.0], [4.0]]))
    assert rows.tolist() == [0, 1]
    assert means[:, 0].tolist() == [3.0, 2.0]
