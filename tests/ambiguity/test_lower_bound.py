"""The lower bound: valid for any slopes, tight for the right ones."""

import functools
import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.ambiguity import Plan
from surefoot.ambiguity.balance import with_mean
from surefoot.solvers import ConvexProgram

law = settings(derandomize=True, deadline=None)

ORDERS, BOXES, KAPPAS = (1, 2), (None, "closed", "open"), (math.inf, 1.5)
GEOMETRIES = [
    pytest.param(
        {"order": order, "box": box, "outcome_cost": kappa, "intercept": intercept, "frozen": frozen,
         "weighted": number % 2 == 0, "backorder": 1.0, "holding": (0.2, 1.0, 1.7)[number % 3]},
        # Shares of the collapse radius, from "moves cost more than they earn" to "nearly constant".
        (0.05, 0.3, 0.9)[number // 2 % 3],
        id=f"order{order}-{box or 'free'}-kappa{kappa}-{'t' if intercept else 'no t'}-frozen{frozen}",
    )
    for number, (order, box, kappa, intercept, frozen) in enumerate(
        itertools.product(ORDERS, BOXES, KAPPAS, (True, False), ((), (0, 1)))
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def solved(make_affine):
    """Return (form, optimum, slopes) of a geometry, solved once by CVXPY."""

    @functools.cache
    def solve(share, **options):
        form = make_affine(11, rows=7, **options)
        form = form.at_radius(share * form.collapse_radius())
        answer = ConvexProgram().solve_form(form)
        optimum = form.worst_value(answer.theta, answer.intercept)[0]
        return form, optimum, answer.slopes

    return lambda options, share: solve(share, **options)


def attempts(form, slopes, seed):
    """Slopes of every kind: the best ones, disturbed, random, far outside [-b, h]."""
    rng = np.random.default_rng(seed)
    if isinstance(slopes, Plan):  # proves more than slopes do, and has none of its own to disturb
        slopes = form.constant_order()[1]
    noise = rng.normal(size=len(slopes)) * 10.0 ** rng.integers(-3, 2)
    return (slopes + noise, noise, rng.choice([-form.pieces.down, form.pieces.up], len(slopes)))


@pytest.mark.sweep
@pytest.mark.parametrize(("options", "share"), GEOMETRIES)
def test_no_slopes_prove_more_than_the_optimum(solved, options, share):
    form, optimum, slopes = solved(options, share)
    slow = options["box"] is not None and options["order"] == 1

    @given(seed=st.integers(0, 10_000))
    @settings(law, max_examples=1 if slow else 10)
    def check(seed):
        for tried in attempts(form, slopes, seed):
            assert form.lower_bound(tried) <= optimum + 1e-7

    check()


@pytest.mark.sweep
@pytest.mark.parametrize(("options", "share"), GEOMETRIES)
def test_the_right_slopes_prove_the_optimum(solved, options, share):
    form, optimum, slopes = solved(options, share)
    loose = 1e-2 if options["box"] is not None and options["order"] == 1 else 1e-4
    bound = form.lower_bound(slopes)
    assert optimum * (1 - loose) <= bound <= optimum + 1e-7


@pytest.mark.sweep
@pytest.mark.parametrize("share", [0.0, 1e-9, 1e-7, 1e-4, 2e-3, 0.01])
@pytest.mark.parametrize(("box", "columns"), [(None, 2), (None, 9), ("closed", 2)])
@pytest.mark.parametrize("order", [1, 2])
def test_tiny_radii_are_bounded_validly_and_well(make_affine, share, box, order, columns):
    form = make_affine(12, rows=6, columns=columns, order=order, box=box)
    form = form.at_radius(share * form.collapse_radius())
    answer = ConvexProgram().solve_form(form)
    optimum = form.worst_value(answer.theta, answer.intercept)[0]
    size = float(form.weights @ np.abs(form.outcomes))
    bound = form.lower_bound(answer.slopes)
    assert optimum - 1e-3 * max(optimum, 1e-2 * size) <= bound <= optimum + 1e-7
    for tried in attempts(form, answer.slopes, seed=1):
        assert form.lower_bound(tried) <= optimum + 1e-7


@given(seed=st.integers(0, 10_000))
@settings(law, max_examples=25)
def test_weak_duality_for_smoothed_costs_too(make_affine, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(
        seed % 5, order=1 + seed % 2, smoothing=rng.choice([0.0, 0.1, 1.0]), weighted=True,
        intercept=bool(seed % 3), frozen=((), (2,))[seed % 4 == 0], radius=rng.exponential(),
        outcome_cost=rng.choice([math.inf, 1.0]), box=("closed", None)[seed % 5 > 0],
    )  # fmt: skip
    slopes = rng.uniform(-1.5, 1.0, size=len(form.weights))
    bound = form.lower_bound(slopes)
    for _ in range(5):
        theta, t = rng.normal(size=3) * rng.exponential(), rng.normal() if form.intercept else 0.0
        assert bound <= form.worst_value(theta, t)[0] + 1e-9


def test_the_dual_constraint_of_the_design_page(make_affine):
    # With an intercept: sum u = 0, ||X'u|| <= rho C; feasible slopes prove exactly -y'u.
    for order in (1, 2):
        form = make_affine(3, order=order, intercept=True)
        _, u = form.constant_order()
        form = form.at_radius(form.collapse_radius() * (1 + 1e-9))
        gain = -float((form.weights * u) @ form.outcomes)
        assert form.lower_bound(u) == pytest.approx(gain, rel=1e-8)
        # At half the radius half of the slopes can be paid for.
        half = form.at_radius(form.radius / 2)
        assert half.lower_bound(u) == pytest.approx(gain / 2, rel=1e-5)


def test_without_an_intercept_order_two_pays_with_the_mean_of_the_slopes(make_affine):
    form = make_affine(1, intercept=False, backorder=1.0, holding=0.2)
    u = np.full(len(form.weights), -0.6)
    price = np.linalg.norm(form.contexts.T @ (form.weights * u))
    affordable = price / math.sqrt(0.2 + (0.2 - 1.0) * -0.6)
    gain = 0.6 * float(form.weights @ form.outcomes)
    enough, short = form.at_radius(affordable * 1.0001), form.at_radius(affordable * 0.9)
    assert gain > 0
    assert enough.lower_bound(u) == pytest.approx(gain, rel=1e-6)
    assert short.lower_bound(u) < 0.99 * gain


@settings(derandomize=True, deadline=None)
@given(
    order=st.sampled_from([1, 2]),
    slope=st.floats(-1.0, 0.2),
    share=st.floats(0.01, 3.0),
    seed=st.integers(0, 20),
)
def test_the_largest_affordable_share_of_the_slopes_is_spent(make_affine, order, slope, share, seed):
    form = make_affine(seed, intercept=False, backorder=1.0, holding=0.2, order=order)
    u = np.clip(slope + np.random.default_rng(seed).normal(size=len(form.weights)), -1.0, 0.2)
    form = form.at_radius(share * form.collapse_radius())
    mean, price = float(form.weights @ u), float(np.linalg.norm(form.contexts.T @ (form.weights * u)))

    def left(part):  # what the ball has, less what so large a part of the slopes costs
        square = 1.0 if order == 1 else 0.2 + (0.2 - 1.0) * part * mean
        return form.radius * math.sqrt(square) - part * price

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle) >= 0.0 else (low, middle)
    most = 1.0 if left(1.0) >= 0.0 else low
    gain = -float((form.weights * u) @ form.outcomes)
    assert form.lower_bound(u) == pytest.approx(max(most * gain, 0.0), rel=1e-9, abs=1e-12)


def test_the_same_radius_is_the_same_form_and_another_keeps_what_rows_decide(make_affine):
    form = make_affine(1, radius=0.1)
    assert form.at_radius(form.radius * form.column_unit) is form
    order, floor = form.constant_order(), form.gap_floor
    other = form.at_radius(0.7)
    assert other.constant_order() is order
    assert other.gap_floor == floor
    assert other.radius == 0.7 / form.column_unit


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("share", [1e-4, 1e-3])
def test_slopes_that_are_nearly_right_prove_nearly_all_at_a_small_radius(
    make_affine, order, intercept, share
):
    # Shrinking them until a small budget pays for their imbalance would leave nearly nothing.
    form = make_affine(12, rows=25, order=order, intercept=intercept)
    form = form.at_radius(share * form.collapse_radius())
    answer = ConvexProgram().solve_form(form)
    optimum = form.worst_value(answer.theta, answer.intercept)[0]
    disturbed = answer.slopes + 0.01 * np.random.default_rng(0).normal(size=25)
    assert 0.97 * optimum <= form.lower_bound(disturbed) <= optimum + 1e-7


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("box", [None, "closed", "open"])
def test_useless_slopes_prove_zero_and_nothing_negative(make_affine, order, box):
    form = make_affine(3, order=order, box=box)
    assert form.lower_bound(np.zeros(8)) == 0.0
    backwards = -form.constant_order()[1]
    assert form.lower_bound(backwards) >= 0.0


# Costs of more than two lines


def robust_program(form):
    """The least worst case over all policies: (value, slopes), from CVXPY alone.

    Row i on line k pays what the line says, and for each move that the line wants: each column is
    pushed by w theta_j and held by its bounds (one multiplier each), and what is left of the push costs
    push^2 / (4 gamma) of order 2 and must be at most gamma of order 1.
    """
    n, s = form.contexts.shape
    theta, t, gamma, values = cp.Variable(s), cp.Variable(), cp.Variable(nonneg=True), cp.Variable(n)
    constraints, lines = [] if form.intercept else [t == 0], []
    for i in range(n):
        x, y = form.contexts[i], form.outcomes[i]
        for slope, level in zip(form.pieces.slopes, form.pieces.intercepts, strict=True):
            price = 0.0

            def held(push, low, high):
                nonlocal price
                for room, sign in ((high, 1.0), (low, -1.0)):
                    if np.isfinite(room):
                        multiplier = cp.Variable(nonneg=True)
                        price = price + sign * room * multiplier
                        push = push - sign * multiplier
                return push

            pushes = [
                held(slope * theta[j], form.lower[j] - x[j], form.upper[j] - x[j])
                for j in np.flatnonzero(form.movable)
            ]
            groups = [(cp.hstack(pushes), 1.0)]
            if math.isfinite(form.outcome_cost):
                room = form.outcome_lower[i] - y, form.outcome_upper[i] - y
                groups.append((held(cp.Constant([-slope]), *room), form.outcome_cost))
            for push, kappa in groups:
                if form.order == 1:
                    constraints.append(cp.norm(push) <= kappa * gamma)
                else:
                    price = price + cp.quad_over_lin(push, gamma) / (4.0 * kappa)
            lines.append(slope * (x @ theta + t - y) + level + price <= values[i])
    total = gamma * form.radius**form.order + form.weights @ values
    program = cp.Problem(cp.Minimize(total), constraints + lines)
    program.solve(solver="CLARABEL")
    masses = np.array([line.dual_value for line in lines], dtype=float).reshape(n, -1)
    slopes = masses @ np.array(form.pieces.slopes) / form.weights
    return float(program.value), (theta.value, float(t.value)), slopes


LINES = ["tiered", "flat", "salvage", "four"]
MANY = [
    pytest.param(
        11,
        lines,
        {"order": order, "box": box, "outcome_cost": kappa, "weighted": number % 2 == 0},
        (0.1, 0.5)[number // 2 % 2],
        id=f"{lines}-order{order}-{box or 'free'}-kappa{kappa}",
    )
    for number, (lines, order, box, kappa) in enumerate(itertools.product(LINES, ORDERS, BOXES, KAPPAS))
    # Plans of order 1 in a box are slow to build.
    if order == 2 or box is None or lines in ("tiered", "salvage")
] + [
    # A box stops rows at different places, so that lines drop out for some rows and not for others.
    pytest.param(8, "tiered", {"order": 2, "box": "closed", "outcome_cost": 1.5}, 1.5),
    pytest.param(
        12, "tiered", {"order": 2, "box": "closed", "outcome_cost": math.inf, "intercept": False}, 1.5
    ),
]


@pytest.fixture(scope="module")
def programmed(make_lines):
    """Return (form, optimum, slopes) of a problem, solved once by the program above."""

    @functools.cache
    def solve(seed, share, **options):
        form = make_lines(seed, rows=7, columns=2, **options)
        form = form.at_radius(share * form.collapse_radius())
        optimum, policy, slopes = robust_program(form)
        # The program and the worst case of its policy agree.
        assert form.worst_value(*policy)[0] == pytest.approx(optimum, abs=1e-6)
        return form, optimum, slopes

    return solve


@pytest.mark.sweep
@pytest.mark.parametrize(("seed", "lines", "options", "share"), MANY)
def test_no_slopes_prove_more_than_the_optimum_of_more_than_two_lines(
    programmed, seed, lines, options, share
):
    form, optimum, slopes = programmed(seed, share, lines=lines, **options)
    tries = [slopes, *attempts(form, slopes, seed=1), *attempts(form, slopes, seed=2)]
    slow = options["box"] is not None and options["order"] == 1
    for tried in tries[:2] if slow else tries:
        assert form.lower_bound(tried) <= optimum + 1e-6
    assert form.lower_bound(np.zeros(7)) >= form.pieces.least


FREE = [
    *itertools.product([11], LINES, ORDERS, KAPPAS, [0.1, 0.5], [{}]),
    # At these optima a line in the middle is about to drop out: rows sit on three lines at once.
    (0, "flat", 2, math.inf, 0.1, {"intercept": False}),
    (4, "salvage", 2, math.inf, 0.6, {}),
    (11, "tiered", 2, 1.5, 0.5, {"weighted": True}),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("seed", "lines", "order", "kappa", "share", "options"), FREE)
def test_the_right_slopes_prove_the_optimum_of_more_than_two_lines(
    programmed, seed, lines, order, kappa, share, options
):
    form, optimum, slopes = programmed(
        seed, share, lines=lines, order=order, outcome_cost=kappa, **options
    )
    assert form.tight
    assert form.lower_bound(slopes) >= optimum - 1e-4 * abs(optimum)


@pytest.mark.sweep
@pytest.mark.parametrize(("seed", "lines", "options", "share"), MANY)
def test_a_form_that_says_that_it_is_tight_is(programmed, seed, lines, options, share):
    form, optimum, slopes = programmed(seed, share, lines=lines, **options)
    if form.tight:
        assert form.lower_bound(slopes) >= optimum - 1e-4 * abs(optimum)


@given(seed=st.integers(0, 10_000), lines=st.sampled_from(LINES))
@settings(law, max_examples=10)
def test_weak_duality_for_more_than_two_lines(make_lines, seed, lines):
    rng = np.random.default_rng(seed)
    form = make_lines(
        seed % 5, lines=lines, order=1 + seed % 2, weighted=True, intercept=bool(seed % 3),
        frozen=((), (2,))[seed % 4 == 0], radius=rng.exponential(),
        outcome_cost=rng.choice([math.inf, 1.0]), box=("closed", None)[seed % 5 > 0],
    )  # fmt: skip
    bound = form.lower_bound(rng.uniform(-2.0, 2.0, size=len(form.weights)))
    for _ in range(5):
        theta, t = rng.normal(size=3) * rng.exponential(), rng.normal() if form.intercept else 0.0
        assert bound <= form.worst_value(theta, t)[0] + 1e-9


@pytest.mark.parametrize("seed", range(0, 4000, 1000))
def test_slopes_balance_to_the_last_digits_however_lopsided_costs_are(seed):
    """Newton's method alone creeps from kink to kink in one of five hundred cases."""
    for number in range(seed, seed + 1000):
        rng = np.random.default_rng(number)
        n, least = int(rng.integers(2, 60)), -(10 ** rng.uniform(-4, 4))
        slopes = np.clip(rng.normal(size=n) * 10 ** rng.uniform(-3, 1), least, 1.0)
        if number % 2:
            slopes = rng.choice([least, 1.0, rng.uniform(least, 1.0)], size=n)
        weights = rng.dirichlet(np.ones(n)) if number % 3 else np.full(n, 1.0 / n)
        found = with_mean(slopes, weights, (least, 1.0), 0.0)
        assert abs(weights @ found) <= 1e-14 * (1.0 - least), number
        assert least <= found.min() <= found.max() <= 1.0
