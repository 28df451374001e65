"""Bounded memory, and what radius, scale and window do to a stream."""

import numpy as np
import pytest

from surefoot import WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.online import DecayingRadius, OnlinePolicy, Window
from surefoot.random import rng_for

COST = Newsvendor(backorder=1.0, holding=0.2)


def samples(rows):
    rng = rng_for(0, "online", "rules")
    X = rng.normal(size=(rows, 3)) * [1.0, 2.0, 3.0] + 2.0
    return X, 5.0 + X @ [1.0, 0.6, 0.2] + rng.normal(size=rows)


def psi(residuals):
    return np.maximum(0.2 * residuals, -residuals)


def size_of(state):
    return sum(array.nbytes for array in state["arrays"].values()) + len(state["pending"])


def test_what_is_kept_does_not_grow():
    X, y = samples(5_000)
    policy = OnlinePolicy(COST).partial_fit(X[:50], y[:50])
    early = size_of(policy.state_dict())
    policy.partial_fit(X, y)
    assert size_of(policy.state_dict()) == early


def test_a_larger_radius_means_smaller_parameters():
    X, y = samples(2_000)
    norms = [
        np.linalg.norm(OnlinePolicy(COST, ball=WassersteinBall(radius)).partial_fit(X, y)
                       .state_dict()["arrays"]["average"])
        for radius in (0.0, 0.3, 3.0)
    ]  # fmt: skip
    assert norms[0] > norms[1] > norms[2]


def test_units_do_not_matter():
    X, y = samples(1_000)
    factors, shifts = np.array([10.0, 0.01, 3.0]), np.array([5.0, -1.0, 100.0])
    ball = WassersteinBall(0.1)
    plain = OnlinePolicy(COST, ball=ball).decide_and_learn(X, y)
    other = OnlinePolicy(COST, ball=ball).decide_and_learn(X * factors + shifts, y)
    np.testing.assert_allclose(plain, other, rtol=1e-6, atol=1e-6)


def test_a_falling_radius_ends_at_the_nominal_policy():
    assert DecayingRadius(4).at(0.6, 3) == 0.6
    assert DecayingRadius(4).at(0.6, 16) == pytest.approx(0.3)
    X, y = samples(20_000)
    falling = OnlinePolicy(COST, ball=WassersteinBall(3.0), radius=DecayingRadius()).partial_fit(X, y)
    fixed = OnlinePolicy(COST, ball=WassersteinBall(3.0)).partial_fit(X, y)
    theta = [policy.state_dict()["arrays"]["average"][0] for policy in (falling, fixed)]
    np.testing.assert_allclose(theta[0], [1.0, 0.6, 0.2], atol=0.1)
    assert np.abs(theta[1]).max() < 0.5


def test_a_window_follows_what_the_whole_past_hides():
    X, y = samples(4_000)
    y[2_000:] += 20.0
    late = slice(2_300, 2_600)
    whole = OnlinePolicy(COST).decide_and_learn(X, y)[late]
    recent = OnlinePolicy(COST, drift=Window(100)).decide_and_learn(X, y)[late]
    assert psi(recent - y[late]).mean() < 0.5 * psi(whole - y[late]).mean()


@pytest.mark.parametrize("rows", [16, 20, 30])
def test_a_short_window_is_not_thrown_about(rows):
    # Steps went by the farthest that the policy had ever been, and it went ever farther.
    rng = rng_for(0, "online", "short window")
    X = rng.normal(size=(3_000, 10))
    y = 20.0 + X @ rng.normal(size=10) + rng.normal(size=3_000)
    decided = OnlinePolicy(COST, drift=Window(rows)).decide_and_learn(X, y)
    constant = np.quantile(y, 1.0 / 1.2)
    assert psi(decided - y)[500:].mean() < 1.5 * psi(constant - y)[500:].mean()
