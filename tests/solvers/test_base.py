"""What every solver gives: sentences, paths of radii, rehearsals; and a solver of one's own."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

from surefoot import DASGD, Exact, PrimalDual, Problem, RobustPolicy, WassersteinBall, load, solve_many
from surefoot.certificates import Certificate
from surefoot.costs import Newsvendor, Quadratic
from surefoot.datasets import synthetic
from surefoot.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    ModelFileError,
    UnsupportedProblemError,
)
from surefoot.io import register
from surefoot.nominals import Empirical
from surefoot.online import OnlinePolicy
from surefoot.policies import MLP, Linear, LinearParameters
from surefoot.problem import affine_forms
from surefoot.solvers import Solution, Solver
from surefoot.solvers.base import ProductAnswer, assemble, sentence

COST = Newsvendor(1.0, 0.2)
RADII = [0.3, 0.1, 0.0]
SOLVERS = [PrimalDual(), DASGD(gap_tol=0.05), Exact()]


def problem_of(n=40, seed=0, radius=0.1, products=1, **ball):
    sets = [synthetic(n, 3, seed=seed + k, test=1) for k in range(products)]
    outcomes = np.column_stack([one.y for one in sets])
    return Problem(COST, Linear(), Empirical(sets[0].X, outcomes), WassersteinBall(radius, **ball))


def named(solver):
    return type(solver).__name__


# --- sentences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("converged", "interrupted", "told"),
    [
        (True, False, "Mine converged after 1,200 steps (gap)."),
        (False, False, "Mine ran out of steps after 1,200 (gap): do more."),
        (
            False,
            True,
            "Mine was interrupted after 1,200 steps (gap): the best policy so far is returned.",
        ),
    ],
)
def test_a_sentence_names_the_solver_its_end_and_what_to_do(converged, interrupted, told):
    found = sentence("Mine", 1200, "gap", converged, interrupted=interrupted, advice="do more.")
    assert found == told


def test_answers_are_certified_by_code_that_knows_no_solver():
    (form,) = affine_forms(problem_of())
    decision, slopes = form.constant_order()
    answer = ProductAnswer(form, np.zeros(3), decision, slopes, steps=7)
    with pytest.warns(ConvergenceWarning, match="^Exact ran out of steps after 7 .*: buy more\\.$"):
        solution = assemble(Exact(), [answer], gap_tol=1e-9, advice="buy more.")
    value, gamma = form.worst_value(np.zeros(3), decision)
    assert solution.certificate.upper == value * form.value_unit
    assert solution.certificate.lower == form.lower_bound(slopes) * form.value_unit
    assert solution.converged is False
    assert solution.parameters.intercept == [decision * form.outcome_unit]
    assert solution.multiplier == [gamma * form.value_unit / form.column_unit**2]
    assert solution.n_steps == 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assemble(Exact(), [answer], gap_tol=1e-9, warn=False)


@pytest.mark.parametrize("solver", [PrimalDual(1e-9, 10), DASGD(1e-9, 10), Exact(1e-12, 10)], ids=named)
def test_a_fit_that_runs_out_of_steps_warns_where_it_was_called(solver):
    X, y = pairs()
    model = RobustPolicy(COST, ball=WassersteinBall(0.05), solver=solver)
    with pytest.warns(ConvergenceWarning, match=f"^{named(solver)} ran out of steps") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__


# --- paths of radii -----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS, ids=named)
def test_a_path_is_the_problem_at_each_radius(solver):
    problem = problem_of(products=2)
    path = solver.solve_path(problem, RADII, seed=3)
    assert len(path) == len(RADII)
    for radius, solution in zip(RADII, path, strict=True):
        alone = solver.solve(problem.at_radius(radius), seed=3)
        assert solution.converged
        assert solution.certificate.gap <= solver.gap_tol
        assert solution.certificate.upper >= alone.certificate.lower
        assert solution.certificate.lower <= alone.certificate.upper
        assert solution.status.startswith(f"{named(solver)} converged after ")
    uppers = [solution.certificate.upper for solution in path]
    assert uppers == sorted(uppers, reverse=True)


@pytest.mark.parametrize("solver", [DASGD(gap_tol=0.05), Exact()], ids=named)
def test_without_a_way_to_go_on_a_path_is_solved_radius_by_radius(solver):
    problem = problem_of()
    for radius, solution in zip(RADII, solver.solve_path(problem, RADII, seed=3), strict=True):
        alone = solver.solve(problem.at_radius(radius), seed=3)
        np.testing.assert_array_equal(solution.parameters.theta, alone.parameters.theta)
        assert solution.certificate == alone.certificate


def test_the_primal_dual_method_goes_on_from_the_last_radius():
    problem, radii = problem_of(100), [0.1, 0.1, 0.099]
    first, again, near = PrimalDual().solve_path(problem, radii, seed=3)
    alone = PrimalDual().solve(problem, seed=3)
    np.testing.assert_array_equal(first.parameters.theta, alone.parameters.theta)
    assert first.n_steps == alone.n_steps > 0
    assert again.n_steps == 0  # it is there already
    assert near.n_steps < alone.n_steps
    assert near.history[0].steps == 0


@pytest.mark.parametrize("solver", SOLVERS, ids=named)
def test_paths_of_several_problems_are_their_policies(solver):
    problems = [problem_of(seed=seed) for seed in (0, 5)]
    paths = solver.solve_paths(problems, RADII, seed=3)
    assert [len(path) for path in paths] == [3, 3]
    for problem, path in zip(problems, paths, strict=True):
        for parameters, solution in zip(path, solver.solve_path(problem, RADII, seed=3), strict=True):
            np.testing.assert_array_equal(parameters.theta, solution.parameters.theta)
            np.testing.assert_array_equal(parameters.intercept, solution.parameters.intercept)


@pytest.mark.parametrize("solver", SOLVERS, ids=named)
def test_solving_together_is_solving_one_by_one(solver):
    problems = [problem_of(seed=0), problem_of(seed=5, radius=0.3)]
    together = solver.solve_together(problems, [1, 2])
    for problem, seed, solution in zip(problems, (1, 2), together, strict=True):
        alone = solver.solve(problem, seed)
        np.testing.assert_array_equal(solution.parameters.theta, alone.parameters.theta)
        assert solution.certificate == alone.certificate
        assert solution.n_steps == alone.n_steps
        assert solution.status == alone.status
    with pytest.raises(InvalidInputError, match=r"seeds must be one number or one per problem \(2\)"):
        solver.solve_together(problems, [1])


# --- rehearsals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [PrimalDual(), DASGD()], ids=named)
def test_a_rehearsal_is_close_and_never_warns(solver):
    problems = [problem_of(100, seed=seed, order=order) for seed, order in ((0, 2), (5, 1))]
    rough = solver.roughly(100)
    assert isinstance(rough, type(solver))
    assert rough != solver
    paths = rough.solve_paths(problems, RADII, seed=3)  # warnings are errors here
    for problem, path in zip(problems, paths, strict=True):
        for radius, parameters in zip(RADII, path, strict=True):
            best = Exact().solve(problem.at_radius(radius)).certificate
            (form,) = affine_forms(problem.at_radius(radius))
            policy = form.from_user_units(parameters.theta[:, 0], float(parameters.intercept[0]))
            assert form.worst_value(*policy)[0] * form.value_unit <= 1.05 * best.upper


def test_a_rehearsal_takes_few_steps():
    rough = PrimalDual(gap_tol=1e-9).roughly(100)
    assert (rough.gap_tol, rough.max_steps) == (0.04, 6_000)
    assert PrimalDual().roughly(10).max_steps == 4_000


def test_a_rehearsal_keeps_how_a_step_is_taken():
    rough = DASGD(minibatch=4, inner_steps=2, max_steps=77).roughly(100)
    assert (rough.minibatch, rough.inner_steps, rough.max_steps) == (4, 2, 77)


# --- a solver of one's own ----------------------------------------------------------------------


@dataclass(frozen=True)
class LeastSquares(Solver):
    """Least squares: a solver that knows nothing of the package but what it takes and gives back."""

    ridge: float = 0.0

    def why_not(self, problem):
        return None if isinstance(problem.policy, Linear) else "least squares is linear"

    def solve(self, problem, seed=0):
        rows = problem.nominal
        design = np.column_stack([rows.contexts, np.ones(len(rows.weights))])
        root = np.sqrt(rows.weights)[:, None]
        found = np.linalg.lstsq(root * design, root * rows.outcomes, rcond=None)[0]
        parameters = LinearParameters(theta=found[:-1], intercept=found[-1])
        decisions = problem.policy.decide(parameters, rows.contexts)
        cost = problem.cost.mean(decisions, rows.outcomes, rows.weights)
        return Solution(
            parameters=parameters,
            multiplier=np.zeros(rows.n_products),
            certificate=Certificate(cost, 0.0, np.inf, "estimate", "Nothing is proved."),
            converged=None,
            status="LeastSquares solved the normal equations.",
            n_steps=1,
        )


@register
@dataclass(frozen=True)
class SavableLeastSquares(LeastSquares):
    """The same, which can be saved."""


def pairs(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 3.0 + X @ [1.0, -0.5] + 0.3 * rng.normal(size=n)


def fitted(cost=COST, solver=None, radius=0.1):
    ball = WassersteinBall(radius)
    return RobustPolicy(cost, ball=ball, solver=solver or SavableLeastSquares()).fit(*pairs())


@pytest.fixture(scope="module", params=[COST, Quadratic()], ids=["compiled", "autodiff"])
def model(request):
    return fitted(request.param)


def expected_decisions(X):
    design = np.column_stack([X, np.ones(len(X))])
    known, y = pairs()
    return design @ np.linalg.lstsq(np.column_stack([known, np.ones(60)]), y, rcond=None)[0]


def test_a_solver_of_one_s_own_fits(model):
    X, _ = pairs(seed=1)
    np.testing.assert_allclose(model.predict(X), expected_decisions(X), rtol=1e-9)
    assert model.status_ == "LeastSquares solved the normal equations."
    assert model.converged_ is None
    assert model.n_steps_ == 1
    assert model.certificate_.message == "Nothing is proved."
    assert model.multiplier_ == 0.0
    assert model.history_ == ()


def test_its_policy_is_stressed(model):
    X, y = pairs()
    calm, worst = (model.worst_case(X, y, radius=radius) for radius in (0.0, 0.1))
    assert calm.value == pytest.approx(model.certificate_.upper, rel=1e-9)
    assert worst.value > calm.value
    assert worst.transport_cost.max() <= 0.1**2 * (1 + 1e-6)


def test_it_learns_on(model, tmp_path):
    X, y = pairs(seed=2)
    model.save(tmp_path / "model.surefoot")
    again = load(tmp_path / "model.surefoot")
    before = again.predict(X)
    again.partial_fit(X, y + 2.0)  # everything sells better from now on
    after = again.predict(X)
    assert after.mean() > before.mean() + 0.1
    assert again.n_steps_ == 61
    assert "newest 60 rows" in again.status_
    assert np.isfinite(again.certificate_.upper)


def test_it_is_saved_and_loaded(model, tmp_path):
    X, y = pairs(seed=1)
    model.save(tmp_path / "model.surefoot")
    again = load(tmp_path / "model.surefoot")
    assert again.solver == SavableLeastSquares()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.status_ == model.status_
    assert again.converged_ is None
    assert again.certificate_ == model.certificate_
    assert again.worst_case(X, y).value == pytest.approx(model.worst_case(X, y).value, rel=1e-12)


def test_a_stream_goes_on_from_it(model):
    X, _ = pairs(seed=1)
    stream = OnlinePolicy.from_model(model)
    np.testing.assert_allclose(stream.decide(X), expected_decisions(X), rtol=1e-9)


def test_what_is_not_registered_cannot_be_saved(tmp_path):
    with pytest.raises(ModelFileError, match="^solver must be made of .*LeastSquares"):
        fitted(solver=LeastSquares()).save(tmp_path / "model.surefoot")


def test_it_chooses_a_radius():
    model = fitted(radius="auto")
    path = model.radius_path_
    assert model.radius_ == path.radius == path.radii[0]  # all radii cost the same: the largest
    assert np.ptp(path.mean_costs) == 0.0
    X, _ = pairs(seed=1)
    np.testing.assert_allclose(model.predict(X), expected_decisions(X), rtol=1e-9)


def test_it_solves_many_and_refuses_by_name():
    X, y = pairs()
    problem = Problem(COST, Linear(), Empirical(X, y), WassersteinBall(0.1))
    answers = solve_many([problem, problem.at_radius(0.2)], LeastSquares())
    assert [answer.n_steps for answer in answers] == [1, 1]
    message = "^LeastSquares cannot solve this: least squares is linear.$"
    with pytest.raises(UnsupportedProblemError, match=message):
        solve_many([replace(problem, policy=MLP())], LeastSquares())
    with pytest.raises(UnsupportedProblemError, match=message):
        RobustPolicy(COST, MLP(), ball=problem.ball, solver=LeastSquares()).fit(X, y)


def test_its_paths_and_rehearsals_have_defaults():
    solver, problem = LeastSquares(), problem_of()
    assert solver.roughly(100) is solver
    paths = solver.solve_paths([problem, problem_of(seed=5)], RADII, seed=1)
    assert [len(path) for path in paths] == [3, 3]
    np.testing.assert_array_equal(paths[0][0].theta, solver.solve(problem).parameters.theta)
