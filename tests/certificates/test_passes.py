"""Bounds from sums over batches are those of the same rows at once."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from surefoot import Box, Problem, WassersteinBall
from surefoot.ambiguity import Contamination
from surefoot.certificates import passes as module
from surefoot.certificates.passes import RowPasses, why_no_passes
from surefoot.costs import Newsvendor, Quadratic, TieredNewsvendor
from surefoot.nominals import Empirical, row_batches
from surefoot.policies import MLP, Linear
from surefoot.problem import affine_forms, fitted_problem
from tests.held_rows import HeldRows, demand

COST = Newsvendor(3.0, 0.5)
CASES = list(itertools.product((1, 2), (np.inf, 2.0), (0.0, 0.05, 1.0), ((), (0, 2))))


@pytest.fixture(autouse=True)
def few_rows_are_kept(monkeypatch):
    monkeypatch.setattr(row_batches, "KEPT_NUMBERS", 5 * 500)


def problem_of(order=2, kappa=np.inf, radius=0.1, frozen=(), policy=None, data=None, **ball):
    X, y = demand() if data is None else data
    set_ = WassersteinBall(radius, order=order, outcome_cost=kappa, frozen=frozen, **ball)
    return Problem(COST, Linear() if policy is None else policy, HeldRows(X, y), set_)


def whole(problem):
    """Return the form of all rows at once, in the units that sums over batches have."""
    rows = problem.nominal
    fitted = RowPasses.of(problem).problem
    return affine_forms(fitted.around(Empirical(rows.X, rows.y)), merge=False)[0]


def moved(form, point):
    """Return a policy of one form in the units of another with the same columns."""
    return lambda other: other.from_user_units(*form.in_user_units(*point))


def good_point(rows, width, shift=0.02):
    """Return a point near the best policy, whose slopes balance but for a little."""
    data, form = rows.nominal, rows.forms[0]
    theta = np.linspace(1.0, 3.0, 4) / np.geomspace(1.0, 100.0, 4)
    intercept = np.quantile(data.y[:, 0] - data.X @ theta, form.pieces.quantile)
    theta, intercept = form.from_user_units(theta * (1.0 + shift), intercept + shift)
    return rows.centred(0, theta, intercept - shift * theta @ rows.centre, width)


@pytest.mark.parametrize(("order", "kappa", "radius", "frozen"), CASES)
def test_the_upper_bound_is_the_worst_case(order, kappa, radius, frozen):
    problem = problem_of(order, kappa, radius, frozen)
    rows = RowPasses.of(problem)
    form, at_once = rows.forms[0], whole(problem)
    theta = np.array([0.3, -0.2, 0.1, 0.4])
    errors = at_once.outcomes * at_once.outcome_unit / form.outcome_unit
    errors = errors - (at_once.contexts * at_once.scale / form.scale) @ theta
    best = form.pieces.best_constant(errors, at_once.weights) + module.ball_shift(form, theta)
    point = rows.centred(0, theta, best, 0.1)
    (sums,) = rows.sums(problem.nominal.batches(), [[point]])[0]
    value = rows.upper(0, point, sums) * form.value_unit
    exact = at_once.worst_value(*moved(form, (theta, best))(at_once))[0] * at_once.value_unit
    assert value >= exact * (1.0 - 1e-12)
    # At the best intercept the multiplier is known but for the one row that the quantile lies on.
    assert value == pytest.approx(exact, rel=1e-9 if order == 1 else 1e-6)
    policy = rows.policy(0, point)
    assert policy[0] == pytest.approx(theta)
    assert policy[1] == pytest.approx(best)


@pytest.mark.parametrize(("order", "kappa", "radius", "frozen"), CASES)
def test_the_lower_bound_is_that_of_the_same_slopes(order, kappa, radius, frozen):
    problem = problem_of(order, kappa, radius, frozen)
    rows = RowPasses.of(problem)
    at_once = whole(problem)
    point = good_point(rows, 0.2)
    (sums,) = rows.sums(problem.nominal.batches(), [[point]])[0]
    columns, outcomes = rows.rows(problem.nominal.X, problem.nominal.y)
    residuals = columns @ np.append(point.theta, point.intercept) - outcomes[:, 0]
    pieces = rows.forms[0].pieces
    steep = (pieces.up + pieces.down) / (2.0 * point.width)
    slopes = 0.5 * (pieces.up - pieces.down) + steep * residuals
    slopes = np.clip(slopes, -pieces.down, pieces.up)
    assert sums.gradient == pytest.approx(columns.T @ slopes / len(slopes), rel=1e-9, abs=1e-12)
    assert sums.slope_outcome == pytest.approx(float(slopes @ outcomes[:, 0]) / len(slopes), rel=1e-9)
    free = rows.unpenalised(rows.forms[0])
    share = np.linalg.lstsq(columns[:, free], slopes, rcond=None)[0]
    shrink = np.abs(share) @ rows.sizes[free] / min(pieces.up, pieces.down)
    ready = (slopes - columns[:, free] @ share) / (1.0 + shrink)
    assert ready.min() >= -pieces.down * (1 + 1e-12)
    assert ready.max() <= pieces.up * (1 + 1e-12)
    exact = at_once.lower_bound(ready * rows.forms[0].cost_unit / at_once.cost_unit)
    found = rows.lower(0, sums) * rows.forms[0].value_unit
    assert found > 0.1  # of about 3: no empty comparison
    assert found == pytest.approx(exact * at_once.value_unit, rel=1e-5)


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "kappa", "radius", "frozen"), CASES)
def test_no_policy_of_all_rows_is_below_the_lower_bound(order, kappa, radius, frozen):
    problem = problem_of(order, kappa, radius, frozen)
    rows, at_once = RowPasses.of(problem), whole(problem)
    rng = np.random.default_rng(0)
    bounds, values = [], []
    for _ in range(20):
        point = good_point(rows, float(rng.uniform(0.05, 0.5)), float(rng.normal(0.0, 0.05)))
        theta, intercept = rows.policy(0, point)
        (sums,) = rows.sums(problem.nominal.batches(), [[point]])[0]
        bounds.append(rows.lower(0, sums) * rows.forms[0].value_unit)
        policy = moved(rows.forms[0], (theta, intercept))(at_once)
        values.append(at_once.worst_value(*policy)[0] * at_once.value_unit)
    assert 0.1 < max(bounds) <= min(values)


def test_units_are_those_of_all_rows_and_not_of_the_sample():
    problem = problem_of()
    rows = problem.nominal
    spread = fitted_problem(problem).ball.scale
    assert spread == pytest.approx(rows.X.std(axis=0), rel=1e-9)
    assert spread == pytest.approx(
        fitted_problem(problem.around(Empirical(rows.X, rows.y))).ball.scale, rel=1e-9
    )
    assert not np.allclose(spread, rows.survey.sample.contexts.std(axis=0), rtol=1e-3)


def test_features_and_offsets_come_batch_by_batch():
    policy = Linear(features=lambda X: np.hstack([X, X[:, :1] ** 2]), offset=lambda X: 0.5 * X[:, 1])
    problem = problem_of(policy=policy)
    rows, at_once = RowPasses.of(problem), whole(problem)
    assert len(rows.forms[0].scale) == 5
    theta = np.array([0.3, -0.2, 0.1, 0.4, 0.2])
    point = rows.centred(0, theta, 1.0, 0.1)
    (sums,) = rows.sums(problem.nominal.batches(), [[point]])[0]
    shifted = (
        rows.policy(0, point)[0],
        rows.policy(0, point)[1] - module.ball_shift(rows.forms[0], theta),
    )
    policy_at_once = moved(rows.forms[0], shifted)(at_once)
    cost = at_once.mean_cost(at_once.residuals(*policy_at_once)) * at_once.value_unit
    assert sums.cost * rows.forms[0].value_unit == pytest.approx(cost, rel=1e-9)


def test_a_constant_and_a_doubled_frozen_column_do_no_harm():
    X, y = demand()
    X = np.column_stack([X, X[:, 0], np.ones(len(X))])
    problem = problem_of(frozen=(0, 4), data=(X, y))
    rows = RowPasses.of(problem)
    assert rows.unpenalised(rows.forms[0]).tolist() == [True, False, False, False, True, True, True]
    plain = RowPasses.of(problem_of(frozen=(0,)))
    bounds = []
    for one, more in ((plain, ()), (rows, (0.0, 0.0))):
        theta, intercept, width = good_point(plain, 0.2)
        moved_by = plain.outcome_centres[0] - one.outcome_centres[0]  # means of samples
        point = module.Point(np.append(theta, more), intercept + moved_by, width)
        (sums,) = one.sums(one.nominal.batches(), [[point]])[0]
        bounds.append(one.lower(0, sums) * one.forms[0].value_unit)
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-3)
    assert bounds[1] > 0.1


def test_slopes_that_cannot_be_balanced_prove_the_least_cost(monkeypatch):
    problem = problem_of(frozen=(0,))
    rows = RowPasses.of(problem)
    (sums,) = rows.sums(problem.nominal.batches(), [[good_point(rows, 0.2)]])[0]
    assert rows.lower(0, sums) > 0.0
    monkeypatch.setattr(module, "_balancing", lambda squares, gradient: np.zeros(len(gradient)))
    assert rows.lower(0, sums) == 0.0


def test_the_certificate_speaks_of_all_rows():
    rows = RowPasses.of(problem_of())
    found = rows.certificate([2.0], [1.99])
    assert found.kind == "bound"
    assert found.message.startswith("Over all 6,000 rows the worst-case expected cost is at most ")
    assert found.gap == pytest.approx(0.01 / 1.99)
    assert rows.certificate([1.0], [2.0]).kind == "estimate"  # bounds that contradict each other


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"policy": MLP()}, "needs a Linear policy"),
        ({"cost": Quadratic()}, "piecewise linear cost"),
        ({"cost": TieredNewsvendor(((0, 1.0), (10, 3.0)), 0.5)}, "two lines"),
        ({"cost": Newsvendor(1.0, 0.2, smoothing=0.1)}, "without smoothing"),
        ({"ball": WassersteinBall(0.1, support=Box(-1e6, 1e6))}, "free support"),
        ({"ball": Contamination(0.1)}, "Wasserstein ball, got Contamination"),
        ({"policy": Linear(decisions=Box(0.0, 9.0))}, "decisions without limits"),
        ({"policy": Linear(intercept=False)}, "an intercept for order 2"),
    ],
)
def test_problems_whose_bounds_are_no_sums_are_refused(changes, reason):
    problem = problem_of()
    assert why_no_passes(problem) is None
    assert reason in why_no_passes(replace(problem, **changes))
