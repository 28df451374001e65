"""SmoothedNewton: certified against a program written by hand, and the default of several products."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from surefoot import (
    DASGD,
    Box,
    CuttingPlanes,
    PrimalDual,
    Problem,
    RobustPolicy,
    SmoothedNewton,
    WassersteinBall,
    load,
)
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.engines.affine_stream import AffineStream
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear
from surefoot.problem import joint_form, with_adversaries, with_one_adversary
from surefoot.solvers import default_solver
from tests.oracles.joint import best_worst_case

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
Y = X @ RNG.normal(size=(3, 2)) + RNG.normal(size=(60, 2))
COST = Newsvendor([1.0, 2.0], [0.2, 0.5])


def asked(radius=0.3, cost=COST, policy=None, nominal=None, **ball):
    rows = Empirical(X, Y) if nominal is None else nominal
    return Problem(cost, policy or Linear(), rows, WassersteinBall(radius, **ball))


def random_problem(seed):
    """A hostile question, and the same for the oracle, in units in which its program keeps its digits."""
    rng = np.random.default_rng(seed)
    n, s, d = int(rng.integers(3, 40)), int(rng.integers(1, 5)), int(rng.integers(2, 4))
    contexts = rng.normal(size=(n, s)) + rng.normal(size=s)
    outcomes = contexts @ rng.normal(size=(s, d)) + rng.normal(size=(n, d)) * rng.uniform(0.3, 3.0, d)
    b, h = 10.0 ** rng.uniform(-1, 0.5, d), 10.0 ** rng.uniform(-1, 0.5, d)
    weights, intercept = rng.uniform(0.2, 1.0, n), bool(rng.random() < 0.7)
    radius = float(10.0 ** rng.uniform(-2, 0.5))
    kappa = float(rng.choice([np.inf, 10.0 ** rng.uniform(-1, 1)]))
    sizes, unit = 10.0 ** rng.uniform(-4, 4, s), 10.0 ** rng.uniform(-4, 4)
    problem = Problem(
        Newsvendor(b, h), Linear(intercept=intercept),
        Empirical(contexts * sizes, outcomes * unit, weights),
        WassersteinBall(radius, outcome_cost=kappa / unit**2),
    )  # fmt: skip
    form = joint_form(with_one_adversary(problem))
    best = best_worst_case(
        contexts, outcomes, weights / weights.sum(), backorder=b, holding=h, radius=radius, order=2,
        scale=form.scale / form.column_unit / sizes, kappa=kappa, intercept=intercept,
    )  # fmt: skip
    return problem, best * unit


@pytest.mark.parametrize("seed", range(24))
def test_both_bounds_hold_and_meet(seed):
    problem, best = random_problem(seed)
    solution = SmoothedNewton(gap_tol=2e-3).solve(problem)
    found = solution.certificate
    assert solution.converged
    assert found.kind == "exact"
    assert found.lower <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= found.upper <= best * (1 + 2.1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"frozen": (1,)},
        {"scale": False, "outcome_cost": 2.0},
        {"cost": TieredNewsvendor(((0, 1.0), (1, 2.0)), 0.3)},
        {"policy": Linear(decisions=Box(-1.0, 2.0))},
        {"radius": 50.0},
    ],
    ids=str,
)
def test_it_finds_what_cutting_planes_find(options):
    problem = asked(**options, adversary="joint")
    quick, cuts = SmoothedNewton(gap_tol=1e-3).solve(problem), CuttingPlanes().solve(problem)
    assert quick.converged
    assert cuts.certificate.lower <= quick.certificate.upper * (1 + 1e-9)
    assert quick.certificate.lower <= cuts.certificate.upper * (1 + 1e-9)
    assert quick.certificate.upper <= 1.001 * cuts.certificate.upper
    assert len(quick.multiplier) == 1


def test_auto_is_one_adversary_for_this_solver_and_one_for_each_for_others():
    auto, joint, each = asked(), asked(adversary="joint"), asked(adversary="each")
    assert auto.ball.adversary == "auto"
    assert SmoothedNewton().settled(auto) == with_one_adversary(auto) == replace(auto, ball=joint.ball)
    assert SmoothedNewton().settled(each) == each
    for solver in (PrimalDual(), DASGD()):
        assert solver.settled(auto) == with_adversaries(auto) == replace(auto, ball=each.ball)
        assert solver.settled(joint) == joint
    here, there = SmoothedNewton().solve(auto), SmoothedNewton().solve(joint)
    assert here.certificate == there.certificate
    apart = PrimalDual().solve(auto)
    assert here.certificate.upper < 0.99 * apart.certificate.lower


def test_a_path_of_radii_goes_on_from_the_last():
    radii = [1.0, 0.5, 0.25, 0.1, 0.0]
    path = SmoothedNewton().solve_path(asked(), radii)
    alone = [SmoothedNewton().solve(asked(radius)) for radius in radii]
    for one, other in zip(path, alone, strict=True):
        assert one.converged
        assert one.certificate.upper == pytest.approx(other.certificate.upper, rel=0.01)
    assert sum(one.n_steps for one in path) < 0.8 * sum(one.n_steps for one in alone)


def test_what_it_does_not_solve_it_refuses_with_a_reason():
    why = SmoothedNewton().why_not
    assert "order 2, got order 1" in why(asked(order=1))
    assert "free support" in why(asked(support=Box(-9, 9)))
    assert "adversary='joint'" in why(asked(adversary="each"))
    assert "several products" in why(asked(nominal=Empirical(X, Y[:, 0]), cost=Newsvendor(1.0, 0.2)))
    assert "Empirical nominal, got Gaussian" in why(
        asked(nominal=Gaussian(np.zeros(4), np.eye(4), n_products=2))
    )
    assert "Linear policy" in why(asked(policy=MLP((3,))))
    assert "set smoothing=0" in why(asked(cost=Newsvendor(1.0, 0.2, smoothing=0.1)))
    wide = Empirical(np.random.default_rng(0).normal(size=(5, 800)), Y[:5])
    assert "at most 1,500 parameters (columns times products), got 1,600" in why(asked(nominal=wide))
    assert default_solver(asked(nominal=wide)) == PrimalDual()
    with pytest.raises(UnsupportedProblemError, match="SmoothedNewton cannot solve this: it needs"):
        SmoothedNewton().solve(asked(order=1))
    with pytest.raises(InvalidInputError, match="gap_tol must be > 0"):
        SmoothedNewton(gap_tol=0.0)


@pytest.mark.parametrize("size", [100.0, 3_000.0])
def test_a_small_product_is_solved_beside_a_large_one(size):
    each, together = (
        SmoothedNewton(gap_tol=tol).solve(asked(0.1, nominal=Empirical(X, Y * [size, 1.0])))
        for tol in (1e-7, 0.01)
    )

    def small(solution):
        decisions = X @ solution.parameters.theta + solution.parameters.intercept
        r = decisions[:, 1] - Y[:, 1]
        return np.maximum(0.5 * r, -2.0 * r).mean()

    assert together.converged
    assert small(together) == pytest.approx(small(each), rel=0.02)


def test_a_product_that_would_be_lost_has_an_adversary_of_its_own():
    lost = asked(nominal=Empirical(X, Y * [1e6, 1.0]))
    assert "each costs at least 0.0001 of all, got one with" in SmoothedNewton().why_not(lost)
    assert default_solver(lost) == PrimalDual()
    assert SmoothedNewton().solve(asked(nominal=Empirical(X, Y * [1.0, 0.0]))).converged


def test_it_says_when_it_runs_out_of_steps():
    with pytest.warns(ConvergenceWarning, match="^SmoothedNewton ran out of steps after 2 "):
        assert not SmoothedNewton(max_steps=2).solve(asked()).converged


def test_an_estimator_takes_it_by_default_and_says_what_it_came_to(tmp_path):
    ball = WassersteinBall(0.3)
    model = RobustPolicy(COST, Linear(), ball=ball, nominal=None).fit(X, Y)
    assert model.status_.startswith("SmoothedNewton converged")
    assert model.ball.adversary == "auto"
    assert model.problem_.ball.adversary == "joint"
    worst = model.worst_case(X, Y)
    assert worst.value == pytest.approx(model.certificate_.upper, rel=1e-9)
    assert worst.outcomes.shape == (len(worst.rows), 2)
    model.save(tmp_path / "several.surefoot")
    assert load(tmp_path / "several.surefoot").worst_case(X, Y).value == worst.value
    apart = RobustPolicy(COST, Linear(), ball=ball, nominal=None, solver=PrimalDual()).fit(X, Y)
    assert apart.problem_.ball.adversary == "each"
    assert apart.certificate_.lower > model.certificate_.upper


def test_the_radius_may_be_chosen_and_a_stream_goes_on():
    ball = WassersteinBall("auto")
    model = RobustPolicy(COST, Linear(), ball=ball, nominal=None).fit(X, Y)
    assert model.converged_
    assert len(model.radius_path_.radii) > 3
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.partial_fit(X[:20], Y[:20])
    # A stream of several products is the compiled one unless one adversary was asked for.
    assert isinstance(model.stream(), AffineStream)
    found = model.worst_case(X[:20], Y[:20])
    assert model.certificate_.upper == pytest.approx(found.value, rel=1e-9)
