import math
import re
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.ambiguity import Box, WassersteinBall
from surefoot.costs import Cost, Newsvendor, Pieces
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import Linear, Policy
from surefoot.problem import (
    Problem,
    affine_problems,
    column_spread,
    user_parameters,
    why_not_affine,
)
from surefoot.sets import Budget, Simplex

repeatable = settings(
    derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
seeds = st.integers(0, 2**32)
prices = st.integers(1, 9)


def describe(X, y, weights=None, *, b=1.0, h=0.2, policy=None, radius=0.3, **options):
    return Problem(
        Newsvendor(b, h),
        policy or Linear(),
        Empirical(X, y, weights),
        WassersteinBall(radius, **options),
    )


def affine(X, y, weights=None, **options):
    (problem,) = affine_problems(describe(X, y, weights, **options))
    return problem


def random_data(seed, rows=30, columns=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(
        loc=rng.normal(size=columns), scale=rng.uniform(0.1, 10, columns), size=(rows, columns)
    )
    return X, X @ rng.normal(size=columns) + rng.normal(size=rows), rng.integers(1, 5, rows)


# Scaling


@repeatable
@given(seeds)
def test_the_scale_is_the_weighted_standard_deviation(seed):
    X, _, weights = random_data(seed)
    expected = np.sqrt(np.diag(np.cov(X.T, ddof=0, aweights=weights)))
    np.testing.assert_allclose(column_spread(X, weights / weights.sum()), expected, rtol=1e-12)
    np.testing.assert_allclose(
        column_spread(X, weights / weights.sum()),
        np.repeat(X, weights, axis=0).std(axis=0),
        rtol=1e-12,
    )


def test_constant_columns_have_no_spread():
    X = np.array([[5.0, 0.0, 1.0], [5.0, 0.0, 3.0]])
    half = np.full(2, 0.5)
    assert column_spread(X, half).tolist() == [0.0, 0.0, 1.0]
    assert column_spread(3 * X, half).tolist() == [0.0, 0.0, 3.0]


def test_constant_columns_and_unscaled_columns_have_scale_one():
    X, y = np.array([[5.0, 0.0, 3.0], [5.0, 0.0, 9.0]]), np.array([1.0, 2.0])
    assert affine(X, y).scale.tolist() == [1.0, 1.0, 3.0]
    assert affine(X, y, scale=False).scale.tolist() == [1.0, 1.0, 1.0]


def test_rounding_does_not_make_a_column_vary():
    X = np.array([[0.1 + 0.2, 0.3, 1e-9], [0.3, 0.3 * (1 + 1e-9), 2e-9]])
    assert X[0, 0] != X[1, 0]
    np.testing.assert_allclose(column_spread(X, np.full(2, 0.5)), [0.0, 1.5e-10, 5e-10], rtol=1e-6)


@pytest.mark.parametrize("size", [1e-170, 1e170])
def test_the_spread_neither_overflows_nor_vanishes(size):
    X = size * np.array([[1.0], [2.0]])
    np.testing.assert_allclose(column_spread(X, np.full(2, 0.5)), [0.5 * size], rtol=1e-12)


@repeatable
@given(seeds)
def test_scaled_contexts_have_no_units(seed):
    X, y, weights = random_data(seed)
    units = np.array([1e-3, 1.0, 4096.0])
    one, other = affine(X, y, weights), affine(X * units, y, weights)
    np.testing.assert_allclose(one.contexts, other.contexts, rtol=1e-12)
    np.testing.assert_allclose(other.scale, one.scale * units, rtol=1e-12)
    spread = np.sqrt(one.weights @ (one.contexts - one.weights @ one.contexts) ** 2)
    np.testing.assert_allclose(spread, 1.0, rtol=1e-12)


def test_unscaled_contexts_keep_their_units():
    X, y, _ = random_data(0)
    problem = affine(X, y, scale=False)
    nominal = Empirical(X, y).distinct()
    np.testing.assert_array_equal(problem.contexts, nominal.contexts)
    np.testing.assert_array_equal(problem.scale, np.ones(3))


@pytest.mark.parametrize("scale", [True, False])
def test_constant_columns_move_only_in_the_user_s_own_units(scale):
    X = np.array([[1.0, 7.0], [2.0, 7.0], [4.0, 7.0]])
    problem = affine(X, [1.0, 2.0, 3.0], scale=scale)
    assert problem.movable.tolist() == [True, not scale]
    assert problem.scale[1] == 1.0


def test_only_rows_with_weight_make_a_column_vary():
    X = np.array([[1.0, 7.0], [2.0, 7.0], [4.0, 9.0]])
    assert affine(X, [1.0, 2.0, 3.0], [1, 1, 0]).movable.tolist() == [True, False]
    assert affine(X, [1.0, 2.0, 3.0], [1, 1, 1]).movable.tolist() == [True, True]


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
    problems = affine_problems(described)
    columns = problems[0].contexts.shape[1]
    solutions = tuple((rng.normal(size=columns), float(rng.normal())) for _ in problems)
    parameters = user_parameters(problems, solutions)
    assert parameters.theta.shape == (columns, 2)
    decisions = policy.decide(parameters, described.nominal.distinct().contexts)
    for j, (problem, (theta, t)) in enumerate(zip(problems, solutions, strict=True)):
        expected = problem.residuals(theta, t) + problem.outcomes
        np.testing.assert_allclose(decisions[:, j], expected, rtol=1e-9, atol=1e-9)


def test_an_earlier_fit_lends_its_scale_and_columns():
    X, y, _ = random_data(0)
    earlier = affine(X, y, frozen=(0,))
    (later,) = affine_problems(describe(X[:2], y[:2]), scale=earlier.scale, movable=earlier.movable)
    np.testing.assert_array_equal(later.scale, earlier.scale)
    np.testing.assert_array_equal(later.movable, [False, True, True])
    assert {tuple(row) for row in later.contexts} == {tuple(row) for row in X[:2] / earlier.scale}


# The affine form


def test_every_product_has_its_own_problem():
    X, y, _ = random_data(1)
    described = Problem(
        Newsvendor([1.0, 2.0], [0.2, 0.3], smoothing=0.1), Linear(intercept=False),
        Empirical(X, np.column_stack([y, 2 * y])), WassersteinBall(0.4, order=1, outcome_cost=5.0),
    )  # fmt: skip
    first, second = affine_problems(described)
    assert first.pieces == Pieces(up=0.2, down=1.0, smoothing=0.1)
    assert second.pieces == Pieces(up=0.3, down=2.0, smoothing=0.1)
    np.testing.assert_array_equal(second.outcomes, 2 * first.outcomes)
    np.testing.assert_array_equal(second.contexts, first.contexts)
    for problem in (first, second):
        assert (problem.radius, problem.order, problem.outcome_cost) == (0.4, 1, 5.0)
        assert problem.intercept is False
        assert problem.outcomes.shape == problem.weights.shape == (30,)


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
    (problem,) = affine_problems(describe(X, y, weights, scale=False), merge=False)
    np.testing.assert_array_equal(problem.contexts, X)
    np.testing.assert_array_equal(problem.outcomes, y)
    np.testing.assert_array_equal(problem.weights, [0.25, 0.5, 0.25])
    merged = affine(X, y, weights, scale=False)
    assert merged.contexts.tolist() == [[1.0], [4.0]]
    assert merged.weights.tolist() == [0.5, 0.5]


def test_frozen_columns_do_not_move():
    frame = pd.DataFrame(
        {"price": [1.0, 2.0, 4.0], "holiday": [0.0, 1.0, 1.0], "heat": [3.0, 1.0, 2.0]}
    )
    y = [1.0, 2.0, 3.0]
    assert affine(frame, y, frozen=("holiday",)).movable.tolist() == [True, False, True]
    assert affine(frame.to_numpy(), y, frozen=(1, -1)).movable.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frozen": ("rain",)}, "frozen must name columns of X (price, heat), got 'rain'."),
        ({"frozen": (2,)}, "frozen must hold column names or positions below 2, got 2."),
        (
            {"support": Box((0, 0, 0), 9)},
            "lower must be one number or one per column (2), got 3 numbers.",
        ),
        (
            {"support": Box((0, 2), 9)},
            "support must contain every context, got column 1 with values in [1, 3] and a box [2, 9].",
        ),
        (
            {"support": Box(0, (3.5, 3))},
            "support must contain every context, "
            "got column 0 with values in [1, 4] and a box [0, 3.5].",
        ),
        (
            {"support": Box(0, 9, outcome=(1.5, 9)), "outcome_cost": 1.0},
            "support must contain every outcome, got values in [1, 3] and bounds [1.5, 9].",
        ),
        (
            {"support": Box(0, 9, outcome=(0, 2.5)), "outcome_cost": 1.0},
            "support must contain every outcome, got values in [1, 3] and bounds [0, 2.5].",
        ),
    ],
)
def test_balls_that_do_not_fit_the_data_are_refused(options, message):
    frame = pd.DataFrame({"price": [1.0, 2.0, 4.0], "heat": [3.0, 1.0, 2.0]})
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        affine(frame, [1.0, 2.0, 3.0], **options)


def test_names_without_a_frame_are_refused():
    with pytest.raises(InvalidInputError, match=r"^frozen names the column 'price', but X has no"):
        affine([[1.0], [2.0]], [1.0, 2.0], frozen=("price",))
    # A map of features leaves no names behind.
    policy, X = Linear(features=lambda X: X**2), pd.DataFrame({"price": [1.0, 2.0]})
    with pytest.raises(InvalidInputError, match=r"^frozen must hold positions of features .*'price'"):
        affine(X, [1.0, 2.0], policy=policy, frozen=("price",))


def test_a_box_on_its_border_is_welcome_and_scaled_with_the_contexts():
    X = np.array([[1.0, 10.0], [3.0, 30.0]])
    problem = affine(X, [1.0, 2.0], support=Box((-math.inf, 10), (3, 35)))
    assert problem.scale.tolist() == [1.0, 10.0]
    np.testing.assert_array_equal(problem.lower, [-math.inf, 1.0])
    np.testing.assert_array_equal(problem.upper, [3.0, 3.5])
    assert (problem.contexts <= problem.upper).all()
    assert (problem.contexts >= problem.lower).all()


def test_bounds_on_outcomes_that_cannot_move_are_not_checked():
    problem = affine([[1.0], [2.0]], [1.0, 2.0], support=Box(0, 9, outcome=(5, 6)))
    assert problem.outcome_bounds == (5.0, 6.0)


def test_features_are_what_the_ball_speaks_of():
    policy = Linear(features=lambda X: np.hstack([X, X**2]))
    X = np.array([[1.0], [3.0]])
    problem = affine(X, [1.0, 2.0], policy=policy, frozen=(1,), support=Box(0, (3, 9)), scale=False)
    np.testing.assert_array_equal(problem.contexts, [[1, 1], [3, 9]])
    assert problem.movable.tolist() == [True, False]
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
        ({"cost": OtherCost()}, "it needs a kinked cost such as Newsvendor, got OtherCost"),
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
    assert why_not_affine(problem) == reason
    message = f"The problem has no affine form: {reason}."
    with pytest.raises(UnsupportedProblemError, match=f"^{re.escape(message)}$"):
        affine_problems(problem)


# Properties of an affine problem


def test_immutable():
    problem = affine([[1.0], [2.0]], [1.0, 2.0])
    for name in ("radius", "contexts", "movable"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(problem, name, None)


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
    ("order", "kappa", "reach"),
    [(1, math.inf, 5.0), (2, math.inf, 5.0), (1, 0.125, 8.0), (1, 1.0, 5.0), (2, 1 / 11, 6.0)],
)
def test_reach_joins_contexts_and_outcome(order, kappa, reach):
    X = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 1.0], [0.0, 0.0, 3.0]])
    problem = affine(X, [1.0, 2.0, 3.0], order=order, outcome_cost=kappa, frozen=(2,))
    assert problem.reach(np.array([3.0, -4.0, 100.0])) == pytest.approx(reach, rel=1e-14)
    assert problem.outcome_pull == (0.0 if kappa == math.inf else 1 / kappa)


@pytest.mark.parametrize(("order", "constant"), [(1, 1.0), (2, math.sqrt(0.2))])
def test_slope_constant(order, constant):
    problem = affine([[1.0], [2.0]], [1.0, 2.0], order=order)
    assert problem.slope_constant == pytest.approx(constant, rel=1e-14)
    assert affine([[1.0], [2.0]], [1.0, 2.0], order=1, b=0.2, h=3.0).slope_constant == 3.0


def test_another_radius_changes_nothing_else():
    problem = affine([[1.0], [2.0]], [1.0, 2.0])
    other = problem.at_radius(0.7)
    assert (problem.radius, other.radius) == (0.3, 0.7)
    assert other.contexts is problem.contexts


def test_a_subset_keeps_the_units():
    X, y, weights = random_data(3)
    problem = affine(X, y, weights)
    rows = np.array([4, 1, 7])
    part = problem.subset(rows)
    np.testing.assert_array_equal(part.contexts, problem.contexts[rows])
    np.testing.assert_array_equal(part.outcomes, problem.outcomes[rows])
    assert part.weights.sum() == pytest.approx(1.0, rel=1e-14)
    ratios = part.weights / problem.weights[rows]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-14)
    np.testing.assert_array_equal(part.scale, problem.scale)


def test_residuals():
    problem = affine([[1.0, 2.0], [3.0, 1.0]], [1.0, 2.0], scale=False)
    np.testing.assert_array_equal(problem.residuals(np.array([2.0, -1.0]), 0.5), [-0.5, 3.5])


# The constant order and the radius at which policies collapse to it


@st.composite
def tied_outcomes(draw):
    """Outcomes with ties, a whole weight for each row, and whole prices b and h."""
    rows = draw(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), min_size=1, max_size=10))
    outcomes, weights = zip(*rows, strict=True)
    return outcomes, weights, draw(prices), draw(prices)


def with_outcomes(outcomes, weights, b, h, **options):
    # Different contexts, so that equal outcomes stay different rows.
    X = np.arange(float(len(outcomes)))[:, None]
    return affine(X, np.array(outcomes, dtype=float), weights, b=b, h=h, **options)


@repeatable
@given(tied_outcomes(), st.sampled_from([1.0, 0.1, 1 / 3]))
def test_the_constant_order_is_the_smallest_outcome_with_least_cost(case, unit):
    outcomes, weights, b, h = case
    problem = with_outcomes(outcomes, weights, unit * b, unit * h)

    def cost(z):
        """Exact, in whole numbers."""
        return sum(w * max(h * (z - y), -b * (z - y)) for y, w in zip(outcomes, weights, strict=True))

    least = min(map(cost, outcomes))
    decision, _ = problem.constant_order()
    assert decision == min(y for y in outcomes if cost(y) == least)
    covered = Fraction(
        sum(w for y, w in zip(outcomes, weights, strict=True) if y <= decision), sum(weights)
    )
    assert covered >= Fraction(b, b + h)


@repeatable
@given(tied_outcomes())
def test_slopes_of_the_constant_order_are_feasible_and_balance(case):
    outcomes, weights, b, h = case
    problem = with_outcomes(outcomes, weights, b, h)
    decision, slopes = problem.constant_order()
    assert slopes.min() >= -b
    assert slopes.max() <= h
    assert problem.weights @ slopes == pytest.approx(0, abs=1e-13 * (b + h))
    np.testing.assert_array_equal(slopes[problem.outcomes < decision], h)
    np.testing.assert_array_equal(slopes[problem.outcomes > decision], -b)
    assert len(set(slopes[problem.outcomes == decision])) == 1
    # Slopes certify the decision: its cost is what the dual pays.
    cost = problem.weights @ problem.pieces.evaluate(decision - problem.outcomes)
    assert -(problem.weights * slopes) @ problem.outcomes == pytest.approx(cost, abs=1e-12)


@pytest.mark.parametrize(
    ("b", "h", "rows"), [(1.0, 0.2, 6), (0.7, 0.3, 10), (9.0, 1.0, 10), (1.0, 1.0, 4)]
)
def test_a_quantile_on_a_row_is_that_row(b, h, rows):
    # b / (b + h) of the rows exactly: rounding must not push the answer to the next row.
    problem = with_outcomes(range(1, rows + 1), [1] * rows, b, h)
    assert problem.constant_order()[0] == round(rows * b / (b + h))


def test_the_order_of_rows_does_not_change_the_constant_order():
    problem = with_outcomes([1.0, 2.0, 3.0, 4.0], [5, 1, 1, 3], 1.0, 1.0)
    rows = np.array([3, 1, 0, 2])
    decision, slopes = problem.constant_order()
    assert decision == 1.0
    shuffled_decision, shuffled_slopes = problem.subset(rows).constant_order()
    assert shuffled_decision == decision
    np.testing.assert_allclose(shuffled_slopes, slopes[rows], atol=1e-14)


def test_slopes_are_read_only():
    _, slopes = with_outcomes([1.0, 2.0], [1, 1], 1.0, 0.2).constant_order()
    with pytest.raises(ValueError, match="read-only"):
        slopes[0] = 0.0


def test_one_row_is_its_own_order():
    problem = with_outcomes([4.0], [1], 1.0, 0.2)
    decision, slopes = problem.constant_order()
    assert decision == 4.0
    assert slopes.tolist() == [0.0]


def test_slopes_stay_feasible_on_a_row_of_almost_no_weight():
    # The second row is lighter than the slack in the quantile.
    weights = [0.5 - 1.05e-12, 1e-13, 0.5 + 0.95e-12]
    problem = with_outcomes([1.0, 2.0, 3.0], weights, 1.0, 1.0)
    _, slopes = problem.constant_order()
    assert slopes.min() >= -1.0
    assert slopes.max() <= 1.0
    assert problem.weights @ slopes == pytest.approx(0, abs=1e-11)


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


def nominal_cost(problem, theta):
    """The least mean cost of theta over intercepts: some residual is then zero."""
    costs = problem.pieces.evaluate(
        problem.residuals(theta, 0.0)[None, :] - problem.residuals(theta, 0.0)[:, None]
    )
    return float((costs @ problem.weights).min())


@repeatable
@given(seeds, st.sampled_from([1, 2]))
def test_policies_collapse_at_this_radius_and_not_before(seed, order):
    X, y, weights = random_data(seed)
    problem = affine(X, y, weights, order=order)
    radius, constant = problem.collapse_radius(), problem.slope_constant

    def worst_case(theta, rho):
        # The closed form for a free support and a free intercept.
        return nominal_cost(problem, theta) + rho * constant * np.linalg.norm(theta)

    at_zero = worst_case(np.zeros(3), radius)
    slopes = problem.constant_order()[1]
    gradient = problem.contexts.T @ (problem.weights * slopes)
    downhill = -gradient / np.linalg.norm(gradient)
    for theta in (*np.random.default_rng(seed).normal(size=(5, 3)), downhill, 1e-3 * downhill):
        assert worst_case(theta, radius) >= at_zero - 1e-12
    # A step short enough to keep every row on its side of the quantile.
    gaps = np.abs(problem.outcomes - problem.constant_order()[0])
    step = 0.1 * gaps[gaps > 0].min() / np.abs(problem.contexts @ downhill).max()
    assert worst_case(step * downhill, 0.9 * radius) < at_zero
    assert worst_case(step * downhill, 1.1 * radius) > at_zero


def test_columns_that_do_not_move_leave_the_collapse_radius_alone():
    X, y, _ = random_data(2)
    frozen = affine(X, y, frozen=(0,))
    assert frozen.collapse_radius() == pytest.approx(affine(X[:, 1:], y).collapse_radius(), rel=1e-12)


# Limits on decisions


def limited(limits, y, **options):
    return affine(
        np.arange(float(len(y)))[:, None], y, policy=Linear(decisions=limits), scale=False, **options
    )


def test_outcomes_are_cut_to_the_limits_and_what_that_leaves_is_unavoidable():
    y = np.array([-2.0, 1.0, 3.0, 9.0])
    problem = limited(Box(0, 5), y, b=1.0, h=0.25)
    assert sorted(problem.outcomes) == [0.0, 1.0, 3.0, 5.0]
    assert problem.limited
    # The best decisions within the limits still cost h 2 in the first row and b 4 in the last.
    assert problem.unavoidable == pytest.approx((0.25 * 2 + 1.0 * 4) / 4)
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
    problem = limited(limits, y, b=2.0, h=0.5)
    pieces = problem.pieces
    for z in np.linspace(limits.lower, limits.upper, 5):
        split = problem.weights @ pieces.evaluate(z - problem.outcomes) + problem.unavoidable
        assert split == pytest.approx(np.mean(pieces.evaluate(z - y)), rel=1e-12)
    # A decision beyond the limits costs no less than where it is cut to.
    for z in rng.normal(size=5) * 3:
        beyond, cut = (pieces.evaluate(d - problem.outcomes) for d in (z, limits.map_into(z)))
        assert (cut <= beyond + 1e-12).all()


def test_each_product_has_its_own_limits():
    described = Problem(
        Newsvendor(1.0, 0.2), Linear(decisions=Box((0, 2), (4, math.inf))),
        Empirical([[1.0], [2.0]], [[5.0, 1.0], [3.0, 3.0]]), WassersteinBall(0.3),
    )  # fmt: skip
    first, second = affine_problems(described)
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
