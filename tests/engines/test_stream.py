"""What a stream knows of its columns, and that a slip of a pen does not cost the rows that follow."""

import numpy as np
import pytest

from surefoot import Box, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.engines.choice import begin_stream
from surefoot.engines.step_rules import AdaptiveStep, ConstantStep, DecayingRadius
from surefoot.engines.stream import (
    MAD_SHARE,
    StreamOptions,
    column_records,
    fitted_records,
    support_of,
    without_outliers,
)
from surefoot.engines.stream_kernels import (
    COLUMN,
    CONSTANT_RULE,
    CUT_SPREADS,
    known_rows,
    stream_steps,
)
from surefoot.online import OnlinePolicy, Window
from surefoot.policies import Linear
from surefoot.random import rng_for

FREE = np.array([-np.inf]), np.array([np.inf])


def records_of(values, **options):
    """The record of one column."""
    rows = np.asarray(values, dtype=float)[:, None]
    return column_records(rows, np.zeros(1, dtype=bool), FREE, **options)[0]


# Columns of the first rows


def test_first_rows_say_mean_spread_and_range():
    X = rng_for(0, "stream", "columns").normal(size=(30, 3)) * [1.0, 5.0, 0.1] + [0.0, 3.0, -7.0]
    bounds = np.array([-50.0, -np.inf, -10.0]), np.array([50.0, np.inf, 10.0])
    records = column_records(X, np.array([False, True, False]), bounds)
    assert records.dtype == COLUMN
    np.testing.assert_allclose(records["mean"], X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(records["deviations"], 30 * X.var(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(records["count"], 30.0)
    np.testing.assert_array_equal(records["low"], X.min(axis=0))
    np.testing.assert_array_equal(records["high"], X.max(axis=0))
    far = known_rows(np.array([[-1e9] * 3, [1e9] * 3]), records)
    np.testing.assert_allclose(far, X.mean(axis=0) + [[-6.0], [6.0]] * X.std(axis=0), rtol=1e-12)
    assert records["frozen"].tolist() == [0.0, 1.0, 0.0]
    np.testing.assert_array_equal(records["lower"], bounds[0])
    np.testing.assert_array_equal(records["upper"], bounds[1])
    assert not records["cut"].any()
    assert not records["uncut"].any()


def test_gaps_are_no_values():
    record = records_of([1.0, np.nan, 3.0, np.nan])
    assert (record["count"], record["mean"], record["deviations"]) == (2.0, 2.0, 2.0)
    assert (record["low"], record["high"]) == (1.0, 3.0)
    empty = records_of([np.nan, np.nan])
    assert (empty["count"], empty["mean"], empty["deviations"]) == (0.0, 0.0, 0.0)
    assert (empty["low"], empty["high"]) == (np.inf, -np.inf)
    assert records_of([])["count"] == 0.0


def test_a_category_that_had_not_occurred_was_zero_before():
    record = records_of([1.0, 0.0, 1.0, 1.0], zeros=np.array([96.0]))
    values = np.concatenate([np.zeros(96), [1.0, 0.0, 1.0, 1.0]])
    assert record["count"] == 100.0
    assert record["mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert record["deviations"] == pytest.approx(100 * values.var(), rel=1e-12)
    assert (record["low"], record["high"]) == (0.0, 1.0)
    unseen = records_of([], zeros=np.array([96.0]))
    assert (unseen["count"], unseen["mean"], unseen["low"], unseen["high"]) == (96.0, 0.0, 0.0, 0.0)


def test_a_slip_among_the_first_rows_does_not_set_the_scale():
    values = rng_for(0, "stream", "slip").normal(size=16)
    slipped = np.append(values[:15], 9999.0)
    record, clean = records_of(slipped), records_of(values)
    assert record["cut"] == 1.0
    assert record["deviations"] < 10.0 * clean["deviations"]
    assert record["high"] < 20.0
    assert np.abs(record["mean"] - clean["mean"]) < 1.0
    plain = records_of(slipped, cut=False)
    assert plain["cut"] == 0.0
    assert plain["high"] == 9999.0


# Outliers


def test_values_far_from_the_median_are_taken_as_the_nearest_that_are_not():
    values = np.array([3.0, 1.0, 2.0, 4.0, 5.0, 1e9, -1e9])
    kept = without_outliers(values)
    yardstick = CUT_SPREADS * 2.0 / MAD_SHARE  # absolute deviations 0, 1, 1, 2, 2, far, far
    np.testing.assert_array_equal(kept[:5], values[:5])
    np.testing.assert_allclose(kept[5:], [3.0 + yardstick, 3.0 - yardstick], rtol=1e-12)
    np.testing.assert_array_equal(values[5:], [1e9, -1e9])  # what was handed in is not changed


def test_outliers_do_not_depend_on_order_unit_or_place():
    rng = rng_for(0, "stream", "laws")
    values = np.append(rng.normal(size=15), 40.0)
    kept = without_outliers(values)
    shuffled = rng.permutation(16)
    np.testing.assert_array_equal(without_outliers(values[shuffled]), kept[shuffled])
    np.testing.assert_allclose(without_outliers(-1e6 * values + 7.0), -1e6 * kept + 7.0, rtol=1e-9)


def test_ordinary_values_stay_to_the_last_bit():
    rng = rng_for(0, "stream", "ordinary")
    for values in (rng.normal(size=16), rng.uniform(size=16), rng.exponential(size=2)):
        np.testing.assert_array_equal(without_outliers(values), values)


def test_without_a_yardstick_all_stay():
    values = np.array([0.0] * 10 + [1.0, 500.0])  # more than half are equal
    np.testing.assert_array_equal(without_outliers(values), values)
    np.testing.assert_array_equal(without_outliers(np.array([7.0])), [7.0])


# Columns of a fit


def test_a_fit_hands_on_what_it_knew():
    rng = rng_for(0, "stream", "fit")
    X, weights = rng.normal(size=(40, 2)) * [1.0, 9.0] + 2.0, rng.dirichlet(np.ones(40))
    frozen, bounds = np.array([True, False]), (np.full(2, -30.0), np.full(2, np.inf))
    records = fitted_records(X, weights, 25.5, frozen, bounds)
    mean = weights @ X
    variance = weights @ (X - mean) ** 2
    np.testing.assert_allclose(records["mean"], mean, rtol=1e-12)
    np.testing.assert_allclose(records["deviations"], 25.5 * variance, rtol=1e-12)
    np.testing.assert_array_equal(records["count"], 25.5)
    np.testing.assert_array_equal(records["low"], X.min(axis=0))
    np.testing.assert_array_equal(records["high"], X.max(axis=0))
    expected = np.maximum(X.max(axis=0), mean + 6 * np.sqrt(variance))
    np.testing.assert_allclose(known_rows(np.full((1, 2), 1e9), records)[0], expected, rtol=1e-12)
    assert records["frozen"].tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(records["lower"], -30.0)
    free = fitted_records(X, weights, 25.5, frozen, bounds, cut=False)
    np.testing.assert_array_equal(known_rows(np.full((1, 2), 1e9), free), 1e9)


def test_equal_weights_are_the_first_rows_but_for_their_outliers():
    X = rng_for(0, "stream", "both").normal(size=(30, 2))
    frozen, bounds = np.zeros(2, dtype=bool), (np.full(2, -np.inf), np.full(2, np.inf))
    fitted = fitted_records(X, np.full(30, 1 / 30), 30.0, frozen, bounds)
    first = column_records(X, frozen, bounds)
    for name in COLUMN.names:
        np.testing.assert_allclose(fitted[name], first[name], rtol=1e-12, err_msg=name)


def test_a_support_has_bounds_for_every_column():
    for bound, expected in zip(support_of(WassersteinBall(0.1), 3), FREE, strict=True):
        np.testing.assert_array_equal(bound, np.repeat(expected, 3))
    lower, upper = support_of(WassersteinBall(0.1, support=Box([0.0, -1.0], 5.0)), 2)
    assert (lower.tolist(), upper.tolist()) == ([0.0, -1.0], [5.0, 5.0])


# Options


def stream_options(**parts):
    told = {
        "cost": Newsvendor(1.0, 0.2), "policy": Linear(), "ball": WassersteinBall(0.4), "radius": None,
        "step": AdaptiveStep(), "window": 0.0, "random_state": 0,
    }  # fmt: skip
    return StreamOptions(**{**told, **parts})


def test_rules_say_what_the_options_say():
    options = stream_options(
        radius=DecayingRadius(4), step=ConstantStep(0.3), window=50.0,
        ball=WassersteinBall(0.4, scale=False),
    )  # fmt: skip
    rules = {name: float(options.rules()[name][0]) for name in options.rules().dtype.names}
    assert rules == {
        "radius": 0.4, "radius_rows": 4.0, "scaled": 0.0, "step_rule": CONSTANT_RULE,
        "step_size": 0.3, "averaging": 0.0, "window": 50.0, "low_y": -np.inf, "high_y": np.inf,
    }  # fmt: skip
    boxed = stream_options(ball=WassersteinBall(0.4, support=Box(0, 9, outcome=(-1.0, 7.0)))).rules()
    assert (boxed["low_y"][0], boxed["high_y"][0]) == (-1.0, 7.0)
    plain = stream_options().rules()
    assert (plain["radius_rows"][0], plain["scaled"][0], plain["averaging"][0]) == (0.0, 1.0, 1.0)
    assert options.radius_at(4) == 0.4
    assert options.radius_at(16) == pytest.approx(0.2)
    assert stream_options().radius_at(1e9) == 0.4


def test_products_with_prices_of_their_own_learn_as_each_would_alone():
    rng = rng_for(0, "stream", "products")
    X = rng.normal(size=(200, 3))
    y = np.column_stack([X @ [1.0, 2.0, 3.0], X @ [0.0, -5.0, 1.0]]) + rng.normal(size=(200, 2))
    frozen, bounds = np.zeros(3, dtype=bool), (np.full(3, -np.inf), np.full(3, np.inf))
    prices = ((1.0, 0.2), (0.5, 3.0))

    def learned(cost, outcomes):
        records = column_records(X[:16], frozen, bounds)
        stream = begin_stream(stream_options(cost=cost), records, X[:16], outcomes[:16])
        return stream, stream.learn(X[16:], outcomes[16:])

    both, decided = learned(Newsvendor([b for b, _ in prices], [h for _, h in prices]), y)
    for j, (backorder, holding) in enumerate(prices):
        alone, expected = learned(Newsvendor(backorder, holding), y[:, [j]])
        np.testing.assert_allclose(decided[:, j], expected[:, 0], rtol=1e-12)
        np.testing.assert_allclose(both.decide(X)[:, j], alone.decide(X)[:, 0], rtol=1e-12)


def test_rows_that_are_read_only_or_have_gaps_compile_nothing_anew():
    rng = rng_for(0, "stream", "kinds of arrays")
    X, y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    bounds = np.full(3, -np.inf), np.full(3, np.inf)
    records = column_records(X[:16], np.zeros(3, dtype=bool), bounds)
    options = stream_options(cost=Newsvendor([1.0, 2.0], [0.2, 0.3]))
    stream = begin_stream(options, records, X[:16], y[:16])
    stream.learn(X[16:30], y[16:30])
    compiled = list(stream_steps.compiled.signatures)
    stream.learn(X[30:44:2], np.asfortranarray(y[30:44:2]))
    X.flags.writeable = y.flags.writeable = False
    stream.learn(X[44:], y[44:])
    assert list(stream_steps.compiled.signatures) == compiled


# Slips of a pen, and columns that sleep at first


COST = Newsvendor(1.0, 0.2)
N, SPREADS, CENTRES, EFFECTS = 20_000, [1.0, 5.0, 0.1], [1.0, 2.0, 3.0], [1.0, 0.2, 5.0]
POLICIES = {
    "default": {},
    "order 1": {"ball": WassersteinBall(0.1, order=1)},
    "box": {"ball": WassersteinBall(0.1, support=Box(-1e7, 1e7))},
    "outcomes move": {"ball": WassersteinBall(0.1, outcome_cost=2.0)},
    "frozen": {"ball": WassersteinBall(0.1, frozen=(0,))},
    "window": {"ball": WassersteinBall(0.1), "drift": Window(500)},
    "user's units": {"ball": WassersteinBall(0.1, scale=False)},
    "no intercept": {"ball": WassersteinBall(0.1), "policy": Linear(intercept=False)},
}
every_policy = pytest.mark.parametrize("name", POLICIES)


def clean_rows(columns=3, count=N):
    rng = rng_for(0, "stream", "slips")
    X = rng.normal(size=(count, columns)) * SPREADS[:columns] + CENTRES[:columns]
    return X, 10.0 + X @ EFFECTS[:columns] + rng.normal(size=count)


def learned_costs(name, X, y, truth):
    """What each decision on a stream costs against the true outcome, the decisions, and the policy."""
    policy = OnlinePolicy(COST, **POLICIES[name])
    decided = policy.decide_and_learn(X, y)
    return COST.evaluate(decided[:, None], truth[:, None]), decided, policy


@every_policy
def test_one_outcome_of_9999_among_the_first_rows_is_forgotten(name):
    X, y = clean_rows()
    slipped = y.copy()
    slipped[5] = 9999.0
    clean, _, _ = learned_costs(name, X, y, y)
    costs, _, _ = learned_costs(name, X, slipped, y)
    assert costs[-10_000:].mean() <= 1.02 * clean[-10_000:].mean()
    assert costs[16:2_000].mean() <= 1.05 * clean[16:2_000].mean()


@every_policy
@pytest.mark.parametrize(("row", "value"), [(5, 9999.0), (1_000, 1e6), (1_000, -1e6)])
def test_one_context_far_outside_is_forgotten(name, row, value):
    X, y = clean_rows()
    slipped = X.copy()
    slipped[row, 0] = value
    clean, usual, _ = learned_costs(name, X, y, y)
    costs, decided, policy = learned_costs(name, slipped, y, y)
    assert costs[-10_000:].mean() <= 1.02 * clean[-10_000:].mean()
    assert costs[row + 1 : row + 2_000].mean() <= 1.05 * clean[row + 1 : row + 2_000].mean()
    assert np.abs(decided).max() <= 1.5 * np.abs(usual).max()  # the slip's own decision, too
    assert policy.n_cut["x0"] >= 1


def test_slips_are_counted_and_clean_rows_are_not():
    X, y = clean_rows()
    _, _, policy = learned_costs("default", X, y, y)
    assert policy.n_cut == {}
    X[1_000, 0], X[2_000, 2], X[3_000, 2] = 1e6, -1e6, 1e6
    _, _, policy = learned_costs("default", X, y, y)
    assert policy.n_cut == {"x0": 1, "x2": 2}


def assert_no_harm(name, X, y, clean_X, *, cost_ratio=1.1):
    """Decisions stay of the size of outcomes, and cost what they would on clean rows."""
    clean, usual, _ = learned_costs(name, clean_X, y, y)
    costs, decided, _ = learned_costs(name, X, y, y)
    assert np.isfinite(decided).all()
    assert np.abs(decided).max() <= 3.0 * max(np.abs(usual).max(), np.abs(y).max())
    assert costs[-2_500:].mean() <= cost_ratio * clean[-2_500:].mean()


# Without an intercept a constant column is the intercept: what is learned of it must go wrong later.
every_intercept = pytest.mark.parametrize("name", [name for name in POLICIES if name != "no intercept"])


@every_intercept
@pytest.mark.parametrize("rows", [15, 16, 200])
@pytest.mark.parametrize("value", [0.1, 7.3])
def test_a_column_that_is_constant_at_first_does_no_harm(name, value, rows):
    X, y = clean_rows(count=5_000)
    still = X.copy()
    still[:rows, 0] = value
    assert_no_harm(name, still, y, X)


@every_intercept
@pytest.mark.parametrize(("columns", "value"), [(1, 0.1), (2, 0.1), (3, 7.3)])
def test_contexts_that_are_all_constant_at_first_do_no_harm(name, columns, value):
    X, y = clean_rows(columns, count=5_000)
    still = X.copy()
    still[:16] = value
    assert_no_harm(name, still, y, X)


@every_intercept
@pytest.mark.parametrize("columns", [1, 3])
def test_first_rows_that_hardly_vary_do_no_harm(name, columns):
    X, y = clean_rows(columns, count=5_000)
    narrow = X.copy()
    narrow[:16] = CENTRES[:columns] + 1e-3 * (X[:16] - CENTRES[:columns])
    assert_no_harm(name, narrow, y, X)


def test_first_rows_that_vary_by_next_to_nothing_do_no_harm():
    X, y = clean_rows(count=5_000)
    narrow = X.copy()
    narrow[:16] = CENTRES + 1e-9 * (X[:16] - CENTRES)
    assert_no_harm("default", narrow, y, X)


@every_intercept
def test_one_column_that_hardly_varies_at_first_does_no_harm(name):
    X, y = clean_rows(count=5_000)
    narrow = X.copy()
    narrow[:16, 0] = 1.0 + 1e-3 * (X[:16, 0] - 1.0)
    assert_no_harm(name, narrow, y, X)


def test_first_rows_that_hardly_vary_are_learned_from_without_an_intercept_too():
    X, y = clean_rows(count=5_000)
    narrow = X.copy()
    narrow[:16] = CENTRES + 1e-3 * (X[:16] - CENTRES)
    assert_no_harm("no intercept", narrow, y, X, cost_ratio=2.0)


def test_outcomes_that_are_all_equal_at_first_do_no_harm():
    X, y = clean_rows()
    equal = y.copy()
    equal[:16] = 10.0
    clean, _, _ = learned_costs("default", X, y, y)
    costs, _, _ = learned_costs("default", X, equal, y)
    assert costs[-10_000:].mean() <= 1.02 * clean[-10_000:].mean()
