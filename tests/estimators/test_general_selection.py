"""The radius of a general policy by cross-validation."""

import numpy as np
import pytest

from surefoot import DASGD, Problem, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor, Quadratic
from surefoot.estimators.general_selection import RADII, choose_general_radius
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import Linear
from surefoot.problem import general_problem
from surefoot.solvers import Adam
from surefoot.solvers.general_run import GeneralSettings

SETTINGS = GeneralSettings(1_000, 1, 5, Adam(0.05))


def form(n=25, noise=0.1, weights=None, nominal=None, **ball):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + noise * rng.normal(size=n)
    nominal = nominal or Empirical(X, y, weights)
    return general_problem(Problem(Quadratic(), Linear(), nominal, WassersteinBall(0.0, **ball)))


@pytest.fixture(scope="module")
def clear():
    return choose_general_radius(form(), SETTINGS, 0)


def test_every_radius_is_tried_on_every_fold(clear):
    np.testing.assert_allclose(clear.radii, RADII)
    assert clear.fold_costs.shape == (5, len(RADII))
    assert np.isfinite(clear.fold_costs).all()
    assert clear.fold_weights.sum() == pytest.approx(1.0)
    assert clear.radius == clear.radii[np.argmin(clear.mean_costs)]


def test_clear_data_want_a_small_radius_and_noise_a_large_one(clear):
    assert clear.radius < 1.0
    assert clear.mean_costs[0] > 1.5 * clear.mean_costs.min()
    assert choose_general_radius(form(noise=30.0), SETTINGS, 0).radius == 1.0


def test_it_repeats_and_depends_on_the_seed(clear):
    again = choose_general_radius(form(), SETTINGS, 0)
    np.testing.assert_array_equal(again.fold_costs, clear.fold_costs)
    other = choose_general_radius(form(), SETTINGS, 1)
    assert np.abs(other.fold_costs - clear.fold_costs).max() > 1e-6


def test_radii_are_in_the_units_of_the_columns():
    problem = form(scale=False)
    size = np.sqrt(np.mean(problem.contexts.var(axis=0)))
    np.testing.assert_allclose(
        choose_general_radius(problem, SETTINGS, 0).radii, size * np.array(RADII), rtol=1e-9
    )


def test_rows_without_weight_are_left_out(clear):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=25)
    wild = Empirical(
        np.vstack([X, 1e6 + rng.normal(size=(5, 2))]), np.append(y, np.full(5, 1e9)),
        np.append(np.ones(25), np.zeros(5)),
    )  # fmt: skip
    path = choose_general_radius(form(nominal=wild), SETTINGS, 0)
    np.testing.assert_allclose(path.fold_costs, clear.fold_costs, rtol=1e-6)
    assert path.radius == clear.radius


def test_where_nothing_moves_the_radius_is_zero():
    path = choose_general_radius(form(frozen=(0, 1)), SETTINGS, 0)
    assert (path.radius, path.radii.tolist()) == (0.0, [0.0])


def test_a_nominal_without_rows_has_nothing_to_cross_validate_on():
    with pytest.raises(
        InvalidInputError, match="radius must be a number where the nominal has no rows"
    ):
        choose_general_radius(form(nominal=Gaussian([0.0, 0.0], np.eye(2))), SETTINGS, 0)


def test_an_estimator_records_the_path():
    problem = form()
    X, y = problem.contexts, problem.outcomes[:, 0]
    solver = DASGD(max_steps=1_000, inner_steps=5, optimizer=Adam(0.05), gap_tol=10.0)
    model = RobustPolicy(Quadratic(), Linear(), solver=solver).fit(X, y)
    assert model.radius_ == model.radius_path_.radius
    assert model.radius_path_.fold_costs.shape == (5, len(RADII))
    model.ball = WassersteinBall(0.1)
    assert not hasattr(model.fit(X, y), "radius_path_")


def test_the_compiled_engine_has_its_own_path():
    problem = form()
    X, y = problem.contexts, problem.outcomes[:, 0]
    path = RobustPolicy(Newsvendor(1.0, 0.2), Linear()).fit(X, y).radius_path_
    assert len(path.radii) != len(RADII)
