"""Many small affine problems in one compiled loop: the answers that each would have alone."""

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Box, PrimalDual, Problem, WassersteinBall, solve_many
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.datasets import synthetic
from surefoot.engines.problem_batch import CHUNK, LEAST_CHUNK, _chunks, plain_problems
from surefoot.exceptions import ConvergenceWarning
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms, form_policies
from surefoot.solvers import many


def describe(k):
    """Problems of different sizes, radii, orders, costs, units and weights; some with equal rows."""
    rng = np.random.default_rng(k)
    n, s = int(rng.integers(3, 60)), int(rng.integers(1, 12))
    X = rng.normal(size=(n, s)) + rng.normal(size=s) * (k % 5 == 0)
    y = np.round(X @ rng.normal(size=s) + rng.normal(size=n) + 4.0, 1 + k % 3)
    weights = rng.integers(1, 5, n) if k % 3 == 0 else None
    return Problem(
        Newsvendor(*rng.uniform(0.2, 3.0, 2)), Linear(intercept=k % 4 != 0),
        Empirical(X * 10.0 ** (k % 7 - 3), y * 10.0 ** (k % 3), weights),
        WassersteinBall(
            float(rng.uniform(0.02, 0.6)), order=1 + k % 2, outcome_cost=0.5 if k % 6 == 0 else math.inf
        ),
    )  # fmt: skip


PROBLEMS = [describe(k) for k in range(48)]
SEEDS = list(range(48))


def same(found, alone, share=1e-9):
    """Answers that agree but for the order in which sums were taken."""
    assert found.n_steps == alone.n_steps
    assert found.converged == alone.converged
    assert found.certificate.upper == pytest.approx(alone.certificate.upper, rel=share)
    # The share of the slopes that can be paid for is found by halving 22 times.
    assert found.certificate.lower == pytest.approx(alone.certificate.lower, rel=max(share, 2.0**-21))
    assert found.certificate.kind == alone.certificate.kind
    assert found.multiplier == pytest.approx(alone.multiplier, rel=100 * share)
    size = np.abs(alone.parameters.theta).max() + 1e-300
    np.testing.assert_allclose(
        found.parameters.theta, alone.parameters.theta, rtol=0, atol=100 * share * size
    )
    assert found.status.split(" (")[0] == alone.status.split(" (")[0]


@pytest.fixture(scope="module")
def together():
    return solve_many(PROBLEMS, seeds=SEEDS)


def test_most_of_them_were_solved_in_the_loop(together):
    in_loop = [math.isnan(solution.history[-1].seconds) for solution in together]
    assert sum(in_loop) >= 36


@pytest.mark.parametrize("k", range(48))
def test_each_answer_is_that_of_the_problem_alone(together, k):
    same(together[k], PrimalDual().solve(PROBLEMS[k], SEEDS[k]))


@pytest.mark.parametrize("k", range(0, 48, 5))
def test_the_independent_certificate_agrees(together, k):
    (form,) = affine_forms(PROBLEMS[k])
    ((theta, constant),) = form_policies((form,), together[k].parameters)
    upper = form.worst_value(theta, constant)[0] * form.value_unit
    assert together[k].certificate.upper == pytest.approx(upper, rel=1e-9)
    assert together[k].certificate.gap <= 0.01
    # Slopes at the policy prove a bound of their own, which cannot contradict.
    bound = form.lower_bound(form.pieces.slope_at(form.residuals(theta, constant))) * form.value_unit
    assert bound <= together[k].certificate.upper * (1 + 1e-12)


@settings(max_examples=10, deadline=None)
@given(st.permutations(list(range(48))), st.integers(1, 47))
def test_company_and_order_change_no_bit(together, order, cut):
    for part in (order[:cut], order[cut:]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(many, "FEWEST", 1)
            answers = solve_many([PROBLEMS[k] for k in part], seeds=[SEEDS[k] for k in part])
        for k, answer in zip(part, answers, strict=True):
            np.testing.assert_array_equal(answer.parameters.theta, together[k].parameters.theta)
            assert answer.certificate == together[k].certificate
            assert answer.n_steps == together[k].n_steps


def test_few_problems_are_solved_one_by_one_with_the_same_answers(together):
    for k, answer in enumerate(solve_many(PROBLEMS[:3], seeds=SEEDS[:3])):
        same(together[k], answer)
        assert not math.isnan(answer.history[-1].seconds)


def lopsided(seed):
    """A policy without intercept, few rows and costs of 100 to 300 : 1: the loop may stick at zero."""
    rng = np.random.default_rng(seed)
    s = int(rng.integers(2, 15))
    n = int(rng.integers(2, 2 * s + 1))
    X, y = rng.standard_t(3, size=(n, s)) * 10 ** rng.uniform(-1, 1, s), rng.standard_t(2, size=n)
    ball = WassersteinBall(
        float(rng.choice([0.01, 0.1, 1.0, 5.0])), scale=bool(rng.integers(2)),
        outcome_cost=float(rng.choice([2.0, math.inf])),
    )  # fmt: skip
    cost = Newsvendor(*rng.permutation([1.0, rng.uniform(100.0, 300.0)]))
    return Problem(cost, Linear(intercept=False), Empirical(X, y), ball)


STUCK = [lopsided(k) for k in (19, 23)]


def test_where_the_method_sticks_cutting_planes_go_on():
    for problem in STUCK:
        found = PrimalDual().solve(problem)
        assert found.converged
        assert 300_000 < found.n_steps < 301_000
        assert found.status.startswith("PrimalDual and CuttingPlanes converged after 300,")
        steps, seconds = (
            [getattr(look, name) for look in found.history] for name in ("steps", "seconds")
        )
        assert steps == sorted(steps)
        assert steps[-1] == found.n_steps
        assert seconds == sorted(seconds)


def test_cutting_planes_prove_what_they_have_found():
    # Their plan alone proved 98.9 % of this policy's worst case after 500 rounds.
    found = PrimalDual().solve(lopsided(167))
    assert found.converged
    assert found.n_steps < 300_200


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6))
def test_company_changes_no_solver_and_no_convergence(seed):
    problems = [*STUCK, *(lopsided(seed + k) for k in range(20))]
    for problem, answer in zip(problems, solve_many(problems), strict=True):
        (alone,) = solve_many([problem])
        assert answer.converged
        assert alone.converged
        assert answer.status.startswith("PrimalDual")
        assert alone.status.startswith("PrimalDual")
        # Rounding may have one of them stop a look later: bounds of the one hold for the other.
        for one, other in ((answer, alone), (alone, answer)):
            assert one.certificate.lower <= other.certificate.upper * (1 + 1e-9)


def test_more_problems_than_a_thread_takes_at_a_time(together):
    answers = solve_many(PROBLEMS * 3, seeds=SEEDS * 3)
    assert len(answers) > 2 * CHUNK
    for k, answer in enumerate(answers):
        np.testing.assert_array_equal(answer.parameters.theta, together[k % 48].parameters.theta)


def test_other_tolerances_and_looks(together):
    plain = plain_problems(PROBLEMS, 0.01, 10**6).places.tolist()
    tight = solve_many(
        [PROBLEMS[k] for k in plain], PrimalDual(gap_tol=1e-3), seeds=[SEEDS[k] for k in plain]
    )
    for rough, fine in zip([together[k] for k in plain], tight, strict=True):
        assert fine.certificate.gap <= 1e-3
        assert fine.certificate.upper <= rough.certificate.upper * (1 + 1e-12)
    looks = together[7].history
    assert looks[0].steps == 0
    assert looks[-1].steps == together[7].n_steps
    assert looks[-1].upper == together[7].certificate.upper
    assert all(a.upper >= b.upper and a.lower <= b.lower for a, b in itertools.pairwise(looks))


def test_what_is_not_done_in_time_is_done_alone_and_says_so():
    with pytest.warns(ConvergenceWarning, match="ran out of steps after 40"):
        answers = solve_many(PROBLEMS, PrimalDual(gap_tol=1e-9, max_steps=40), seeds=SEEDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (0, 1, 2):
            same(answers[k], PrimalDual(gap_tol=1e-9, max_steps=40).solve(PROBLEMS[k], SEEDS[k]))


def test_somebody_who_watches_sees_every_look():
    seen = []
    solve_many([PROBLEMS[1]] * 20, PrimalDual(callback=seen.append))
    assert len(seen) >= 20


def test_other_problems_in_between_go_their_own_way(together):
    data = synthetic(n=30, s=3, seed=0, test=1)
    rows = Empirical(data.X, data.y)
    cost, ball = Newsvendor(1.0, 0.2), WassersteinBall(0.1)
    X = data.X.copy()
    X[:, 0] = 1.0
    others = [
        Problem(cost, Linear(), rows, replace(ball, frozen=(0,))),
        Problem(cost, Linear(), rows, WassersteinBall(0.0)),
        Problem(cost, Linear(), Empirical(X, data.y), ball),
        Problem(cost, Linear(decisions=Box(0.0, 3.0)), rows, ball),
        Problem(cost, Linear(), Empirical(data.X, np.column_stack([data.y, data.y])), ball),
        Problem(cost, Linear(), Empirical(data.X, np.full(30, 2.0)), ball),
        Problem(TieredNewsvendor(((0, 1.0), (1, 3.0)), 0.5), Linear(), rows, ball),
    ]
    mixed = [*others, *PROBLEMS[:20]]
    answers = solve_many(mixed, seeds=[0] * len(others) + SEEDS[:20])
    for problem, answer in zip(others, answers, strict=False):
        alone = solve_many([problem])[0]
        assert answer.certificate.upper == pytest.approx(alone.certificate.upper, rel=1e-9)
        assert answer.status == alone.status
    for k, answer in enumerate(answers[len(others) :]):
        np.testing.assert_array_equal(answer.parameters.theta, together[k].parameters.theta)


def test_numbers_at_the_edge_of_floats_do_no_harm(together):
    rows = PROBLEMS[0].nominal
    huge = Problem(
        Newsvendor(1.0, 0.2), Linear(), Empirical(rows.contexts * 1e90, rows.outcomes * 1e90),
        WassersteinBall(0.1),
    )  # fmt: skip
    answers = solve_many([huge, *PROBLEMS[:20]], seeds=[0, *SEEDS[:20]])
    same(answers[0], PrimalDual().solve(huge, 0))
    np.testing.assert_array_equal(answers[1].parameters.theta, together[0].parameters.theta)


def test_columns_keep_the_units_that_a_ball_gives_them():
    rng = np.random.default_rng(0)
    problems = []
    for k, problem in enumerate(PROBLEMS[:24]):
        columns = problem.nominal.n_columns
        own = (True, False, tuple(rng.uniform(0.5, 2.0, columns) * 10.0 ** (k % 7 - 3)))[k % 3]
        problems.append(replace(problem, ball=replace(problem.ball, scale=own)))
    answers = solve_many(problems, seeds=SEEDS[:24])
    assert sum(math.isnan(one.history[-1].seconds) for one in answers[2::3]) >= 4  # in the loop
    for problem, seed, answer in zip(problems, SEEDS, answers, strict=False):
        same(answer, PrimalDual().solve(problem, seed))


def test_rows_that_do_not_lie_side_by_side_are_copied():
    wide = np.random.default_rng(0).normal(size=(40, 8))
    wide[:, 5] += 4.0

    def every(step):
        rows = Empirical(wide[:, ::2], wide[:, 5])
        object.__setattr__(rows, "contexts", wide[:, ::2] if step else wide[:, ::2].copy())
        return Problem(Newsvendor(1.0, 0.2), Linear(), rows, WassersteinBall(0.1))

    apart, beside = (solve_many([every(step)] * 16)[0] for step in (True, False))
    np.testing.assert_array_equal(apart.parameters.theta, beside.parameters.theta)


def test_chunks_hold_each_problem_once_and_get_smaller():
    for count in (0, 1, CHUNK, 1000):
        chunks = _chunks(count)
        assert [k for some in chunks for k in range(count)[some]] == list(range(count))
        sizes = [some.stop - some.start for some in chunks]
        assert sizes == sorted(sizes, reverse=True)
        assert all(size <= CHUNK for size in sizes)
    assert len(chunks) > 1
    assert sizes[-1] <= LEAST_CHUNK


def test_problems_are_left_out_where_the_loop_cannot_go():
    problem = PROBLEMS[1]
    smooth = replace(problem, cost=Newsvendor(1.0, 0.2, 0.1))
    wide = replace(problem, ball=replace(problem.ball, scale=(1.0,) * 99))
    lingers = replace(problem, ball=replace(problem.ball, order=1, outcome_cost=1.0))
    plain = plain_problems([smooth, problem, wide, lingers, problem], 0.01, 10**6)
    assert plain.places.tolist() == [1, 4]
    cost = problem.cost
    assert plain.requests[["up", "down"]].tolist() == [(cost.holding, cost.backorder)] * 2
    assert plain.requests["first"].tolist() == [0, len(problem.nominal.outcomes)]
    assert plain.some([1]).requests["first"].tolist() == [0]


@pytest.mark.parametrize("seed", [21, 23, 38, 147, 1027])
def test_lopsided_costs_without_intercept_end_whatever_the_number_of_rows(seed):
    """Some of these had not ended after 50 million steps when only few rows asked for cutting planes."""
    rng = np.random.default_rng(seed)
    s, n = int(rng.integers(2, 8)), int(rng.integers(3, 120))
    X = rng.normal(size=(n, s)) + rng.choice([0, 3])
    y = 10 * rng.integers(2) + X[:, 0] + rng.normal(size=n)
    cost = Newsvendor(*rng.permutation([1.0, rng.uniform(30, 300)]))
    ball = WassersteinBall(float(rng.choice([0.03, 0.3, 1.0])), scale=False)
    problem = Problem(cost, Linear(intercept=False), Empirical(X, y), ball)
    assert PrimalDual().solve(problem).converged
