import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from surefoot.costs import Pieces
from surefoot.costs.quantiles import weighted_quantile
from surefoot.exceptions import InvalidTypeError
from surefoot.forecasts import Forecaster
from surefoot.forecasts.forecaster import BENDS, SHARED, SPREADS

PIECES = Pieces.kinked(up=0.2, down=1.0)
LINEAR, BENT = Forecaster(smooth=False), Forecaster(trees=False)


def wave(n, s=2, seed=0, noise=0.1):
    """Outcomes that bend with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, s))
    return X, np.sin(3.0 * X[:, 0]) + noise * rng.normal(size=n)


def line(n, s=3, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, s))
    return X, X @ np.arange(1.0, s + 1.0) + noise * rng.normal(size=n)


def learn(forecaster, X, y, masses=None, seed=0):
    return forecaster.fit(np.asarray(X, float), np.asarray(y, float), masses, PIECES, seed)


# ---------------------------------------------------------------- against direct solves


class Direct:
    """y = t + f + noise with f ~ N(0, K): solved with the whole covariance, row by row."""

    def __init__(self, K, y, masses):
        self.K, self.y, self.masses = K, y, masses

    def at(self, rows):
        covariance = self.K[np.ix_(rows, rows)] + np.diag(1.0 / self.masses[rows])
        inverse, ones = np.linalg.inv(covariance), np.ones(len(rows))
        t = (ones @ inverse @ self.y[rows]) / (ones @ inverse @ ones)
        dual = inverse @ (self.y[rows] - t)
        twice = np.linalg.slogdet(covariance)[1] + np.log(ones @ inverse @ ones)
        twice += (len(rows) - 1) * np.log((self.y[rows] - t) @ dual)
        return t, dual, -0.5 * twice

    def errors(self):
        found = []
        for i in range(len(self.y)):
            rest = np.flatnonzero(np.arange(len(self.y)) != i)
            t, dual, _ = self.at(rest)
            found.append(self.y[i] - t - self.K[i, rest] @ dual)
        return np.array(found)

    def all(self):
        t, dual, evidence = self.at(np.arange(len(self.y)))
        return t + self.K @ dual, self.errors(), evidence


def averaged(kernels, y, masses, weigh):
    """Forecasts and errors of the rows, averaged, with the log of the mean evidence."""
    found = [Direct(K, y, masses).all() for K in kernels]
    fits, errors, evidence = (np.array(part) for part in zip(*found, strict=True))
    weights = weigh(errors, evidence)
    top = evidence.max()
    return weights @ fits, weights @ errors, top + np.log(np.exp(evidence - top).mean())


def oracle(X, y, masses, *, common=True):
    """What Forecaster(trees=False) should say of its own rows: forecasts, errors, linear share."""
    masses = masses * len(y) / masses.sum()
    share = masses / masses.sum()
    Z = X - share @ X
    Z = Z / np.sqrt(share @ Z**2)

    def by_evidence(errors, evidence):
        weights = np.exp(evidence - evidence.max())
        return weights / weights.sum()

    def by_cost(errors, evidence):
        quantiles = [weighted_quantile(e, share, 1.0 / 1.2) for e in errors]
        r = np.array(quantiles)[:, None] - errors
        costs = np.maximum(0.2 * r, -r)
        mean = costs @ share
        best = np.argmin(mean)
        deviation = np.sqrt(share @ (costs[best] - mean[best]) ** 2)
        weights = np.exp(-len(y) * (mean - mean[best]) / deviation)
        return weights / weights.sum()

    whole = Z.sum(axis=1)
    linear = averaged(
        [
            (a * Z @ Z.T + b * np.outer(whole, whole)) / Z.shape[1]
            for a in SPREADS
            for b in (SHARED if common else (0.0,))
        ],
        y, masses, by_evidence,
    )  # fmt: skip
    K = np.exp(-cdist(Z, Z, "cityblock") / np.median(pdist(Z, "cityblock")))
    smooth = averaged([a * K for a in BENDS], y, masses, by_cost)
    p = 1.0 / (1.0 + np.exp(smooth[2] - linear[2]))
    mixed = [p * one + (1.0 - p) * other for one, other in zip(linear[:2], smooth[:2], strict=True)]
    return linear, mixed, p


@pytest.mark.parametrize("s", [1, 3, 15], ids=["one column", "tall", "wide"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_average_over_all_models_is_that_of_direct_solves(s, weighted):
    X, y = line(9, s, seed=s, noise=2.0)
    X[:, -1] = 100.0 + 5.0 * X[:, -1]
    masses = np.random.default_rng(3).uniform(0.5, 2.5, 9) if weighted else None
    linear, mixed, share = oracle(X, y, np.ones(9) if masses is None else masses)
    only = learn(LINEAR, X, y, masses)
    np.testing.assert_allclose(only.forecast(X), linear[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(only.errors, linear[1], rtol=1e-5, atol=1e-6)
    assert only.linear_share == 1.0
    found = learn(BENT, X, y, masses)
    assert 0.001 < share < 0.999  # else the mixture would not have been put to the test
    assert found.linear_share == pytest.approx(share, rel=1e-4)
    np.testing.assert_allclose(found.forecast(X), mixed[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.errors, mixed[1], rtol=1e-4, atol=1e-5)


def test_a_common_part_can_be_left_out():
    X, y = line(9, 3, noise=2.0)
    linear, _, _ = oracle(X, y, np.ones(9), common=False)
    found = learn(Forecaster(common=False, smooth=False), X, y)
    np.testing.assert_allclose(found.forecast(X), linear[0], rtol=1e-5)
    assert np.abs(found.forecast(X) - learn(LINEAR, X, y).forecast(X)).max() > 1e-3


def test_columns_that_push_alike_are_learned_from_few_rows():
    gains = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, X_test = rng.normal(size=(20, 60)), rng.normal(size=(500, 60))
        y = X.mean(axis=1) * 8.0 + 0.3 * rng.normal(size=20)
        errors = [
            np.std(X_test.mean(axis=1) * 8.0 - learn(f, X, y).forecast(X_test))
            for f in (LINEAR, Forecaster(common=False, smooth=False))
        ]
        gains.append(errors[0] / errors[1])
    assert np.mean(gains) < 0.6


# ---------------------------------------------------------------- trees


def test_trees_join_with_a_third_where_the_line_is_unlikely():
    X, y = wave(80)
    fresh = wave(300, seed=1)[0]
    with_trees, without = learn(Forecaster(), X, y), learn(BENT, X, y)
    assert with_trees.linear_share == without.linear_share < 0.4
    forest = 3.0 * (with_trees.forecast(fresh) - 2.0 / 3.0 * without.forecast(fresh))
    assert y.min() <= forest.min()
    assert forest.max() <= y.max()
    assert np.corrcoef(forest, np.sin(3.0 * fresh[:, 0]))[0, 1] > 0.85
    # Errors are mixed in the same way; those of the trees are out of bag.
    unseen = 3.0 * (with_trees.errors - 2.0 / 3.0 * without.errors)
    seen = y - 3.0 * (with_trees.forecast(X) - 2.0 / 3.0 * without.forecast(X))
    assert 1.2 * seen.std() < unseen.std() < 0.8 * y.std()


def test_trees_need_thirty_rows_and_a_reason():
    X, y = wave(30)
    assert learn(Forecaster(), X, y).forecast.trees is not None
    assert learn(BENT, X, y).forecast.trees is None
    assert learn(Forecaster(), X[:29], y[:29]).forecast.trees is None
    straight = learn(Forecaster(), *line(100))
    assert straight.linear_share > 0.95
    assert straight.forecast.trees is None


def test_bending_outcomes_are_forecast_better_by_models_that_bend():
    X, y = wave(150)
    fresh, _ = wave(1000, seed=1)
    truth = np.sin(3.0 * fresh[:, 0])
    straight, bent, full = (
        np.std(truth - learn(f, X, y).forecast(fresh)) for f in (LINEAR, BENT, Forecaster())
    )
    assert bent < 0.3 * straight
    assert full < 0.4 * straight


# ---------------------------------------------------------------- honesty


@pytest.mark.parametrize("s", [2, 20])
@pytest.mark.parametrize("make", [wave, line])
def test_errors_are_as_large_as_on_fresh_rows(make, s):
    ratios, inside = [], []
    for seed in range(4):
        X, y = make(40, s, seed=seed)
        fresh = make(1000, s, seed=seed + 100)
        honest = learn(Forecaster(), X, y)
        outside = np.sqrt(np.mean((fresh[1] - honest.forecast(fresh[0])) ** 2))
        ratios.append(np.sqrt(np.mean(honest.errors**2)) / outside)
        inside.append(np.sqrt(np.mean((y - honest.forecast(X)) ** 2)) / outside)
    assert 0.75 < np.mean(ratios) < 1.25
    assert np.mean(inside) < np.mean(ratios)


def test_many_rows_use_a_sample_of_centres():
    X, y = wave(600)
    fresh = wave(1000, seed=1)[0]
    first, again, other = (learn(BENT, X, y, seed=seed) for seed in (0, 0, 1))
    smooth = first.forecast.smooth
    assert smooth.centres.shape == (300, 2)
    scaled = {row.tobytes() for row in (X - X.mean(axis=0)) / X.std(axis=0)}
    close = cdist(smooth.centres, np.array([np.frombuffer(row) for row in scaled]), "cityblock")
    np.testing.assert_allclose(close.min(axis=1), 0.0, atol=1e-12)
    np.testing.assert_array_equal(first.forecast(fresh), again.forecast(fresh))
    assert (first.forecast(fresh) != other.forecast(fresh)).any()
    wrong = np.sin(3.0 * fresh[:, 0]) - first.forecast(fresh)
    assert wrong.std() < 0.1
    assert 0.7 < first.errors.std() / np.sqrt(wrong.var() + 0.01) < 1.3
    assert learn(BENT, X[:500], y[:500]).forecast.smooth.centres.shape == (500, 2)


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize("forecaster", [LINEAR, BENT, Forecaster()], ids=["linear", "smooth", "trees"])
@pytest.mark.parametrize(("factor", "offset"), [(4.0, -8.0), (2.0**-10, 0.0), (2.0**20, 2.0**10)])
def test_outcomes_in_other_units_give_forecasts_in_those_units(forecaster, factor, offset):
    X, y = wave(40)
    one, other = learn(forecaster, X, y), learn(forecaster, X, factor * y + offset)
    fresh = wave(50, seed=1)[0]
    close = {"rtol": 1e-7, "atol": 1e-7 * factor}
    np.testing.assert_allclose(other.forecast(fresh), factor * one.forecast(fresh) + offset, **close)
    np.testing.assert_allclose(other.errors, factor * one.errors, **close)
    assert other.linear_share == pytest.approx(one.linear_share, rel=1e-6)


def test_a_line_turned_upside_down():
    X, y = line(30)
    one, other = learn(LINEAR, X, y), learn(LINEAR, X, -y)
    np.testing.assert_allclose(other.forecast(X), -one.forecast(X))
    np.testing.assert_allclose(other.errors, -one.errors)


@pytest.mark.parametrize("forecaster", [LINEAR, BENT], ids=["linear", "smooth"])
@pytest.mark.parametrize("make", [wave, line])
def test_columns_in_other_units_change_nothing_but_rounding(forecaster, make):
    X, y = make(40, 3)
    fresh = make(50, 3, seed=1)[0]
    factor, offset = np.array([1e9, 1e-9, 3.0]), np.array([1e9, 5.0, -1e6])
    one, other = learn(forecaster, X, y), learn(forecaster, factor * X + offset, y)
    # Nine digits of the second column went into its offset.
    np.testing.assert_allclose(other.forecast(factor * fresh + offset), one.forecast(fresh), atol=2e-5)
    np.testing.assert_allclose(other.errors, one.errors, atol=2e-5)


@pytest.mark.parametrize("n", [29, 40], ids=["smooth", "trees"])
@pytest.mark.parametrize(
    ("factor", "offset", "unit", "level"),
    [
        (1.0, 1e9, 1.0, 0.0), (1e-9, 0.0, 1.0, 0.0), (1e39, 0.0, 1.0, 0.0), (1.0, 0.0, 1e-12, 0.0),
        (1.0, 0.0, 1.0, 1e9),
    ],
    ids=["far columns", "small columns", "vast columns", "small outcomes", "far outcomes"],
)  # fmt: skip
def test_units_of_any_size_give_the_same_forecast(n, factor, offset, unit, level):
    X, y = wave(n)
    fresh = wave(200, seed=1)[0]
    one = learn(Forecaster(), X, y)
    other = learn(Forecaster(), factor * X + offset, unit * y + level)
    assert (one.forecast.trees is None) == (n == 29)
    wrong = (other.forecast(factor * fresh + offset) - level) / unit - one.forecast(fresh)
    # A context that rounding moves across a limit of a tree goes another way; few do.
    assert np.quantile(np.abs(wrong), 0.9) < 1e-4
    assert np.abs(wrong).max() < 0.1
    np.testing.assert_allclose(other.errors / unit, one.errors, atol=0.02)


@pytest.mark.parametrize("forecaster", [LINEAR, BENT], ids=["linear", "smooth"])
def test_the_order_of_rows_does_not_matter(forecaster):
    X, y = wave(40)
    masses = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    order = np.random.default_rng(1).permutation(40)
    one = learn(forecaster, X, y, masses)
    other = learn(forecaster, X[order], y[order], masses[order])
    np.testing.assert_allclose(other.errors, one.errors[order], atol=1e-7)
    np.testing.assert_allclose(other.forecast(X), one.forecast(X), atol=1e-7)


def test_only_the_proportions_of_masses_count():
    X, y = wave(40)
    masses = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    one, other = (learn(Forecaster(), X, y, factor * masses) for factor in (1.0, 4.0))
    np.testing.assert_allclose(other.errors, one.errors, rtol=1e-9)
    np.testing.assert_allclose(other.forecast(X), one.forecast(X), rtol=1e-9)
    alike = learn(Forecaster(), X, y, np.full(40, 4.0))
    np.testing.assert_allclose(alike.errors, learn(Forecaster(), X, y).errors, rtol=1e-9)
    assert np.abs(alike.errors - one.errors).max() > 1e-3


def test_a_constant_column_changes_nothing():
    X, y = wave(40)
    more = np.column_stack([X[:, :1], np.full(40, 0.1), X[:, 1:]])
    one, other = learn(BENT, X, y), learn(BENT, more, y)
    np.testing.assert_allclose(other.errors, one.errors, rtol=1e-9)
    np.testing.assert_allclose(other.forecast(more), one.forecast(X), rtol=1e-9)
    assert other.forecast.theta[1] == 0.0
    more[:, 1] = 5.0
    np.testing.assert_allclose(other.forecast(more), one.forecast(X), rtol=1e-9)


# ---------------------------------------------------------------- small and odd data


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0], [2.0]], [1.0, 4.0]),
        ([[1.0], [1.0], [1.0], [1.0]], [1.0, 4.0, 2.0, 9.0]),
        ([[1.0], [2.0], [3.0], [4.0]], [3.0, 3.0, 3.0, 3.0]),
    ],
    ids=["two rows", "one context", "one outcome"],
)
def test_where_nothing_can_be_learned_the_mean_is_the_forecast(X, y):
    honest = learn(Forecaster(), X, y)
    np.testing.assert_allclose(honest.forecast(np.array([[1.5], [50.0]])), np.mean(y))
    np.testing.assert_allclose(honest.errors, np.array(y) - np.mean(y), atol=1e-15)
    assert honest.forecast.smooth is honest.forecast.trees is None


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("s", [1, 2, 30])
def test_a_few_rows_are_enough(n, s):
    X, y = line(n, s)
    honest = learn(Forecaster(), X, y)
    assert np.isfinite(honest.errors).all()
    assert np.isfinite(honest.forecast(100.0 * X)).all()
    # Few rows mean caution: never further from the mean than the outcomes themselves.
    assert np.abs(honest.forecast(X) - y.mean()).max() <= 1.01 * np.abs(y - y.mean()).max()


def test_repeated_contexts_get_one_forecast_between_their_outcomes():
    X = np.repeat(np.array([[0.0], [1.0], [2.0]]), 8, axis=0)
    y = np.repeat([0.0, 5.0, 1.0], 8) + np.tile(np.linspace(-0.1, 0.1, 8), 3)
    honest = learn(BENT, X, y)
    np.testing.assert_allclose(honest.forecast(X[::8]), [0.0, 5.0, 1.0], atol=0.3)
    assert np.abs(honest.errors).max() < 0.6


def test_noise_is_forecast_by_little_more_than_its_mean():
    shares = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 5)), rng.normal(size=40)
        shares.append(learn(Forecaster(), X, y).forecast(rng.normal(size=(500, 5))).std())
    assert np.mean(shares) < 0.25


def test_an_exact_line_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = 3.0 + X @ np.array([1.0, -2.0, 0.5, 0.0])
    honest = learn(Forecaster(), X, y)
    assert honest.linear_share > 0.999
    np.testing.assert_allclose(honest.forecast.theta, [1.0, -2.0, 0.5, 0.0], atol=1e-3)
    assert np.abs(honest.errors).max() < 1e-3 * y.std() * 5


@pytest.mark.parametrize("name", ["common", "smooth", "trees"])
def test_options_must_be_flags(name):
    with pytest.raises(InvalidTypeError, match=f"^{name} must be True or False, got 'yes'."):
        Forecaster(**{name: "yes"})
    assert getattr(Forecaster(**{name: np.bool_(False)}), name) is False
    assert Forecaster() == Forecaster(common=True, smooth=True, trees=True) != BENT
