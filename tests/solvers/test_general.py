"""DA-SGD on any policy and cost: against closed forms, and what it says when things go wrong."""

import importlib
import re
import warnings
from dataclasses import replace

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from surefoot import DASGD, Box, Problem, WassersteinBall
from surefoot.costs import CustomCost, MeanCVaR, Newsvendor, Quadratic
from surefoot.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    MissingExtraError,
    UnboundedProblemError,
    UnsupportedProblemError,
)
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import ELU, MLP, Linear, MaxAffine, Sigmoid
from surefoot.problem import general_problem
from surefoot.sets import Budget, Simplex
from surefoot.solvers import SGD, Adam
from surefoot.solvers.general_run import GeneralRun, GeneralSettings

COST = Newsvendor(1.0, 0.2)
QUICK = DASGD(max_steps=500, gap_tol=10.0)


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, 3.0 + X @ [1.0, -0.5] + 0.5 * rng.normal(size=60)


def describe(cost=None, policy=None, radius=0.1, *, scale_y=1.0, **ball):
    X, y = data()
    nominal = Empirical(X, scale_y * y)
    return Problem(cost or Quadratic(), policy or Linear(), nominal, WassersteinBall(radius, **ball))


def solve(problem, seed=0, **options):
    """Solve, whether or not it has settled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DASGD(**{"max_steps": 500, **options}).solve(problem, seed)


# Closed forms


def worst_case(theta, t, radius, moments):
    """(sqrt(E r^2) + radius ||theta||)^2: quadratic cost, order 2, only contexts move."""
    mean, covariance = moments
    weights = np.append(theta, -1.0)
    square = weights @ covariance @ weights + (weights @ mean + t) ** 2
    return (np.sqrt(square) + radius * np.linalg.norm(theta)) ** 2


def best_worst_case(radius, moments):
    columns = len(moments[0]) - 1

    def objective(v):
        return worst_case(v[:-1], v[-1], radius, moments)

    return minimize(objective, np.full(columns + 1, 0.3), options={"gtol": 1e-9}).fun


def test_a_gaussian_nominal_with_quadratic_cost_has_a_closed_form():
    mean = np.array([0.5, -1.0, 4.0])
    covariance = np.array([[1.0, 0.3, 0.8], [0.3, 2.0, -0.5], [0.8, -0.5, 2.0]])
    problem = Problem(
        Quadratic(), Linear(), Gaussian(mean, covariance), WassersteinBall(0.4, scale=False)
    )
    solution = solve(problem, max_steps=8_000)
    found = solution.parameters
    reached = worst_case(found.theta[:, 0], found.intercept[0], 0.4, (mean, covariance))
    best = best_worst_case(0.4, (mean, covariance))
    assert best * (1 - 1e-9) <= reached <= 1.01 * best
    # Nominals without rows are judged on a sample.
    assert solution.certificate.kind == "estimate"
    assert solution.certificate.upper == pytest.approx(reached, rel=0.1)
    # Without robustness the answer is another one.
    theta = np.linalg.solve(covariance[:2, :2], covariance[:2, 2])
    assert worst_case(theta, mean[2] - theta @ mean[:2], 0.4, (mean, covariance)) > 1.02 * best


@pytest.fixture(scope="module")
def path():
    """Solutions of the quadratic problem at growing radii."""
    return {radius: solve(describe(radius=radius), max_steps=3_000) for radius in (0.0, 0.1, 0.4)}


def moments_of(X, y):
    scaled = np.column_stack([X / X.std(axis=0), y])
    return scaled.mean(axis=0), np.cov(scaled.T, ddof=0)


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.4])
def test_empirical_problems_reach_the_closed_form_and_prove_a_bound(path, radius):
    solution, (X, y) = path[radius], data()
    moments = moments_of(X, y)
    theta = solution.parameters.theta[:, 0] * X.std(axis=0)
    reached = worst_case(theta, solution.parameters.intercept[0], radius, moments)
    assert reached <= 1.01 * best_worst_case(radius, moments)
    assert solution.certificate.kind == "bound"
    assert reached * (1 - 1e-9) <= solution.certificate.upper <= 1.01 * reached
    assert solution.certificate.lower == 0.0
    assert solution.non_concave == 0.0
    assert "not concave" not in solution.status


def test_the_worst_case_grows_with_the_radius(path):
    values = [solution.certificate.upper for solution in path.values()]
    assert values == sorted(values)
    assert values[0] < values[1] < values[2]


def test_radius_zero_is_the_nominal_problem(path):
    X, y = data()
    design = np.column_stack([X, np.ones(len(y))])
    best = np.linalg.lstsq(design, y, rcond=None)[0]
    assert path[0.0].certificate.upper == pytest.approx(((design @ best - y) ** 2).mean(), rel=0.01)
    assert path[0.0].multiplier.tolist() == [0.0]


def test_scaling_outcomes_scales_the_answer(path):
    # Ten times the outcomes, ten times the parameters: each step is the same in its own units.
    other = solve(describe(radius=0.1, scale_y=10.0), max_steps=3_000)
    np.testing.assert_allclose(other.parameters.theta, 10 * path[0.1].parameters.theta, rtol=1e-6)
    np.testing.assert_allclose(
        other.parameters.intercept, 10 * path[0.1].parameters.intercept, rtol=1e-6
    )
    assert other.certificate.upper == pytest.approx(100 * path[0.1].certificate.upper, rel=1e-6)


def test_a_portfolio_reaches_the_optimum_of_its_linear_program():
    rng = np.random.default_rng(3)
    returns = 0.01 * np.array([1.0, 1.3, 2.0]) + rng.normal(size=(80, 3)) * [0.02, 0.03, 0.08]
    cost = MeanCVaR(risk_aversion=2.0, level=0.8)
    nominal = Empirical(np.zeros((80, 1)), returns)  # contexts that say nothing
    problem = Problem(cost, Linear(decisions=Simplex()), nominal, WassersteinBall(0.0))
    solution = solve(problem, max_steps=8_000)
    shares = problem.policy.decide(solution.parameters, nominal.contexts)
    assert Simplex().contains(shares)
    z, a = cp.Variable(3, nonneg=True), cp.Variable()
    loss = -returns @ z
    objective = cp.sum(loss) / 80 + 2.0 * (a + cp.sum(cp.pos(loss - a)) / 80 / 0.2)
    best = cp.Problem(cp.Minimize(objective), [cp.sum(z) == 1]).solve(solver=cp.CLARABEL)
    found = cost.mean(shares, returns, nominal.weights)
    spread = float((returns @ z.value).std())
    assert best - 1e-9 <= found <= best + 0.02 * spread
    assert solution.certificate.upper == pytest.approx(found, abs=0.05 * spread)
    at_risk = cost.best_auxiliary(shares, returns, nominal.weights)
    assert solution.auxiliary == pytest.approx(at_risk, abs=0.2 * spread)


# Policies, end to end


@pytest.mark.parametrize(
    ("policy", "function"),
    [
        (MaxAffine(pieces=2), lambda x: np.abs(x - 0.2)),
        (Sigmoid(0.0, 10.0), lambda x: 10.0 / (1.0 + np.exp(-2.0 * x - 0.5))),
        (ELU(), lambda x: np.where(2 * x - 0.5 > 0, 2 * x - 0.5, np.expm1(2 * x - 0.5))),
        (MLP((8,), activation="tanh"), lambda x: np.tanh(2.0 * x) + 0.5 * np.tanh(x - 1.0)),
    ],
    ids=["max affine", "sigmoid", "elu", "mlp"],
)
def test_policies_learn_functions_of_their_own_kind(policy, function):
    x = np.linspace(-2, 2, 80)[:, None]
    y = function(x)
    problem = Problem(Quadratic(), policy, Empirical(x, y), WassersteinBall(0.0))
    run = GeneralRun([general_problem(problem)], GeneralSettings(3_000, 1, 1, Adam(0.03)), [0])
    for _ in range(12):
        run.advance()
    found = run.problems[0].decisions(run.policy_of(0)["policy"], x)
    assert np.sqrt(np.mean((found - y) ** 2)) < 0.05 * y.std()


@pytest.mark.parametrize(
    "limits", [Box((0.0, -1.0), (2.5, 0.5)), Budget(3.0), Simplex()], ids=["box", "budget", "simplex"]
)
@pytest.mark.parametrize("policy", [Linear, MLP, MaxAffine, ELU, Sigmoid])
def test_decisions_stay_within_their_limits_whatever_was_learned(policy, limits):
    X, y = data()
    limited = policy(decisions=limits)
    nominal = Empirical(X, np.column_stack([y, -y]))
    form = general_problem(Problem(Quadratic(), limited, nominal, WassersteinBall(0.1)))
    rng = np.random.default_rng(0)
    for size in (0.0, 1.0, 1e3):
        trained = {
            name: leaf + size * rng.normal(size=leaf.shape)
            for name, leaf in limited.initial(rng, 2, 2).items()
        }
        for contexts in (X, 1e3 * X, np.zeros((1, 2))):
            assert limits.contains(form.decisions(trained, contexts))


def test_a_start_beyond_the_limits_still_learns():
    # The typical decision, 15, is cut to ten in every row, where nothing has a derivative.
    x = np.linspace(-1, 1, 80)[:, None]
    y = np.where(x > -0.5, 15.0 + 3.0 * x, 4.0 + x)
    policy = MLP((8,), decisions=Box(0, 10))
    problem = Problem(Newsvendor(1.0, 0.2), policy, Empirical(x, y), WassersteinBall(0.0))
    run = GeneralRun([general_problem(problem)], GeneralSettings(2_000, 1, 1), [0])
    for _ in range(8):
        run.advance()
    found = run.problems[0].decisions(run.policy_of(0)["policy"], x)
    assert found[x < -0.7].mean() < 8.0
    assert found[x > 0.0].min() > 9.9


# How a run ends


def test_the_answer_depends_on_the_problem_and_the_seed_alone():
    problem = describe(COST, MLP((8,)))
    one, again, other = (QUICK.solve(problem, seed) for seed in (1, 1, 2))
    for name, leaf in one.trained.items():
        np.testing.assert_array_equal(again.trained[name], leaf)
    assert np.abs(one.trained["weight0"] - other.trained["weight0"]).max() > 1e-3
    assert one.converged
    assert one.n_steps == 500
    assert one.status.startswith("Settled after 500 steps (the worst case changed by")
    assert [check.steps for check in one.history] == [250, 500]


def test_a_run_that_has_not_settled_says_so():
    with pytest.warns(
        ConvergenceWarning, match=r"^Ran out of steps after 250 steps .*: raise max_steps"
    ):
        solution = DASGD(max_steps=250).solve(describe(COST, MLP((8,))))
    assert not solution.converged


def test_no_more_steps_than_asked_for():
    assert solve(describe(), max_steps=10).n_steps == 10
    assert solve(describe(), max_steps=260).n_steps == 260


def test_an_interrupted_run_returns_the_best_so_far():
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.warns(
        ConvergenceWarning, match=r"^Interrupted after 1,000 steps: the best policy so far"
    ):
        solution = DASGD(max_steps=2_000, callback=stop).solve(describe(COST, MLP((8,))))
    assert solution.n_steps == 1_000
    assert np.isfinite(solution.certificate.upper)


def test_callbacks_see_every_check():
    seen = []
    replace(QUICK, callback=seen.append).solve(describe(COST, MLP((8,))))
    assert [p.steps for p in seen] == [250, 500]
    assert seen[0].gap == np.inf
    assert seen[1].gap == pytest.approx(abs(seen[1].upper - seen[0].upper) / seen[1].upper)


def test_rows_with_several_maximisers_show_in_the_status():
    problem = describe(COST, MLP((8,)), radius=0.5)
    solution = QUICK.solve(problem)
    assert solution.non_concave > 0.0
    assert f"not concave for {100 * solution.non_concave:.2g} % of the rows" in solution.status
    assert solution.certificate.kind == "estimate"


def test_numbers_that_run_away_stop_the_run_at_a_finite_policy():
    problem = describe()
    with pytest.warns(
        ConvergenceWarning, match=r"^Stopped at step \d+: the cost or its derivative was"
    ):
        solution = DASGD(max_steps=500, optimizer=SGD(1e3)).solve(problem)
    step = int(re.search(r"step (\d+)", solution.status)[1])
    assert 1 < step < 100
    assert solution.n_steps == step - 1
    assert not solution.converged
    # It is no worse than where it started: a constant decision.
    X, y = data()
    decisions = problem.policy.decide(solution.parameters, X)
    assert np.mean((decisions[:, 0] - y) ** 2) <= 1.1 * y.var()
    assert np.isfinite(solution.certificate.upper)
    assert all(np.isfinite(leaf).all() for leaf in solution.leaves)


@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_a_cost_that_is_never_a_number_is_refused(radius):
    cost = CustomCost(lambda z, y: jnp.sum(z) + jnp.sum(jnp.sqrt(1.5 - y)) * jnp.sum(z))
    with pytest.raises(InvalidInputError, match=r"must (be|have a) finite.* got NaN or infinity"):
        DASGD(max_steps=1).solve(describe(cost, radius=radius))


# What is refused before any work


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (lambda: describe(order=1), "the worst case is unbounded: Quadratic grows faster than"),
        (lambda: describe(MeanCVaR()), "MeanCVaR needs limits on its decisions"),
    ],
)
def test_problems_without_an_answer_are_refused(problem, reason):
    assert DASGD().why_not(problem()).startswith(reason)
    with pytest.raises(UnsupportedProblemError, match=f"DASGD cannot solve this: {reason}"):
        DASGD().solve(problem())


def test_a_support_or_limits_make_order_one_bounded():
    assert DASGD().why_not(describe(order=1, support=Box(-5, 5))) is None
    assert DASGD().why_not(describe(policy=Linear(decisions=Box(0, 9)), order=1)) is None
    assert DASGD().why_not(describe(radius=0.0, order=1)) is None


def test_without_jax_the_command_that_installs_it_is_named(monkeypatch):
    known = importlib.import_module

    def missing(name, *rest):
        if name == "jax":
            raise ImportError("No module named 'jax'")
        return known(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    message = (
        'A policy or cost beyond Linear and Newsvendor needs JAX: run pip install "surefoot[jax]".'
    )
    with pytest.raises(MissingExtraError, match=f"^{re.escape(message)}$"):
        DASGD().solve(describe(COST, MLP((8,))))
    assert DASGD().solve(describe(Newsvendor(1.0, 0.2))).converged  # which needs none


@pytest.mark.parametrize(
    ("power", "order", "advice"),
    [(2, 1, "Use order=2, give"), (4, 2, "Give")],
)
def test_a_cost_that_outgrows_the_distance_is_refused(power, order, advice):
    cost = CustomCost(lambda z, y: jnp.sum((z - y) ** power))
    message = (
        rf"^The worst case is unbounded: far away the cost grows with the power {power} of a move, "
        rf"faster than the distance of order {order}\. {advice} the ball a support, or bound the "
        r"decisions\.$"
    )
    with pytest.raises(UnboundedProblemError, match=message):
        solve(describe(cost, order=order), max_steps=250)


def test_a_cost_that_the_support_or_limits_hold_is_solved():
    cost = CustomCost(lambda z, y: jnp.sum((z - y) ** 2))
    for problem in (
        describe(cost, order=1, support=Box(-9.0, 9.0)),
        describe(cost, Linear(decisions=Box(0.0, 6.0)), order=1),
        describe(cost, order=2),
        describe(cost, order=1, radius=0.0),
    ):
        assert np.isfinite(solve(problem, max_steps=250).certificate.upper)


def test_a_stream_goes_on_from_the_returned_policy():
    problem = describe(policy=MaxAffine(2), radius=0.0)
    solution = solve(problem, max_steps=2_000, optimizer=Adam(0.3, decay=False))
    leaves = [leaf for leaf in solution.leaves if leaf.shape == solution.trained["theta"].shape]
    assert any(np.array_equal(leaf, solution.trained["theta"]) for leaf in leaves)
