"""The worst case of a policy: closed forms, the adversary's own program, and laws."""

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from surefoot.certificates import best_response, worst_case, worst_case_value
from surefoot.costs import Pieces

law = settings(derandomize=True, deadline=None, max_examples=20)

GEOMETRIES = [
    pytest.param(order, box, kappa, id=f"order{order}-{box or 'free'}-kappa{kappa}")
    for order in (1, 2)
    for box in (None, "closed", "open")
    for kappa in (math.inf, 2.0)
]
ATTAINED = [geometry for geometry in GEOMETRIES if "order1-open" not in geometry.id]


def nominal_cost(problem, theta, t):
    r = problem.contexts @ theta + t - problem.outcomes
    b, h = problem.pieces.down, problem.pieces.up
    return float(problem.weights @ np.where(r >= 0, h * r, -b * r))


def adversary(problem, theta, t):
    """The adversary's primal program: split each row over both pieces and move each part.

    Part k of row i has mass q, moves its context by m / q and its outcome by v / q, and costs
    the slope of its piece times its residual. Nothing of it is shared with the certificates.
    """
    n, s = problem.contexts.shape
    kappa, finite = problem.outcome_cost, math.isfinite(problem.outcome_cost)
    r = problem.contexts @ theta + t - problem.outcomes
    masses, gain, spent, constraints = [], 0.0, 0.0, []
    for slope in (problem.pieces.up, -problem.pieces.down):
        q, m, v = cp.Variable(n, nonneg=True), cp.Variable((n, s)), cp.Variable(n)
        masses.append(q)
        gain = gain + slope * (q @ r + cp.sum(m @ theta) - cp.sum(v))
        constraints += [m[:, ~problem.movable] == 0]
        held = [(m[:, j], problem.contexts[:, j], problem.lower[j], problem.upper[j]) for j in range(s)]
        if finite:
            held.append((v, problem.outcomes, *problem.outcome_bounds))
        else:
            constraints.append(v == 0)
        for move, values, low, high in held:
            if np.isfinite(high):
                constraints.append(move <= cp.multiply(high - values, q))
            if np.isfinite(low):
                constraints.append(move >= cp.multiply(low - values, q))
        for i in range(n):
            if problem.order == 1:
                spent = spent + cp.norm(m[i]) + (kappa * cp.abs(v[i]) if finite else 0.0)
            else:
                spent = spent + cp.quad_over_lin(m[i], q[i])
                spent = spent + (kappa * cp.quad_over_lin(v[i], q[i]) if finite else 0.0)
    constraints += [masses[0] + masses[1] == problem.weights, spent <= problem.radius**problem.order]
    program = cp.Problem(cp.Maximize(gain), constraints)
    program.solve(solver="CLARABEL")
    return float(program.value)


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@pytest.mark.parametrize("radius", [0.05, 0.6])
def test_dual_value_equals_the_adversarys_own_program(make_affine, order, box, kappa, radius):
    problem = make_affine(
        5, rows=5, order=order, box=box, outcome_cost=kappa, radius=radius, frozen=(1,), weighted=True
    )
    theta, t = np.array([0.9, 0.4, -0.8]), 0.5
    value, gamma = worst_case_value(problem, theta, t)
    assert value == pytest.approx(adversary(problem, theta, t), rel=2e-6)
    assert gamma > 0


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=5)
def test_value_is_the_dual_minimised_over_the_multiplier(make_affine, order, box, kappa, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(
        seed % 6, order=order, box=box, outcome_cost=kappa, radius=rng.uniform(0.02, 1.0),
        backorder=rng.uniform(0.1, 2), holding=rng.uniform(0.1, 2), weighted=True,
    )  # fmt: skip
    theta, t = rng.normal(size=3), rng.normal()

    def dual(log_gamma):
        gamma = math.exp(log_gamma)
        answer = best_response(problem, theta, t, gamma)
        return gamma * problem.radius**order + float(problem.weights @ answer.value)

    value, gamma = worst_case_value(problem, theta, t)
    assert value == pytest.approx(dual(math.log(gamma) + 1e-9), rel=1e-6)
    grid = np.log(gamma) + np.concatenate([np.linspace(-1, 1, 81), np.linspace(-9, 9, 31)])
    assert min(map(dual, grid)) >= value * (1 - 1e-9)


@pytest.mark.parametrize("kappa", [math.inf, 0.8, 3.0])
@pytest.mark.parametrize(("b", "h"), [(1.0, 0.2), (0.3, 0.9), (0.5, 0.5)])
def test_order_one_free_closed_form(make_affine, kappa, b, h):
    problem = make_affine(
        6, order=1, backorder=b, holding=h, outcome_cost=kappa, frozen=(2,), weighted=True
    )
    theta, t = np.array([0.3, -0.5, 2.0]), 0.7
    m = math.hypot(0.3, 0.5)
    value, gamma = worst_case_value(problem, theta, t)
    reach = max(m, 1 / kappa)
    assert value == pytest.approx(nominal_cost(problem, theta, t) + 0.3 * max(b, h) * reach, rel=1e-12)
    assert gamma == pytest.approx(max(b, h) * reach)


@pytest.mark.parametrize("kappa", [math.inf, 0.8])
@pytest.mark.parametrize(("b", "h"), [(1.0, 0.2), (0.3, 0.9), (0.5, 0.5)])
def test_order_two_free_closed_form(make_affine, kappa, b, h):
    problem = make_affine(6, backorder=b, holding=h, outcome_cost=kappa, frozen=(2,), weighted=True)
    theta, t, rho = np.array([0.3, -0.5, 2.0]), 0.7, problem.radius
    reach2 = 0.3**2 + 0.5**2 + (0 if math.isinf(kappa) else 1 / kappa)
    r = problem.residuals(theta, t)

    def dual(log_gamma):
        gamma = math.exp(log_gamma)
        q = reach2 / gamma
        moved = np.maximum(h * r + h**2 * q / 4, -b * r + b**2 * q / 4)
        return gamma * rho**2 + float(problem.weights @ moved)

    best = minimize_scalar(dual, bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    value, gamma = worst_case_value(problem, theta, t)
    assert value == pytest.approx(best.fun, rel=1e-8)
    assert dual(math.log(gamma)) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("kappa", [math.inf, 2.0])
@pytest.mark.parametrize(("b", "h"), [(1.0, 0.2), (0.3, 0.9)])
def test_order_two_with_the_best_intercept_costs_rho_sqrt_bh_m(make_affine, kappa, b, h):
    problem = make_affine(
        7, rows=11, backorder=b, holding=h, outcome_cost=kappa, weighted=True, radius=0.4
    )
    theta = np.array([0.3, -0.5, 0.6])
    reach = math.sqrt(theta @ theta + (0 if math.isinf(kappa) else 1 / kappa))
    # The best constant for the nominal problem is a quantile of y - theta'x.
    left = problem.outcomes - problem.contexts @ theta
    order = np.argsort(left)
    t = left[order][np.searchsorted(np.cumsum(problem.weights[order]), b / (b + h))]
    shift = (b - h) * 0.4 * reach / (2 * math.sqrt(b * h))
    value, gamma = worst_case_value(problem, theta, t + shift)
    expected = nominal_cost(problem, theta, t) + 0.4 * math.sqrt(b * h) * reach
    assert value == pytest.approx(expected, rel=1e-9)
    assert gamma == pytest.approx(math.sqrt(b * h) * reach / (2 * 0.4), rel=1e-6)
    for other in np.linspace(t - 2, t + 2, 41):
        assert worst_case_value(problem, theta, other)[0] >= value * (1 - 1e-12)


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=5)
def test_laws_of_the_radius(make_affine, order, box, kappa, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(seed % 6, order=order, box=box, outcome_cost=kappa, weighted=True)
    theta, t = rng.normal(size=3), rng.normal()
    nominal = nominal_cost(problem, theta, t)
    value, gamma = worst_case_value(problem.at_radius(0.0), theta, t)
    assert value == pytest.approx(nominal, rel=1e-14)
    assert gamma == 0.0
    radii = np.sort(rng.exponential(size=4))
    values = np.array([worst_case_value(problem.at_radius(r), theta, t)[0] for r in radii])
    assert (values >= nominal).all()
    assert (np.diff(values) >= -1e-10 * values[1:]).all()
    assert values[-1] > nominal
    # Concave in the budget rho^p: adversaries mix.
    budgets = radii**order
    slopes = np.diff(values) / np.diff(budgets)
    assert (np.diff(slopes) <= 1e-6 * slopes[0]).all()


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(seed=st.integers(0, 10_000), factor=st.floats(0.05, 20.0))
@settings(law, max_examples=5)
def test_laws_of_scale(make_affine, order, box, kappa, seed, factor):
    rng = np.random.default_rng(seed)
    problem = make_affine(seed % 6, order=order, box=box, outcome_cost=kappa, weighted=True)
    theta, t = rng.normal(size=3), rng.normal()
    value, gamma = worst_case_value(problem, theta, t)
    # Outcomes, policy and (through kappa) the price of moving outcomes in units `factor` times smaller.
    units = replace(
        problem,
        outcomes=factor * problem.outcomes,
        outcome_bounds=tuple(factor * bound for bound in problem.outcome_bounds),
        outcome_cost=kappa / factor**order,
    )
    scaled, scaled_gamma = worst_case_value(units, factor * theta, factor * t)
    assert scaled == pytest.approx(factor * value, rel=1e-8)
    assert scaled_gamma == pytest.approx(factor * gamma, rel=1e-6)
    # Costs in another currency.
    pieces = Pieces(factor * problem.pieces.up, factor * problem.pieces.down)
    assert worst_case_value(replace(problem, pieces=pieces), theta, t)[0] == pytest.approx(
        factor * value, rel=1e-8
    )
    # Contexts and radius in other units, with theta the inverse way.
    contexts = replace(
        problem.at_radius(factor * problem.radius),
        contexts=factor * problem.contexts,
        lower=factor * problem.lower,
        upper=factor * problem.upper,
        outcome_cost=kappa * factor**order,
    )
    assert worst_case_value(contexts, theta / factor, t)[0] == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=5)
def test_worst_case_is_convex_in_the_policy(make_affine, order, box, kappa, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(seed % 6, order=order, box=box, outcome_cost=kappa, frozen=(0,))
    a, b = rng.normal(size=(2, 4))
    ends = [worst_case_value(problem, p[:3], p[3])[0] for p in (a, b)]
    middle = worst_case_value(problem, (a + b)[:3] / 2, (a + b)[3] / 2)[0]
    assert middle <= np.mean(ends) * (1 + 1e-9)


@pytest.mark.parametrize(("order", "box", "kappa"), ATTAINED)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=5)
def test_atoms_lie_in_the_ball_and_attain_the_value(make_affine, order, box, kappa, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(
        seed % 6, order=order, box=box, outcome_cost=kappa, frozen=(1,), weighted=True,
        radius=rng.uniform(0.01, 1.0), backorder=rng.uniform(0.2, 2), holding=rng.uniform(0.2, 2),
    )  # fmt: skip
    theta, t = rng.normal(size=3), rng.normal()
    worst = worst_case(problem, theta, t)
    assert worst.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (worst.weights > 0).all()
    # Each row keeps its probability, however it is split.
    kept = np.bincount(worst.rows, worst.weights, minlength=len(problem.weights))
    np.testing.assert_allclose(kept, problem.weights, atol=1e-12)
    # Distances are those of the atoms, and the budget is respected.
    moves = worst.contexts - problem.contexts[worst.rows]
    outcome_moves = worst.outcomes - problem.outcomes[worst.rows]
    length = np.linalg.norm(moves, axis=1) ** order
    if math.isfinite(kappa):
        length = length + kappa * np.abs(outcome_moves) ** order
    np.testing.assert_allclose(worst.distances, length, atol=1e-10)
    assert worst.transport_cost <= problem.radius**order * (1 + 1e-6)
    # Inside the box, frozen columns at rest.
    assert (worst.contexts >= problem.lower - 1e-9).all()
    assert (worst.contexts <= problem.upper + 1e-9).all()
    assert (moves[:, 1] == 0).all()
    if math.isinf(kappa):
        assert (outcome_moves == 0).all()
    else:
        assert (worst.outcomes >= problem.outcome_bounds[0] - 1e-9).all()
        assert (worst.outcomes <= problem.outcome_bounds[1] + 1e-9).all()
    # The expected cost, computed here from the atoms, is the value.
    r = worst.contexts @ theta + t - worst.outcomes
    costs = np.where(r >= 0, problem.pieces.up * r, -problem.pieces.down * r)
    assert worst.expected_cost == pytest.approx(float(worst.weights @ costs), rel=1e-12)
    steep = problem.residuals(theta, t) * np.sign(problem.pieces.up - problem.pieces.down)
    if order == 1 and box is None and not (steep >= 0).any():
        assert worst.expected_cost <= worst.value  # approached only in the limit
    else:
        assert worst.expected_cost == pytest.approx(worst.value, rel=1e-6)
    assert (worst.value, worst.multiplier) == worst_case_value(problem, theta, t)


def test_order_one_free_without_a_row_on_the_steep_side_stays_below_the_supremum(make_affine):
    problem = make_affine(1, order=1)
    theta, t = np.array([0.1, 0.0, 0.0]), 100.0  # every row is overstocked, backorders are steep
    worst = worst_case(problem, theta, t)
    assert worst.transport_cost == pytest.approx(problem.radius)
    assert worst.expected_cost < worst.value
    assert len(worst.rows) == len(problem.outcomes)


@pytest.mark.parametrize("order", [1, 2])
def test_worst_case_in_an_open_box_never_overspends_or_overclaims(make_affine, order):
    problem = make_affine(2, order=order, box="open")
    for theta in (np.array([0.5, -1.0, 0.2]), np.array([-0.5, -1.0, -0.2])):
        worst = worst_case(problem, theta, 0.3)
        assert worst.transport_cost <= problem.radius**order * (1 + 1e-6)
        assert worst.expected_cost <= worst.value * (1 + 1e-9)
        assert np.isfinite(worst.contexts).all()


def test_a_policy_that_leans_on_an_open_side_has_a_finite_worst_case(make_affine):
    # Every column pulls towards its open side, so the multiplier is exactly the one that holds.
    problem = make_affine(3, order=1, box="open", columns=1, backorder=1.0, holding=0.2)
    for size in np.linspace(0.01, 3.0, 20):
        value, gamma = worst_case_value(problem, np.array([-size]), 0.1)
        free = nominal_cost(problem, np.array([-size]), 0.1) + problem.radius * size
        assert value == pytest.approx(free, rel=1e-9)
        assert gamma == pytest.approx(size)


@pytest.mark.parametrize("order", [1, 2])
def test_a_policy_that_ignores_the_context_has_no_worst_case_but_the_nominal(make_affine, order):
    problem = make_affine(2, order=order)
    worst = worst_case(problem, np.zeros(3), 1.3)
    assert worst.value == pytest.approx(nominal_cost(problem, np.zeros(3), 1.3), rel=1e-14)
    assert worst.transport_cost == 0.0
    np.testing.assert_array_equal(worst.contexts, problem.contexts)


def test_a_box_that_cannot_use_the_budget_spends_less(make_affine):
    problem = make_affine(2, box="closed", radius=100.0)
    theta = np.array([0.5, -1.0, 0.2])
    worst = worst_case(problem, theta, 0.3)
    assert worst.transport_cost < problem.radius**2 / 10
    assert worst.value == pytest.approx(worst.expected_cost, rel=1e-9)
    corners = (
        np.where(theta > 0, problem.upper, problem.lower),
        np.where(theta > 0, problem.lower, problem.upper),
    )
    high, low = (corner @ theta + 0.3 - problem.outcomes for corner in corners)
    up, down = problem.pieces.up, problem.pieces.down
    everywhere = np.maximum.reduce([up * high, -down * high, up * low, -down * low])
    assert worst.value == pytest.approx(float(problem.weights @ everywhere), rel=1e-9)


@pytest.mark.parametrize("delta", [0.05, 0.8])
def test_smoothed_order_two_value_is_a_minimum_over_multipliers_of_a_line_search(make_affine, delta):
    problem = make_affine(4, smoothing=delta, backorder=1.0, holding=0.4)
    theta, t, rho = np.array([0.3, -0.5, 0.6]), 0.2, problem.radius
    m2, r = float(theta @ theta), problem.residuals(theta, t)

    def dual(gamma):
        v = np.linspace(-1.1, 1.1, 20_001)[:, None] * m2 / (2 * gamma)
        inner = (problem.pieces.evaluate(r + v) - gamma * v**2 / m2).max(axis=0)
        return gamma * rho**2 + float(problem.weights @ inner)

    value, gamma = worst_case_value(problem, theta, t)
    assert value == pytest.approx(dual(gamma), rel=1e-6)
    assert min(map(dual, gamma * np.geomspace(0.3, 3, 31))) >= value * (1 - 1e-6)
    worst = worst_case(problem, theta, t)
    assert worst.transport_cost <= rho**2 * (1 + 1e-6)
    assert worst.expected_cost == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_smoothed_cost_in_a_box_is_bounded_from_above_within_its_rounding(make_affine, order):
    options = {"order": order, "box": "closed", "backorder": 1.0, "holding": 0.4}
    kinked, smooth = make_affine(4, **options), make_affine(4, smoothing=0.2, **options)
    theta, t = np.array([0.3, -0.5, 0.6]), 0.2
    sharp, rounded = worst_case_value(kinked, theta, t)[0], worst_case_value(smooth, theta, t)[0]
    assert sharp <= rounded <= sharp + 1.4 * 0.2 / 4 + 1e-12
    worst = worst_case(smooth, theta, t)
    assert worst.expected_cost <= rounded
    assert worst.transport_cost <= smooth.radius**order * (1 + 1e-6)


def test_smoothed_order_one_keeps_the_slope_of_the_lines(make_affine):
    problem = make_affine(4, order=1, smoothing=0.3)
    theta, t = np.array([0.3, -0.5, 0.6]), 0.2
    nominal = float(problem.weights @ problem.pieces.evaluate(problem.residuals(theta, t)))
    value, _ = worst_case_value(problem, theta, t)
    assert value == pytest.approx(nominal + problem.radius * np.linalg.norm(theta), rel=1e-12)


@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=10)
def test_order_of_rows_does_not_matter(make_affine, seed):
    rng = np.random.default_rng(seed)
    problem = make_affine(seed % 6, order=1 + seed % 2, box=["closed", None][seed % 3 == 0])
    theta, t = rng.normal(size=3), rng.normal()
    shuffled = problem.subset(rng.permutation(len(problem.weights)))
    assert worst_case_value(shuffled, theta, t)[0] == pytest.approx(
        worst_case_value(problem, theta, t)[0], rel=1e-10
    )
