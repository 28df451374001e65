"""The compiled kernels against the formula, step for step from the same draws."""

import itertools
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from surefoot import Box, Problem, WassersteinBall
from surefoot.ambiguity.moves import best_moves
from surefoot.costs import Newsvendor, Pieces
from surefoot.engines.affine_kernels import (
    AVERAGE_EVERY,
    GEOMETRY,
    HOLDING_SHARE,
    LOG_STEP,
    NUMBERS,
    PRIOR_SLOPES,
    SLOPE_WINDOW,
    affine_steps,
    general_steps,
)
from surefoot.engines.affine_lane import RESTART_LOOKS, SHORTER, Lane, Seen, geometry_record
from surefoot.engines.compiling import kernel
from surefoot.engines.engine import Options
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms
from tests.oracles.affine_twin import (
    State,
    arranged,
    first_distance,
    holding_multiplier,
    initial_state,
    multiplier,
    update,
)

STEPS = 200
THREE_LINES = Pieces((-1.5, -0.4, 0.6), (-1.1, 0.0, 0.0))


class Run:
    """A lane of the compiled engine, and the form in the coordinates in which it steps."""

    def __init__(self, form, *, rotate=False, **options):
        self.form = form
        self.lane = Lane(form, Options(**options), rotate=rotate)
        self.arranged = arranged(form, self.lane.arrangement)
        self.theta, self.numbers = self.lane.first()

    def run(self, draws):
        self.policy, self.slopes, self.average = self.lane.step(
            self.theta, self.numbers, self.form, self.lane.rows, draws
        )
        return self

    @property
    def rotated(self):
        return self.lane.arrangement.rotation is not None

    @property
    def fused(self):
        options = self.lane.options
        return not self.form.boxed and options.minibatch == 1 and options.inner_steps == 0

    def state(self):
        return state_of(self.theta, self.numbers)

    def in_form(self, theta):
        """Parameters of the lane in the columns of the form."""
        return self.lane.arrangement.original(theta, 0.0)[0]


def state_of(theta, numbers):
    names = [field.name for field in fields(State) if field.name != "theta"]
    return State(theta.copy(), **{name: float(numbers[name][0]) for name in names})


def draws_for(form, steps=STEPS, seed=0):
    return np.random.default_rng(seed).choice(len(form.weights), size=steps, p=form.weights)


def row_bounds(form, row):
    return form.outcome_lower[row], form.outcome_upper[row]


def twin_states(form, draws, state=None, origin=None):
    """States after each draw on an arranged form, and what each step saw."""
    state = initial_state(form) if state is None else state
    states, infos = [], []
    for row in draws:
        sample = form.contexts[row], form.outcomes[row]
        state, info = update(state, sample, form, row_bounds(form, row), origin)
        states.append(state)
        infos.append(info)
    return states, infos


def assert_same_numbers(ours: State, theirs: State, tolerance=1e-10):
    for field in fields(State):
        if field.name != "theta":
            expected = getattr(theirs, field.name)
            found = getattr(ours, field.name)
            assert found == pytest.approx(expected, rel=tolerance, abs=tolerance), field.name


def assert_same_state(ours: State, theirs: State, tolerance=1e-10):
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=tolerance, atol=tolerance)
    assert_same_numbers(ours, theirs, tolerance)


# A free support: one fused pass


CASES = [
    pytest.param(
        {"order": order, "intercept": intercept, "outcome_cost": kappa, "smoothing": smoothing,
         "frozen": frozen, "weighted": True},
        id=f"order{order}-{'t' if intercept else 'no t'}-kappa{kappa}-delta{smoothing}-frozen{frozen}",
    )
    for order, intercept, kappa, smoothing, frozen in itertools.product(
        (1, 2), (True, False), (math.inf, 0.7), (0.0, 0.3), ((), (0, 2))
    )
]  # fmt: skip


def assert_follows_the_twin(run, draws):
    run.run(draws)
    states, infos = twin_states(run.arranged, draws)
    assert_same_state(run.state(), states[-1])
    # The policy is the average of every sixteenth, the slopes are means over visits.
    kept = states[::AVERAGE_EVERY]
    theta = np.mean([state.theta for state in kept], axis=0)
    intercept = np.mean([state.intercept for state in kept])
    expected = run.lane.arrangement.original(theta, intercept)
    np.testing.assert_allclose(run.policy[0], expected[0], atol=1e-10)
    assert run.policy[1] == pytest.approx(expected[1], abs=1e-10)
    slopes = np.array([info.slope for info in infos])
    for row in np.unique(draws):
        assert run.slopes[row] == pytest.approx(slopes[draws == row].mean(), abs=1e-10)
    return states


@pytest.mark.sweep
@pytest.mark.parametrize("options", CASES)
def test_fused_kernel_takes_the_steps_of_the_formula(make_affine, options):
    form = make_affine(1, rows=12, columns=4, **options)
    run = Run(form, rotate=True)
    assert run.fused
    assert not run.rotated  # there are more rows than columns
    assert_follows_the_twin(run, draws_for(form))


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("order", "intercept", "kappa", "frozen"),
    list(itertools.product((1, 2), (True, False), (math.inf, 0.7), ((), (0, 2)))),
)
def test_fused_kernel_takes_the_steps_of_the_formula_on_three_lines(
    make_affine, order, intercept, kappa, frozen
):
    form = make_affine(
        1, rows=12, columns=4, order=order, intercept=intercept, outcome_cost=kappa, frozen=frozen,
        weighted=True,
    )  # fmt: skip
    form = replace(form, pieces=THREE_LINES)
    run, draws = Run(form), draws_for(form)
    assert run.fused
    assert_follows_the_twin(run, draws)
    _, infos = twin_states(run.arranged, draws)
    assert {info.slope for info in infos} == set(THREE_LINES.slopes)  # each line is met


def test_two_lines_that_do_not_meet_at_zero_keep_their_intercepts(make_affine):
    form = replace(make_affine(1, rows=12, columns=4), pieces=Pieces((-1.0, 0.3), (0.5, -0.15)))
    assert_follows_the_twin(Run(form), draws_for(form))


@pytest.mark.parametrize("order", [1, 2])
def test_radius_zero_agrees_too(make_affine, order):
    form = make_affine(3, rows=12, order=order, radius=0.0)
    run, draws = Run(form), draws_for(form)
    run.run(draws)
    assert_same_state(run.state(), twin_states(run.arranged, draws)[0][-1])


# Fewer rows than columns: rotated rows


@pytest.mark.sweep
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kappa", [math.inf, 0.7])
@pytest.mark.parametrize("smoothing", [0.0, 3.0])  # steeper parabolas amplify rounding
@pytest.mark.parametrize("frozen", [(), (1, 4)])
def test_rotated_rows_take_the_same_steps(make_affine, order, intercept, kappa, smoothing, frozen):
    form = make_affine(
        2, rows=6, columns=11, order=order, intercept=intercept, outcome_cost=kappa,
        smoothing=smoothing, weighted=True, radius=0.2, frozen=frozen,
    )  # fmt: skip
    draws = draws_for(form)
    rotated, plain = Run(form, rotate=True), Run(form, rotate=False)
    assert rotated.rotated
    assert not plain.rotated
    assert rotated.lane.arrangement.n_movable == 6
    assert len(rotated.theta) == 6 + len(frozen)
    for block in np.split(draws, [50]):  # continued, so that coordinates survive a block
        rotated.run(block)
        plain.run(block)
    assert_same_numbers(rotated.state(), plain.state())
    np.testing.assert_allclose(
        rotated.in_form(rotated.theta), plain.in_form(plain.theta), rtol=1e-10, atol=1e-10
    )
    states, _ = twin_states(plain.arranged, draws)
    assert_same_state(plain.state(), states[-1])
    np.testing.assert_allclose(rotated.policy[0], plain.policy[0], atol=1e-10)
    assert rotated.policy[1] == pytest.approx(plain.policy[1], abs=1e-10)
    np.testing.assert_allclose(rotated.slopes, plain.slopes, atol=1e-12)
    assert rotated.numbers["steps"] == plain.numbers["steps"] == STEPS


def test_only_free_supports_with_exact_moves_are_rotated(make_affine):
    assert Run(make_affine(1, rows=6, columns=11), rotate=True).rotated
    assert not Run(make_affine(1, rows=6, columns=11, box="closed"), rotate=True).rotated
    assert not Run(make_affine(1, rows=6, columns=11), rotate=True, minibatch=2).rotated
    assert not Run(make_affine(1, rows=6, columns=11), rotate=True, inner_steps=3).rotated
    assert not Run(make_affine(1, rows=6, columns=11, frozen=range(5)), rotate=True).rotated


# Continued


@pytest.mark.parametrize("options", [{}, {"order": 1}, {"box": "closed"}, {"frozen": (1,)}])
def test_a_run_goes_on_where_it_stopped_on_rows_of_its_own(make_affine, options):
    form = make_affine(4, rows=12, **options)
    run, draws = Run(form), draws_for(form)
    for first in range(0, STEPS, 10):
        chunk = draws[first : first + 10]
        part = form.subset(chunk)
        rows = run.lane.arrangement.rows(part.contexts)
        run.lane.step(run.theta, run.numbers, part, rows, np.arange(10))
    assert_same_state(run.state(), twin_states(run.arranged, draws)[0][-1])


# Any support: boxes


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("order", "box", "kappa", "intercept", "frozen"),
    list(itertools.product((1, 2), ("closed", "open"), (math.inf, 0.7), (True, False), ((), (0, 2)))),
)
def test_boxes_take_the_steps_of_the_formula(make_affine, order, box, kappa, intercept, frozen):
    form = make_affine(
        1, rows=12, columns=4, order=order, box=box, outcome_cost=kappa, intercept=intercept,
        frozen=frozen, weighted=True,
    )  # fmt: skip
    run = Run(form)
    assert not run.fused
    assert_follows_the_twin(run, draws_for(form))


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("order", "box", "kappa"),
    list(itertools.product((1, 2), ("closed", "open"), (math.inf, 0.7))),
)
def test_boxes_take_the_steps_of_the_formula_on_three_lines(make_affine, order, box, kappa):
    form = make_affine(
        1, rows=12, columns=4, order=order, box=box, outcome_cost=kappa, frozen=(1,), weighted=True
    )
    assert_follows_the_twin(Run(replace(form, pieces=THREE_LINES)), draws_for(form))


@pytest.mark.parametrize("order", [1, 2])
def test_offsets_move_the_bounds_of_each_outcome(order):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 3))
    fixed = 3.0 * rng.normal(size=(12, 1))
    y = X @ [1.0, -0.5, 0.3] + fixed[:, 0] + rng.normal(size=12)
    box = Box(-4.0, 4.0, outcome=(float(y.min()), float(y.max())))
    problem = Problem(
        Newsvendor(1.0, 0.3), Linear(offset=np.zeros_like), Empirical(X, y, offsets=fixed),
        WassersteinBall(0.4, order=order, outcome_cost=0.5, support=box, scale=False),
    )  # fmt: skip
    (form,) = affine_forms(problem)
    assert np.ptp(form.outcome_lower) > 0.0
    run, draws = Run(form), draws_for(form)
    states = assert_follows_the_twin(run, draws)
    held_alike = replace(
        run.arranged,
        outcome_lower=np.full(12, form.outcome_lower[0]),
        outcome_upper=np.full(12, form.outcome_upper[0]),
    )
    other = twin_states(held_alike, draws)[0][-1]
    assert np.abs(other.theta - states[-1].theta).max() > 1e-6  # so that the bounds mattered


@kernel()
def unfused_steps(  # the kernel for any support takes one product's record
    rows, outcomes, low_y, high_y, draws, slopes, intercepts, lower, upper, geometry, theta, numbers,
    origin, average, slope_sums, visits,
):  # fmt: skip
    general_steps(
        rows, outcomes, low_y, high_y, draws, slopes, intercepts, lower, upper, geometry,
        theta, numbers[0], origin, average, slope_sums, visits,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("order", "kappa", "smoothing", "frozen"),
    list(itertools.product((1, 2), (math.inf, 0.7), (0.0, 3.0), ((), (1,)))),
)
def test_a_free_support_takes_the_steps_of_the_formula(make_affine, order, kappa, smoothing, frozen):
    form = make_affine(
        2, rows=12, columns=4, order=order, outcome_cost=kappa, smoothing=smoothing, frozen=frozen
    )
    fused, draws = Run(form), draws_for(form)
    theta, numbers = fused.lane.first()
    fused.run(draws)
    here, geometry = fused.arranged, form.geometry
    average, slope_sums, visits = np.zeros(4), np.zeros(12), np.zeros(12, dtype=np.int64)
    unfused_steps(
        fused.lane.rows, form.outcomes, form.outcome_lower, form.outcome_upper, draws,
        geometry.slopes, geometry.intercepts, here.lower, here.upper,
        geometry_record(geometry, fused.lane.arrangement.n_movable, form.intercept, Options()),
        theta, numbers, np.zeros(4), average, slope_sums, visits,
    )  # fmt: skip
    assert_same_state(state_of(theta, numbers), fused.state())
    count = float(numbers["averaged"][0])
    policy = fused.lane.arrangement.original(
        average / count, float(numbers["averaged_intercept"][0]) / count
    )
    np.testing.assert_allclose(policy[0], fused.policy[0], atol=1e-10)
    np.testing.assert_allclose((slope_sums / visits), fused.slopes, atol=1e-10)


# Minibatches and gradient inner steps


def gradient_moves(form, theta, intercept, gamma, inner_steps):
    """Slopes, moves and distances of all rows after proximal gradient steps."""
    moves, eta = np.zeros_like(form.contexts), 1 / (2 * gamma)
    low, high = form.lower - form.contexts, form.upper - form.contexts

    def slopes():
        return form.pieces.slope_at(form.residuals(theta, intercept) + moves @ theta)

    for _ in range(inner_steps):
        derivative = slopes()[:, None] * np.where(form.movable, theta, 0.0)
        if form.order == 2:
            moves = eta * derivative
        else:
            v = moves + eta * derivative
            length = np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
            moves = np.maximum(0.0, 1 - eta * gamma / length) * v
        moves = np.clip(moves, low, high)
    return slopes(), moves, np.linalg.norm(moves, axis=1) ** form.order


def batch_update(state: State, rows, form, inner_steps=0) -> State:
    """The update of the twin with means over a minibatch in the place of one sample."""
    batch = replace(form.subset(rows), weights=np.full(len(rows), 1 / len(rows)))
    theta, gamma, w = state.theta, multiplier(state, form), batch.weights
    if inner_steps and gamma > 0:
        slopes, moves, distances = gradient_moves(batch, theta, state.intercept, gamma, inner_steps)
    elif gamma > 0:
        answer = best_moves(batch, theta, state.intercept, gamma)
        slopes, moves, distances = answer.slope, answer.contexts, answer.distance
    else:
        slopes = form.pieces.slope_at(batch.residuals(theta, state.intercept))
        moves, distances = np.zeros_like(batch.contexts), np.zeros(len(rows))
    gradient = (w * slopes) @ (batch.contexts + moves)
    norm = np.linalg.norm(theta[form.movable])
    left = form.radius**form.order - w @ distances
    log_multiplier, multiplier_squares = state.log_multiplier, state.multiplier_squares
    if form.boxed:
        gradient = gradient + (1 + HOLDING_SHARE) * left * holding_multiplier(theta, form)[1]
        derivative = math.exp(log_multiplier) * left
        multiplier_squares += derivative**2
        log_multiplier -= LOG_STEP * derivative / math.sqrt(multiplier_squares)
    elif form.order == 1 and norm > 0 and norm >= form.inverse_kappa:
        price = form.radius * form.pieces.steepest / norm
        gradient = gradient + price * np.where(form.movable, theta, 0.0)
    travelled = first_distance(state, float(w @ (batch.contexts**2).sum(axis=1)))
    squares = state.squares + gradient @ gradient
    stepped = theta - travelled / math.sqrt(squares) * gradient
    mean_slope, intercept = w @ slopes, state.intercept
    intercept_squares = state.intercept_squares + mean_slope**2
    if form.intercept and intercept_squares > 0:
        intercept -= state.intercept_travelled / math.sqrt(intercept_squares) * mean_slope
    rate = max(1 / (state.steps + PRIOR_SLOPES), 1 / SLOPE_WINDOW)
    return replace(
        state,
        theta=stepped,
        intercept=intercept,
        log_multiplier=log_multiplier,
        square_slope=state.square_slope + rate * (w @ slopes**2 - state.square_slope),
        travelled=max(travelled, np.linalg.norm(stepped)),
        intercept_travelled=max(state.intercept_travelled, abs(intercept - state.start)),
        squares=squares,
        intercept_squares=intercept_squares,
        multiplier_squares=multiplier_squares,
        steps=state.steps + 1,
    )


LINES = pytest.mark.parametrize("lines", [2, 3], ids=["two lines", "three lines"])


@pytest.mark.sweep
@LINES
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed", "open"])
def test_a_minibatch_steps_along_the_mean(make_affine, order, box, lines):
    form = make_affine(3, rows=12, columns=4, order=order, box=box, frozen=(1,))
    form = form if lines == 2 else replace(form, pieces=THREE_LINES)
    run, draws = Run(form, minibatch=8), draws_for(form, 803)
    run.run(draws)
    assert run.numbers["steps"] == 100  # the last three draws make no batch
    state = initial_state(run.arranged)
    for rows in draws[:800].reshape(-1, 8):
        state = batch_update(state, rows, run.arranged)
    assert_same_state(run.state(), state)


@pytest.mark.sweep
@LINES
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed"])
@pytest.mark.parametrize("batch", [1, 4])
def test_gradient_inner_steps_are_a_few_lines_of_numpy(make_affine, order, box, batch, lines):
    form = make_affine(4, rows=12, columns=4, order=order, box=box, frozen=(1,))
    form = form if lines == 2 else replace(form, pieces=THREE_LINES)
    run, draws = Run(form, minibatch=batch, inner_steps=5), draws_for(form, 200 * batch)
    run.run(draws)
    state = initial_state(run.arranged)
    for rows in draws.reshape(-1, batch):
        state = batch_update(state, rows, run.arranged, inner_steps=5)
    assert_same_state(run.state(), state)
    assert np.linalg.norm(state.theta) > 0


# Starting on next to nothing


@pytest.mark.parametrize("box", [None, "closed"])
def test_contexts_that_do_not_vary_at_first_set_the_distance_when_they_do(make_affine, box):
    form = make_affine(5, rows=12, columns=3, box=box, intercept=False)
    still = replace(form, contexts=np.zeros((12, 3)))
    run, draws = Run(still), draws_for(form)
    assert run.numbers["travelled"] == 0.0
    run.run(draws[:20])
    assert run.numbers["travelled"] == 0.0
    assert not run.theta.any()
    at = run.lane.arrangement
    run.lane.step(run.theta, run.numbers, form, at.rows(form.contexts), draws[20:])
    state = twin_states(run.arranged, draws[:20])[0][-1]
    moving = replace(run.arranged, contexts=at.rows(form.contexts))
    states, _ = twin_states(moving, draws[20:], state)
    assert_same_state(run.state(), states[-1])
    first = at.rows(form.contexts)[draws[20]]
    assert states[0].travelled == pytest.approx(
        max(state.spread / math.sqrt(max(first @ first, 3.0)), np.linalg.norm(states[0].theta))
    )
    assert np.abs(run.theta).max() > 0.01


@pytest.mark.parametrize("options", [{}, {"box": "closed"}, {"order": 1}, {"frozen": (1,)}])
def test_a_run_that_begins_again_counts_its_distance_from_there(make_affine, options):
    form = make_affine(6, rows=12, **options)
    run, draws = Run(form, rotate=True, gap_tol=1e-9), draws_for(form)
    run.run(draws)
    run.lane.upper = math.inf  # so that the average is the best policy
    run.lane.looks = RESTART_LOOKS
    run.lane.take(Seen(run.policy, run.slopes, run.average))
    before = float(run.numbers["travelled"][0])
    run.theta, run.numbers = run.lane.go_on(run.theta, run.numbers)
    origin, decision = run.average
    np.testing.assert_array_equal(run.theta, origin)
    assert run.numbers["intercept"] == run.numbers["start"] == decision
    assert run.numbers["squares"] == run.numbers["intercept_squares"] == 0.0
    assert float(run.numbers["travelled"][0]) == pytest.approx(SHORTER * before)
    state = run.state()
    run.run(draws)
    states, _ = twin_states(run.arranged, draws, state, origin)
    assert_same_state(run.state(), states[-1])
    # The distance is not that from zero, which is what a run has that never began again.
    assert states[-1].travelled < 0.99 * np.linalg.norm(states[-1].theta)


@pytest.mark.parametrize("options", [{}, {"box": "closed"}, {"order": 1}])
def test_a_step_touches_its_own_product_alone(make_affine, options):
    form = make_affine(6, rows=12, **options)
    run = Run(form)
    numbers = np.zeros(3, NUMBERS)
    numbers[1] = run.numbers[0]
    theta, geometry = np.zeros(3), form.geometry
    draws = draws_for(form)
    affine_steps(
        run.lane.rows, form.outcomes, form.outcome_lower, form.outcome_upper,
        (run.lane.rows**2).sum(axis=1), draws, geometry.slopes, geometry.intercepts,
        run.arranged.lower, run.arranged.upper,
        geometry_record(geometry, 3, form.intercept, Options()),
        theta, numbers, 1, np.zeros(3), np.zeros(3), np.zeros(12), np.zeros(12, dtype=np.int64),
    )  # fmt: skip
    run.run(draws)
    assert_same_state(state_of(theta, numbers[1:2]), run.state(), tolerance=0.0)
    assert numbers[0] == numbers[2] == np.zeros(1, NUMBERS)[0]


def test_the_record_of_a_geometry_says_what_the_form_says(make_affine):
    form = make_affine(7, order=1, outcome_cost=2.0, box="open", frozen=(0,), radius=0.4)
    record = geometry_record(form.geometry, 2, True, Options(minibatch=5, inner_steps=3))
    assert record.dtype == GEOMETRY
    said = {name: record[name][0] for name in GEOMETRY.names}
    assert said == {
        "radius": 0.4, "inverse_kappa": 0.5, "smoothing": 0.0, "steepest": 1.0, "order": 1, "movable": 2,
        "intercept": 1, "boxed": 1, "batch": 5, "inner_steps": 3,
    }  # fmt: skip
