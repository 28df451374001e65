import numpy as np
import pytest

from surefoot.forecasts.cleaning import (
    cleaned,
    column_range,
    far_contexts,
    gross_contexts,
    lone_levels,
)


def test_gross_contexts_are_found_and_flags_are_left_alone():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=100), np.arange(100) % 33 == 0, rng.normal(size=100)])
    X[4, 0] = 200.0
    gross = gross_contexts(X, far_contexts(X))
    assert np.argwhere(gross).tolist() == [[4, 0]]
    least, most = column_range(X, gross)
    assert most[0] < 5.0
    assert (least[1], most[1]) == (0.0, 1.0)


def test_long_tails_and_flags_are_no_errors():
    rng = np.random.default_rng(0)
    rain = np.where(rng.uniform(size=600) < 0.7, 0.0, rng.gamma(0.5, 8.0, size=600))
    flag = (np.arange(600) % 10 == 0).astype(float)
    X = np.column_stack([rain, flag, 3.0 * flag])
    assert not gross_contexts(X, far_contexts(X)).any()


def test_many_far_numbers_are_how_the_data_are():
    X = np.random.default_rng(0).normal(size=(100, 1))
    X[:25] += 1000.0
    assert not far_contexts(X).any()


def test_far_contexts_that_do_not_stand_alone_are_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1))
    X[:5, 0] = [6.0, 12.0, 27.0, 75.0, -200.0]
    found = cleaned(X, rng.normal(size=100))
    assert found.suspects == ()
    assert len(found.kept) == 100
    assert found.contexts.max() == found.most[0] == 75.0
    assert found.contexts.min() == found.least[0] == -200.0


def test_what_stands_alone_behind_a_gap_is_an_error_and_what_is_nearer_is_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1))
    X[:5, 0] = [6.0, 12.0, 27.0, 300.0, -350.0]
    assert np.flatnonzero(gross_contexts(X, far_contexts(X))).tolist() == [3, 4]


@pytest.mark.parametrize("typed", [999999.0, 10.0, -100.0])
def test_a_lone_number_among_flags_is_a_slip_whatever_the_outcome(typed):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(60) % 10 == 0, rng.normal(size=60)]).astype(float)
    y = 50.0 + 60.0 * X[:, 0] + rng.normal(size=60)
    X[33, 0] = typed
    clean = cleaned(X, y)
    assert [(s.row, s.column, s.value) for s in clean.suspects] == [(33, "0", typed)]
    assert 33 not in clean.kept
    assert (clean.least[0], clean.most[0]) == (0.0, 1.0)


@pytest.mark.parametrize(
    "counts",
    [
        [0] * 40 + [1] * 15 + [2] * 4 + [7],  # a count with a tail
        [0] * 59 + [100],  # the only one that is not zero
        [0] * 40 + [1] * 16 + [100] * 2 + [200] * 2,  # many are so
        [0] * 40 + [1] * 16 + [20, 30, 40],  # a tail of few
        [0, 0, 1, 1, 0, 1, 100],  # few rows
    ],
)
def test_counts_rare_flags_and_few_rows_have_no_lone_levels(counts):
    assert not lone_levels(np.array(counts, dtype=float)[:, None]).any()


@pytest.mark.parametrize("true", [True, False])
def test_a_lone_far_context_is_kept_if_its_outcome_belongs_to_it(true):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[7, 0] = 40.0
    y = 100.0 + 3.0 * X[:, 0] + X[:, 1] + rng.normal(size=60)
    if not true:
        y[7] -= 120.0
    result = cleaned(X, y)
    assert (7 in result.kept) == true
    assert [(one.row, one.column) for one in result.suspects] == ([] if true else [(7, "0")])
    assert result.most[0] == (40.0 if true else np.delete(X[:, 0], 7).max())


@pytest.mark.parametrize("flagged", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_wild_outcome_of_a_rare_flag_is_a_slip_unless_another_is_like_it(flagged, seed):
    rng = np.random.default_rng(seed)
    flags = (np.arange(60) < flagged).astype(float)
    X = np.column_stack([rng.normal(size=(60, 3)), flags])
    y = 50.0 + 5.0 * X[:, 0] + 10.0 * flags + 3.0 * rng.normal(size=60)
    typed, promoted = y.copy(), y.copy()
    typed[0] *= 100.0
    promoted[flags > 0] *= 100.0
    assert [one.row for one in cleaned(X, typed).suspects] == [0]
    assert bool(cleaned(X, promoted).suspects) is (flagged == 1)


def series(levels, seed=0):
    """Contexts of three lags and outcomes of a series around its levels."""
    z = np.asarray(levels, dtype=float) + 5.0 * np.random.default_rng(seed).normal(size=len(levels))
    return np.column_stack([z[2:-1], z[1:-2], z[:-3]]), z[3:]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "new", "low", "high"), [
    (200, 20, 50, 130), (120, 11, 50, 130), (60, 8, 50, 130), (40, 5, 50, 130), (40, 5, 100, 15),
])  # fmt: skip
def test_a_new_level_that_the_past_bears_witness_to_is_no_error(n, new, low, high, seed):
    X, y = series(np.where(np.arange(n + 3) < n + 3 - new, low, high), seed)
    # The first row of a new level cannot be told from a slip.
    assert {one.row for one in cleaned(X, y).suspects} <= {n - new}


@pytest.mark.parametrize("seed", range(3))
def test_a_slip_in_a_series_is_one_and_so_is_a_number_that_stands_for_a_gap(seed):
    X, y = series(np.full(80, 50.0), seed)
    z = np.concatenate([X[0, ::-1], y])
    z[40] = 500.0
    spoilt, told = np.column_stack([z[2:-1], z[1:-2], z[:-3]]), z[3:]
    assert 37 in {one.row for one in cleaned(spoilt, told).suspects}
    z[40:43] = 9999.0
    spoilt, told = np.column_stack([z[2:-1], z[1:-2], z[:-3]]), z[3:]
    assert {37, 38, 39} <= {one.row for one in cleaned(spoilt, told).suspects}


@pytest.mark.parametrize("times", [20, 25, 30, 50])
@pytest.mark.parametrize("seed", range(4))
def test_two_promotions_bear_witness_to_each_other(times, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(60, 4)), np.isin(np.arange(60), [10, 40])])
    y = (50 + 6 * X[:, 0] + 3 * X[:, 1] + 5 * rng.normal(size=60)) * np.where(X[:, 4] > 0, times, 1)
    assert not cleaned(X, y).suspects


@pytest.mark.parametrize("slips", [1, 2, 3])
def test_several_slips_in_one_column_do_not_bear_witness_to_each_other(slips):
    rng = np.random.default_rng(1)
    z = 60.0 + np.arange(64) + rng.normal(size=64)
    X, y = np.column_stack([z[3:-1], z[:-4], np.arange(60) % 4 == 0]), z[4:]
    bad = np.array([2, 55, 30])[:slips]
    X[bad, 0] *= 100.0
    assert sorted(one.row for one in cleaned(X, y).suspects) == sorted(bad)


@pytest.mark.parametrize("slips", [{60: -1.0}, {77: 10.0, 78: 10.0, 79: 10.0}])
def test_slips_are_slips_in_lags_too_and_columns_keep_to_the_range_of_sound_rows(slips):
    walk = 200.0 + np.cumsum(3.0 * np.random.default_rng(0).normal(size=81))
    typed = walk.copy()
    for row, times in slips.items():
        typed[row + 1] *= times
    X, y = typed[:-1, None], typed[1:]
    clean = cleaned(X, y)
    wrong = {(row, "outcome") for row in slips}
    copied = {(row + 1, "0") for row in slips if row + 1 < 80}
    assert {(one.row, one.column) for one in clean.suspects} == wrong | copied
    assert set(range(80)) - set(clean.kept) == {row for row, _ in wrong | copied}
    assert walk.min() <= clean.least[0]
    assert clean.most[0] <= walk.max()


def test_a_turned_sign_is_named_in_every_lag_of_a_series_that_grows():
    """There a number below zero is not far from a column that spans two thirds of its level."""
    rng = np.random.default_rng(0)
    z = 100.0 * np.exp(0.01 * np.arange(127) + 0.05 * rng.normal(size=127))
    z[40] *= -1.0
    X, y = np.column_stack([z[6:-1], z[:-7]]), z[7:]
    clean = cleaned(X, y)
    assert {(one.row, one.column) for one in clean.suspects} == {(33, "outcome"), (34, "0"), (40, "1")}
    assert clean.least.min() > 0.0


def test_what_only_a_wrong_row_holds_was_not_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[7, 0] = 6.0  # alone, but not as far as a slip would be
    y = 50.0 + 3.0 * X[:, 1] + rng.normal(size=60)
    assert cleaned(X, y).most[0] == 6.0
    y[7] *= 100.0
    clean = cleaned(X, y)
    assert [(one.row, one.column) for one in clean.suspects] == [(7, "outcome")]
    assert clean.most[0] == np.delete(X[:, 0], 7).max()
