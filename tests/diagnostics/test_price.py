"""The price of robustness: both curves obey the laws of worst cases."""

import warnings

import numpy as np
import pandas as pd
import pytest

from surefoot import DASGD, Box, Exact, PrimalDual, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor, Quadratic
from surefoot.datasets import synthetic
from surefoot.diagnostics.price import price_of_robustness
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, InvalidTypeError
from surefoot.forecasts import Forecaster
from surefoot.policies import Linear

RADII = [0.0, 0.02, 0.05, 0.1, 0.3, 1.0]


@pytest.fixture(scope="module")
def data():
    return synthetic(n=80, s=6, seed=1, noise_variance=0.1, test=500)


@pytest.fixture(scope="module")
def model(data):
    return RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)


@pytest.fixture(scope="module")
def curve(data, model):
    return price_of_robustness(model, data.X, data.y, RADII, data.X_test, data.y_test)


def test_the_fixed_curve_is_the_worst_case_of_the_policy(data, model, curve):
    expected = [model.worst_case(data.X, data.y, radius=radius).value for radius in RADII]
    np.testing.assert_allclose(curve.fixed.worst_case, expected)
    np.testing.assert_allclose(curve.fixed.nominal, model.cost(data.X, data.y))
    np.testing.assert_allclose(curve.fixed.realised, model.cost(data.X_test, data.y_test))
    assert curve.fixed.kind == "exact"
    assert curve.fitted_radius == 0.1


def test_the_refitted_curve_is_a_fit_at_each_radius(data, curve):
    for k, radius in enumerate(RADII):
        alone = RobustNewsvendor(1.0, 0.2, radius=radius).fit(data.X, data.y)
        # Both policies are certified to within one per cent of the same optimum.
        assert curve.refitted.worst_case[k] <= 1.01 * alone.certificate_.lower + 1e-9
        assert curve.refitted.worst_case[k] >= alone.certificate_.lower - 1e-9
    assert curve.refitted.converged.all()
    assert curve.refitted.kind == "exact"


def test_worst_cases_grow_and_refitting_never_loses(curve):
    assert (np.diff(curve.fixed.worst_case) >= 0.0).all()
    assert (np.diff(curve.refitted.worst_case) >= -0.01 * curve.refitted.worst_case[:-1]).all()
    assert (curve.refitted.worst_case <= 1.01 * curve.fixed.worst_case).all()
    for one in (curve.fixed, curve.refitted):
        assert (one.nominal <= one.worst_case + 1e-12).all()
    assert curve.fixed.worst_case[0] == pytest.approx(curve.fixed.nominal[0])
    assert curve.refitted.worst_case[0] == pytest.approx(curve.refitted.nominal[0])


def test_the_price_is_the_rise_of_the_nominal_cost(curve):
    nominal = curve.refitted.nominal
    np.testing.assert_allclose(curve.price, nominal / nominal[0] - 1.0)
    assert curve.price[-1] > 0.1
    best = curve.refitted.realised.argmin()
    assert curve.best_radius == RADII[best]


def test_from_the_collapse_radius_on_the_best_policy_is_constant(data, model):
    curve = price_of_robustness(model, data.X, data.y)
    assert len(curve.radii) == 30
    assert curve.radii[0] == 0.0
    rank = int(np.ceil(len(data.y) / 1.2)) - 1
    order = np.sort(data.y)[rank]
    constant = np.maximum(0.2 * (order - data.y), data.y - order).mean()
    assert curve.refitted.nominal[-1] == pytest.approx(constant, rel=0.01)
    assert curve.refitted.nominal[-4] < 0.98 * constant
    assert curve.fixed.realised is None
    assert curve.best_radius is None


def test_radii_come_back_sorted_and_once(data, model):
    curve = price_of_robustness(model, data.X, data.y, [0.3, 0.0, 0.3], refit=False)
    np.testing.assert_array_equal(curve.radii, [0.0, 0.3])
    assert curve.refitted is None
    assert curve.price is None


def test_frames_and_weights_are_understood(data):
    X = pd.DataFrame(data.X, columns=[f"c{j}" for j in range(6)])
    weight = np.arange(1.0, 81.0)
    model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(X, data.y, weight)
    curve = price_of_robustness(model, X, data.y, [0.0, 0.1], sample_weight=weight)
    expected = model.worst_case(X, data.y, sample_weight=weight).value
    assert curve.fixed.worst_case[1] == pytest.approx(expected)
    assert curve.fixed.worst_case[1] == pytest.approx(model.certificate_.upper)
    with pytest.raises(ValueError, match="feature names"):
        price_of_robustness(model, X[X.columns[::-1]], data.y, [0.1])


def test_products_add_up(data):
    y = np.column_stack([data.y, 2.0 - data.y])
    apart = RobustNewsvendor(1.0, 0.2, radius=0.1, solver=PrimalDual()).fit(data.X, y)
    both = price_of_robustness(apart, data.X, y, RADII)
    alone = [
        price_of_robustness(RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, one), data.X, one, RADII)
        for one in y.T
    ]
    total = sum(one.refitted.worst_case for one in alone)
    np.testing.assert_allclose(both.refitted.worst_case, total, rtol=0.02)


@pytest.mark.parametrize(
    ("ball", "solver"),
    [
        (WassersteinBall(0.1), Exact()),
        (WassersteinBall(0.1), PrimalDual(gap_tol=0.005)),
        (WassersteinBall(0.1), DASGD(gap_tol=0.05)),
        (WassersteinBall(0.1, support=Box(np.full(6, -0.5), np.full(6, 1.5))), DASGD(gap_tol=0.05)),
    ],
    ids=["exact", "primal-dual", "plain", "box"],
)
def test_other_solvers_refit_with_themselves(data, ball, solver):
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball, solver=solver).fit(data.X, data.y)
    curve = price_of_robustness(model, data.X, data.y, [0.02, 0.1])
    tolerance = 1.0 + solver.gap_tol
    assert (curve.refitted.worst_case <= tolerance * curve.fixed.worst_case).all()
    assert curve.refitted.worst_case[1] == pytest.approx(curve.fixed.worst_case[1], rel=solver.gap_tol)
    assert curve.refitted.converged.all()


def test_limited_decisions_are_exact_where_they_are_fixed(data):
    policy = Linear(decisions=Box(lower=0.0, upper=float(np.median(data.y))))
    model = RobustPolicy(Newsvendor(1.0, 0.2), policy, ball=WassersteinBall(0.1)).fit(data.X, data.y)
    curve = price_of_robustness(model, data.X, data.y, [0.1])
    assert curve.fixed.kind == "exact"
    assert curve.fixed.worst_case[0] == pytest.approx(model.worst_case(data.X, data.y).value)
    # A certificate bounds decisions before they are cut.
    assert curve.refitted.kind == "bound"
    assert curve.fixed.worst_case[0] <= model.certificate_.upper * (1 + 1e-9)
    assert curve.refitted.worst_case[0] == pytest.approx(model.certificate_.upper)


def test_refits_that_run_out_of_steps_say_so(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RobustNewsvendor(1.0, 0.2, radius=0.01, solver=PrimalDual(max_steps=10)).fit(
            data.X, data.y
        )
    with pytest.warns(ConvergenceWarning, match="1 of 2 refits ran out of steps"):
        curve = price_of_robustness(model, data.X, data.y, [0.01, 50.0])
    np.testing.assert_array_equal(curve.refitted.converged, [False, True])


def test_general_policies_have_estimates(data):
    pytest.importorskip("jax")
    solver = DASGD(max_steps=500, gap_tol=10.0)
    model = RobustPolicy(Quadratic(), ball=WassersteinBall(0.1), solver=solver).fit(data.X, data.y)
    curve = price_of_robustness(model, data.X, data.y, [0.0, 0.1, 0.5], data.X_test, data.y_test)
    assert (np.diff(curve.fixed.worst_case) > 0.0).all()
    assert (np.diff(curve.refitted.worst_case) > 0.0).all()
    assert curve.fixed.worst_case[1] == pytest.approx(model.certificate_.upper, rel=0.01)
    assert curve.fixed.kind == "estimate"
    assert len(price_of_robustness(model, data.X, data.y, refit=False).radii) == 8


def test_the_table_has_the_curves(curve):
    lines = str(curve).splitlines()
    assert len(lines) == len(RADII) + 2
    assert lines[0].split()[0] == "radius"
    assert f"{curve.refitted.realised[2]:.5g}" in lines[3]
    assert "0.1" in lines[-1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"radii": [-0.1]}, InvalidInputError, "radii must be >= 0, got -0.1"),
        ({"radii": []}, InvalidInputError, "radii must be a list of numbers"),
        ({"radii": [np.nan]}, InvalidInputError, "radii must be finite"),
        ({"X_test": np.zeros((1, 6))}, InvalidInputError, "given together, got no y_test"),
        ({"refit": 1}, InvalidTypeError, "refit must be True or False"),
    ],
)
def test_wrong_options_are_refused_by_name(data, model, options, error, message):
    with pytest.raises(error, match=message):
        price_of_robustness(model, data.X, data.y, **options)


def test_only_fitted_models_have_a_price(data):
    with pytest.raises(InvalidTypeError, match="model must be a fitted RobustPolicy"):
        price_of_robustness("model", data.X, data.y)
    with pytest.raises(ValueError, match="not fitted"):
        price_of_robustness(RobustNewsvendor(1.0, 0.2), data.X, data.y)


def test_models_that_forecast_first_keep_their_forecast(data):
    model = RobustNewsvendor(1.0, 0.2, radius=0.02, nominal=Forecaster()).fit(data.X, data.y)
    assert model.problem_.policy.offset is not None
    curve = price_of_robustness(model, data.X, data.y, [0.0, 0.02], data.X_test, data.y_test)
    assert curve.fixed.nominal[0] == pytest.approx(model.cost(data.X, data.y))
    assert curve.fixed.realised[0] == pytest.approx(model.cost(data.X_test, data.y_test))
    expected = model.worst_case(data.X, data.y, radius=0.02).value
    assert curve.fixed.worst_case[1] == pytest.approx(expected)
    assert (curve.refitted.worst_case <= 1.01 * curve.fixed.worst_case).all()


def test_refits_and_the_fixed_policy_face_one_ball():
    data = synthetic(n=60, s=4, seed=0)
    model = RobustNewsvendor(radius=0.2).fit(data.X, data.y)
    wider = (data.X - 0.5) * 4 + 0.5
    y = wider @ data.theta + data.intercept
    price = price_of_robustness(model, wider, y, radii=[0.1, 0.4])
    assert (price.refitted.worst_case <= price.fixed.worst_case * 1.01).all()
