"""The compiled bounds are the certificate's, to 1e-9 and on problems of every kind that they take."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Problem, WassersteinBall
from surefoot.ambiguity.balance import with_mean
from surefoot.certificates import relative_gap
from surefoot.costs import Newsvendor
from surefoot.engines import bound_kernels
from surefoot.engines.form_kernels import plain_form
from surefoot.engines.many_kernel import REQUEST
from surefoot.engines.problem_batch import join_alone, plain_problems
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms

KINDS = list(itertools.product((1, 2), (True, False), (math.inf, 0.7), (True, False)))


def describe(seed, order=2, intercept=True, kappa=math.inf, scale=True, rows=30, columns=4, radius=0.2):
    """A problem with repeated rows, ties, unequal weights and columns of very different units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-2, 3, columns) + rng.normal(
        size=columns
    )
    y = (
        np.round(5.0 * (X @ rng.normal(size=columns) / np.abs(X).max() + rng.normal(size=rows)), 1)
        + 3.0
    )
    X[: rows // 4], y[: rows // 4] = X[-(rows // 4) :], y[-(rows // 4) :]
    masses = rng.integers(0, 4, rows) + (rng.random(rows) < 0.9)
    masses[0] = 1
    backorder, holding = rng.uniform(0.1, 20.0, 2)
    return Problem(
        Newsvendor(backorder, holding), Linear(intercept=intercept), Empirical(X, y, masses),
        WassersteinBall(radius, order=order, outcome_cost=kappa, scale=scale),
    )  # fmt: skip


def compiled(problem):
    """The form as the kernels have it, and its units."""
    free = replace(problem, ball=replace(problem.ball, outcome_cost=math.inf))
    plain = plain_problems([free], 0.01, 1000)
    requests, contexts, outcomes, masses, scale = plain.pack(slice(0, 1), join_alone)
    assert requests.dtype == REQUEST
    # The loop leaves out balls of order 1 in which outcomes move; the formulas hold for them, too.
    requests["outcome_cost"] = problem.ball.outcome_cost
    contexts = contexts.reshape(problem.nominal.contexts.shape)
    plain, form, common, unit = plain_form(requests[0], contexts, outcomes, masses, scale)
    return plain, form, common, unit, scale


@pytest.mark.parametrize(("order", "intercept", "kappa", "scale"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_form_is_that_of_the_problem(seed, order, intercept, kappa, scale):
    problem = describe(seed, order, intercept, kappa, scale)
    (expected,) = affine_forms(problem)
    plain, form, common, unit, units = compiled(problem)
    assert plain
    for name in ("contexts", "outcomes", "weights"):
        np.testing.assert_allclose(getattr(form, name), getattr(expected, name), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(units, expected.scale, rtol=1e-12)
    np.testing.assert_allclose(form.sizes, expected.column_sizes, rtol=1e-12)
    decision, slopes = expected.constant_order()
    assert form.decision == decision
    np.testing.assert_allclose(form.slopes, slopes, atol=1e-12)
    found = (common, unit, form.radius, form.inverse_kappa, form.up, form.down, form.floor)
    told = (
        expected.column_unit, expected.outcome_unit, expected.radius, expected.inverse_kappa,
        expected.pieces.up, expected.pieces.down, expected.gap_floor,
    )  # fmt: skip
    assert found == pytest.approx(told, rel=1e-12)


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "intercept", "kappa", "scale"), KINDS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), radius=st.floats(0.02, 3.0), size=st.floats(0.0, 30.0))
def test_bounds_are_those_of_the_certificate(order, intercept, kappa, scale, seed, radius, size):
    problem = describe(seed, order, intercept, kappa, scale, radius=radius)
    (expected,) = affine_forms(problem)
    plain, form, *_ = compiled(problem)
    if not plain:  # a radius so small that slopes have to balance: left to the certificate itself
        return
    rng = np.random.default_rng(seed)
    theta, constant = size * rng.normal(size=4), (rng.normal() if intercept else 0.0)
    found, told = (
        bound_kernels.worst_value(form, theta, constant),
        expected.worst_value(theta, constant),
    )
    assert found == pytest.approx(told, rel=1e-9)
    slopes = rng.uniform(-2.0 * expected.pieces.down, 2.0 * expected.pieces.up, len(form.outcomes))
    for given_slopes in (
        slopes,
        form.slopes,
        expected.pieces.slope_at(expected.residuals(theta, constant)),
    ):
        bound = bound_kernels.lower_bound(form, np.asarray(given_slopes))
        assert bound == pytest.approx(expected.lower_bound(given_slopes), rel=1e-9, abs=1e-12)
        assert bound <= found[0] * (1 + 1e-12)


@pytest.mark.parametrize(
    "pair",
    [
        (1.0, 1.0),
        (2.0, 1.0),
        (1.0, 0.0),
        (0.0, 0.0),
        (1.0, -1.0),
        (1.0, 2.0),
        (1.0, 1.0 + 1e-8),
        (np.inf, 1.0),
        (1.0, -np.inf),
    ],
)
@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_the_gap_is_that_of_the_certificate(pair, floor):
    assert bound_kernels.relative_gap(*pair, floor) == relative_gap(*pair, floor)


def test_what_needs_other_formulas_is_not_plain():
    constant = describe(0)
    X = constant.nominal.contexts.copy()
    X[:, 1] = 3.0
    held = constant.around(Empirical(X, constant.nominal.outcomes))
    assert not compiled(held)[0]
    assert not compiled(describe(0, radius=0.0))[0]
    assert not compiled(describe(0, radius=1e-4))[0]


def test_slopes_of_lopsided_costs_balance_as_those_of_the_certificate_do():
    for number in range(1000):
        rng = np.random.default_rng(number)
        n, down = int(rng.integers(2, 60)), 10 ** rng.uniform(-4, 4)
        slopes = np.clip(rng.normal(size=n) * 10 ** rng.uniform(-3, 1), -down, 1.0)
        if number % 2:
            slopes = rng.choice([-down, 1.0, rng.uniform(-down, 1.0)], size=n)
        weights = rng.dirichlet(np.ones(n))
        expected = with_mean(slopes, weights, (-down, 1.0), 0.0)
        bound_kernels._make_zero_mean(slopes, weights, down, 1.0)
        assert abs(weights @ slopes) <= 1e-14 * (1.0 + down), number
        np.testing.assert_allclose(slopes, expected, rtol=0, atol=1e-12 * (1.0 + down))
