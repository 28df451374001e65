"""Many problems at once: radii, folds, seeds and data sets of different sizes."""

import importlib
import os
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from surefoot.engines.constants import AVERAGE_EVERY
from surefoot.engines.twin import initial_state
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.policies import Policy
from surefoot.problem import (
    AffineProblem,
    Problem,
    affine_problems,
    general_problem,
    why_not_affine,
)
from surefoot.random import rng_for
from surefoot.solvers.adaptive import Arrangement
from surefoot.solvers.base import AffineSolution, Solution, Solver, assemble
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.general import solve_general
from surefoot.tracing import keep_compiled, load_jax
from surefoot.typing import FloatArray
from surefoot.validation import check_choice, check_instance, check_integer

# Steps of a batch where the solver sets none; the paper's own number.
BATCH_STEPS = 10_000


def solve_many(
    problems: Sequence[Problem],
    solver: Solver | None = None,
    *,
    seeds: int | Sequence[int] = 0,
    engine: str = "auto",
) -> list[Solution]:
    """Solve problems side by side; answers come in the order of the problems.

    Problems may differ in radius, data, number of rows and seed. General problems that share cost,
    policy, order and sizes step together in one compiled program. Affine problems run one by one on
    all cores, each to its certified gap, or together on a GPU.

    Parameters
    ----------
    problems
        Any problems that the solver can treat.
    solver
        ``DASGD()`` by default.
    seeds
        One for all, or one for each problem.
    engine
        For affine problems. "threads": compiled kernels on all cores. "batch": plain DA-SGD for
        ``max_steps`` (10,000 by default) steps of all problems in one JAX program, on a GPU if JAX
        has one. "auto": "batch" on a GPU, "threads" elsewhere.

    Examples
    --------
    >>> from surefoot import Problem, WassersteinBall, solve_many
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.datasets import synthetic
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> data = synthetic(n=50, s=10, seed=0)
    >>> path = [Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(data.X, data.y), WassersteinBall(r))
    ...         for r in (0.0, 0.1, 0.3)]
    >>> worst = [solution.certificate.upper for solution in solve_many(path)]
    >>> worst == sorted(worst)  # the worst case grows with the radius
    True
    """
    solver = DASGD() if solver is None else solver
    check_choice("engine", engine, ("auto", "threads", "batch"))
    problems = list(problems)
    listed = _one_seed_each(seeds, len(problems))
    for problem in problems:
        check_instance("problems", problem, Problem, "a sequence of Problem(...)")
        solver.refuse_unless_fit(problem)
    # What a solver other than DASGD accepts has an affine form.
    affine = [k for k, p in enumerate(problems) if not isinstance(solver, DASGD) or solver.compiled(p)]
    answers: dict[int, Solution] = {}
    together = _together(engine, solver, problems, affine)
    if together and isinstance(solver, DASGD):
        answers |= _solve_batch(problems, together, solver, listed)
    one_by_one = sorted(set(affine) - set(together))
    # Problems are small: a product of matrices that itself takes all cores would only be in the way.
    with (
        threadpool_limits(1 if len(one_by_one) > 1 else None, user_api="blas"),
        ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool,
    ):
        found = pool.map(lambda k: solver.solve(problems[k], listed[k]), one_by_one)
        answers |= dict(zip(one_by_one, found, strict=True))
    general = sorted(set(range(len(problems))) - set(affine))
    if general:
        answers |= _solve_general(problems, general, solver, listed)
    return [answers[k] for k in range(len(problems))]


def _one_seed_each(seeds: int | Sequence[int], count: int) -> list[int]:
    listed = [int(seeds)] * count if isinstance(seeds, int | np.integer) else list(seeds)
    if len(listed) != count:
        raise InvalidInputError(
            f"seeds must be one number or one per problem ({count}), got {len(listed)}."
        )
    return [check_integer("seeds", seed, at_least=0) for seed in listed]


def _together(engine: str, solver: Solver, problems: list[Problem], affine: list[int]) -> list[int]:
    """Return the affine problems that step together: all if asked, those that can on a GPU."""
    if engine == "batch" and not isinstance(solver, DASGD):
        raise UnsupportedProblemError(
            f"engine='batch' runs plain DA-SGD, got the solver {type(solver).__name__}: use "
            "engine='threads'."
        )
    if engine == "batch":
        return affine
    if engine == "threads" or not isinstance(solver, DASGD) or not _has_gpu():
        return []
    return [k for k in affine if _can_batch(problems[k])]


def _has_gpu() -> bool:
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        return False
    return bool(jax.default_backend() == "gpu")


def _can_batch(problem: Problem) -> bool:
    if why_not_affine(problem) is not None:
        return False
    return all(why_not_batch(product) is None for product in affine_problems(problem))


def _solve_general(
    problems: list[Problem], chosen: list[int], solver: Solver, seeds: list[int]
) -> dict[int, Solution]:
    """Group problems that can share compiled code, and solve each group in one go."""
    if not isinstance(solver, DASGD):
        raise UnsupportedProblemError(
            f"{type(solver).__name__} cannot solve this: the problem is not affine; use DASGD()."
        )
    groups: dict[Hashable, list[int]] = {}
    forms = {k: general_problem(problems[k], seeds[k]) for k in chosen}
    for k, form in forms.items():
        key = (
            form.cost, _without_features(form.policy), form.order, form.outcomes_move,
            form.contexts.shape[1], form.outcomes.shape[1],
        )  # fmt: skip
        groups.setdefault(key, []).append(k)
    answers: dict[int, Solution] = {}
    for members in groups.values():
        found = solve_general(
            [forms[k] for k in members], solver.general_settings(), [seeds[k] for k in members],
            gap_tol=solver.gap_tol, callback=solver.callback,
        )  # fmt: skip
        answers |= dict(zip(members, found, strict=True))
    return answers


def _without_features(policy: Policy) -> Policy:
    return replace(policy, features=None)


def why_not_batch(problem: AffineProblem) -> str | None:
    """Return why an affine problem cannot join a batch, or None."""
    if problem.boxed or problem.pieces.smoothing > 0:
        return "a batch has no box support and no smoothed cost; use engine='threads'"
    if not problem.movable.all():
        return "a batch has no frozen or constant columns; use engine='threads'"
    return None


def _solve_batch(
    problems: list[Problem], chosen: list[int], solver: DASGD, seeds: list[int]
) -> dict[int, Solution]:
    """Run plain DA-SGD on all products of all problems together, and certify each."""
    steps = solver.max_steps or BATCH_STEPS
    forms = {k: affine_problems(problems[k]) for k in chosen}
    products = [(k, j) for k in chosen for j in range(len(forms[k]))]
    groups: dict[Hashable, list[tuple[int, int]]] = {}
    for k, j in products:
        reason = why_not_batch(forms[k][j])
        if reason is not None:
            raise UnsupportedProblemError(f"solve_many cannot batch problem {k}: {reason}.")
        groups.setdefault((forms[k][j].order, forms[k][j].intercept), []).append((k, j))
    found: dict[tuple[int, int], AffineSolution] = {}
    for members in groups.values():
        batch = AffineBatch([forms[k][j] for k, j in members])
        rngs = [rng_for(seeds[k], "batch", j) for k, j in members]
        batch.run(batch.draw(rngs, steps // 2), average=False)
        batch.run(batch.draw(rngs, steps - steps // 2), average=True)
        found |= dict(zip(members, batch.solutions(), strict=True))
    return {
        k: assemble(
            forms[k], tuple(found[k, j] for j in range(len(forms[k]))),
            gap_tol=solver.gap_tol, advice="raise max_steps, loosen gap_tol or use engine='threads'.",
        )
        for k in chosen
    }  # fmt: skip


class AffineBatch:
    """Affine problems of one order, with or without intercept, stepping together."""

    def __init__(self, problems: Sequence[AffineProblem], dtype: Any = np.float64) -> None:
        self.jax = load_jax("A batch of problems")
        keep_compiled(self.jax)
        self.engine = importlib.import_module("surefoot.engines.affine_batch")
        self.problems = list(problems)
        self.arrangements = [Arrangement.of(problem) for problem in self.problems]
        self.steps = 0
        with self.jax.enable_x64(True):
            self.instances = self._instances(dtype)
            self.state = self._start(dtype)

    def _instances(self, dtype: Any) -> Any:
        rows = max(len(problem.outcomes) for problem in self.problems)
        gram = np.zeros((len(self.problems), rows, rows), dtype=dtype)
        outcomes = np.zeros((len(self.problems), rows), dtype=dtype)
        for k, arrangement in enumerate(self.arrangements):
            contexts = arrangement.problem.contexts
            gram[k, : len(contexts), : len(contexts)] = contexts @ contexts.T
            outcomes[k, : len(contexts)] = arrangement.problem.outcomes
        jnp = self.jax.numpy
        numbers = {
            "up": [p.pieces.up for p in self.problems],
            "down": [p.pieces.down for p in self.problems],
            "radius": [p.radius for p in self.problems],
            "pull": [p.outcome_pull for p in self.problems],
        }
        return self.engine.Instances(
            gram=jnp.asarray(gram),
            outcomes=jnp.asarray(outcomes),
            **{name: jnp.asarray(values, dtype=dtype) for name, values in numbers.items()},
        )

    def _start(self, dtype: Any) -> Any:
        jnp = self.jax.numpy
        states = [initial_state(arrangement.problem) for arrangement in self.arrangements]
        wide = jnp.zeros(self.instances.outcomes.shape, dtype=dtype)
        zero = jnp.zeros(len(states), dtype=dtype)

        def each(name: str) -> Any:
            return jnp.asarray([getattr(state, name) for state in states], dtype=dtype)

        return self.engine.BatchState(
            coefficients=wide, decisions=wide, average=wide, average_intercept=zero,
            slope_sums=wide, visits=wide,
            intercept=each("intercept"), start=each("start"), squared=zero,
            square_slope=each("square_slope"), travelled=each("travelled"),
            intercept_travelled=each("intercept_travelled"),
            squares=zero, intercept_squares=zero, steps=zero,
        )  # fmt: skip

    def draw(self, rngs: Sequence[np.random.Generator], steps: int) -> FloatArray:
        """Draw row numbers, shape (steps, problems); steps are rounded up to whole groups."""
        count = -(-steps // AVERAGE_EVERY) * AVERAGE_EVERY
        columns = [
            rng.choice(len(p.outcomes), size=count, p=p.weights)
            for p, rng in zip(self.problems, rngs, strict=True)
        ]
        return np.stack(columns, axis=1).astype(np.int32)

    def run(self, draws: Any, *, average: bool) -> None:
        """Take one step of every problem for each row of draws."""
        first = self.problems[0]
        compiled = self.engine.compiled_batch(first.order, intercept=first.intercept, average=average)
        with self.jax.enable_x64(True):
            self.state = compiled(self.state, self.jax.numpy.asarray(draws), self.instances)
        self.steps += len(draws)
        self.averaged = len(draws) // AVERAGE_EVERY if average else 0

    def solutions(self) -> list[AffineSolution]:
        """Return the average policy of each problem, or where it stands if nothing was averaged."""
        count = self.averaged
        wide = np.asarray(self.state.average) / count if count else np.asarray(self.state.coefficients)
        intercepts = np.asarray(self.state.average_intercept if count else self.state.intercept)
        sums, visits = np.asarray(self.state.slope_sums), np.asarray(self.state.visits)
        answers = []
        for k, arrangement in enumerate(self.arrangements):
            arranged, original = arrangement.problem, self.problems[k]
            contexts = arranged.contexts
            theta, intercept = arrangement.original(
                contexts.T @ wide[k, : len(contexts)].astype(np.float64),
                float(intercepts[k]) / max(count, 1),
            )
            up, down = original.pieces.up, original.pieces.down
            slopes = np.where(original.residuals(theta, intercept) >= 0, up, -down)
            rows = slice(0, len(contexts))
            seen = visits[k, rows] > 0
            slopes = np.where(seen, sums[k, rows] / np.maximum(visits[k, rows], 1.0), slopes)
            answers.append(AffineSolution(theta, intercept, slopes, self.steps, "steps"))
        return answers
