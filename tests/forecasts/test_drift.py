"""A level that drifts: errors are smoothed as the formula says, only where that pays, and safely."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot import RobustNewsvendor, load
from surefoot.costs import Pieces
from surefoot.forecasts.drift import drift

COST = Pieces.kinked(up=0.2, down=1.0)


def walking(seed, n=150, step=0.3):
    """Outcomes whose level walks, and the constant decision that does not follow."""
    rng = np.random.default_rng(seed)
    outcomes = 20.0 + np.cumsum(step * rng.normal(size=n)) + rng.normal(size=n)
    return np.full(n, np.quantile(outcomes, 5 / 6)), outcomes


def moved(decided, outcomes, masses=None, times=None, lowest=-np.inf):
    masses = np.ones(len(outcomes)) if masses is None else masses
    times = np.arange(len(outcomes)) if times is None else times
    return drift(decided, outcomes, masses, times, COST, lowest)


def by_hand(decided, outcomes, lowest):
    """Return the moves and the move ahead, by loops: one row a time, each counting once."""
    n, errors = len(outcomes), outcomes - decided
    errors = errors - np.sort(errors)[(n - 1) // 2]  # the lower median
    most = 8.0 * np.sort(np.abs(errors))[(n - 1) // 2]
    first = int(0.2 * n)
    best, found = 0.0, (np.zeros(n), 0.0)
    for life in (8, 16, 32, 64):
        levels = [0.0]
        for t in range(n):
            three = np.median([errors[max(t - k, 0)] for k in range(3)])
            away = np.clip(three - levels[-1], -most, most)
            levels.append(levels[-1] + (1.0 - 0.5 ** (1.0 / life)) * away)
        later = {step: [levels[max(t - step + 1, 0)] for t in range(n)] for step in (1, 14)}
        left = np.sort(
            [outcomes[t] - decided[t] - later[k][t] for t in range(first, n) for k in (1, 14)]
        )
        asked = left[int(np.ceil(len(left) * 1.0 / 1.2)) - 1]
        constant = asked * (n - first) / (n - first + 50.0)
        gains = np.zeros(n)
        for t in range(n):
            for k in (1, 14):
                z = max(decided[t] + later[k][t] + constant, lowest)
                gains[t] += COST.evaluate(z - outcomes[t]) - COST.evaluate(decided[t] - outcomes[t])
        blocks = np.array_split(gains[first:], min(max((n - first) // 5, 4), 10))
        means = np.array([block.mean() for block in blocks])
        sure = gains[first:].mean() + 0.5 * means.std(ddof=1) / np.sqrt(len(means))
        if sure < best:
            best, found = sure, (np.array(levels[:-1]) + constant, levels[-1] + constant)
    return found


@pytest.mark.parametrize("lowest", [-np.inf, 20.0])
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_moves_follow_the_formula(seed, lowest):
    decided, outcomes = walking(seed)
    outcomes[40:44] += 60.0  # more than one error has a say, and no more than the cut allows
    found = moved(decided, outcomes, lowest=lowest)
    moves, ahead = by_hand(decided, outcomes, lowest)
    assert found.ahead == pytest.approx(ahead, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(found.moves, moves, rtol=1e-9, atol=1e-12)
    assert ahead != 0.0


@pytest.mark.parametrize("step", [20.0, 40.0, 100.0])
def test_a_step_of_any_size_is_followed(step):
    times, rng = np.arange(200), np.random.default_rng(1)
    outcomes = 100.0 + 10.0 * rng.normal(size=200) + step * (times >= 160)
    cost = Pieces.kinked(up=1.0, down=1.0)
    found = drift(np.full(200, 100.0), outcomes, np.ones(200), times, cost, -np.inf)
    assert 0.6 * step < found.ahead < 1.3 * step


@pytest.mark.parametrize("unit", [7.5, 0.5, 0.01])
def test_weights_that_are_not_whole_only_compare_rows(unit):
    decided, outcomes = walking(1)
    masses = np.random.default_rng(0).uniform(0.5, 1.5, size=150)
    one, other = moved(decided, outcomes, masses), moved(decided, outcomes, unit * masses)
    assert other.ahead == pytest.approx(one.ahead, rel=1e-9)


def test_a_level_that_walks_is_followed_and_a_steady_one_is_not():
    gains, still = [], 0
    for seed in range(20):
        decided, outcomes = walking(seed, 300)
        found = moved(decided[:250], outcomes[:250])
        after = COST.evaluate(decided[250:270] + found.ahead - outcomes[250:270]).mean()
        gains.append(after / COST.evaluate(decided[250:270] - outcomes[250:270]).mean())
        still += moved(*walking(seed, 250, step=0.0)).ahead == 0.0
    assert np.exp(np.mean(np.log(gains))) < 0.85
    assert still >= 15


@given(st.integers(0, 50), st.floats(1e-3, 1e3), st.floats(-100.0, 100.0))
def test_units_and_origin_do_not_matter(seed, unit, origin):
    decided, outcomes = walking(seed, 60)
    one, other = moved(decided, outcomes), moved(unit * decided + origin, unit * outcomes + origin)
    np.testing.assert_allclose(other.moves, unit * one.moves, rtol=1e-6, atol=1e-9 * unit)


@given(st.integers(0, 50))
def test_a_weight_of_two_is_the_row_twice(seed):
    decided, outcomes = walking(seed, 60)
    twice = np.repeat(np.arange(60), 1 + np.arange(60) % 2)
    masses = 1.0 + np.arange(60) % 2
    one = moved(decided, outcomes, masses)
    other = moved(decided[twice], outcomes[twice], times=twice)
    assert other.ahead == pytest.approx(one.ahead, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(other.moves, one.moves[twice], rtol=1e-9, atol=1e-12)


def test_rows_of_one_time_do_not_know_of_each_other():
    decided, outcomes = walking(1, 150)
    found = moved(decided, outcomes, times=np.arange(150) // 3)
    assert found.ahead != 0.0
    np.testing.assert_array_equal(found.moves[::3], found.moves[2::3])


def test_one_gross_error_moves_little():
    decided, outcomes = walking(2)
    clean = moved(decided, outcomes).ahead
    outcomes[-1] *= 1e6
    dirty = moved(decided, outcomes).ahead
    spread = np.median(np.abs(outcomes - np.median(outcomes)))
    assert abs(dirty - clean) < spread


@pytest.mark.parametrize(
    ("decided", "outcomes"),
    [(np.ones(5), np.arange(5.0)), (np.ones(50), np.ones(50))],
    ids=["few rows", "no errors"],
)
def test_where_there_is_nothing_to_learn_nothing_moves(decided, outcomes):
    found = moved(decided, outcomes)
    assert found.ahead == 0.0
    assert not found.moves.any()


def test_the_default_follows_and_stays_above_zero(tmp_path):
    rng = np.random.default_rng(0)
    weekday = np.eye(7)[np.arange(170) % 7]
    sales = np.maximum(40.0 - 0.25 * np.arange(170) + 2.0 * rng.normal(size=170), 0.0)
    X, y, days = weekday[:140], sales[:140], np.arange(140)
    plain, timed = RobustNewsvendor(1.0, 0.2).fit(X, y), RobustNewsvendor(1.0, 0.2).fit(X, y, time=days)
    assert timed.drift_ < -10.0
    assert plain.drift_ == 0.0
    assert timed.cost(weekday[140:], sales[140:]) < 0.7 * plain.cost(weekday[140:], sales[140:])
    assert timed.predict(weekday).min() >= 0.0
    timed.save(tmp_path / "orders.surefoot")
    again = load(tmp_path / "orders.surefoot")
    np.testing.assert_array_equal(again.predict(weekday), timed.predict(weekday))
    assert again.drift_ == timed.drift_


def test_equal_rows_keep_their_times():
    rng = np.random.default_rng(0)
    level = np.repeat([20.0, 30.0], 70)
    sales = level + rng.integers(0, 3, 140)  # with two weekdays most rows are there many times
    weekday = np.eye(2)[np.arange(140) % 2]
    model = RobustNewsvendor(1.0, 1.0).fit(weekday, sales, time=np.arange(140))
    assert model.drift_ > 2.0
    swapped = RobustNewsvendor(1.0, 1.0).fit(weekday, sales, time=-np.arange(140))
    assert swapped.drift_ < -2.0
