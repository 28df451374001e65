import math
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf
from sklearn.preprocessing import StandardScaler

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Gaussian, Nominal
from surefoot.nominals.gaussian import correlation_root, ledoit_wolf_shrinkage

repeatable = settings(derandomize=True, deadline=None, max_examples=40)
seeds = st.integers(0, 10_000)


def pairs(seed=0, n=30, s=4, m=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, s)) @ rng.normal(size=(s, s)) + rng.normal(size=s)
    return X, X @ rng.normal(size=(s, m)) + rng.normal(size=(n, m))


def random_gaussian(seed=0, d=4, **options):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) * rng.uniform(0.1, 10, size=(d, 1))
    return Gaussian(rng.normal(size=d), root @ root.T, **options)


# Moments


@pytest.mark.parametrize("n_products", [1, 2])
def test_draws_have_the_moments(n_products):
    nominal, size = random_gaussian(1, n_products=n_products), 200_000
    X, y = nominal.sample(np.random.default_rng(0), size)
    assert X.shape == (size, 4 - n_products)
    assert y.shape == (size, n_products)
    joint = np.hstack([X, y])
    spread = np.sqrt(np.diag(nominal.covariance))
    assert (np.abs(joint.mean(axis=0) - nominal.mean) < 4.5 * spread / math.sqrt(size)).all()
    error = (np.cov(joint.T) - nominal.covariance) / np.outer(spread, spread)
    assert np.abs(error).max() < 4.5 * math.sqrt(2 / size)
    assert np.abs(((joint - nominal.mean) / spread) ** 3).mean(axis=0) == pytest.approx(1.596, rel=0.02)


def test_the_parts_are_those_of_the_joint():
    nominal = random_gaussian(2, d=5, n_products=2)
    assert (nominal.n_columns, nominal.n_products) == (3, 2)
    np.testing.assert_array_equal(np.append(nominal.context_mean, nominal.outcome_mean), nominal.mean)
    rebuilt = np.block(
        [
            [nominal.context_covariance, nominal.cross_covariance],
            [nominal.cross_covariance.T, nominal.outcome_covariance],
        ]
    )
    np.testing.assert_array_equal(rebuilt, nominal.covariance)
    assert nominal.cross_covariance.shape == (3, 2)


def test_singular_covariances_and_constant_columns():
    covariance = np.array([[4.0, 4.0, 0.0], [4.0, 4.0, 0.0], [0.0, 0.0, 0.0]])
    X, y = Gaussian([1.0, 2.0, 3.0], covariance).sample(np.random.default_rng(0), 1_000)
    np.testing.assert_allclose(X[:, 1] - X[:, 0], 1.0, atol=1e-6)
    assert X[:, 0].std() == pytest.approx(2.0, rel=0.1)
    assert (y == 3.0).all()


@repeatable
@given(seeds, st.lists(st.floats(0.01, 100), min_size=4, max_size=4))
def test_units_scale_draws(seed, units):
    nominal, units = random_gaussian(seed), np.array(units)
    scaled = Gaussian(nominal.mean * units, nominal.covariance * np.outer(units, units))
    one, other = (np.hstack(q.sample(np.random.default_rng(seed), 5)) for q in (nominal, scaled))
    np.testing.assert_allclose(other, one * units, rtol=1e-6, atol=1e-6 * units.max())


@repeatable
@given(seeds)
def test_the_root_is_symmetric_and_squares_to_the_matrix(seed):
    covariance = random_gaussian(seed).covariance
    spread = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(spread, spread)
    root = correlation_root(correlation)
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    np.testing.assert_allclose(root @ root, correlation, atol=1e-10)


def test_the_generator_decides():
    nominal = random_gaussian()
    one, same, other = (nominal.sample(np.random.default_rng(seed), 20) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one[0], same[0])
    np.testing.assert_array_equal(one[1], same[1])
    assert (one[0] != other[0]).all()
    rng = np.random.default_rng(3)
    assert (nominal.sample(rng, 20)[0] != nominal.sample(rng, 20)[0]).all()


# Fitting


@pytest.mark.parametrize(("n", "s"), [(10, 3), (40, 5), (20, 60), (500, 4)])
def test_contexts_shrink_as_ledoit_and_wolf_say_on_standardised_columns(n, s):
    X, y = pairs(seed=n, n=n, s=s)
    scaler = StandardScaler()
    judge = LedoitWolf(assume_centered=True).fit(scaler.fit_transform(X))
    nominal = Gaussian.fit(X, y)
    assert nominal.shrinkage[0] == pytest.approx(judge.shrinkage_, rel=1e-9)
    expected = judge.covariance_ * np.outer(scaler.scale_, scaler.scale_)
    np.testing.assert_allclose(nominal.context_covariance, expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(nominal.mean, np.hstack([X, y]).mean(axis=0))


@pytest.mark.parametrize(("n", "s", "m"), [(10, 3, 1), (40, 5, 2), (20, 60, 3)])
def test_outcomes_follow_from_shrunk_slopes_and_the_rows_own_residuals(n, s, m):
    X, y = pairs(seed=n, n=n, s=s, m=m)
    nominal = Gaussian.fit(X, y)
    X, y = X - X.mean(axis=0), y - y.mean(axis=0)
    z, v = X / X.std(axis=0), y / y.std(axis=0)
    products = z[:, :, None] * v[:, None, :]
    cross = products.mean(axis=0)
    share = min(((products - cross) ** 2).sum() / n**2 / (cross**2).sum(), 1.0)
    assert nominal.shrinkage[1] == pytest.approx(share)
    np.testing.assert_allclose(
        nominal.cross_covariance, (1 - share) * X.T @ y / n, rtol=1e-7, atol=1e-10
    )
    slopes = np.linalg.solve(nominal.context_covariance, nominal.cross_covariance)
    residuals = y - X @ slopes
    explained = slopes.T @ nominal.context_covariance @ slopes
    np.testing.assert_allclose(
        nominal.outcome_covariance, explained + residuals.T @ residuals / n, rtol=1e-7
    )


def test_uncorrelated_contexts_do_not_wipe_out_what_the_outcome_depends_on():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 10))
    nominal = Gaussian.fit(X, X.sum(axis=1) + 0.3 * rng.normal(size=60))
    slopes = np.linalg.solve(nominal.context_covariance, nominal.cross_covariance)
    assert nominal.shrinkage[0] > 0.9
    assert slopes.mean() > 0.6


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_number_shrinks_correlations_and_leaves_variances(share):
    X, y = pairs()
    nominal = Gaussian.fit(X, y, shrinkage=share)
    plain = np.cov(np.hstack([X, y]).T, ddof=0)
    expected = (1 - share) * plain + share * np.diag(np.diag(plain))
    np.testing.assert_allclose(nominal.covariance, expected, rtol=1e-10, atol=1e-12)
    assert nominal.shrinkage == (share, share)


@repeatable
@given(
    seeds, st.lists(st.floats(0.01, 100), min_size=5, max_size=5), st.sampled_from([0.2, "ledoit-wolf"])
)
def test_units_do_not_matter(seed, units, shrinkage):
    X, y = pairs(seed)
    units = np.array(units)
    one = Gaussian.fit(X, y, shrinkage=shrinkage)
    other = Gaussian.fit(X * units[:4] + 3.0, y * units[4], shrinkage=shrinkage)
    assert other.shrinkage == pytest.approx(one.shrinkage, rel=1e-6)
    np.testing.assert_allclose(
        other.covariance,
        one.covariance * np.outer(units, units),
        rtol=1e-6,
        atol=1e-9 * units.max() ** 2,
    )


@repeatable
@given(seeds, st.floats(0.1, 10))
def test_weights_count_relative_to_each_other(seed, factor):
    X, y = pairs(seed)
    weights = np.random.default_rng(seed).integers(0, 3, size=len(X)).astype(float)
    weights[:3] = 1.0
    one, other = (Gaussian.fit(X, y, sample_weight=w) for w in (weights, factor * weights))
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-9)
    kept = weights > 0
    dropped = Gaussian.fit(X[kept], y[kept], sample_weight=weights[kept])
    np.testing.assert_allclose(one.covariance, dropped.covariance, rtol=1e-9)
    np.testing.assert_allclose(one.mean, np.average(np.hstack([X, y]), axis=0, weights=weights))


def test_equal_weights_are_no_weights_and_repeated_rows_have_the_same_moments():
    X, y = pairs()
    times = np.arange(len(X)) % 3 + 1
    plain, equal = Gaussian.fit(X, y), Gaussian.fit(X, y, sample_weight=np.full(len(X), 7.0))
    np.testing.assert_allclose(plain.covariance, equal.covariance, rtol=1e-12)
    weighted = Gaussian.fit(X, y, sample_weight=times, shrinkage=0.0)
    repeated = Gaussian.fit(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0), shrinkage=0.0)
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-9)


def test_fewer_rows_shrink_more():
    few, many = (Gaussian.fit(*pairs(seed=1, n=n)).shrinkage for n in (8, 800))
    assert 0 < many[0] < few[0] <= 1
    assert 0 < many[1] < few[1] <= 1


def test_a_constant_column_has_no_variance_and_does_not_count():
    X, y = pairs()
    wide = np.insert(X, 1, 0.1, axis=1)
    nominal, narrow = Gaussian.fit(wide, y), Gaussian.fit(X, y)
    assert nominal.mean[1] == 0.1
    assert not nominal.covariance[1].any()
    assert not nominal.covariance[:, 1].any()
    assert nominal.shrinkage == pytest.approx(narrow.shrinkage)
    assert (nominal.sample(np.random.default_rng(0), 50)[0][:, 1] == 0.1).all()


def test_columns_that_all_stay():
    nominal = Gaussian.fit([[1.0], [1.0]], [2.0, 2.0])
    assert not nominal.covariance.any()
    assert nominal.shrinkage == (0.0, 0.0)
    assert not Gaussian.fit([[1.0], [1.0]], [2.0, 3.0]).cross_covariance.any()
    assert not Gaussian.fit([[1.0], [2.0]], [2.0, 2.0]).cross_covariance.any()


def test_uncorrelated_columns_are_their_own_target():
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert ledoit_wolf_shrinkage(square, np.full(4, 0.25)) == 0.0


# Shapes, names, printing


def test_names_come_from_frames_or_by_hand():
    X, y = pairs(s=2)
    assert Gaussian.fit(X, y).names is None
    assert Gaussian.fit(pd.DataFrame(X, columns=["price", "rain"]), y).names == ("price", "rain")
    assert Gaussian.fit(X, y, names=["a", "b"]).names == ("a", "b")
    assert random_gaussian(names=["a", "b", "c"]).names == ("a", "b", "c")
    assert isinstance(random_gaussian(), Nominal)


def test_repr_tells_sizes():
    assert repr(random_gaussian(n_products=2)) == "Gaussian(2 columns, 2 products)"
    assert (
        repr(Gaussian.fit(*pairs(), shrinkage=0.25))
        == "Gaussian(4 columns, 1 product, shrinkage 0.25 and 0.25)"
    )


def test_immutable():
    mean = np.zeros(2)
    nominal = Gaussian(mean, np.eye(2))
    mean[0] = 9.0
    assert nominal.mean[0] == 0.0
    with pytest.raises(FrozenInstanceError):
        nominal.mean = mean
    for array in (nominal.mean, nominal.covariance, nominal.context_mean):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": [[0.0, 0.0]]}, "mean must be a vector, got an array of shape (1, 2)."),
        ({"mean": [0.0, math.nan]}, "mean must be finite (no NaN, no infinity), got NaN in row 1."),
        ({"mean": ["a", "b"]}, "mean must be numeric, got text or dates (<U1)."),
        (
            {"mean": [0.0]},
            "mean must have at least one column of a context before 1 outcome, got 1 column.",
        ),
        (
            {"n_products": 2},
            "mean must have at least one column of a context before 2 outcomes, got 2 columns.",
        ),
        ({"n_products": 0}, "n_products must be >= 1, got 0."),
        (
            {"covariance": np.eye(3)},
            "covariance must have one row and one column per entry of mean, shape (2, 2), got shape (3, 3).",
        ),
        ({"covariance": [[1.0, 0.0], [0.0, -1.0]]}, "covariance must have a diagonal >= 0, got -1."),
        (
            {"covariance": [[1.0, 0.5], [0.4, 1.0]]},
            "covariance must be symmetric, got 0.5 and 0.4 in entries (0, 1) and (1, 0).",
        ),
        (
            {"covariance": [[1e6, 1.0], [1.0, 2.5e-7]]},
            "covariance must be positive semidefinite, got a correlation matrix with eigenvalue -1.",
        ),
        (
            {"covariance": [[0.0, 0.1], [0.1, 1.0]]},
            "covariance must be positive semidefinite, got a correlation matrix with eigenvalue -0.0099.",
        ),
        ({"names": ["a", "b"]}, "names must have one entry per column of X (1), got ['a', 'b']."),
    ],
)
def test_moments_are_checked(arguments, message):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message[:-1])}"):
        Gaussian(**{"mean": [0.0, 0.0], "covariance": np.eye(2), **arguments})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"shrinkage": "auto"}, InvalidInputError, "shrinkage must be 'ledoit-wolf', got 'auto'."),
        ({"shrinkage": -0.1}, InvalidInputError, "shrinkage must be >= 0, got -0.1."),
        ({"shrinkage": 1.1}, InvalidInputError, "shrinkage must be 'ledoit-wolf' or lie in [0, 1], got 1.1."),
        ({"shrinkage": None}, InvalidTypeError, "shrinkage must be a number, got None."),
        ({"sample_weight": [1, 0, 0]}, InvalidInputError, "X must have at least two rows of positive weight, got 1."),
        ({"sample_weight": [1, 2]}, InvalidInputError, "sample_weight must have one entry per row of X (3), got shape (2,)."),
        ({"y": [1.0]}, InvalidInputError, "y must have one row per row of X (3), got 1."),
        ({"X": [1.0, 2.0, 3.0]}, InvalidInputError, "X must be a matrix (rows, columns), got an array of shape (3,)."),
        ({"names": 3}, InvalidTypeError, "names must be a sequence of column names or None, got 3."),
    ],
)  # fmt: skip
def test_fits_are_checked(arguments, error, message):
    given_ = {"X": [[1.0], [2.0], [4.0]], "y": [1.0, 3.0, 2.0], **arguments}
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Gaussian.fit(given_.pop("X"), given_.pop("y"), **given_)
