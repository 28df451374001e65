import re

import numpy as np
import pytest
from scipy import stats

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Joint, Sampler
from tests.global_randomness import left_alone


def simulator(rng, size):
    X = rng.uniform(size=(size, 2))
    return X, rng.poisson(10 * X[:, 0])


# Functions


def test_a_function_is_asked_for_rows_with_the_generator_handed_in():
    nominal = Sampler(simulator, 2, names=["rain", "sun"])
    X, y = nominal.sample(np.random.default_rng(5), 40)
    expected_X, expected_y = simulator(np.random.default_rng(5), 40)
    np.testing.assert_array_equal(X, expected_X)
    np.testing.assert_array_equal(y, expected_y[:, None])
    assert y.dtype == np.float64
    assert (nominal.n_columns, nominal.n_products, nominal.names) == (2, 1, ("rain", "sun"))


def test_several_products_and_frames():
    def table(rng, size):
        return rng.normal(size=(size, 2)).tolist(), rng.normal(size=(size, 3))

    nominal = Sampler(table, 2, 3)
    assert [part.shape for part in nominal.sample(np.random.default_rng(0), 4)] == [(4, 2), (4, 3)]


def test_reprs():
    assert repr(Sampler(simulator, 2)) == "Sampler(simulator, 2 columns, 1 product)"

    class Model:
        def __call__(self, rng, size):
            return simulator(rng, size)

    assert repr(Sampler(Model(), 2)) == "Sampler(Model, 2 columns, 1 product)"


WANTED = "contexts of shape (3, 2) and outcomes of shape (3, 1)"


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (np.zeros((3, 3)), InvalidTypeError, f"fn must return a pair, {WANTED}, got ndarray."),
        (None, InvalidTypeError, f"fn must return a pair, {WANTED}, got NoneType."),
        ((1, 2, 3), InvalidTypeError, f"fn must return a pair, {WANTED}, got 3 things."),
        (
            (np.zeros((3, 1)), np.zeros(3)),
            InvalidInputError,
            f"fn must return {WANTED}, got shapes (3, 1) and (3, 1).",
        ),
        (
            (np.zeros((2, 2)), np.zeros(3)),
            InvalidInputError,
            f"fn must return {WANTED}, got shapes (2, 2) and (3, 1).",
        ),
        (
            (np.zeros((3, 2)), np.zeros((3, 2))),
            InvalidInputError,
            f"fn must return {WANTED}, got shapes (3, 2) and (3, 2).",
        ),
        (
            (np.full((3, 2), np.inf), np.zeros(3)),
            InvalidInputError,
            "fn's contexts must be finite (no NaN, no infinity), got infinity in row 0, column 0.",
        ),
        (
            (np.zeros((3, 2)), [0.0, np.nan, 0.0]),
            InvalidInputError,
            "fn's outcomes must be finite (no NaN, no infinity), got NaN in row 1, column 0.",
        ),
        (
            (np.zeros((3, 2)), ["1", "2", "3"]),
            InvalidInputError,
            "fn's outcomes must be numeric, got text or dates (<U1).",
        ),
        (
            ([[1.0], [1.0, 2.0]], np.zeros(3)),
            InvalidInputError,
            "fn's contexts must be a rectangular array, got rows of different lengths.",
        ),
    ],
)
def test_every_draw_is_checked(returned, error, message):
    nominal = Sampler(lambda rng, size: returned, 2)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        nominal.sample(np.random.default_rng(0), 3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"fn": 3}, InvalidTypeError, "fn must be a function fn(rng, size), got 3."),
        ({"n_columns": 0}, InvalidInputError, "n_columns must be >= 1, got 0."),
        ({"n_columns": 1.0}, InvalidTypeError, "n_columns must be a whole number, got 1.0."),
        ({"n_products": 0}, InvalidInputError, "n_products must be >= 1, got 0."),
        (
            {"names": ["a"]},
            InvalidInputError,
            "names must have one entry per column of X (2), got ['a'].",
        ),
    ],
)
def test_options_of_a_sampler_are_checked(arguments, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Sampler(**{"fn": simulator, "n_columns": 2, **arguments})


# Distributions of scipy.stats

COVARIANCE = [[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 1.5]]


@pytest.mark.parametrize(
    ("distribution", "mean", "covariance"),
    [
        (stats.multivariate_normal([1, 2, 3], COVARIANCE), [1, 2, 3], COVARIANCE),
        (stats.multivariate_t([1, 2, 3], COVARIANCE, df=10), [1, 2, 3], np.array(COVARIANCE) * 10 / 8),
        (stats.dirichlet([1.0, 2.0, 3.0]), stats.dirichlet([1.0, 2.0, 3.0]).mean(), None),
        (stats.multinomial(10, [0.2, 0.3, 0.5]), [2, 3, 5], None),
    ],
)
def test_draws_have_the_moments(distribution, mean, covariance):
    nominal = Joint(distribution)
    assert (nominal.n_columns, nominal.n_products) == (2, 1)
    X, y = nominal.sample(np.random.default_rng(0), 100_000)
    joint = np.hstack([X, y])
    assert joint.dtype == np.float64
    np.testing.assert_allclose(joint.mean(axis=0), mean, atol=0.03)
    if covariance is not None:
        np.testing.assert_allclose(np.cov(joint.T), covariance, atol=0.06)


def test_outcomes_come_last_and_draws_repeat():
    distribution = stats.multivariate_normal([1, 2, 3], COVARIANCE)
    nominal = Joint(distribution, n_products=2, names=["rain"])
    X, y = nominal.sample(np.random.default_rng(7), 5)
    expected = distribution.rvs(size=5, random_state=np.random.default_rng(7))
    np.testing.assert_array_equal(np.hstack([X, y]), expected)
    assert X.shape == (5, 1)
    assert nominal.names == ("rain",)
    assert repr(nominal) == "Joint(multivariate_normal, 1 column, 2 products)"


@pytest.mark.parametrize(
    "distribution", [stats.multivariate_normal(np.zeros(3)), stats.dirichlet(np.ones(3))]
)
def test_one_draw_is_one_row(distribution):
    X, y = Joint(distribution).sample(np.random.default_rng(0), 1)
    assert (X.shape, y.shape) == ((1, 2), (1, 1))


def test_neither_the_trial_draw_nor_sampling_touches_global_randomness():
    with left_alone(seed=0):
        Joint(stats.multivariate_normal(np.zeros(2))).sample(np.random.default_rng(0), 10)


FROZEN = "distribution must be a frozen joint distribution of scipy.stats such as multivariate_normal(mean, cov)"


@pytest.mark.parametrize(
    ("distribution", "error", "message"),
    [
        (stats.norm(), InvalidInputError, f"{FROZEN}, which draws vectors (context first, outcome last), got rv_continuous_frozen, which draws single numbers."),
        (stats.multivariate_normal, InvalidInputError, f"{FROZEN}, which draws vectors (context first, outcome last), got multivariate_normal_gen, which draws single numbers."),
        (stats.wishart(4, np.eye(3)), InvalidInputError, f"{FROZEN}, which draws vectors (context first, outcome last), got wishart_frozen, which draws shape (3, 3)."),
        (3, InvalidTypeError, f"{FROZEN}, with rvs(size=, random_state=), got 3."),
    ],
)  # fmt: skip
def test_other_distributions_are_refused(distribution, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Joint(distribution)


def test_rvs_without_a_random_state_is_refused():
    class Odd:
        def rvs(self, size):
            return np.zeros((size, 2))

    with pytest.raises(InvalidTypeError, match=r"with rvs\(size=, random_state=\), got Odd"):
        Joint(Odd())


def test_draws_of_a_distribution_are_checked():
    class Broken:
        def rvs(self, size, random_state):
            return np.full((size, 2), np.nan if size > 2 else 0.0)

    with pytest.raises(InvalidInputError, match="^a draw of distribution must be finite"):
        Joint(Broken()).sample(np.random.default_rng(0), 5)


def test_options_of_a_joint_are_checked():
    distribution = stats.multivariate_normal(np.zeros(2))
    with pytest.raises(InvalidInputError, match="before 2 outcomes, got 2 columns"):
        Joint(distribution, n_products=2)
    with pytest.raises(InvalidInputError, match="names must have one entry per column of X"):
        Joint(distribution, names=["a", "b"])
