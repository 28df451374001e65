"""A batch of affine problems steps as each of them does alone in the compiled engine."""

import numpy as np
import pytest

from surefoot import Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_problems
from surefoot.solvers.adaptive import AdaptiveRun
from surefoot.solvers.many import AffineBatch


def problems(order, intercept, **ball):
    """Of different sizes, radii and prices; wider than long, so that the compiled one has its Gram form."""
    made = []
    for n, radius, holding in ((10, 0.05, 0.2), (30, 0.3, 0.9), (24, 0.0, 2.0)):
        data = synthetic(n=n, s=40, seed=n, test=1)
        problem = Problem(
            Newsvendor(1.0, holding), Linear(intercept), Empirical(data.X, data.y),
            WassersteinBall(radius, order=order, **ball),
        )  # fmt: skip
        made.append(affine_problems(problem)[0])
    return made


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("order", [1, 2])
def test_it_agrees_with_the_compiled_engine(order, intercept):
    affine = problems(order, intercept)
    batch = AffineBatch(affine)
    draws = batch.draw([np.random.default_rng(k) for k in range(3)], 320)
    batch.run(draws, average=True)
    for k, (problem, found) in enumerate(zip(affine, batch.solutions(), strict=True)):
        alone = AdaptiveRun(problem)
        assert alone.by_gram
        alone.run(draws[:, k].astype(np.int64))
        theta, at = alone.policy()
        np.testing.assert_allclose(found.theta, theta, rtol=0, atol=1e-10)
        assert found.intercept == pytest.approx(at, abs=1e-10)
        np.testing.assert_allclose(found.slopes, alone.slopes, rtol=0, atol=1e-9)
        assert np.abs(theta).max() > 1e-3
        assert found.steps == 320


def test_outcomes_that_move_are_priced_as_in_the_compiled_engine():
    affine = problems(2, True, outcome_cost=4.0)[:2]
    batch = AffineBatch(affine)
    draws = batch.draw([np.random.default_rng(k) for k in range(2)], 320)
    batch.run(draws, average=True)
    for k, (problem, found) in enumerate(zip(affine, batch.solutions(), strict=True)):
        alone = AdaptiveRun(problem)
        alone.run(draws[:, k].astype(np.int64))
        np.testing.assert_allclose(found.theta, alone.policy()[0], rtol=0, atol=1e-10)


def test_rows_that_fill_up_are_never_drawn():
    batch = AffineBatch(problems(2, True))
    draws = batch.draw([np.random.default_rng(k) for k in range(3)], 200)
    assert draws.shape[0] >= 200
    assert (draws.max(axis=0) < [10, 30, 24]).all()
    assert draws[:, 1].max() >= 24


def test_where_it_stands_and_its_average_differ():
    affine = problems(2, True)
    one, other = AffineBatch(affine), AffineBatch(affine)
    draws = one.draw([np.random.default_rng(k) for k in range(3)], 320)
    one.run(draws, average=True)
    other.run(draws, average=False)
    np.testing.assert_allclose(
        np.asarray(one.state.coefficients), np.asarray(other.state.coefficients), rtol=1e-12
    )
    assert np.abs(one.solutions()[1].theta - other.solutions()[1].theta).max() > 1e-6
