"""DA-SGD against CVXPY, and what it promises: seeds, stops, sentences and reasons."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import QuantileRegressor

from surefoot import DASGD, Box, ConvexProgram, Exact, PrimalDual, Problem, WassersteinBall
from surefoot.costs import ConvexPiecewiseCost, Newsvendor, Pieces
from surefoot.datasets import synthetic
from surefoot.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    InvalidTypeError,
    UnsupportedProblemError,
)
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms
from surefoot.random import rng_for
from surefoot.solvers import CuttingPlanes, default_solver
from tests.global_randomness import left_alone

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
    assert solution.status.startswith("DASGD converged after ")


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("solver", "columns"),
    [
        (DASGD(), 3),
        (DASGD(), 60),
        (DASGD(minibatch=8), 3),
        (DASGD(minibatch=8), 60),
        (DASGD(inner_steps=10), 3),
        (DASGD(minibatch=4, inner_steps=3), 3),
    ],
    ids=["fused", "rotated", "minibatch", "wide minibatch", "inner steps", "both"],
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
    solver = DASGD(inner_steps=10, max_steps=60_000)
    with pytest.warns(ConvergenceWarning, match="^DASGD ran out of steps"):
        solution = solver.solve(problem, seed=1)
    true = true_gap(problem, solution.certificate.upper)
    assert true > 0.01
    assert solution.certificate.gap >= true


def test_gradient_inner_steps_work_in_a_box(make_demand, true_gap):
    problem = make_demand(support=Box(-0.1, 1.1))
    solution = DASGD(inner_steps=10).solve(problem, seed=1)
    assert -1e-5 <= true_gap(problem, solution.certificate.upper) <= 0.01


@pytest.mark.parametrize("order", [1, 2])
def test_smoothed_cost(make_demand, in_form, order):
    problem = make_demand(s=2, order=order, smoothing=0.02)
    solution = DASGD().solve(problem, seed=0)
    assert solution.converged
    assert solution.certificate.kind == "bound"
    form, theta, intercept = in_form(problem, solution)
    # No nearby policy is better by more than the certificate allows.
    start = np.append(theta, intercept)
    best = minimize(
        lambda p: form.worst_value(p[:-1], p[-1])[0], start, method="Nelder-Mead",
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


# --- costs of more than two lines ---------------------------------------------------------------


@dataclass(frozen=True)
class Tiered(ConvexPiecewiseCost):
    """A shortage costs more beyond some amount; overage costs a little, and much from some on."""

    beyond: float
    tiers: int = 3

    def pieces(self, n_products):
        slopes, intercepts = (-3.0, -1.0, 0.5), (-2.0 * self.beyond, 0.0, 0.0)
        if self.tiers == 4:
            slopes, intercepts = (*slopes, 2.0), (*intercepts, -1.5 * self.beyond)
        return (Pieces(slopes, intercepts),) * n_products


def tiered(tiers=3, *, radius=0.03, intercept=True, **ball):
    data = synthetic(40, 3, seed=43, test=1)
    cost = Tiered(0.5 * float(data.y.std()), tiers)
    nominal = Empirical(data.X, data.y)
    return Problem(cost, Linear(intercept=intercept), nominal, WassersteinBall(radius, **ball))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {}, {"tiers": 4}, {"radius": 0.0}, {"intercept": False}, {"outcome_cost": 2.0},
        {"frozen": (0, 2), "tiers": 4}, {"scale": False, "radius": 0.005},
        {"support": Box(0, 1, outcome=(-5, 20)), "outcome_cost": 2.0},
    ],
    ids=str,
)  # fmt: skip
def test_costs_of_several_lines_are_certified(order, options):
    problem = tiered(order=order, **options)
    best, solution = ConvexProgram().solve(problem), DASGD(max_steps=1_000_000).solve(problem, seed=0)
    assert best.certificate.gap < 1e-4
    true = solution.certificate.upper / best.certificate.upper - 1.0
    assert -1e-5 <= true <= 0.01
    assert solution.certificate.gap >= true - 1e-6
    assert solution.certificate.lower <= best.certificate.upper * (1 + 1e-6)
    assert solution.converged
    loose = "support" in options  # three lines in a box: the best of two adversaries, not the best
    assert solution.certificate.kind == ("bound" if loose else "exact")
    assert solution.n_steps > 0  # the best constant would not do


def test_a_third_line_matters(in_form):
    problem = tiered()
    two = replace(problem, cost=Newsvendor(1.0, 0.5))  # the same without what lies beyond
    naive, found = DASGD().solve(two, seed=0), DASGD().solve(problem, seed=0)
    form, theta, intercept = in_form(problem, naive)
    assert form.worst_value(theta, intercept)[0] > 1.05 * found.certificate.upper


def test_other_solvers_of_several_lines():
    problem = tiered()
    assert PrimalDual().why_not(problem) == "it needs a cost of two lines that meet at zero"
    assert default_solver(problem) == CuttingPlanes()
    exact = Exact().solve(problem)  # hands it to the convex program
    assert exact.certificate.gap < 1e-6
    assert exact.status.startswith("ConvexProgram converged after ")


# --- seeds, weights, products -------------------------------------------------------------------


def bits(solution):
    parameters = solution.parameters
    return parameters.theta.tobytes() + parameters.intercept.tobytes() + solution.multiplier.tobytes()


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        (PrimalDual(), {}),
        (DASGD(), {}),
        (DASGD(), {"n": 10, "s": 60}),
        (DASGD(), {"support": Box(0, 1)}),
    ],
    ids=["primal-dual", "fused", "rotated", "box"],
)
def test_the_seed_decides_every_bit_on_any_thread(make_demand, solver, options):
    problem = make_demand(**options)
    with left_alone(), ThreadPoolExecutor(4) as pool:
        alone = bits(solver.solve(problem, seed=3))
        together = list(pool.map(lambda seed: bits(solver.solve(problem, seed=seed)), [3, 4, 3, 3]))
    assert together[0] == together[2] == together[3] == alone
    assert together[1] != alone


@pytest.mark.parametrize("solver", [PrimalDual(), DASGD(), Exact()], ids=repr)
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
    for solver in (PrimalDual(), DASGD()):
        solution = solver.solve(problem, seed=0)
        assert -1e-5 <= true_gap(problem, solution.certificate.upper) <= 0.01


def two_products():
    """A problem of two products, and each of them alone."""
    data, other = synthetic(30, 4, seed=7, test=1), synthetic(30, 4, seed=8, test=1)

    def describe(cost, y):
        return Problem(cost, Linear(), Empirical(data.X, y), WassersteinBall(0.05))

    both = describe(Newsvendor((1.0, 2.0), (0.2, 0.7)), np.column_stack([data.y, other.y]))
    return both, [describe(Newsvendor(1.0, 0.2), data.y), describe(Newsvendor(2.0, 0.7), other.y)]


@pytest.mark.parametrize("solver", [PrimalDual(), DASGD(), Exact()], ids=repr)
def test_products_are_solved_as_if_each_were_alone(solver):
    both, single = two_products()
    together, alone = solver.solve(both, seed=0), [solver.solve(one, seed=0) for one in single]
    tolerance = 1.01 * solver.gap_tol
    assert together.certificate.upper == pytest.approx(
        sum(s.certificate.upper for s in alone), rel=tolerance
    )
    assert together.certificate.lower == pytest.approx(
        sum(s.certificate.lower for s in alone), rel=tolerance
    )
    assert together.parameters.theta.shape == (4, 2)
    assert together.multiplier.shape == (2,)
    for j, one in enumerate(alone):  # and so are their parameters, in the user's units
        decisions = both.policy.decide(together.parameters, both.nominal.contexts)[:, j]
        cost = single[j].cost.evaluate(decisions[:, None], single[j].nominal.outcomes).mean()
        assert cost <= one.certificate.upper * (1 + tolerance)


@pytest.mark.parametrize("solver", [PrimalDual(), Exact()], ids=repr)
def test_products_that_step_by_themselves_take_the_steps_they_take_alone(solver):
    both, single = two_products()
    together, alone = solver.solve(both, seed=0), solver.solve(single[0], seed=0)
    # The first product has the same rows in the same order and the same stream.
    np.testing.assert_array_equal(together.parameters.theta[:, 0], alone.parameters.theta[:, 0])
    assert together.history == () or together.history[-1].steps == alone.n_steps
    other = together.n_steps - alone.n_steps
    if isinstance(solver, Exact):
        assert other == solver.solve(single[1]).n_steps
    else:
        answer = solver.path(affine_forms(both)[1], [0.05], rng_for(0, "dasgd", "1"))[0]
        assert other == answer.steps > 0
        theta, _ = answer.form.in_user_units(*answer.policy)
        np.testing.assert_array_equal(together.parameters.theta[:, 1], theta)


def test_products_step_side_by_side_until_their_total_is_proved():
    both, single = two_products()
    together = DASGD().solve(both, seed=0)
    assert together.n_steps == 2 * together.history[-1].steps
    assert together.certificate.upper == pytest.approx(together.history[-1].upper, rel=1e-12)
    assert together.certificate.lower == pytest.approx(together.history[-1].lower, rel=1e-12)
    # They stop on the total gap, and neither is left behind.
    for j, one in enumerate(single):
        (form,) = affine_forms(one)
        theta, intercept = together.parameters.theta[:, j], together.parameters.intercept[j]
        upper = form.worst_value(*form.from_user_units(theta, intercept))[0] * form.value_unit
        best = ConvexProgram().solve(one).certificate.upper
        assert upper - best <= 0.01 * together.certificate.upper


# --- ends of the range of radii -----------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("solver", "tolerance"), [(PrimalDual(), 0.01), (DASGD(), 0.01), (Exact(), 1e-3)], ids=repr
)
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
@pytest.mark.parametrize("solver", [PrimalDual(), DASGD(), Exact()], ids=repr)
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


@pytest.mark.parametrize("solver", [PrimalDual, DASGD])
def test_running_out_of_steps_is_said_and_warned_of(make_demand, solver):
    problem = make_demand()
    with pytest.warns(ConvergenceWarning, match=f"^{solver.__name__} ran out of steps after 100 "):
        solution = solver(max_steps=100, gap_tol=1e-6).solve(problem)
    assert solution.converged is False
    assert solution.n_steps == 100
    assert "interrupted" not in solution.status
    assert "raise max_steps or loosen gap_tol" in solution.status
    assert solution.certificate.gap > 1e-6
    assert np.isfinite(solution.certificate.upper)


@pytest.mark.parametrize("solver", [PrimalDual, DASGD, Exact])
def test_an_interrupt_returns_the_best_so_far(make_demand, solver):
    problem, seen = make_demand(n=40, s=15, share=0.05), []

    def callback(progress):
        seen.append(progress)
        if len(seen) == 3:
            raise KeyboardInterrupt

    begins = f"{solver.__name__} was interrupted after "
    with pytest.warns(ConvergenceWarning, match=f"^{begins}"):
        solution = solver(gap_tol=1e-9, callback=callback).solve(problem)
    assert solution.status.startswith(begins)
    assert "best policy so far" in solution.status
    assert not solution.converged
    assert solution.certificate.upper == pytest.approx(seen[-1].upper, rel=1e-12)
    assert solution.certificate.lower == pytest.approx(seen[-1].lower, rel=1e-12)
    assert solution.n_steps == seen[-1].steps > 0


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        (PrimalDual, {}),
        (lambda **k: DASGD(max_steps=60_000, **k), {}),
        (lambda **k: DASGD(max_steps=60_000, **k), {"support": Box(0, 1)}),
        (Exact, {"s": 15}),
    ],
    ids=["primal-dual", "plain", "box", "exact"],
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
    np.testing.assert_allclose(gaps, (uppers - lowers) / np.maximum(lowers, gaps_floor(problem)))
    assert solution.history == tuple(checks)
    assert solution.certificate.upper == pytest.approx(uppers[-1], rel=1e-12)


def gaps_floor(problem):
    form = affine_forms(problem)[0].in_plain_units()
    decision, _ = form.constant_order()
    return 0.01 * float(form.weights @ form.pieces.evaluate(decision - form.outcomes))


@pytest.mark.parametrize(
    ("order", "radius", "columns"), [(1, 0.0, 2), (2, 0.02, 2), (1, 0.003, 4), (1, 0.003, 5)]
)
def test_problems_of_few_rows_need_few_steps(order, radius, columns):
    # One long run needs tens of millions: its error falls like 1/sqrt(steps).
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(10, columns))
    y = X @ rng.normal(size=columns) + 0.3 * rng.standard_t(1.2, size=10)
    weights = rng.uniform(0.05, 1.0, size=10) ** 2
    problem = Problem(
        Newsvendor(1.0, 0.01), Linear(), Empirical(X, y, weights), WassersteinBall(radius, order=order)
    )
    solution = DASGD(max_steps=2_000_000).solve(problem, seed=0)
    assert solution.converged, solution.status


def test_a_tighter_tolerance_gives_a_smaller_gap(make_demand):
    problem = make_demand(n=40, s=15, share=0.1)
    for solver, small in ((PrimalDual, 1e-5), (DASGD, 5e-3)):
        loose, tight = (solver(gap_tol=tol).solve(problem) for tol in (0.1, small))
        assert loose.certificate.gap <= 0.1
        assert tight.certificate.gap <= small
        assert tight.n_steps > loose.n_steps


# --- reasons and options ------------------------------------------------------------------------


def test_inner_steps_are_refused_where_outcomes_move(make_demand):
    problem, solver = make_demand(outcome_cost=1.0), DASGD(inner_steps=2)
    reason = "set outcome_cost=inf"
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
        ({"minibatch": 0}, InvalidInputError, "minibatch must be >= 1, got 0"),
        ({"inner_steps": -1}, InvalidInputError, "inner_steps must be >= 0, got -1"),
    ],
)
def test_options_are_checked_by_name(options, error, message):
    with pytest.raises(error, match=message):
        DASGD(**options)
    with pytest.raises(TypeError, match="step"):
        DASGD(step=3)
    with pytest.raises(TypeError, match="memory"):  # what had memory is PrimalDual
        DASGD(memory=False)


@pytest.mark.parametrize(
    "solver",
    [PrimalDual(), DASGD(), DASGD.literal(alpha=1, beta=1, eta=1, K=1, epsilon=0, steps=1)],
)
def test_seeds_are_checked_by_name(make_problem, solver):
    with pytest.raises(InvalidInputError, match="^seed must be >= 0, got -1.$"):
        solver.solve(make_problem(), seed=-1)
