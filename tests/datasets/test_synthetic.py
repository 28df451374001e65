import math
import re

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from surefoot.datasets import synthetic
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from tests.global_randomness import left_alone

PATTERNS = [
    (coefficients, contexts)
    for coefficients in ("positive", "mixed")
    for contexts in ("uniform", "gaussian")
]


def cost(decisions, outcomes, backorder, holding):
    r = decisions - outcomes
    return np.maximum(holding * r, -backorder * r).mean()


def test_shapes_and_repr():
    data = synthetic(7, 3, test=11, noise_variance=0.5)
    assert data.X.shape == (7, 3)
    assert data.y.shape == (7,)
    assert data.X_test.shape == (11, 3)
    assert data.y_test.shape == (11,)
    assert data.theta.shape == (3,)
    assert isinstance(data.intercept, float)
    assert repr(data) == "SyntheticData(7 rows, 3 contexts, 11 test rows, noise variance 0.5)"


@pytest.mark.parametrize(("coefficients", "contexts"), PATTERNS)
def test_rows_are_a_prefix_of_more_rows(coefficients, contexts):
    options = {"coefficients": coefficients, "contexts": contexts, "seed": 3, "test": 20}
    few, many = synthetic(10, 37, **options), synthetic(100, 37, **options)
    np.testing.assert_array_equal(few.X, many.X[:10])
    np.testing.assert_array_equal(few.y, many.y[:10])
    for name in ("X_test", "y_test", "theta", "intercept"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name))


def test_test_rows_are_a_prefix_too_and_leave_training_rows_alone():
    few, many = synthetic(10, 4, test=5), synthetic(10, 4, test=50)
    np.testing.assert_array_equal(few.y_test, many.y_test[:5])
    np.testing.assert_array_equal(few.y, many.y)


@pytest.mark.parametrize("contexts", ["uniform", "gaussian"])
def test_streams_differ(contexts):
    data, other = (synthetic(10, 4, contexts=contexts, seed=seed, test=10) for seed in (0, 1))
    assert not np.intersect1d(data.X, data.X_test).size
    noise = data.y - data.X @ data.theta - data.intercept
    noise_test = data.y_test - data.X_test @ data.theta - data.intercept
    assert np.abs(noise - noise_test).min() > 1e-6
    for name in ("X", "y", "X_test", "y_test", "theta"):
        assert not np.intersect1d(getattr(data, name), getattr(other, name)).size


def test_the_user_s_global_generator_is_left_alone():
    with left_alone():
        synthetic(5, 2, test=5)


@pytest.mark.parametrize("variance", [0.0, 0.1, 5.0])
def test_outcomes_follow_the_model(variance):
    data = synthetic(3, 4, noise_variance=variance, test=40_000, seed=2)
    noise = data.y_test - data.X_test @ data.theta - data.intercept
    # Five standard errors of a mean and of a variance.
    assert noise.mean() == pytest.approx(0, abs=5 * math.sqrt(variance / 40_000) + 1e-12)
    assert noise.var() == pytest.approx(variance, abs=5 * variance * math.sqrt(2 / 40_000) + 1e-12)


def test_variance_only_scales_the_noise():
    small, large = (synthetic(50, 4, noise_variance=v, test=5) for v in (0.25, 4.0))
    signal = small.X @ small.theta + small.intercept
    np.testing.assert_array_equal(small.X, large.X)
    np.testing.assert_allclose(large.y - signal, 4 * (small.y - signal), atol=1e-12)


def test_positive_and_mixed_coefficients():
    positive = synthetic(1, 4000, test=1)
    mixed = synthetic(1, 4000, coefficients="mixed", test=1)
    assert positive.theta.min() >= 0
    assert positive.theta.max() <= 1
    assert 0 <= positive.intercept <= 1
    assert positive.theta.mean() == pytest.approx(0.5, abs=0.025)
    assert positive.theta.var() == pytest.approx(1 / 12, abs=0.006)
    assert mixed.theta.mean() == pytest.approx(0, abs=0.08)
    assert mixed.theta.var() == pytest.approx(1, abs=0.12)


def test_intercept_is_drawn_like_the_coefficients():
    positive = [synthetic(1, 1, seed=seed, test=1).intercept for seed in range(400)]
    mixed = [synthetic(1, 1, coefficients="mixed", seed=k, test=1).intercept for k in range(400)]
    assert np.mean(positive) == pytest.approx(0.5, abs=0.075)
    assert np.mean(mixed) == pytest.approx(0, abs=0.25)
    assert np.std(mixed) == pytest.approx(1, abs=0.18)


def test_uniform_and_gaussian_contexts():
    uniform = synthetic(1, 5, test=20_000).X_test
    gaussian = synthetic(1, 5, contexts="gaussian", test=20_000).X_test
    assert uniform.min() >= 0
    assert uniform.max() <= 1
    np.testing.assert_allclose(uniform.mean(axis=0), 0.5, atol=0.012)
    np.testing.assert_allclose(np.cov(uniform.T), np.eye(5) / 12, atol=0.005)
    np.testing.assert_allclose(gaussian.mean(axis=0), 0, atol=0.04)
    np.testing.assert_allclose(np.cov(gaussian.T), np.eye(5), atol=0.06)


@pytest.mark.parametrize(("coefficients", "contexts"), PATTERNS)
@pytest.mark.parametrize(("backorder", "holding"), [(1.0, 0.2), (2.0, 6.0), (3.0, 3.0)])
def test_oracle_cost_agrees_with_simulation(coefficients, contexts, backorder, holding):
    data = synthetic(
        1, 3, coefficients=coefficients, contexts=contexts, noise_variance=0.5, test=100_000
    )
    z = data.oracle_decisions(data.X_test, backorder, holding)
    # The cost of a row has a standard deviation below max(b, h) * sigma: five standard errors.
    tolerance = 5 * max(backorder, holding) * math.sqrt(0.5 / 100_000)
    simulated = cost(z, data.y_test, backorder, holding)
    assert data.oracle_cost(backorder, holding) == pytest.approx(simulated, abs=tolerance)
    for shift in (-0.3, 0.3):
        assert cost(z + shift, data.y_test, backorder, holding) > simulated


def test_oracle_decisions_are_the_conditional_quantile():
    data = synthetic(6, 3, noise_variance=4.0, test=1)
    expected = norm.ppf(1 / 1.2, loc=data.X @ data.theta + data.intercept, scale=2.0)
    np.testing.assert_allclose(data.oracle_decisions(data.X, 1.0, 0.2), expected)


def test_oracle_cost_agrees_with_quadrature():
    def density(y):
        r = norm.ppf(1 / 1.2) - y
        return max(0.2 * r, -r) * norm.pdf(y)

    expected, _ = quad(density, -12, 12, points=[norm.ppf(1 / 1.2)])
    assert synthetic(1, 1, test=1).oracle_cost(1.0, 0.2) == pytest.approx(expected, abs=1e-9)


def test_oracle_scales_with_the_noise_and_the_costs():
    one, nine = (synthetic(1, 2, noise_variance=v, test=1) for v in (1.0, 9.0))
    assert nine.oracle_cost(1.0, 0.2) == pytest.approx(3 * one.oracle_cost(1.0, 0.2))
    assert one.oracle_cost(10.0, 2.0) == pytest.approx(10 * one.oracle_cost(1.0, 0.2))
    assert one.oracle_cost(0.2, 1.0) == pytest.approx(one.oracle_cost(1.0, 0.2))


def test_oracle_without_noise_costs_nothing():
    data = synthetic(5, 2, noise_variance=0.0, test=1)
    assert data.oracle_cost(1.0, 0.2) == 0
    np.testing.assert_allclose(data.oracle_decisions(data.X, 1.0, 0.2), data.y)


@pytest.mark.parametrize(("backorder", "holding"), [(1.0, 1e-20), (1e-20, 1.0)])
def test_oracle_survives_extreme_cost_ratios(backorder, holding):
    data = synthetic(1, 1, test=1)
    z = data.oracle_decisions(data.X, backorder, holding)[0]
    middle = data.oracle_decisions(data.X, 1.0, 1.0)[0]
    assert abs(z - middle) == pytest.approx(-norm.ppf(1e-20))
    assert (z > middle) == (backorder > holding)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 0}, InvalidInputError, "n must be >= 1, got 0."),
        ({"s": 0}, InvalidInputError, "s must be >= 1, got 0."),
        ({"n": 2.5}, InvalidTypeError, "n must be a whole number, got 2.5."),
        ({"test": 0}, InvalidInputError, "test must be >= 1, got 0."),
        ({"seed": -1}, InvalidInputError, "seed must be >= 0, got -1."),
        ({"noise_variance": -1}, InvalidInputError, "noise_variance must be >= 0, got -1.0."),
        ({"noise_variance": math.nan}, InvalidInputError, "noise_variance must be >= 0, got nan."),
        (
            {"coefficients": "negative"},
            InvalidInputError,
            "coefficients must be 'positive' or 'mixed', got 'negative'.",
        ),
        (
            {"contexts": "normal"},
            InvalidInputError,
            "contexts must be 'uniform' or 'gaussian', got 'normal'.",
        ),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        synthetic(**({"n": 3, "s": 2, "test": 1} | options))


@pytest.mark.parametrize(
    ("backorder", "holding", "message"),
    [(0, 1.0, "backorder must be > 0, got 0.0."), (1.0, -2, "holding must be > 0, got -2.0.")],
)
def test_bad_costs(backorder, holding, message):
    data = synthetic(3, 2, test=1)
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        data.oracle_cost(backorder, holding)
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        data.oracle_decisions(data.X, backorder, holding)


def test_oracle_refuses_the_wrong_number_of_columns():
    data = synthetic(3, 2, test=1)
    with pytest.raises(InvalidInputError, match=r"X must have 2 columns .*, got 3\."):
        data.oracle_decisions(np.ones((1, 3)), 1.0, 0.2)
