"""A batch of affine problems steps as each of them does alone in the compiled engine."""

import numpy as np
import pytest

from surefoot import Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.engines.affine import Lane
from surefoot.engines.affine_lanes import AffineBatch, why_not_batch
from surefoot.engines.engine import Options
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms


def forms(order, intercept, **ball):
    """Of different sizes, radii and prices; wider than long, so that the compiled one is rotated."""
    made = []
    for n, radius, holding in ((10, 0.05, 0.2), (30, 0.3, 0.9), (24, 0.0, 2.0)):
        data = synthetic(n=n, s=40, seed=n, test=1)
        problem = Problem(
            Newsvendor(1.0, holding), Linear(intercept), Empirical(data.X, data.y),
            WassersteinBall(radius, order=order, **ball),
        )  # fmt: skip
        made.append(affine_forms(problem)[0])
    return made


def alone(form, draws):
    """What the compiled engine makes of the same draws."""
    lane = Lane(form, Options(), rotate=True)
    assert lane.arrangement.rotation is not None
    return lane.step(*lane.first(), form, lane.rows, draws.astype(np.int64))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("order", [1, 2])
def test_it_agrees_with_the_compiled_engine(order, intercept):
    affine = forms(order, intercept)
    batch = AffineBatch(affine)
    draws = batch.draw([np.random.default_rng(k) for k in range(3)], 320)
    batch.run(draws, average=True)
    assert batch.steps == 320
    for k, (form, (policy, slopes)) in enumerate(zip(affine, batch.answers(), strict=True)):
        (theta, at), expected = alone(form, draws[:, k])
        np.testing.assert_allclose(policy[0], theta, rtol=0, atol=1e-10)
        assert policy[1] == pytest.approx(at, abs=1e-10)
        np.testing.assert_allclose(slopes, expected, rtol=0, atol=1e-9)
        assert np.abs(theta).max() > 1e-3


def test_outcomes_that_move_are_priced_as_in_the_compiled_engine():
    affine = forms(2, True, outcome_cost=4.0)[:2]
    batch = AffineBatch(affine)
    draws = batch.draw([np.random.default_rng(k) for k in range(2)], 320)
    batch.run(draws, average=True)
    for k, (form, (policy, _)) in enumerate(zip(affine, batch.answers(), strict=True)):
        np.testing.assert_allclose(policy[0], alone(form, draws[:, k])[0][0], rtol=0, atol=1e-10)


def test_rows_that_fill_up_are_never_drawn():
    batch = AffineBatch(forms(2, True))
    draws = batch.draw([np.random.default_rng(k) for k in range(3)], 200)
    assert draws.shape[0] >= 200
    assert (draws.max(axis=0) < [10, 30, 24]).all()
    assert draws[:, 1].max() >= 24


def test_where_it_stands_and_its_average_differ():
    affine = forms(2, True)
    one, other = AffineBatch(affine), AffineBatch(affine)
    draws = one.draw([np.random.default_rng(k) for k in range(3)], 320)
    one.run(draws, average=True)
    other.run(draws, average=False)
    np.testing.assert_allclose(
        np.asarray(one.state.coefficients), np.asarray(other.state.coefficients), rtol=1e-12
    )
    (average, _), (newest, _) = one.answers()[1][0], other.answers()[1][0]
    assert np.abs(average - newest).max() > 1e-6


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, None),
        ({"order": 1, "outcome_cost": 2.0, "intercept": False}, None),
        ({"box": "closed"}, "no box support"),
        ({"smoothing": 0.2}, "without smoothing"),
        ({"frozen": (1,)}, "no frozen or constant columns"),
    ],
)
def test_it_says_which_forms_can_join(make_affine, options, reason):
    found = why_not_batch(make_affine(1, **options))
    assert found is None if reason is None else reason in found


def test_a_column_that_never_varies_keeps_a_form_out():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=9), np.ones(9)])
    nominal = Empirical(X, rng.normal(size=9))
    problem = Problem(Newsvendor(1.0, 0.2), Linear(), nominal, WassersteinBall(0.1))
    assert "constant columns" in why_not_batch(affine_forms(problem)[0])
