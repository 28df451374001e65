"""Problems of any kind as arrays: units, geometry, and what is refused."""

import re

import numpy as np
import pandas as pd
import pytest

from surefoot import Box, Problem, WassersteinBall
from surefoot.costs import MeanCVaR, Newsvendor, Pricing, Quadratic
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear, Polynomial
from surefoot.problem import affine_problems, general_problem, why_not_general
from surefoot.sets import Budget, Simplex


def pairs(rows=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2)) * [1.0, 50.0] + [3.0, -7.0]
    return X, 10.0 + X[:, 0] + rng.normal(size=rows)


def form(cost=None, policy=None, radius=0.3, nominal=None, **ball):
    parts = (cost or Quadratic(), policy or MLP((8,)), nominal or Empirical(*pairs()))
    return general_problem(Problem(*parts, WassersteinBall(radius, **ball)))


def test_units_are_those_of_the_data():
    problem, (X, y) = form(), pairs()
    np.testing.assert_allclose(problem.units.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(problem.units.spread, X.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(problem.units.centre, [y.mean()], rtol=1e-12)
    np.testing.assert_allclose(problem.units.unit, [y.std()], rtol=1e-12)
    np.testing.assert_array_equal(problem.contexts, X)
    assert problem.n_decisions == 1
    assert problem.exact_rows


@pytest.mark.parametrize("scale", [True, False])
def test_its_geometry_is_that_of_the_affine_form(scale):
    X, y = pairs()
    options = {"scale": scale, "frozen": (0,), "support": Box((-9, -999), 999)}
    found = form(Newsvendor(1.0, 0.2), Linear(), **options)
    (affine,) = affine_problems(
        Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(X, y), WassersteinBall(0.3, **options))
    )
    np.testing.assert_allclose(found.scale, affine.scale, rtol=1e-14)
    np.testing.assert_array_equal(found.movable, affine.movable)
    np.testing.assert_allclose(found.lower / found.scale, affine.lower)
    np.testing.assert_allclose(found.upper / found.scale, affine.upper)
    assert found.boxed is affine.boxed is True
    assert form(Newsvendor(1.0, 0.2), Linear(), scale=scale).boxed is False


def test_frozen_columns_go_by_name_in_frames_and_by_position_in_features():
    frame = pd.DataFrame(pairs()[0], columns=["price", "heat"])
    named = form(nominal=Empirical(frame, pairs()[1]), frozen=("heat",))
    assert named.movable.tolist() == [True, False]
    features = form(policy=MLP((8,), features=Polynomial(2)), frozen=(4,))
    assert features.contexts.shape == (30, 5)
    assert features.movable.tolist() == [True] * 4 + [False]
    with pytest.raises(InvalidInputError, match="positions of features"):
        form(
            policy=MLP((8,), features=Polynomial(2)), nominal=Empirical(frame, pairs()[1]),
            frozen=("heat",),
        )  # fmt: skip


def test_an_earlier_fit_lends_its_geometry():
    first = form()
    X, y = pairs(rows=5)
    later = general_problem(
        Problem(Quadratic(), MLP((8,)), Empirical(X + 5, y), WassersteinBall(0.3)),
        0, first.scale, first.movable, first.units,
    )  # fmt: skip
    assert later.units is first.units
    assert later.scale is first.scale


def test_a_nominal_without_rows_is_sampled():
    gaussian = Gaussian([1.0, 2.0], [[4.0, 1.0], [1.0, 2.0]])
    problem = form(nominal=gaussian)
    assert not problem.exact_rows
    assert problem.contexts.shape == (2_000, 1)
    np.testing.assert_allclose(problem.units.spread, [2.0], rtol=0.1)
    again = form(nominal=gaussian)
    np.testing.assert_array_equal(problem.contexts, again.contexts)
    parts = (Quadratic(), MLP((8,)), gaussian, WassersteinBall(0.3))
    other = general_problem(Problem(*parts), seed=1)
    assert np.abs(problem.contexts - other.contexts).max() > 0.1


def test_draws_go_through_the_feature_map():
    problem = form(policy=MLP((8,), features=Polynomial(2)))
    contexts, outcomes = problem.draw(np.random.default_rng(0), 7)
    assert contexts.shape == (7, 5)
    assert outcomes.shape == (7, 1)
    np.testing.assert_allclose(contexts[:, 2], contexts[:, 0] ** 2)


def test_a_subset_keeps_units_and_needs_no_feature_map():
    problem = form(policy=MLP((8,), features=Polynomial(2)))
    part = problem.subset(np.array([3, 1]))
    np.testing.assert_array_equal(part.contexts, problem.contexts[[3, 1]])
    assert part.units is problem.units
    assert part.weights.sum() == pytest.approx(1.0)
    contexts, _ = part.draw(np.random.default_rng(0), 5)
    assert contexts.shape == (5, 5)
    assert part.at_radius(0.7).radius == 0.7
    assert part.radius == 0.3


def test_learning_starts_within_the_limits():
    # y is about 13: a start beyond a limit has no derivative to learn from.
    assert form(policy=MLP((8,), decisions=Box(0, 5))).units.centre.tolist() == [5.0]
    assert form(policy=MLP((8,), decisions=Box(0, 99))).units.centre[0] == pytest.approx(
        pairs()[1].mean()
    )
    two = Empirical(pairs()[0], np.column_stack([pairs()[1]] * 2))
    np.testing.assert_allclose(
        form(policy=MLP((8,), decisions=Budget(8.0)), nominal=two).units.centre, [4.0, 4.0]
    )
    shares = form(policy=MLP((8,), decisions=Simplex()), nominal=two).units
    assert (shares.centre.tolist(), shares.unit.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_costs_with_variables_of_their_own_start_them():
    X, y = pairs()
    returns = Empirical(X, np.column_stack([y, -y]))
    portfolio = form(MeanCVaR(), Linear(decisions=Simplex()), nominal=returns)
    assert [part.shape for part in portfolio.auxiliary] == [(1,), (1,)]
    assert [part.shape for part in form().auxiliary] == [(0,), (0,)]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"policy": MLP((8,), decisions=Simplex())}, "Simplex() needs at least two decisions"),
        (
            {"policy": MLP((8,), decisions=Box((0, 0), 9))},
            "lower of the decisions' Box must be one number",
        ),
        ({"support": Box(0, 9)}, "support must contain every context"),
        (
            {"support": Box(-999, 999, (0, 1)), "outcome_cost": 1.0},
            "support must contain every outcome",
        ),
        ({"frozen": (2,)}, "frozen must hold column names or positions below 2"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, message):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}"):
        form(**parts)


@pytest.mark.parametrize(
    ("cost", "policy", "ball", "reason"),
    [
        (Quadratic(), Linear(), {"order": 1}, "the worst case is unbounded: Quadratic grows faster"),
        (Pricing(), Linear(), {"order": 1}, "the worst case is unbounded: Pricing grows faster"),
        (Quadratic(), Linear(), {"order": 1, "support": Box(-999, 999)}, None),
        (Quadratic(), Linear(decisions=Box(0, 9)), {"order": 1}, None),
        (Quadratic(), Linear(), {"order": 1, "radius": 0.0}, None),
        (Quadratic(), Linear(), {"order": 2}, None),
        (Newsvendor(1.0, 0.2), Linear(), {"order": 1}, None),
        (MeanCVaR(), Linear(), {"order": 2}, "MeanCVaR needs limits on its decisions"),
    ],
)
def test_why_not_general(cost, policy, ball, reason):
    problem = Problem(cost, policy, Empirical(*pairs()), WassersteinBall(**{"radius": 0.3, **ball}))
    found = why_not_general(problem)
    assert found is None if reason is None else found.startswith(reason)
