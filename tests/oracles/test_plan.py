"""The adversary's program against sums done by hand."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.oracles.plan import Question, optimum, worst_case

FREE = np.array([math.inf])


def question(**changes):
    parts = {
        "contexts": np.array([[0.0], [1.0], [2.0]]), "outcomes": np.array([0.0, 2.0, 3.0]),
        "weights": np.full(3, 1 / 3), "slopes": np.array([-1.0, 0.5]), "levels": np.zeros(2),
        "radius": 0.3, "order": 1, "outcome_cost": math.inf, "intercept": True,
        "lower": -FREE, "upper": FREE,
    }  # fmt: skip
    return Question(**parts | changes)


def test_order_one_adds_the_steepest_slope_times_the_radius_times_theta():
    # residuals 0, -0.5, 0: cost 0.5 / 3; and 0.3 * 1 * 1.5.
    assert worst_case(question(), np.array([1.5]), 0.0) == pytest.approx(0.5 / 3 + 0.45, rel=1e-7)


def test_moving_outcomes_may_pay_more():
    value = worst_case(question(outcome_cost=0.5), np.array([1.5]), 0.0)
    assert value == pytest.approx(0.5 / 3 + 0.3 / 0.5, rel=1e-7)


def test_order_two_with_equal_slopes_adds_radius_times_theta():
    equal = question(slopes=np.array([-1.0, 1.0]), order=2)
    assert worst_case(equal, np.array([1.5]), 0.0) == pytest.approx(0.5 / 3 + 0.45, rel=1e-6)


def test_a_box_without_room_stops_the_adversary():
    rows = question(contexts=np.array([[0.0], [1.0], [1.0]]), lower=np.zeros(1), upper=np.ones(1))
    # One third of the mass can go from 1 to 0 or back; costs are linear, so the corners decide.
    far = worst_case(Question(**{**vars(rows), "radius": 100.0}), np.array([2.0]), 0.0)
    each = [max(max(-r, 0.5 * r) for r in (z - y for z in (0.0, 2.0))) for y in (0.0, 2.0, 3.0)]
    assert far == pytest.approx(np.mean(each), rel=1e-7)


def test_at_radius_zero_the_optimum_fits_the_rows():
    rows = question(radius=0.0, outcomes=np.array([1.0, 3.0, 5.0]))
    assert optimum(rows) == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kappa", [math.inf, 2.0])
def test_the_optimum_is_the_least_worst_case(order, kappa):
    rows = question(order=order, outcome_cost=kappa)
    found = minimize(
        lambda policy: worst_case(rows, policy[:1], policy[1]), [1.0, 0.5], method="Nelder-Mead",
        options={"maxfev": 80, "initial_simplex": [[1.0, 0.5], [1.5, 0.5], [1.0, 1.0]]},
    )  # fmt: skip
    best = optimum(rows)
    assert best <= found.fun * (1 + 1e-7)
    assert best >= found.fun * (1 - 1e-3)
