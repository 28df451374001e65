"""Choices of step: checked by name, and all of them learn."""

import re

import numpy as np
import optax
import pytest

from surefoot import DASGD, Problem, WassersteinBall
from surefoot.costs import Quadratic
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.optimizers import SGD, Adam
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.random import rng_for

OPTIMIZERS = {
    "adam": Adam(0.05),
    "sgd": SGD(0.02),
    "adamw with a schedule": optax.adamw(optax.cosine_decay_schedule(0.05, 500), weight_decay=1e-6),
    "clipped": optax.chain(optax.clip(1.0), optax.sgd(0.05)),
}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = 3.0 + X @ [1.0, -0.5] + 0.1 * rng.normal(size=60)
    return Problem(Quadratic(), Linear(), Empirical(X, y), WassersteinBall(0.05))


def learned(problem, optimizer, seed, steps):
    """What some steps lead to, of a run of 500: the engine, and the policy in its own units."""
    engine = Autodiff([problem], [seed], DASGD(max_steps=500, optimizer=optimizer).options)
    state, failure = engine.update(engine.init(), engine.draw(steps))
    assert failure is None
    return engine, engine.split(engine.candidates(state)[0], 0)[0]


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_every_kind_of_optimizer_learns(problem, optimizer):
    engine, policy = learned(problem, optimizer, 0, 500)
    found = problem.policy.in_user_units(policy, engine.forms[0].units.tree())
    np.testing.assert_allclose(found.theta[:, 0], [1.0, -0.5], atol=0.1)
    np.testing.assert_allclose(found.intercept, [3.0], atol=0.1)


def test_sgd_is_the_loop_of_the_paper(problem):
    steps, rate = 250, 0.02
    still = Problem(problem.cost, problem.policy, problem.nominal, WassersteinBall(0.0))
    engine, found = learned(still, SGD(rate), 4, steps)
    units = engine.forms[0].units
    X, Y = problem.nominal.distinct().sample(rng_for(4, "general", "draws"), steps)  # rows in order
    theta, t = np.zeros(2), 0.0
    for x, y in zip((X - units.mean) / units.spread, Y[:, 0], strict=True):
        slope = 2.0 * (x @ theta + units.centre[0] + t - y)
        theta, t = theta - rate * slope * x, t - rate * slope
    np.testing.assert_allclose(found["theta"][:, 0], theta, rtol=1e-9)
    np.testing.assert_allclose(found["intercept"], [t], rtol=1e-9)


@pytest.mark.parametrize("kind", [Adam, SGD])
def test_options_are_checked_by_name(kind):
    with pytest.raises(InvalidInputError, match=r"^learning_rate must be > 0, got 0"):
        kind(learning_rate=0.0)
    with pytest.raises(InvalidInputError, match="learning_rate"):
        kind(learning_rate=float("nan"))
    with pytest.raises((InvalidInputError, InvalidTypeError), match="decay"):
        kind(decay="no")
    assert kind(0.5) == kind(0.5)
    assert len({kind(0.5), kind(0.5)}) == 1


@pytest.mark.parametrize("optimizer", ["adam", 0.1, Adam, optax.adam, object()])
def test_other_things_are_no_optimizers(optimizer):
    message = "optimizer must be Adam(...), SGD(...), a gradient transformation of optax or None, got"
    with pytest.raises(InvalidTypeError, match=f"^{re.escape(message)}"):
        DASGD(optimizer=optimizer)
