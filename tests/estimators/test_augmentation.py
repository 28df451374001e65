"""The augmented distribution: it lies in the ball, costs what the certificate says, and is readable."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from surefoot import DASGD, Box, Problem, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor, Quadratic
from surefoot.datasets import synthetic
from surefoot.estimators.augmentation import augment
from surefoot.exceptions import InvalidInputError
from surefoot.forecasts import Forecaster
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear, Polynomial
from surefoot.solvers import PrimalDual

COLUMNS = 5
NAMES = ("price", "rain", "weekday", "season", "stock")


def augmented(model, X, y, *, radius=None, weight=None, names=None, parameters=None):
    problem = model.problem_.around(Empirical(X, y, weight, names=names))
    problem = problem if radius is None else problem.at_radius(radius)
    return augment(problem, model.parameters_ if parameters is None else parameters)


@pytest.fixture(scope="module")
def data():
    return synthetic(n=120, s=COLUMNS, seed=3, coefficients="mixed", noise_variance=0.1, test=10)


@pytest.fixture(scope="module")
def fitted(data):
    return RobustNewsvendor(1.0, 0.2, radius=0.3).fit(data.X, data.y)


def cost_of_each(decisions, outcomes):
    return Newsvendor(1.0, 0.2).evaluate(decisions[:, None], outcomes[:, None])


def closed_box(data):
    return Box(
        data.X.min(axis=0) - 0.05, data.X.max(axis=0) + 0.05, outcome=(data.y.min(), data.y.max() + 1)
    )


@pytest.mark.parametrize("kappa", [math.inf, 3.0])
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_spends_the_budget_and_costs_what_the_certificate_says(data, order, boxed, kappa):
    ball = WassersteinBall(
        0.1, order=order, support=closed_box(data) if boxed else None, outcome_cost=kappa
    )
    solver = DASGD(gap_tol=0.5)  # any policy that reacts will do
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball, solver=solver).fit(data.X, data.y)
    found = augmented(model, data.X, data.y)
    assert found.transport_cost[0] == pytest.approx(0.1**order, rel=0.01)
    assert found.binding
    assert found.cost_after == pytest.approx(model.certificate_.upper, rel=1e-3)
    assert found.worst_case == pytest.approx(model.certificate_.upper, rel=1e-3)
    assert found.cost_before < found.cost_after


def test_atoms_are_the_data_before_they_move(data, fitted):
    weight = np.arange(len(data.X), dtype=float)
    found = augmented(fitted, data.X, data.y, weight=weight)
    mean = weight / weight.sum() @ data.X
    np.testing.assert_allclose(found.weights @ found.contexts_before, mean)
    assert found.cost_before == pytest.approx(fitted.cost(data.X, data.y, weight))
    np.testing.assert_allclose(found.decisions_before, fitted.predict(data.X)[found.rows])
    np.testing.assert_allclose(found.decisions, fitted.predict(found.contexts))
    assert found.weights.sum() == pytest.approx(1.0)


def test_distances_are_those_of_the_moves(data, fitted):
    found = augmented(fitted, data.X, data.y)
    np.testing.assert_allclose((found.moves**2).sum(axis=1), found.distances)


def test_shares_of_columns_follow_the_parameters(data, fitted):
    """A free adversary of order 2 moves along theta: each column takes theta_j^2 of the cost."""
    found = augmented(fitted, data.X, data.y)
    pull = (fitted.parameters_.theta[:, 0] * fitted.scale_) ** 2
    np.testing.assert_allclose(found.column_shares, pull / pull.sum())
    assert found.outcome_share == pytest.approx(0.0, abs=1e-12)
    ranked = [column.name for column in found.most_used(COLUMNS)]
    assert ranked == [f"x{j}" for j in np.argsort(-pull)]


@pytest.mark.parametrize("order", [1, 2])
def test_outcomes_take_the_rest_of_the_transport_cost(data, order):
    ball = WassersteinBall(0.1, order=order, outcome_cost=2.0)
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball).fit(data.X, data.y)
    found = augmented(model, data.X, data.y)
    moved = 2.0 * np.abs(found.outcomes - found.outcomes_before) ** order
    assert found.outcome_share == pytest.approx(found.weights @ moved / found.transport_cost[0])
    assert found.outcome_share > 0.1


def test_frozen_columns_stay_to_the_last_bit(data):
    ball = WassersteinBall(0.2, frozen=("rain", "season"))
    frame = pd.DataFrame(data.X, columns=NAMES)
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball).fit(frame, data.y)
    found = augmented(model, data.X, data.y, names=NAMES)
    for column in ("rain", "season"):
        j = found.position(column)
        assert (found.contexts[:, j] == data.X[found.rows, j]).all()
        shift = found.column_shifts[j]
        assert not shift.movable
        assert (shift.shift, shift.typical_move, shift.share) == (0.0, 0.0, 0.0)
    assert {column.name for column in found.most_used()} == {"price", "weekday", "stock"}


def test_nothing_leaves_the_box(data):
    box = closed_box(data)
    ball = WassersteinBall(2.0, support=box)
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball).fit(data.X, data.y)
    found = augmented(model, data.X, data.y)
    lower, upper = box.arrays(COLUMNS)
    assert (found.contexts >= lower - 1e-9).all()
    assert (found.contexts <= upper + 1e-9).all()


def test_a_budget_that_cannot_be_spent_does_not_bind(data, fitted):
    ball = WassersteinBall(50.0, support=closed_box(data))
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball, solver=DASGD(gap_tol=0.5))
    model.fit(data.X, data.y)
    # At such a radius the fit itself may be constant; a policy that reacts is stressed instead.
    reacting = fitted.parameters_
    assert augmented(model, data.X, data.y, radius=0.3, parameters=reacting).binding
    found = augmented(model, data.X, data.y, parameters=reacting)
    assert not found.binding
    assert found.transport_cost[0] < found.budget
    assert found.cost_after == pytest.approx(found.worst_case, rel=1e-3)


def test_order_one_moves_only_rows_on_the_steep_side(data):
    ball = WassersteinBall(0.05, order=1)
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball).fit(data.X, data.y)
    found = augmented(model, data.X, data.y)
    short = found.outcomes_before >= found.decisions_before - 1e-9
    assert (found.moved == short).all()
    assert found.share_moved == pytest.approx(found.weights @ short)
    assert 0.0 < found.share_moved < 0.5
    far = found.distances[found.moved]
    np.testing.assert_allclose(far, far[0])


def test_order_one_without_a_steep_row_stays_below_the_worst_case(data):
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.01, order=1))
    model.fit(data.X, data.y)
    far = replace(model.parameters_, intercept=model.parameters_.intercept + 100.0)
    found = augmented(model, data.X, data.y, parameters=far)
    assert found.cost_after < found.worst_case


def test_at_radius_zero_nothing_moves(data, fitted):
    found = augmented(fitted, data.X, data.y, radius=0.0)
    assert found.share_moved == 0.0
    assert found.cost_after == pytest.approx(found.cost_before)
    assert found.most_used() == ()
    assert found.outcome_share == 0.0
    assert "No column moves." in str(found)
    assert found.decision_directions == (0.0, 0.0)


def test_every_product_has_an_adversary_of_its_own(data):
    y = np.column_stack([data.y, 3.0 - 2.0 * data.y])
    model = RobustNewsvendor(1.0, 0.2, radius=0.2, solver=PrimalDual()).fit(data.X, y)
    found = augmented(model, data.X, y)
    assert found.multiplier.shape == found.transport_cost.shape == (2,)
    np.testing.assert_allclose(found.transport_cost, 0.04, rtol=0.01)
    assert found.cost_after == pytest.approx(model.certificate_.upper, rel=1e-3)
    assert found.mass.sum() == pytest.approx(1.0)
    total = 0.0
    for j in range(2):
        own = found.of(j)
        alone = RobustNewsvendor(1.0, 0.2, radius=0.2).fit(data.X, y[:, j])
        part = type(alone.parameters_)(
            model.parameters_.theta[:, [j]], model.parameters_.intercept[[j]]
        )
        same = augmented(alone, data.X, y[:, j], parameters=part)
        np.testing.assert_allclose(own.contexts, same.contexts, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(own.outcomes_before, y[own.rows, j])
        np.testing.assert_allclose(own.decisions_before, model.predict(data.X)[own.rows, j])
        assert own.mass.sum() == pytest.approx(1.0)
        total += own.weights @ cost_of_each(own.decisions, own.outcomes)
    assert total == pytest.approx(found.cost_after)
    with pytest.raises(InvalidInputError, match="product must be a position below 2, got 2"):
        found.of(2)


def test_features_are_named_as_such(data):
    model = RobustPolicy(
        Newsvendor(1.0, 0.2), Linear(features=Polynomial(2)), ball=WassersteinBall(0.2)
    ).fit(data.X[:, :2], data.y)
    found = augmented(model, data.X[:, :2], data.y)
    assert found.columns == tuple(f"feature {j}" for j in range(found.contexts.shape[1]))
    np.testing.assert_allclose(found.decisions_before, model.predict(data.X[:, :2])[found.rows])
    assert found.cost_after == pytest.approx(model.certificate_.upper, rel=1e-3)


def test_column_names_come_back(data, fitted):
    found = augmented(fitted, data.X, data.y, names=NAMES)
    assert found.columns == NAMES
    assert tuple(found.samples()) == NAMES
    np.testing.assert_array_equal(found.samples()["rain"], found.contexts[:, 1])
    assert all(column.name in str(found) for column in found.most_used())
    assert found.histogram("rain").name == "rain"
    assert found.position(-1) == COLUMNS - 1
    for wrong in ("snow", COLUMNS, 1.0):
        with pytest.raises(InvalidInputError, match="column must be a name"):
            found.position(wrong)


def test_shifts_are_differences_of_means(data, fitted):
    found = augmented(fitted, data.X, data.y)
    for j, column in enumerate(found.column_shifts):
        assert column.before == pytest.approx(data.X[:, j].mean())
        assert column.after == pytest.approx(found.weights @ found.contexts[:, j])
        assert column.shift == pytest.approx(column.after - column.before, abs=1e-12)
        assert column.shift_in_deviations == pytest.approx(column.shift / data.X[:, j].std())
        assert column.typical_move >= abs(column.shift_in_deviations)
    change = found.weights @ (found.decisions - found.decisions_before)
    assert found.decision_shift == pytest.approx(change)
    down, up = found.decision_directions
    assert down + up == pytest.approx(1.0)
    assert up == pytest.approx(found.weights @ (found.decisions > found.decisions_before))


def test_histograms_and_quantiles_describe_both_distributions(data, fitted):
    found = augmented(fitted, data.X, data.y)
    histogram = found.histogram(0, bins=7)
    assert len(histogram.edges) == 8
    assert histogram.before.sum() == pytest.approx(1.0)
    assert histogram.after.sum() == pytest.approx(1.0)
    expected, _ = np.histogram(data.X[:, 0], histogram.edges)
    np.testing.assert_allclose(histogram.before, expected / len(data.X))
    before, after = found.quantiles([0.0, 0.5, 1.0])
    expected = np.quantile(data.X, [0.0, 0.5, 1.0], axis=0, method="inverted_cdf")
    np.testing.assert_allclose(before, expected)
    np.testing.assert_allclose(after[2], found.contexts.max(axis=0))
    with pytest.raises(InvalidInputError, match="levels must lie in"):
        found.quantiles([1.5])


def test_a_nominal_without_rows_is_drawn_from(data, fitted):
    problem = fitted.problem_.around(Gaussian.fit(data.X, data.y)).at_radius(0.3)
    found, again = (augment(problem, fitted.parameters_) for _ in range(2))
    assert len(np.unique(found.rows)) == 2_000
    np.testing.assert_array_equal(found.contexts, again.contexts)
    assert found.transport_cost[0] == pytest.approx(0.09, rel=0.01)


def test_the_augmented_sample_is_no_better_anywhere_else_in_the_ball(data, fitted):
    """Weak duality: random plans of the same transport cost never cost more."""
    found = augmented(fitted, data.X, data.y)
    rng = np.random.default_rng(0)
    for _ in range(50):
        moves = rng.normal(size=data.X.shape)
        moves *= found.radius / np.sqrt((moves**2).sum(axis=1).mean())
        moved = data.X + moves * fitted.scale_
        assert cost_of_each(fitted.predict(moved), data.y).mean() < found.cost_after


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(Linear(), id="linear", marks=pytest.mark.nightly),
        pytest.param(MLP((8,)), id="network"),
    ],
)
def test_general_policies_have_one_adversary_for_all(data, policy):
    pytest.importorskip("jax")
    solver = DASGD(max_steps=500, gap_tol=10.0)
    model = RobustPolicy(Quadratic(), policy, ball=WassersteinBall(0.1), solver=solver)
    model.fit(data.X, data.y)
    found = augmented(model, data.X, data.y, names=NAMES)
    assert found.transport_cost[0] <= 0.01 * (1.0 + 1e-9)
    assert found.cost_before < found.cost_after <= found.worst_case * (1 + 1e-9)
    np.testing.assert_allclose(found.decisions, model.predict(found.contexts), rtol=1e-6)
    np.testing.assert_allclose((found.moves**2).sum(axis=1), found.distances, atol=1e-12)
    assert found.column_shares.sum() == pytest.approx(1.0)
    # The multiplier is found by halving a bracket a few times, hence the wider tolerance.
    assert found.transport_cost[0] == pytest.approx(0.01, rel=0.01)
    assert found.cost_after == pytest.approx(found.worst_case, rel=1e-3)


def test_problem_objects_agree_with_the_estimator(data, fitted):
    """The certificate of the solver speaks of the same distribution."""
    problem = Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(data.X, data.y), WassersteinBall(0.3))
    solution = PrimalDual().solve(problem, seed=0)
    found = augmented(fitted, data.X, data.y)
    assert found.cost_after == pytest.approx(solution.certificate.upper, rel=1e-3)


def test_outcomes_and_decisions_follow_the_forecast(data):
    model = RobustNewsvendor(1.0, 0.2, radius=0.02, nominal=Forecaster()).fit(data.X, data.y)
    policy, theta = model.problem_.policy, model.parameters_.theta
    assert policy.offset is not None
    found = model.augmentation()
    # Around the data of the fit, the forecast of a row is one that had not seen it.
    honest = model.nominal_.offsets[found.rows]
    expected = policy.decide(model.parameters_, found.contexts_before, honest)
    np.testing.assert_allclose(found.decisions_before, expected[:, 0])
    np.testing.assert_allclose(found.outcomes_before, model.nominal_.outcomes[found.rows, 0])
    assert found.cost_after == pytest.approx(model.certificate_.upper, rel=1e-3)
    costs = cost_of_each(found.decisions, found.outcomes)
    assert found.weights @ costs == pytest.approx(found.cost_after)
    before = cost_of_each(found.decisions_before, found.outcomes_before)
    assert found.weights @ before == pytest.approx(found.cost_before)
    # Around other data the forecast is asked; a moved context leaves it where it is.
    same = model.worst_case(data.X, data.y)
    mine = model.augmentation(data.X, data.y)
    np.testing.assert_allclose(mine.decisions_before, model.predict(data.X)[mine.rows])
    np.testing.assert_allclose(mine.outcomes, same.outcomes)
    np.testing.assert_allclose(mine.outcomes_before, data.y[mine.rows])
    assert mine.worst_case == pytest.approx(same.value, rel=1e-12)
    for one in (found, mine):
        moved = (one.contexts - one.contexts_before) @ theta[:, 0]
        np.testing.assert_allclose(one.decisions - one.decisions_before, moved, atol=1e-12)
        assert np.abs(moved).max() > 0.0


def test_columns_left_to_the_forecast_are_not_among_those_that_move(data):
    frame = pd.DataFrame(data.X, columns=NAMES)
    model = RobustNewsvendor(frozen=("rain", 3), radius=0.02, nominal=Forecaster()).fit(frame, data.y)
    for found in (model.augmentation(), model.augmentation(frame, data.y)):
        assert found.columns == ("price", "weekday", "stock")
        assert found.contexts.shape[1] == 3
    np.testing.assert_allclose(found.decisions_before, model.predict(frame)[found.rows])
    assert found.cost_before == pytest.approx(model.cost(frame, data.y))
