"""Checks that a cost, policy, nominal, ambiguity set or solver of one's own must pass.

``check(part)`` runs all that apply and raises ``ConformanceError`` with a sentence at the first that
fails; ``checks_for(part)`` yields them by name, for a test of each::

    @pytest.mark.parametrize("name, run", checks_for(MyCost(0.3)))
    def test_my_cost(name, run):
        run()

Surefoot's own parts pass them, too.
"""

import dataclasses
import importlib.util
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from surefoot.ambiguity import AmbiguitySet, WassersteinBall
from surefoot.costs import ConvexPiecewiseCost, Cost, Newsvendor
from surefoot.engines.choice import adversary_of
from surefoot.exceptions import SurefootError, UnsupportedProblemError
from surefoot.io import is_registered, pack, unpack
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import Linear, Policy, Units
from surefoot.problem import Problem, affine_forms
from surefoot.solvers import Solution, Solver
from surefoot.tracing import load_jax
from surefoot.typing import FloatArray

Check = tuple[str, Callable[[], None]]
# Relative slack of comparisons that rounding may touch.
SLACK = 1e-9


class ConformanceError(SurefootError, AssertionError):
    """A part does not keep what its class promises; the message says which promise."""


def check(part: Any) -> None:
    """Run every check that applies to a part.

    Examples
    --------
    >>> from surefoot.ambiguity import Contamination, WassersteinBall
    >>> from surefoot.costs import TieredNewsvendor
    >>> check(TieredNewsvendor(((0, 1.0), (10, 3.0)), 0.2))
    >>> check(WassersteinBall(0.1))
    >>> check(Contamination(0.1))
    """
    for _, run in checks_for(part):
        run()


def checks_for(part: Any) -> Iterator[Check]:
    """Yield the checks that apply to a part: a name, and a function that raises if it fails."""
    kinds: tuple[tuple[type, tuple[Callable[[Any], None], ...]], ...] = (
        (Cost, _cost_checks), (Policy, _policy_checks), (Nominal, _nominal_checks),
        (AmbiguitySet, _set_checks), (Solver, _solver_checks),
    )  # fmt: skip
    for kind, found in kinds:
        if isinstance(part, kind):
            for run in found:
                yield run.__name__.removeprefix("_"), partial(run, part)
            return
    raise ConformanceError(
        f"checks are for costs, policies, nominals, ambiguity sets and solvers, got {part!r}."
    )


def _demand(holds: bool, promise: str) -> None:
    if not holds:
        raise ConformanceError(f"{promise}.")


def _close(a: Any, b: Any, promise: str, slack: float = SLACK) -> None:
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    near = a.shape == b.shape and np.allclose(a, b, rtol=slack, atol=slack)
    _demand(bool(near), f"{promise}, got {a} and {b}")


def _rows(seed: int = 0, n: int = 12, products: int = 1) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 2.0
    return X, X @ rng.normal(size=(3, products)) + rng.gumbel(size=(n, products)) + 5.0


def _outcomes_of(cost: Cost) -> int:
    """Return a number of outcomes that a cost takes."""
    fitting = [count for count in (1, 2, 3, 4) if cost.why_not(count) is None]
    _demand(bool(fitting), "why_not must be None for some number of outcomes up to 4")
    return fitting[0]


def _saved(part: Any) -> None:
    """A registered part comes back from JSON and arrays as it was."""
    if is_registered(part):
        arrays: dict[str, Any] = {}
        again = unpack(pack("part", part, arrays), arrays)
        _demand(again == part, f"a registered part must come back equal, got {again!r} for {part!r}")


def _frozen(part: Any) -> None:
    """A part is a frozen dataclass, so that it can be compared, hashed and shared between threads."""
    promise = f"{type(part).__name__} must be a frozen dataclass"
    _demand(dataclasses.is_dataclass(part), promise)
    for field in dataclasses.fields(part)[:1]:
        try:
            setattr(part, field.name, getattr(part, field.name))
        except dataclasses.FrozenInstanceError:
            continue
        raise ConformanceError(f"{promise}.")
    hash(part)


# --- costs --------------------------------------------------------------------------------------


def _decided(cost: Cost, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    _, y = _rows(seed, products=_outcomes_of(cost))
    centre, unit = cost.typical(y, np.full(len(y), 1.0 / len(y)))
    rng = np.random.default_rng(seed)
    return centre + 0.3 * unit * rng.uniform(-1, 1, size=(len(y), len(centre))), y


def _cost_shapes(cost: Cost) -> None:
    """One finite number for each row, whatever the leading axes; inputs stay as they are."""
    z, y = _decided(cost)
    before = z.copy(), y.copy()
    rows = cost.evaluate(z, y)
    _demand(rows.shape == (len(z),), f"evaluate must return shape ({len(z)},), got {rows.shape}")
    _demand(
        bool(np.isfinite(rows).all()), f"evaluate must be finite near typical decisions, got {rows}"
    )
    stacked = cost.evaluate(np.stack([z, z]), np.stack([y, y]))
    _demand(stacked.shape == (2, len(z)), "evaluate must keep leading axes")
    _close(before[0], z, "evaluate must not change decisions")
    _close(before[1], y, "evaluate must not change outcomes")


def _cost_mean(cost: Cost) -> None:
    """The mean is one number, and a weight of two is the row twice."""
    z, y = _decided(cost)
    weights = np.r_[2.0, np.ones(len(z) - 1)]
    twice = np.r_[0, np.arange(len(z))]
    _close(
        cost.mean(z, y, weights / weights.sum()),
        cost.mean(z[twice], y[twice], np.full(len(twice), 1.0 / len(twice))),
        "a weight of two must be the row twice",
    )


def _cost_typical(cost: Cost) -> None:
    """The typical decision has as many numbers as a decision, and a positive unit."""
    _, y = _rows(products=_outcomes_of(cost))
    centre, unit = cost.typical(y, np.full(len(y), 1.0 / len(y)))
    count = cost.n_decisions(y.shape[1])
    _demand(
        centre.shape == unit.shape == (count,), f"typical must return two arrays of shape ({count},)"
    )
    _demand(bool((unit > 0).all()), f"the unit of decisions must be positive, got {unit}")


def _cost_promises(cost: Cost) -> None:
    """No cost is below the floor, and none bends more than the curvature."""
    z, y = _decided(cost)
    above = cost.evaluate(z, y) >= cost.floor(y.shape[1]) - SLACK
    _demand(bool(above.all()), "no cost may be below floor()")
    step = 1e-3
    bends = [cost.evaluate(z + k * step, y) for k in (-1, 0, 1)]
    second = (bends[0] - 2 * bends[1] + bends[2]) / step**2 / z.shape[1]
    most = cost.curvature()
    _demand(bool((second <= most * 1.01 + 1e-4).all()), f"second derivatives must be <= {most}")


def _cost_pieces(cost: Cost) -> None:
    """A piecewise linear cost is the sum of its lines."""
    if isinstance(cost, ConvexPiecewiseCost):
        z, y = _decided(cost)
        lines = cost.pieces(y.shape[1])
        _demand(len(lines) == y.shape[1], "pieces must return one Pieces for each product")
        total = sum(piece.evaluate(z[:, j] - y[:, j]) for j, piece in enumerate(lines))
        _close(cost.evaluate(z, y), total, "evaluate must be the sum of the pieces")


def _cost_in_jax(cost: Cost) -> None:
    """The same formula runs in JAX."""
    if importlib.util.find_spec("jax") is None:
        return
    jax = load_jax("A check")
    z, y = _decided(cost)
    with jax.enable_x64(True):
        there = np.asarray(cost.evaluate(jax.numpy.asarray(z), jax.numpy.asarray(y), jax.numpy))
    _close(cost.evaluate(z, y), there, "evaluate must give the same in numpy and jax.numpy")


_cost_checks = (
    _frozen, _saved, _cost_shapes, _cost_mean, _cost_typical, _cost_promises, _cost_pieces,
    _cost_in_jax,
)  # fmt: skip


# --- policies -----------------------------------------------------------------------------------


def _started(policy: Policy) -> tuple[Policy, Any, dict[str, FloatArray], FloatArray]:
    X, y = _rows()
    policy = policy.fitted(X)
    inputs = policy.inputs(X)
    features = inputs.shape[1] - policy.n_fixed(1)
    trained = policy.initial(np.random.default_rng(0), features, 1)
    mean, spread = inputs[:, :features].mean(axis=0), inputs[:, :features].std(axis=0)
    units = Units(mean, np.where(spread > 0, spread, 1.0), y.mean(axis=0), y.std(axis=0))
    return policy, trained, units.tree(), inputs


def _policy_decides(policy: Policy) -> None:
    """One finite decision for each row, within the limits if there are some; starts repeat."""
    policy, trained, units, inputs = _started(policy)
    decisions = np.asarray(policy.evaluate(trained, units, inputs, np))
    _demand(
        decisions.shape == (len(inputs), 1),
        f"decisions must have shape (rows, 1), got {decisions.shape}",
    )
    _demand(bool(np.isfinite(decisions).all()), "decisions must be finite at the start")
    if policy.decisions is not None:
        _demand(policy.decisions.contains(decisions), "decisions must lie within their limits")
    again = policy.initial(np.random.default_rng(0), inputs.shape[1] - policy.n_fixed(1), 1)
    for name in trained if isinstance(trained, dict) else ():
        _close(trained[name], again[name], "initial must depend on the generator alone")


def _policy_in_jax(policy: Policy) -> None:
    """The same formula runs in JAX, and has a derivative that is finite."""
    if importlib.util.find_spec("jax") is None:
        return
    jax = load_jax("A check")
    policy, trained, units, inputs = _started(policy)
    with jax.enable_x64(True):
        put = jax.tree.map(jax.numpy.asarray, trained)
        there = policy.evaluate(put, units, jax.numpy.asarray(inputs), jax.numpy)
        slopes = jax.grad(lambda p: policy.evaluate(p, units, inputs, jax.numpy).sum())(put)
        finite = all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(slopes))
    here = policy.evaluate(trained, units, inputs, np)
    _close(here, np.asarray(there), "a policy must decide the same in numpy and jax.numpy")
    _demand(finite, "a policy must have a finite derivative in its parameters")


_policy_checks = (_frozen, _saved, _policy_decides, _policy_in_jax)


# --- nominals -----------------------------------------------------------------------------------


def _nominal_samples(nominal: Nominal) -> None:
    """Draws have the sizes promised and repeat from the generator handed in."""
    X, y = nominal.sample(np.random.default_rng(0), 7)
    sizes = (7, nominal.n_columns), (7, nominal.n_products)
    _demand((X.shape, y.shape) == sizes, f"sample must return shapes {sizes}, got {X.shape}, {y.shape}")
    _demand(bool(np.isfinite(X).all() and np.isfinite(y).all()), "draws must be finite")
    again = nominal.sample(np.random.default_rng(0), 7)
    _close(X, again[0], "draws must depend on the generator alone")
    _close(y, again[1], "draws must depend on the generator alone")


_nominal_checks = (_nominal_samples,)


# --- ambiguity sets -----------------------------------------------------------------------------


def _form(ball: AmbiguitySet, radius: float) -> Any:
    X, y = _rows(n=20)
    problem = Problem(Newsvendor(1.0, 0.3), Linear(), Empirical(X, y), ball.at(radius))
    return affine_forms(problem)[0]


def _policies(form: Any) -> list[tuple[FloatArray, float]]:
    rng = np.random.default_rng(1)
    decision = form.constant_order()[0]
    return [(share * rng.normal(size=len(form.scale)), decision) for share in (0.0, 0.1, 1.0)]


def _set_grows(ball: AmbiguitySet) -> None:
    """At radius zero the worst case is the nominal cost; it grows with the radius."""
    for k in range(3):
        values = []
        for radius in (0.0, 0.05, 0.2):
            form = _form(ball, radius)
            values.append(form.worst_value(*_policies(form)[k])[0])
            if radius == 0.0:
                nominal = form.mean_cost(form.residuals(*_policies(form)[k]))
                _close(values[0], nominal, "the worst case at radius 0 must be the nominal cost")
        ordered = all(b >= a * (1 - SLACK) for a, b in itertools.pairwise(values))
        _demand(ordered, f"the worst case must grow with the radius, got {values}")


def _set_atoms(ball: AmbiguitySet) -> None:
    """Atoms are a distribution whose cost is at most the value."""
    form = _form(ball, 0.1)
    for policy in _policies(form):
        found = form.adversary(*policy)
        _close(found.weights.sum(), 1.0, "the weights of the atoms must sum to one")
        _demand(bool((found.weights >= 0).all()), "the weights of the atoms must not be negative")
        _close(found.value, form.worst_value(*policy)[0], "adversary and worst_value must agree", 1e-6)
        costs = form.pieces.evaluate(found.contexts @ policy[0] + policy[1] - found.outcomes)
        _close(
            found.weights @ costs, found.expected_cost, "expected_cost must be that of the atoms", 1e-6
        )
        most = found.value * (1 + 1e-6) + SLACK
        _demand(found.expected_cost <= most, "no atoms may cost more than the value")


def _set_bounds(ball: AmbiguitySet) -> None:
    """The worst case is convex in the policy, and no lower bound is above it."""
    form, rng = _form(ball, 0.1), np.random.default_rng(2)
    policies = _policies(form)
    values = [form.worst_value(*policy)[0] for policy in policies]
    (a, s), (b, t) = policies[1:]
    middle = form.worst_value(0.5 * (a + b), 0.5 * (s + t))[0]
    _demand(middle <= 0.5 * (values[1] + values[2]) * (1 + 1e-6), "the worst case must be convex")
    for _ in range(5):
        slopes = rng.uniform(-form.pieces.down, form.pieces.up, len(form.outcomes))
        bound = form.lower_bound(slopes)
        _demand(
            bound <= min(values) * (1 + SLACK) + SLACK, f"a lower bound of {bound} is above {values}"
        )


_set_checks = (_frozen, _saved, _set_grows, _set_atoms, _set_bounds)


# --- solvers ------------------------------------------------------------------------------------


def _problems(solver: Solver) -> list[Problem]:
    """Return problems that a solver says it can treat."""
    from_rows = Empirical(*_rows(n=30))
    balls = [ball for ball in _balls() if _fits(solver, from_rows, ball)]
    _demand(bool(balls), "why_not must be None for some newsvendor problem of 30 rows and 3 columns")
    return [Problem(Newsvendor(1.0, 0.3), Linear(), from_rows, ball) for ball in balls]


def _balls() -> list[AmbiguitySet]:
    return [WassersteinBall(0.1), WassersteinBall(0.1, order=1), WassersteinBall(0.0)]


def _fits(solver: Solver, rows: Empirical, ball: AmbiguitySet) -> bool:
    reason = solver.why_not(Problem(Newsvendor(1.0, 0.3), Linear(), rows, ball))
    _demand(reason is None or isinstance(reason, str), "why_not must return a sentence or None")
    return reason is None


def _solver_answers(solver: Solver) -> None:
    """The answer is a Solution whose certificate is true, and it depends on the seed alone."""
    for problem in _problems(solver):
        solution = solver.solve(problem, 3)
        _demand(
            isinstance(solution, Solution),
            f"solve must return a Solution, got {type(solution).__name__}",
        )
        worst = adversary_of(problem, solution.parameters).value
        upper, lower = solution.certificate.upper, solution.certificate.lower
        _demand(
            upper >= worst * (1 - 1e-6),
            f"the certificate says at most {upper}, the worst case is {worst}",
        )
        _demand(lower <= upper * (1 + SLACK), f"the lower bound {lower} must not be above {upper}")
        _demand(bool(solution.status), "status must be a sentence")
        again = solver.solve(problem, 3)
        X = _rows(n=30)[0]
        _close(
            problem.policy.decide(solution.parameters, X), problem.policy.decide(again.parameters, X),
            "the answer must depend on the problem and the seed alone",
        )  # fmt: skip


def _solver_refuses(solver: Solver) -> None:
    """What why_not refuses, solve refuses with that reason, before any work."""
    rows = Empirical(*_rows(n=30))
    for ball in _balls():
        problem = Problem(Newsvendor(1.0, 0.3), Linear(), rows, ball)
        if solver.why_not(problem) is None:
            continue
        try:
            solver.solve(problem, 0)
        except UnsupportedProblemError:
            continue
        raise ConformanceError("solve must refuse what why_not refuses.")


_solver_checks = (_frozen, _solver_answers, _solver_refuses)
