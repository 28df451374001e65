"""Newton's method by passes: prices and their derivatives, widths, and the way down."""

import itertools

import numpy as np
import pytest

from surefoot import Problem, WassersteinBall
from surefoot.certificates.passes import RowPasses
from surefoot.costs import Newsvendor
from surefoot.engines.newton_passes import NewtonPasses, norm_term, rounding_width
from surefoot.nominals import row_batches
from surefoot.policies import Linear
from tests.held_rows import HeldRows, demand

CASES = list(
    itertools.product((1, 2), (np.inf, 2.0), (0.0, 0.02, 0.3, 30.0), ((), (0, 2)), (1.0, 20.0))
)


def passes_of(order, kappa, radius, frozen, backorder=3.0):
    ball = WassersteinBall(radius, order=order, outcome_cost=kappa, frozen=frozen)
    return RowPasses.of(Problem(Newsvendor(backorder, 0.2), Linear(), HeldRows(*demand()), ball))


@pytest.mark.parametrize(("order", "kappa"), [(1, np.inf), (1, 2.0), (2, np.inf), (2, 2.0)])
@pytest.mark.parametrize("size", [0.0, 0.3, 0.52, 5.0])
def test_the_price_has_its_derivatives_and_is_close_to_that_of_the_ball(order, kappa, size):
    form = passes_of(order, kappa, 0.3, (1,)).forms[0]
    theta = size * np.array([0.6, 0.5, -0.8, 0.0]) * (form.inverse_kappa if kappa == 2.0 else 1.0) / 0.5
    rounding = 0.05
    term = norm_term(form, theta, rounding)
    exact = form.radius * form.slope_constant * form.dual_norm(theta)
    assert abs(term.value - exact) <= form.radius * form.slope_constant * rounding
    step, count = 1e-6, len(theta)
    for j in range(count):
        ahead, behind = (
            norm_term(form, theta + s * step * np.eye(count)[j], rounding) for s in (1, -1)
        )
        assert term.gradient[j] == pytest.approx((ahead.value - behind.value) / (2 * step), abs=1e-6)
        slope = (ahead.gradient - behind.gradient) / (2 * step)
        assert term.curvature[j] == pytest.approx(slope, abs=1e-4)
    assert term.gradient[1] == 0.0  # frozen columns have no price


def test_the_width_hides_no_more_than_it_may():
    form = passes_of(2, np.inf, 0.1, ()).forms[0]
    residuals = form.residuals(np.zeros(4), form.constant_order()[0])
    for most in (1e-1, 1e-3, 1e-5):
        width = rounding_width(form, residuals, most)
        near = np.abs(residuals) < width
        height = 0.5 * (form.pieces.up + form.pieces.down)
        hidden = height * np.abs(residuals) * (1.0 - np.abs(residuals) / width) * near
        assert hidden.mean() <= most
        assert width > 0.0
    assert rounding_width(form, np.zeros(len(residuals)), 0.0) > 0.0


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "kappa", "radius", "frozen", "backorder"), CASES)
def test_a_few_passes_certify_a_quarter_of_the_gap_asked_for(
    monkeypatch, order, kappa, radius, frozen, backorder
):
    monkeypatch.setattr(row_batches, "KEPT_NUMBERS", 5 * 1_000)
    passes = passes_of(order, kappa, radius, frozen, backorder)
    run = NewtonPasses.start(passes, [(np.zeros(4), 0.0)], 0.01)
    while run.taken < 8 and not run.gap <= 0.0025:
        run.take_pass()
    assert run.gap <= 0.0025


def test_policies_beside_are_bounded_in_the_same_pass():
    passes = passes_of(2, np.inf, 0.1, ())
    run = NewtonPasses.start(passes, [(np.zeros(4), 0.0)], 0.01)
    before = passes.nominal.passes
    good = passes.policy(0, run.descents[0].point)
    (same,) = run.take_pass([good])
    assert passes.nominal.passes == before + 1
    assert same == pytest.approx(run.descents[0].upper, rel=1e-12)
    (poor,) = run.take_pass([(np.zeros(4), 0.0)])
    assert poor > run.descents[0].upper
    assert run.policies()[0][1] == pytest.approx(good[1], abs=0.1)


def test_a_step_that_leads_up_is_cut():
    passes = passes_of(2, np.inf, 0.1, ())
    run = NewtonPasses.start(passes, [(np.zeros(4), 0.0)], 0.01)
    descent = run.descents[0]
    run.take_pass()
    whole = descent._way.copy()
    descent.point = descent.point._replace(intercept=descent.point.intercept + 50.0)
    kept = descent.upper
    run.take_pass()
    assert descent.upper == kept
    assert 0.0 < descent._share < 1.0
    assert (descent._way == whole).all()
