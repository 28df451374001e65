import numpy as np
import pytest

from surefoot.forecasts.forecast import Forecast, SmoothPart
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.trees import grow
from surefoot.io import pack, unpack

MEAN, SPREAD = np.array([1.0, -2.0, 7.0]), np.array([0.5, 4.0, np.inf])
THETA = np.array([2.0, -1.0, 0.0])
SMOOTH = SmoothPart(np.array([[0.0, 0.0], [1.0, -1.0]]), np.array([3.0, -0.5]), 2.0)
X = np.column_stack([np.random.default_rng(0).normal(MEAN[:2], SPREAD[:2], (20, 2)), np.full(20, 7.0)])


@pytest.fixture(scope="module")
def trees():
    y = np.sign(X[:, 0] - 1.0) + 0.1 * X[:, 1]
    return grow(Rows(X, y, np.ones(20)), 0).trees


def kernel_sum(contexts):
    """The smooth part, written out row by row."""
    value = []
    for x in contexts:
        u = (x[:2] - MEAN[:2]) / SPREAD[:2]
        value.append(sum(
            w * np.exp(-(abs(u[0] - c[0]) + abs(u[1] - c[1])) / 2.0)
            for c, w in zip(SMOOTH.centres, SMOOTH.coefficients, strict=True)
        ))  # fmt: skip
    return np.array(value)


def test_the_linear_part_is_centred_on_the_mean_context():
    forecast = Forecast(10.0, THETA, MEAN, SPREAD)
    assert forecast(MEAN[None, :])[0] == pytest.approx(10.0)
    assert forecast(np.zeros((1, 3)))[0] == pytest.approx(forecast.intercept) == 10.0 - 4.0
    np.testing.assert_allclose(forecast(X), 10.0 + (X - MEAN) @ THETA)
    np.testing.assert_array_equal(forecast.bend(X), 0.0)


def test_the_smooth_part_is_a_sum_of_laplace_kernels_in_standard_deviations():
    forecast = Forecast(10.0, THETA, MEAN, SPREAD, SMOOTH)
    np.testing.assert_allclose(forecast.bend(X), kernel_sum(X))
    np.testing.assert_allclose(forecast(X), 10.0 + (X - MEAN) @ THETA + kernel_sum(X))
    np.testing.assert_allclose(SMOOTH.scaled(0.25)(X[:, :2]), 0.25 * SMOOTH(X[:, :2]))


def test_far_from_all_rows_only_the_linear_part_is_left():
    far = np.array([[1e6, -1e6, 7.0]])
    forecast = Forecast(10.0, THETA, MEAN, SPREAD, SMOOTH)
    assert forecast.bend(far)[0] == 0.0
    assert forecast(far)[0] == pytest.approx(10.0 + (far[0] - MEAN) @ THETA)


def test_a_column_that_never_varied_says_nothing_later(trees):
    forecast = Forecast(10.0, THETA, MEAN, SPREAD, SMOOTH, trees)
    other = X.copy()
    other[:, 2] = -3.0
    np.testing.assert_array_equal(forecast(other), forecast(X))


def test_parts_are_added(trees):
    both = Forecast(10.0, THETA, MEAN, SPREAD, SMOOTH, trees)
    only = [Forecast(0.0, 0 * THETA, MEAN, SPREAD, *parts) for parts in ((SMOOTH, None), (None, trees))]
    np.testing.assert_allclose(both.bend(X), only[0](X) + only[1](X))
    np.testing.assert_allclose(both(X), Forecast(10.0, THETA, MEAN, SPREAD)(X) + both.bend(X))
    assert np.ptp(only[1](X)) > 0.5


@pytest.mark.parametrize("with_smooth", [False, True])
@pytest.mark.parametrize("with_trees", [False, True])
def test_a_forecast_comes_back_from_its_arrays(trees, with_smooth, with_trees):
    forecast = Forecast(
        10.0, THETA, MEAN, SPREAD, SMOOTH if with_smooth else None, trees if with_trees else None
    )
    arrays = {}
    again = unpack(pack("forecast", forecast, arrays), arrays)
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    np.testing.assert_array_equal(again(X), forecast(X))
    assert (again.smooth is not None, again.trees is not None) == (with_smooth, with_trees)
