"""The affine engine: lanes that step by themselves, what they keep, and what is said in which units."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from surefoot import DASGD, Box, Problem, WassersteinBall
from surefoot.costs import ConvexPiecewiseCost, Newsvendor, Pieces
from surefoot.engines.affine import Affine
from surefoot.engines.affine_adversary import affine_adversary, multiplier_unit
from surefoot.engines.affine_lane import Lane, first_numbers
from surefoot.engines.affine_parts import FreshPart, fresh_rows, in_units_of
from surefoot.engines.affine_proof import draw_rows
from surefoot.engines.engine import Options
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import Linear, LinearParameters
from surefoot.problem import affine_forms
from surefoot.random import rng_for
from tests.oracles.affine_twin import arranged, initial_state

COST = Newsvendor(1.0, 0.2)
NORMAL = Gaussian([1.0, 20.0, 5.0], np.diag([1.0, 400.0, 2.0]) + 0.3)


def rows(seed=0, count=30, products=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3)) * [1.0, 40.0, 0.02] + [0.0, 5.0, 9.0]
    y = X @ rng.normal(size=(3, products)) + rng.normal(size=(count, products)) + 10.0
    return Empirical(X, y[:, 0] if products == 1 else y)


def problem_on(nominal, radius=0.1, **ball):
    return Problem(COST, Linear(), nominal, WassersteinBall(radius, **ball))


# Stepping


def test_an_update_leaves_the_state_it_was_given_alone():
    engine = Affine([problem_on(rows(products=2))], [0], Options())
    first = engine.init()
    kept = [array.copy() for array in (*first.theta, *first.numbers)]
    samples = engine.draw(500)
    second, _ = engine.update(first, samples)
    for array, before in zip((*first.theta, *first.numbers), kept, strict=True):
        np.testing.assert_array_equal(array, before)
    again, _ = engine.update(first, samples)
    for one, other in zip(
        (*second.theta, *second.numbers), (*again.theta, *again.numbers), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert all(np.abs(theta).max() > 0.0 for theta in second.theta)


def test_lanes_start_where_the_formula_starts(make_affine):
    for options in ({}, {"order": 1, "outcome_cost": 0.5}, {"box": "closed", "intercept": False}):
        form = make_affine(3, **options)
        lane = Lane(form, Options(), rotate=False)
        theta, numbers = lane.first()
        twin = initial_state(arranged(form, lane.arrangement))
        assert not theta.any()
        for name in ("intercept", "start", "spread", "log_multiplier", "square_slope", "travelled"):
            assert numbers[name][0] == pytest.approx(getattr(twin, name), rel=1e-12), name


@pytest.mark.parametrize("value", [0.1, 7.3, 1e6])
@pytest.mark.parametrize("count", [12, 16, 30])
def test_rounding_is_no_first_distance(value, count):
    """Constant columns have no length once they are centred; what is left of them is rounding."""
    y = np.arange(count, dtype=float)
    (form,) = affine_forms(problem_on(Empirical(np.full((count, 3), value), y)), merge=False)
    lane = Lane(form, Options(), rotate=False)
    _, numbers = lane.first()
    assert numbers["travelled"][0] <= numbers["spread"][0]


def test_the_first_numbers_follow_the_units_of_outcomes(make_affine):
    form = make_affine(4, radius=0.2)
    larger = replace(form, outcomes=8.0 * form.outcomes)
    for name in ("intercept", "start", "spread", "travelled", "intercept_travelled"):
        one, other = (first_numbers(f, form.contexts)[name][0] for f in (form, larger))
        assert other == pytest.approx(8.0 * one, rel=1e-12), name
    one, other = (first_numbers(f, form.contexts)["log_multiplier"][0] for f in (form, larger))
    assert other == pytest.approx(one + math.log(8.0), rel=1e-12)


def test_bounds_only_ever_close():
    engine = Affine([problem_on(rows())], [0], Options(gap_tol=1e-6))
    state, bounds = engine.init(), engine.start()
    for steps in (500, 1_000, 2_000, 4_000, 8_000):
        state, seen = engine.update(state, engine.draw(steps))
        before = bounds
        state, bounds = engine.judge(state, seen)
        assert bounds[0].upper <= before[0].upper
        assert bounds[0].lower >= before[0].lower
        assert bounds[0].proved
    assert bounds[0].gap < 0.1
    (answer,) = engine.finish(state)
    assert answer.certificate.upper == pytest.approx(bounds[0].upper, rel=1e-12)
    assert answer.certificate.lower == pytest.approx(bounds[0].lower, rel=1e-12)


def test_a_problem_that_is_solved_steps_no_more():
    easy = problem_on(rows(), radius=1e3)  # beyond collapse: the constant order is the best
    engine = Affine([easy, problem_on(rows(1), radius=0.05)], [0, 0], Options())
    bounds = engine.start()
    assert bounds[0].gap < 0.005 < bounds[1].gap
    assert not engine.done(bounds)
    first = engine.init()
    second, seen = engine.update(first, engine.draw(500))
    assert seen[0] is None
    assert seen[1] is not None
    np.testing.assert_array_equal(second.theta[0], first.theta[0])
    assert np.abs(second.theta[1]).max() > 0.0


def test_products_draw_rows_of_their_own_that_depend_on_the_seed_alone():
    problem = problem_on(rows(products=2))
    one, other = (Affine([problem], [7], Options()).draw(100)[0] for _ in range(2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (one[0] != one[1]).any()
    assert (Affine([problem], [8], Options()).draw(100)[0][0] != one[0]).any()


def test_rows_of_equal_weight_are_drawn_in_shuffled_passes():
    draws = draw_rows(np.full(10, 0.1), np.random.default_rng(0), 95)
    assert len(draws) == 95
    for k in range(9):
        assert sorted(draws[10 * k : 10 * k + 10]) == list(range(10))
    assert (draws[:10] != draws[10:20]).any()
    unequal = draw_rows(np.array([0.9, 0.1, 0.0]), np.random.default_rng(0), 10_000)
    assert np.bincount(unequal, minlength=3) / 10_000 == pytest.approx([0.9, 0.1, 0.0], abs=0.02)


def test_blocks_double_up_to_the_most_steps():
    engine = Affine([problem_on(rows(count=40))], [0], Options(max_steps=15_000))
    assert list(engine.blocks()) == [2_000, 4_000, 8_000, 1_000]
    rough = Affine([problem_on(rows(count=40))], [0], Options(rough=True))
    assert sum(rough.blocks()) == 4_000
    batched = Affine([problem_on(rows(count=40))], [0], Options(max_steps=1_000, minibatch=4))
    assert list(batched.blocks()) == [500, 500]
    assert len(batched.draw(500)[0][0]) == 2_000


# Costs that may be profits


@dataclass(frozen=True)
class Shifted(ConvexPiecewiseCost):
    """A newsvendor's cost beside a sum that is paid, or earned, in any case."""

    level: float

    def pieces(self, n_products):
        return (Pieces((-1.0, 0.3), (self.level, self.level)),) * n_products


@pytest.mark.sweep
@pytest.mark.parametrize("level", [-100.0, -1.0])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, Box(-1e4, 1e4)], ids=["free", "box"])
@pytest.mark.filterwarnings("ignore::surefoot.exceptions.ConvergenceWarning")
def test_a_cost_that_may_be_a_profit_has_the_same_best_policy(level, order, box):
    ball = WassersteinBall(0.1, order=order, support=box)
    worst = []
    for cost in (Shifted(0.0), Shifted(level)):
        solution = DASGD(max_steps=30_000).solve(Problem(cost, Linear(), rows(2), ball))
        worst.append(solution.certificate.upper)
    assert worst[1] - level == pytest.approx(worst[0], rel=0.02)


# Adversaries, in the user's units


CASES = list(itertools.product((1, 2), (math.inf, 0.02), (True, False)))


@pytest.mark.parametrize(("order", "kappa", "scale"), CASES)
def test_the_adversary_spends_its_budget_in_units_of_the_ball(order, kappa, scale):
    nominal = rows(3, products=2)
    radius = 0.3 if scale else 5.0
    problem = problem_on(nominal, radius, order=order, outcome_cost=kappa, scale=scale, frozen=(0,))
    theta = np.random.default_rng(0).normal(size=(3, 2))
    parameters = LinearParameters(theta, np.array([9.0, 11.0]))
    found = affine_adversary(problem, parameters)
    units = nominal.contexts.std(axis=0) if scale else np.ones(3)
    moved = (found.contexts - nominal.contexts[found.rows]) / units
    shifted = found.outcomes - nominal.outcomes[found.rows, found.products]
    lengths = np.linalg.norm(moved, axis=1)
    price = 0.0 if math.isinf(kappa) else kappa * np.abs(shifted) ** order
    np.testing.assert_allclose(found.distances, lengths**order + price, rtol=1e-6, atol=1e-9)
    spent = np.bincount(found.products, found.weights * found.distances)
    np.testing.assert_allclose(found.transport_cost, spent, rtol=1e-9)
    np.testing.assert_allclose(spent, radius**order, rtol=1e-6)
    assert np.bincount(found.products, found.weights) == pytest.approx(np.ones(2))
    np.testing.assert_array_equal(found.contexts[:, 0], nominal.contexts[found.rows, 0])
    # The value is what the atoms cost, and the multiplier is its slope in the budget.
    costs = COST.evaluate(
        (found.contexts @ theta + parameters.intercept)[np.arange(len(shifted)), found.products, None],
        found.outcomes[:, None],
    )
    assert found.value == pytest.approx(float(found.weights @ costs), rel=1e-3)
    assert found.expected_cost == pytest.approx(float(found.weights @ costs), rel=1e-9)
    step = 1e-4 * radius
    values = [
        affine_adversary(problem.at_radius(r), parameters).value for r in (radius - step, radius + step)
    ]
    slope = (values[1] - values[0]) / ((radius + step) ** order - (radius - step) ** order)
    assert found.multiplier.sum() == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_limited_decisions_cost_what_their_atoms_cost(order, seed):
    # The worst case of uncut decisions bounds it from above; what is paid is paid for cut ones.
    nominal, limits = rows(seed), Box(6.0, 14.0)
    ball = WassersteinBall(0.5, order=order)
    problem = Problem(COST, Linear(decisions=limits), nominal, ball)
    parameters = LinearParameters(
        np.random.default_rng(seed).normal(size=(3, 1)) * [[1.0], [0.03], [50.0]], np.array([9.0])
    )
    found = affine_adversary(problem, parameters)
    decisions = problem.policy.decide(parameters, found.contexts)
    assert ((decisions == 6.0) | (decisions == 14.0)).any()
    paid = COST.mean(decisions, found.outcomes[:, None], found.weights)
    assert found.expected_cost == pytest.approx(paid, rel=1e-9)
    assert found.expected_cost <= found.value * (1 + 1e-9)


@pytest.mark.parametrize(("order", "scale"), [(1, True), (2, True), (1, False), (2, False)])
def test_answers_scale_with_the_user_s_units(order, scale):
    nominal = rows(4)
    base = problem_on(nominal, 0.1 if scale else 3.0, order=order, scale=scale)
    answer = DASGD(max_steps=8_000, gap_tol=0.2).solve(base)
    # Columns in other units are the same problem where moves are measured in spreads.
    factors = np.array([1e-3, 10.0, 1e4]) if scale else np.full(3, 64.0)
    radius = base.radius if scale else 64.0 * base.radius
    other = problem_on(
        Empirical(nominal.contexts * factors, 512.0 * nominal.outcomes),
        radius,
        order=order,
        scale=scale,
    )
    again = DASGD(max_steps=8_000, gap_tol=0.2).solve(other)
    np.testing.assert_allclose(
        again.parameters.theta[:, 0] * factors / 512.0, answer.parameters.theta[:, 0], rtol=1e-6
    )
    assert again.certificate.upper == pytest.approx(512.0 * answer.certificate.upper, rel=1e-9)
    power = 0 if scale else order
    expected = 512.0 * answer.multiplier / 64.0**power
    np.testing.assert_allclose(again.multiplier, expected, rtol=1e-6)


def test_a_multiplier_is_in_units_of_cost_and_transport():
    (form,) = affine_forms(problem_on(rows(5), 3.0, scale=False))
    assert form.column_unit != 1.0
    plain, policy = form.in_plain_units(), (np.array([0.1, -0.02, 0.3]), 1.0)
    user = policy[0] * form.outcome_unit / form.column_unit, policy[1] * form.outcome_unit
    gamma = form.worst_value(*policy)[1] * multiplier_unit(form)
    assert gamma == pytest.approx(plain.worst_value(*user)[1], rel=1e-9)


# Nominals without rows


@pytest.mark.parametrize("scale", [True, False])
def test_fresh_rows_are_learned_in_the_units_of_the_judging_rows(scale):
    engine = Affine([problem_on(NORMAL, 0.1, scale=scale)], [0], Options())
    (part,) = engine.parts
    assert isinstance(part, FreshPart)
    lane = part.lanes[0]
    (chunk,) = next(part.chunks(50))
    again = fresh_rows(part.problem, rng_for(0, "fresh"), 50)
    np.testing.assert_allclose(chunk.contexts * lane.form.scale, again.contexts, rtol=1e-12)
    np.testing.assert_allclose(
        chunk.outcomes * lane.form.outcome_unit, again.outcomes[:, 0], rtol=1e-12
    )
    assert chunk.pieces == lane.form.pieces


def test_units_of_another_form_change_no_decision():
    few, many = rows(6, count=5), rows(7, count=200)
    small = affine_forms(problem_on(few, scale=False), merge=False)[0]
    large = affine_forms(problem_on(many, scale=False), merge=False)[0]
    moved = in_units_of(large, small)
    np.testing.assert_allclose(moved.contexts * large.scale, few.contexts, rtol=1e-12)
    np.testing.assert_allclose(moved.outcomes * large.outcome_unit, few.outcomes[:, 0], rtol=1e-12)
    policy = np.array([0.3, 0.1, -0.2]), 0.7
    user = large.in_user_units(*policy)
    np.testing.assert_allclose(
        moved.residuals(*policy) * large.outcome_unit,
        few.contexts @ user[0] + user[1] - few.outcomes[:, 0], rtol=1e-9,
    )  # fmt: skip


def test_fresh_draws_are_judged_on_rows_set_apart():
    engine = Affine([problem_on(NORMAL)], [3], Options(gap_tol=0.05))
    (part,) = engine.parts
    judged = part.lanes[0].form.contexts
    assert part.judging_rows == len(judged) == 20_000
    other = Affine([problem_on(NORMAL)], [4], Options()).parts[0].lanes[0].form.contexts
    assert (other != judged).any()
    state, bounds = engine.init(), engine.start()
    for steps in (2_048, 4_096, 8_192):
        state, seen = engine.update(state, engine.draw(steps))
        state, bounds = engine.judge(state, seen)
    (answer,) = engine.finish(state)
    assert answer.certificate.kind == "estimate"
    assert f"{20_000:,} draws" in answer.certificate.message
    assert bounds[0].gap < 0.2
    assert np.isfinite(answer.multiplier).all()
