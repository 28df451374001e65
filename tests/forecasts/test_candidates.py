"""Honest decisions take their constants from other folds; copies are observations of their own."""

import numpy as np
import pytest

from surefoot import RobustNewsvendor
from surefoot.costs import Pieces
from surefoot.forecasts.candidates import FOLDS, by_others, candidates, fold_masses, honest_decisions
from surefoot.forecasts.members import Exponential, Spreading
from surefoot.forecasts.rows import Rows

COST = Pieces.kinked(up=0.2, down=1.0)
NO_PAST = np.zeros(0, dtype=np.int64)


def rows(n=40, masses=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return Rows.of(X, 10.0 + X[:, 0] + rng.normal(size=n), masses)


class TestFoldMasses:
    @pytest.mark.parametrize("n", [1, 3, 40])
    def test_a_row_is_in_one_fold(self, n):
        parts = fold_masses(rows(n), 0)
        assert parts.shape == (n, min(n, FOLDS))
        assert ((parts > 0).sum(axis=1) == 1).all()
        assert np.ptp((parts > 0).sum(axis=0)) <= 1

    def test_masses_are_kept(self):
        made = rows(masses=np.random.default_rng(0).uniform(0.1, 3.0, 40))
        assert fold_masses(made, 0).sum(axis=1) == pytest.approx(made.masses)

    def test_units_of_mass_are_spread(self):
        X, y = np.repeat([[0.0], [1.0]], 2, axis=0), np.array([1.0, 2.0, 3.0, 4.0])
        made = Rows.of(X, y, np.full(4, 1_000.0))
        assert made.units
        parts = fold_masses(made, 0)
        assert parts.sum(axis=1).tolist() == [1_000.0] * 4
        assert parts == pytest.approx(np.full((4, FOLDS), 200.0), abs=60.0)


def test_what_is_told_of_a_row_comes_from_the_others():
    parts = fold_masses(rows(), 0)
    seen = by_others(parts, lambda masses: (masses > 0).astype(float))
    assert (seen == 0.0).all()
    assert by_others(np.ones((1, 1)), lambda masses: masses).tolist() == [1.0]  # there are no others


def test_a_constant_does_not_depend_on_its_own_row():
    made = rows()
    parts = fold_masses(made, 0)
    found, other = (candidates(made, COST, 0, NO_PAST, constant=False)[0] for _ in range(2))
    other.scores[3] += 50.0
    one, two = (honest_decisions([member], made, parts, COST)[:, 0] for member in (found, other))
    fold = parts[3].argmax()
    same = parts.argmax(axis=1) == fold
    assert one[same] == pytest.approx(two[same], rel=1e-12)
    assert (one[~same] != two[~same]).all()


def test_bounds_of_few_kinds_of_rows_tighten():
    """Copies are observations: leaving out every copy of a row at once would leave a gap of its own."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (600, 1)).astype(float)
    y = 3.0 + 2.0 * x[:, 0] + rng.integers(0, 4, 600)
    plain = RobustNewsvendor(1.0, 1.0).fit(x, y).certificate_.upper
    noise = 1e-7 * rng.normal(size=(2, 600))
    jittered = RobustNewsvendor(1.0, 1.0).fit(x + noise[:1].T, y + noise[1]).certificate_.upper
    assert plain == pytest.approx(jittered, rel=0.02)


def test_a_weight_beyond_all_others_is_borne():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    weights = np.append(1e12, np.ones(79))
    model = RobustNewsvendor(1.0, 0.2).fit(X, 10.0 + X[:, 0], sample_weight=weights)
    assert np.isfinite(model.predict(X)).all()


def test_effects_that_multiply_are_read_on_the_logarithm():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(size=80), rng.normal(size=80), 5.0 + rng.uniform(size=80)])
    y = 3.0 * X[:, 0] ** 0.7 * np.exp(0.2 * X[:, 1])
    pieces = Pieces.kinked(up=1.0, down=1.0)
    found = candidates(Rows.of(X, y, None), pieces, 0, NO_PAST, constant=False)
    members = [one.member(0.0) for one in found]
    (one,) = [member for member in members if isinstance(member, Exponential)]
    assert (one.floors > 0.0).tolist() == [
        True,
        False,
        False,
    ]  # the second is negative, the third narrow
    far = np.array([[2.0 * X[:, 0].max(), 0.0, 5.5]])
    assert one(far) == pytest.approx(3.0 * far[:, 0] ** 0.7, rel=0.02)
    assert one(far * [[-1.0, 1.0, 1.0]]) == one(np.array([[one.floors[0], 0.0, 5.5]]))


@pytest.mark.parametrize("member", [0, 1], ids=["plain", "linear"])
def test_an_outcome_has_a_bounded_say(member):
    made = rows(n=60)
    y = made.outcomes.copy()
    decided = []
    for size in (12.0, 20.0):
        y[7] = made.outcomes[7] + size
        found = candidates(made.telling(y.copy()), COST, 0, NO_PAST, constant=False)[member]
        decided.append(found.member(0.0)(made.contexts))
        # Errors are those of what was written down, not of what was learned from.
        assert found.scores[7] > 0.7 * size
    assert np.abs(decided[1] - decided[0]).max() < 0.05


def test_a_promotion_seen_once_is_learned_in_full():
    rng = np.random.default_rng(0)
    flag = (np.arange(100) < 1).astype(float)
    made = Rows.of(
        np.column_stack([rng.normal(size=100), flag]), 10.0 + 20.0 * flag + rng.normal(size=100), None
    )
    linear = candidates(made, COST, 0, NO_PAST, constant=False)[1].member(0.0)
    low, high = linear(np.array([[0.0, 0.0], [0.0, 1.0]]))
    assert high - low > 15.0


def grown(n=40, factor=1.05, seed=0):
    """Sales that grow by a share of what they were, beside a column that says nothing."""
    rng = np.random.default_rng(seed)
    z = 10.0 * np.cumprod(factor * np.exp(0.02 * rng.normal(size=n + 1)))
    return Rows.of(np.column_stack([z[:-1], rng.normal(size=n)]), z[1:], None)


def member_of(made, kind, past=(0,)):
    found = candidates(made, COST, 0, np.array(past, dtype=np.int64), constant=False)
    (one,) = [told for told in found if isinstance(told.member(0.0), kind)]
    return one


@pytest.mark.parametrize("narrow", [1.05, 1.005])
def test_sales_with_their_past_are_forecast_by_their_growth(narrow):
    """However narrow the range is: a forecast of sales is drawn to their mean at its ends."""
    made = grown(factor=narrow)
    one = member_of(made, Exponential)
    assert one.member(0.0).floors[0] > 0.0
    last, first = made.contexts.max(), made.contexts[:, 0].min()
    for level in (last, 1.5 * last, first):
        decided = one.member(0.0)(np.array([[level, 0.0]]))
        assert decided == pytest.approx(narrow * level, rel=0.01)
    errors = np.log(made.outcomes / made.contexts[:, 0]) - np.log(narrow)
    assert one.scores == pytest.approx(errors, abs=0.02)  # honest errors of the growth


def test_small_sales_of_long_ago_are_sales():
    """Growth from a hundredth of the median is growth; without a past it is moved away from zero."""
    made = grown(n=80, factor=1.12)
    assert made.outcomes.min() < 0.05 * np.median(made.outcomes)
    assert member_of(made, Exponential).member(0.0).shift == 0.0
    assert member_of(made, Exponential, past=()).member(0.0).shift > 0.0


@pytest.mark.parametrize("column", [0, 1])
def test_a_past_with_zeros_has_no_growth(column):
    made = grown()
    contexts, y = made.contexts.copy(), made.outcomes.copy()
    if column:
        y[3] = 0.0
    else:
        contexts[3, 0] = 0.0
    one = member_of(Rows.of(contexts, y, None), Exponential).member(0.0)
    assert np.isfinite(one(contexts)).all()
    assert one.shift > 0.0 or one.floors is None or one.floors[0] == 0.0


def test_where_there_is_a_past_errors_of_changes_have_a_size():
    """Few rows of a walk: a forecast of its level is drawn to the mean, one of changes is not."""
    walk = 100.0 + np.cumsum(np.random.default_rng(3).normal(size=26))
    made = Rows.of(np.column_stack([walk[:-1], np.arange(25) % 5]), walk[1:], None)
    told, plain = (member_of(made, Spreading, past).member(0.0) for past in ((0,), ()))
    ends = np.sort(made.contexts, axis=0)[[0, -1]]
    drawn, other = (np.abs(one(ends) - ends[:, 0]).max() for one in (plain, told))
    assert other < 0.5 * drawn
