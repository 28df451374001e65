"""The path of adversaries: every checkpoint is a stretch of the run that fit made."""

import numpy as np
import pytest

from surefoot import DASGD, Exact, PrimalDual, RobustNewsvendor, RobustPolicy, WassersteinBall, load
from surefoot.costs import Newsvendor, Quadratic
from surefoot.datasets import synthetic
from surefoot.diagnostics import adversary_path
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.forecasts import Forecaster


@pytest.fixture(scope="module")
def data():
    return synthetic(n=80, s=6, seed=1, noise_variance=0.1, test=10)


@pytest.mark.parametrize("solver", [PrimalDual(), DASGD(gap_tol=0.02), Exact(), None])
def test_the_path_ends_where_fit_did_and_starts_at_the_constant_order(data, solver):
    model = RobustNewsvendor(1.0, 0.2, radius=0.05, solver=solver, random_state=3)
    model.fit(data.X, data.y)
    path = adversary_path(model, data.X, data.y, checkpoints=4)
    assert path.steps[0] == 0
    assert path.steps[-1] == model.n_steps_
    assert 2 <= len(path.steps) <= 4
    last = path.augmentations[-1]
    assert last.worst_case == pytest.approx(model.certificate_.upper, rel=1e-9)
    expected = model.worst_case(data.X, data.y)
    np.testing.assert_allclose(last.contexts, expected.contexts)
    first = path.augmentations[0]
    assert first.share_moved == 0.0  # a constant policy gives nothing to move for
    assert (np.diff(path.worst_cases) <= 1e-12).all()
    assert [p.steps for p in path.history] == [p.steps for p in model.history_]


def test_a_checkpoint_is_the_policy_of_a_shorter_run(data):
    model = RobustNewsvendor(1.0, 0.2, radius=0.05, solver=PrimalDual(gap_tol=1e-5)).fit(data.X, data.y)
    path = adversary_path(model, data.X, data.y, checkpoints=5)
    middle = path.steps[2]
    with pytest.warns(UserWarning, match="^PrimalDual ran out of steps"):
        shorter = RobustNewsvendor(
            1.0, 0.2, radius=0.05, solver=PrimalDual(gap_tol=1e-5, max_steps=middle)
        ).fit(data.X, data.y)
    assert path.augmentations[2].worst_case == pytest.approx(shorter.certificate_.upper, rel=1e-12)


def test_gamma_and_shares_are_those_of_the_checkpoints(data):
    y = np.column_stack([data.y, -data.y])
    with pytest.raises(UnsupportedProblemError, match=r"got SmoothedNewton: .*solver=PrimalDual\(\)"):
        adversary_path(RobustNewsvendor(1.0, 0.2, radius=0.05).fit(data.X, y), data.X, y)
    model = RobustNewsvendor(1.0, 0.2, radius=0.05, solver=PrimalDual()).fit(data.X, y)
    path = adversary_path(model, data.X, y)
    assert path.multipliers.shape == (len(path.steps), 2)
    np.testing.assert_allclose(path.multipliers[-1], model.multiplier_)
    assert path.column_shares.shape == (len(path.steps), 6)
    np.testing.assert_allclose(path.column_shares[1:].sum(axis=1), 1.0)
    lines = str(path).splitlines()
    assert len(lines) == 1 + len(path.steps)
    assert "none" in lines[1]
    assert path.augmentations[-1].most_used(1)[0].name in lines[-1]


def test_general_runs_are_stopped_on_the_way(data):
    pytest.importorskip("jax")
    solver = DASGD(max_steps=2_000, gap_tol=10.0)
    model = RobustPolicy(Quadratic(), ball=WassersteinBall(0.1), solver=solver).fit(data.X, data.y)
    path = adversary_path(model, data.X, data.y, checkpoints=2)
    assert path.steps == (1_000, 2_000)
    assert path.augmentations[-1].worst_case == pytest.approx(model.certificate_.upper, rel=1e-3)


def test_what_cannot_be_watched_is_refused(data):
    literal = DASGD.literal(alpha=0.01, beta=0.01, eta=0.01, K=5, epsilon=1e-3, steps=100)
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1), solver=literal)
    with pytest.warns(UserWarning, match="printed algorithm"):
        model.fit(data.X, data.y)
    with pytest.raises(
        UnsupportedProblemError, match=r"DASGD, PrimalDual or Exact\), got LiteralDASGD"
    ):
        adversary_path(model, data.X, data.y)
    fine = RobustNewsvendor(1.0, 0.2, radius=0.05).fit(data.X, data.y)
    with pytest.raises(InvalidInputError, match="checkpoints must be >= 2"):
        adversary_path(fine, data.X, data.y, checkpoints=1)


def test_models_that_forecast_first_are_watched_too(data, tmp_path):
    model = RobustNewsvendor(1.0, 0.2, radius=0.01, nominal=Forecaster()).fit(data.X, data.y)
    assert model.problem_.policy.offset is not None
    path = adversary_path(model, data.X, data.y)
    last = path.augmentations[-1]
    assert last.worst_case == pytest.approx(model.certificate_.upper)
    # The forecast of a row is one that had not seen it; a moved context leaves it where it is.
    offsets = model.nominal_.offsets[last.rows]
    decisions = model.problem_.policy.decide(model.parameters_, last.contexts, offsets)
    np.testing.assert_allclose(last.decisions, decisions[:, 0])
    model.save(tmp_path / "model.surefoot")
    with pytest.raises(InvalidInputError, match="got one from a file"):
        adversary_path(load(tmp_path / "model.surefoot"), data.X, data.y)
