"""Streams with a known truth: closed forms against samples and against the solver."""

import numpy as np
import pytest

from reproduction.stream_laws import KINDS, Law, draw_stream
from reproduction.stream_measures import realised_cost
from surefoot import RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError
from surefoot.solvers import Exact

COST = Newsvendor(1.0, 0.2)


@pytest.fixture(scope="module")
def law():
    return Law(np.array([1.0, -0.5, 2.0, 0.3]), 0.7, COST)


@pytest.fixture(scope="module")
def rows(law):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400_000, 4))
    return X, X @ law.theta + law.intercept + rng.standard_normal(len(X))


def test_expected_costs_are_those_of_samples(law, rows):
    X, y = rows
    theta, intercept = 0.7 * law.theta + 0.1, 0.4
    sampled = realised_cost(COST, X @ theta + intercept, y).mean()
    assert law.expected_cost(theta, np.array(intercept)) == pytest.approx(sampled, rel=0.01)
    assert law.oracle_cost == pytest.approx(realised_cost(COST, law.oracle(X), y).mean(), rel=0.01)


def test_the_robust_objective_is_the_mean_of_the_inner_problem(law, rows):
    X, y = rows
    theta, intercept, gamma, rho = 0.7 * law.theta + 0.1, 0.9, 1.3, 0.3
    r, square = X @ theta + intercept - y, theta @ theta
    inner = np.maximum(0.2 * r + 0.04 * square / (4 * gamma), -r + square / (4 * gamma))
    expected = gamma * rho**2 + inner.mean()
    value = law.robust_objective(theta, np.array(intercept), np.array(gamma), rho)
    assert value == pytest.approx(expected, rel=0.01)


def test_the_robust_best_is_what_the_exact_solver_finds(law, rows):
    X, y = rows[0][:20_000], rows[1][:20_000]
    ball = WassersteinBall(0.3, scale=False)
    fitted = RobustPolicy(COST, ball=ball, solver=Exact(gap_tol=1e-3)).fit(X, y)
    theta, intercept, gamma = law.robust_best(0.3)
    best = law.robust_objective(theta, np.array(intercept), np.array(gamma), 0.3)
    assert fitted.certificate_.upper == pytest.approx(best, rel=0.02)
    assert fitted.parameters_.theta[:, 0] == pytest.approx(theta, abs=0.05)
    assert fitted.multiplier_ == pytest.approx(gamma, rel=0.05)


def test_no_neighbour_is_better_than_the_robust_best(law):
    theta, intercept, gamma = law.robust_best(0.3)
    best = law.robust_objective(theta, np.array(intercept), np.array(gamma), 0.3)
    rng = np.random.default_rng(2)
    for _ in range(200):
        push = 1e-3 * rng.normal(size=6)
        other = law.robust_objective(
            theta + push[:4], np.array(intercept + push[4]), np.array(gamma * np.exp(push[5])), 0.3
        )
        assert other >= best - 1e-12
    assert law.best_multiplier(theta, np.array(intercept), 0.3) == pytest.approx(gamma, rel=1e-6)


def test_the_best_multiplier_minimises(law):
    rng = np.random.default_rng(3)
    theta, intercept = rng.normal(size=(50, 4)), rng.normal(size=50)
    gamma = law.best_multiplier(theta, intercept, 0.2)
    value = law.robust_objective(theta, intercept, gamma, 0.2)
    for share in (0.97, 1.03):
        assert (law.robust_objective(theta, intercept, share * gamma, 0.2) > value).all()


def test_without_a_radius_everything_is_the_plain_cost(law):
    theta, intercept, gamma = law.robust_best(0.0)
    assert theta == pytest.approx(law.theta)
    assert intercept == pytest.approx(law.intercept + law.quantile)
    assert gamma == 0.0
    value = law.robust_objective(theta, np.array(intercept), np.array(0.0), 0.0)
    assert value == pytest.approx(law.oracle_cost)
    still = law.robust_objective(np.zeros(4), np.array(0.5), np.array(0.0), 0.3)
    assert still == pytest.approx(law.expected_cost(np.zeros(4), np.array(0.5)))


@pytest.mark.parametrize("coefficients", ["positive", "mixed"])
def test_streams_start_alike_and_end_as_they_say(coefficients):
    streams = {kind: draw_stream(kind, 900, 3, coefficients, COST, 5) for kind in KINDS}
    for stream in streams.values():
        assert (stream.y[:300] == streams["stationary"].y[:300]).all()
        assert (stream.X == streams["stationary"].X).all()
    abrupt, gradual = streams["abrupt"], streams["gradual"]
    assert (abrupt.change, abrupt.settled) == (450, 450)
    assert (gradual.change, gradual.settled) == (300, 600)
    for stream in (abrupt, gradual):
        at = stream.settled
        assert stream.oracle[at:] == pytest.approx(stream.after.oracle(stream.X[at:]))
        assert stream.oracle[: stream.change] == pytest.approx(
            stream.before.oracle(stream.X[: stream.change])
        )
    noise = [stream.y - stream.oracle for stream in streams.values()]
    assert noise[1] == pytest.approx(noise[0])
    assert noise[2] == pytest.approx(noise[0])
    half = gradual.oracle[449] - gradual.before.oracle(gradual.X[449:450])[0]
    whole = gradual.after.oracle(gradual.X[449:450])[0] - gradual.before.oracle(gradual.X[449:450])[0]
    assert half / whole == pytest.approx(150 / 301)


def test_unknown_kinds_are_refused():
    with pytest.raises(InvalidInputError, match="kind must be 'stationary' or 'abrupt' or 'gradual'"):
        draw_stream("seasonal", 100, 3, "mixed", COST, 0)
