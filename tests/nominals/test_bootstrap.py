import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Empirical, Gaussian, SmoothedBootstrap
from surefoot.nominals.bootstrap import silverman_bandwidth

repeatable = settings(derandomize=True, deadline=None, max_examples=40)
SIZE = 100_000


def pairs(seed=0, n=25, s=3):
    """Skewed contexts, an outcome that depends on them, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, s)) @ rng.normal(size=(s, s))
    return X, X.sum(axis=1) + rng.exponential(size=n), rng.uniform(0.2, 2.0, size=n)


def moments(table, weights=None):
    return np.average(table, axis=0, weights=weights), np.cov(table.T, aweights=weights, ddof=0)


def drawn(nominal, size=SIZE, seed=0):
    return np.hstack(nominal.sample(np.random.default_rng(seed), size))


@pytest.mark.parametrize("bandwidth", ["auto", 0.0, 0.3, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_mean_and_covariance_are_kept(bandwidth, weighted):
    X, y, weights = pairs()
    weights = weights if weighted else None
    nominal = SmoothedBootstrap(X, y, bandwidth=bandwidth, sample_weight=weights)
    mean, covariance = moments(np.column_stack([X, y]), weights)
    got_mean, got = moments(drawn(nominal))
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(got_mean - mean) < 4.5 * spread / math.sqrt(SIZE)).all()
    # Fourth moments of the rows are larger than a Gaussian's.
    assert np.abs((got - covariance) / np.outer(spread, spread)).max() < 0.03


def test_variances_grow_unless_kept():
    X, y, _ = pairs()
    mean, covariance = moments(np.column_stack([X, y]))
    got_mean, got = moments(drawn(SmoothedBootstrap(X, y, bandwidth=0.5, keep_variance=False)))
    np.testing.assert_allclose(got, 1.25 * covariance, rtol=0.1, atol=0.02 * covariance.max())
    assert np.diag(got) == pytest.approx(1.25 * np.diag(covariance), rel=0.03)
    np.testing.assert_allclose(got_mean, mean, atol=0.05)


def test_no_bandwidth_is_the_empirical_distribution():
    X, y, weights = pairs()
    smooth = SmoothedBootstrap(X, y, bandwidth=0.0, sample_weight=weights)
    empirical = Empirical(X, y, weights)
    np.testing.assert_allclose(drawn(smooth, 500), drawn(empirical, 500), atol=1e-12)


def test_a_large_bandwidth_is_the_gaussian_distribution():
    X, y, _ = pairs()
    rows = drawn(SmoothedBootstrap(X, y, bandwidth=1e4))
    gaussian = drawn(Gaussian.fit(X, y, shrinkage=0.0), seed=1)
    for column, other in zip(rows.T, gaussian.T, strict=True):
        shares = np.linspace(0.02, 0.98, 25)
        gap = np.quantile(column, shares) - np.quantile(other, shares)
        assert np.abs(gap).max() < 0.04 * other.std()


def test_noise_is_a_bandwidth_of_standard_deviations():
    X, y, _ = pairs(n=10)
    nominal = SmoothedBootstrap(X, y, bandwidth=0.01, keep_variance=False)
    rows, table = drawn(nominal, 20_000), np.column_stack([X, y])
    nearest = np.argmin(((rows[:, None] - table) ** 2).sum(axis=2), axis=1)
    noise = rows - table[nearest]
    np.testing.assert_allclose(noise.std(axis=0), 0.01 * table.std(axis=0), rtol=0.05)
    np.testing.assert_allclose(np.corrcoef(noise.T), np.corrcoef(table.T), atol=0.05)
    assert np.bincount(nearest, minlength=10).min() > 1_700


def test_frozen_and_constant_columns_are_drawn_as_they_were():
    X, y, _ = pairs()
    X[:, 0], X[:, 1] = X[:, 0] > X[:, 0].mean(), 0.1
    frame = pd.DataFrame(X, columns=["holiday", "always", "rain"])
    by_name = SmoothedBootstrap(frame, y, frozen=("holiday",))
    assert by_name.noisy.tolist() == [False, False, True, True]
    rows = drawn(by_name, 5_000)
    assert set(rows[:, 0].tolist()) == {0.0, 1.0}
    assert (rows[:, 1] == 0.1).all()
    assert len(np.unique(rows[:, 2])) == 5_000
    np.testing.assert_array_equal(rows, drawn(SmoothedBootstrap(X, y, frozen=(-3,)), 5_000))


def test_nothing_left_to_move():
    nominal = SmoothedBootstrap([[1.0], [2.0]], [3.0, 3.0], frozen=(0,))
    X, y = nominal.sample(np.random.default_rng(0), 10)
    assert set(X[:, 0]) == {1.0, 2.0}
    assert (y == 3.0).all()


@pytest.mark.parametrize(("d", "n"), [(1, 100), (4, 25), (50, 25)])
def test_silverman_s_rule(d, n):
    width = silverman_bandwidth(d, np.full(n, 1 / n))
    assert width == pytest.approx((4 / ((d + 2) * n)) ** (1 / (d + 4)))
    rows = np.random.default_rng(0).normal(size=(n, d))
    if d > 1:
        assert SmoothedBootstrap(rows[:, 1:], rows[:, 0]).bandwidth == pytest.approx(width)


def test_unequal_weights_are_fewer_rows():
    X, y, _ = pairs(n=20)
    half = np.repeat([1.0, 0.0], 10)
    weighted = SmoothedBootstrap(X, y, sample_weight=half)
    assert weighted.bandwidth == pytest.approx(SmoothedBootstrap(X[:10], y[:10]).bandwidth)
    assert np.isin(weighted.sample(np.random.default_rng(0), 50)[1], y[10:]).sum() == 0


@repeatable
@given(st.integers(0, 1_000), st.lists(st.floats(0.01, 100), min_size=4, max_size=4), st.floats(-5, 5))
def test_units_and_origins_move_draws_along(seed, units, shift):
    X, y, weights = pairs(seed)
    units = np.array(units)
    one = SmoothedBootstrap(X, y, sample_weight=weights)
    other = SmoothedBootstrap(X * units[:3] + shift, y * units[3] + shift, sample_weight=weights)
    np.testing.assert_allclose(
        drawn(other, 20), drawn(one, 20) * units + shift, rtol=1e-6, atol=1e-6 * units.max()
    )


def test_the_generator_decides():
    X, y, _ = pairs()
    nominal = SmoothedBootstrap(X, y)
    np.testing.assert_array_equal(drawn(nominal, 20, seed=3), drawn(nominal, 20, seed=3))
    assert (drawn(nominal, 20, seed=3) != drawn(nominal, 20, seed=4)).all()


def test_sizes_and_names():
    X, y, _ = pairs()
    nominal = SmoothedBootstrap(X, np.column_stack([y, y**2]), bandwidth=0.5, names=["a", "b", "c"])
    assert repr(nominal) == "SmoothedBootstrap(25 rows, 3 columns, 2 products, bandwidth 0.5)"
    assert nominal.names == ("a", "b", "c")
    assert [part.shape for part in nominal.sample(np.random.default_rng(0), 7)] == [(7, 3), (7, 2)]
    with pytest.raises(ValueError, match="read-only"):
        nominal.contexts[0] = 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bandwidth": -0.1}, InvalidInputError, "bandwidth must be >= 0, got -0.1."),
        ({"bandwidth": math.inf}, InvalidInputError, "bandwidth must be finite, got inf."),
        ({"bandwidth": "scott"}, InvalidInputError, "bandwidth must be 'auto', got 'scott'."),
        ({"bandwidth": None}, InvalidTypeError, "bandwidth must be a number, got None."),
        ({"keep_variance": 1}, InvalidTypeError, "keep_variance must be True or False, got 1."),
        ({"frozen": (2,)}, InvalidInputError, "frozen must hold positions of columns below 2, got 2."),
        ({"frozen": (True,)}, InvalidInputError, "frozen must hold positions of columns below 2, got True."),
        ({"frozen": ("rain",)}, InvalidInputError, "frozen must hold positions of columns below 2, got 'rain'."),
        (
            {"frozen": ("rain",), "names": ["a", "b"]},
            InvalidInputError,
            "frozen must hold positions of columns below 2 or names (a, b), got 'rain'.",
        ),
        ({"frozen": "rain"}, InvalidTypeError, "frozen must be a sequence of columns such as (0, 'holiday'), got 'rain'."),
        ({"frozen": 0}, InvalidTypeError, "frozen must be a sequence of columns such as (0, 'holiday'), got 0."),
        ({"names": ["a"]}, InvalidInputError, "names must have one entry per column of X (2), got ['a']."),
        ({"names": 7}, InvalidTypeError, "names must be a sequence of column names or None, got 7."),
        ({"sample_weight": [0, 0]}, InvalidInputError, "sample_weight must have a positive sum, got all zeros."),
    ],
)  # fmt: skip
def test_options_are_checked(arguments, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        SmoothedBootstrap([[1.0, 2.0], [3.0, 5.0]], [1.0, 2.0], **arguments)


def test_data_are_checked():
    with pytest.raises(InvalidInputError, match="^X must be finite"):
        SmoothedBootstrap([[math.nan]], [1.0])
    with pytest.raises(InvalidInputError, match="^y must have one row per row of X"):
        SmoothedBootstrap([[1.0]], [1.0, 2.0])
