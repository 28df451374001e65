import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.ambiguity import Box, WassersteinBall
from surefoot.costs import ConvexPiecewiseCost, Cost, Newsvendor, Pieces
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import Linear, LinearParameters, Policy
from surefoot.problem import Problem, affine_forms, form_policies, user_parameters, why_not_affine
from surefoot.sets import Budget, Simplex
from tests.newsvendors import affine, describe, random_data, repeatable, seeds


@repeatable
@given(seeds, st.booleans(), st.booleans())
def test_parameters_in_the_user_s_units_decide_as_the_scaled_ones(seed, scale, squares):
    X, y, weights = random_data(seed)
    rng = np.random.default_rng(seed)
    policy = Linear(features=(lambda X: np.hstack([X, X**2])) if squares else None)
    described = Problem(
        Newsvendor([1.0, 2.0], 0.2), policy, Empirical(X, np.column_stack([y, -y]), weights),
        WassersteinBall(0.3, scale=scale),
    )  # fmt: skip
    forms = affine_forms(described)
    columns = forms[0].contexts.shape[1]
    solutions = tuple((rng.normal(size=columns), float(rng.normal())) for _ in forms)
    parameters = user_parameters(forms, solutions)
    assert parameters.theta.shape == (columns, 2)
    decisions = policy.decide(parameters, described.nominal.distinct().contexts)
    for j, (form, (theta, t)) in enumerate(zip(forms, solutions, strict=True)):
        expected = (form.residuals(theta, t) + form.outcomes) * form.outcome_unit
        np.testing.assert_allclose(decisions[:, j], expected, rtol=1e-9, atol=1e-9)


def test_every_product_has_its_own_form():
    X, y, _ = random_data(1)
    described = Problem(
        Newsvendor([1.0, 2.0], [0.2, 0.3], smoothing=0.1), Linear(intercept=False),
        Empirical(X, np.column_stack([y, 2 * y])), WassersteinBall(0.4, order=1, outcome_cost=5.0),
    )  # fmt: skip
    first, second = (form.in_plain_units() for form in affine_forms(described))
    assert first.pieces == Pieces.kinked(up=0.2, down=1.0, smoothing=0.1)
    assert second.pieces == Pieces.kinked(up=0.3, down=2.0, smoothing=0.1)
    np.testing.assert_array_equal(second.outcomes, 2 * first.outcomes)
    np.testing.assert_array_equal(second.contexts, first.contexts)
    for form in (first, second):
        assert (form.radius, form.order, form.outcome_cost) == (0.4, 1, 5.0)
        assert form.intercept is False
        assert form.outcomes.shape == form.weights.shape == (30,)


@repeatable
@given(seeds)
def test_weights_repetitions_and_row_order_do_not_matter(seed):
    X, y, weights = random_data(seed, rows=12)
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(12), weights))
    one, other = affine(X, y, weights), affine(X[rows], y[rows])
    for name in ("contexts", "outcomes", "weights", "scale"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_rows_stay_as_they_came_without_merging():
    X, y, weights = np.array([[4.0], [1.0], [4.0]]), np.array([2.0, 1.0, 2.0]), [1, 2, 1]
    (form,) = affine_forms(describe(X, y, weights, scale=False), merge=False)
    form = form.in_plain_units()
    np.testing.assert_array_equal(form.contexts, X)
    np.testing.assert_array_equal(form.outcomes, y)
    np.testing.assert_array_equal(form.weights, [0.25, 0.5, 0.25])
    merged = affine(X, y, weights, scale=False)
    assert merged.contexts.tolist() == [[1.0], [4.0]]
    assert merged.weights.tolist() == [0.5, 0.5]


def test_features_are_what_the_ball_speaks_of():
    policy = Linear(features=lambda X: np.hstack([X, X**2]))
    X = np.array([[1.0], [3.0]])
    form = affine(X, [1.0, 2.0], policy=policy, frozen=(1,), support=Box(0, (3, 9)), scale=False)
    np.testing.assert_array_equal(form.contexts, [[1, 1], [3, 9]])
    assert form.movable.tolist() == [True, False]
    with pytest.raises(InvalidInputError, match=r"^support must contain every context, got column 1"):
        affine(X, [1.0, 2.0], policy=policy, support=Box(0, (3, 8)))


class OtherPolicy(Policy):
    def initial(self, rng, n_columns, n_decisions):
        return {}

    def raw(self, trained, units, inputs, xp):
        return inputs


class OtherCost(Cost):
    def evaluate(self, decisions, outcomes, xp=np):
        return ((decisions - outcomes) ** 2).sum(axis=1)


class OtherNominal(Nominal):
    n_columns = n_products = 1

    def sample(self, rng, size):
        return np.zeros((size, 1)), np.zeros((size, 1))


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"policy": OtherPolicy()}, "it needs a Linear policy, got OtherPolicy"),
        ({"cost": OtherCost()}, "it needs a piecewise linear cost such as Newsvendor, got OtherCost"),
        ({"nominal": OtherNominal()}, "it needs an Empirical nominal, got OtherNominal"),
    ],
)
def test_problems_without_an_affine_form_say_why(part, reason):
    parts = {
        "cost": Newsvendor(1.0, 0.2), "policy": Linear(), "nominal": Empirical([[1.0]], [2.0]),
        "ball": WassersteinBall(0.3),
    }  # fmt: skip
    assert why_not_affine(Problem(**parts)) is None
    problem = Problem(**{**parts, **part})
    # A nominal without rows has forms on rows drawn from it, and none of its own.
    assert why_not_affine(problem) == (None if "nominal" in part else reason)
    message = f"The problem has no affine form: {reason}."
    with pytest.raises(UnsupportedProblemError, match=f"^{re.escape(message)}$"):
        affine_forms(problem)


# Units


@pytest.mark.parametrize("size", [1e-12, 1e-5, 0.3, 1.0, 3.0, 1e6, 1e90])
def test_units_are_powers_of_two_near_the_size_of_outcomes_and_costs(size):
    X, y, weights = random_data(5)
    (form,) = affine_forms(describe(X, size * y + 7.0 * size, weights, b=2.0 / size, h=0.3 / size))
    spread = np.sqrt(np.cov(size * y, aweights=weights, ddof=0))
    for unit, near in ((form.outcome_unit, spread), (form.cost_unit, 2.0 / size)):
        assert math.frexp(unit)[0] == 0.5
        assert 2**-0.51 <= near / unit <= 2**0.51
    assert form.value_unit == form.cost_unit * form.outcome_unit
    # The numbers of the form are of the size of one, and no digit of an outcome is lost.
    assert 0.7 <= form.pieces.steepest <= 1.42
    assert 0.7 <= np.sqrt(form.weights @ (form.outcomes - form.weights @ form.outcomes) ** 2) <= 1.42
    np.testing.assert_array_equal(form.outcomes * form.outcome_unit, np.sort(size * y + 7.0 * size))


def test_equal_outcomes_are_measured_by_their_size():
    X = np.array([[1.0], [2.0]])
    assert affine_forms(describe(X, [100.0, 100.0]))[0].outcome_unit == 128.0
    assert affine_forms(describe(X, [-0.3, -0.3]))[0].outcome_unit == 0.25
    assert affine_forms(describe(X, [0.0, 0.0]))[0].outcome_unit == 1.0


def test_every_product_has_units_of_its_own_and_shares_those_of_columns():
    X, y, _ = random_data(5)
    described = Problem(
        Newsvendor([1.0, 64.0], [0.2, 0.3]), Linear(), Empirical(X, np.column_stack([y, 1024 * y])),
        WassersteinBall(0.4),
    )  # fmt: skip
    first, second = affine_forms(described)
    assert second.outcome_unit == 1024 * first.outcome_unit
    assert second.cost_unit == 64 * first.cost_unit
    assert second.column_unit == first.column_unit
    np.testing.assert_array_equal(second.outcomes, first.outcomes)
    np.testing.assert_array_equal(second.scale, first.scale)


@repeatable
@given(seeds, st.booleans())
def test_policies_come_back_from_the_user_s_units(seed, scale):
    X, y, weights = random_data(seed)
    rng = np.random.default_rng(seed)
    described = Problem(
        Newsvendor([1.0, 2.0], 0.2), Linear(), Empirical(X, np.column_stack([y, 500 * y]), weights),
        WassersteinBall(0.3, scale=scale),
    )  # fmt: skip
    forms = affine_forms(described)
    policies = tuple((rng.normal(size=3), float(rng.normal())) for _ in forms)
    again = form_policies(forms, user_parameters(forms, policies))
    for (theta, t), (theta_again, t_again) in zip(policies, again, strict=True):
        np.testing.assert_allclose(theta_again, theta, rtol=1e-14)
        assert t_again == t


# Offsets


def bend(X):
    return np.column_stack([X[:, 0] ** 2, 3.0 * X[:, 0] ** 2])


def with_offset(offsets=None, merge=True, **options):
    """Two products whose policy starts from a bend; rows and forms in the user's units."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(9, 2))
    y = bend(X) + rng.normal(size=(9, 2)) + 5.0
    nominal = Empirical(X, y, offsets=offsets)
    ball = WassersteinBall(0.3, scale=False, **options)
    problem = Problem(Newsvendor([1.0, 3.0], 0.2), Linear(offset=bend), nominal, ball)
    return X, y, [form.in_plain_units() for form in affine_forms(problem, merge=merge)]


@pytest.mark.parametrize("merge", [True, False])
def test_a_policy_with_an_offset_is_asked_for_what_it_leaves_over(merge):
    X, y, forms = with_offset(merge=merge)
    errors = y - bend(X)
    # Rows that bring no offsets are merged and ordered as ever, by their outcomes.
    order = np.argsort(y[:, 0]) if merge else np.arange(9)
    for j, form in enumerate(forms):
        np.testing.assert_allclose(form.outcomes, errors[order, j], rtol=1e-13)
        np.testing.assert_array_equal(form.offsets, bend(X)[order, j])
        np.testing.assert_array_equal(form.contexts, X[order])
    theta, t = np.array([0.5, -1.0]), 0.7
    decisions = Linear(offset=bend).decide(LinearParameters(theta[:, None], np.array([t, t])), X[order])
    expected = decisions - y[order]
    for j, form in enumerate(forms):
        np.testing.assert_allclose(form.residuals(theta, t), expected[:, j], rtol=1e-12, atol=1e-12)


def test_honest_offsets_of_the_rows_take_the_place_of_the_policy_s():
    honest = np.arange(18.0).reshape(9, 2)
    X, y, forms = with_offset(offsets=honest)
    order = np.argsort(y[:, 0] - honest[:, 0])
    for j, form in enumerate(forms):
        np.testing.assert_allclose(form.outcomes, (y - honest)[order, j], rtol=1e-13)
        np.testing.assert_array_equal(form.offsets, honest[order, j])
        np.testing.assert_array_equal(form.contexts, X[order])


def test_units_are_those_of_what_an_offset_leaves_over():
    X, y, _ = random_data(6)
    nominal = Empirical(X, 1e9 + y, offsets=np.full(30, 1e9))
    problem = Problem(Newsvendor(1.0, 0.2), Linear(offset=bend), nominal, WassersteinBall(0.3))
    (form,) = affine_forms(problem)
    assert form.outcome_unit == affine_forms(describe(X, y))[0].outcome_unit
    np.testing.assert_array_equal(form.offsets * form.outcome_unit, 1e9)


@pytest.mark.parametrize("order", [1, 2])
def test_bounds_on_outcomes_leave_each_row_what_its_offset_leaves(order):
    support = Box(-9, 9, outcome=(-20.0, math.inf))
    _, y, forms = with_offset(outcome_cost=2.0, support=support, order=order)
    for j, form in enumerate(forms):
        np.testing.assert_allclose(form.outcome_lower + form.offsets, -20.0, rtol=1e-13)
        assert np.isinf(form.outcome_upper).all()
        assert len(set(form.outcome_lower)) == 9
        assert (form.outcome_lower <= form.outcomes).all()
        # No atom's outcome, offset included, leaves the support.
        theta, t = np.array([0.5, -1.0]), 0.7
        worst = form.at_radius(50.0).adversary(theta, t)
        outcomes = worst.outcomes + form.offsets[worst.rows]
        assert outcomes.min() >= -20.0 - 1e-9
        part = form.subset(np.array([3, 1]))
        np.testing.assert_array_equal(part.offsets, form.offsets[[3, 1]])
        np.testing.assert_array_equal(part.outcome_lower, form.outcome_lower[[3, 1]])
        np.testing.assert_allclose(sorted(y[:, j]), sorted(form.outcomes + form.offsets), rtol=1e-13)


@pytest.mark.parametrize("order", [1, 2])
def test_the_worst_case_around_an_offset_is_that_of_the_errors(order):
    _, _, forms = with_offset(order=order)
    for form in forms:
        bare = replace(form, offsets=np.zeros(9))
        theta, t = np.array([0.5, -1.0]), 0.7
        assert form.worst_value(theta, t) == bare.worst_value(theta, t)
        slopes = form.constant_order()[1]
        assert form.lower_bound(slopes) == bare.lower_bound(slopes)


def test_limits_cut_outcomes_before_the_offset_is_taken_off():
    X = np.arange(4.0)[:, None]
    y, offset = np.array([-2.0, 1.0, 3.0, 9.0]), np.array([1.0, 0.0, 4.0, 2.0])
    policy = Linear(decisions=Box(0, 5), offset=lambda X: offset[X[:, 0].astype(int)])
    problem = describe(X, y, b=1.0, h=0.25, policy=policy, scale=False)
    (form,) = affine_forms(problem, merge=False)
    np.testing.assert_array_equal(
        form.outcomes * form.outcome_unit, np.array([0.0, 1.0, 3.0, 5.0]) - offset
    )
    assert form.unavoidable * form.value_unit == pytest.approx((0.25 * 2 + 1.0 * 4) / 4)
    # The affine problem on cut outcomes bounds the cost of the cut policy.
    theta, t = np.array([0.8]), -0.5
    decisions = policy.decide(LinearParameters(theta[:, None], np.array([t])), X)[:, 0]
    cut = np.mean(np.where(decisions >= y, 0.25 * (decisions - y), y - decisions))
    bound = form.mean_cost(form.residuals(*form.from_user_units(theta, t))) + form.unavoidable
    assert cut <= bound * form.value_unit + 1e-12


# Limits on decisions


def limited(limits, y, **options):
    return affine(
        np.arange(float(len(y)))[:, None], y, policy=Linear(decisions=limits), scale=False, **options
    )


def test_outcomes_are_cut_to_the_limits_and_what_that_leaves_is_unavoidable():
    y = np.array([-2.0, 1.0, 3.0, 9.0])
    form = limited(Box(0, 5), y, b=1.0, h=0.25)
    assert sorted(form.outcomes) == [0.0, 1.0, 3.0, 5.0]
    assert form.limited
    # The best decisions within the limits still cost h 2 in the first row and b 4 in the last.
    assert form.unavoidable == pytest.approx((0.25 * 2 + 1.0 * 4) / 4)
    free = affine(np.arange(4.0)[:, None], y)
    assert (free.limited, free.unavoidable) == (False, 0.0)
    wide = limited(Box(-math.inf, 99), y)
    assert wide.limited
    assert wide.unavoidable == 0.0


@repeatable
@given(seeds)
def test_cutting_outcomes_splits_the_cost_of_every_decision_within_the_limits(seed):
    rng = np.random.default_rng(seed)
    y, low = rng.normal(size=12), -rng.uniform(0, 1)
    limits = Box(low, low + rng.uniform(0, 2))
    form = limited(limits, y, b=2.0, h=0.5)
    pieces = form.pieces
    for z in np.linspace(limits.lower, limits.upper, 5):
        split = form.weights @ pieces.evaluate(z - form.outcomes) + form.unavoidable
        assert split == pytest.approx(np.mean(pieces.evaluate(z - y)), rel=1e-12)
    # A decision beyond the limits costs no less than where it is cut to.
    for z in rng.normal(size=5) * 3:
        beyond, cut = (pieces.evaluate(d - form.outcomes) for d in (z, limits.map_into(z)))
        assert (cut <= beyond + 1e-12).all()


def test_each_product_has_its_own_limits():
    described = Problem(
        Newsvendor(1.0, 0.2), Linear(decisions=Box((0, 2), (4, math.inf))),
        Empirical([[1.0], [2.0]], [[5.0, 1.0], [3.0, 3.0]]), WassersteinBall(0.3),
    )  # fmt: skip
    first, second = (form.in_plain_units() for form in affine_forms(described))
    assert sorted(first.outcomes) == [3.0, 4.0]
    assert sorted(second.outcomes) == [2.0, 3.0]
    assert first.unavoidable == pytest.approx(0.5 * 1.0 * 1.0)
    assert second.unavoidable == pytest.approx(0.5 * 0.2 * 1.0)


def test_a_wrong_number_of_limits_is_refused():
    message = "lower of the decisions' Box must be one number or one per decision (1), got 2 numbers."
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        limited(Box((0, 0), 9), np.ones(3))


@pytest.mark.parametrize(
    ("limits", "ball", "reason"),
    [
        (Budget(3.0), {}, "it needs decisions limited one by one (a Box), got Budget"),
        (Simplex(), {}, "it needs decisions limited one by one (a Box), got Simplex"),
        (
            Box(0, 9),
            {"outcome_cost": 2.0},
            "it needs outcome_cost=inf where decisions have limits, got a finite one",
        ),
        (Box(0, 9), {}, None),
    ],
)
def test_other_limits_have_no_affine_form(limits, ball, reason):
    problem = describe([[1.0], [2.0]], [1.0, 2.0], policy=Linear(decisions=limits), **ball)
    assert why_not_affine(problem) == reason


class Tiered(ConvexPiecewiseCost):
    def pieces(self, n_products):
        return (Pieces((-2.0, -1.0, 0.5), (-1.0, 0.0, 0.0)),) * n_products


@pytest.mark.parametrize("cost", [Tiered(), Newsvendor(1.0, 0.2, smoothing=0.1)])
def test_limits_need_two_sharp_lines(cost):
    problem = Problem(
        cost, Linear(decisions=Box(0, 9)), Empirical([[1.0]], [2.0]), WassersteinBall(0.3)
    )
    reason = "it needs a cost of two lines without smoothing where decisions have limits"
    assert why_not_affine(problem) == reason
    assert why_not_affine(replace(problem, policy=Linear())) is None
