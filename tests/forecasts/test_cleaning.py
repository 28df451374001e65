import numpy as np
import pytest

from surefoot.forecasts import cleaning
from surefoot.forecasts.cleaning import (
    cleaned,
    column_range,
    expected_outcomes,
    explained,
    far_contexts,
    gross_contexts,
    judged_outcomes,
    lone_levels,
    robust_scale,
)


def test_the_robust_scale_of_normal_numbers_is_their_standard_deviation():
    x = 3.0 * np.random.default_rng(0).normal(size=(20_000, 2))
    np.testing.assert_allclose(robust_scale(x), 3.0, rtol=0.03)


@pytest.mark.parametrize("n", [1, 2, 5, 11, 100, 101])
def test_the_robust_scale_is_that_of_quantiles(n):
    x = np.random.default_rng(n).normal(size=(n, 3)).round(1)
    q = np.quantile(x, [0.1, 0.25, 0.75, 0.9], axis=0)
    np.testing.assert_array_equal(
        robust_scale(x), np.maximum((q[2] - q[1]) / 1.349, (q[3] - q[0]) / 2.563)
    )


@pytest.mark.parametrize("share", [0.01, 0.05, 0.09])
def test_a_tenth_on_one_side_cannot_move_the_scale(share):
    x = np.random.default_rng(0).normal(size=(1000, 1))
    before = robust_scale(x)[0]
    x[: int(1000 * share)] = 1e9
    assert robust_scale(x)[0] < 2.5 * before


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


@pytest.mark.parametrize("factor", [100.0, 10.0, -1.0, 0.0])
def test_gross_outcomes_are_found(factor):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = 20.0 + 2.0 * X[:, 0] + rng.normal(size=60)
    y[9] *= factor
    assert np.flatnonzero(judged_outcomes(X, y).gross).tolist() == [9]


@pytest.mark.parametrize("seed", range(5))
def test_heavy_tails_of_positive_outcomes_are_no_errors(seed):
    rng = np.random.default_rng(seed)
    assert not judged_outcomes(rng.normal(size=(300, 2)), rng.lognormal(0.0, 1.0, 300)).gross.any()


def test_a_far_outcome_that_a_long_tailed_context_explains_is_expected():
    # Huber's estimator of y = 5x + noise: cutting outcomes at their own scale alone would bend it.
    rng = np.random.default_rng(1)
    X = rng.pareto(1.5, (200, 1))
    y = 5.0 * X[:, 0] + rng.normal(size=200)
    assert np.abs(y - np.median(y)).max() > 20.0 * robust_scale(y[:, None])[0]
    assert expected_outcomes(X, y) == pytest.approx(5.0 * X[:, 0], abs=1.0, rel=0.01)
    judged = judged_outcomes(X, y)
    assert not judged.gross.any()
    np.testing.assert_array_equal(judged.bounded, y)


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


def test_of_many_rows_some_are_learned_from_and_all_are_told(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 2))
    y = 3.0 + X @ [2.0, -1.0] + 0.1 * rng.normal(size=500)
    y[1::5] += 50.0  # rows that are not looked at have no say
    monkeypatch.setattr(cleaning, "MANY_ROWS", 100)
    assert expected_outcomes(X, y) == pytest.approx(3.0 + X @ [2.0, -1.0], abs=0.2)


def test_slips_beside_long_tailed_contexts_have_no_say_in_what_is_expected():
    rng = np.random.default_rng(1)
    X = rng.pareto(1.5, (200, 1))
    y = 5.0 * X[:, 0] + rng.normal(size=200)
    y[np.argsort(X[:, 0])[40:50]] *= 1000.0
    slope = np.polyfit(X[:, 0], expected_outcomes(X, y), 1)[0]
    assert slope == pytest.approx(5.0, rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_slips_in_the_farthest_rows_of_a_long_tail_are_errors(seed):
    rng = np.random.default_rng(seed)
    rain = np.where(rng.uniform(size=100) < 0.6, 0.0, 5.0 * rng.exponential(size=100) ** 2)
    X, y = np.column_stack([rain, rng.normal(size=100)]), 20.0 + 2.0 * rng.normal(size=100)
    slips = np.argsort(rain)[-3:]
    y[slips] *= 100.0
    assert np.flatnonzero(judged_outcomes(X, y).gross).tolist() == sorted(slips)


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


def test_errors_of_one_size_have_no_scale_and_no_warning():
    X = np.array([0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1.0])[:, None]
    y = np.array([0, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0.0])
    with np.errstate(all="raise"):
        assert np.isfinite(expected_outcomes(X, y)).all()


def test_too_few_rows_are_never_suspected():
    assert not judged_outcomes(np.zeros((5, 1)), np.array([1.0, 1.1, 0.9, 1.0, 999.0])).gross.any()


def test_heavy_tails_have_bounded_influence():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.lognormal(0.0, 1.0, 300)
    y[3] *= 100.0
    judged = judged_outcomes(X, y)
    assert judged.bounded[3] < 20.0
    np.testing.assert_array_equal(judged.bounded[y < 5.0], y[y < 5.0])


@pytest.mark.parametrize("rows", [1, 2, 10])
def test_a_promotion_that_a_flag_explains_is_no_error(rows):
    rng = np.random.default_rng(0)
    flag = np.zeros(200)
    flag[:rows] = 1.0
    X = np.column_stack([rng.normal(size=200), flag])
    y = 50.0 + 200.0 * flag + 5.0 * rng.normal(size=200)
    judged = judged_outcomes(X, y)
    assert not judged.gross.any()
    np.testing.assert_array_equal(judged.bounded, y)


def test_a_heat_wave_is_no_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = 50.0 + 5.0 * rng.normal(size=200) + 150.0 * (X[:, 0] > 1.64)
    assert not judged_outcomes(X, y).gross.any()


def test_slips_of_which_some_share_a_corner_by_chance_are_errors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = 10.0 + rng.normal(size=100)
    corner, elsewhere = np.argsort(X[:, 0])[-3:], np.argsort(X[:, 0])[[20, 50]]
    slips = np.append(corner, elsewhere)
    y[slips] *= 100.0
    assert np.flatnonzero(judged_outcomes(X, y).gross).tolist() == sorted(slips.tolist())


@pytest.mark.parametrize(("columns", "rows", "told"), [(2, 4, True), (20, 4, False), (20, 7, True)])
def test_a_corner_explains_unless_chance_would_fill_one_of_so_many(columns, rows, told):
    X = np.random.default_rng(0).normal(size=(100, columns))
    far = np.zeros(100, dtype=bool)
    far[np.argsort(X[:, 0])[-rows:]] = True
    assert explained(X, far).tolist() == (far & told).tolist()


def test_outcomes_on_both_sides_of_zero_are_judged_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = 5.0 * (X[:, 0] > 0.0) + rng.normal(size=100)
    slips = np.flatnonzero(y > 4.0)[:3]
    y[slips] *= 100.0
    assert set(slips) <= set(np.flatnonzero(judged_outcomes(X, y).gross))


@pytest.mark.parametrize("count", [4, 9, 10, 11, 15, 30, 45])
def test_demand_on_few_days_is_no_error(count):
    rng = np.random.default_rng(count)
    X, y = rng.normal(size=(100, 3)), np.zeros(100)
    y[rng.choice(100, count, replace=False)] = 1.0 + rng.poisson(50, count)
    assert not judged_outcomes(X, y).gross.any()


def test_a_slip_among_days_with_demand_is_an_error():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), np.zeros(100)
    y[:30] = 1.0 + rng.poisson(50, 30)
    y[7] *= 100.0
    judged = judged_outcomes(X, y)
    assert np.flatnonzero(judged.gross).tolist() == [7]
    assert 20.0 < judged.expected[7] < 120.0
    assert judged.bounded[7] < 1000.0
    assert judged.expected[50] == 0.0


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
