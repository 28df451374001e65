"""Estimators on rows that do not fit into memory."""

import numpy as np
import pytest

from surefoot import RobustNewsvendor, RobustPolicy, WassersteinBall, load
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Empirical, row_batches
from surefoot.solvers import DASGD
from tests.held_rows import HeldRows, demand


@pytest.fixture(autouse=True)
def few_rows_are_kept(monkeypatch):
    monkeypatch.setattr(row_batches, "KEPT_NUMBERS", 5 * 2_000)


@pytest.fixture
def rows():
    return HeldRows(*demand())


def test_a_fit_decides_as_one_to_the_rows_at_once(rows, tmp_path):
    model = RobustNewsvendor(3.0, 0.5, radius=0.1).fit(rows)
    at_once = RobustNewsvendor(3.0, 0.5, radius=0.1).fit(rows.X, rows.y[:, 0])
    assert model.converged_
    assert model.certificate_.kind == "bound"
    assert model.status_.startswith("PrimalDual converged after ")
    assert model.scale_ == pytest.approx(at_once.scale_, rel=1e-9)
    assert model.certificate_.upper == pytest.approx(at_once.certificate_.upper, rel=0.005)
    assert model.predict(rows.X[:5]).shape == (5,)
    assert model.cost(rows.X, rows.y[:, 0]) == pytest.approx(
        at_once.cost(rows.X, rows.y[:, 0]), rel=0.02
    )
    worst = model.worst_case(rows.X, rows.y[:, 0])
    assert worst.value <= model.certificate_.upper * (1 + 1e-9)
    assert len(model.augmentation().columns) == 4
    model.save(tmp_path / "model.surefoot")
    assert (load(tmp_path / "model.surefoot").predict(rows.X) == model.predict(rows.X)).all()
    model.partial_fit(rows.X[:50], rows.y[:50, 0])
    assert model.converged_ is None


def test_names_and_products_are_those_of_the_rows():
    X, y = demand()
    rows = HeldRows(X, np.column_stack([y, 2.0 * y]), names=("a", "b", "c", "d"))
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1, frozen=("b",))).fit(rows)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert model.n_features_in_ == 4
    assert model.movable_.tolist() == [True, False, True, True]
    with pytest.warns(UserWarning, match="feature names"):
        assert model.predict(X[:5]).shape == (5, 2)
    model.set_params(ball=WassersteinBall(0.1)).fit(HeldRows(X, y))
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(X[:5]).shape == (5,)


def test_a_solver_of_ones_own(rows):
    model = RobustNewsvendor(3.0, 0.5, radius=0.1, solver=DASGD()).fit(rows)
    assert model.status_.startswith("DASGD converged after ")
    assert "Passes over all rows to certify it: " in model.status_
    assert model.certificate_.message.startswith("Over all 6,000 rows")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "radius must be a number beside rows in batches"),
        ({"radius": "profile"}, "got radius='profile'"),
        ({"radius": "auto", "nominal": None}, "got radius='auto'"),
        ({"radius": 0.1, "nominal": Empirical([[1.0] * 4], [1.0])}, "nominal must be None beside rows"),
    ],
)
def test_parts_that_need_all_rows_at_hand_are_refused(rows, options, message):
    with pytest.raises(InvalidInputError, match=message):
        RobustNewsvendor(1.0, 0.2, **options).fit(rows)
    assert rows.passes == 0


@pytest.mark.parametrize("name", ["y", "sample_weight", "time", "backorder"])
def test_what_would_speak_of_each_row_is_refused(rows, name):
    model = RobustNewsvendor(1.0, 0.2, radius=0.1)
    with pytest.raises(InvalidInputError, match=f"{name} must be None beside rows in batches"):
        model.fit(rows, **{name: rows.y[:, 0]})
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(rows.X)


def test_learning_on_takes_batches_one_by_one(rows):
    model = RobustNewsvendor(1.0, 0.2, radius=0.1)
    with pytest.raises(InvalidTypeError, match=r"partial_fit one batch of rows.batches\(\)"):
        model.partial_fit(rows, None)
    for X, y in rows.batches():
        model.partial_fit(X, y[:, 0])
    assert model.n_steps_ == 6_000
