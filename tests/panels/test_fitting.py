"""What a worker does with one series."""

import math

import numpy as np
import pytest

from surefoot.baselines import SAA
from surefoot.costs import Newsvendor, Quadratic
from surefoot.panels.fitting import constant_cost, constant_held_out


@pytest.mark.parametrize("cost", [Newsvendor(3.0, 1.0), Quadratic()])
def test_the_constant_order_is_that_of_sample_average_approximation(cost):
    rng = np.random.default_rng(0)
    seen, judged = rng.normal(size=40), rng.normal(size=11)
    model = SAA(cost_function=cost).fit(np.zeros((40, 1)), seen)
    assert constant_cost(cost, seen, judged) == pytest.approx(model.cost(np.zeros((11, 1)), judged))


def test_held_out_costs_are_above_those_of_the_rows_learned_from():
    outcomes = np.random.default_rng(1).normal(size=60)
    cost = Newsvendor(1.0, 0.2)
    assert constant_held_out(cost, outcomes, 0) > constant_cost(cost, outcomes, outcomes)
    assert constant_held_out(cost, outcomes, 0) == constant_held_out(cost, outcomes, 0)
    assert math.isnan(constant_held_out(cost, outcomes[:2], 0))
