import numpy as np
import pytest

from surefoot import Box, Problem, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.engines.twin import update
from surefoot.estimators.stream import Stream
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_problems
from surefoot.solvers import DASGD
from surefoot.solvers.adaptive import pack

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


def first_problem(X, y, *, intercept=True, order=2, radius=0.05, **options):
    ball = WassersteinBall(radius, order=order, **options)
    return affine_problems(Problem(COST, Linear(intercept=intercept), Empirical(X, y), ball))[0]


def learner(geometry, order, intercept):
    ball = WassersteinBall(0.05, order=order, **geometry)
    return RobustPolicy(COST, Linear(intercept=intercept), ball=ball, solver=DASGD(gap_tol=0.5))


# ---------------------------------------------------------------- one product's stream


def test_start_is_the_constant_order(data, intercept):
    problem = first_problem(data.X, data.y, intercept=intercept)
    theta, constant = Stream.start(problem).policy()
    np.testing.assert_array_equal(theta, np.zeros(5))
    quantile = np.quantile(data.y, 1 / 1.2, method="inverted_cdf")
    assert constant == pytest.approx(quantile if intercept else 0.0)


def test_resume_is_the_fitted_policy(data, intercept):
    problem = first_problem(data.X, data.y, intercept=intercept, frozen=(1, 2))
    theta, constant = np.array([3.0, -1.0, 0.5, 2.0, 0.1]), 7.0 if intercept else 0.0
    stream = Stream.resume(problem, theta, constant)
    resumed, intercepted = stream.policy()
    np.testing.assert_array_equal(resumed, theta)
    assert intercepted == pytest.approx(constant, abs=1e-12)
    assert stream.state.steps == 60
    # It steps as carefully as after its sixty rows, not as boldly as at the first row.
    begun = Stream.start(problem)
    begun.learn(problem.contexts, problem.outcomes)
    for name in ("squares", "intercept_squares"):
        assert getattr(stream.state, name) == pytest.approx(getattr(begun.state, name), rel=1.0)
        assert getattr(stream.state, name) > 10 * getattr(Stream.start(problem).state, name)


def test_learning_is_the_one_update_row_by_row(data, geometry, order, intercept):
    problem = first_problem(data.X, data.y, intercept=intercept, order=order, **geometry)
    stream = Stream.start(problem)
    arranged, state = stream.arrangement.problem, stream.state
    new = data.X_test[:30] / problem.scale
    for x, y in zip(
        (new - stream.arrangement.mean)[:, stream.arrangement.order], data.y_test, strict=False
    ):
        state, _ = update(state, (x, y), arranged)
    stream.learn(new, data.y_test[:30])
    np.testing.assert_allclose(stream.state.theta, state.theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pack(stream.state), pack(state), rtol=1e-9, atol=1e-12)
    assert stream.state.steps == 30


def test_restore_goes_on_bit_for_bit(data, geometry, order):
    problem = first_problem(data.X, data.y, order=order, **geometry)
    stream = Stream.start(problem)
    stream.learn(problem.contexts, problem.outcomes)
    again = Stream.restore(
        problem, stream.arrangement.mean, stream.state.theta.copy(), pack(stream.state)
    )
    for one in (stream, again):
        one.learn(data.X_test[:20] / problem.scale, data.y_test[:20])
    np.testing.assert_array_equal(again.policy()[0], stream.policy()[0])
    assert again.policy()[1] == stream.policy()[1]


def test_learning_does_not_write_to_the_rows(data):
    problem = first_problem(data.X, data.y)
    rows, outcomes = data.X_test[:20].copy(), data.y_test[:20].copy()
    Stream.start(problem).learn(rows, outcomes)
    np.testing.assert_array_equal(rows, data.X_test[:20])
    np.testing.assert_array_equal(outcomes, data.y_test[:20])


# ---------------------------------------------------------------- partial_fit


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
