import copy
import re
import warnings
from math import comb

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer, StandardScaler

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.policies import FeatureMap, Linear, LinearParameters, Polynomial, RandomFourier, Select
from surefoot.policies.features import MOST_ROWS, Transformed, feature_map

repeatable = settings(
    derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
seeds = st.integers(0, 2**32)
UNFITTED = (
    "features must be fitted before they are used, got RandomFourier without a scale: "
    "use RandomFourier(...).fitted(X)."
)

FROZEN = [[-0.7718186176050619, -0.6198145865703872], [-0.797050202715826, -0.9063760769175603]]


def contexts(rows=60, columns=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)) * rng.uniform(0.1, 10, size=columns)


# --- polynomials ----------------------------------------------------------------------------------


@repeatable
@given(seeds, st.integers(1, 4), st.integers(1, 4))
def test_polynomials_are_scikit_learn_s_without_the_constant(seed, columns, degree):
    X = np.random.default_rng(seed).normal(size=(5, columns))
    found = Polynomial(degree)(X)
    np.testing.assert_allclose(
        found, PolynomialFeatures(degree, include_bias=False).fit_transform(X), rtol=1e-12
    )
    assert found.shape[1] == comb(columns + degree, degree) - 1
    powers = Polynomial(degree, interactions=False)(X)
    np.testing.assert_array_equal(powers, np.hstack([X**k for k in range(1, degree + 1)]))


def test_degree_one_changes_nothing():
    X = contexts()
    np.testing.assert_array_equal(Polynomial(1)(X), X)
    assert Polynomial(3).fitted(X) == Polynomial(3)
    assert Polynomial() == Polynomial(degree=2, interactions=True)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"degree": 0}, InvalidInputError, "degree must be >= 1, got 0."),
        ({"degree": 2.0}, InvalidTypeError, "degree must be a whole number, got 2.0."),
        ({"interactions": 1}, InvalidTypeError, "interactions must be True or False, got 1."),
    ],
)
def test_unusable_polynomials_are_refused(options, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        Polynomial(**options)


# --- some of the columns --------------------------------------------------------------------------


@repeatable
@given(seeds, st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_selected_columns_come_in_the_order_asked_for(seed, columns):
    X = np.random.default_rng(seed).normal(size=(5, 4))
    found = Select(columns)(X)
    for j, column in enumerate(columns):
        np.testing.assert_array_equal(found[:, j], X[:, column])
    assert found.flags.c_contiguous
    assert Select(columns).fitted(X) == Select(tuple(columns))


def test_without_any_column_there_is_one_of_zeros():
    np.testing.assert_array_equal(Select(())(contexts(rows=3)), np.zeros((3, 1)))
    policy = Linear(features=Select(()))
    parameters = LinearParameters(np.array([[7.0]]), np.array([0.5]))
    np.testing.assert_array_equal(policy.decide(parameters, contexts(rows=3)), np.full((3, 1), 0.5))


def test_a_selection_is_an_immutable_value():
    assert Select([2, np.int64(0)]) == Select((2, 0))
    assert repr(Select([2, np.int64(0)])) == "Select(columns=(2, 0))"
    assert len({Select((1,)), Select((1,)), Select((0, 1))}) == 2


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        ((0, -1), InvalidInputError, "columns must be >= 0, got -1."),
        ((0, 1.0), InvalidTypeError, "columns must be a whole number, got 1.0."),
        (("price",), InvalidTypeError, "columns must be a whole number, got 'price'."),
        ((True,), InvalidTypeError, "columns must be a whole number, got True."),
    ],
)
def test_unusable_positions_are_refused(columns, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        Select(columns)


# --- random Fourier features ----------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [0.5, 2.0, "auto"])
def test_inner_products_approximate_the_gaussian_kernel(bandwidth):
    X = contexts(rows=30, columns=3)
    fourier = RandomFourier(20_000, bandwidth).fitted(X)
    G = fourier(X)
    assert G.shape == (30, 20_000)
    scaled = X / X.std(axis=0)
    distances = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)
    if bandwidth == "auto":
        bandwidth = np.median(distances[np.triu_indices(30, 1)])
        assert fourier.bandwidth == pytest.approx(bandwidth)
    kernel = np.exp(-0.5 * (distances / bandwidth) ** 2)
    # Each entry is a mean of 20,000 numbers between -2 and 2.
    assert np.abs(G @ G.T - kernel).max() < 0.04


def test_new_rows_are_mapped_like_those_of_the_fit():
    X = contexts()
    fourier = RandomFourier(7).fitted(X)
    np.testing.assert_array_equal(fourier(X)[3:5], fourier(X[3:5]))
    assert (np.abs(fourier(X)) <= np.sqrt(2 / 7)).all()


@repeatable
@given(seeds, st.sampled_from(["auto", 1.5]))
def test_fitting_twice_changes_nothing(seed, bandwidth):
    X = contexts(rows=12, seed=seed)
    unfitted = RandomFourier(4, bandwidth)
    fitted = unfitted.fitted(X)
    assert fitted.fitted(X) == fitted
    # Parameters belong to the features that they were learned with: other rows do not change them.
    assert fitted.fitted(100 * X[:5]) == fitted
    assert unfitted.scale is None
    assert unfitted.bandwidth == bandwidth
    np.testing.assert_allclose(fitted.scale, X.std(axis=0))


def test_a_scale_of_one_s_own_stays():
    X = contexts()
    fitted = RandomFourier(4, scale=[1.0, 2.0]).fitted(X)
    assert fitted.scale == (1.0, 2.0)
    distances = np.linalg.norm((X[:, None] - X[None]) / [1.0, 2.0], axis=2)
    assert fitted.bandwidth == pytest.approx(np.median(distances[np.triu_indices(60, 1)]))
    assert RandomFourier(4, 1.0, scale=(1.0, 2.0))(X).shape == (60, 4)


def test_the_seed_and_nothing_else_decides_the_frequencies():
    X = contexts()
    one = RandomFourier(5, seed=3).fitted(X)(X)
    np.testing.assert_array_equal(RandomFourier(5, seed=3).fitted(X)(X), one)
    assert np.abs(RandomFourier(5, seed=4).fitted(X)(X) - one).max() > 0.1
    # The same in every process and release: a saved model keeps the seed, not the frequencies.
    frozen = RandomFourier(2, 1.0, seed=0, scale=(1.0,))(np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(frozen, FROZEN, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1])
def test_a_constant_column_is_not_blown_up(value):
    X = np.column_stack([np.linspace(0, 1, 31), np.full(31, value)])
    fitted = RandomFourier(10).fitted(X)
    assert fitted.scale[1] == 1.0
    assert fitted.scale[0] == pytest.approx(X[:, 0].std())
    nearly = X + np.array([0.0, 1e-9])
    assert np.abs(fitted(nearly) - fitted(X)).max() < 1e-6


def test_rows_that_coincide_have_a_bandwidth_all_the_same():
    for X in (np.ones((1, 2)), np.ones((6, 2)), np.array([[0.0]] * 9 + [[1.0]])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = RandomFourier(3).fitted(X)
        assert fitted.bandwidth == 1.0
        assert np.isfinite(fitted(X)).all()


@pytest.mark.parametrize("rows", [MOST_ROWS - 1, MOST_ROWS, 2 * MOST_ROWS - 1, 3 * MOST_ROWS + 1])
def test_the_median_distance_looks_at_few_rows(rows, monkeypatch):
    seen = []

    def record(points):
        seen.append(len(points))
        return 1.0

    monkeypatch.setattr("surefoot.policies.features._median_distance", record)
    RandomFourier(3).fitted(contexts(rows=rows))
    assert seen[0] <= MOST_ROWS
    assert seen[0] >= min(rows, MOST_ROWS // 2)


@pytest.mark.parametrize(
    "fourier",
    [RandomFourier(), RandomFourier(bandwidth=1.0), RandomFourier(scale=(1.0, 1.0))],
    ids=repr,
)
def test_unfitted_maps_say_so(fourier):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(UNFITTED)}$"):
        fourier(contexts())


def test_contexts_must_have_the_columns_of_the_fit():
    message = "X must have as many columns as RandomFourier was fitted to (2), got 3."
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        RandomFourier(4).fitted(contexts())(contexts(columns=3))
    # A single scale would broadcast.
    with pytest.raises(InvalidInputError, match=r"fitted to \(1\), got 2\.$"):
        RandomFourier(4, 1.0, scale=(1.0,))(contexts())


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"n_features": 0}, InvalidInputError, "n_features must be >= 1, got 0."),
        ({"n_features": 10.0}, InvalidTypeError, "n_features must be a whole number, got 10.0."),
        ({"seed": -1}, InvalidInputError, "seed must be >= 0, got -1."),
        ({"seed": None}, InvalidTypeError, "seed must be a whole number, got None."),
        ({"bandwidth": 0}, InvalidInputError, "bandwidth must be > 0, got 0.0."),
        ({"bandwidth": np.inf}, InvalidInputError, "bandwidth must be finite, got inf."),
        ({"bandwidth": None}, InvalidTypeError, "bandwidth must be a number, got None."),
        ({"bandwidth": "median"}, InvalidInputError, "bandwidth must be a number > 0 or 'auto', got 'median'."),
        ({"scale": 2.0}, InvalidInputError, "scale must be one number > 0 per column or None, got shape ()."),
        ({"scale": ()}, InvalidInputError, "scale must be one number > 0 per column or None, got shape (0,)."),
        ({"scale": (1.0, 0.0)}, InvalidInputError, "scale must be > 0, got 0.0."),
        ({"scale": (np.nan,)}, InvalidInputError, "scale must be finite (no NaN, no infinity), got NaN in row 0."),
        ({"scale": "unit"}, InvalidInputError, "scale must be numeric, got text or dates (<U4)."),
    ],
)  # fmt: skip
def test_unusable_options_are_refused(options, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        RandomFourier(**options)


def test_a_map_reads_back_from_its_text():
    fitted = RandomFourier(np.int64(4), seed=np.int64(1)).fitted(contexts())
    assert eval(repr(fitted), {"RandomFourier": RandomFourier}) == fitted
    assert hash(fitted) == hash(copy.deepcopy(fitted))


# --- transformers of scikit-learn and functions ---------------------------------------------------


@pytest.mark.parametrize(
    "transformer",
    [
        StandardScaler(),
        SplineTransformer(n_knots=4),
        OneHotEncoder(sparse_output=True, handle_unknown="ignore"),
        StandardScaler().set_output(transform="pandas"),
    ],
    ids=["scaler", "spline", "one-hot", "pandas"],
)
def test_transformers_are_fitted_as_copies(transformer):
    X = np.round(contexts(rows=20))
    before = dict(vars(transformer))
    policy = Linear(features=transformer)
    fitted = policy.fitted(X)
    expected = copy.deepcopy(transformer).fit(X).transform(X[:7])
    expected = expected.toarray() if hasattr(expected, "toarray") else np.asarray(expected)
    found = fitted.transform(X[:7])
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected)
    assert vars(transformer) == before
    with pytest.raises(NotFittedError):
        policy.transform(X)
    # Fitted once, it stays as it is: other rows do not change it.
    assert fitted.fitted(5 * X) == fitted
    np.testing.assert_allclose(fitted.transform(X[:7]), expected)


def test_what_counts_as_features():
    scaler = StandardScaler()
    assert feature_map(None) is None
    assert feature_map(np.cos) is np.cos
    assert feature_map(Polynomial(3)) == Polynomial(3)
    assert feature_map(scaler) == Transformed(scaler, ready=False)
    assert isinstance(feature_map(scaler), FeatureMap)
    assert feature_map(feature_map(scaler)) == Transformed(scaler)


@pytest.mark.parametrize("features", [2, "squares", [np.cos], StandardScaler, Polynomial])
def test_other_things_are_refused(features):
    message = (
        "features must be a FeatureMap, a transformer, a function of a context matrix or None, "
        f"got {features!r}."
    )
    with pytest.raises(InvalidTypeError, match=f"^{re.escape(message)}$"):
        feature_map(features)


def test_a_feature_map_must_be_callable():
    with pytest.raises(TypeError, match="abstract"):
        FeatureMap()
