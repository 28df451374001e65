"""The paper's radius: its formula both ways, and distances in the ball's own units."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from surefoot import Box, Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.estimators.paper_radius import (
    nearest_distance,
    paper_probability,
    paper_radius,
    transport_geometry,
)
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.random import rng_for


def rows(n, d):
    rng = rng_for(0, "paper radius", n, d)
    return rng.uniform(-1.7, 1.7, (n, d)), rng.standard_normal(n)


def problem_of(X, y, **options):
    ball = WassersteinBall(0.0, scale=False, **options)
    return Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(X, y), ball)


@pytest.mark.parametrize("diameter", [0.3, 1.0, 8.0])
def test_probability_is_the_inverse_of_the_radius(diameter):
    assert paper_probability(diameter, 70, paper_radius(diameter, 70, 0.8)) == pytest.approx(0.8)


def test_nearest_rows_bound_the_distance_from_below():
    points = np.array([[0.0], [1.0], [3.0]])
    assert nearest_distance(points) == pytest.approx((1 + 1 + 2) / 3)
    assert nearest_distance(points[:1]) == 0.0


def test_box_gives_the_diameter():
    box = problem_of(*rows(30, 3), support=Box(-2, 2))
    assert transport_geometry(box)[1] == pytest.approx(4 * math.sqrt(3))


def test_outcomes_that_move_count():
    X, y = rows(30, 1)
    points, diameter = transport_geometry(problem_of(X, y, outcome_cost=4.0))
    assert points == pytest.approx(np.column_stack([X, 2 * y]))
    assert diameter == pytest.approx(pdist(points).max())
