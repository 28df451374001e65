"""The worst case of a policy: closed forms, the adversary's own program, and laws."""

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from surefoot import Box, Problem, WassersteinBall
from surefoot.ambiguity.moves import best_moves
from surefoot.costs import Newsvendor, Pieces
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms

law = settings(derandomize=True, deadline=None, max_examples=20)

GEOMETRIES = [
    pytest.param(order, box, kappa, id=f"order{order}-{box or 'free'}-kappa{kappa}")
    for order in (1, 2)
    for box in (None, "closed", "open")
    for kappa in (math.inf, 2.0)
]
ATTAINED = [geometry for geometry in GEOMETRIES if "order1-open" not in geometry.id]


LINES = ["tiered", "flat", "salvage", "four"]


def largest_line(r, pieces):
    return np.max([w * r + v for w, v in zip(pieces.slopes, pieces.intercepts, strict=True)], axis=0)


def nominal_cost(form, theta, t):
    r = form.contexts @ theta + t - form.outcomes
    return float(form.weights @ largest_line(r, form.pieces))


def adversarial_program(form, theta, t):
    """The adversary's primal program: split each row over all pieces and move each part.

    Part k of row i has mass q, moves its context by m / q and its outcome by v / q, and costs
    what the line of its piece says of its residual. Nothing of it is shared with the certificates.
    """
    n, s = form.contexts.shape
    kappa, finite = form.outcome_cost, math.isfinite(form.outcome_cost)
    r = form.contexts @ theta + t - form.outcomes
    masses, gain, spent, constraints = [], 0.0, 0.0, []
    for slope, level in zip(form.pieces.slopes, form.pieces.intercepts, strict=True):
        q, m, v = cp.Variable(n, nonneg=True), cp.Variable((n, s)), cp.Variable(n)
        masses.append(q)
        gain = gain + slope * (q @ r + cp.sum(m @ theta) - cp.sum(v)) + level * cp.sum(q)
        constraints += [m[:, ~form.movable] == 0]
        held = [(m[:, j], form.contexts[:, j], form.lower[j], form.upper[j]) for j in range(s)]
        if finite:
            held.append((v, form.outcomes, form.outcome_lower[0], form.outcome_upper[0]))
        else:
            constraints.append(v == 0)
        for move, values, low, high in held:
            if np.isfinite(high):
                constraints.append(move <= cp.multiply(high - values, q))
            if np.isfinite(low):
                constraints.append(move >= cp.multiply(low - values, q))
        for i in range(n):
            if form.order == 1:
                spent = spent + cp.norm(m[i]) + (kappa * cp.abs(v[i]) if finite else 0.0)
            else:
                spent = spent + cp.quad_over_lin(m[i], q[i])
                spent = spent + (kappa * cp.quad_over_lin(v[i], q[i]) if finite else 0.0)
    constraints += [sum(masses) == form.weights, spent <= form.radius**form.order]
    program = cp.Problem(cp.Maximize(gain), constraints)
    program.solve(solver="CLARABEL")
    return float(program.value)


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@pytest.mark.parametrize("radius", [0.05, 0.6])
def test_dual_value_equals_the_adversarys_own_program(make_affine, order, box, kappa, radius):
    form = make_affine(
        5, rows=5, order=order, box=box, outcome_cost=kappa, radius=radius, frozen=(1,), weighted=True
    )
    theta, t = np.array([0.9, 0.4, -0.8]), 0.5
    value, gamma = form.worst_value(theta, t)
    assert value == pytest.approx(adversarial_program(form, theta, t), rel=2e-6)
    assert gamma > 0


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@pytest.mark.parametrize("lines", LINES)
def test_more_than_two_lines_have_the_value_of_the_adversarys_own_program(
    make_lines, lines, order, box, kappa
):
    form = make_lines(
        5, lines=lines, rows=5, order=order, box=box, outcome_cost=kappa, frozen=(1,), weighted=True
    )
    theta, t = np.array([0.9, 0.4, -0.8]), 1.5
    for radius in (0.05, 0.6):
        at = form.at_radius(radius)
        value, gamma = at.worst_value(theta, t)
        assert value == pytest.approx(adversarial_program(at, theta, t), rel=2e-6)
        assert gamma > 0


def grid_adversary(form, theta, t):
    """What an adversary gains that may take the mass of each row to any points of a fixed grid.

    A linear program with one budget, solved through the price of the budget. Form with one column.
    """
    fixed = math.isinf(form.outcome_cost)
    near = np.linspace(-1.0, 1.0, 4001 if fixed else 401) ** 3 * 8.0
    steps = np.concatenate([near, [-3e4, -500.0, 500.0, 3e4]])
    rows = []
    for x, y, low, high in zip(
        form.contexts[:, 0], form.outcomes, form.outcome_lower, form.outcome_upper, strict=True
    ):
        dx = np.unique(np.clip(steps, form.lower[0] - x, form.upper[0] - x))
        dy = np.zeros(1) if fixed else np.unique(np.clip(steps, low - y, high - y))
        cost = largest_line(theta[0] * (x + dx)[:, None] + t - (y + dy)[None, :], form.pieces)
        paid = np.abs(dx)[:, None] ** form.order + np.zeros(len(dy))
        if not fixed:
            paid = paid + form.outcome_cost * np.abs(dy) ** form.order
        rows.append((cost.ravel(), paid.ravel()))

    def priced(log_price):
        price = math.exp(log_price)
        best = [float((cost - price * paid).max()) for cost, paid in rows]
        return price * form.radius**form.order + float(form.weights @ best)

    return minimize_scalar(priced, bounds=(-12.0, 5.0), method="bounded", options={"xatol": 1e-9}).fun


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("radius", [0.05, 0.5])
def test_more_than_two_lines_have_the_value_of_a_grid(make_lines, lines, order, box, kappa, radius):
    form = make_lines(
        3, lines=lines, rows=5, columns=1, order=order, box=box, outcome_cost=kappa, radius=radius,
        weighted=True,
    )  # fmt: skip
    for slope, t in ((0.8, 0.2), (-1.5, 3.0)):
        theta = np.array([slope])
        value, _ = form.worst_value(theta, t)
        found = grid_adversary(form, theta, t)
        # The search for the price leaves a millionth, the grid a thousandth.
        assert found - 1e-6 <= value <= found + 1e-3 * max(abs(found), 0.1)


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=5)
def test_value_is_the_dual_minimised_over_the_multiplier(make_affine, order, box, kappa, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(
        seed % 6, order=order, box=box, outcome_cost=kappa, radius=rng.uniform(0.02, 1.0),
        backorder=rng.uniform(0.1, 2), holding=rng.uniform(0.1, 2), weighted=True,
    )  # fmt: skip
    theta, t = rng.normal(size=3), rng.normal()

    def dual(log_gamma):
        gamma = math.exp(log_gamma)
        answer = best_moves(form, theta, t, gamma)
        return gamma * form.radius**order + float(form.weights @ answer.value)

    value, gamma = form.worst_value(theta, t)
    assert value == pytest.approx(dual(math.log(gamma) + 1e-9), rel=1e-6)
    grid = np.log(gamma) + np.concatenate([np.linspace(-1, 1, 81), np.linspace(-9, 9, 31)])
    assert min(map(dual, grid)) >= value * (1 - 1e-9)


@pytest.mark.parametrize("kappa", [math.inf, 0.8, 3.0])
@pytest.mark.parametrize(("b", "h"), [(1.0, 0.2), (0.3, 0.9), (0.5, 0.5)])
def test_order_one_free_closed_form(make_affine, kappa, b, h):
    form = make_affine(
        6, order=1, backorder=b, holding=h, outcome_cost=kappa, frozen=(2,), weighted=True
    )
    theta, t = np.array([0.3, -0.5, 2.0]), 0.7
    m = math.hypot(0.3, 0.5)
    value, gamma = form.worst_value(theta, t)
    reach = max(m, 1 / kappa)
    assert value == pytest.approx(nominal_cost(form, theta, t) + 0.3 * max(b, h) * reach, rel=1e-12)
    assert gamma == pytest.approx(max(b, h) * reach)


@pytest.mark.parametrize("kappa", [math.inf, 0.8])
@pytest.mark.parametrize(("b", "h"), [(1.0, 0.2), (0.3, 0.9), (0.5, 0.5)])
def test_order_two_free_closed_form(make_affine, kappa, b, h):
    form = make_affine(6, backorder=b, holding=h, outcome_cost=kappa, frozen=(2,), weighted=True)
    theta, t, rho = np.array([0.3, -0.5, 2.0]), 0.7, form.radius
    reach2 = 0.3**2 + 0.5**2 + (0 if math.isinf(kappa) else 1 / kappa)
    r = form.residuals(theta, t)

    def dual(log_gamma):
        gamma = math.exp(log_gamma)
        q = reach2 / gamma
        moved = np.maximum(h * r + h**2 * q / 4, -b * r + b**2 * q / 4)
        return gamma * rho**2 + float(form.weights @ moved)

    best = minimize_scalar(dual, bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    value, gamma = form.worst_value(theta, t)
    assert value == pytest.approx(best.fun, rel=1e-8)
    assert dual(math.log(gamma)) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("kappa", [math.inf, 2.0])
@pytest.mark.parametrize(("b", "h"), [(1.0, 0.2), (0.3, 0.9)])
def test_order_two_with_the_best_intercept_costs_rho_sqrt_bh_m(make_affine, kappa, b, h):
    form = make_affine(
        7, rows=11, backorder=b, holding=h, outcome_cost=kappa, weighted=True, radius=0.4
    )
    theta = np.array([0.3, -0.5, 0.6])
    reach = math.sqrt(theta @ theta + (0 if math.isinf(kappa) else 1 / kappa))
    # The best constant for the nominal form is a quantile of y - theta'x.
    left = form.outcomes - form.contexts @ theta
    order = np.argsort(left)
    t = left[order][np.searchsorted(np.cumsum(form.weights[order]), b / (b + h))]
    shift = (b - h) * 0.4 * reach / (2 * math.sqrt(b * h))
    value, gamma = form.worst_value(theta, t + shift)
    expected = nominal_cost(form, theta, t) + 0.4 * math.sqrt(b * h) * reach
    assert value == pytest.approx(expected, rel=1e-9)
    assert gamma == pytest.approx(math.sqrt(b * h) * reach / (2 * 0.4), rel=1e-6)
    for other in np.linspace(t - 2, t + 2, 41):
        assert form.worst_value(theta, other)[0] >= value * (1 - 1e-12)


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=5)
def test_laws_of_the_radius(make_affine, order, box, kappa, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(seed % 6, order=order, box=box, outcome_cost=kappa, weighted=True)
    theta, t = rng.normal(size=3), rng.normal()
    nominal = nominal_cost(form, theta, t)
    value, gamma = form.at_radius(0.0).worst_value(theta, t)
    assert value == pytest.approx(nominal, rel=1e-14)
    assert gamma == 0.0
    radii = np.sort(rng.exponential(size=4))
    values = np.array([form.at_radius(r).worst_value(theta, t)[0] for r in radii])
    assert (values >= nominal).all()
    assert (np.diff(values) >= -1e-10 * values[1:]).all()
    assert values[-1] > nominal
    # Concave in the budget rho^p: adversaries mix.
    budgets = radii**order
    slopes = np.diff(values) / np.diff(budgets)
    assert (np.diff(slopes) <= 1e-6 * slopes[0]).all()


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(seed=st.integers(0, 10_000), factor=st.floats(0.05, 20.0))
@settings(law, max_examples=5)
def test_laws_of_scale(make_affine, order, box, kappa, seed, factor):
    rng = np.random.default_rng(seed)
    form = make_affine(seed % 6, order=order, box=box, outcome_cost=kappa, weighted=True)
    theta, t = rng.normal(size=3), rng.normal()
    value, gamma = form.worst_value(theta, t)
    # Outcomes, policy and (through kappa) the price of moving outcomes in units `factor` times smaller.
    units = replace(
        form,
        outcomes=factor * form.outcomes,
        outcome_lower=factor * form.outcome_lower,
        outcome_upper=factor * form.outcome_upper,
        outcome_cost=kappa / factor**order,
    )
    scaled, scaled_gamma = units.worst_value(factor * theta, factor * t)
    assert scaled == pytest.approx(factor * value, rel=1e-8)
    assert scaled_gamma == pytest.approx(factor * gamma, rel=1e-6)
    # Costs in another currency.
    pieces = Pieces.kinked(factor * form.pieces.up, factor * form.pieces.down)
    assert replace(form, pieces=pieces).worst_value(theta, t)[0] == pytest.approx(
        factor * value, rel=1e-8
    )
    # Contexts and radius in other units, with theta the inverse way.
    contexts = replace(
        form.at_radius(factor * form.radius),
        contexts=factor * form.contexts,
        lower=factor * form.lower,
        upper=factor * form.upper,
        outcome_cost=kappa * factor**order,
    )
    assert contexts.worst_value(theta / factor, t)[0] == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=5)
def test_worst_case_is_convex_in_the_policy(make_affine, order, box, kappa, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(seed % 6, order=order, box=box, outcome_cost=kappa, frozen=(0,))
    a, b = rng.normal(size=(2, 4))
    ends = [form.worst_value(p[:3], p[3])[0] for p in (a, b)]
    middle = form.worst_value((a + b)[:3] / 2, (a + b)[3] / 2)[0]
    assert middle <= np.mean(ends) * (1 + 1e-9)


def check_atoms(form, theta, t):
    """Return the adversary of a policy after checking that its atoms are a move within the budget."""
    order, kappa = form.order, form.outcome_cost
    worst = form.adversary(theta, t)
    assert worst.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (worst.weights > 0).all()
    # Each row keeps its probability, however it is split.
    kept = np.bincount(worst.rows, worst.weights, minlength=len(form.weights))
    np.testing.assert_allclose(kept, form.weights, atol=1e-12)
    # Distances are those of the atoms, and the budget is respected.
    moves = worst.contexts - form.contexts[worst.rows]
    outcome_moves = worst.outcomes - form.outcomes[worst.rows]
    length = np.linalg.norm(moves, axis=1) ** order
    if math.isfinite(kappa):
        length = length + kappa * np.abs(outcome_moves) ** order
    np.testing.assert_allclose(worst.distances, length, atol=1e-10 * max(1.0, length.max()))
    assert worst.transport_cost.shape == (1,)
    assert worst.transport_cost[0] == pytest.approx(float(worst.weights @ length), rel=1e-9, abs=1e-15)
    assert worst.transport_cost[0] <= form.radius**order * (1 + 1e-6)
    # Inside the box, frozen columns at rest.
    assert (worst.contexts >= form.lower - 1e-9).all()
    assert (worst.contexts <= form.upper + 1e-9).all()
    assert (moves[:, ~form.movable] == 0).all()
    if math.isinf(kappa):
        assert (outcome_moves == 0).all()
    else:
        assert (worst.outcomes >= form.outcome_lower[worst.rows] - 1e-9).all()
        assert (worst.outcomes <= form.outcome_upper[worst.rows] + 1e-9).all()
    # The expected cost is computed here from the atoms.
    costs = largest_line(worst.contexts @ theta + t - worst.outcomes, form.pieces)
    assert worst.expected_cost == pytest.approx(float(worst.weights @ costs), rel=1e-12)
    assert worst.expected_cost <= worst.value + 1e-9 * abs(worst.value)
    assert (worst.value, worst.multiplier[0]) == form.worst_value(theta, t)
    return worst


@pytest.mark.parametrize(("order", "box", "kappa"), ATTAINED)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=5)
def test_atoms_lie_in_the_ball_and_attain_the_value(make_affine, order, box, kappa, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(
        seed % 6, order=order, box=box, outcome_cost=kappa, frozen=(1,), weighted=True,
        radius=rng.uniform(0.01, 1.0), backorder=rng.uniform(0.2, 2), holding=rng.uniform(0.2, 2),
    )  # fmt: skip
    theta, t = rng.normal(size=3), rng.normal()
    worst = check_atoms(form, theta, t)
    steep = form.residuals(theta, t) * np.sign(form.pieces.up - form.pieces.down)
    if order == 1 and box is None and not (steep >= 0).any():
        assert worst.expected_cost >= 0.999 * worst.value  # approached only in the limit
    else:
        assert worst.expected_cost == pytest.approx(worst.value, rel=1e-6)


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@pytest.mark.parametrize("lines", LINES)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=4)
def test_atoms_attain_the_value_of_more_than_two_lines(make_lines, lines, order, box, kappa, seed):
    rng = np.random.default_rng(seed)
    form = make_lines(
        seed % 6, lines=lines, order=order, box=box, outcome_cost=kappa, frozen=(1,), weighted=True,
        radius=rng.uniform(0.01, 1.0),
    )  # fmt: skip
    theta, t = rng.normal(size=3), 3.0 * rng.normal()
    worst = check_atoms(form, theta, t)
    share = 1e-3 if order == 1 else 1e-6
    assert worst.expected_cost >= worst.value - share * abs(worst.value)


def test_atoms_of_a_cost_below_zero_keep_the_mass_of_their_rows(make_lines):
    # No row is on the steepest line, and the worst case is a gain.
    form = make_lines(1, lines="salvage", rows=4, order=1, radius=0.02)
    theta, t = np.array([0.1, 0.0, 0.0]), float(form.outcomes.min())
    worst = check_atoms(form, theta, t)
    assert worst.value < 0.0
    assert worst.expected_cost >= worst.value - 1e-3 * abs(worst.value)


def half_open(kind, seed):
    """A random form in a box with an open side, and a policy."""
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    X = rng.exponential(size=(rows, columns))
    y = 3.0 + X @ rng.normal(size=columns) + rng.normal(size=rows)
    roof = X.max(axis=0) + rng.exponential(size=columns)
    support = {
        "positive contexts": Box(0, math.inf),
        "positive contexts, outcomes move": Box(0, math.inf),
        "closed contexts, outcomes move": Box(0, roof),
        "contexts below a roof, outcomes above a floor": Box(
            -math.inf, roof, outcome=(y.min() - 1.0, math.inf)
        ),
        "fixed contexts, outcomes below a roof": Box(0, roof, outcome=(-math.inf, y.max() + 0.5)),
    }[kind]
    frozen = range(columns) if kind.startswith("fixed") else ()
    kappa = math.inf if kind == "positive contexts" else rng.uniform(0.3, 3.0)
    cost = Newsvendor(*rng.uniform(0.1, 2.0, size=2))
    ball = WassersteinBall(
        rng.uniform(0.01, 2.0), order=1, outcome_cost=kappa, support=support, frozen=frozen,
        scale=False,
    )  # fmt: skip
    nominal = Empirical(X, y, rng.uniform(0.2, 2.0, size=rows))
    (form,) = affine_forms(Problem(cost, Linear(), nominal, ball))
    theta = rng.normal(size=columns) * rng.choice([0.1, 1.0, 3.0])
    return form.in_plain_units(), theta, 3.0 * rng.normal()


HALF_OPEN = [
    "positive contexts",
    "positive contexts, outcomes move",
    "closed contexts, outcomes move",
    "contexts below a roof, outcomes above a floor",
    "fixed contexts, outcomes below a roof",
]


@pytest.mark.parametrize("kind", HALF_OPEN)
@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=12)
def test_atoms_of_order_one_attain_the_value_in_half_open_boxes(kind, seed):
    form, theta, t = half_open(kind, seed)
    assert form.boxed
    worst = check_atoms(form, theta, t)
    assert worst.expected_cost >= 0.999 * worst.value


def test_order_one_free_without_a_row_on_the_steep_side_stays_below_the_supremum(make_affine):
    form = make_affine(1, order=1)
    theta, t = np.array([0.1, 0.0, 0.0]), 100.0  # every row is overstocked, backorders are steep
    worst = form.adversary(theta, t)
    assert worst.transport_cost[0] == pytest.approx(form.radius)
    assert 0.999 * worst.value <= worst.expected_cost < worst.value
    # A little mass of one row crosses over and goes far; the others, and the rest of it, stay.
    assert len(worst.rows) == len(form.outcomes) + 1
    assert (worst.distances > 0).sum() == 1
    assert worst.weights[worst.distances > 0][0] < 0.01


@pytest.mark.parametrize("order", [1, 2])
def test_worst_case_in_an_open_box_never_overspends_or_overclaims(make_affine, order):
    form = make_affine(2, order=order, box="open")
    for theta in (np.array([0.5, -1.0, 0.2]), np.array([-0.5, -1.0, -0.2])):
        worst = form.adversary(theta, 0.3)
        assert worst.transport_cost[0] <= form.radius**order * (1 + 1e-6)
        assert worst.expected_cost <= worst.value * (1 + 1e-9)
        assert np.isfinite(worst.contexts).all()


def test_a_policy_that_leans_on_an_open_side_has_a_finite_worst_case(make_affine):
    # Every column pulls towards its open side, so the multiplier is exactly the one that holds.
    form = make_affine(3, order=1, box="open", columns=1, backorder=1.0, holding=0.2)
    for size in np.linspace(0.01, 3.0, 20):
        value, gamma = form.worst_value(np.array([-size]), 0.1)
        free = nominal_cost(form, np.array([-size]), 0.1) + form.radius * size
        assert value == pytest.approx(free, rel=1e-9)
        assert gamma == pytest.approx(size)


@pytest.mark.parametrize("order", [1, 2])
def test_a_policy_that_ignores_the_context_has_no_worst_case_but_the_nominal(make_affine, order):
    form = make_affine(2, order=order)
    worst = form.adversary(np.zeros(3), 1.3)
    assert worst.value == pytest.approx(nominal_cost(form, np.zeros(3), 1.3), rel=1e-14)
    assert worst.transport_cost[0] == 0.0
    np.testing.assert_array_equal(worst.contexts, form.contexts)


def test_a_box_that_cannot_use_the_budget_spends_less(make_affine):
    form = make_affine(2, box="closed", radius=100.0)
    theta = np.array([0.5, -1.0, 0.2])
    worst = form.adversary(theta, 0.3)
    assert worst.transport_cost[0] < form.radius**2 / 10
    assert worst.value == pytest.approx(worst.expected_cost, rel=1e-9)
    corners = (
        np.where(theta > 0, form.upper, form.lower),
        np.where(theta > 0, form.lower, form.upper),
    )
    high, low = (corner @ theta + 0.3 - form.outcomes for corner in corners)
    up, down = form.pieces.up, form.pieces.down
    everywhere = np.maximum.reduce([up * high, -down * high, up * low, -down * low])
    assert worst.value == pytest.approx(float(form.weights @ everywhere), rel=1e-9)


@pytest.mark.parametrize("delta", [0.05, 0.8])
def test_smoothed_order_two_value_is_a_minimum_over_multipliers_of_a_line_search(make_affine, delta):
    form = make_affine(4, smoothing=delta, backorder=1.0, holding=0.4)
    theta, t, rho = np.array([0.3, -0.5, 0.6]), 0.2, form.radius
    m2, r = float(theta @ theta), form.residuals(theta, t)

    def dual(gamma):
        v = np.linspace(-1.1, 1.1, 20_001)[:, None] * m2 / (2 * gamma)
        inner = (form.pieces.evaluate(r + v) - gamma * v**2 / m2).max(axis=0)
        return gamma * rho**2 + float(form.weights @ inner)

    value, gamma = form.worst_value(theta, t)
    assert value == pytest.approx(dual(gamma), rel=1e-6)
    assert min(map(dual, gamma * np.geomspace(0.3, 3, 31))) >= value * (1 - 1e-6)
    worst = form.adversary(theta, t)
    assert worst.transport_cost[0] <= rho**2 * (1 + 1e-6)
    assert worst.expected_cost == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_smoothed_cost_in_a_box_is_bounded_from_above_within_its_rounding(make_affine, order):
    options = {"order": order, "box": "closed", "backorder": 1.0, "holding": 0.4}
    kinked, smooth = make_affine(4, **options), make_affine(4, smoothing=0.2, **options)
    theta, t = np.array([0.3, -0.5, 0.6]), 0.2
    sharp, rounded = kinked.worst_value(theta, t)[0], smooth.worst_value(theta, t)[0]
    assert sharp <= rounded <= sharp + 1.4 * 0.2 / 4 + 1e-12
    worst = smooth.adversary(theta, t)
    assert worst.expected_cost <= rounded * (1 + 1e-15)  # sums in another order
    assert worst.transport_cost[0] <= smooth.radius**order * (1 + 1e-6)


def test_smoothed_order_one_keeps_the_slope_of_the_lines(make_affine):
    form = make_affine(4, order=1, smoothing=0.3)
    theta, t = np.array([0.3, -0.5, 0.6]), 0.2
    nominal = float(form.weights @ form.pieces.evaluate(form.residuals(theta, t)))
    value, _ = form.worst_value(theta, t)
    assert value == pytest.approx(nominal + form.radius * np.linalg.norm(theta), rel=1e-12)


@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=10)
def test_order_of_rows_does_not_matter(make_affine, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(seed % 6, order=1 + seed % 2, box=["closed", None][seed % 3 == 0])
    theta, t = rng.normal(size=3), rng.normal()
    shuffled = form.subset(rng.permutation(len(form.weights)))
    assert shuffled.worst_value(theta, t)[0] == pytest.approx(form.worst_value(theta, t)[0], rel=1e-10)
