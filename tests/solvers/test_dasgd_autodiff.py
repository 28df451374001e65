"""DA-SGD on any policy and cost: against closed forms, and what it says when things go wrong."""

import importlib
import re
import warnings
from dataclasses import replace

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from surefoot import DASGD, Box, Problem, WassersteinBall
from surefoot.certificates import move_distances
from surefoot.costs import CustomCost, MeanCVaR, Newsvendor, Pricing, Quadratic, TieredNewsvendor
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.autodiff_atoms import moved_rows
from surefoot.engines.choice import resume_stream
from surefoot.engines.engine import Options
from surefoot.engines.multiplier_search import judged_rows
from surefoot.engines.step_rules import AdaptiveStep
from surefoot.engines.stream import StreamOptions
from surefoot.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    MissingExtraError,
    UnboundedProblemError,
    UnsupportedProblemError,
)
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import ELU, MLP, Linear, MaxAffine, Sigmoid
from surefoot.problem import general_form
from surefoot.sets import Budget, Simplex
from surefoot.solvers import SGD, Adam, ConvexProgram
from tests.oracles.portfolio import best_portfolio

COST = Newsvendor(1.0, 0.2)
QUICK = DASGD(max_steps=500, gap_tol=10.0)
# One object, so that tests share what is compiled for it.
SQUARE = CustomCost(lambda z, y: jnp.sum((z - y) ** 2))


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


def learned(problem, steps, optimizer=None):
    """What so many steps lead to, judged by nobody: the form and the policy in its units."""
    engine = Autodiff([problem], [0], Options(steps, inner_steps=1, optimizer=optimizer))
    state, failure = engine.update(engine.init(), engine.draw(steps))
    assert failure is None
    return engine.forms[0], engine.split(engine.candidates(state)[0], 0)[0]


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
    best = best_worst_case(radius, moments)
    assert reached <= 1.01 * best
    assert solution.certificate.kind == "exact"
    assert reached * (1 - 1e-9) <= solution.certificate.upper <= 1.01 * reached
    assert 0.99 * best <= solution.certificate.lower <= best * (1 + 1e-6)
    assert "not concave" not in solution.status
    assert solution.converged is True
    assert "certified gap" in solution.status


def test_several_products_under_one_adversary_are_certified():
    X, y = data()
    nominal = Empirical(X, np.column_stack([y, 2.0 - 0.5 * y + X[:, 0]]))
    problem = Problem(Quadratic((1.0, 3.0)), Linear(), nominal, WassersteinBall(0.2, scale=False))
    solution = solve(problem, max_steps=5_000)
    # The joint worst case is (1/g-weighted) the top eigenvalue's: bounded by any dual multiplier.
    theta, t = solution.parameters.theta, solution.parameters.intercept
    residuals = nominal.contexts @ theta + t - nominal.outcomes
    W, A = np.diag([1.0, 3.0]), theta.T

    def dual(gamma):
        inner = W + W @ A @ np.linalg.inv(gamma * np.eye(2) - A.T @ W @ A) @ A.T @ W
        return gamma * 0.04 + np.einsum("ni,ij,nj->n", residuals, inner, residuals).mean()

    top = np.linalg.eigvalsh(A.T @ W @ A).max()
    value = min(dual(g) for g in top * (1.0 + np.geomspace(1e-3, 1e3, 2_000)))
    assert solution.certificate.kind == "bound"
    assert value * (1 - 1e-6) <= solution.certificate.upper <= 1.01 * value
    assert solution.converged is bool(solution.certificate.gap <= 0.01)
    assert 0.9 * value <= solution.certificate.lower <= value


TIERS = TieredNewsvendor(((0, 1.0), (1.0, 2.0)), 0.3)
BOXED = WassersteinBall(0.1, support=Box(-9, 9), scale=False)


@pytest.mark.parametrize(
    ("cost", "ball"),
    [
        # Two lines in a free ball also end at their proof in tests/engines/test_moved_planes.py.
        pytest.param(
            Newsvendor(1.0, 0.2), WassersteinBall(0.1), id="free-two lines", marks=pytest.mark.nightly
        ),
        pytest.param(TIERS, BOXED, id="box-three lines"),
        pytest.param(TIERS, WassersteinBall(0.1), id="free-three lines", marks=pytest.mark.nightly),
        pytest.param(Newsvendor(1.0, 0.2), BOXED, id="box-two lines", marks=pytest.mark.nightly),
    ],
)
def test_a_linear_policy_with_a_piecewise_linear_cost_keeps_its_proof(cost, ball):
    problem = Problem(cost, Linear(), Empirical(*data()), ball)
    solution = solve(problem, max_steps=3_000, optimizer=Adam())
    best = ConvexProgram().solve(problem).certificate.upper
    assert solution.certificate.kind != "estimate"
    assert 0.99 * best <= solution.certificate.lower <= best * (1 + 1e-6)
    assert solution.certificate.upper >= best * (1 - 1e-6)
    assert solution.converged is bool(solution.certificate.gap <= 0.01)
    assert "certified gap" in solution.status


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


def portfolio_returns():
    rng = np.random.default_rng(3)
    return 0.01 * np.array([1.0, 1.3, 2.0]) + rng.normal(size=(80, 3)) * [0.02, 0.03, 0.08]


def test_a_portfolio_reaches_the_optimum_of_its_linear_program():
    returns = portfolio_returns()
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
    assert solution.parameters.auxiliary == pytest.approx(at_risk, abs=0.2 * spread)
    # The dual value of the same program proves it, and the gap counts in the spread of the costs.
    certificate = solution.certificate
    assert solution.converged
    assert certificate.lower == pytest.approx(best, abs=1e-7)
    assert certificate.lower <= best + 1e-8
    assert 0.0 <= certificate.upper - certificate.lower <= 0.01 * max(best, 4.0 * spread)


def test_a_portfolio_that_is_off_is_not_called_converged():
    nominal = Empirical(np.zeros((80, 1)), portfolio_returns())
    problem = Problem(MeanCVaR(2.0, 0.8), Linear(decisions=Simplex()), nominal, WassersteinBall(0.0))
    still = SGD(learning_rate=1e-12)  # which learns nothing
    with pytest.warns(ConvergenceWarning, match="ran out of steps"):
        solution = DASGD(max_steps=500, optimizer=still).solve(problem)
    best = best_portfolio(portfolio_returns(), nominal.weights, np.zeros(80, dtype=int), 2.0, 0.8)
    assert solution.certificate.upper > best + 0.01
    assert solution.certificate.lower == pytest.approx(best, abs=1e-7)
    assert solution.certificate.gap > 0.01
    assert solution.converged is False


@pytest.mark.parametrize(
    ("limits", "told"), [(Box(0, 0.6), {"most": 0.6}), (Budget(total=2.0), {"total": 2.0})]
)
def test_decisions_beyond_their_limits_find_the_way_back(limits, told):
    # Steps lead beyond the limits, where the cost has no slope: shares stayed there, and cost 0.07.
    groups = np.arange(80) % 3
    nominal = Empirical(np.eye(3)[groups][:, :2], portfolio_returns())
    problem = Problem(MeanCVaR(2.0, 0.8), Linear(decisions=limits), nominal, WassersteinBall(0.0))
    solution = solve(problem, max_steps=6_000)
    best = best_portfolio(portfolio_returns(), nominal.weights, groups, 2.0, 0.8, **told)
    assert solution.certificate.lower == pytest.approx(best, abs=1e-6)
    assert solution.certificate.upper <= best + 0.005
    shares = problem.policy.decide(solution.parameters, nominal.contexts)
    assert limits.contains(shares)


def test_nothing_is_claimed_of_a_portfolio_whose_contexts_depend_on_each_other():
    X = np.linspace(-1, 1, 80)[:, None]
    nominal = Empirical(X, portfolio_returns())
    problem = Problem(MeanCVaR(2.0, 0.8), Linear(decisions=Simplex()), nominal, WassersteinBall(0.0))
    solution = solve(problem, gap_tol=10.0)
    assert solution.converged is None
    assert solution.certificate.lower == -np.inf
    assert "nothing is claimed" in solution.status


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
    form, trained = learned(problem, 3_000, Adam(0.03))
    found = form.decisions(trained, x)
    assert np.sqrt(np.mean((found - y) ** 2)) < 0.05 * y.std()


@pytest.mark.parametrize(
    "limits", [Box((0.0, -1.0), (2.5, 0.5)), Budget(3.0), Simplex()], ids=["box", "budget", "simplex"]
)
@pytest.mark.parametrize("policy", [Linear, MLP, MaxAffine, ELU, Sigmoid])
def test_decisions_stay_within_their_limits_whatever_was_learned(policy, limits):
    X, y = data()
    limited = policy(decisions=limits)
    nominal = Empirical(X, np.column_stack([y, -y]))
    form = general_form(Problem(Quadratic(), limited, nominal, WassersteinBall(0.1)))
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
    form, trained = learned(problem, 2_000)
    found = form.decisions(trained, x)
    assert found[x < -0.7].mean() < 8.0
    assert found[x > 0.0].min() > 9.9


# How a run ends


def test_the_answer_depends_on_the_problem_and_the_seed_alone():
    problem = describe(COST, MLP((8,)))
    one, again, other = (QUICK.solve(problem, seed) for seed in (1, 1, 2))
    first, same, another = (solution.parameters.trained for solution in (one, again, other))
    for name, leaf in first.items():
        np.testing.assert_array_equal(same[name], leaf)
    assert np.abs(first["weight0"] - another["weight0"]).max() > 1e-3
    assert one.converged is None  # it settled, and nothing is claimed
    assert one.n_steps == 500
    assert one.status.startswith("DASGD settled after 500 steps (the worst case changed by")
    assert [check.steps for check in one.history] == [250, 500]


def test_a_run_that_has_not_settled_says_so():
    with pytest.warns(
        ConvergenceWarning, match=r"^DASGD ran out of steps after 250 .*: raise max_steps"
    ):
        solution = DASGD(max_steps=250, gap_tol=1e-4, inner_steps=3).solve(describe())
    assert solution.converged is False


def test_no_more_steps_than_asked_for():
    assert solve(describe(), max_steps=10).n_steps == 10
    assert solve(describe(), max_steps=260).n_steps == 260


def test_an_interrupted_run_returns_the_best_so_far():
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.warns(
        ConvergenceWarning, match=r"^DASGD was interrupted after 250 steps: the best policy so far"
    ):
        solution = replace(QUICK, callback=stop).solve(describe(COST, MLP((8,))))
    assert solution.n_steps == 250
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
    share = float(re.search(r"not concave for ([\d.e+-]+) % of the rows", solution.status)[1])
    assert 0.0 < share <= 100.0
    assert solution.certificate.kind == "estimate"


def test_numbers_that_run_away_stop_the_run_at_a_finite_policy():
    problem = describe()
    with pytest.warns(
        ConvergenceWarning,
        match=r"^DASGD stopped after \d+ steps .* at step \d+ the cost or its derivative was",
    ):
        solution = DASGD(max_steps=500, optimizer=SGD(1e3)).solve(problem)
    step = int(re.search(r"at step (\d+)", solution.status)[1])
    assert 1 < step < 100
    assert solution.n_steps == step - 1
    assert solution.converged is False
    # It is no worse than where it started: a constant decision.
    X, y = data()
    decisions = problem.policy.decide(solution.parameters, X)
    assert np.mean((decisions[:, 0] - y) ** 2) <= 1.1 * y.var()
    assert np.isfinite(solution.certificate.upper)
    assert np.isfinite(solution.parameters.theta).all()
    assert np.isfinite(solution.parameters.intercept).all()


@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_a_cost_that_is_never_a_number_is_refused(radius):
    cost = CustomCost(lambda z, y: jnp.sum(z) + jnp.sum(jnp.sqrt(1.5 - y)) * jnp.sum(z))
    with pytest.raises(InvalidInputError, match=r"must (be|have a) finite.* got NaN or infinity"):
        DASGD(max_steps=1).solve(describe(cost, radius=radius))


# Every cost and policy compiles programs of its own: each setting once a push, all of them at night.
@pytest.mark.parametrize(
    ("power", "radius", "policy"),
    [
        pytest.param(1, 0.1, MLP((8,)), id="1-0.1-network"),
        pytest.param(2, 0.0, Linear(), id="2-0.0-linear"),
        pytest.param(1, 0.0, Linear(), id="1-0.0-linear", marks=pytest.mark.nightly),
        pytest.param(1, 0.0, MLP((8,)), id="1-0.0-network", marks=pytest.mark.nightly),
        pytest.param(1, 0.1, Linear(), id="1-0.1-linear", marks=pytest.mark.nightly),
        pytest.param(2, 0.0, MLP((8,)), id="2-0.0-network", marks=pytest.mark.nightly),
        pytest.param(2, 0.1, Linear(), id="2-0.1-linear", marks=pytest.mark.nightly),
        pytest.param(2, 0.1, MLP((8,)), id="2-0.1-network", marks=pytest.mark.nightly),
    ],
)
def test_a_cost_without_a_lower_bound_is_refused(power, radius, policy):
    cost = CustomCost(lambda z, y: jnp.sum(z * y) if power == 1 else -jnp.sum((z - y) ** 2))
    with pytest.raises(
        UnboundedProblemError, match=r"must have a lower bound .*, got -\d.*(sign|limits)"
    ):
        solve(describe(cost, policy, radius))


@pytest.mark.nightly
def test_a_cost_that_pays_but_has_a_bound_is_solved():
    # Minus a profit: below zero, but not without end.
    for cost in (Pricing(2.0, 0.5), CustomCost(lambda z, y: jnp.sum((z - y) ** 2 - 50.0))):
        assert np.isfinite(solve(describe(cost, radius=0.05), max_steps=250).certificate.upper)
    limited = describe(CustomCost(lambda z, y: jnp.sum(z * y)), Linear(decisions=Box(0.0, 9.0)))
    assert np.isfinite(solve(limited, max_steps=250).certificate.upper)


@pytest.mark.parametrize("policy", [Linear(), MLP((8,))], ids=["linear", "network"])
@pytest.mark.parametrize("cost", [COST, Quadratic()], ids=["newsvendor", "quadratic"])
def test_numbers_too_large_to_square_are_refused_by_name(cost, policy):
    with pytest.raises(
        InvalidInputError, match=r"^y must lie within \+-1e\+100, got 5.*e\+200: choose"
    ):
        solve(describe(cost, policy, scale_y=1e200))


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
    cost = SQUARE if power == 2 else CustomCost(lambda z, y: jnp.sum((z - y) ** power))
    message = (
        rf"^The worst case is unbounded: far away the cost grows with the power {power} of a move, "
        rf"faster than the distance of order {order}\. {advice} the ball a support, or bound the "
        r"decisions\.$"
    )
    with pytest.raises(UnboundedProblemError, match=message):
        solve(describe(cost, order=order), max_steps=250)


@pytest.mark.parametrize(
    ("policy", "ball"),
    [
        pytest.param(Linear(), {"order": 1, "support": Box(-9.0, 9.0)}, id="support"),
        pytest.param(Linear(decisions=Box(0.0, 6.0)), {"order": 1}, id="limits"),
        pytest.param(Linear(), {"order": 2}, id="order 2", marks=pytest.mark.nightly),
        pytest.param(Linear(), {"order": 1, "radius": 0.0}, id="nominal", marks=pytest.mark.nightly),
    ],
)
def test_a_cost_that_something_holds_is_solved(policy, ball):
    assert np.isfinite(solve(describe(SQUARE, policy, **ball), max_steps=250).certificate.upper)


def test_a_stream_goes_on_from_the_returned_policy():
    policy = MaxAffine(2)
    problem = describe(policy=policy, radius=0.0)
    solution = solve(problem, max_steps=2_000, optimizer=Adam(0.3, decay=False))
    options = StreamOptions(problem.cost, policy, problem.ball, None, AdaptiveStep(), 0.0, 0)
    stream, (X, _) = resume_stream(options, problem, solution.parameters), data()
    np.testing.assert_array_equal(
        stream.parameters().trained["theta"], solution.parameters.trained["theta"]
    )
    decisions = policy.decide(solution.parameters, X)
    np.testing.assert_allclose(stream.decide(X), decisions.reshape(60, 1), rtol=1e-12)


# Driving the engine: judging, stopping, going on

SIDE = Options(max_steps=500)  # as above: they share compiled code


def weighted(n=60, radius=0.3, seed=0, **ball):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = 3.0 + X @ [1.0, -0.5] + 0.3 * rng.normal(size=n)
    nominal = Empirical(X, y, rng.uniform(0.5, 2.0, size=n))
    return Problem(COST, MLP((8,)), nominal, WassersteinBall(radius, **ball))


def started(problems, seeds=None):
    """An engine after its first 250 steps, and its state."""
    engine = Autodiff(problems, seeds or [0] * len(problems), SIDE)
    state, failure = engine.update(engine.init(), engine.draw(250))
    assert failure is None
    return engine, state


def policy_of(state, number=0):
    return {name: np.asarray(leaf[number]) for name, leaf in state.trained["policy"].items()}


@pytest.fixture(scope="module")
def single():
    return started([weighted()])


@pytest.fixture(scope="module")
def trio():
    """A problem beside one of other rows and radius, and support for its samples."""
    other = weighted(n=45, radius=0.1, seed=1, support=Box(-5, 5), frozen=(1,))
    return started([weighted(), other, weighted(radius=0.05)], [0, 7, 8])


def test_problems_side_by_side_step_as_alone(single, trio):
    (engine, state), (alone, lonely) = trio, single
    for name, leaf in policy_of(lonely).items():
        np.testing.assert_allclose(policy_of(state)[name], leaf, rtol=0, atol=1e-12)
    assert int(lonely.steps[0]) == int(state.steps[0]) == 250
    judged = engine.judge_policies(state, state.trained)
    expected = alone.judge_policies(lonely, lonely.trained)
    assert judged.value[0] == pytest.approx(expected.value[0], rel=1e-12)
    assert judged.multiplier[0] == pytest.approx(expected.multiplier[0], rel=1e-12)


def test_a_judgement_keeps_to_the_ball_and_is_never_below_the_expected_cost(trio):
    engine, state = trio
    judged = engine.judge_policies(state, state.trained, last=True)
    for number, form in enumerate(engine.forms):
        moved, policy = moved_rows(engine.forms[number], judged, number), policy_of(state, number)
        assert len(moved.weights) == len(form.weights)  # nothing of what only fills up
        assert moved.weights.sum() == pytest.approx(1.0)
        distances = move_distances(form, moved.contexts - form.contexts, moved.outcomes - form.outcomes)
        np.testing.assert_array_equal(moved.distances, distances)
        spent = moved.weights @ distances
        assert moved.transport_cost == pytest.approx([spent], rel=1e-12)
        assert 0.5 * form.radius**2 <= spent <= form.radius**2 * (1 + 1e-6)
        costs = [
            moved.weights @ form.costs(policy, np.zeros(0), X, form.outcomes)
            for X in (form.contexts, moved.contexts)
        ]
        value = judged.value[number]
        assert costs[0] < costs[1] <= value + 1e-9
        assert value == pytest.approx(
            costs[1] + judged.multiplier[number] * (form.radius**2 - spent), rel=1e-9
        )
    boxed = moved_rows(engine.forms[1], judged, 1)
    assert np.abs(boxed.contexts).max() <= 5 + 1e-9
    np.testing.assert_array_equal(boxed.contexts[:, 1], engine.forms[1].contexts[:, 1])


def test_the_worst_case_of_a_policy_grows_with_the_radius_and_starts_at_its_expected_cost(single):
    _, state = single
    values = []
    for radius in (0.0, 0.01, 0.1, 0.3, 1.0):
        engine = Autodiff([weighted(radius=radius)], [0], SIDE)
        judged = engine.judge_policies(engine.init(), state.trained, last=True)
        values.append(float(judged.value[0]))
    form = general_form(weighted())
    costs = form.costs(policy_of(state), np.zeros(0), form.contexts, form.outcomes)
    assert values[0] == pytest.approx(form.weights @ costs, rel=1e-12)
    assert (np.diff(values) > 0).all()


@pytest.mark.parametrize("place", [0, 1])
def test_a_problem_in_which_nothing_moves_has_its_expected_cost(single, place):
    problems = [weighted(), weighted(), weighted()]  # as many as above: they share compiled code
    problems[place] = weighted(frozen=(0, 1))
    engine, state = started(problems)
    judged = engine.judge_policies(state, state.trained, last=True)
    still = engine.forms[place]
    costs = still.costs(policy_of(state, place), np.zeros(0), still.contexts, still.outcomes)
    assert judged.value[place] == pytest.approx(still.weights @ costs, rel=1e-9)
    # Its neighbour's multiplier is found as closely as if it were alone.
    alone, lonely = single
    expected = alone.judge_policies(lonely, lonely.trained, last=True)
    assert judged.value[1 - place] == pytest.approx(expected.value[0], rel=1e-9)
    assert judged.multiplier[1 - place] == pytest.approx(expected.multiplier[0], rel=1e-9)


def test_many_rows_are_checked_by_some_of_them():
    engine = Autodiff([weighted(n=300)], [0], SIDE)
    state = engine.init()
    few, whole = (engine.judge_policies(state, state.trained, last=last) for last in (False, True))
    assert (few.weights > 0).sum() == 128
    assert (whole.weights > 0).sum() == 300
    assert few.weights.sum() == pytest.approx(1.0)
    assert few.value[0] == pytest.approx(whole.value[0], rel=0.3)


def test_draws_for_a_check_come_by_weight():
    rng = np.random.default_rng(0)
    weights = np.where(np.arange(4_000) < 40, 1.0, 1e-3)  # forty rows have nine tenths of the mass
    nominal = Empirical(rng.normal(size=(4_000, 2)), rng.normal(size=4_000), weights)
    form = general_form(Problem(COST, MLP((8,)), nominal, WassersteinBall(0.1)))
    contexts, outcomes, drawn = judged_rows(form, 1_000)
    heavy = set(map(tuple, form.contexts[:40]))
    found = [tuple(row) for row in contexts if tuple(row) in heavy]
    assert set(found) == heavy  # a uniform draw of a quarter would miss three in four of them
    assert len(found) / 1_000 == pytest.approx(form.weights[:40].sum(), abs=0.01)
    assert len(outcomes) == len(drawn) == 1_000


@pytest.mark.parametrize("weighted_rows", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_the_certificate_of_many_rows_speaks_of_all_of_them(weighted_rows):
    # A few rows of 3,000 have most of the cost: 1,024 of them drawn at random may have none.
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3_000, 1))
    y = 3.0 + X[:, 0] + 0.1 * rng.normal(size=3_000)
    y[::400] += 300.0
    weights = rng.uniform(0.1, 3.0, size=3_000) if weighted_rows else None
    problem = Problem(COST, MLP((4,)), Empirical(X, y, weights), WassersteinBall(0.05))
    solution = solve(problem, max_steps=500)
    form = general_form(problem)
    costs = form.costs(solution.parameters.trained, np.zeros(0), form.contexts, form.outcomes)
    nominal = form.weights @ costs
    assert solution.certificate.upper >= nominal
    # The ball adds no more than radius times the steepest slope of cost and policy.
    assert solution.certificate.upper <= nominal + 0.3
    assert "all 3,000 rows" in solution.certificate.message
    adversary = Autodiff.adversary(problem, solution.parameters)
    assert adversary.value == pytest.approx(solution.certificate.upper, rel=1e-3)
    assert adversary.transport_cost[0] <= 0.05**2 * (1 + 1e-9)


@pytest.mark.parametrize("order", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_the_atoms_of_the_adversary_attain_its_value_within_the_ball(order):
    problem = weighted(order=order, support=Box(-4, 4))
    solution = solve(problem)
    found = Autodiff.adversary(problem, solution.parameters)
    assert found.transport_cost[0] <= problem.radius**order * (1 + 1e-9)
    assert found.expected_cost == pytest.approx(found.value, rel=2e-3)
    assert found.weights.sum() == pytest.approx(1.0)
    mass = np.bincount(found.rows, found.weights, minlength=60)
    np.testing.assert_allclose(mass, problem.nominal.weights, rtol=1e-9)


def test_the_order_of_rows_does_not_matter():
    problem = weighted()
    nominal, order = problem.nominal, np.random.default_rng(1).permutation(60)
    shuffled = replace(
        problem,
        nominal=Empirical(nominal.contexts[order], nominal.outcomes[order], nominal.weights[order]),
    )
    one, other = (solve(p, max_steps=500).parameters.trained for p in (problem, shuffled))
    for name, leaf in one.items():
        np.testing.assert_allclose(other[name], leaf, rtol=0, atol=1e-8)


def test_a_state_is_all_that_the_next_steps_need(single):
    engine, state = single
    other = Autodiff([weighted()], [9], SIDE)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
    with jax.enable_x64(True):
        restored = jax.tree.unflatten(jax.tree.structure(state), [jnp.asarray(x) for x in leaves])
    rows = engine.forms[0].contexts[None], engine.forms[0].outcomes[None]
    rows = [np.resize(part, (1, 250, part.shape[2])) for part in rows]
    (one, _), (two, _) = engine.learn(state, *rows), other.learn(restored, *rows)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)
    assert int(two.steps[0]) == 500


def test_seeds_decide_start_and_draws(single):
    (_, again), (_, other) = started([weighted()]), started([weighted()], [1])
    learned_so_far = policy_of(single[1])
    for name, leaf in learned_so_far.items():
        np.testing.assert_array_equal(policy_of(again)[name], leaf)
    assert np.abs(policy_of(other)["weight0"] - learned_so_far["weight0"]).max() > 0.01
