"""The coordinates of the kernels change no decision, no norm and no bound."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot.engines.arrangement import Arrangement
from tests.oracles.affine_twin import arranged


def arrangement_of(form, *, rotate=False):
    return Arrangement.of(form, form.movable, rotate=rotate)


def assert_nothing_but_coordinates_changed(form, at):
    """A policy of the coordinates decides, and is priced, as its original."""
    there = arranged(form, at)
    rng = np.random.default_rng(0)
    for _ in range(3):
        theta = rng.normal(size=there.contexts.shape[1])
        t = rng.normal() if form.intercept else 0.0
        original = at.original(theta, t)
        assert original[0].shape == form.scale.shape
        np.testing.assert_allclose(
            there.residuals(theta, t), form.residuals(*original), rtol=1e-12, atol=1e-12
        )
        assert there.dual_norm(theta) == pytest.approx(form.dual_norm(original[0]), rel=1e-12)
        assert form.intercept or original[1] == 0.0
    assert there.contexts.flags.c_contiguous


@pytest.mark.parametrize("intercept", [True, False])
def test_an_arrangement_changes_no_decision_and_no_price(make_affine, intercept):
    form = make_affine(6, columns=5, frozen=(0, 3), intercept=intercept, box="closed")
    at = arrangement_of(form)
    there = arranged(form, at)
    assert list(there.movable) == [True] * 3 + [False] * 2
    assert at.order.tolist() == [1, 2, 4, 0, 3]
    assert_nothing_but_coordinates_changed(form, at)
    theta = np.random.default_rng(0).normal(size=5)
    back = at.original(theta[at.order], float(at.mean @ theta))  # there and back again
    np.testing.assert_array_equal(back[0], theta)
    assert back[1] == pytest.approx(0.0, abs=1e-12)
    inside = (there.contexts >= there.lower - 1e-12) & (there.contexts <= there.upper + 1e-12)
    assert inside.all()
    if intercept:
        np.testing.assert_allclose(there.weights @ there.contexts, 0.0, atol=1e-12)
    else:
        assert not at.mean.any()


def test_bounds_are_those_of_the_columns_and_stay_infinite(make_affine):
    form = make_affine(6, columns=5, frozen=(0, 3), box="open")
    at = arrangement_of(form)
    np.testing.assert_array_equal(at.bounds(form.upper), (form.upper - at.mean)[at.order])
    assert np.isinf(at.bounds(form.upper)).sum() == np.isinf(form.upper).sum() > 0


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("frozen", [(), (1, 4), (0,)])
def test_fewer_rows_than_columns_need_as_many_coordinates_as_rows(
    make_affine, frozen, intercept, weighted
):
    form = make_affine(
        2, rows=6, columns=11, frozen=frozen, intercept=intercept, weighted=weighted, outcome_cost=2.0
    )
    at = arrangement_of(form, rotate=True)
    assert at.n_movable == 6
    assert at.rotation.shape == (11 - len(frozen), 6)
    np.testing.assert_allclose(at.rotation.T @ at.rotation, np.eye(6), atol=1e-12)
    assert at.rows(form.contexts).shape == (6, 6 + len(frozen))
    assert_nothing_but_coordinates_changed(form, at)
    # Lengths of rows, and angles between them, are as they were.
    plain = arrangement_of(form).rows(form.contexts)
    turned = at.rows(form.contexts)
    np.testing.assert_allclose(turned @ turned.T, plain @ plain.T, atol=1e-10)


def test_rows_that_repeat_each_other_can_be_rotated_too(make_affine):
    form = make_affine(2, rows=6, columns=11)
    form = replace(form, contexts=form.contexts[[0, 1, 2, 0, 1, 2]])
    at = arrangement_of(form, rotate=True)
    assert_nothing_but_coordinates_changed(form, at)
    assert np.isfinite(at.rotation).all()


def test_nothing_is_rotated_that_need_not_be(make_affine):
    assert arrangement_of(make_affine(1, rows=6, columns=11), rotate=False).rotation is None
    assert arrangement_of(make_affine(1, rows=11, columns=11), rotate=True).rotation is None
    few = make_affine(1, rows=6, columns=11, frozen=range(5))  # six that move
    assert arrangement_of(few, rotate=True).rotation is None


@pytest.mark.parametrize("column", [-2.0, 3.0])
def test_rotated_coordinates_have_no_bounds_whatever_a_frozen_column_has(make_affine, column):
    form = make_affine(2, rows=6, columns=11, frozen=(0,))
    lower, upper = form.lower.copy(), form.upper.copy()
    lower[0], upper[0] = column, column + 1.0
    form = replace(form, lower=lower, upper=upper)
    assert not form.boxed  # what cannot move is not held by a bound
    at = arrangement_of(form, rotate=True)
    assert at.bounds(form.lower)[:6].tolist() == [-np.inf] * 6
    assert at.bounds(form.upper)[:6].tolist() == [np.inf] * 6
