import math
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.ambiguity import Box
from surefoot.nominals import Empirical
from surefoot.problem import affine_forms
from tests.newsvendors import affine, prices, random_data, repeatable, seeds


@pytest.mark.parametrize(
    ("options", "boxed"),
    [
        ({}, False),
        ({"support": Box(-math.inf, math.inf)}, False),
        ({"support": Box(0, math.inf)}, True),
        ({"support": Box(-math.inf, 9)}, True),
        # Bounds where nothing moves hold nobody.
        ({"support": Box((0, -math.inf), math.inf), "frozen": (0,)}, False),
        ({"support": Box((0, -math.inf), math.inf), "frozen": (1,)}, True),
        ({"support": Box(-math.inf, math.inf, (0, 9))}, False),
        ({"support": Box(-math.inf, math.inf, (0, math.inf)), "outcome_cost": 2.0}, True),
        ({"support": Box(-math.inf, math.inf, (-math.inf, 9)), "outcome_cost": 2.0}, True),
    ],
)
def test_boxed_means_that_a_bound_can_stop_a_move(options, boxed):
    assert affine([[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0], **options).boxed is boxed


@pytest.mark.parametrize(
    ("order", "kappa", "norm"),
    [(1, math.inf, 5.0), (2, math.inf, 5.0), (1, 0.125, 8.0), (1, 1.0, 5.0), (2, 1 / 11, 6.0)],
)
def test_the_dual_norm_joins_contexts_and_outcome(order, kappa, norm):
    X = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 1.0], [0.0, 0.0, 3.0]])
    form = affine(X, [1.0, 2.0, 3.0], order=order, outcome_cost=kappa, frozen=(2,))
    assert form.dual_norm(np.array([3.0, -4.0, 100.0])) == pytest.approx(norm, rel=1e-14)
    assert form.inverse_kappa == (0.0 if kappa == math.inf else 1 / kappa)


@pytest.mark.parametrize(("order", "constant"), [(1, 1.0), (2, math.sqrt(0.2))])
def test_slope_constant(order, constant):
    form = affine([[1.0], [2.0]], [1.0, 2.0], order=order)
    assert form.slope_constant == pytest.approx(constant, rel=1e-14)
    assert affine([[1.0], [2.0]], [1.0, 2.0], order=1, b=0.2, h=3.0).slope_constant == 3.0


def test_another_radius_changes_nothing_else():
    form = affine([[1.0], [2.0]], [1.0, 2.0])
    other = form.at_radius(0.7)
    assert (form.radius, other.radius) == (0.3, 0.7)
    assert other.contexts is form.contexts


# The radius at which policies collapse to a constant


@repeatable
@given(seeds, prices, prices, st.booleans())
def test_collapse_radius_formula(seed, b, h, ties):
    X, y, weights = random_data(seed)
    y = np.round(y / 5) if ties else y
    one, two = (affine(X, y, weights, b=b, h=h, order=order) for order in (1, 2))
    # Section 3 of the design: ||X'u|| / (n G), on repeated rows and with X centred explicitly.
    Z, demand = np.repeat(X, weights, axis=0), np.repeat(y, weights)
    n = len(Z)
    quantile = np.sort(demand)[math.ceil(Fraction(b * n, b + h)) - 1]
    below, at, above = (demand < quantile), (demand == quantile), (demand > quantile)
    u = h * below - b * above + at * (b * above.sum() - h * below.sum()) / at.sum()
    assert u.sum() == pytest.approx(0, abs=1e-10)
    norm = np.linalg.norm(((Z - Z.mean(axis=0)) / Z.std(axis=0)).T @ u)
    assert one.collapse_radius() == pytest.approx(norm / (n * max(b, h)), rel=1e-9)
    assert two.collapse_radius() == pytest.approx(
        one.collapse_radius() * max(b, h) / math.sqrt(b * h), rel=1e-12
    )


def nominal_cost(form, theta):
    """The least mean cost of theta over intercepts: some residual is then zero."""
    costs = form.pieces.evaluate(
        form.residuals(theta, 0.0)[None, :] - form.residuals(theta, 0.0)[:, None]
    )
    return float((costs @ form.weights).min())


@repeatable
@given(seeds, st.sampled_from([1, 2]))
def test_policies_collapse_at_this_radius_and_not_before(seed, order):
    X, y, weights = random_data(seed)
    form = affine(X, y, weights, order=order)
    radius, constant = form.collapse_radius(), form.slope_constant

    def worst_case(theta, rho):
        # The closed form for a free support and a free intercept.
        return nominal_cost(form, theta) + rho * constant * np.linalg.norm(theta)

    at_zero = worst_case(np.zeros(3), radius)
    slopes = form.constant_order()[1]
    gradient = form.contexts.T @ (form.weights * slopes)
    downhill = -gradient / np.linalg.norm(gradient)
    for theta in (*np.random.default_rng(seed).normal(size=(5, 3)), downhill, 1e-3 * downhill):
        assert worst_case(theta, radius) >= at_zero - 1e-12
    # A step short enough to keep every row on its side of the quantile.
    gaps = np.abs(form.outcomes - form.constant_order()[0])
    step = 0.1 * gaps[gaps > 0].min() / np.abs(form.contexts @ downhill).max()
    assert worst_case(step * downhill, 0.9 * radius) < at_zero
    assert worst_case(step * downhill, 1.1 * radius) > at_zero


def test_columns_that_do_not_move_leave_the_collapse_radius_alone():
    X, y, _ = random_data(2)
    frozen = affine(X, y, frozen=(0,))
    assert frozen.collapse_radius() == pytest.approx(affine(X[:, 1:], y).collapse_radius(), rel=1e-12)


# Units

GEOMETRIES = [
    pytest.param(order, box, kappa, id=f"order{order}-{box or 'free'}-kappa{kappa}")
    for order in (1, 2)
    for box in (None, "closed", "open")
    for kappa in (math.inf, 2.0)
]


def in_other_units(problem, context, outcome, cost):
    """The same problem in units so many times smaller, the distance of the ball included."""
    nominal, ball, lines = problem.nominal, problem.ball, problem.cost.lines
    support = ball.support
    if support is not None:
        low, high = support.outcome
        support = Box(
            context * np.array(support.lower),
            context * np.array(support.upper),
            outcome=(outcome * low, outcome * high),
        )
    return replace(
        problem,
        cost=replace(problem.cost, lines=lines.scaled(1.0 / cost, 1.0 / outcome)),
        nominal=Empirical(context * nominal.contexts, outcome * nominal.outcomes, nominal.masses),
        ball=replace(
            ball,
            radius=context * ball.radius,
            outcome_cost=ball.outcome_cost * (context / outcome) ** ball.order,
            support=support,
        ),
    )


MULTIPLIER = 3  # its place among the answers
FACTORS = [(1e-5, 1.0, 1.0), (1.0, 1e6, 3.0), (3.0, 1e-5, 1e6), (1e6, 3.0, 1e-5), (1e6, 1e6, 1e6)]


@pytest.mark.sweep
@pytest.mark.parametrize("lines", ["newsvendor", "tiered"])
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
def test_value_adversary_and_lower_bound_follow_the_user_s_units(
    make_lines_problem, lines, order, box, kappa
):
    problem = make_lines_problem(
        3, lines=lines, order=order, box=box, outcome_cost=kappa, weighted=True
    )
    rng = np.random.default_rng(0)
    theta, t, slopes = rng.normal(size=3), 1.0, rng.uniform(-1.0, 1.0, size=8)

    def answers(context, outcome, cost):
        """What is said of the same policy, back in the first units."""
        (form,) = affine_forms(in_other_units(problem, context, outcome, cost))
        policy = form.from_user_units(theta * outcome / context, t * outcome)
        unit, money = form.outcome_unit / outcome, form.value_unit / (outcome * cost)
        value, gamma = form.worst_value(*policy)
        worst = form.adversary(*policy)
        assert (worst.value, worst.multiplier[0]) == (value, gamma)
        lower = form.lower_bound(slopes * cost / form.cost_unit)
        length = form.column_unit / context
        return [
            money * lower, money * value, money * worst.expected_cost,
            gamma * money / length**order, worst.transport_cost[0] * length**order,
            *(worst.weights @ worst.contexts * form.scale / context),
            worst.weights @ worst.outcomes * unit, form.collapse_radius() / context,
            form.gap_floor * money, form.constant_order()[0] * unit,
        ]  # fmt: skip

    plain = answers(1.0, 1.0, 1.0)
    slow = order == 1 and box is not None
    for factors in FACTORS[2:4] if slow else FACTORS:
        found = answers(*factors)
        np.testing.assert_allclose(found, plain, rtol=1e-6, atol=1e-9)
        # Shares of slopes are halved until a millionth is left, and the value hardly changes with the
        # multiplier near its best; other numbers are what they are.
        kept = [k for k in range(1, len(plain)) if k != MULTIPLIER]
        np.testing.assert_allclose(np.take(found, kept), np.take(plain, kept), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
def test_powers_of_two_change_no_digit_of_a_form(make_lines_problem, order, box, kappa):
    problem = make_lines_problem(3, lines="tiered", order=order, box=box, outcome_cost=kappa)
    (one,) = affine_forms(problem)
    (other,) = affine_forms(in_other_units(problem, 2.0**-9, 2.0**20, 2.0**5))
    assert other.column_unit == one.column_unit * 2.0**-9
    assert other.outcome_unit == one.outcome_unit * 2.0**20
    assert other.cost_unit == one.cost_unit * 2.0**5
    units = {"column_unit", "outcome_unit", "cost_unit", "scale"}
    for field in fields(one):
        if field.name not in units:
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
def test_plain_units_are_the_ball_s_and_the_user_s(make_lines_problem, order, box, kappa):
    problem = in_other_units(
        make_lines_problem(3, lines="tiered", order=order, box=box, outcome_cost=kappa, scale=False),
        40.0, 300.0, 7.0,
    )  # fmt: skip
    (form,) = affine_forms(problem)
    assert min(form.column_unit, form.outcome_unit, form.cost_unit) > 1.0
    plain = form.in_plain_units()
    assert (plain.column_unit, plain.outcome_unit, plain.cost_unit) == (1.0, 1.0, 1.0)
    rows = problem.nominal.distinct()
    np.testing.assert_array_equal(plain.contexts, rows.contexts)
    np.testing.assert_array_equal(plain.outcomes, rows.outcomes[:, 0])
    np.testing.assert_array_equal(plain.scale, np.ones(3))
    assert plain.pieces == problem.cost.lines
    assert plain.radius == problem.radius
    assert plain.outcome_cost == problem.ball.outcome_cost
    if box is not None:
        np.testing.assert_array_equal(plain.lower, problem.ball.support.lower)
        np.testing.assert_array_equal(plain.upper, problem.ball.support.upper)
        assert set(plain.outcome_lower) == {problem.ball.support.outcome[0]}
        assert set(plain.outcome_upper) == {problem.ball.support.outcome[1]}
    # Values, policies and radii mean the same.
    theta, t = np.array([0.3, -0.5, 0.7]), 0.4
    user = form.in_user_units(theta, t)
    there = plain.from_user_units(*user)
    for one, other in zip(form.from_user_units(*user), (theta, t), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)
    assert plain.worst_value(*there)[0] == pytest.approx(
        form.worst_value(theta, t)[0] * form.value_unit, rel=1e-12
    )
    assert plain.collapse_radius() == pytest.approx(form.collapse_radius(), rel=1e-14)
    assert form.collapse_radius() == form.largest_radius * form.column_unit
    assert form.at_radius(3.0).radius * form.column_unit == plain.at_radius(3.0).radius == 3.0
    assert form.at_radius(problem.radius).radius == form.radius


def test_what_a_kernel_needs_is_in_the_units_of_the_form(make_affine):
    form = make_affine(1, box="open", outcome_cost=4.0, order=1)
    geometry = form.geometry
    assert geometry.slopes.tolist() == [-1.0, 0.3]
    assert geometry.intercepts.tolist() == [0.0, 0.0]
    assert (geometry.radius, geometry.order, geometry.inverse_kappa) == (0.3, 1, 0.25)
    assert geometry.boxed is True
    np.testing.assert_array_equal(geometry.lower, form.lower)
    np.testing.assert_array_equal(geometry.upper, form.upper)
    assert form.budget == 0.3
    assert make_affine(1).budget == pytest.approx(0.09)
