"""Every claim is held against the Gaussian model solved directly, row by row, with numpy.linalg."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from surefoot.forecasts.rows import Rows
from surefoot.forecasts.spectrum import Spectrum, log_mean

STRENGTHS = [(0.0, 0.0), (0.3, 0.0), (1e3, 0.0), (0.0, 2.0), (0.3, 2.0), (20.0, 0.05)]
A, B = (np.array(part) for part in zip(*STRENGTHS, strict=True))
SHAPES = {"tall": (12, 3), "wide": (12, 40), "square": (12, 12), "one column": (12, 1)}


def direct(Z, y, masses, a, b):
    """Constant, coefficients and -2 log restricted likelihood of y = t + Z beta + noise / sqrt(m)."""
    n, s = Z.shape
    prior = a * np.eye(s) + b * np.ones((s, s))
    inverse = np.linalg.inv(Z @ prior @ Z.T + np.diag(1.0 / masses))
    ones = np.ones(n)
    constant = (ones @ inverse @ y) / (ones @ inverse @ ones)
    dual = inverse @ (y - constant)
    twice = -np.linalg.slogdet(inverse)[1] + np.log(ones @ inverse @ ones)
    twice += (n - 1) * np.log((y - constant) @ dual)
    return constant, prior @ Z.T @ dual, twice


def left_out(Z, y, masses, a, b):
    """Errors of models that were learned without the row."""
    errors = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        constant, beta, _ = direct(Z[others], y[others], masses[others], a, b)
        errors.append(y[i] - constant - Z[i] @ beta)
    return np.array(errors)


@pytest.fixture(params=SHAPES)
def case(request):
    n, s = SHAPES[request.param]
    rng = np.random.default_rng(s)
    Z = rng.normal(1.0, 2.0, size=(n, s)) / np.sqrt(s)
    return Z, Z.sum(axis=1) + rng.normal(5.0, 1.0, size=n)


@pytest.fixture(params=["equal", "masses"])
def masses(request):
    return np.ones(12) if request.param == "equal" else np.random.default_rng(9).uniform(0.2, 3.0, 12)


def solved(Z, y, masses):
    return Spectrum.of(Z, Rows(Z, y, masses)).solve(A, B)


def test_coefficients_are_those_of_the_gaussian_model(case, masses):
    paths = solved(*case, masses)
    for k, (a, b) in enumerate(STRENGTHS):
        _, beta, _ = direct(*case, masses, a, b)
        np.testing.assert_allclose(paths.coefficients[k], beta, rtol=1e-6, atol=1e-8)


def test_without_a_common_part_it_is_ridge_regression(case, masses):
    Z, y = case
    paths = solved(Z, y, masses)
    for k, (a, b) in enumerate(STRENGTHS):
        if b == 0.0 and a > 0.0:
            ridge = Ridge(alpha=1.0 / a, solver="svd").fit(Z, y, sample_weight=masses)
            np.testing.assert_allclose(paths.coefficients[k], ridge.coef_, rtol=1e-6, atol=1e-8)


def test_errors_are_those_of_models_learned_without_the_row(case, masses):
    paths = solved(*case, masses)
    for k, (a, b) in enumerate(STRENGTHS):
        np.testing.assert_allclose(paths.errors[k], left_out(*case, masses, a, b), rtol=1e-5, atol=1e-7)


def test_evidence_is_the_restricted_likelihood_up_to_a_constant(case, masses):
    paths = solved(*case, masses)
    exact = np.array([-0.5 * direct(*case, masses, a, b)[2] for a, b in STRENGTHS])
    np.testing.assert_allclose(paths.evidence - paths.evidence[0], exact - exact[0], atol=1e-6)


def test_a_row_of_mass_two_is_the_row_twice_and_both_are_left_out(case):
    Z, y = case
    masses = np.array([2.0, 1.0, 3.0] + [1.0] * 9)
    times = np.repeat(np.arange(12), masses.astype(int))
    paths = solved(Z, y, masses)
    for k, (a, b) in enumerate(STRENGTHS):
        _, beta, _ = direct(Z[times], y[times], np.ones(len(times)), a, b)
        np.testing.assert_allclose(paths.coefficients[k], beta, rtol=1e-6, atol=1e-8)
        for i in (0, 2, 5):
            rest = times[times != i]
            constant, beta, _ = direct(Z[rest], y[rest], np.ones(len(rest)), a, b)
            error = y[i] - constant - Z[i] @ beta
            assert paths.errors[k, i] == pytest.approx(error, rel=1e-5, abs=1e-7)


def test_zero_variance_is_the_mean_of_the_other_rows(case):
    Z, y = case
    paths = solved(Z, y, np.ones(12))
    np.testing.assert_array_equal(paths.coefficients[0], 0.0)
    np.testing.assert_allclose(paths.errors[0], y - (y.sum() - y) / 11)


def test_repeated_and_constant_features_are_no_trouble():
    rng = np.random.default_rng(0)
    column, y = rng.normal(size=12), rng.normal(size=12)
    Z = np.column_stack([column, column, np.full(12, 7.0)])
    paths = solved(Z, y, np.ones(12))
    for k, (a, b) in enumerate(STRENGTHS):
        _, beta, _ = direct(Z, y, np.ones(12), a, b)
        np.testing.assert_allclose(paths.coefficients[k, :2], beta[:2], rtol=1e-5, atol=1e-8)
        errors = left_out(Z, y, np.ones(12), a, b)
        np.testing.assert_allclose(paths.errors[k], errors, rtol=1e-5, atol=1e-7)


def test_probabilities_of_strengths_follow_their_evidence():
    rows = Rows(np.eye(3), np.arange(3.0), np.ones(3))
    paths = Spectrum.of(np.eye(3), rows).solve(np.ones(3), np.zeros(3))
    paths = replace(paths, evidence=np.log([1.0, 2.0, 5.0]) - 4_000.0)
    np.testing.assert_allclose(paths.by_evidence(), np.array([1.0, 2.0, 5.0]) / 8.0)
    assert log_mean(paths.evidence) == pytest.approx(np.log(8.0 / 3.0) - 4_000.0)


def test_evidence_of_a_grid_is_that_of_its_pairs():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    spectrum = Spectrum.of(Z, Rows(Z, y, np.ones(12)))
    a, b = np.array([0.0, 0.1, 5.0]), np.array([0.0, 2.0])
    pairs = spectrum.solve(np.repeat(a, 2), np.tile(b, 3)).evidence
    np.testing.assert_allclose(spectrum.evidence(a, b).ravel(), pairs, rtol=1e-13)
