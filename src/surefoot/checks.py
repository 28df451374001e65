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
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from surefoot.ambiguity import AffineForm, AmbiguitySet, WassersteinBall
from surefoot.certificates import relative_gap
from surefoot.costs import AuxiliaryCost, ConvexPiecewiseCost, Cost, Newsvendor, TieredNewsvendor
from surefoot.engines.choice import adversary_of
from surefoot.exceptions import (
    ConvergenceWarning,
    ModelFileError,
    SurefootError,
    UnsupportedProblemError,
)
from surefoot.io import is_registered, pack, unpack
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import Linear, Policy, Units
from surefoot.policies.base import leaves
from surefoot.problem import Problem, affine_forms, form_policies
from surefoot.solvers import DASGD, Exact, Solution, Solver
from surefoot.tracing import load_jax
from surefoot.typing import FloatArray

Check = tuple[str, Callable[[], None]]
# Relative slack of comparisons that rounding may touch.
SLACK = 1e-9
# How far decisions are from the typical one, in its units: what holds close by may not hold far out.
WIDTHS = (0.3, 30.0)
# Steps that bring a policy close enough to the best to find lower bounds that are too high.
BEST_STEPS = 20_000


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
    for kind, checks in kinds:
        if isinstance(part, kind):
            for run in checks:
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
    """A registered part comes back from JSON and arrays as it was; one with a function cannot."""
    arrays: dict[str, Any] = {}
    if not is_registered(part):
        return
    try:
        again = unpack(pack("part", part, arrays), arrays)
    except ModelFileError as error:
        if any(callable(getattr(part, field.name)) for field in dataclasses.fields(part)):
            return
        raise ConformanceError(f"a registered part must be one that can be saved: {error}") from error
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
    try:
        hash(part)
    except TypeError as error:
        raise ConformanceError(f"{type(part).__name__} must be hashable, got {error}.") from error


# --- costs --------------------------------------------------------------------------------------


def _decided(cost: Cost, width: float = WIDTHS[0]) -> tuple[FloatArray, FloatArray]:
    """Return decisions around the typical one, and outcomes."""
    _, y = _rows(products=_outcomes_of(cost))
    centre, unit = cost.typical(y, np.full(len(y), 1.0 / len(y)))
    rng = np.random.default_rng(0)
    return centre + width * unit * rng.uniform(-1, 1, size=(len(y), len(centre))), y


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
    if not isinstance(cost, AuxiliaryCost):  # whose variables are chosen for all rows at once
        alone = cost.evaluate(z[:1], y[:1])
        _close(alone, rows[:1], "the cost of a row must not depend on other rows")


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
    """No cost is below the floor, bends more than the curvature or grows faster than the growth."""
    step, bend, power = 1e-3, cost.curvature(), cost.growth()
    for width in WIDTHS:
        z, y = _decided(cost, width)
        floor = cost.floor(y.shape[1])
        if np.isfinite(floor):
            above = cost.evaluate(z, y) >= floor - SLACK
            _demand(bool(above.all()), "no cost may be below floor()")
        if np.isfinite(bend):
            low, middle, high = (cost.evaluate(z + k * step, y) for k in (-1, 0, 1))
            second = (low - 2 * middle + high) / step**2 / z.shape[1]
            # Differences of costs are only as exact as the costs.
            noise = 1e-4 + 1e-15 * float(np.abs(middle).max()) / step**2
            most = bool((second <= bend * 1.01 + noise).all())
            _demand(most, f"second derivatives must be <= {bend}, got {second.max()}")
    if np.isfinite(power):
        near, far = (np.abs(cost.evaluate(*_decided(cost, width))).max() for width in (1e2, 1e4))
        _demand(bool(far <= 2.0 * near * 1e2**power), f"no cost may grow faster than |z|^{power:g}")


def _cost_pieces(cost: Cost) -> None:
    """A piecewise linear cost is the sum of its lines, and so convex."""
    if isinstance(cost, ConvexPiecewiseCost):
        for width in WIDTHS:
            z, y = _decided(cost, width)
            lines = cost.pieces(y.shape[1])
            _demand(len(lines) == y.shape[1], "pieces must return one Pieces for each product")
            total = sum(piece.evaluate(z[:, j] - y[:, j]) for j, piece in enumerate(lines))
            _close(cost.evaluate(z, y), total, "evaluate must be the sum of the pieces")


def _cost_in_jax(cost: Cost) -> None:
    """The same formula runs in JAX, with a finite derivative, also where decision meets outcome."""
    if importlib.util.find_spec("jax") is None:
        return
    jax = load_jax("A check")
    z, y = _decided(cost)
    if z.shape == y.shape:
        z[0] = y[0]
    formula: Callable[..., Any] = cost.evaluate
    if isinstance(cost, AuxiliaryCost):
        own = cost.best_auxiliary(z, y, np.full(len(z), 1.0 / len(z)))

        def formula(z: Any, y: Any, xp: Any = np) -> Any:
            return cost.evaluate_at(z, own, y, xp)

    with jax.enable_x64(True):
        put = jax.numpy.asarray(z), jax.numpy.asarray(y)
        in_jax = np.asarray(formula(*put, jax.numpy))
        slopes = np.asarray(jax.grad(lambda z: formula(z, put[1], jax.numpy).sum())(put[0]))
    _close(formula(z, y), in_jax, "evaluate must give the same in numpy and jax.numpy")
    _demand(bool(np.isfinite(slopes).all()), "evaluate must have a finite derivative in the decision")


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


def _shaken(tree: Any, rng: np.random.Generator) -> Any:
    """Return parameters as learning might leave them: a start at zero hides most of a formula."""
    if isinstance(tree, dict):
        return {name: _shaken(part, rng) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_shaken(part, rng) for part in tree)
    return np.asarray(tree) + 0.3 * rng.normal(size=np.shape(tree))


def _policy_decides(policy: Policy) -> None:
    """One finite decision for each row by itself, within the limits if there are some."""
    policy, start, units, inputs = _started(policy)
    for trained in (start, _shaken(start, np.random.default_rng(1))):
        decisions = np.asarray(policy.evaluate(trained, units, inputs, np))
        _demand(
            decisions.shape == (len(inputs), 1),
            f"decisions must have shape (rows, 1), got {decisions.shape}",
        )
        _demand(bool(np.isfinite(decisions).all()), "decisions must be finite")
        alone = policy.evaluate(trained, units, inputs[:1], np)
        _close(alone, decisions[:1], "the decision of a row must not depend on other rows")
        if policy.decisions is not None:
            _demand(policy.decisions.contains(decisions), "decisions must lie within their limits")


def _policy_starts(policy: Policy) -> None:
    """The start depends on the generator alone."""
    _, first, _, _ = _started(policy)
    _, again, _, _ = _started(policy)
    for one, other in zip(leaves(first).values(), leaves(again).values(), strict=True):
        _close(one, other, "initial must depend on the generator alone")


def _policy_in_jax(policy: Policy) -> None:
    """The same formula runs in JAX, and has a derivative that is finite."""
    if importlib.util.find_spec("jax") is None:
        return
    jax = load_jax("A check")
    policy, start, units, inputs = _started(policy)
    for trained in (start, _shaken(start, np.random.default_rng(1))):
        with jax.enable_x64(True):
            put = jax.tree.map(jax.numpy.asarray, trained)
            in_jax = policy.evaluate(put, units, jax.numpy.asarray(inputs), jax.numpy)
            slopes = jax.grad(lambda p: policy.evaluate(p, units, inputs, jax.numpy).sum())(put)
            finite = all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(slopes))
        in_numpy = policy.evaluate(trained, units, inputs, np)
        promise = "a policy must decide the same in numpy and jax.numpy"
        _close(in_numpy, np.asarray(in_jax), promise)
        _demand(finite, "a policy must have a finite derivative in its parameters")


_policy_checks = (_frozen, _saved, _policy_starts, _policy_decides, _policy_in_jax)


# --- nominals -----------------------------------------------------------------------------------


def _nominal_samples(nominal: Nominal) -> None:
    """Draws have the sizes promised, repeat from the generator handed in, and are the caller's own."""
    for size in (1, 7):
        X, y = nominal.sample(np.random.default_rng(0), size)
        sizes = (size, nominal.n_columns), (size, nominal.n_products)
        shapes = X.shape, y.shape
        _demand(shapes == sizes, f"sample must return shapes {sizes}, got {shapes}")
        _demand(bool(np.isfinite(X).all() and np.isfinite(y).all()), "draws must be finite")
        for again, drawn in zip(nominal.sample(np.random.default_rng(0), size), (X, y), strict=True):
            _close(again, drawn, "draws must depend on the generator alone")
    kept = [X.copy(), y.copy()]
    for drawn in (X, y):
        if drawn.flags.writeable:
            drawn += 1.0
    for again, drawn in zip(nominal.sample(np.random.default_rng(0), 7), kept, strict=True):
        _close(again, drawn, "draws must not be changed by what is done to earlier ones")


_nominal_checks = (_nominal_samples,)


# --- ambiguity sets -----------------------------------------------------------------------------


def _questions(ball: AmbiguitySet, radius: float) -> list[Problem]:
    """Return problems with a set of some radius: with and without intercept, two lines and three."""
    rows = Empirical(*_rows(n=20))
    # Lopsided, so that slopes which a bound would need may not exist.
    two, three = Newsvendor(1.0, 0.05), TieredNewsvendor(((0, 1.0), (1, 2.0)), 0.3)
    parts = ((two, Linear()), (three, Linear()), (two, Linear(intercept=False)))
    return [Problem(cost, policy, rows, ball.at(radius)) for cost, policy in parts]


def _forms(ball: AmbiguitySet, radius: float) -> list[AffineForm]:
    return [affine_forms(problem)[0] for problem in _questions(ball, radius)]


def _policies(form: AffineForm) -> list[tuple[FloatArray, float]]:
    rng = np.random.default_rng(1)
    decision = form.constant_order()[0] if form.intercept else 0.0
    return [(share * rng.normal(size=len(form.scale)), decision) for share in (0.0, 0.1, 1.0)]


def _set_grows(ball: AmbiguitySet) -> None:
    """At radius zero the worst case is the nominal cost; it grows with the radius."""
    radii = (0.0, 0.05, 0.2)
    for forms in zip(*(_forms(ball, radius) for radius in radii), strict=True):
        for policy in _policies(forms[0]):
            values = [form.worst_value(*policy)[0] for form in forms]
            nominal = forms[0].mean_cost(forms[0].residuals(*policy))
            _close(values[0], nominal, "the worst case at radius 0 must be the nominal cost")
            ordered = all(b >= a * (1 - SLACK) for a, b in itertools.pairwise(values))
            _demand(ordered, f"the worst case must grow with the radius, got {values}")
            moved = [forms[0].at_radius(radius).worst_value(*policy)[0] for radius in radii]
            _close(moved, values, "a form's at_radius must be the set at that radius")


def _set_atoms(ball: AmbiguitySet) -> None:
    """Atoms are a distribution whose cost is at most the value."""
    for form in _forms(ball, 0.1):
        for policy in _policies(form):
            worst = form.adversary(*policy)
            _close(worst.weights.sum(), 1.0, "the weights of the atoms must sum to one")
            light = bool((worst.weights >= 0).all())
            _demand(light, "the weights of the atoms must not be negative")
            value = form.worst_value(*policy)[0]
            _close(worst.value, value, "adversary and worst_value must agree", 1e-6)
            costs = form.pieces.evaluate(worst.contexts @ policy[0] + policy[1] - worst.outcomes)
            promise = "expected_cost must be that of the atoms"
            _close(worst.weights @ costs, worst.expected_cost, promise, 1e-6)
            most = worst.value * (1 + 1e-6) + SLACK
            _demand(worst.expected_cost <= most, "no atoms may cost more than the value")


def _set_convex(ball: AmbiguitySet) -> None:
    """The worst case is convex in the policy."""
    for form in _forms(ball, 0.1):
        (a, s), (b, t) = _policies(form)[1:]
        ends = form.worst_value(a, s)[0] + form.worst_value(b, t)[0]
        middle = form.worst_value(0.5 * (a + b), 0.5 * (s + t))[0]
        _demand(middle <= 0.5 * ends * (1 + 1e-6), "the worst case must be convex in the policy")


def _set_bounds(ball: AmbiguitySet) -> None:
    """No lower bound, from whatever slopes, is above the worst case of a policy near the best."""
    rng = np.random.default_rng(2)
    for problem in _questions(ball, 0.1):
        (form,), solution = affine_forms(problem), _solved(DASGD(max_steps=BEST_STEPS), problem, 0)
        linear: Any = solution.parameters  # of a linear policy
        best = form_policies((form,), linear)[0]
        value = min(form.worst_value(*policy)[0] for policy in [best, *_policies(form)])
        many = rng.uniform(-form.pieces.down, form.pieces.up, (5, len(form.outcomes)))
        at_best = form.pieces.slope_at(form.residuals(*best))
        bounds = [form.lower_bound(slopes) for slopes in (*many, at_best, form.constant_order()[1])]
        bound = max(*bounds, solution.certificate.lower / form.value_unit)
        _demand(
            bound <= value * (1 + SLACK) + SLACK,
            f"a lower bound of {bound} is above the worst case {value} of a policy",
        )


_set_checks = (_frozen, _saved, _set_grows, _set_atoms, _set_convex, _set_bounds)


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


def _solved(solver: Solver, problem: Problem, seed: int) -> Solution:
    """Return the answer; that it is not good enough is no fault of its form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solver.solve(problem, seed)


def _solver_answers(solver: Solver) -> None:
    """The answer is a Solution that depends on the problem and the seed alone."""
    X = _rows(n=30)[0]
    for problem in _problems(solver):
        solution, again = _solved(solver, problem, 3), _solved(solver, problem, 3)
        _demand(
            isinstance(solution, Solution),
            f"solve must return a Solution, got {type(solution).__name__}",
        )
        _demand(bool(solution.status), "status must be a sentence")
        _close(
            problem.policy.decide(solution.parameters, X), problem.policy.decide(again.parameters, X),
            "the answer must depend on the problem and the seed alone",
        )  # fmt: skip


def _solver_certificate(solver: Solver) -> None:
    """The certificate is true: of the policy returned, of a better one, and of its own bounds."""
    for problem in _problems(solver):
        solution = _solved(solver, problem, 3)
        worst = adversary_of(problem, solution.parameters).value
        upper, lower = solution.certificate.upper, solution.certificate.lower
        _demand(
            upper >= worst * (1 - 1e-6),
            f"the certificate says at most {upper}, the worst case is {worst}",
        )
        if solution.certificate.kind == "estimate":
            continue
        best = min(worst, _solved(Exact(), problem, 0).certificate.upper)
        _demand(
            lower <= best * (1 + 1e-6),
            f"the certificate says no policy is below {lower}, and one has a worst case of {best}",
        )
        floor = sum(form.gap_floor * form.value_unit for form in affine_forms(problem))
        gap, tolerance = solution.certificate.gap, getattr(solver, "gap_tol", None)
        _close(gap, relative_gap(upper, lower, floor), "the gap must be that of the bounds", 1e-6)
        if tolerance is not None and solution.converged is not None:
            _demand(
                solution.converged == (gap <= tolerance),
                f"converged must be whether the gap {gap} is within gap_tol, got {solution.converged}",
            )


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


_solver_checks = (_frozen, _saved, _solver_answers, _solver_certificate, _solver_refuses)
