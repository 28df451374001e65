import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.policies import MaxAffine

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32)
ABSOLUTE = {"theta": np.array([[[1.0]], [[-1.0]]]), "intercept": np.zeros((2, 1))}


def plain(columns, decisions=1):
    """Units that change nothing."""
    return {
        "mean": np.zeros(columns),
        "spread": np.ones(columns),
        "centre": np.zeros(decisions),
        "unit": np.ones(decisions),
    }


def draw(seed, pieces, columns=2, decisions=2):
    rng = np.random.default_rng(seed)
    trained = {
        "theta": rng.normal(size=(pieces, columns, decisions)),
        "intercept": rng.normal(size=(pieces, decisions)),
    }
    return trained, rng.normal(size=(7, columns))


def planes(trained, X):
    return np.einsum("ic,kcd->kid", X, trained["theta"]) + trained["intercept"][:, None, :]


@repeatable
@given(st.floats(-1e6, 1e6))
def test_two_pieces_are_the_absolute_value(x):
    found = MaxAffine(pieces=2).evaluate(ABSOLUTE, plain(1), np.array([x]), np)
    np.testing.assert_array_equal(found, [abs(x)])


@repeatable
@given(seeds, st.integers(1, 5))
def test_it_is_the_largest_of_its_planes(seed, pieces):
    trained, X = draw(seed, pieces)
    units = plain(2, 2)
    found = MaxAffine(pieces=pieces).evaluate(trained, units, X, np)
    np.testing.assert_allclose(found, planes(trained, X).max(axis=0), rtol=1e-13)
    units |= {"centre": np.array([3.0, -1.0]), "unit": np.array([2.0, 10.0])}
    scaled = MaxAffine(pieces=pieces).evaluate(trained, units, X, np)
    np.testing.assert_allclose(scaled, units["centre"] + units["unit"] * found, rtol=1e-13)


def test_a_plane_far_below_leaves_the_largest_exact():
    trained = {"theta": np.zeros((3, 1, 1)), "intercept": np.array([[0.1], [-1e20], [-1e30]])}
    for smoothing in (0.0, 0.5):
        found = MaxAffine(pieces=3, smoothing=smoothing).evaluate(trained, plain(1), np.ones(1), np)
        np.testing.assert_array_equal(found, [0.1])


@repeatable
@given(seeds, st.integers(2, 5), st.floats(0.01, 3), st.floats(0, 1))
def test_smoothing_errs_upwards_by_at_most_a_quarter_for_each_comparison(seed, pieces, width, share):
    trained, X = draw(seed, pieces)
    sharp = MaxAffine(pieces=pieces).evaluate(trained, plain(2, 2), X, np)
    smooth = MaxAffine(pieces=pieces, smoothing=width).evaluate(trained, plain(2, 2), X, np)
    assert (smooth >= sharp - 1e-12).all()
    assert (smooth <= sharp + (pieces - 1) * width / 4 + 1e-12).all()
    # Still convex along any line.
    policy, ends = MaxAffine(pieces=pieces, smoothing=width), (X[0], X[1])
    middle = policy.evaluate(trained, plain(2, 2), share * ends[0] + (1 - share) * ends[1], np)
    chord = share * smooth[0] + (1 - share) * smooth[1]
    assert (middle <= chord + 1e-12 * (1 + np.abs(chord))).all()


def test_smoothing_is_worst_at_the_breakpoint_and_ends_at_its_width():
    policy = MaxAffine(pieces=2, smoothing=0.8)
    # The two planes differ by 2 x: the parabola reaches from x = -0.4 to 0.4.
    X = np.array([[0.0], [0.399], [0.4], [-0.4], [2.0]])
    found = policy.evaluate(ABSOLUTE, plain(1), X, np)[:, 0]
    assert found[0] == pytest.approx(0.2)
    assert found[1] > 0.399
    np.testing.assert_allclose(found[2:], [0.4, 0.4, 2.0], rtol=1e-15)


@pytest.mark.parametrize("smoothing", [0.0, 0.8])
def test_only_smoothing_makes_the_derivative_continuous(smoothing):
    policy = MaxAffine(pieces=2, smoothing=smoothing)
    with jax.enable_x64(True):
        points = jnp.linspace(-1.0, 1.0, 2001)
        one = jax.grad(lambda x: policy.evaluate(ABSOLUTE, plain(1), x[None], jnp)[0])
        slopes = np.asarray(jax.jit(jax.vmap(one))(points))
    largest = np.abs(np.diff(slopes)).max()
    assert (largest < 0.003) if smoothing else (largest > 0.9)
    np.testing.assert_allclose(slopes[[0, -1]], [-1.0, 1.0])


def test_where_learning_starts():
    start = MaxAffine(pieces=5).initial(np.random.default_rng(0), 400, 3)
    assert start["theta"].shape == (5, 400, 3)
    np.testing.assert_array_equal(start["intercept"], np.zeros((5, 3)))
    # Pieces differ, by a tenth of a unit for a context of usual size whatever the columns.
    assert np.linalg.norm(start["theta"], axis=1).mean() == pytest.approx(0.1, rel=0.1)
    assert MaxAffine() == MaxAffine(pieces=4, smoothing=0.0)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"pieces": 0}, InvalidInputError, "pieces must be >= 1, got 0."),
        ({"pieces": 2.0}, InvalidTypeError, "pieces must be a whole number, got 2.0."),
        ({"pieces": True}, InvalidTypeError, "pieces must be a whole number, got True."),
        ({"smoothing": -0.1}, InvalidInputError, "smoothing must be >= 0, got -0.1."),
        ({"smoothing": np.nan}, InvalidInputError, "smoothing must be >= 0, got nan."),
        ({"smoothing": np.inf}, InvalidInputError, "smoothing must be finite, got inf."),
        ({"smoothing": "soft"}, InvalidTypeError, "smoothing must be a number, got 'soft'."),
    ],
)
def test_unusable_options_are_refused(options, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        MaxAffine(**options)


def test_numbers_are_stored_plainly():
    policy = MaxAffine(np.int64(2), np.float32(0.5))
    assert repr(policy) == "MaxAffine(features=None, decisions=None, pieces=2, smoothing=0.5)"
    assert hash(policy) == hash(MaxAffine(2, 0.5))
