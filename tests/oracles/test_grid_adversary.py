"""The general engine's adversary against brute force, on contexts with one column."""

import numpy as np
import pytest

from surefoot import Box, Problem, WassersteinBall
from surefoot.costs import Newsvendor, Pricing, Quadratic, TieredNewsvendor
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.autodiff_forms import general_parameters
from surefoot.nominals import Empirical
from surefoot.policies import ELU, MLP, Linear, MaxAffine, Sigmoid
from surefoot.problem import general_form, why_not_general
from tests.oracles import grid_adversary as grid

# A cost, the same written out again, and the power with which it grows in the decision.
COSTS = {
    "newsvendor": (Newsvendor(1.0, 0.2), grid.newsvendor, 1),
    "tiered": (TieredNewsvendor(grid.SHORT, grid.LEFT), grid.tiered, 1),
    "quadratic": (Quadratic(), grid.quadratic, 2),
    "pricing": (Pricing(2.0, 0.5), grid.pricing, 2),
}
POLICIES = {
    "linear": Linear(),
    "max_affine": MaxAffine(3),
    "sigmoid": Sigmoid(0.0, grid.HIGHEST),
    "elu": ELU(),
    "network": MLP((6,)),
}
ROWS = 14


def shares_found(policy, cost, order, boxed, radius, seed):
    """What the ball adds to the expected cost by the engine's value and atoms, over the grid's."""
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=ROWS), rng.uniform(0.5, 1.5, size=ROWS)
    y = 4.0 + x + rng.normal(size=ROWS)
    box = (float(x.min()) - 0.5, float(x.max()) + 1.0) if boxed else (-np.inf, np.inf)
    ours, again, _ = COSTS[cost]
    ball = WassersteinBall(radius, order=order, support=Box(*box) if boxed else None)
    problem = Problem(ours, POLICIES[policy], Empirical(x[:, None], y, weights), ball)
    form = general_form(problem)
    trained = {
        name: leaf + 0.8 * rng.normal(size=leaf.shape)
        for name, leaf in POLICIES[policy].initial(rng, 1, 1).items()
    }
    found = Autodiff.adversary(problem, general_parameters(form, trained, np.zeros(0)))
    decide = grid.policy(policy, trained, **form.units.tree())
    expected = form.weights @ again(decide(x), y)
    worst = grid.worst_case(
        decide, again, x, y, form.weights, radius, order, box, unit=float(form.scale[0])
    )
    assert found.transport_cost[0] <= radius**order * (1 + 1e-9)
    size = max(worst - expected, 1e-3)  # where the ball adds next to nothing, next to nothing is missed
    return 1.0 + (np.array([found.value, found.expected_cost]) - worst) / size


# Each pair compiles eight programs: a few run always, all of them in ``make attack``.
ALWAYS = {("max_affine", "quadratic")}
PAIRS = [
    pytest.param(policy, cost, marks=() if (policy, cost) in ALWAYS else pytest.mark.nightly)
    for policy in POLICIES
    for cost in COSTS
]


@pytest.mark.parametrize(("policy", "cost"), PAIRS)
def test_the_adversary_gains_what_a_grid_gains(policy, cost):
    for order in (1, 2):
        for boxed in (False, True):
            bounded = policy == "sigmoid" or COSTS[cost][2] <= order
            if not bounded and not boxed:
                continue  # refused, as the worst case has no limit
            for seed, radius in enumerate((0.3, 0.05, 1.0)):
                value, atoms = shares_found(policy, cost, order, boxed, radius, seed)
                where = f"order {order}, {'box' if boxed else 'free'}, radius {radius}"
                # The grid is coarse: what lies between its points may gain a little more.
                assert 0.99 <= value <= 1.01, where
                assert 0.99 <= atoms <= 1.01, where


def test_what_has_no_limit_is_refused():
    nominal = Empirical(np.zeros((2, 1)), np.zeros(2))
    problem = Problem(Quadratic(), Linear(), nominal, WassersteinBall(0.1, order=1))
    assert "unbounded" in why_not_general(problem)
