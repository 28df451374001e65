"""Problems that step together in one program: the same certified gap, proved by the same formulas."""

import math

import jax
import numpy as np
import pytest

from surefoot import PrimalDual, Problem, WassersteinBall, solve_many
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.engines import lockstep
from surefoot.engines.bound_kernels import PlainForm
from surefoot.engines.choice import worst_values
from surefoot.engines.lockstep import _programs, solve_in_lockstep
from surefoot.engines.lockstep_steps import Forms, _canonical, operator_norm
from surefoot.engines.many_kernel import canonical_rows
from surefoot.engines.problem_batch import plain_problems
from surefoot.exceptions import UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.random import rng_for
from surefoot.solvers import DASGD
from surefoot.solvers.solutions import Batch, Solutions

COST = Newsvendor(1.0, 0.2)


def problems(order=2, intercept=True, outcome_cost=math.inf, rows=(30, 40, 24), columns=(5, 12, 40)):
    """Different in rows, columns, radius, weights and units; some wider than long."""
    made = []
    for seed in range(6):
        for n, s, radius in zip(rows, columns, (0.05, 0.2, 0.6), strict=True):
            data = synthetic(n=n, s=s, seed=seed, test=1)
            weights = rng_for(seed, "weights").uniform(0.5, 2.0, n)
            nominal = Empirical(data.X * 10.0**seed, data.y * 100.0**seed, weights)
            ball = WassersteinBall(radius, order=order, outcome_cost=outcome_cost)
            made.append(Problem(COST, Linear(intercept), nominal, ball))
    return made


def solved(given):
    """The answers of one program after the other, None where a problem was left over."""
    plain, found = plain_problems(given, 0.01, 10**8), [None] * len(given)
    for members, replies in solve_in_lockstep(plain, 10**8):
        batch = Batch.solved(PrimalDual(), plain.places[members], replies)
        for place in batch.places:
            found[place] = Solutions(len(given), {}, [batch])[int(place)]
    return found


@pytest.mark.parametrize(("order", "outcome_cost"), [(1, math.inf), (2, math.inf), (2, 4.0)])
@pytest.mark.parametrize("intercept", [True, False])
def test_each_gets_to_its_certified_gap(order, outcome_cost, intercept):
    given = problems(order, intercept, outcome_cost)
    found = solved(given)
    assert sum(reply is not None for reply in found) >= 0.9 * len(given)
    for problem, reply in zip(given, found, strict=True):
        if reply is None:
            continue
        alone = PrimalDual(gap_tol=1e-4).solve(problem).certificate
        assert reply.certificate.lower <= alone.upper * (1 + 1e-9)
        assert alone.lower * (1 - 1e-9) <= reply.certificate.upper <= 1.01 * alone.upper


def test_parameters_are_those_of_the_stated_worst_case():
    given = problems()
    for problem, reply in zip(given, solved(given), strict=True):
        if reply is not None:
            (worst,), _ = worst_values(problem, reply.parameters, np.array([problem.radius]))
            assert worst == pytest.approx(reply.certificate.upper, rel=1e-9)


def test_solve_many_answers_all_of_them_to_the_same_gap():
    given = problems()
    for answer, other in zip(solve_many(given, engine="batch"), solve_many(given), strict=True):
        assert answer.converged
        assert answer.certificate.gap <= 0.01
        assert answer.certificate.upper == pytest.approx(other.certificate.upper, rel=0.01)
        assert answer.history[-1].gap == pytest.approx(answer.certificate.gap, abs=1e-12)
        assert answer.status.startswith("PrimalDual converged after")


@pytest.mark.parametrize(("engine", "together"), [("batch", True), ("auto", False), ("threads", False)])
def test_only_who_asks_for_one_program_gets_it(monkeypatch, engine, together):
    # "auto" once took the program wherever there was a GPU, and with it worse answers.
    asked = []
    monkeypatch.setattr(
        "surefoot.solvers.many.solve_in_lockstep",
        lambda *given: asked.append(given) or [],
    )
    answers = solve_many(problems(), engine=engine)
    assert bool(asked) is together
    assert all(answer.converged for answer in answers)


def test_what_does_not_fit_runs_by_itself():
    data = synthetic(n=30, s=5, seed=0, test=1)
    boxed = Problem(COST, Linear(), Empirical(data.X, data.y), WassersteinBall(0.1, frozen=(0,)))
    given = [*problems(), boxed]
    assert solve_many(given, engine="batch")[-1].converged


def test_columns_that_do_not_vary_do_no_harm_to_others():
    given = problems()
    n = len(given[0].nominal.outcomes)
    constant = Problem(COST, Linear(), Empirical(np.ones((n, 5)), np.arange(n)), WassersteinBall(0.1))
    answers = solve_many([constant, *given], engine="batch")
    assert all(answer.converged for answer in answers)


def test_other_solvers_are_refused():
    with pytest.raises(UnsupportedProblemError, match="engine='batch' needs the solver PrimalDual"):
        solve_many(problems(), DASGD(), engine="batch")


def test_programs_hold_problems_of_one_kind(monkeypatch):
    monkeypatch.setattr(lockstep, "MOST_PROBLEMS", 4)
    given = problems(2) + problems(1) + problems(2, intercept=False)
    programs = _programs(plain_problems(given, 0.01, 10**6).requests)
    assert sorted(k for members, _ in programs for k in members) == list(range(len(given)))
    for members, size in programs:
        assert len({(given[k].ball.order, given[k].policy.intercept) for k in members}) == 1
        assert len(members) <= size <= 4


@pytest.mark.parametrize("at_once", [1, 8])
def test_programs_that_are_not_full_give_the_same_answers(monkeypatch, at_once):
    given = problems()[::3] * 3
    whole = solve_many(given, engine="batch")
    monkeypatch.setattr(lockstep, "MOST_PROBLEMS", 10)  # programs of nine and eight, filled up to nine
    monkeypatch.setattr(lockstep, "MOST_RUNNING", at_once)
    parts = solve_many(given[:-1], engine="batch")
    np.testing.assert_allclose(parts.theta, whole.theta[:-1], rtol=1e-9)


def test_the_norm_is_exact_for_orthogonal_columns_and_a_bound_with_a_last_one_across():
    rng = rng_for(0, "norm")
    rows, weights = rng.standard_normal((20, 4)), rng.dirichlet(np.ones(20))
    metric = rng.uniform(0.1, 2.0, 5)
    turned = rows @ np.linalg.svd(np.sqrt(weights)[:, None] * rows)[2].T

    def true_norm(columns):
        used = metric[: columns.shape[1]]
        return np.linalg.norm(np.sqrt(weights)[:, None] * columns * np.sqrt(used), 2)

    def norm(columns):
        with jax.enable_x64(True):
            (found,) = operator_norm(columns[None], weights[None], metric[None, : columns.shape[1]])
        return float(found)

    assert norm(turned) == pytest.approx(true_norm(turned))
    across = np.column_stack([turned, rows.sum(axis=1)])
    assert true_norm(across) <= norm(across) * (1 + 1e-12) <= 1.5 * true_norm(across)


@pytest.mark.parametrize(
    ("rows", "columns", "far"), [(30, 5, 0.0), (30, 5, 20.0), (6, 9, 0.0), (6, 9, 20.0)]
)
@pytest.mark.parametrize("intercept", [True, False])
def test_problems_start_where_the_compiled_loop_starts(rows, columns, far, intercept):
    rng = rng_for(rows, "axes", str(far))
    contexts, weights = rng.standard_normal((rows, columns)) + far, rng.dirichlet(np.ones(rows))
    slopes = rng.uniform(-1.0, 0.2, rows)
    form = PlainForm(
        contexts, rng.standard_normal(rows), weights, np.abs(contexts).max(axis=0), slopes, 0.3, 0.01,
        intercept, 0.2, 1.0, 0.1, 2, 0.0,
    )  # fmt: skip
    turned, axes, mean, metric = canonical_rows(form)
    with jax.enable_x64(True):
        given, _ = _canonical(
            Forms(*(np.asarray(part)[None] for part in (
                contexts, form.outcomes, weights, slopes, 0.3, 1.0, 0.2, 1.0, 0.1, 0.0
            ))), intercept=intercept,
        )  # fmt: skip
    found, own, steps = (np.asarray(part)[0] for part in (given.rows, given.axes, given.metric))
    # Axes may point the other way; what the steps see of them may not differ.
    np.testing.assert_allclose((found * steps) @ found.T, (turned * metric) @ turned.T, atol=1e-9)
    np.testing.assert_allclose(own.T @ own, axes.T @ axes, atol=1e-9)
    np.testing.assert_allclose(given.mean[0], mean, atol=1e-12)
