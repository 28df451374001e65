"""The autodiff engine: it steps as the compiled one does, along true derivatives."""

from dataclasses import replace
from functools import partial

import numpy as np
import optax
import pytest

from surefoot import Box, Problem, WassersteinBall
from surefoot.costs import Newsvendor, Quadratic
from surefoot.engines.affine_lane import Lane
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.autodiff_steps import StepMethod, move_sample, update
from surefoot.engines.engine import Options
from surefoot.engines.optimizer_rules import scaled
from surefoot.nominals import Empirical
from surefoot.policies import MLP, Linear
from surefoot.problem import affine_forms

ROWS, COLUMNS = 40, 4


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS)) + 1.0
    return X, X @ rng.normal(size=COLUMNS) + rng.normal(size=ROWS)


# Step by step with the compiled engine


def both_engines(pairs, *, order, intercept, frozen):
    """The same problem in both engines, at the same state; the box lets both learn the multiplier."""
    X, y = pairs
    box = Box(X.min(axis=0) - 0.3, X.max(axis=0) + 0.5)
    problem = Problem(
        Newsvendor(1.0, 0.3), Linear(intercept), Empirical(X, y),
        WassersteinBall(0.3, order=order, support=box, frozen=frozen),
    )  # fmt: skip
    affine = affine_forms(problem)[0].in_plain_units()
    compiled = Lane(affine, Options(inner_steps=7), rotate=False)
    general = Autodiff([problem], [0], Options(max_steps=1_000, inner_steps=7))
    start, state = compiled.first()[1][0], general.init()
    jax, jnp = general.engine.jax, general.engine.jnp
    with jax.enable_x64(True):
        trained = {"policy": {"theta": jnp.zeros((1, COLUMNS, 1))}, "auxiliary": jnp.zeros((1, 0))}
        reach = {"policy": {"theta": jnp.array([start["travelled"]])}, "auxiliary": jnp.ones(1)}
        if intercept:
            centre = general.forms[0].units.centre
            trained["policy"]["intercept"] = jnp.array([[start["intercept"]]]) - centre
            reach["policy"]["intercept"] = jnp.array([start["intercept_travelled"]])
        state = state._replace(
            trained=trained,
            rule=jax.vmap(general.method.rule.init)(trained)._replace(travelled=reach),
            log_multiplier=jnp.array([start["log_multiplier"]]),
        )
    return affine, compiled, general, state


def step_together(pairs, marks, **options):
    """Step both engines through the same draws and compare them at some of the steps."""
    affine, compiled, general, state = both_engines(pairs, **options)
    theta, numbers = compiled.first()
    draws = np.random.default_rng(1).integers(0, ROWS, size=max(marks))
    contexts, outcomes = affine.contexts * affine.scale, affine.outcomes
    centre = general.forms[0].units.centre[0]
    for step, row in enumerate(draws, start=1):
        compiled.step(theta, numbers, affine, compiled.rows, np.array([row]))
        state, failure = general.learn(state, contexts[None, [row]], outcomes[None, [row], None])
        assert failure is None
        if step not in marks:
            continue
        expected = np.empty(COLUMNS)
        expected[compiled.arrangement.order] = theta
        found = state.trained["policy"]
        np.testing.assert_allclose(np.asarray(found["theta"])[0, :, 0], expected, rtol=0, atol=1e-10)
        multiplier = float(state.log_multiplier[0])
        assert multiplier == pytest.approx(numbers["log_multiplier"][0], abs=1e-10)
        if options["intercept"]:
            at = float(found["intercept"][0, 0]) + centre
            assert at == pytest.approx(numbers["intercept"][0], abs=1e-10)
    assert np.abs(theta).max() > 0.01  # both went somewhere
    assert int(state.steps[0]) == max(marks)


@pytest.mark.parametrize("frozen", [(), (1, 3)], ids=["free", "frozen"])
@pytest.mark.parametrize("intercept", [True, False])
def test_it_agrees_with_the_compiled_engine_step_by_step(pairs, intercept, frozen):
    # Of order 1 the engines take different ways: the compiled one has the exact move, and its literal
    # steps are the paper's, which shrink first and clip then.
    step_together(pairs, (1, 2, 10, 500), order=2, intercept=intercept, frozen=frozen)


# Derivatives against finite differences


@pytest.fixture(scope="module")
def smooth(pairs):
    """A neural policy with outcomes that move too, one frozen column, and columns of other sizes."""
    X, y = pairs
    problem = Problem(
        Quadratic(2.0), MLP((8,)), Empirical(X * [1.0, 10.0, 0.1, 1.0], y),
        WassersteinBall(0.4, outcome_cost=3.0, frozen=(3,)),
    )  # fmt: skip
    run = Autodiff([problem], [3], Options(max_steps=100, inner_steps=4))
    arena, state = run.engine.jax.tree.map(lambda leaf: leaf[0], (run.arena, run.init()))
    return run, arena, state


def numpy_cost(run, policy, x, y):
    """The cost of one sample, through NumPy alone."""
    form = run.forms[0]
    return float(form.cost.evaluate(form.decisions(policy, x[None]), y[None])[0])


def test_parameters_step_along_the_derivative_of_the_cost_at_the_moved_sample(smooth):
    run, arena, state = smooth
    form, method = (
        run.forms[0],
        replace(run.method, rule=scaled(optax.identity, 1.0, decay=False), batch=2),
    )
    jax = run.engine.jax
    X, Y = form.contexts[:2], form.outcomes[:2]
    with jax.enable_x64(True):
        gamma = np.exp(np.asarray(state.log_multiplier))
        found = [
            jax.jit(lambda x, y: move_sample(method, state.trained, arena, gamma, 0.0, x, y))(x, y).move
            for x, y in zip(X, Y, strict=True)
        ]
        plainly = state._replace(rule=method.rule.init(state.trained))
        after, info = jax.jit(partial(update, method))(arena, plainly, (X, Y))
    moved = [
        (x + form.scale * np.asarray(m[0]), y + np.asarray(m[1]) / np.sqrt(3.0))
        for x, y, m in zip(X, Y, found, strict=True)
    ]
    assert max(np.abs(m[0]).max() for m in found) > 1e-3
    policy = {name: np.array(leaf) for name, leaf in state.trained["policy"].items()}

    def mean_cost():
        return np.mean([numpy_cost(run, policy, x, y) for x, y in moved])

    assert float(info[0]) == pytest.approx(mean_cost(), rel=1e-12)
    for name, array in policy.items():
        step = np.asarray(state.trained["policy"][name]) - np.asarray(after.trained["policy"][name])
        for place in list(np.ndindex(array.shape))[:6]:
            kept, h = array[place], 1e-6
            array[place] = kept + h
            above = mean_cost()
            array[place] = kept - h
            below = mean_cost()
            array[place] = kept
            assert step[place] == pytest.approx((above - below) / (2 * h), rel=1e-5, abs=1e-7), name
    spent = np.mean([np.square(m[0]).sum() + np.square(m[1]).sum() for m in found])
    assert float(info[1]) == pytest.approx(spent, rel=1e-10)
    # Less transport than the budget lowers the multiplier, more raises it.
    change = float(after.log_multiplier - state.log_multiplier)
    assert np.sign(change) == np.sign(spent - 0.4**2)


def test_samples_move_along_the_derivative_of_the_cost_in_units_of_transport(smooth):
    run, arena, state = smooth
    form, method = run.forms[0], replace(run.method, inner_steps=1)
    policy = {name: np.array(leaf) for name, leaf in state.trained["policy"].items()}
    jax, gamma = run.engine.jax, 0.7
    with jax.enable_x64(True):
        ascend = jax.jit(lambda x, y: move_sample(method, state.trained, arena, gamma, 0.0, x, y).move)
        for x, y in zip(form.contexts[:3], form.outcomes[:3], strict=True):
            # One step from the sample at curvature zero is slope / (2 gamma).
            context, outcome = (2.0 * gamma * np.asarray(part) for part in ascend(x, y))
            slopes = np.zeros(COLUMNS)
            for j in range(3):
                h = 1e-5 * form.scale[j] * np.eye(COLUMNS)[j]
                above, below = (numpy_cost(run, policy, x + s * h, y) for s in (1, -1))
                slopes[j] = (above - below) / 2e-5
            np.testing.assert_allclose(context, slopes, rtol=1e-5, atol=1e-8)
            h = 1e-5 / np.sqrt(3.0)
            above, below = (numpy_cost(run, policy, x, y + s * h) for s in (1, -1))
            assert outcome[0] == pytest.approx((above - below) / 2e-5, rel=1e-5)


def test_a_batch_is_the_mean_of_its_samples(smooth):
    run, arena, state = smooth
    form, jax = run.forms[0], run.engine.jax
    method = replace(run.method, rule=scaled(optax.identity, 1.0, decay=False), batch=2)
    with jax.enable_x64(True):
        state = state._replace(rule=method.rule.init(state.trained))
        step = jax.jit(partial(update, method))
        both, info = step(arena, state, (form.contexts[:2], form.outcomes[:2]))
        ones = [step(arena, state, (form.contexts[k], form.outcomes[k])) for k in range(2)]
    for name, leaf in both.trained["policy"].items():
        mean = np.mean([np.asarray(one.trained["policy"][name]) for one, _ in ones], axis=0)
        np.testing.assert_allclose(np.asarray(leaf), mean, rtol=1e-12, atol=1e-14)
    assert float(info[0]) == pytest.approx(np.mean([float(i[0]) for _, i in ones]), rel=1e-12)


def test_a_method_can_be_a_key_of_compiled_code(smooth):
    run, _, _ = smooth
    fields = {name: getattr(run.method, name) for name in run.method.__dataclass_fields__}
    assert StepMethod(**fields) == run.method
    assert hash(StepMethod(**fields)) == hash(run.method)
    assert replace(run.method, order=1) != run.method
