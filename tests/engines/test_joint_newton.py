"""Newton's method on a smoothed worst case: its derivatives, its slopes, and where it begins."""

import numpy as np
import pytest

from surefoot import Problem, WassersteinBall
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.engines.joint_newton import JointNewtonRun
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import joint_form

COSTS = [Newsvendor([1.0, 0.3], [0.2, 0.5]), TieredNewsvendor(((0, 1.0), (1, 2.0)), 0.3)]


def some_form(seed=0, *, rows=30, columns=3, cost=COSTS[0], intercept=True, **ball):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) + 2.0
    Y = X @ rng.normal(size=(columns, 2)) + rng.normal(size=(rows, 2))
    ball = WassersteinBall(**{"radius": 0.3, "adversary": "joint", **ball})
    rows = Empirical(X, Y, rng.uniform(0.2, 1.0, rows))
    return joint_form(Problem(cost, Linear(intercept=intercept), rows, ball))


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "ball", [{}, {"outcome_cost": 0.7}, {"frozen": (1,)}, {"radius": 0.0}], ids=str
)
def test_a_step_is_newton_s(cost, intercept, ball):
    # Of the smoothed worst case by finite differences: H step = -gradient.
    run = JointNewtonRun(some_form(cost=cost, intercept=intercept, **ball))
    rng = np.random.default_rng(1)
    run.at = run.at + 0.2 * rng.normal(size=run.at.shape)
    step = run._step()
    here = np.append(run.at, run.spent)

    def value(point):
        return run._value(point[:-1].reshape(run.at.shape), float(point[-1]))

    def gradient(point, width=1e-5):
        sides = width * np.eye(len(point))
        return np.array([(value(point + s) - value(point - s)) / (2 * width) for s in sides])

    way = np.append(step.parameters, step.spent)
    slope = gradient(here)
    width = 1e-4 / np.abs(way).max()
    turned = (gradient(here + width * way) - gradient(here - width * way)) / (2.0 * width)
    assert turned == pytest.approx(-slope, abs=2e-4 * np.abs(slope).max())
    assert step.gain == pytest.approx(-slope @ way, rel=1e-4)


def test_slopes_carried_along_leave_nothing_to_gain():
    form = some_form()
    run = JointNewtonRun(form)
    run.run(np.zeros(25))
    slopes = run.slopes.probabilities
    assert (slopes >= 0.0).all()
    assert slopes.sum(axis=1) == pytest.approx(np.ones(len(slopes)), rel=1e-9)
    mean = form.weights @ (slopes @ form.lines.slopes)
    assert np.abs(mean).max() < 1e-4 * np.abs(form.lines.slopes).max()
    assert form.lower_bound(run.slopes) <= form.worst_value(*run.policy())[0]


def test_smoothing_falls_until_both_bounds_meet():
    form = some_form()
    run = JointNewtonRun(form)
    gaps = []
    for _ in range(8):
        run.run(np.zeros(25))
        gaps.append(form.worst_value(*run.policy())[0] - form.lower_bound(run.slopes))
    assert gaps[-1] < 1e-4 * gaps[0]
    assert run.steps < 60


def test_a_run_goes_on_from_a_policy_of_another_radius():
    form = some_form()
    first = JointNewtonRun(form)
    for _ in range(4):
        first.run(np.zeros(25))
    other = JointNewtonRun(form.at_radius(0.25), first.policy())
    for now, before in zip(other.policy(), first.policy(), strict=True):
        assert now == pytest.approx(before, rel=1e-9)
    other.run(np.zeros(25))
    value = other.form.worst_value(*other.policy())[0]
    assert value - other.form.lower_bound(other.slopes) < 0.05 * value


def test_a_column_that_is_constant_but_for_rounding_is_left_alone():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), np.full(40, 1e3) + 1e-13 * rng.normal(size=40)])
    Y = X[:, :1] + rng.normal(size=(40, 2))
    ball = WassersteinBall(0.1, adversary="joint", frozen=(1,))
    form = joint_form(Problem(COSTS[0], Linear(), Empirical(X, Y), ball))
    run = JointNewtonRun(form)
    for _ in range(6):
        run.run(np.zeros(25))
    assert (run.policy()[0][1] == 0.0).all()
    assert form.worst_value(*run.policy())[0] < form.worst_value(*form.start()[0])[0]
