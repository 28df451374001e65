"""Problems that step together in one program: the same certified gap, proved by the same formulas."""

import math

import numpy as np
import pytest

from surefoot import PrimalDual, Problem, WassersteinBall, solve_many
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.engines.choice import worst_values
from surefoot.engines.lockstep import _programs, solve_in_lockstep
from surefoot.engines.lockstep_kernels import operator_norm
from surefoot.engines.problem_batch import plain_lines
from surefoot.exceptions import UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.random import rng_for
from surefoot.solvers import DASGD

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


@pytest.mark.parametrize(("order", "outcome_cost"), [(1, math.inf), (2, math.inf), (2, 4.0)])
@pytest.mark.parametrize("intercept", [True, False])
def test_each_gets_to_its_certified_gap(order, outcome_cost, intercept):
    given = problems(order, intercept, outcome_cost)
    lines = plain_lines(given)
    found = solve_in_lockstep(given, lines, gap_tol=0.01, max_steps=10**8)
    assert sum(reply is not None for reply in found) >= 0.9 * len(given)
    for problem, reply in zip(given, found, strict=True):
        if reply is None:
            continue
        alone = PrimalDual(gap_tol=1e-4).solve(problem).certificate
        assert reply.lower <= alone.upper * (1 + 1e-9)
        assert alone.lower * (1 - 1e-9) <= reply.upper <= 1.01 * alone.upper


def test_parameters_are_those_of_the_stated_worst_case():
    given = problems()
    found = solve_in_lockstep(given, plain_lines(given), gap_tol=0.01, max_steps=10**8)
    for problem, reply in zip(given, found, strict=True):
        if reply is not None:
            (worst,), _ = worst_values(problem, reply.parameters, np.array([problem.radius]))
            assert worst == pytest.approx(reply.upper, rel=1e-9)


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
        lambda given, *_, **__: asked.append(given) or [None] * len(given),
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


def test_programs_hold_problems_of_one_kind():
    given = problems(2) + problems(1) + problems(2, intercept=False)
    programs = _programs(given)
    assert sorted(k for members in programs for k in members) == list(range(len(given)))
    for members in programs:
        assert len({(given[k].ball.order, given[k].policy.intercept) for k in members}) == 1


def test_the_norm_is_exact_for_orthogonal_columns_and_a_bound_with_a_last_one_across():
    rng = rng_for(0, "norm")
    rows, weights = rng.standard_normal((20, 4)), rng.dirichlet(np.ones(20))
    metric = rng.uniform(0.1, 2.0, 5)
    turned = rows @ np.linalg.svd(np.sqrt(weights)[:, None] * rows)[2].T

    def true_norm(columns):
        used = metric[: columns.shape[1]]
        return np.linalg.norm(np.sqrt(weights)[:, None] * columns * np.sqrt(used), 2)

    assert operator_norm(turned, weights, metric[:4]) == pytest.approx(true_norm(turned))
    across = np.column_stack([turned, rows.sum(axis=1)])
    bound = operator_norm(across, weights, metric)
    assert true_norm(across) <= bound * (1 + 1e-12) <= 1.5 * true_norm(across)
