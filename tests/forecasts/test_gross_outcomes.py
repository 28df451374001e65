import numpy as np
import pytest

from surefoot.forecasts import gross_outcomes
from surefoot.forecasts.gross_outcomes import (
    expected_outcomes,
    judged_outcomes,
    near_own_past,
    standing_alone,
)
from surefoot.forecasts.robust_scales import robust_scale


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


def test_of_many_rows_some_are_learned_from_and_all_are_told(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 2))
    y = 3.0 + X @ [2.0, -1.0] + 0.1 * rng.normal(size=500)
    y[1::5] += 50.0  # rows that are not looked at have no say
    monkeypatch.setattr(gross_outcomes, "MANY_ROWS", 100)
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
    assert judged.bounded[3] <= 3.0 * np.delete(y, 3).max()
    assert judged.bounded[3] < y[3] or judged.gross[3]
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


@pytest.mark.parametrize("factor", [100.0, 0.01, -1.0])
def test_slips_among_outcomes_of_many_sizes_are_judged_by_the_tail(factor):
    """Sales from 1 to 1,000: a hundred times a small one is no more than a few times the largest."""
    all_found = 0
    for rng in map(np.random.default_rng, range(10)):
        X = rng.normal(size=(80, 3))
        y = np.exp(3.0 + 1.3 * X[:, 0] + 0.1 * rng.normal(size=80))
        far = np.argsort(y)[40:43]
        y[far] = factor * y[far] if factor < 0.0 else factor * y.max() * np.array([1.0, 0.7, 0.5])
        found = set(np.flatnonzero(judged_outcomes(X, y).gross))
        assert found <= set(far)
        all_found += found == set(far)
    assert all_found >= (8 if factor > 1.0 else 0)


@pytest.mark.parametrize("n", [20, 50, 300])
def test_one_in_twenty_tails_of_powers_has_a_gap_that_stands_alone(n):
    """Whatever the number of rows, and the power."""
    alone = 0
    for rng in map(np.random.default_rng, range(1000)):
        logs = rng.exponential(rng.uniform(1.0, 3.0), size=n)
        alone += standing_alone(logs, logs == logs.max(), logs < logs.max()).any()
    assert 30 <= alone <= 70


@pytest.mark.parametrize("tail", [1.5, 2.0, 3.0])
def test_tails_of_powers_are_seldom_errors(tail):
    errors = sum(
        judged_outcomes(rng.normal(size=(100, 2)), 1.0 + rng.pareto(tail, 100)).gross.any()
        for rng in map(np.random.default_rng, range(60))
    )
    assert errors <= 6


def test_all_beyond_the_first_gap_stand_alone():
    logs = np.append(np.linspace(0.0, 1.0, 40), [4.0, 4.5, 9.0])
    assert np.flatnonzero(standing_alone(logs, logs > 1.0, logs <= 1.0)).tolist() == [40, 41, 42]


@pytest.mark.parametrize("mean", [1.6, 2.0, 3.0])
def test_numbers_that_fall_below_zero_now_and_then_are_not_turned_around(mean):
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 2))
        found += judged_outcomes(X, mean + 0.6 * X[:, 0] + 0.8 * rng.normal(size=100)).gross.any()
    assert found <= 1


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_turned_signs_are_found_where_the_forecast_is_good(share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = 20.0 + 5.0 * X[:, 0] + 2.0 * rng.normal(size=200)
    bad = rng.choice(200, int(200 * share), replace=False)
    y[bad] *= -1.0
    assert np.flatnonzero(judged_outcomes(X, y).gross).tolist() == sorted(bad)


def test_the_past_bears_witness_by_its_own_columns_and_its_own_sign():
    rng = np.random.default_rng(0)
    z = 50.0 + 10.0 * np.sin(np.arange(82) / 3.0) + rng.normal(size=82)
    X, y = np.column_stack([z[1:-1], z[:-2], rng.normal(size=80)]), z[2:].copy()
    assert near_own_past(X, y)[:, :2].all(axis=1).mean() > 0.9
    assert not near_own_past(X, y)[:, 2].any()
    y[40] *= -1.0
    y[50] = 0.1  # near the column of noise alone
    near = near_own_past(X, y)
    assert not near[[40, 50]].any()


def test_a_common_kind_of_large_order_is_taken_nearly_as_it_is():
    """One in fifteen is six times as large: high service levels ask for these."""
    for rng in map(np.random.default_rng, range(5)):
        y = np.exp(3.0 + 0.3 * rng.normal(size=300)) * np.where(rng.random(300) < 0.07, 6.0, 1.0)
        judged = judged_outcomes(rng.normal(size=(300, 3)), y)
        assert not judged.gross.any()
        tails = np.quantile([judged.bounded, y], [0.95, 0.97], axis=1)
        np.testing.assert_allclose(tails[:, 0], tails[:, 1], rtol=0.05)


def test_one_in_ten_is_how_the_data_are():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(120) < 12, 80.0, 10.0) + rng.normal(size=120)
    assert not judged_outcomes(rng.normal(size=(120, 3)), y).gross.any()
    y[6:12] -= 70.0
    assert judged_outcomes(rng.normal(size=(120, 3)), y).gross[:6].all()


@pytest.mark.parametrize("times", [10.0, 100.0])
def test_a_slip_does_not_hide_behind_promotions(times):
    found = 0
    for rng in map(np.random.default_rng, range(10)):
        flag = (np.arange(40) < 3).astype(float)
        X = np.column_stack([flag, rng.normal(size=(40, 2))])
        y = (50.0 + 5.0 * X[:, 1] + 4.0 * rng.normal(size=40)) * np.where(flag > 0.0, 3.0, 1.0)
        y[20] *= times
        found += np.flatnonzero(judged_outcomes(X, y).gross).tolist() == [20]
    assert found >= 8
