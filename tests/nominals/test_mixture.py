import math
import re

import numpy as np
import pytest

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Empirical, Gaussian, Mixture

LOW, HIGH = Empirical([[0.0]], [0.0]), Empirical([[1.0]], [5.0])
PLANE = Gaussian(np.zeros(3), np.eye(3))


def test_components_are_drawn_by_weight():
    X, y = Mixture([LOW, HIGH], [0.3, 0.7]).sample(np.random.default_rng(0), 50_000)
    np.testing.assert_array_equal(y, 5 * X)
    assert X.mean() == pytest.approx(0.7, abs=4.5 * math.sqrt(0.21 / 50_000))


def test_equal_weights_by_default():
    nominal = Mixture([LOW, HIGH, LOW, HIGH])
    assert nominal.weights.tolist() == [0.25] * 4
    assert nominal.sample(np.random.default_rng(0), 20_000)[0].mean() == pytest.approx(0.5, abs=0.02)


def test_moments_are_mixed():
    one, other = Gaussian([1.0, 2.0], np.eye(2)), Gaussian([-3.0, 0.0], 4 * np.eye(2))
    joint = np.hstack(Mixture([one, other], [0.25, 0.75]).sample(np.random.default_rng(0), 200_000))
    mean = 0.25 * one.mean + 0.75 * other.mean
    apart = [np.outer(q.mean - mean, q.mean - mean) for q in (one, other)]
    covariance = 0.25 * (one.covariance + apart[0]) + 0.75 * (other.covariance + apart[1])
    np.testing.assert_allclose(joint.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(joint.T), covariance, atol=0.1)


def test_the_order_is_random():
    X, _ = Mixture([LOW, HIGH]).sample(np.random.default_rng(0), 10_000)
    halves = X[:5_000].mean(), X[5_000:].mean()
    assert halves == pytest.approx((0.5, 0.5), abs=0.05)
    # Neighbours are as often alike as not.
    assert (X[1:] == X[:-1]).mean() == pytest.approx(0.5, abs=0.03)


def test_a_component_without_weight_is_never_drawn():
    X, _ = Mixture([LOW, HIGH], [0.0, 1.0]).sample(np.random.default_rng(0), 1_000)
    assert (X == 1.0).all()


def test_mixtures_nest_and_repeat():
    nominal = Mixture([Mixture([LOW, HIGH]), LOW], [0.5, 0.5])
    one, same, other = (nominal.sample(np.random.default_rng(seed), 200)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert one.mean() == pytest.approx(0.25, abs=0.1)


def test_sizes_and_names():
    named = Gaussian(np.zeros(3), np.eye(3), names=["a", "b"])
    nominal = Mixture([PLANE, named])
    assert repr(nominal) == "Mixture(2 components, 2 columns, 1 product)"
    assert nominal.names == ("a", "b")
    assert Mixture([PLANE]).names is None
    assert [part.shape for part in nominal.sample(np.random.default_rng(0), 1)] == [(1, 2), (1, 1)]


@pytest.mark.parametrize(
    ("components", "weights", "error", "message"),
    [
        ([], None, InvalidInputError, "components must hold at least one nominal, got none."),
        (LOW, None, InvalidTypeError, f"components must be a sequence of nominals, got {LOW!r}."),
        ([LOW, 3], None, InvalidTypeError, "components[1] must be a nominal such as Empirical(X, y), got 3."),
        ("ab", None, InvalidTypeError, "components[0] must be a nominal such as Empirical(X, y), got 'a'."),
        (
            [LOW, PLANE],
            None,
            InvalidInputError,
            "components must have one size, got 1 column, 1 product in components[0] and 2 columns, 1 product in components[1].",
        ),
        (
            [Empirical([[1.0]], [1.0], names=["a"]), LOW, Empirical([[1.0]], [1.0], names=["b"])],
            None,
            InvalidInputError,
            "components must have the same column names, got ('a',) and ('b',) in components[2].",
        ),
        ([LOW, HIGH], [1.0], InvalidInputError, "weights must have one entry per component (2), got shape (1,)."),
        ([LOW, HIGH], [-0.5, 1.5], InvalidInputError, "weights must be >= 0, got -0.5."),
        ([LOW, HIGH], [0.6, 0.6], InvalidInputError, "weights must have the sum 1, got 1.2."),
        ([LOW, HIGH], [math.nan, 1.0], InvalidInputError, "weights must be finite (no NaN, no infinity), got NaN in row 0."),
    ],
)  # fmt: skip
def test_options_are_checked(components, weights, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Mixture(components, weights)
