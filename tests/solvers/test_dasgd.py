"""DA-SGD against CVXPY, and what it promises: seeds, stops, sentences and reasons."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import QuantileRegressor

from surefoot import DASGD, Box, Exact, Problem, WassersteinBall
from surefoot.certificates import worst_case_value
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    InvalidTypeError,
    UnsupportedProblemError,
)
from surefoot.nominals import Empirical
from surefoot.policies import Linear

GRID = list(
    itertools.product(
        (10, 40), (3, 15, 60), (1, 2), (True, False), (0.01, 0.1, 0.5, 1.0), ("positive", "mixed")
    )
)


def assert_certified(solution, true, tolerance):
    """The true gap is within tolerance, and the certificate neither hides nor exaggerates it."""
    certified = solution.certificate.gap
    assert -1e-5 <= true <= tolerance
    assert certified >= true - 1e-6
    assert certified <= 2 * true + 0.005
    assert solution.converged
    assert solution.status.startswith("Converged")


@pytest.mark.parametrize(("n", "s", "order", "intercept", "share", "coefficients"), GRID)
def test_default_reaches_one_percent(
    make_demand, true_gap, n, s, order, intercept, share, coefficients
):
    problem = make_demand(
        n, s, order=order, intercept=intercept, share=share, coefficients=coefficients
    )
    solution = DASGD().solve(problem, seed=0)
    assert_certified(solution, true_gap(problem, solution.certificate.upper), 0.01)
    assert solution.certificate.kind == "exact"


OPTIONS = {
    "kappa": {"outcome_cost": 2.0},
    "small kappa": {"outcome_cost": 0.3},
    "frozen": {"frozen": (0, 2)},
    "all frozen": {"frozen": (0, 1, 2)},
    "own units": {"scale": False},
    "frozen, kappa, no intercept": {"frozen": (1,), "outcome_cost": 1.0, "intercept": False},
    "box": {"support": Box(-0.1, 1.1)},
    "box, kappa": {"support": Box(0, 1, outcome=(-5, 20)), "outcome_cost": 2.0},
    "box, frozen, no intercept": {"support": Box(0, 1), "frozen": (0,), "intercept": False},
    "open box": {"support": Box(0, math.inf)},
    "open box, kappa": {"support": Box(0, math.inf, outcome=(-5, math.inf)), "outcome_cost": 2.0},
    "open box, no intercept": {"support": Box(0, math.inf), "intercept": False},
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", OPTIONS)
def test_every_geometry_reaches_one_percent(make_demand, true_gap, name, order):
    problem = make_demand(order=order, **OPTIONS[name])
    solution = DASGD(max_steps=1_000_000).solve(problem, seed=0)
    true = true_gap(problem, solution.certificate.upper)
    assert -1e-5 <= true <= 0.01
    assert solution.certificate.gap >= true - 1e-6
    assert solution.converged


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("solver", "columns"),
    [
        (DASGD(memory=False), 3),
        (DASGD(memory=False), 60),
        (DASGD(memory=False, minibatch=8), 3),
        (DASGD(memory=False, minibatch=8), 60),
        (DASGD(memory=False, inner_steps=10), 3),
        (DASGD(memory=False, minibatch=4, inner_steps=3), 3),
    ],
    ids=["fused", "gram", "minibatch", "wide minibatch", "inner steps", "both"],
)
def test_every_way_of_stepping_reaches_one_percent(make_demand, true_gap, order, solver, columns):
    problem = make_demand(40, columns, order=order, share=0.4)
    solution = solver.solve(problem, seed=1)
    true = true_gap(problem, solution.certificate.upper)
    assert -1e-5 <= true <= 0.01
    assert solution.certificate.gap >= true - 1e-6
    assert solution.converged


def test_the_certificate_sees_where_gradient_inner_steps_stop_at_a_local_maximum(make_demand, true_gap):
    # Few rows fit exactly by many columns: residuals sit at the kink, where both sides pull.
    problem = make_demand(40, 60, share=0.4)
    solver = DASGD(memory=False, inner_steps=10, max_steps=60_000)
    with pytest.warns(ConvergenceWarning, match="Ran out of steps"):
        solution = solver.solve(problem, seed=1)
    true = true_gap(problem, solution.certificate.upper)
    assert true > 0.01
    assert solution.certificate.gap >= true


def test_gradient_inner_steps_work_in_a_box(make_demand, true_gap):
    problem = make_demand(support=Box(-0.1, 1.1))
    solution = DASGD(memory=False, inner_steps=10).solve(problem, seed=1)
    assert -1e-5 <= true_gap(problem, solution.certificate.upper) <= 0.01


@pytest.mark.parametrize("order", [1, 2])
def test_smoothed_cost(make_demand, order):
    problem = make_demand(s=2, order=order, smoothing=0.02)
    solution = DASGD().solve(problem, seed=0)
    assert solution.converged
    assert solution.certificate.kind == "bound"
    affine, product = solution.problems[0], solution.products[0]
    # No nearby policy is better by more than the certificate allows.
    start = np.append(product.theta, product.intercept)
    best = minimize(
        lambda p: worst_case_value(affine, p[:-1], p[-1])[0], start, method="Nelder-Mead",
        options={"maxfev": 150, "initial_simplex": start + 0.2 * np.vstack([np.zeros(3), np.eye(3)])},
    )  # fmt: skip
    assert best.fun >= solution.certificate.lower
    assert solution.certificate.upper <= best.fun * 1.01


@pytest.mark.parametrize("b_equals_h", [False, True])
def test_a_smoothed_cost_whose_first_slope_is_zero(b_equals_h):
    # The start lies on a row's outcome; with b = h the smoothed slope there is exactly zero.
    data = synthetic(7, 2, seed=0, test=1)
    cost = Newsvendor(1.0, 1.0 if b_equals_h else 0.5, smoothing=0.001)
    problem = Problem(cost, Linear(), Empirical(data.X, data.y), WassersteinBall(0.1))
    for seed in range(12):
        assert DASGD(gap_tol=0.05).solve(problem, seed=seed).converged


# --- seeds, weights, products -------------------------------------------------------------------


def bits(solution):
    parameters = solution.parameters
    return parameters.theta.tobytes() + parameters.intercept.tobytes() + solution.multiplier.tobytes()


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        (DASGD(), {}),
        (DASGD(memory=False), {}),
        (DASGD(memory=False), {"n": 10, "s": 60}),
        (DASGD(), {"support": Box(0, 1)}),
    ],
    ids=["memory", "fused", "gram", "box"],
)
def test_the_seed_decides_every_bit_on_any_thread(make_demand, solver, options):
    problem = make_demand(**options)
    state = np.random.get_state()  # noqa: NPY002 - the point is that nobody touches it
    alone = bits(solver.solve(problem, seed=3))
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: bits(solver.solve(problem, seed=seed)), [3, 4, 3, 3]))
    assert together[0] == together[2] == together[3] == alone
    assert together[1] != alone
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(state, after, strict=True))


@pytest.mark.parametrize("solver", [DASGD(), DASGD(memory=False), Exact()], ids=repr)
def test_weights_are_repetitions_to_the_last_bit(solver):
    data = synthetic(12, 3, seed=5, test=1)
    counts = np.array([3, 1, 2, 2, 1, 1, 5, 1, 1, 1, 2, 7])
    rng = np.random.default_rng(0)
    order = rng.permutation(counts.sum())
    nominals = (
        Empirical(data.X, data.y, counts),
        Empirical(np.repeat(data.X, counts, axis=0)[order], np.repeat(data.y, counts)[order]),
    )
    weighted, repeated = (
        solver.solve(Problem(Newsvendor(1.0, 0.2), Linear(), nominal, WassersteinBall(0.1)), seed=2)
        for nominal in nominals
    )
    assert bits(weighted) == bits(repeated)
    assert weighted.certificate == repeated.certificate
    unweighted = Problem(
        Newsvendor(1.0, 0.2), Linear(), Empirical(data.X, data.y), WassersteinBall(0.1)
    )
    assert bits(solver.solve(unweighted, seed=2)) != bits(weighted)


def test_weighted_rows_reach_one_percent(true_gap):
    data = synthetic(30, 4, seed=6, test=1)
    weights = np.random.default_rng(0).uniform(0.1, 3.0, size=30)
    nominal = Empirical(data.X, data.y, weights)
    problem = Problem(Newsvendor(1.0, 0.2), Linear(), nominal, WassersteinBall(0.1))
    for solver in (DASGD(), DASGD(memory=False)):
        solution = solver.solve(problem, seed=0)
        assert -1e-5 <= true_gap(problem, solution.certificate.upper) <= 0.01


@pytest.mark.parametrize("solver", [DASGD(), Exact()], ids=repr)
def test_products_are_solved_as_if_each_were_alone(solver):
    data, other = synthetic(30, 4, seed=7, test=1), synthetic(30, 4, seed=8, test=1)
    outcomes = np.column_stack([data.y, other.y])

    def solve(cost, y):
        problem = Problem(cost, Linear(), Empirical(data.X, y), WassersteinBall(0.05))
        return solver.solve(problem, seed=0)

    together = solve(Newsvendor((1.0, 2.0), (0.2, 0.7)), outcomes)
    alone = [solve(Newsvendor(1.0, 0.2), data.y), solve(Newsvendor(2.0, 0.7), other.y)]
    tolerance = 1.01 * solver.gap_tol
    assert together.certificate.upper == pytest.approx(
        sum(s.certificate.upper for s in alone), rel=tolerance
    )
    assert together.certificate.lower == pytest.approx(
        sum(s.certificate.lower for s in alone), rel=tolerance
    )
    assert together.parameters.theta.shape == (4, 2)
    assert together.multiplier.shape == (2,)
    assert together.n_steps == sum(product.steps for product in together.products)
    # The first product has the same rows in the same order and the same stream.
    np.testing.assert_array_equal(together.parameters.theta[:, 0], alone[0].parameters.theta[:, 0])


# --- ends of the range of radii -----------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("solver", "tolerance"), [(DASGD(), 0.01), (Exact(), 1e-3)], ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_radius_zero_is_quantile_regression(make_demand, order, solver, tolerance, intercept):
    problem = make_demand(order=order, share=0.0, intercept=intercept)
    nominal = problem.nominal
    fit = QuantileRegressor(quantile=1.0 / 1.2, alpha=0.0, solver="highs", fit_intercept=intercept).fit(
        nominal.contexts, nominal.outcomes[:, 0]
    )
    r = fit.predict(nominal.contexts) - nominal.outcomes[:, 0]
    best = np.mean(np.maximum(0.2 * r, -r))
    solution = solver.solve(problem, seed=0)
    assert best * (1 - 1e-9) <= solution.certificate.upper <= best * (1 + tolerance)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("share", [1.0, 1.5, 40.0])
@pytest.mark.parametrize("solver", [DASGD(), DASGD(memory=False), Exact()], ids=repr)
def test_from_the_collapse_radius_on_the_policy_is_the_constant_order(
    make_demand, order, share, solver
):
    problem = make_demand(20, 6, order=order, share=share)
    solution = solver.solve(problem, seed=0)
    y = np.sort(problem.nominal.outcomes[:, 0])
    assert not solution.parameters.theta.any()
    assert solution.parameters.intercept[0] == y[math.ceil(20 / 1.2) - 1]
    assert solution.certificate.gap < 1e-6


# --- stops and sentences ------------------------------------------------------------------------


def test_running_out_of_steps_is_said_and_warned_of(make_demand):
    problem = make_demand()
    with pytest.warns(ConvergenceWarning, match="Ran out of steps after 100 "):
        solution = DASGD(max_steps=100, gap_tol=1e-6).solve(problem)
    assert not solution.converged
    assert solution.n_steps == 100
    assert solution.products[0].stopped == "steps"
    assert "raise max_steps or loosen gap_tol" in solution.status
    assert solution.certificate.gap > 1e-6
    assert np.isfinite(solution.certificate.upper)


@pytest.mark.parametrize("solver", [DASGD, Exact])
def test_an_interrupt_returns_the_best_so_far(make_demand, solver):
    problem, seen = make_demand(n=40, s=15, share=0.05), []

    def callback(progress):
        seen.append(progress)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="Interrupted after"):
        solution = solver(gap_tol=1e-9, callback=callback).solve(problem)
    assert solution.status.startswith("Interrupted after")
    assert "best policy so far" in solution.status
    assert not solution.converged
    assert solution.certificate.upper == pytest.approx(seen[-1].upper, rel=1e-12)
    assert solution.certificate.lower == pytest.approx(seen[-1].lower, rel=1e-12)
    assert solution.n_steps == seen[-1].steps > 0


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        (DASGD, {}),
        (lambda **k: DASGD(memory=False, max_steps=60_000, **k), {}),
        (lambda **k: DASGD(max_steps=60_000, **k), {"support": Box(0, 1)}),
        (Exact, {"s": 15}),
    ],
    ids=["memory", "plain", "box", "exact"],
)
@pytest.mark.filterwarnings("ignore::surefoot.exceptions.ConvergenceWarning")
def test_bounds_only_ever_improve(make_demand, solver, options):
    checks = []
    problem = make_demand(**{"share": 0.1, **options})
    solution = solver(gap_tol=1e-4, callback=checks.append).solve(problem)
    assert len(checks) >= 3
    uppers, lowers, steps = (
        np.array([getattr(check, name) for check in checks]) for name in ("upper", "lower", "steps")
    )
    assert (np.diff(uppers) <= 0).all()
    assert (np.diff(lowers) >= 0).all()
    assert (np.diff(steps) > 0).all()
    assert steps[0] == 0
    assert (lowers <= uppers).all()
    gaps = [check.gap for check in checks]
    np.testing.assert_allclose(gaps, (uppers - lowers) / np.maximum(lowers, gaps_floor(solution)))
    assert solution.products[0].history == tuple(checks)
    assert solution.certificate.upper == pytest.approx(uppers[-1], rel=1e-12)


def gaps_floor(solution):
    affine = solution.problems[0]
    decision, _ = affine.constant_order()
    return 0.01 * float(affine.weights @ affine.pieces.evaluate(decision - affine.outcomes))


def test_a_tighter_tolerance_gives_a_smaller_gap(make_demand):
    problem = make_demand(n=40, s=15, share=0.1)
    loose, tight = (DASGD(gap_tol=tol).solve(problem) for tol in (0.1, 1e-5))
    assert loose.certificate.gap <= 0.1
    assert tight.certificate.gap <= 1e-5
    assert tight.n_steps > loose.n_steps


# --- reasons and options ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "options", "reason"),
    [
        (DASGD(minibatch=2), {}, "need memory=False"),
        (DASGD(inner_steps=2), {}, "need memory=False"),
        (DASGD(memory=False, inner_steps=2), {"outcome_cost": 1.0}, "set outcome_cost=inf"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(make_demand, solver, options, reason):
    problem = make_demand(**options)
    assert reason in solver.why_not(problem)
    with pytest.raises(UnsupportedProblemError, match=f"DASGD cannot solve this: .*{reason}"):
        solver.solve(problem)
    assert DASGD().why_not(problem) is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"gap_tol": 0.0}, InvalidInputError, "gap_tol must be > 0, got 0.0"),
        ({"gap_tol": math.nan}, InvalidInputError, "gap_tol must be > 0, got nan"),
        ({"gap_tol": "1%"}, InvalidTypeError, "gap_tol must be a number"),
        ({"max_steps": 0}, InvalidInputError, "max_steps must be >= 1, got 0"),
        ({"max_steps": 1e6}, InvalidTypeError, "max_steps must be a whole number"),
        ({"memory": 1}, InvalidTypeError, "memory must be True or False"),
        ({"minibatch": 0}, InvalidInputError, "minibatch must be >= 1, got 0"),
        ({"inner_steps": -1}, InvalidInputError, "inner_steps must be >= 0, got -1"),
    ],
)
def test_options_are_checked_by_name(options, error, message):
    with pytest.raises(error, match=message):
        DASGD(**options)
    with pytest.raises(TypeError, match="step"):
        DASGD(step=3)


@pytest.mark.parametrize(
    "solver", [DASGD(), DASGD.literal(alpha=1, beta=1, eta=1, K=1, epsilon=0, steps=1)]
)
def test_seeds_are_checked_by_name(make_problem, solver):
    with pytest.raises(InvalidInputError, match="^seed must be >= 0, got -1.$"):
        solver.solve(make_problem(), seed=-1)
