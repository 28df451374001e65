"""Rates: the slope is recovered, gaps are honest, and the algorithms differ as they should."""

import numpy as np
import pytest

from reproduction import convergence
from reproduction.convergence import (
    ALGORITHMS,
    GapCurve,
    empirical_rate,
    gaps_against_steps,
)
from surefoot import Box, Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms
from surefoot.solvers import DASGD, ConvexProgram

STEPS = [2**k for k in range(8, 15)]


def make(order=2, products=1, **ball):
    data = synthetic(n=100, s=5, seed=0, noise_variance=0.3, test=1)
    y = np.tile(data.y[:, None], products)
    return Problem(
        Newsvendor(1.0, 0.2), Linear(), Empirical(data.X, y), WassersteinBall(0.05, order=order, **ball)
    )


@pytest.fixture(scope="module")
def curves():
    return {one.algorithm: one for one in gaps_against_steps(make(), STEPS, seeds=range(5))}


def test_a_power_law_is_found_again():
    sizes = np.array([10.0, 100.0, 1_000.0, 10_000.0])
    rate = empirical_rate(sizes, 3.0 * sizes**-0.5)
    assert rate.slope == pytest.approx(-0.5)
    assert rate.constant == pytest.approx(3.0)
    assert rate.error == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(rate.at(sizes), 3.0 * sizes**-0.5)


def test_the_error_of_a_slope_is_that_of_repeated_measurements():
    rng = np.random.default_rng(0)
    sizes = np.geomspace(10, 1e5, 9)
    found = [empirical_rate(sizes, sizes**-0.5 * np.exp(0.2 * rng.normal(size=9))) for _ in range(400)]
    spread = np.std([rate.slope for rate in found])
    assert np.mean([rate.error for rate in found]) == pytest.approx(spread, rel=0.15)
    assert np.mean([rate.slope for rate in found]) == pytest.approx(-0.5, abs=0.01)


def test_two_points_have_a_slope_without_an_error():
    rate = empirical_rate([10, 1_000], [1.0, 0.01])
    assert rate.slope == pytest.approx(-1.0)
    assert np.isnan(rate.error)


@pytest.mark.parametrize(
    ("sizes", "gaps", "message"),
    [
        ([1.0], [1.0], "equal length, two or more"),
        ([1.0, 2.0], [1.0], "equal length"),
        ([1.0, 2.0], [1.0, 0.0], "must be > 0 on log axes, got 0.0"),
        ([2.0, 2.0], [1.0, 0.5], "sizes must differ, got 2"),
    ],
)
def test_wrong_points_are_refused(sizes, gaps, message):
    with pytest.raises(InvalidInputError, match=message):
        empirical_rate(sizes, gaps)


def test_gaps_are_measured_from_the_optimum():
    pytest.importorskip("cvxpy")
    problem, form = make(), affine_forms(make())[0]
    best = ConvexProgram().solve(problem).certificate.upper
    curve = gaps_against_steps(problem, [200, 400], seeds=[7])[-1]
    policies = ALGORITHMS["primal-dual"](problem, form, [200, 400], 7)
    values = [form.worst_value(*policy)[0] * form.value_unit for policy in policies]
    expected = np.array(values) / best - 1.0
    np.testing.assert_allclose(curve.gaps[0], expected, atol=1e-5)


def test_no_gap_is_negative(curves):
    assert set(curves) == set(ALGORITHMS)
    for curve in curves.values():
        assert curve.gaps.shape == (5, len(STEPS))
        assert (curve.gaps >= 0.0).all()


def test_da_sgd_has_the_rate_of_the_theory_or_better(curves):
    for name in ("DA-SGD, last policy", "DA-SGD, averaged"):
        assert curves[name].rate().slope < -0.4, name
    averaged, last = curves["DA-SGD, averaged"].median, curves["DA-SGD, last policy"].median
    assert averaged[-1] < last[-1]


def test_the_primal_dual_method_beats_every_power_of_the_steps(curves):
    gaps = curves["primal-dual"].median
    assert gaps[-1] < 1e-5
    assert gaps[-1] < 0.01 * curves["DA-SGD, averaged"].median[-1]


def test_the_printed_algorithm_is_far_behind(curves):
    for name in ("as printed, constant step", "as printed, step c/sqrt(T)"):
        assert curves[name].median[-1] > 3.0 * curves["DA-SGD, averaged"].median[-1]


def test_the_printed_algorithm_is_the_solver_of_that_name():
    problem, form = make(), affine_forms(make())[0]
    with pytest.warns(UserWarning, match="printed"):
        policies = ALGORITHMS["as printed, step c/sqrt(T)"](problem, form, [400], 2)
    size = convergence.LITERAL_SHRINKING / 20.0
    solver = DASGD.literal(
        alpha=size, beta=size, eta=convergence.LITERAL_ETA, K=convergence.LITERAL_INNER_STEPS,
        epsilon=convergence.LITERAL_EPSILON, steps=400,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="printed"):
        answer = solver.solve(problem, seed=2)
    found = answer.parameters
    expected = form.from_user_units(found.theta[:, 0], float(found.intercept[0]))
    np.testing.assert_array_equal(policies[0][0], expected[0])
    assert policies[0][1] == expected[1]


def test_only_measured_gaps_count_for_the_rate():
    gaps = np.array([[1.0, 0.1, 1e-9]])
    curve = GapCurve("some", (10, 100, 1_000), gaps)
    assert curve.rate().slope == pytest.approx(-1.0)


@pytest.mark.parametrize(
    "problem",
    [
        make(products=2),
        make(support=Box(np.full(5, -1.0), np.full(5, 2.0))),
    ],
    ids=["products", "box"],
)
def test_problems_without_an_exact_optimum_are_refused(problem):
    with pytest.raises(UnsupportedProblemError, match="one product, a free support"):
        gaps_against_steps(problem, [10, 20])


@pytest.mark.parametrize("steps", [[10], [20, 10], [0, 10]])
def test_steps_must_ascend(steps):
    with pytest.raises(InvalidInputError, match="steps must"):
        gaps_against_steps(make(), steps)
