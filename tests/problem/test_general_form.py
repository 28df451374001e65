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
from surefoot.problem import affine_forms, fitted_problem, general_form, why_not_general
from surefoot.sets import Budget, Simplex


def pairs(rows=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2)) * [1.0, 50.0] + [3.0, -7.0]
    return X, 10.0 + X[:, 0] + rng.normal(size=rows)


def make_form(cost=None, policy=None, radius=0.3, nominal=None, **ball):
    parts = (cost or Quadratic(), policy or MLP((8,)), nominal or Empirical(*pairs()))
    return general_form(Problem(*parts, WassersteinBall(radius, **ball)))


def test_units_are_those_of_the_data():
    form, (X, y) = make_form(), pairs()
    np.testing.assert_allclose(form.units.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(form.units.spread, X.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(form.units.centre, [y.mean()], rtol=1e-12)
    np.testing.assert_allclose(form.units.unit, [y.std()], rtol=1e-12)
    np.testing.assert_array_equal(form.contexts, X)
    assert form.n_decisions == 1
    assert form.exact_rows


@pytest.mark.parametrize("scale", [True, False])
def test_its_geometry_is_that_of_the_affine_form(scale):
    X, y = pairs()
    options = {"scale": scale, "frozen": (0,), "support": Box((-9, -999), 999)}
    found = make_form(Newsvendor(1.0, 0.2), Linear(), **options)
    (affine,) = affine_forms(
        Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(X, y), WassersteinBall(0.3, **options))
    )
    affine = affine.in_plain_units()
    np.testing.assert_allclose(found.scale, affine.scale, rtol=1e-14)
    np.testing.assert_array_equal(found.movable, affine.movable)
    np.testing.assert_allclose(found.lower / found.scale, affine.lower)
    np.testing.assert_allclose(found.upper / found.scale, affine.upper)
    assert found.boxed is affine.boxed is True
    assert make_form(Newsvendor(1.0, 0.2), Linear(), scale=scale).boxed is False


def test_frozen_columns_go_by_name_in_frames_and_by_position_in_features():
    frame = pd.DataFrame(pairs()[0], columns=["price", "heat"])
    named = make_form(nominal=Empirical(frame, pairs()[1]), frozen=("heat",))
    assert named.movable.tolist() == [True, False]
    features = make_form(policy=MLP((8,), features=Polynomial(2)), frozen=(4,))
    assert features.contexts.shape == (30, 5)
    assert features.movable.tolist() == [True] * 4 + [False]
    with pytest.raises(InvalidInputError, match="positions of features"):
        make_form(
            policy=MLP((8,), features=Polynomial(2)), nominal=Empirical(frame, pairs()[1]),
            frozen=("heat",),
        )  # fmt: skip


def test_an_earlier_fit_lends_its_geometry():
    X, y = pairs()
    fitted = fitted_problem(
        Problem(Quadratic(), MLP((8,)), Empirical(X, y), WassersteinBall(0.3, frozen=(1,)))
    )
    first = general_form(fitted)
    X, y = pairs(rows=5)
    later = general_form(fitted.around(Empirical(X + 5, y)), 0, first.units)
    assert later.units is first.units
    np.testing.assert_array_equal(later.scale, first.scale)
    np.testing.assert_array_equal(first.scale, fitted.ball.scale)
    assert later.movable.tolist() == first.movable.tolist() == [True, False]


def test_a_nominal_without_rows_is_sampled():
    gaussian = Gaussian([1.0, 2.0], [[4.0, 1.0], [1.0, 2.0]])
    form = make_form(nominal=gaussian)
    assert not form.exact_rows
    assert form.contexts.shape == (2_000, 1)
    np.testing.assert_allclose(form.units.spread, [2.0], rtol=0.1)
    again = make_form(nominal=gaussian)
    np.testing.assert_array_equal(form.contexts, again.contexts)
    parts = (Quadratic(), MLP((8,)), gaussian, WassersteinBall(0.3))
    other = general_form(Problem(*parts), seed=1)
    assert np.abs(form.contexts - other.contexts).max() > 0.1


def test_draws_go_through_the_feature_map():
    form = make_form(policy=MLP((8,), features=Polynomial(2)))
    contexts, outcomes = form.draw(np.random.default_rng(0), 7)
    assert contexts.shape == (7, 5)
    assert outcomes.shape == (7, 1)
    np.testing.assert_allclose(contexts[:, 2], contexts[:, 0] ** 2)


def test_some_rows_keep_the_units_of_all():
    X, y = pairs()
    policy = MLP((8,), features=Polynomial(2))
    fitted = fitted_problem(Problem(Quadratic(), policy, Empirical(X, y), WassersteinBall(0.3)))
    form = general_form(fitted)
    part = general_form(fitted.around(fitted.nominal.take(np.array([3, 1]))), units=form.units)
    np.testing.assert_array_equal(part.contexts, form.contexts[[3, 1]])
    np.testing.assert_array_equal(part.scale, form.scale)
    assert part.units is form.units
    assert part.weights.sum() == pytest.approx(1.0)
    contexts, _ = part.draw(np.random.default_rng(0), 5)
    assert contexts.shape == (5, 5)
    assert part.at_radius(0.7).radius == 0.7
    assert part.radius == 0.3


# Policies with an offset


def double(X):
    return 2.0 * X[:, :1]


def test_offsets_stand_behind_the_features_and_never_move():
    X, y = pairs()
    policy = Linear(features=Polynomial(2), offset=double)
    support = Box(-1e6, 1e6)
    form = make_form(policy=policy, nominal=Empirical(X, y), support=support, frozen=(3,))
    assert form.contexts.shape == (30, 6)
    assert form.n_features == 5
    np.testing.assert_array_equal(form.contexts[:, :5], policy.transform(X))
    np.testing.assert_array_equal(form.contexts[:, 5:], double(X))
    assert form.movable.tolist() == [True, True, True, False, True, False]
    assert form.scale[5] == 1.0
    assert (form.lower[5], form.upper[5]) == (-np.inf, np.inf)
    np.testing.assert_array_equal(form.lower[:5], -1e6)
    for part in (form.units.mean, form.units.spread):
        assert part.shape == (5,)  # a policy's own inputs have units, offsets are what they are
    assert form.units.centre.tolist() == [0.0]  # learning starts at the offset itself
    trained = policy.initial(np.random.default_rng(0), 5, 1)
    np.testing.assert_array_equal(form.decisions(trained, form.contexts), double(X))
    plain = make_form(policy=Linear(features=Polynomial(2)), nominal=Empirical(X, y))
    np.testing.assert_array_equal(form.scale[:5], plain.scale)
    np.testing.assert_array_equal(form.units.mean, plain.units.mean)


def test_offsets_of_the_rows_take_the_place_of_the_policy_s():
    X, y = pairs()
    honest = np.arange(30.0)
    form = make_form(policy=Linear(offset=double), nominal=Empirical(X, y, offsets=honest))
    np.testing.assert_array_equal(form.contexts[:, 2], honest)
    contexts, outcomes = form.draw(np.random.default_rng(0), 200)
    rows = contexts[:, 2].astype(int)
    np.testing.assert_array_equal(contexts[:, :2], X[rows])
    np.testing.assert_array_equal(outcomes[:, 0], y[rows])
    assert len(set(rows)) > 20


def test_a_nominal_without_rows_asks_the_policy_for_offsets():
    gaussian = Gaussian([1.0, 2.0, 0.0], np.eye(3))
    form = make_form(policy=Linear(offset=double), nominal=gaussian)
    np.testing.assert_array_equal(form.contexts[:, 2:], double(form.contexts))
    contexts, _ = form.draw(np.random.default_rng(0), 50)
    np.testing.assert_array_equal(contexts[:, 2:], double(contexts))


def test_learning_starts_within_the_limits():
    # y is about 13: a start beyond a limit has no derivative to learn from.
    assert make_form(policy=MLP((8,), decisions=Box(0, 5))).units.centre.tolist() == [5.0]
    assert make_form(policy=MLP((8,), decisions=Box(0, 99))).units.centre[0] == pytest.approx(
        pairs()[1].mean()
    )
    two = Empirical(pairs()[0], np.column_stack([pairs()[1]] * 2))
    np.testing.assert_allclose(
        make_form(policy=MLP((8,), decisions=Budget(8.0)), nominal=two).units.centre, [4.0, 4.0]
    )
    shares = make_form(policy=MLP((8,), decisions=Simplex()), nominal=two).units
    assert (shares.centre.tolist(), shares.unit.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_costs_with_variables_of_their_own_start_them():
    X, y = pairs()
    returns = Empirical(X, np.column_stack([y, -y]))
    portfolio = make_form(MeanCVaR(), Linear(decisions=Simplex()), nominal=returns)
    assert [part.shape for part in portfolio.auxiliary] == [(1,), (1,)]
    assert [part.shape for part in make_form().auxiliary] == [(0,), (0,)]


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
        make_form(**parts)


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
