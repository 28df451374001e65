"""The stream's kernel against its readable twin, and what its rules promise."""

from dataclasses import fields, replace

import numpy as np
import pytest

from surefoot import Problem, WassersteinBall
from surefoot.costs import Newsvendor, Pieces
from surefoot.engines.affine_kernels import NUMBERS
from surefoot.engines.affine_lane import Lane, geometry_record
from surefoot.engines.engine import Options
from surefoot.engines.stream import column_records, support_of
from surefoot.engines.stream_kernels import (
    COLUMN,
    CONSTANT_RULE,
    CUT_ROWS,
    CUT_SPREADS,
    DECAYING_RULE,
    RULES,
    SETTLED_ROWS,
    decide_rows,
    known_rows,
    scale_rows,
    stream_steps,
)
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms
from surefoot.random import rng_for
from surefoot.sets import Box
from tests.oracles.affine_twin import State, initial_state
from tests.oracles.stream_twin import Columns, Stream, StreamRules, decide, stream_update, taken_in

S = 4
THREE_LINES = Pieces((-1.5, -0.4, 0.6), (-1.1, 0.0, 0.0))


def rows_and_outcomes(name, rows=60, *, gaps=False, far=False):
    rng = rng_for(0, "online", name)
    X = rng.normal(size=(rows, S)) * [1.0, 5.0, 0.1, 2.0] + [0.0, 3.0, 0.0, -1.0]
    y = 4.0 + X @ [1.0, 0.2, -3.0, 0.5] + rng.normal(size=rows)
    if far:
        places = rng.random(X.shape) < 0.05
        X[places] = (X * rng.choice([-300.0, 40.0, 15.0], size=X.shape))[places]
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def first_columns(ball, rows=16, **options):
    """What a stream knows of its columns when it starts."""
    first, _ = rows_and_outcomes("first", rows=rows)
    return column_records(first, ball.frozen_columns(S), support_of(ball, S), **options)


def twin_columns(records):
    return Columns(
        **{
            name: records[name].copy() for name in ("mean", "deviations", "count", "low", "high", "cut")
        },
        uncut=records["uncut"] > 0.0,
    )


def geometry(ball, intercept, X, y, pieces=None, smoothing=0.0):
    """The form of a question in the user's units."""
    filled = np.where(np.isnan(X), 0.0, X)
    if ball.support is not None:
        filled = np.clip(filled, *ball.support.arrays(S))
    cost = Newsvendor(1.0, 0.2, smoothing=smoothing) if smoothing else Newsvendor(1.0, 0.2)
    own = replace(ball, scale=(1.0,) * S)
    question = Problem(cost, Linear(intercept=intercept), Empirical(filled, y), own)
    form = affine_forms(question, merge=False)[0].in_plain_units()
    return form if pieces is None else replace(form, pieces=pieces)


def rules_record(ball, rules):
    record = np.zeros(1, RULES)
    for name, value in (
        ("radius", ball.size), ("radius_rows", rules.radius_rows), ("scaled", rules.scaled),
        ("step_rule", rules.step_rule), ("step_size", rules.step_size),
        ("averaging", rules.averages), ("window", rules.window),
    ):  # fmt: skip
        record[name] = value
    record["low_y"], record["high_y"] = (
        (-np.inf, np.inf) if ball.support is None else ball.support.outcome
    )
    return record


def numbers_of(state):
    numbers = np.zeros(1, NUMBERS)
    for field in fields(State):
        if field.name != "theta":
            numbers[field.name] = getattr(state, field.name)
    numbers["mean_intercept"] = state.intercept
    return numbers


class Kernel:
    """The arrays that the kernel is handed, as a stream would make them, for equal products."""

    def __init__(self, form, ball, rules, columns, start, products=1):
        self.columns, self.rules = columns, rules_record(ball, rules)
        self.theta, self.average = np.zeros((products, S)), np.zeros((products, S))
        self.numbers, self.clock = np.repeat(numbers_of(start), products), np.zeros(1)
        lines = form.geometry
        self.lines = np.array(
            [np.tile(kind, (products, 1)) for kind in (lines.slopes, lines.intercepts)]
        )
        self.geometry = geometry_record(lines, 0, form.intercept, Options())

    def run(self, X, outcomes, offsets=None, *, running=True):
        decided = np.zeros(outcomes.shape) if offsets is None else offsets.copy()
        stream_steps(
            X, outcomes, self.columns, self.theta, self.average, self.numbers, self.clock, self.lines,
            self.geometry, self.rules, running, decided,
        )  # fmt: skip
        return decided


CASES = {
    "default": (WassersteinBall(0.3), True, StreamRules()),
    "no intercept": (WassersteinBall(0.3), False, StreamRules()),
    "order 1": (WassersteinBall(0.3, order=1), True, StreamRules()),
    "outcomes move": (WassersteinBall(0.3, outcome_cost=2.0), True, StreamRules()),
    "frozen": (WassersteinBall(0.3, frozen=(0, 2)), True, StreamRules()),
    "user's units": (WassersteinBall(0.3, scale=False), True, StreamRules(scaled=False)),
    "box": (WassersteinBall(0.5, support=Box(-20, 20)), True, StreamRules()),
    "box of order 1": (WassersteinBall(0.5, order=1, support=Box(-20, np.inf)), False, StreamRules()),
    "box for outcomes": (
        WassersteinBall(0.5, outcome_cost=1.0, support=Box(-20, 20, outcome=(-50.0, 60.0))),
        True,
        StreamRules(),
    ),
    "falling radius": (WassersteinBall(2.0), True, StreamRules(radius_rows=3.0)),
    "constant step": (
        WassersteinBall(0.3),
        True,
        StreamRules(step_rule=CONSTANT_RULE, step_size=0.1, averages=False),
    ),
    "falling step": (WassersteinBall(0.3), True, StreamRules(step_rule=DECAYING_RULE, step_size=0.5)),
    "window": (WassersteinBall(0.3), True, StreamRules(window=12.0, radius_rows=2.0)),
    "longer window": (WassersteinBall(0.3), True, StreamRules(window=20.0)),
    "long window": (WassersteinBall(0.3), True, StreamRules(window=50.0)),
}
IN_BOX = {"box", "box of order 1", "box for outcomes"}  # far values would lie outside


def ranges_of(columns):
    """The range in which values are taken as they are: where the ends of the world are put."""
    ends = known_rows(np.full((2, len(columns)), np.inf) * [[-1.0], [1.0]], columns)
    return ends[0], ends[1]


def assert_kernel_is_twin(kernel, stream, tolerance=1e-7):
    columns = stream.columns
    np.testing.assert_allclose(kernel.columns["mean"], columns.mean, rtol=1e-9, atol=1e-12)
    for name in ("deviations", "count", "low", "high", "cut"):
        np.testing.assert_allclose(kernel.columns[name], getattr(columns, name), rtol=1e-9)
    for found, bound in zip(ranges_of(kernel.columns), columns.range, strict=True):
        np.testing.assert_allclose(found, bound, rtol=1e-9)
    np.testing.assert_allclose(kernel.theta[0], stream.state.theta, rtol=tolerance, atol=1e-9)
    np.testing.assert_allclose(kernel.average[0], stream.average, rtol=tolerance, atol=1e-9)
    expected = numbers_of(stream.state)
    for name in NUMBERS.names:
        if name not in ("averaged", "averaged_intercept", "mean_intercept"):
            found, wanted = kernel.numbers[name][0], expected[name][0]
            assert found == pytest.approx(wanted, rel=tolerance, abs=1e-9), name
    assert kernel.numbers["mean_intercept"][0] == pytest.approx(stream.average_intercept, rel=1e-9)
    assert kernel.clock[0] == stream.rows


@pytest.mark.parametrize("rows", ["plain", "gaps", "far", "gaps and far"])
@pytest.mark.parametrize("case", CASES)
def test_kernel_and_twin_agree(case, rows):
    ball, intercept, rules = CASES[case]
    far = "far" in rows and case not in IN_BOX
    X, y = rows_and_outcomes(case, gaps="gaps" in rows, far=far)
    form = geometry(ball, intercept, rows_and_outcomes(case)[0], y)
    start = initial_state(form)
    columns = first_columns(ball)  # a stream knows some scale when it starts
    kernel = Kernel(form, ball, rules, columns, start)
    stream = Stream(twin_columns(columns), start, np.zeros(S), start.intercept, 0)
    decided = kernel.run(X, y[:, None])
    for k, (x, outcome) in enumerate(zip(X, y, strict=True)):
        expected = decide(stream, x, form)
        assert decided[k, 0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        stream = stream_update(stream, (x, outcome), form, rules)
    assert_kernel_is_twin(kernel, stream)
    again = np.empty((len(X), 1))
    decide_rows(X, kernel.columns, kernel.average, kernel.numbers, int(intercept), again)
    np.testing.assert_allclose(again[:, 0], [decide(stream, x, form) for x in X], rtol=1e-7)
    assert np.abs(kernel.theta).max() > 0.01  # it has learned at all
    # A window of fewer rows than a range takes knows no range.
    assert (kernel.columns["cut"].sum() > 3) == (far and not 0 < rules.window < CUT_ROWS)


@pytest.mark.parametrize("case", ["default", "no intercept", "order 1", "box", "window"])
def test_kernel_and_twin_agree_on_three_lines(case):
    ball, intercept, rules = CASES[case]
    X, y = rows_and_outcomes(case, gaps=True)
    form = geometry(ball, intercept, X, y, THREE_LINES)
    start, columns = initial_state(form), first_columns(ball)
    kernel = Kernel(form, ball, rules, columns, start)
    stream = Stream(twin_columns(columns), start, np.zeros(S), start.intercept, 0)
    kernel.run(X, y[:, None])
    for sample in zip(X, y, strict=True):
        stream = stream_update(stream, sample, form, rules)
    assert_kernel_is_twin(kernel, stream)


@pytest.mark.parametrize("gaps", [False, True])
def test_kernel_and_twin_agree_from_the_very_first_row(gaps):
    """Columns that nothing is known of: held for eight rows, uncut for sixteen."""
    ball, rules = WassersteinBall(0.3), StreamRules()
    X, y = rows_and_outcomes("first row", rows=60, gaps=gaps)
    X[:25, 2] = 0.1  # a column that is constant at first
    form = geometry(ball, True, X, y)
    start = replace(initial_state(form), travelled=0.0)
    columns = column_records(np.full((0, S), np.nan), np.zeros(S, dtype=bool), support_of(ball, S))
    kernel = Kernel(form, ball, rules, columns, start)
    stream = Stream(twin_columns(columns), start, np.zeros(S), start.intercept, 0)
    for k, sample in enumerate(zip(X, y, strict=True)):
        kernel.run(X[k : k + 1], y[k : k + 1, None])
        stream = stream_update(stream, sample, form, rules)
        assert_kernel_is_twin(kernel, stream)
        assert k >= 7 or not kernel.theta.any()
        assert k >= 14 or np.isinf(ranges_of(kernel.columns)).all()
    assert kernel.numbers["travelled"][0] > 0.0


@pytest.mark.parametrize("order", [1, 2])
def test_a_stream_of_draws_equals_the_batch_kernel(order):
    """With the scale at rest, a stream of bootstrap draws is what ``fit`` does with these draws."""
    X, y = rows_and_outcomes("draws")
    ball = WassersteinBall(0.2, order=order)
    question = Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(X, y), ball)
    form = affine_forms(question, merge=False)[0].in_plain_units()
    draws = rng_for(0, "online", "bootstrap").integers(0, len(X), size=500)
    lane = Lane(form, Options(), rotate=False)
    theta, numbers = lane.first()
    columns = first_columns(ball)
    columns["count"] = SETTLED_ROWS  # so many rows that no new one moves the scale
    columns["mean"], columns["deviations"] = X.mean(axis=0), X.var(axis=0) * SETTLED_ROWS
    start = State(np.zeros(S), **{f.name: float(numbers[f.name][0]) for f in fields(State)[1:]})
    kernel = Kernel(form, ball, StreamRules(), columns, start)
    lane.step(theta, numbers, form, lane.rows, draws)
    kernel.run(X[draws], y[draws, None])
    np.testing.assert_allclose(kernel.theta[0] * X.std(axis=0), theta, rtol=1e-6)
    assert kernel.numbers["intercept"][0] == pytest.approx(numbers["intercept"][0], rel=1e-7)
    assert kernel.numbers["squares"][0] == pytest.approx(numbers["squares"][0], rel=1e-7)
    assert kernel.columns["mean"].tolist() == X.mean(axis=0).tolist()


def test_a_constant_step_is_the_size_times_the_gradient():
    ball, rules = WassersteinBall(0.0), StreamRules(step_rule=CONSTANT_RULE, step_size=0.25)
    X, y = rows_and_outcomes("step")
    form = geometry(ball, True, X, y)
    columns = column_records(np.full((0, S), np.nan), np.zeros(S, dtype=bool), support_of(ball, S))
    kernel = Kernel(form, ball, rules, columns, initial_state(form))
    kernel.run(X[:20], y[:20, None])
    before, intercept = kernel.theta.copy(), kernel.numbers["intercept"][0]
    old_mean = columns["mean"].copy()
    kernel.run(X[20:21], y[20:21, None])
    mean, spread = columns["mean"], np.sqrt(columns["deviations"] / columns["count"])
    residual = before[0] @ (X[20] - mean) + intercept + before[0] @ (mean - old_mean) - y[20]
    slope = 0.2 if residual >= 0 else -1.0
    np.testing.assert_allclose(
        (kernel.theta - before)[0] * spread, -0.25 * slope * (X[20] - mean) / spread, rtol=1e-9
    )


# Products and offsets


def test_products_step_side_by_side_as_each_does_alone():
    ball, rules = WassersteinBall(0.3), StreamRules()
    X, y = rows_and_outcomes("products", gaps=True, far=True)
    outcomes = np.column_stack([y, -2.0 * y, 0.1 * y + 3.0])
    form = geometry(ball, True, X, y)
    start = initial_state(form)
    both = Kernel(form, ball, rules, first_columns(ball), start, products=3)
    decided = both.run(X, outcomes)
    for p in range(3):
        alone = Kernel(form, ball, rules, first_columns(ball), start)
        np.testing.assert_array_equal(alone.run(X, outcomes[:, [p]])[:, 0], decided[:, p])
        np.testing.assert_array_equal(alone.theta[0], both.theta[p])
        assert alone.numbers[0] == both.numbers[p]
        assert (alone.columns == both.columns).all()


@pytest.mark.parametrize("case", ["default", "box for outcomes"])
def test_an_offset_is_taken_from_the_outcome_and_from_its_bounds(case):
    ball, intercept, rules = CASES[case]
    X, y = rows_and_outcomes("offsets")
    offset = 2.5
    form = geometry(ball, intercept, X, y)
    start = initial_state(form)
    given = Kernel(form, ball, rules, first_columns(ball), start)
    shifted = Kernel(form, ball, rules, first_columns(ball), start)
    for name in ("low_y", "high_y"):
        shifted.rules[name] -= offset
    one = given.run(X, y[:, None], np.full((len(y), 1), offset))
    other = shifted.run(X, y[:, None] - offset)
    np.testing.assert_array_equal(one, other + offset)
    np.testing.assert_array_equal(given.theta, shifted.theta)


# The scale and its cuts


def unused(rows):
    """Room for running means and spreads that a test does not look at."""
    return np.empty_like(rows), np.empty_like(rows)


def test_the_running_numbers_are_those_of_numpy():
    X, _ = rows_and_outcomes("scale", gaps=True)
    ball = WassersteinBall(0.3)
    columns = column_records(np.full((0, S), np.nan), np.zeros(S, dtype=bool), support_of(ball, S))
    filled, scales, movable = (np.empty_like(X) for _ in range(3))
    scale_rows(X, columns, rules_record(ball, StreamRules()), True, filled, scales, movable, *unused(X))
    np.testing.assert_allclose(columns["mean"], np.nanmean(X, axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        np.sqrt(columns["deviations"] / columns["count"]), np.nanstd(X, axis=0), rtol=1e-12
    )
    np.testing.assert_array_equal(columns["count"], (~np.isnan(X)).sum(axis=0))
    np.testing.assert_array_equal(columns["low"], np.nanmin(X, axis=0))
    np.testing.assert_array_equal(columns["high"], np.nanmax(X, axis=0))
    assert not columns["cut"].any()


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("far", [True, False])
def test_rows_are_handed_to_autodiff_with_the_scale_of_their_time(far, scaled):
    X, _ = rows_and_outcomes("handed", gaps=True, far=far)
    ball, rules = WassersteinBall(0.3, frozen=(1,)), StreamRules(scaled=scaled, window=30.0)
    columns = first_columns(ball)
    twin = twin_columns(columns)
    filled, scales, movable = (np.empty_like(X) for _ in range(3))
    scale_rows(X, columns, rules_record(ball, rules), True, filled, scales, movable, *unused(X))
    for k, x in enumerate(X):
        twin = taken_in(twin, x, rules.window)
        np.testing.assert_allclose(filled[k], twin.known(x), rtol=1e-9)
        np.testing.assert_allclose(scales[k], twin.spread if scaled else np.ones(S), rtol=1e-9)
        np.testing.assert_array_equal(movable[k], [1.0, 0.0, 1.0, 1.0])
    kept = columns.copy()
    scale_rows(X, columns, rules_record(ball, rules), False, filled, scales, movable, *unused(X))
    assert (columns == kept).all()  # nothing is taken in unless the scale runs


def test_a_value_far_outside_is_taken_as_the_nearest_that_is_not():
    ball, columns = WassersteinBall(0.3), first_columns(WassersteinBall(0.3), rows=100)
    least, most = ranges_of(columns)
    spread = np.sqrt(columns["deviations"] / columns["count"])
    np.testing.assert_allclose(most, columns["mean"] + CUT_SPREADS * spread, rtol=1e-12)
    row = np.array([[1e6, -1e9, np.nan, 0.0]])
    filled, scales, movable = (np.empty_like(row) for _ in range(3))
    before = columns.copy()
    scale_rows(
        row, columns, rules_record(ball, StreamRules()), True, filled, scales, movable, *unused(row)
    )
    assert columns["cut"].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert columns["high"][0] == most[0]
    assert columns["low"][1] == least[1]
    # One slip moves the mean by its share of six spreads, and widens the column by less than a fifth.
    moved = np.abs(columns["mean"] - before["mean"])
    np.testing.assert_allclose(moved[:2], CUT_SPREADS * spread[:2] / 101, rtol=1e-9)
    assert (scales[0, :2] < 1.2 * spread[:2]).all()
    widened = ranges_of(columns)
    np.testing.assert_array_equal(filled[0, :2], [widened[1][0], widened[0][1]])
    assert widened[1][0] < 1.3 * most[0]


def test_what_a_column_has_shown_is_never_cut():
    values = np.concatenate([np.zeros(400), np.ones(400), [40.0], np.zeros(200)])  # 40 came early
    rows = values[:, None]
    none = (np.array([-np.inf]), np.array([np.inf]))
    records = column_records(rows[:801], np.zeros(1, dtype=bool), none, cut=False)
    assert records["high"][0] == ranges_of(records)[1][0] == 40.0
    records = column_records(rows[:16], np.zeros(1, dtype=bool), none)
    assert ranges_of(records)[1][0] == np.inf  # a constant column says nothing of what is far


def test_few_rows_and_features_are_never_cut_and_settled_columns_as_when_they_settled():
    X, _ = rows_and_outcomes("never")
    frozen, free = np.zeros(S, dtype=bool), support_of(WassersteinBall(0.3), S)
    few = column_records(X[: int(CUT_ROWS) - 1], frozen, free)
    enough = column_records(X[: int(CUT_ROWS)], frozen, free)
    assert np.isinf(ranges_of(few)).all()
    assert np.isfinite(ranges_of(enough)).all()
    settled = enough.copy()
    settled["deviations"] *= SETTLED_ROWS / settled["count"]
    settled["count"] = SETTLED_ROWS
    np.testing.assert_allclose(ranges_of(settled), ranges_of(enough), rtol=1e-12)
    enough["uncut"] = 1.0
    assert np.isinf(ranges_of(enough)).all()


def test_rows_are_taken_as_the_compiled_steps_take_them():
    rng = rng_for(0, "ranges")
    records = np.zeros(200, COLUMN)
    records["mean"] = rng.normal(size=200) * 10.0
    records["low"], records["high"] = records["mean"] - 9.0, records["mean"] + 1.0
    records["deviations"] = rng.choice([0.0, 1e-30, 5.0, 400.0], 200)
    records["count"] = rng.choice([0.0, 3.0, CUT_ROWS, 50.0, SETTLED_ROWS], 200)
    records["uncut"] = rng.choice([0.0, 0.0, 1.0], 200)
    rows = rng.normal(size=(30, 200)) * rng.choice([1.0, 100.0, np.nan], (30, 200))
    filled, unused = np.empty_like(rows), [np.empty_like(rows) for _ in range(4)]
    scale_rows(rows, records, rules_record(WassersteinBall(0.3), StreamRules()), False, filled, *unused)
    assert 20 < np.isfinite(ranges_of(records)[0]).sum() < 180
    np.testing.assert_array_equal(known_rows(rows, records), filled)
    assert 100 < (filled != rows)[~np.isnan(rows)].sum() < 4_000


@pytest.mark.parametrize("intercept", [True, False])
def test_a_change_of_the_scale_moves_no_decision(intercept):
    ball, rules = WassersteinBall(0.3), StreamRules(step_rule=CONSTANT_RULE, step_size=1e-300)
    X, y = rows_and_outcomes("still")
    form = geometry(ball, intercept, X, y)
    kernel = Kernel(form, ball, rules, first_columns(ball), initial_state(form))
    kernel.theta[:] = kernel.average[:] = [1.0, 0.2, -3.0, 0.5]
    rows = X[:10]

    def decisions():
        decided = np.empty((10, 1))
        decide_rows(rows, kernel.columns, kernel.average, kernel.numbers, int(intercept), decided)
        return decided[:, 0]

    before = decisions()
    kernel.run(X[10:40], y[10:40, None])
    np.testing.assert_allclose(decisions(), before, rtol=1e-12)


def test_what_was_learned_in_a_narrow_range_says_less_of_a_wider_one():
    ball, rules = WassersteinBall(0.3), StreamRules(step_rule=CONSTANT_RULE, step_size=1e-300)
    X, y = rows_and_outcomes("still")
    form = geometry(ball, True, X, y)
    kernel = Kernel(form, ball, rules, first_columns(ball), initial_state(form))
    kernel.theta[:] = kernel.average[:] = [1.0, 0.2, -3.0, 0.5]
    kernel.run(X[:40], y[:40, None])
    np.testing.assert_allclose(kernel.theta[0], [1.0, 0.2, -3.0, 0.5], rtol=1e-12)
    spread = np.sqrt(kernel.columns["deviations"] / kernel.columns["count"])[0]
    slip = X[40:41].copy()
    slip[0, 0] = 1e9
    kernel.run(slip, y[40:41, None])
    wider = np.sqrt(kernel.columns["deviations"] / kernel.columns["count"])[0]
    assert kernel.columns["cut"].tolist() == [1.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(kernel.theta[0], [spread / wider, 0.2, -3.0, 0.5], rtol=1e-9)
