"""Judging a policy: what the adversary gains, against closed forms."""

import numpy as np
import pytest

from surefoot import Problem, WassersteinBall
from surefoot.ambiguity.moves import best_moves
from surefoot.costs import Newsvendor, Quadratic
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.engine import Options
from surefoot.engines.judging import compiled_judge, slopes_of
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms

THETA, INTERCEPT = np.array([0.8, -0.3]), 2.0


def judged(cost, gamma, **ball):
    """Verdicts on an affine policy in the user's own units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = 2.0 + X @ [1.0, -0.5] + 0.5 * rng.normal(size=60)
    problem = Problem(cost, Linear(), Empirical(X, y), WassersteinBall(0.3, scale=False, **ball))
    run = Autodiff([problem], [0], Options(max_steps=100, inner_steps=20))
    form = run.forms[0]
    units = form.units
    policy = {
        "theta": (THETA * units.spread)[:, None],
        "intercept": INTERCEPT + units.mean @ THETA - units.centre,
    }
    jax, trained = run.engine.jax, {"policy": policy, "auxiliary": np.zeros(0)}
    arena = jax.tree.map(lambda leaf: leaf[0], run.arena)
    with jax.enable_x64(True):
        one = trained, np.float64(gamma), form.contexts, form.outcomes
        batch = jax.tree.map(lambda leaf: np.asarray(leaf)[None], one)
        verdict = jax.tree.map(lambda leaf: leaf[0], compiled_judge(run.method)(run.arena, *batch))
        slopes = np.asarray(slopes_of(run.method, arena, trained, form.contexts, form.outcomes))
    residuals = X @ THETA + INTERCEPT - y
    return jax.tree.map(np.asarray, verdict), residuals, problem, slopes


@pytest.mark.parametrize("frozen", [(), (1,)], ids=["free", "frozen"])
def test_a_quadratic_cost_has_a_closed_form(frozen):
    verdict, residuals, problem, slopes = judged(Quadratic(), 3.0, frozen=frozen)
    moving = np.where([True, not frozen], THETA, 0.0)
    m = moving @ moving
    np.testing.assert_allclose(verdict.value, residuals**2 * 3.0 / (3.0 - m), rtol=1e-8)
    pull = residuals / (3.0 - m)
    np.testing.assert_allclose(
        verdict.context, problem.nominal.contexts + np.outer(pull, moving), atol=1e-4
    )
    np.testing.assert_allclose(verdict.distance, pull**2 * m, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(verdict.value, verdict.cost - 3.0 * verdict.distance, rtol=1e-12)
    np.testing.assert_allclose(verdict.curvature, 2.0 * m, rtol=1e-6)
    assert verdict.steepness.max() < 1e-3
    assert not verdict.several.any()
    np.testing.assert_array_equal(verdict.outcome, problem.nominal.outcomes)
    np.testing.assert_allclose(slopes, np.outer(2.0 * residuals, moving), rtol=1e-10)
    if frozen:
        np.testing.assert_array_equal(verdict.context[:, 1], problem.nominal.contexts[:, 1])


def test_a_kinked_cost_is_searched_on_both_sides():
    verdict, residuals, problem, _ = judged(Newsvendor(1.0, 0.2), 0.8)
    affine = affine_forms(problem, merge=False)[0].in_plain_units()
    best = best_moves(affine, THETA, INTERCEPT, 0.8)
    assert (verdict.value <= best.value + 1e-9).all()
    assert (verdict.value >= best.value - 1e-6).mean() >= 0.95
    np.testing.assert_allclose(verdict.curvature, 0.0, atol=1e-12)
    # Several maximisers only where the kink is within reach.
    assert 0 < verdict.several.sum() < 60
    assert np.abs(residuals[verdict.several]).max() < np.abs(residuals).max()


def test_no_multiplier_gains_less_than_staying_put():
    for gamma in (1e-12, 0.01, 1e6):
        verdict, residuals, _, _ = judged(Newsvendor(1.0, 0.2), gamma, frozen=(0, 1))
        np.testing.assert_allclose(verdict.value, np.maximum(0.2 * residuals, -residuals), rtol=1e-9)
        np.testing.assert_array_equal(verdict.distance, 0.0)
