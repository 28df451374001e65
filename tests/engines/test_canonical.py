"""Canonical coordinates change nothing but the coordinates."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from surefoot.engines.canonical import canonical


def one_hot(rows, groups=3):
    return np.eye(groups)[np.arange(rows) % groups]


def with_contexts(form, contexts, frozen):
    columns = contexts.shape[1]
    movable = np.ones(columns, dtype=bool)
    movable[list(frozen)] = False
    return replace(
        form, contexts=contexts, movable=movable, lower=np.full(columns, -np.inf),
        upper=np.full(columns, np.inf), scale=np.ones(columns),
    )  # fmt: skip


def shapes(make_affine, name, intercept):
    """A form of the named shape."""
    rows, columns = {"tall": (20, 4), "wide": (6, 15), "square": (7, 7)}.get(name, (12, 6))
    base = make_affine(1, rows=rows, columns=columns, intercept=intercept, weighted=True)
    X = base.contexts
    if name in ("tall", "wide", "square"):
        return with_contexts(base, X, (0,) if name == "square" else ())
    if name == "one-hot":  # a frozen block that adds up to one
        return with_contexts(base, np.hstack([X, one_hot(rows)]), (6, 7, 8))
    if name == "two flags":  # a frozen block that does not
        return with_contexts(base, np.hstack([X, one_hot(rows)[:, :2]]), (6, 7))
    if name == "deficient":
        return with_contexts(base, X[:, :2] @ np.array([[1.0, 2, 3, 0], [0, 1, -1, 2]]), ())
    if name == "duplicated":
        return with_contexts(base, X[:, [0, 1, 0, 2, 1, 3]], (4,))
    assert name == "doubled frozen"
    return with_contexts(base, X[:, [0, 1, 2, 3, 3]], (3, 4))


SHAPES = ["tall", "wide", "square", "one-hot", "two flags", "deficient", "duplicated", "doubled frozen"]
CASES = list(itertools.product(SHAPES, (True, False)))


@pytest.mark.parametrize(("name", "intercept"), CASES)
def test_decisions_and_prices_survive_the_change(make_affine, name, intercept):
    form = shapes(make_affine, name, intercept)
    at = canonical(form)
    rng = np.random.default_rng(0)
    for _ in range(3):
        coordinates = rng.normal(size=at.rows.shape[1])
        theta, t = at.parameters(form, coordinates)
        np.testing.assert_allclose(form.contexts @ theta + t, at.rows @ coordinates, atol=1e-9)
        norm = np.linalg.norm(theta[form.movable])
        assert norm == pytest.approx(np.linalg.norm(coordinates[: at.n_penalised]), rel=1e-9)
        assert intercept or t == 0.0
    assert at.rows.flags.c_contiguous
    assert at.metric.shape == (at.rows.shape[1],)
    assert (at.metric > 0).all()


@pytest.mark.parametrize(("name", "intercept"), CASES)
def test_nothing_is_lost(make_affine, name, intercept):
    # Any policy has a canonical one with the same decisions at no greater price: project and rotate.
    form = shapes(make_affine, name, intercept)
    at = canonical(form)
    rng = np.random.default_rng(1)
    theta, t = rng.normal(size=len(form.movable)), rng.normal() if intercept else 0.0
    decisions = form.contexts @ theta + t
    found, *_ = np.linalg.lstsq(at.rows, decisions, rcond=None)
    np.testing.assert_allclose(at.rows @ found, decisions, atol=1e-8)
    penalised = np.linalg.norm(found[: at.n_penalised])
    assert penalised <= np.linalg.norm(theta[form.movable]) * (1 + 1e-9)
    again = at.parameters(form, found)
    best, given = (form.worst_value(*p)[0] for p in (again, (theta, t)))
    assert best <= given * (1 + 1e-9)


@pytest.mark.parametrize(("name", "intercept"), CASES)
def test_projection_is_orthogonal_and_axes_are_principal(make_affine, name, intercept):
    form = shapes(make_affine, name, intercept)
    at = canonical(form)
    second = at.rows.T @ (form.weights[:, None] * at.rows)
    k = at.n_penalised
    scale = np.abs(second).max()
    np.testing.assert_allclose(second[:k, k:], 0.0, atol=1e-10 * scale)
    np.testing.assert_allclose(second[k:, k:], np.eye(len(second) - k), atol=1e-10)
    variances = np.diag(second)[:k]
    if intercept:  # without one the mean of the rows may have an axis of its own
        np.testing.assert_allclose(second[:k, :k], np.diag(variances), atol=1e-10 * scale)
    # Steps go with one over the root of the second moment, damped where there is next to none.
    damping = at.metric[:k] ** -2 - variances
    np.testing.assert_allclose(damping, damping.mean(), atol=1e-9 * scale)
    assert 0 < damping.mean() < 1.001e-4 * variances.max()
    unpenalised = form.contexts[:, ~form.movable]
    if intercept:
        unpenalised = np.column_stack([np.ones(len(unpenalised)), unpenalised])
    inner = unpenalised.T @ (form.weights[:, None] * at.rows[:, :k])
    np.testing.assert_allclose(inner, 0.0, atol=1e-9)
    # No more coordinates than there is rank.
    movable = form.contexts[:, form.movable]
    together = np.linalg.matrix_rank(np.hstack([unpenalised, movable]), tol=1e-8)
    assert at.rows.shape[1] == together


@pytest.mark.parametrize(
    ("name", "intercept", "spans"),
    [
        ("tall", True, True), ("tall", False, False), ("wide", True, True), ("wide", False, False),
        ("one-hot", True, True), ("one-hot", False, True), ("two flags", False, False),
        ("two flags", True, True), ("square", False, False),
    ],
)  # fmt: skip
def test_whether_a_constant_is_free_is_seen(make_affine, name, intercept, spans):
    form = shapes(make_affine, name, intercept)
    at = canonical(form)
    assert at.spans_constant is spans
    if spans:
        constant = at.rows[:, at.n_penalised :] @ at.constant
        np.testing.assert_allclose(constant, 1.0, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_all_columns_frozen_leaves_no_price(make_affine, intercept):
    base = make_affine(2, rows=9, intercept=intercept)
    form = with_contexts(base, base.contexts, (0, 1, 2))
    at = canonical(form)
    assert at.n_penalised == 0
    coordinates = np.arange(1.0, at.rows.shape[1] + 1)
    theta, t = at.parameters(form, coordinates)
    np.testing.assert_allclose(form.contexts @ theta + t, at.rows @ coordinates, atol=1e-10)
