"""A run of the primal-dual kernel: where it starts, that it closes the gap, and goes on elsewhere."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from surefoot.certificates import relative_gap
from surefoot.costs import Pieces
from surefoot.engines.affine_proof import why_no_dual
from surefoot.engines.primal_dual import SMALLEST_PARAMETER, PrimalDualRun, policy_at


def gap_of(run):
    form = run.form
    upper, lower = form.worst_value(*run.policy())[0], form.lower_bound(run.slopes)
    return relative_gap(upper, lower, form.gap_floor)


def draws_for(form, passes=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.choice(len(form.weights), size=passes * len(form.weights), p=form.weights)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_it_starts_next_to_the_constant_order(make_affine, order, intercept):
    form = make_affine(1, rows=20, order=order, intercept=intercept, weighted=True)
    run = PrimalDualRun.start(form)
    theta, t = run.policy()
    decision, slopes = form.constant_order()
    assert np.abs(form.contexts @ theta).max() < 0.05 * abs(decision)
    if intercept:
        np.testing.assert_array_equal(run.slopes, slopes)
        assert form.worst_value(theta, t)[0] == pytest.approx(
            form.worst_value(np.zeros(3), decision)[0], rel=0.05
        )
    else:
        assert t == 0.0
        assert not run.slopes.any()
    assert run.steps == 0
    # What is kept up to date starts out right.
    weighted = form.weights * run.slopes
    np.testing.assert_allclose(run.gradient, run.coordinates.rows.T @ weighted, atol=1e-14)
    assert run.mean_slope == pytest.approx(weighted.sum(), abs=1e-14)


@pytest.mark.parametrize(
    ("order", "intercept", "kappa", "frozen"),
    list(itertools.product((1, 2), (True, False), (math.inf, 0.7), ((), (0,)))),
)
def test_the_gap_closes(make_affine, order, intercept, kappa, frozen):
    form = make_affine(
        2, rows=20, columns=4, order=order, intercept=intercept, outcome_cost=kappa, frozen=frozen,
        weighted=True, radius=0.2,
    )  # fmt: skip
    assert why_no_dual(form) is None
    run = PrimalDualRun.start(form)
    for block in np.split(draws_for(form, 800), 8):
        run.run(block)
    assert run.steps == 16_000
    assert gap_of(run) < 0.01
    np.testing.assert_allclose(
        run.gradient, run.coordinates.rows.T @ (form.weights * run.slopes), atol=1e-10
    )


@pytest.mark.parametrize("order", [1, 2])
def test_it_goes_on_at_another_radius_from_where_it_stands(make_affine, order):
    form = make_affine(3, rows=30, columns=4, order=order, radius=0.1)
    run = PrimalDualRun.start(form)
    for block in np.split(draws_for(form, 400), 8):
        run.run(block)
    kept = run.theta.copy()
    further = form.at_radius(0.12)
    run.move_to(further)
    np.testing.assert_array_equal(run.theta, kept)
    assert run.form is further
    short = np.split(draws_for(form, 40, seed=1), 4)
    for block in short:
        run.run(block)
    afresh = PrimalDualRun.start(further)
    for block in short:
        afresh.run(block)
    assert gap_of(run) < 0.01
    assert gap_of(run) < 0.5 * gap_of(afresh)


@pytest.mark.parametrize("kappa", [math.inf, 2.0])
def test_the_intercept_gets_its_shift_back(make_affine, kappa):
    form = make_affine(4, rows=20, order=2, radius=0.4, outcome_cost=kappa, backorder=2.0)
    run = PrimalDualRun.start(form)
    run.run(draws_for(form))
    theta, t = policy_at(form, run.coordinates, run.theta)
    plain = run.coordinates.parameters(form, run.theta)
    np.testing.assert_array_equal(theta, plain[0])
    up, down = form.pieces.up, form.pieces.down
    shift = (down - up) * form.radius * form.dual_norm(theta) / (2.0 * math.sqrt(up * down))
    assert t - plain[1] == pytest.approx(shift, rel=1e-12)
    # The intercept with the shift is the better one.
    shifted, still = (form.worst_value(theta, at)[0] for at in (t, plain[1]))
    assert shifted < still


def test_order_one_has_no_shift(make_affine):
    form = make_affine(4, rows=20, order=1, radius=0.4)
    run = PrimalDualRun.start(form)
    run.run(draws_for(form))
    assert run.policy()[1] == run.coordinates.parameters(form, run.theta)[1]


def test_parameters_that_vanish_are_zero(make_affine):
    form = make_affine(5, rows=20)
    run = PrimalDualRun.start(form)
    run.theta[: run.coordinates.n_penalised] = 0.1 * SMALLEST_PARAMETER
    assert not run.policy()[0].any()


def test_step_sizes_follow_what_moved_how_far(make_affine):
    form = make_affine(6, rows=20)
    run = PrimalDualRun.start(form)
    begun = run.balance
    run.run(draws_for(form))
    assert run.balance > 0.0
    assert run.balance != begun
    assert 0.2**0.5 * begun * (1 - 1e-12) <= run.balance <= 5.0**0.5 * begun * (1 + 1e-12)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"box": "closed"}, "a free support"),
        ({"smoothing": 0.3}, "unsmoothed"),
    ],
)
def test_what_it_cannot_treat_has_a_reason(make_affine, options, reason):
    assert reason in why_no_dual(make_affine(1, **options))


def test_other_lines_than_two_that_meet_at_zero_have_a_reason(make_affine):
    for lines in (Pieces((-1.0, -0.2, 0.3), (-1.0, 0.0, 0.0)), Pieces((-1.0, 0.3), (1.0, 0.0))):
        assert "two lines that meet at zero" in why_no_dual(replace(make_affine(1), pieces=lines))
