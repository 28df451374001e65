"""One adversary for several products: exact against a grid, below one for each, attained by its atoms."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import Box, CuttingPlanes, Problem, WassersteinBall
from surefoot.ambiguity import JointForm, JointPlan, JointSlopes
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms, joint_form, why_not_affine, with_adversaries
from tests.oracles.joint import best_worst_case, grid_worst_case

BACKORDER, HOLDING = [1.0, 3.0], [0.4, 0.2]
BALLS = {
    "order 1": {"order": 1},
    "order 2": {"order": 2},
    "order 1, outcomes move": {"order": 1, "outcome_cost": 0.7},
    "order 2, outcomes move": {"order": 2, "outcome_cost": 0.7},
    "order 1, box": {"order": 1, "support": Box(-2.0, 3.0)},
    "order 2, box": {"order": 2, "support": Box(-2.0, 3.0)},
    "order 1, open box": {"order": 1, "support": Box(-2.0, np.inf)},
    "order 1, box, outcomes move": {
        "order": 1, "support": Box(-2.0, 3.0, outcome=(-40.0, 60.0)), "outcome_cost": 0.7
    },
    "order 2, box, outcomes move": {
        "order": 2, "support": Box(-2.0, 3.0, outcome=(-40.0, 60.0)), "outcome_cost": 0.7
    },
    "frozen": {"order": 2, "frozen": (0,)},
    "own units": {"order": 2, "scale": False},
}  # fmt: skip
STILL = {name: ball for name, ball in BALLS.items() if "outcome_cost" not in ball}


def asked(seed=0, *, rows=9, columns=2, products=2, radius=0.4, cost=None, intercept=True, **ball):
    """Products of different sizes over columns of different sizes, with weights."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 2.5, (rows, columns))
    Y = X @ rng.normal(size=(columns, products)) + rng.normal(size=(rows, products))
    Y *= 10.0 ** np.arange(products)
    cost = Newsvendor(BACKORDER[:products], HOLDING[:products]) if cost is None else cost
    nominal = Empirical(X, Y, rng.uniform(0.5, 1.5, rows))
    ball = WassersteinBall(radius, adversary="joint", **ball)
    return Problem(cost, Linear(intercept=intercept), nominal, ball)


def some_policy(form, seed=0):
    """Parameters that follow all columns, in the units of the form."""
    rng = np.random.default_rng(seed)
    count = len(form.products)
    return rng.normal(size=(len(form.scale), count)), rng.normal(size=count)


@pytest.mark.sweep
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("held", [False, True], ids=["free", "box"])
@pytest.mark.parametrize("seed", range(3))
def test_the_worst_case_is_that_of_a_grid(order, held, seed):
    support = Box(-2.0, 3.0) if held else None
    problem = asked(seed, columns=1, order=order, scale=False, support=support)
    form = joint_form(problem, merge=False)
    policy = some_policy(form, seed)
    theta, t = form.in_user_units(*policy)
    rows = problem.nominal
    places = np.union1d(rows.contexts[:, 0], np.linspace(-2.0, 3.0, 801))
    if not held:  # order 1 goes far with little mass
        places = np.union1d(places, [-1e5, 1e5] if order == 1 else np.linspace(-9.0, 10.0, 4_001))
    found = grid_worst_case(
        rows.contexts[:, 0], rows.outcomes, rows.weights,
        decide=lambda x: theta[0] * x + t,
        cost=lambda z, y: float(np.maximum(HOLDING * (z - y), BACKORDER * (y - z)).sum()),
        radius=0.4, order=order, places=places,
    )  # fmt: skip
    assert form.worst_value(*policy)[0] * form.value_unit == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("ball", BALLS.values(), ids=BALLS)
@pytest.mark.parametrize("seed", range(3))
class TestLaws:
    def test_atoms_attain_the_worst_case_within_the_ball(self, ball, seed):
        form = joint_form(asked(seed, **ball), merge=False)
        policy = some_policy(form, seed)
        found = form.adversary(*policy)
        assert found.value == form.worst_value(*policy)[0]
        assert found.expected_cost == pytest.approx(found.value, rel=2e-4)
        assert found.transport_cost[0] <= form.budget * (1 + 1e-9)
        masses = np.bincount(found.rows, found.weights, minlength=len(form.weights))
        assert masses == pytest.approx(form.weights, rel=1e-9)
        moved = found.contexts - form.contexts[found.rows]
        aside = (found.outcomes - form.outcomes[found.rows]) * np.sqrt(
            np.where(form.inverse_kappas > 0, 1.0 / np.maximum(form.inverse_kappas, 1e-300), 0.0)
            ** (3 - form.order)
        )
        length = np.linalg.norm(moved, axis=1), np.linalg.norm(aside, axis=1)
        assert sum(part**form.order for part in length) == pytest.approx(found.distances, abs=1e-9)
        assert (moved[:, ~form.first.movable] == 0.0).all()
        assert (found.contexts >= form.first.lower - 1e-12).all()
        assert (found.contexts <= form.first.upper + 1e-12).all()

    def test_no_more_than_an_adversary_for_each_and_no_less_than_none(self, ball, seed):
        form = joint_form(asked(seed, **ball), merge=False)
        theta, t = some_policy(form, seed)
        each = [one.worst_value(theta[:, j], t[j])[0] for j, one in enumerate(form.products)]
        joint = form.worst_value(theta, t)[0]
        nominal = form.weights @ form.costs(form.contexts, form.outcomes, (theta, t))
        assert nominal <= joint <= form.shares @ each * (1 + 1e-12)
        assert form.at_radius(0.0).worst_value(theta, t)[0] == pytest.approx(nominal, rel=1e-12)

    def test_it_grows_with_the_radius(self, ball, seed):
        form = joint_form(asked(seed, **ball), merge=False)
        policy = some_policy(form, seed)
        values = [form.at_radius(r).worst_value(*policy)[0] for r in (0.0, 0.01, 0.1, 0.4, 2.0)]
        assert (np.diff(values) >= -1e-12 * values[-1]).all()

    def test_one_product_is_the_single_form(self, ball, seed):
        (form, _) = affine_forms(with_adversaries(asked(seed, **ball)), merge=False)
        theta, t = np.random.default_rng(seed).normal(size=2), 0.3
        alone = JointForm((form,)).worst_value(theta[:, None], np.array([t]))
        assert alone[0] == pytest.approx(form.worst_value(theta, t)[0], rel=1e-9)


@pytest.mark.parametrize("ball", STILL.values(), ids=STILL)
@pytest.mark.parametrize("seed", range(3))
class TestLawsOfContexts:
    def test_a_product_and_its_copy_cost_twice_as_much(self, ball, seed):
        (form, _) = affine_forms(with_adversaries(asked(seed, **ball)), merge=False)
        theta, t = np.random.default_rng(seed).normal(size=2), 0.3
        both = JointForm((form, form)).worst_value(np.column_stack([theta] * 2), np.array([t, t]))
        assert both[0] == pytest.approx(2.0 * form.worst_value(theta, t)[0], rel=1e-9)

    def test_with_one_product_that_follows_the_context_it_is_as_one_for_each(self, ball, seed):
        form = joint_form(asked(seed, **ball), merge=False)
        theta, t = some_policy(form, seed)
        theta[:, 1] = 0.0
        each = [one.worst_value(theta[:, j], t[j])[0] for j, one in enumerate(form.products)]
        assert form.worst_value(theta, t)[0] == pytest.approx(form.shares @ each, rel=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kappa", [np.inf, 0.7])
def test_no_plan_proves_more_than_the_best_worst_case(order, kappa):
    problem = asked(1, rows=7, order=order, outcome_cost=kappa)
    form = joint_form(problem)
    rows = problem.nominal
    best = best_worst_case(
        rows.contexts, rows.outcomes, rows.weights, backorder=BACKORDER, holding=HOLDING,
        radius=0.4, order=order, scale=form.scale / form.column_unit, kappa=kappa,
    )  # fmt: skip
    rng, n = np.random.default_rng(0), len(form.weights)
    found = []
    for _ in range(200):
        picks = form.lines.picks
        lines = np.tile(np.arange(len(picks)), n)
        masses = rng.dirichlet(np.ones(len(picks)), n) ** rng.choice([0.2, 1.0])
        plan = JointPlan(
            np.repeat(np.arange(n), len(picks)), picks[lines], masses.ravel(),
            rng.normal(size=(len(lines), 2)), rng.normal(size=(len(lines), 2)),
        )  # fmt: skip
        found.append(form.lower_bound(plan) * form.value_unit)
    assert max(found) <= best * (1 + 1e-7)


def test_a_product_that_costs_next_to_nothing_does_not_spoil_the_bound():
    # Programs resolve costs to seven digits or so, and such a product's slopes were left unbalanced.
    cost = Newsvendor([1.0, 1e-9], [0.4, 2e-10])
    problem = asked(2, rows=20, cost=cost, order=2, intercept=False)
    solution = CuttingPlanes().solve(problem)
    assert solution.converged
    alone = asked(2, rows=20, cost=Newsvendor([1.0, 1e-30], [0.4, 2e-31]), order=2, intercept=False)
    (first, _) = affine_forms(with_adversaries(alone))
    theta, t = first.from_user_units(solution.parameters.theta[:, 0], 0.0)
    value = first.worst_value(theta, t)[0] * first.value_unit
    assert solution.certificate.upper == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_same_question_in_other_units_has_the_same_worst_case(order, factor):
    problem = asked(3, order=order, scale=False)
    rows = problem.nominal
    ball = replace(problem.ball, radius=0.4 * factor)
    other = Problem(
        problem.cost, problem.policy,
        Empirical(rows.contexts * factor, rows.outcomes * 7.0, rows.masses), ball,
    )  # fmt: skip
    theta, t = np.random.default_rng(0).normal(size=(2, 2)), np.array([1.0, -2.0])
    here, there = joint_form(problem, merge=False), joint_form(other, merge=False)
    value = here.worst_value(*here.from_user_units(theta, t))[0] * here.value_unit
    again = there.worst_value(*there.from_user_units(7.0 * theta / factor, 7.0 * t))[0]
    assert again * there.value_unit == pytest.approx(7.0 * value, rel=1e-9)


def test_costs_of_many_lines():
    cost = TieredNewsvendor(((0, 1.0), (2, 2.0)), 0.3)
    form = joint_form(asked(0, cost=cost, order=2), merge=False)
    assert len(form.lines.levels) == 9
    theta, t = some_policy(form)
    gammas = np.geomspace(1e-3, 1e3, 4_001)
    on_lines, norms = form.on_lines((theta, t)), form.line_norms(theta)
    by_hand = min(
        g * form.budget + form.weights @ (on_lines + norms**2 / (4 * g)).max(1) for g in gammas
    )
    assert form.worst_value(theta, t)[0] == pytest.approx(by_hand, rel=1e-5)


def test_what_has_no_joint_form_is_refused_with_a_reason():
    many = asked(0, products=11, cost=Newsvendor(1.0, 0.2))
    with pytest.raises(
        UnsupportedProblemError, match=r"at most 1,024 choices .* got 2,048: adversary='"
    ):
        joint_form(many)
    smooth = asked(0, cost=Newsvendor(1.0, 0.2, smoothing=0.1))
    with pytest.raises(UnsupportedProblemError, match="unsmoothed cost: set smoothing=0"):
        joint_form(smooth)
    with pytest.raises(UnsupportedProblemError, match="several products and a WassersteinBall with"):
        joint_form(with_adversaries(asked(0)))
    assert "adversary='each'" in why_not_affine(asked(0))
    alone = asked(0, products=1, cost=Newsvendor(1.0, 0.2))
    assert why_not_affine(alone) is None  # one product faces one adversary anyway
    with pytest.raises(InvalidInputError, match="adversary must be 'auto' or 'each' or 'joint'"):
        replace(many.ball, adversary="both")


@pytest.mark.parametrize("kappa", [np.inf, 0.7])
@pytest.mark.parametrize("options", [{}, {"frozen": (0,)}, {"radius": 0.0}], ids=str)
def test_no_slopes_prove_more_than_the_best_worst_case(kappa, options):
    problem = asked(1, rows=7, order=2, outcome_cost=kappa, **options)
    form = joint_form(problem)
    best = CuttingPlanes(gap_tol=1e-6).solve(problem).certificate.upper
    rng = np.random.default_rng(0)
    shape = len(form.weights), len(form.lines.levels)
    found = []
    for _ in range(100):
        masses = rng.dirichlet(np.ones(shape[1]) * rng.choice([0.05, 1.0]), shape[0])
        found.append(form.lower_bound(JointSlopes(masses)) * form.value_unit)
    assert max(found) <= best * (1 + 1e-7)
    # Without moves random slopes leave too much over.
    assert max(found) > 0.0 or form.radius == 0.0


def test_slopes_alone_prove_nothing_in_a_box_or_of_order_one():
    for ball in ({"order": 1}, {"order": 2, "support": Box(-2.0, 3.0)}):
        form = joint_form(asked(0, **ball))
        slopes = np.full((len(form.weights), len(form.lines.levels)), 0.25)
        assert form.lower_bound(JointSlopes(slopes)) == form.least
    form = joint_form(asked(0, order=2))
    assert form.lower_bound(JointSlopes(np.zeros_like(slopes))) == form.least
