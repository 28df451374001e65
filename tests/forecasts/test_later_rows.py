import warnings
from dataclasses import replace

import numpy as np
import pytest

from surefoot import RobustNewsvendor
from surefoot.costs import Pieces
from surefoot.exceptions import DataWarning
from surefoot.forecasts.ensemble import Ensemble, _Record
from surefoot.forecasts.later_rows import LaterRows, Occurrences, later_rows
from surefoot.forecasts.members import Exponential, Level
from surefoot.forecasts.outside import staying
from surefoot.forecasts.rows import Rows
from surefoot.random import rng_for

PIECES, MARGINS, DAYS = Pieces.kinked(up=1.0, down=4.0), (0.05, 1.0), np.arange(80)


def sales(seed=0, n=80):
    """Lags and an index that grows beside a series."""
    rng = np.random.default_rng(seed)
    z = 20.0 + 0.5 * np.arange(n + 2) + 3.0 * rng.normal(size=n + 2)
    return np.column_stack([z[1:-1], z[:-2], 5.0 + np.arange(n) / 7 + rng.normal(size=n)]), z[2:]


def once(turns):
    return Occurrences(np.arange(len(turns)), np.asarray(turns), np.ones(len(turns)))


def learned(X, y):
    lagged = np.array([True, True, False])
    return Ensemble().fit(X, y, None, PIECES, 0, lagged=lagged).stack, lagged


def decided(X, y, turns=DAYS):
    """Later rows of a table sorted by its outcomes, as ensembles have it, but told in order of time."""
    order = np.argsort(y, kind="stable")
    stack, lagged = learned(X, y)
    later = later_rows(
        Rows.of(X[order], y[order], None), once(turns[order]), lagged, stack.members, MARGINS, PIECES, 0
    )
    days = turns[order][later.places]
    return days, *(told[np.argsort(days)] for told in (later.moved, later.stayed))


def test_later_rows_are_decided_as_by_an_ensemble_of_the_rows_before():
    X, y = sales()
    days, moved, stayed = decided(X, y)
    assert sorted(days) == list(range(40, 80))
    for start, rows in ((40, slice(40, 60)), (60, slice(60, 80))):
        stack, _ = learned(X[:start], y[:start])
        stack = replace(stack, margin=MARGINS[0], far_margin=MARGINS[1])
        for way, told in ((stack, moved), (staying(stack), stayed)):
            alone = [replace(way, members=(one,), weights=np.ones(1)) for one in stack.members]
            expected = np.column_stack([one(X[rows]) for one in alone])
            np.testing.assert_allclose(told[rows.start - 40 : rows.stop - 40], expected, rtol=1e-12)


def test_no_row_has_a_say_in_decisions_before_it():
    X, y = sales()
    changed = y.copy()
    changed[60:] += rng_for(0, "new").normal(size=20)
    before, after = decided(X, y)[1], decided(X, changed)[1]
    np.testing.assert_allclose(before, after, rtol=1e-9)
    changed[50] += 5.0
    after = decided(X, changed)[1]
    np.testing.assert_allclose(before[:20], after[:20], rtol=1e-9)
    assert (before[20:] != after[20:]).any()


def test_rows_of_one_time_stay_together():
    X, y = sales()
    assert min(decided(X, y, DAYS // 12)[0]) == 36 // 12
    rows = Rows.of(X, y, None)
    members = learned(X, y)[0].members
    assert later_rows(rows, once(np.zeros(80, dtype=int)), None, members, MARGINS, PIECES, 0) is None


def test_few_rows_have_no_later_ones():
    X, y = sales(n=19)
    members = learned(X, y)[0].members
    assert later_rows(Rows.of(X, y, None), once(range(19)), None, members, MARGINS, PIECES, 0) is None


def test_a_member_that_early_rows_do_not_allow_decides_as_the_first():
    X, y = sales(n=24)  # twelve rows have no spreading member
    stack, lagged = learned(X, y)
    later = later_rows(Rows.of(X, y, None), once(range(24)), lagged, stack.members, MARGINS, PIECES, 0)
    place = [type(one).__name__ for one in stack.members].index("Spreading")
    np.testing.assert_array_equal(later.moved[:6, place], later.moved[:6, 0])


def wages(seed, n=150):
    """A level that doubles, and its logarithm: in between both say the same."""
    rng = np.random.default_rng(seed)
    z = 2.5 * np.exp(0.01 * np.arange(n + 1)) + 0.01 * rng.normal(size=n + 1)
    return np.column_stack([z[:-1], np.log(z[:-1]), z[:-1] ** 2]), z[1:]


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_those_of_days_ahead_where_rows_are_in_order(seed):
    X, y = wages(seed)
    lagged = np.array([True, False, False])
    costs = [
        PIECES.evaluate(stack(X[80:]) - y[80:]).mean()
        for stack in (
            Ensemble().fit(X[:80], y[:80], None, PIECES, 0, lagged=lagged, occurrences=days).stack
            for days in (None, once(range(80)))
        )
    ]
    assert costs[1] < 0.5 * costs[0]


@pytest.mark.parametrize("leads", [True, False])
def test_columns_go_with_the_past_or_stay_as_later_rows_cost_less(leads):
    rng = np.random.default_rng(0)
    if leads:  # the change of sales is that of the indicator before
        steps = np.cumsum(rng.normal(0.3, 1.0, 83))
        z = 50.0 + 5.0 * np.append(0.0, steps[:-1]) + 0.1 * rng.normal(size=83)
        X, y = np.column_stack([steps[1:-1], steps[:-2], z[1:-1]]), z[2:]
        lagged = np.array([False, False, True])
    else:
        X, y = wages(0, 81)
        lagged = np.array([True, False, False])
    stack = Ensemble().fit(X, y, None, PIECES, 0, lagged=lagged, occurrences=once(range(len(y)))).stack
    others = ~np.isin(np.arange(3), stack.trend)
    assert others.any()
    assert (stack.along[others] > 0.0).any() == leads


def test_time_costs_nothing_where_nothing_changes():
    costs = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1060, 5))
        y = 20.0 + X[:, 0] + rng.normal(size=1060)
        for time in (None, np.arange(60)):
            model = RobustNewsvendor(1.0, 0.2).fit(X[:60], y[:60], time=time)
            costs.append(model.cost(X[60:], y[60:]))
    without, given = np.reshape(costs, (6, 2)).T
    assert np.exp(np.log(given / without).mean()) < 1.02


def test_a_lag_told_by_its_numbers_says_that_rows_are_in_order():
    X, y = wages(0)
    timed = RobustNewsvendor(4.0, 1.0).fit(X[:80], y[:80], time=np.arange(80))
    plain = RobustNewsvendor(4.0, 1.0).fit(X[:80], y[:80])
    stacks = [model.problem_.policy.offset.forecasts[0] for model in (timed, plain)]
    np.testing.assert_array_equal(stacks[0].weights, stacks[1].weights)
    assert {Level, Exponential} <= {type(one) for one in stacks[0].members}


def test_a_row_that_is_there_again_is_early_and_late():
    """Whether equal rows are one row with two turns or two rows makes no difference."""
    X, y = sales(n=40)
    lagged, again = np.array([True, True, False]), np.r_[np.arange(40), np.arange(20)]
    turns = np.random.default_rng(3).permutation(60)
    members = learned(X, y)[0].members
    merged = later_rows(
        Rows.of(X, y, np.bincount(again).astype(float)), Occurrences(again, turns, np.ones(60)),
        lagged, members, MARGINS, PIECES, 0,
    )  # fmt: skip
    early = np.bincount(again[turns < 30], minlength=40)
    assert ((early > 0) & np.isin(np.arange(40), merged.places)).any()
    assert merged.masses.sum() == pytest.approx(20.0)  # half of what all rows are worth
    blocks = [
        np.bincount(again[(turns >= a) & (turns < b)], minlength=40) for a, b in ((30, 45), (45, 60))
    ]
    expected = np.concatenate([block[block > 0] for block in blocks])
    np.testing.assert_allclose(merged.masses, expected * 40 / 60)


def test_rows_are_cut_where_half_of_the_mass_is():
    X, y = sales(n=40)
    masses = np.r_[np.full(10, 3.0), np.ones(30)]
    when = Occurrences(np.arange(40), np.arange(40), masses)
    later = later_rows(Rows.of(X, y, masses), when, None, learned(X, y)[0].members, MARGINS, PIECES, 0)
    assert later.places.min() == 10


def test_few_kinds_of_rows_are_weighed_as_many_rows_are():
    """Equal rows are merged: those that are there for the first time late are the rare ones."""
    costs = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = np.eye(7)[np.arange(3600) % 7]
        y = np.where(rng.uniform(size=3600) < 0.6, 0.0, rng.poisson(5.0, 3600)).astype(float)
        model = RobustNewsvendor(1.0, 1.0).fit(X[:600], y[:600], time=np.arange(600))
        plain = RobustNewsvendor(1.0, 1.0).fit(X[:600], y[:600])
        costs.append([one.cost(X[600:], y[600:]) for one in (model, plain)])
    timed, plain = np.mean(costs, axis=0)
    assert timed < 1.02 * plain


def test_rows_without_weight_do_not_blur_the_order_of_rolling_origins():
    X, y = sales(n=80)
    plain = RobustNewsvendor(4.0, 1.0).fit(X, y, time=DAYS)
    before = np.random.default_rng(5).normal(size=(70, 3)), np.full(70, 50.0)
    padded = RobustNewsvendor(4.0, 1.0).fit(
        np.vstack([before[0], X]), np.r_[before[1], y], time=np.arange(150),
        sample_weight=np.r_[np.zeros(70), np.ones(80)],
    )  # fmt: skip
    np.testing.assert_allclose(padded.predict(X), plain.predict(X), rtol=1e-9)
    assert padded.certificate_.upper == pytest.approx(plain.certificate_.upper, rel=1e-9)


def test_the_order_of_rows_is_that_of_their_time():
    """Rows that look wrong or have no weight are left out, with their time."""
    X, y = sales(n=80)
    y = y.copy()
    y[5] *= 100.0
    mixed = np.random.default_rng(1).permutation(80)
    weights = np.r_[np.zeros(3), np.ones(77)]
    with pytest.warns(DataWarning, match="row 5"):
        one = RobustNewsvendor(4.0, 1.0).fit(X, y, time=DAYS, sample_weight=weights)
    with pytest.warns(DataWarning):
        other = RobustNewsvendor(4.0, 1.0).fit(
            X[mixed], y[mixed], time=DAYS[mixed], sample_weight=weights[mixed]
        )
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-9)


def test_outcomes_that_do_not_move_at_first_divide_nothing():
    rng = np.random.default_rng(0)
    z = np.r_[3.0, np.zeros(60), 20.0 + 3.0 * rng.normal(size=60)]
    X = np.column_stack([z[:-1], rng.normal(size=120)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", DataWarning)
        for time in (None, np.arange(120)):
            assert np.isfinite(RobustNewsvendor(4.0, 1.0).fit(X, z[1:], time=time).predict(X)).all()


def test_where_no_later_row_is_outside_columns_stay():
    """There both ways are the same: to move does not pay."""
    rng = np.random.default_rng(2)
    z = 50.0 + 5.0 * np.sin(np.arange(82)) + rng.normal(size=82)
    z[:20] = np.linspace(0.0, 100.0, 20)  # early rows have seen every level
    X, y = np.column_stack([z[:-1], 0.2 * z[:-1] + rng.normal(size=81)]), z[1:]
    lagged = np.array([True, False])
    plain, stack = (
        Ensemble().fit(X, y, None, PIECES, 0, lagged=lagged, occurrences=days).stack
        for days in (None, once(range(81)))
    )
    assert stack.along.tolist() == [1.0, 0.0]
    assert plain.along[1] > 0.0


def test_a_row_that_is_left_out_has_no_say_as_a_later_one():
    rng = np.random.default_rng(6)
    y, decisions = rng.normal(size=30), rng.normal(size=(1, 30, 3))
    rows, some = Rows.of(rng.normal(size=(30, 2)), y, None), np.arange(20, 30)
    told = rng.normal(size=(10, 3))
    record = _Record(rows, decisions, PIECES)
    whole = record.beside(LaterRows(some, np.ones(10), told, told, told[:, 0]))
    masses = (np.arange(30) < 25).astype(float)
    half = LaterRows(some[:5], np.ones(5), told[:5], told[:5], told[:5, 0])
    np.testing.assert_allclose(whole.weights(masses), record.beside(half).weights(masses), rtol=1e-12)
    assert (whole.weights(masses) != whole.weights(np.ones(30))).all()


def test_rows_of_negligible_weight_have_no_time_either():
    X, y = sales(n=80)
    plain = RobustNewsvendor(4.0, 1.0).fit(X, y, time=DAYS)
    weights, many = np.r_[np.full(40, 1e-9), np.ones(80)], np.r_[np.arange(40), np.arange(80)]
    padded = RobustNewsvendor(4.0, 1.0).fit(
        np.vstack([X[:40] + 1.0, X]),
        y[many],
        time=np.r_[200 + np.arange(40), DAYS],
        sample_weight=weights,
    )
    np.testing.assert_allclose(padded.predict(X), plain.predict(X), rtol=1e-3)


@pytest.mark.parametrize("time", [None, np.arange(100)])
def test_the_unit_of_weights_does_not_matter(time):
    walk = 200.0 + np.cumsum(np.random.default_rng(1).normal(size=107))
    X, y = np.column_stack([walk[6:-1], walk[:-7]]), walk[7:]
    weights = 0.5 ** (np.arange(100)[::-1] / 7.3)
    one, other = (
        RobustNewsvendor(1.0, 0.2).fit(X, y, time=time, sample_weight=unit * weights).predict(X)
        for unit in (1.0, 1000.0)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize(("moved", "goes"), [(0.85, True), (0.95, False)])
def test_columns_go_with_the_past_where_that_clearly_pays(moved, goes):
    """Later decisions off by one if columns stay, by some share of it if they move."""
    y, decisions = np.linspace(1.0, 2.0, 30), np.full((1, 30, 2), 1.5)
    rows, some = Rows.of(np.ones((30, 1)), y, None), np.arange(20, 30)
    told = [np.repeat(y[20:, None] + off, 2, axis=1) for off in (moved, 1.0)]
    record = _Record(rows, decisions, PIECES).beside(LaterRows(some, np.ones(10), *told, y[20:]))
    assert record.stays != goes


def doubling(n=60):
    """A past whose every step another column knows, exactly."""
    rng = np.random.default_rng(4)
    steps = rng.uniform(0.5, 4.0, size=n + 1)
    level = 50.0 + np.cumsum(steps)
    return np.column_stack([level[:-1], steps[1:]]), level[1:]


@pytest.mark.parametrize(("off", "pays"), [(0.0, True), (5.0, False)])
def test_a_line_decides_outside_if_later_rows_do_not_speak_against_it(off, pays):
    X, y = doubling()
    rows = Rows.of(X, y, None)
    stack = Ensemble().fit(X, y, None, PIECES, 0, lagged=np.array([True, False])).stack
    honest = np.repeat(y[None, :, None], len(stack.members), axis=2)
    some = np.arange(40, 60)
    told = np.repeat(y[some][:, None] + 1.0, len(stack.members), axis=1)
    inside = np.r_[np.full(10, np.nan), y[50:] + off]
    record = _Record(rows, honest, PIECES).beside(LaterRows(some, np.ones(20), told, told, inside))
    plain = replace(stack, line=None)
    assert (record.outside(plain, sure=True).line is not None) == pays
    assert record.outside(plain, sure=False).line is None


def test_later_rows_inside_are_no_business_of_a_line():
    X, y = doubling(80)
    order = np.argsort(y, kind="stable")
    stack = Ensemble().fit(X, y, None, PIECES, 0, lagged=np.array([True, False])).stack
    rows = Rows.of(X[order], y[order], None)
    later = later_rows(rows, once(order), np.array([True, False]), stack.members, MARGINS, PIECES, 0)
    seen = np.where(later.places < 60, X[order[:40], 0].max(), X[order[:60], 0].max())
    beyond = rows.contexts[later.places, 0] > 1.1 * seen
    assert beyond.any()
    assert np.isfinite(later.lined[beyond]).all()
    errors = later.lined - rows.outcomes[later.places]
    assert np.nanmax(np.abs(errors)) < 0.2


def test_what_a_second_column_knows_of_the_next_step_is_followed_outside():
    X, y = doubling(80)
    model = RobustNewsvendor(4.0, 1.0).fit(X[:60], y[:60], time=np.arange(60))
    assert np.abs(model.predict(X[60:]) - y[60:]).max() < 0.3
