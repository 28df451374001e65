"""The lower bound of contaminated rows holds for any share, also where rows lack the slopes for it."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import DASGD, Contamination, Exact, Problem, WassersteinBall
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2)) + 2.0
ROWS = Empirical(X, X @ [1.0, 2.0] + RNG.gumbel(size=40) + 20.0)


@pytest.mark.sweep
@pytest.mark.parametrize("share", [0.02, 0.1, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "cost", [Newsvendor(1.0, 0.05), Newsvendor(0.05, 1.0), TieredNewsvendor(((0, 1.0), (3, 2.0)), 0.2)]
)
def test_no_constant_order_costs_less_than_the_bound(cost, intercept, share):
    problem = Problem(cost, Linear(intercept=intercept), ROWS, Contamination(share))
    (form,) = affine_forms(problem)
    slopes = RNG.uniform(-form.pieces.down, form.pieces.up, (5, 40))
    bounds = [form.lower_bound(u) for u in (*slopes, form.constant_order()[1])]
    orders = np.linspace(*form.outcome_bounds, 50) if intercept else np.zeros(1)
    least = min(form.worst_value(np.zeros(2), order)[0] for order in orders)
    assert max(bounds) <= least * (1 + 1e-9)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("share", [0.0, 1e-9, 1e-6, 1e-4])
def test_next_to_no_share_is_the_plain_problem(share, intercept):
    # With nothing to cancel what is left over, slopes were once shrunk to none: a gap of 9,800 %.
    plain = Problem(Newsvendor(1.0, 0.2), Linear(intercept=intercept), ROWS, WassersteinBall(0.0))
    truth = Exact().solve(plain).certificate
    found = DASGD().solve(replace(plain, ball=Contamination(share)))
    assert found.converged
    assert found.certificate.lower <= truth.upper * (1.0 + 0.02 * (share > 0.0))
    assert found.certificate.upper >= truth.lower
    assert found.certificate.upper == pytest.approx(truth.upper, rel=0.01)
