"""An ambiguity set of one's own: its adversary is all that DA-SGD needs."""

from dataclasses import dataclass, field, fields, replace

import numpy as np
import pytest
from scipy.optimize import linprog

from surefoot import DASGD, Exact, PrimalDual, Problem, RobustPolicy
from surefoot.ambiguity import Adversary, AffineForm, AffineRows, AmbiguitySet
from surefoot.costs import ConvexPiecewiseCost, Newsvendor, Pieces, Quadratic
from surefoot.engines.affine import Affine
from surefoot.engines.choice import adversary_of, engine_class, radius_grid
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms, form_policies, user_parameters
from surefoot.solvers import default_solver


@dataclass(frozen=True)
class Reweighted(AmbiguitySet):
    """No sample moves, but its weight may grow to (1 + radius) times what it was.

    The worst expected cost is the conditional value at risk of the costs, at the tail 1 / (1 + radius).
    """

    radius: float

    def __post_init__(self):
        self.check_radius()

    def form(self, rows, movable):
        del movable
        shared = {f.name: getattr(rows, f.name) for f in fields(AffineRows)}
        return ReweightedForm(**shared, most=1.0 + self.size)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReweightedForm(AffineForm):
    most: float

    def adversary(self, theta, intercept):
        costs = self.pieces.evaluate(self.residuals(theta, intercept))
        worst = np.argsort(-costs, kind="stable")
        filled = np.minimum(np.cumsum(self.most * self.weights[worst]), 1.0)
        weights = np.diff(filled, prepend=0.0)
        rows = worst[weights > 0.0]
        weights = weights[weights > 0.0]
        value = float(weights @ costs[rows])
        nothing = np.zeros(len(rows))
        return Adversary(
            value=value, expected_cost=value, multiplier=np.zeros(1), transport_cost=np.zeros(1),
            rows=rows, products=np.zeros(len(rows), dtype=np.int64), contexts=self.contexts[rows],
            outcomes=self.outcomes[rows], weights=weights, distances=nothing,
        )  # fmt: skip

    def at_radius(self, radius):
        return replace(self, most=1.0 + radius)


@dataclass(frozen=True)
class Tiers(ConvexPiecewiseCost):
    """Three lines: what is missing costs more beyond a unit."""

    def pieces(self, n_products):
        return (Pieces((-3.0, -1.0, 0.5), (-2.0, 0.0, 0.0)),) * n_products


def rows(seed=0, count=200, columns=3, products=1):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(count, columns)) + 0.5) * [10.0, 1.0, 0.1][:columns]
    y = 20.0 + X @ rng.normal(size=(columns, products)) * 2.0 + rng.normal(size=(count, products)) ** 3
    return Empirical(X, y if products > 1 else y[:, 0], rng.uniform(0.5, 2.0, size=count))


def best_tail(problem):
    """The smallest conditional value at risk, as a linear program, summed over products."""
    nominal, most = problem.nominal, 1.0 + problem.radius
    X, weights = nominal.contexts, nominal.weights
    n, s = X.shape
    total = 0.0
    for j, pieces in enumerate(problem.cost.pieces(nominal.n_products)):
        # theta, t, the value at risk and what each row costs beyond it.
        free = np.column_stack([X, np.ones(n)])
        if not problem.policy.intercept:
            free[:, s] = 0.0
        lines = [
            (np.column_stack([w * free, -np.ones(n), -np.eye(n)]), w * nominal.outcomes[:, j] - v)
            for w, v in zip(pieces.slopes, pieces.intercepts, strict=True)
        ]
        found = linprog(
            np.concatenate([np.zeros(s + 1), [1.0], most * weights]),
            A_ub=np.vstack([matrix for matrix, _ in lines]),
            b_ub=np.concatenate([bound for _, bound in lines]),
            bounds=[(None, None)] * (s + 2) + [(0.0, None)] * n,
            method="highs",
        )
        assert found.status == 0
        total += found.fun
    return total


def tail_of(problem, parameters):
    """The conditional value at risk of a policy, from its decisions alone."""
    nominal, most = problem.nominal, 1.0 + problem.radius
    decisions = nominal.contexts @ parameters.theta + parameters.intercept
    total = 0.0
    for j, pieces in enumerate(problem.cost.pieces(nominal.n_products)):
        costs = pieces.evaluate(decisions[:, j] - nominal.outcomes[:, j])
        # The value at risk is one of the costs.
        total += min(level + most * nominal.weights @ np.maximum(costs - level, 0.0) for level in costs)
    return total


CASES = {
    "two lines": Problem(Newsvendor(1.0, 0.2), Linear(), rows(), Reweighted(2.0)),
    "no intercept": Problem(Newsvendor(1.0, 0.2), Linear(intercept=False), rows(1), Reweighted(1.0)),
    "three lines": Problem(Tiers(), Linear(), rows(2), Reweighted(4.0)),
    "three products": Problem(Newsvendor(2.0, 0.5), Linear(), rows(3, products=3), Reweighted(0.5)),
    "the nominal itself": Problem(Newsvendor(1.0, 0.2), Linear(), rows(4), Reweighted(0.0)),
}


def solved(problem, max_steps=400_000):
    with pytest.warns(ConvergenceWarning, match="DASGD (ran out of steps|stopped) after"):
        return DASGD(max_steps=max_steps).solve(problem, seed=0)


@pytest.mark.parametrize("name", CASES)
def test_it_is_solved_to_one_percent_of_a_linear_program(name):
    problem = CASES[name]
    solution = solved(problem)
    best = best_tail(problem)
    assert best * (1 - 1e-9) <= tail_of(problem, solution.parameters) <= 1.01 * best
    assert solution.certificate.upper == pytest.approx(tail_of(problem, solution.parameters), rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_known_is_not_claimed(name):
    problem = CASES[name]
    solution = solved(problem)
    certificate = solution.certificate
    # Nothing but "no cost is negative" bounds the best policy from below.
    assert certificate.lower == 0.0
    assert certificate.lower <= best_tail(problem) <= certificate.upper * (1 + 1e-9)
    assert certificate.kind == "bound"
    assert certificate.gap > 1.0
    assert solution.converged is not True
    assert "certified gap" in solution.status


def test_a_run_that_can_prove_no_more_ends_and_says_so():
    with pytest.warns(ConvergenceWarning, match="the lower bound of this ambiguity set is not tight"):
        solution = DASGD().solve(CASES["two lines"], seed=0)
    assert solution.n_steps < 10_000_000
    assert solution.certificate.upper <= 1.01 * best_tail(CASES["two lines"])


@dataclass(frozen=True)
class KnownBest(Reweighted):
    """The same set, told by others what the best policy costs."""

    best: float = field(default=0.0, kw_only=True)

    def form(self, rows, movable):
        plain = super().form(rows, movable)
        shared = {f.name: getattr(plain, f.name) for f in fields(plain)}
        return KnownForm(**shared, best=self.best / rows.value_unit)


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownForm(ReweightedForm):
    best: float

    def lower_bound(self, slopes):
        assert slopes.shape == self.outcomes.shape
        return self.best

    @property
    def tight(self):
        return True


def test_a_lower_bound_of_its_own_ends_the_run_and_is_certified():
    plain = CASES["two lines"]
    best = best_tail(plain)
    problem = replace(plain, ball=KnownBest(2.0, best=best))
    solution = DASGD(gap_tol=0.01).solve(problem, seed=0)
    assert solution.converged is True
    assert solution.certificate.kind == "exact"
    assert solution.certificate.lower == pytest.approx(best, rel=1e-12)
    assert solution.certificate.gap == pytest.approx(solution.certificate.upper / best - 1.0, rel=1e-6)
    assert solution.certificate.upper <= 1.01 * best
    assert solution.n_steps < 400_000


def test_the_radius_counts():
    problem = CASES["two lines"]
    worst = [solved(problem.at_radius(r)).certificate.upper for r in (0.0, 0.5, 2.0, 10.0)]
    assert worst == sorted(worst)
    assert worst[0] < 0.9 * worst[-1]


def test_slopes_of_rows_are_those_of_the_worst_distribution():
    problem = replace(CASES["two lines"], ball=Reweighted(2.0))
    engine = Affine([problem], [0], DASGD(max_steps=2_000).options)
    state, seen = engine.update(engine.init(), engine.draw(400))
    (shown,) = seen
    form = affine_forms(problem)[0]
    assert shown.slopes.shape == form.outcomes.shape
    assert (shown.slopes <= form.pieces.up + 1e-12).all()
    assert (shown.slopes >= -form.pieces.down - 1e-12).all()
    worst = form.adversary(*engine.lanes[0].policy)
    assert np.abs(shown.slopes[worst.rows]).min() > 0.0
    assert float(state.numbers[0]["steps"][0]) == 2.0  # 400 draws are two passes over 200 rows


def test_the_adversary_is_the_set_s_own_in_the_user_s_units():
    problem = CASES["three products"]
    solution = solved(problem, 4_000)
    found = adversary_of(problem, solution.parameters)
    nominal = problem.nominal
    assert found.value == pytest.approx(tail_of(problem, solution.parameters), rel=1e-9)
    assert found.expected_cost == pytest.approx(found.value, rel=1e-9)
    np.testing.assert_array_equal(found.contexts, nominal.contexts[found.rows])
    np.testing.assert_array_equal(found.outcomes, nominal.outcomes[found.rows, found.products])
    assert np.bincount(found.products, found.weights) == pytest.approx(np.ones(3))
    assert (found.weights <= 1.5 * nominal.weights[found.rows] * (1 + 1e-12)).all()


def test_parameters_survive_the_units_of_the_form():
    problem = CASES["three products"]
    forms = affine_forms(problem)
    rng = np.random.default_rng(0)
    policies = tuple((rng.normal(size=3), rng.normal()) for _ in forms)
    again = form_policies(forms, user_parameters(forms, policies))
    for (theta, t), (other, at) in zip(policies, again, strict=True):
        np.testing.assert_allclose(other, theta, rtol=1e-12)
        assert at == pytest.approx(t, rel=1e-12)


def test_others_say_that_they_cannot():
    problem = CASES["two lines"]
    assert engine_class(problem) is Affine
    assert isinstance(default_solver(problem), DASGD)
    for solver in (PrimalDual(), Exact()):
        assert solver.why_not(problem) is not None
        with pytest.raises(UnsupportedProblemError, match="Wasserstein"):
            solver.solve(problem)
    beyond = replace(problem, cost=Quadratic())
    assert "WassersteinBall" in DASGD().why_not(beyond)
    with pytest.raises(UnsupportedProblemError, match="it needs a WassersteinBall"):
        DASGD().solve(beyond)


def test_a_radius_that_is_no_number_is_refused():
    with pytest.raises(InvalidInputError, match=r"radius must be >= 0, got -1.0"):
        Reweighted(-1.0)
    with pytest.raises(InvalidInputError, match=r"radius must be a number >= 0, got 'auto'"):
        Reweighted("auto")


def test_radii_to_choose_from_are_shares_of_one():
    grid = radius_grid(CASES["two lines"])
    assert grid[0] == 1.0
    assert grid[-1] == 0.0
    assert (np.diff(grid) < 0.0).all()


def test_an_estimator_takes_it():
    problem = CASES["two lines"]
    X, y = problem.nominal.contexts, problem.nominal.outcomes[:, 0]
    with pytest.warns(ConvergenceWarning):
        model = RobustPolicy(problem.cost, ball=Reweighted(2.0), solver=DASGD(max_steps=400_000)).fit(
            X, y
        )
    plain = replace(problem, nominal=Empirical(X, y))
    assert tail_of(plain, model.parameters_) <= 1.01 * best_tail(plain)
