"""Learning from a stream behind the scikit-learn face: the one update, and that of ``OnlinePolicy``."""

import copy
from dataclasses import fields, replace

import numpy as np
import pytest

from surefoot import Box, Problem, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.exceptions import DataWarning
from surefoot.nominals import Empirical
from surefoot.online import OnlinePolicy
from surefoot.policies import Linear, Polynomial
from surefoot.problem import affine_forms
from surefoot.solvers import DASGD
from tests.oracles.affine_twin import State
from tests.oracles.stream_twin import Columns, Stream, StreamRules, decide, stream_update

COST = Newsvendor(1.0, 0.2)
GEOMETRIES = {
    "free": {},
    "outcomes move": {"outcome_cost": 2.0},
    "frozen": {"frozen": (0, 3)},
    "own units": {"scale": False},
    "box": {"support": Box(-0.5, 1.5)},
    "box, outcomes move": {"support": Box(-0.5, 1.5, outcome=(-5.0, 9.0)), "outcome_cost": 2.0},
}


@pytest.fixture(params=GEOMETRIES)
def geometry(request):
    return GEOMETRIES[request.param]


@pytest.fixture(params=[1, 2], ids=["order 1", "order 2"])
def order(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["intercept", "no intercept"])
def intercept(request):
    return request.param


def learner(geometry, order, intercept):
    ball = WassersteinBall(0.05, order=order, **geometry)
    return RobustPolicy(COST, Linear(intercept=intercept), ball=ball, solver=DASGD(gap_tol=0.5))


def plain(intercept=True, **options):
    return RobustPolicy(COST, Linear(intercept=intercept), ball=WassersteinBall(0.05, **options))


def same_arrays(first, second):
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


# ---------------------------------------------------------------- where a stream begins


def test_a_stream_begins_at_the_constant_order(data, intercept):
    model = plain(intercept).partial_fit(data.X, data.y)
    numbers = model.stream().arrays()["numbers"]
    quantile = np.quantile(data.y, 1 / 1.2, method="inverted_cdf")
    assert numbers["start"][0] == pytest.approx(quantile if intercept else 0.0)
    assert numbers["steps"][0] == 60


def test_a_stream_after_a_fit_is_the_fitted_policy(data, intercept):
    model = plain(intercept, frozen=(1, 2)).fit(data.X, data.y)
    found = model.stream().parameters()
    np.testing.assert_array_equal(found.theta, model.parameters_.theta)
    np.testing.assert_allclose(found.intercept, model.parameters_.intercept, rtol=0, atol=1e-12)
    numbers = model.stream().arrays()["numbers"]
    assert numbers["steps"][0] == 60
    # It steps as carefully as after its sixty rows, not as boldly as after the first few.
    begun, bold = (plain(intercept, frozen=(1, 2)).partial_fit(data.X[:n], data.y[:n]) for n in (60, 4))
    for name in ("squares", "intercept_squares"):
        assert numbers[name][0] == pytest.approx(begun.stream().arrays()["numbers"][name][0], rel=1.0)
        assert numbers[name][0] > 2 * bold.stream().arrays()["numbers"][name][0]


def twin_of(stream):
    """The readable twin of a stream of one product, where it stands."""
    arrays = stream.arrays()
    columns, numbers = arrays["columns"], arrays["numbers"][0]
    names = [field.name for field in fields(State) if field.name != "theta"]
    return Stream(
        Columns(
            **{name: columns[name] for name in ("mean", "deviations", "count", "low", "high", "cut")},
            uncut=columns["uncut"] > 0.0,
        ),
        State(theta=arrays["theta"][0], **{name: float(numbers[name]) for name in names}),
        arrays["average"][0],
        float(numbers["mean_intercept"]),
        int(arrays["clock"][0]),
    )


@pytest.mark.sweep
@pytest.mark.parametrize("start", ["fit", "partial_fit"])
def test_learning_is_the_one_update_row_by_row(data, geometry, order, intercept, start):
    model = getattr(learner(geometry, order, intercept), start)(data.X, data.y)
    ball = replace(model.ball, scale=(1.0,) * 5)
    question = Problem(COST, Linear(intercept=intercept), Empirical(data.X, data.y), ball)
    form = affine_forms(question, merge=False)[0].in_plain_units()
    rules, twin = StreamRules(scaled=model.ball.scale is True), twin_of(model.stream())
    for sample in zip(data.X_test[:30], data.y_test[:30], strict=True):
        twin = stream_update(twin, sample, form, rules)
    model.partial_fit(data.X_test[:30], data.y_test[:30])
    found = twin_of(model.stream())
    np.testing.assert_allclose(found.state.theta, twin.state.theta, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(found.average, twin.average, rtol=1e-7, atol=1e-10)
    for field in fields(State):
        if field.name != "theta":
            wanted = getattr(twin.state, field.name)
            assert getattr(found.state, field.name) == pytest.approx(wanted, rel=1e-7, abs=1e-10)
    assert found.state.steps == 90
    decisions = [decide(twin, x, form) for x in data.X]
    np.testing.assert_allclose(model.predict(data.X), decisions, rtol=1e-7)


def test_learning_does_not_write_to_the_rows(data):
    model = plain().fit(data.X, data.y)
    rows, outcomes = data.X_test[:20].copy(), data.y_test[:20].copy()
    model.partial_fit(rows, outcomes)
    np.testing.assert_array_equal(rows, data.X_test[:20])
    np.testing.assert_array_equal(outcomes, data.y_test[:20])


# ---------------------------------------------------------------- partial_fit


@pytest.mark.sweep
@pytest.mark.parametrize(("start", "intercept"), [("fit", True), ("partial_fit", False)])
def test_chunks_give_the_bits_of_one_call(data, geometry, order, intercept, start):
    X, y = data.X_test[:60], data.y_test[:60]
    decisions = []
    for size in (40, 1, 7):
        model = getattr(learner(geometry, order, intercept), start)(X[:20], y[:20])
        for first in range(20, 60, size):
            rows = slice(first, min(first + size, 60))
            model.partial_fit(X[rows], y[rows])
        decisions.append(model.predict(data.X))
    np.testing.assert_array_equal(decisions[1], decisions[0])
    np.testing.assert_array_equal(decisions[2], decisions[0])


def test_products_learn_independently(data):
    outcomes = np.column_stack([data.y_test, 5.0 - 2.0 * data.y_test])
    both = RobustNewsvendor(radius=0.05).partial_fit(data.X_test[:50], outcomes[:50])
    both.partial_fit(data.X_test[50:], outcomes[50:])
    for j in range(2):
        alone = RobustNewsvendor(radius=0.05).partial_fit(data.X_test[:50], outcomes[:50, j])
        alone.partial_fit(data.X_test[50:], outcomes[50:, j])
        np.testing.assert_allclose(
            both.predict(data.X)[:, j], alone.predict(data.X), rtol=1e-9, atol=1e-9
        )


def test_order_of_rows_matters_to_a_stream(data):
    """Which is why rows are learned as they come and never sorted."""
    X, y = data.X_test[:50], data.y_test[:50]
    forth = RobustNewsvendor(radius=0.05).partial_fit(data.X, data.y).partial_fit(X, y)
    back = RobustNewsvendor(radius=0.05).partial_fit(data.X, data.y).partial_fit(X[::-1], y[::-1])
    assert (forth.predict(data.X) != back.predict(data.X)).any()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("start", ["fit", "partial_fit"])
def test_learning_lowers_the_cost_out_of_sample(order, seed, start):
    data = synthetic(n=3000, s=10, noise_variance=0.2, seed=seed, test=2000)
    best = RobustNewsvendor(radius=0.02, order=order).fit(data.X, data.y)
    model = getattr(RobustNewsvendor(radius=0.02, order=order), start)(data.X[:20], data.y[:20])
    first = model.cost(data.X_test, data.y_test)
    model.partial_fit(data.X[20:], data.y[20:])
    last = model.cost(data.X_test, data.y_test)
    assert last < 1.15 * best.cost(data.X_test, data.y_test)
    assert last < 0.95 * first
    assert model.n_steps_ >= 3000


def test_a_stream_follows_a_change_of_level(data):
    rng = np.random.default_rng(0)
    X = rng.random((2000, 2))
    model = RobustNewsvendor(radius=0.02).fit(X[:200], X[:200].sum(axis=1))
    model.partial_fit(X[200:], X[200:].sum(axis=1) + 5.0)
    assert model.predict(X).mean() == pytest.approx(6.0, abs=0.5)


# ---------------------------------------------------------------- the learner of OnlinePolicy


@pytest.mark.parametrize("first", [2, 15, 16, 17, 500])
def test_another_first_call_than_of_16_rows_begins_elsewhere_and_costs_the_same(first):
    # As docs/howto/online.md says: the first call sets the scale and the start from all of its rows.
    data = synthetic(n=5_000, s=10, noise_variance=0.2, seed=0, test=2_000)
    ball = WassersteinBall(0.02)
    policy = OnlinePolicy(COST, ball=ball).partial_fit(data.X, data.y)
    online, learned = policy.decide(data.X_test), policy.state_dict()["arrays"]
    model = RobustPolicy(COST, ball=ball).partial_fit(data.X[:first], data.y[:first])
    start = model.stream().arrays()["numbers"]["start"][0]
    begun = np.quantile(data.y[:first], 1 / 1.2, method="inverted_cdf")
    assert start == pytest.approx(begun)
    np.testing.assert_allclose(
        model.stream().arrays()["columns"]["mean"], data.X[:first].mean(axis=0), rtol=1e-9
    )
    decided = model.partial_fit(data.X[first:], data.y[first:]).predict(data.X_test)
    found = model.stream().arrays()
    if first == 16:
        same_arrays(found, {name: learned[name] for name in found})
    assert (np.abs(decided - online).max() > 0.01 * online.std()) == (first != 16)
    assert np.abs(decided - online).max() < 0.2 * online.std()

    def paid(decisions):
        return COST.evaluate(decisions[:, None], data.y_test[:, None]).mean()

    assert paid(decided) == pytest.approx(paid(online), rel=0.01)


def test_from_nothing_it_is_an_online_policy_of_the_same_ball(data, geometry, order, intercept):
    model = learner(geometry, order, intercept).partial_fit(data.X[:16], data.y[:16])
    model.partial_fit(data.X[16:], data.y[16:]).partial_fit(data.X_test[:50], data.y_test[:50])
    policy = OnlinePolicy(COST, Linear(intercept=intercept), ball=model.ball)
    policy.partial_fit(data.X, data.y).partial_fit(data.X_test[:50], data.y_test[:50])
    found = policy.state_dict()["arrays"]
    same_arrays(model.stream().arrays(), {name: found[name] for name in model.stream().arrays()})
    np.testing.assert_allclose(policy.decide(data.X_test), model.predict(data.X_test), rtol=1e-12)


GOING_ON = {
    "newsvendor": lambda: RobustNewsvendor(radius=0.05),
    "forecast": lambda: RobustNewsvendor(),
    "frozen forecast": lambda: RobustNewsvendor(frozen=(1, 3)),
    "no intercept": lambda: RobustNewsvendor(radius=0.05, order=1, intercept=False, frozen=(0,)),
    "box": lambda: RobustPolicy(
        COST, ball=WassersteinBall(0.05, support=Box(-9, 9), scale=False), solver=DASGD(gap_tol=0.5)
    ),
    "limits": lambda: RobustPolicy(COST, Linear(decisions=Box(0, 3)), ball=WassersteinBall(0.05)),
    "features": lambda: RobustPolicy(
        COST, Linear(features=Polynomial(2)), ball=WassersteinBall(0.05), solver=DASGD(gap_tol=0.5)
    ),
    "two products": lambda: RobustNewsvendor((1.0, 2.0), radius=0.05),
}


@pytest.mark.parametrize("name", GOING_ON)
def test_after_a_fit_it_is_an_online_policy_from_the_model(data, name):
    both = name == "two products"
    y, more = (np.column_stack([one, 5.0 - one]) if both else one for one in (data.y, data.y_test))
    model = GOING_ON[name]().fit(data.X, y)
    policy = OnlinePolicy.from_model(model)
    np.testing.assert_allclose(policy.decide(data.X_test), model.predict(data.X_test), rtol=1e-12)
    for rows in (slice(0, 1), slice(1, 40), slice(40, 300)):
        model.partial_fit(data.X_test[rows], more[rows])
        policy.partial_fit(data.X_test[rows], more[rows])
        np.testing.assert_allclose(policy.decide(data.X), model.predict(data.X), rtol=1e-12)
    found = policy.state_dict()["arrays"]
    same_arrays(model.stream().arrays(), {name: found[name] for name in model.stream().arrays()})
    # And from a model that has learned on, too.
    again = OnlinePolicy.from_model(model)
    same_arrays(model.stream().arrays(), again._following.stream.arrays())


def test_an_online_policy_from_a_model_leaves_the_model_alone(data):
    for start in (lambda m: m, lambda m: m.partial_fit(data.X_test[:9], data.y_test[:9])):
        model = start(RobustNewsvendor().fit(data.X, data.y))
        untouched = copy.deepcopy(model)
        OnlinePolicy.from_model(model).partial_fit(data.X_test, data.y_test)
        np.testing.assert_array_equal(model.predict(data.X), untouched.predict(data.X))
        for one in (model, untouched):
            one.partial_fit(data.X_test[:20], data.y_test[:20])
        np.testing.assert_array_equal(model.predict(data.X), untouched.predict(data.X))


def test_a_value_out_of_all_proportion_does_little_harm(data):
    """One slip of the pen in a column is cut, as ``OnlinePolicy`` cuts it."""
    model = RobustNewsvendor(radius=0.02).fit(data.X, data.y)
    best = model.cost(data.X_test, data.y_test)
    X = data.X_test[:50].copy()
    X[10, 2] = 1e6
    policy = OnlinePolicy.from_model(model).partial_fit(X, data.y_test[:50])
    model.partial_fit(X, data.y_test[:50])
    assert policy.n_cut == {"x2": 1}
    assert model.cost(data.X_test, data.y_test) < 1.5 * best
    np.testing.assert_allclose(policy.decide(data.X), model.predict(data.X), rtol=1e-12)


@pytest.mark.parametrize("features", [None, Polynomial(2)], ids=["plain", "features"])
def test_what_is_said_after_a_stream_is_in_its_own_units(features):
    # Moves were measured in the spread of the first rows, and a column that was constant there never
    # moved, though the stream moved it.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    X[:40, 1] = 3.0
    X[40:, 0] *= 5.0
    y = X @ [1.0, 2.0] + rng.normal(size=400)
    model = RobustPolicy(Newsvendor(1.0, 0.2), Linear(features=features), ball=WassersteinBall(0.3))
    with pytest.warns(DataWarning, match="Constant columns"):
        model.partial_fit(X[:40], y[:40])
    assert not model.movable_[1]
    model.partial_fit(X[40:], y[40:])
    assert model.movable_[1]
    shown = model.augmentation()
    assert shown.cost_before == pytest.approx(model.cost(X[40:], y[40:]), rel=1e-9)
    assert np.array_equal(shown.scale, model.scale_)
    if features is None:
        assert model.scale_ == pytest.approx(X.std(axis=0), rel=0.05)
        assert model.worst_case(X[40:], y[40:]).value == pytest.approx(model.certificate_.upper)


def smoothed_worst_case(cost, parameters, X, y, radius, scale, order):
    """The worst case of a policy without limits: a minimum over multipliers of a search along a line."""
    (pieces,) = cost.pieces(1)
    residuals = X @ parameters.theta[:, 0] + parameters.intercept[0] - y
    norm = float(np.linalg.norm(parameters.theta[:, 0] * scale))
    if order == 1:  # far away the cost is as steep as its steepest line
        return pieces.evaluate(residuals).mean() + radius * pieces.steepest * norm

    def dual(gamma):
        shifts = np.linspace(-1.1, 1.1, 8_001)[:, None] * pieces.steepest * norm**2 / (2 * gamma)
        inner = (pieces.evaluate(residuals + shifts) - gamma * shifts**2 / norm**2).max(axis=0)
        return gamma * radius**2 + inner.mean()

    usual = pieces.steepest * norm / (2 * radius)
    return min(map(dual, usual * np.geomspace(0.2, 2.0, 60)))


@pytest.mark.parametrize("start", ["fitted", "from nothing"])
def test_a_smoothed_cost_is_not_overstated_after_a_stream(data, order, start):
    # The certificate, the worst case and the augmentation were above the truth by (b + h) delta / 4.
    cost, radius = Newsvendor(1.0, 0.4, smoothing=0.8), 0.2
    ball = WassersteinBall(radius, order=order)
    model = RobustPolicy(cost, Linear(), ball=ball, solver=DASGD(gap_tol=0.5))
    if start == "fitted":
        model.fit(data.X, data.y)
    model.partial_fit(data.X_test[:200], data.y_test[:200])
    X, y = data.X_test[200:300], data.y_test[200:300]
    model.partial_fit(X, y)
    overstated = 1.4 * 0.8 / 4
    true = smoothed_worst_case(cost, model.parameters_, X, y, radius, model.scale_, order)
    assert model.certificate_.upper == pytest.approx(true, abs=0.01 * overstated)
    worst = model.worst_case(X, y)
    assert worst.value == pytest.approx(true, abs=0.01 * overstated)
    assert worst.expected_cost <= true + 0.01 * overstated
    assert model.augmentation().cost_after <= true + 0.01 * overstated
