"""Many problems at once: the same answers as one by one, in their order."""

import warnings

import numpy as np
import pytest

from surefoot import DASGD, Exact, PrimalDual, Problem, WassersteinBall, solve_many
from surefoot.costs import Newsvendor, Quadratic
from surefoot.datasets import synthetic
from surefoot.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    InvalidTypeError,
    UnsupportedProblemError,
)
from surefoot.nominals import Empirical
from surefoot.policies import MLP, Linear, LinearParameters
from surefoot.solvers import Adam

COST = Newsvendor(1.0, 0.2)
SOLVER = DASGD(max_steps=500)


def describe(n=60, radius=0.1, policy=None, cost=COST, columns=2, **ball):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, columns))
    y = 3.0 + X[:, 0] + 0.3 * rng.normal(size=n)
    return Problem(cost, policy or MLP((8,)), Empirical(X, y), WassersteinBall(radius, **ball))


def quietly(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return call(*arguments, **options)


def arrays_of(parameters):
    """What was learned, by name."""
    if isinstance(parameters, LinearParameters):
        return {"theta": parameters.theta, "intercept": parameters.intercept}
    return parameters.trained


# General problems


@pytest.fixture(scope="module")
def side_by_side():
    """Problems of different rows, radii and seeds, with another kind of problem between them."""
    problems = [
        describe(60, 0.0), describe(45, 0.3), describe(60, 0.1, Linear(), Quadratic()), describe(60, 0.01),
    ]  # fmt: skip
    seeds = [0, 1, 2, 3]
    return problems, seeds, quietly(solve_many, problems, SOLVER, seeds=seeds)


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_general_problems_have_the_same_answers_as_one_by_one(side_by_side, number):
    problems, seeds, answers = side_by_side
    alone = quietly(SOLVER.solve, problems[number], seeds[number])
    found = answers[number]
    learned, expected = arrays_of(found.parameters), arrays_of(alone.parameters)
    assert learned.keys() == expected.keys()
    for name, leaf in expected.items():
        np.testing.assert_allclose(learned[name], leaf, rtol=0, atol=1e-8)
    assert found.certificate.upper == pytest.approx(alone.certificate.upper, rel=1e-8)
    assert found.certificate.kind == alone.certificate.kind
    assert found.multiplier == pytest.approx(alone.multiplier, rel=1e-8)
    assert found.history[-1].steps == alone.history[-1].steps == found.n_steps
    assert found.status == alone.status


def test_an_optimizer_is_a_wish_for_the_general_engine(monkeypatch):
    asked = []

    def solve_together(solver, problems, seeds):
        asked.append(solver.optimizer)
        return ["an answer"] * len(problems)

    monkeypatch.setattr(DASGD, "solve_together", solve_together)
    solver = DASGD(max_steps=250, optimizer=Adam(0.05))
    answers = solve_many([describe(60, 0.1, Linear())] * 2, solver)
    assert answers == ["an answer"] * 2
    assert asked == [Adam(0.05)]  # both in one go


# Affine problems


def affine(n=10, radius=0.1, policy=None, **ball):
    data = synthetic(n=n, s=40, seed=n, test=1)
    return Problem(COST, policy or Linear(), Empirical(data.X, data.y), WassersteinBall(radius, **ball))


def test_affine_problems_have_the_same_answers_as_one_by_one():
    problems = [affine(10), affine(30, 0.0), affine(24, 0.3, order=1)]
    for problem, seed, answer in zip(
        problems, (5, 6, 7), solve_many(problems, seeds=(5, 6, 7)), strict=True
    ):
        alone = PrimalDual().solve(problem, seed)
        np.testing.assert_array_equal(answer.parameters.theta, alone.parameters.theta)
        assert answer.certificate == alone.certificate


# What is asked for


def test_each_problem_is_solved_by_the_quickest_that_can_certify_it():
    problems = [affine(10), describe(30, 0.1, Linear(), Newsvendor(1.0, 0.2, 0.1))]
    told = [answer.status.split(" converged ")[0] for answer in solve_many(problems)]
    assert told == ["PrimalDual", "DASGD"]


def test_a_solver_is_used_for_all():
    problems = [affine(10), affine(24, 0.3, order=1)]
    for solver in (DASGD(gap_tol=0.1), Exact()):
        for problem, answer in zip(problems, solve_many(problems, solver), strict=True):
            alone = solver.solve(problem)
            np.testing.assert_array_equal(answer.parameters.theta, alone.parameters.theta)
            assert answer.certificate == alone.certificate
            assert answer.status == alone.status


def test_no_problems_have_no_answers():
    assert solve_many([]) == []


def test_seeds_of_numpy_count_as_one_for_all():
    problem = affine(10)
    (answer,) = solve_many([problem], seeds=np.int64(3))
    np.testing.assert_array_equal(
        answer.parameters.theta, PrimalDual().solve(problem, 3).parameters.theta
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": [1]}, r"^seeds must be one number or one per problem \(2\), got 1\.$"),
        ({"seeds": [1, -1]}, "^seeds must be >= 0"),
        ({"engine": "gpu"}, "engine must be"),
    ],
)
def test_options_are_checked_by_name(options, message):
    with pytest.raises(InvalidInputError, match=message):
        solve_many([affine(10), affine(10)], **options)


def test_a_problem_that_does_not_fit_is_refused_before_any_work():
    with pytest.raises(UnsupportedProblemError, match="Exact cannot solve this: .*Linear policy"):
        solve_many([affine(10), describe()], Exact())
    with pytest.raises(UnsupportedProblemError, match="engine='batch' needs the solver PrimalDual"):
        solve_many([affine(10)], Exact(), engine="batch")


def test_what_is_no_problem_is_refused_by_name():
    with pytest.raises(
        InvalidTypeError, match=r"^problems must be a sequence of Problem\(...\), got 1\.$"
    ):
        solve_many([1])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((None,), {}, r"^problems must be a sequence of Problem\(...\), got None\.$"),
        (
            (affine(10),),
            {},
            r"^problems must be a sequence of Problem\(...\), got an object of type Problem",
        ),
        (([],), {"seeds": 1.5}, "^seeds must be a whole number, or one for each problem, got 1.5"),
        (([],), {"seeds": None}, "^seeds must be a whole number, or one for each problem, got None"),
        (([],), {"seeds": True}, "^seeds must be a whole number, got True"),
        (([affine(10)],), {"seeds": [0.5]}, "^seeds must be a whole number, got 0.5"),
    ],
)
def test_what_is_no_list_is_refused_by_name(arguments, options, message):
    with pytest.raises(InvalidTypeError, match=message):
        solve_many(*arguments, **options)
