"""Many problems at once: radii, folds, seeds and data sets of different sizes."""

import importlib
import os
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from surefoot.ambiguity import WassersteinForm
from surefoot.engines.affine_lanes import AffineBatch, why_not_batch
from surefoot.engines.choice import steps_together
from surefoot.engines.engine import Options
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.problem import Problem, affine_forms
from surefoot.random import rng_for
from surefoot.solvers.base import ProductAnswer, Solution, Solver, assemble
from surefoot.solvers.choice import default_solver
from surefoot.solvers.dasgd import DASGD
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

    Problems may differ in radius, data, number of rows and seed. Problems that share what compiled code
    is made for step together in one program. Affine problems run one by one on all cores, each to its
    certified gap, or together on a GPU.

    Parameters
    ----------
    problems
        Any problems that the solver can treat.
    solver
        None takes the quickest that can certify, for each problem.
    seeds
        One for all, or one for each problem.
    engine
        For affine problems. "threads": compiled kernels on all cores. "batch": plain DA-SGD for
        ``max_steps`` (10,000 by default) steps of all problems in one JAX program, on a GPU if JAX
        has one. "auto": "batch" on a GPU, and what is then not within tolerance by "threads";
        "threads" elsewhere.

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
    check_choice("engine", engine, ("auto", "threads", "batch"))
    problems = list(problems)
    listed = _one_seed_each(seeds, len(problems))
    for problem in problems:
        check_instance("problems", problem, Problem, "a sequence of Problem(...)")
    solvers = [default_solver(p) if solver is None else solver for p in problems]
    for problem, own in zip(problems, solvers, strict=True):
        own.refuse_unless_fit(problem)
    answers: dict[int, Solution] = {}
    together = _together(engine, solver, problems)
    if together:
        batch = solver if isinstance(solver, DASGD) else DASGD()
        answers |= _solve_batch(problems, together, batch, listed, final=engine == "batch")
        if engine == "auto":  # never a worse answer than the other engine would give
            answers = {k: answer for k, answer in answers.items() if answer.converged}
    groups: dict[Hashable, list[int]] = {}
    for k in sorted(set(range(len(problems))) - set(answers)):
        groups.setdefault(_kind(k, problems[k], solvers[k]), []).append(k)
    # Problems are small: a product of matrices that itself takes all cores would only be in the way.
    with (
        threadpool_limits(1 if len(groups) > 1 else None, user_api="blas"),
        ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool,
    ):
        found = pool.map(
            lambda members: solvers[members[0]].solve_together(
                [problems[k] for k in members], [listed[k] for k in members]
            ),
            groups.values(),
        )
        for members, solutions in zip(groups.values(), found, strict=True):
            answers |= dict(zip(members, solutions, strict=True))
    return [answers[k] for k in range(len(problems))]


def _one_seed_each(seeds: int | Sequence[int], count: int) -> list[int]:
    listed = [int(seeds)] * count if isinstance(seeds, int | np.integer) else list(seeds)
    if len(listed) != count:
        raise InvalidInputError(
            f"seeds must be one number or one per problem ({count}), got {len(listed)}."
        )
    return [check_integer("seeds", seed, at_least=0) for seed in listed]


def _kind(number: int, problem: Problem, solver: Solver) -> Hashable:
    """Return what problems must share to step in one program; affine ones go by themselves."""
    if not isinstance(solver, DASGD) or not steps_together(problem, solver.options):
        return number
    policy, ball = problem.policy, problem.ball
    shape = policy.transform(np.zeros((1, problem.nominal.n_columns))).shape[1]
    return (
        problem.cost, replace(policy, features=None), ball.at(0.0), shape,
        problem.nominal.n_products, solver,
    )  # fmt: skip


def _together(engine: str, solver: Solver | None, problems: list[Problem]) -> list[int]:
    """Return the affine problems that step together: all if asked, those that can on a GPU."""
    options = solver.options if isinstance(solver, DASGD) else Options()
    if engine == "batch":
        if solver is not None and not isinstance(solver, DASGD):
            raise UnsupportedProblemError(
                f"engine='batch' runs plain DA-SGD, got the solver {type(solver).__name__}: use "
                "engine='threads'."
            )
        return [k for k, p in enumerate(problems) if not steps_together(p, options)]
    if engine == "threads" or (solver is not None and not isinstance(solver, DASGD)) or not _has_gpu():
        return []
    return [k for k, problem in enumerate(problems) if _can_batch(problem, options)]


def _has_gpu() -> bool:
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        return False
    return bool(jax.default_backend() == "gpu")


def _can_batch(problem: Problem, options: Options) -> bool:
    if steps_together(problem, options) or not isinstance(problem.nominal, Empirical):
        return False
    return all(why_not_batch(form) is None for form in affine_forms(problem))


def _solve_batch(
    problems: list[Problem], chosen: list[int], solver: DASGD, seeds: list[int], *, final: bool
) -> dict[int, Solution]:
    """Run plain DA-SGD on all products of all problems together, and certify each."""
    steps = solver.max_steps or BATCH_STEPS
    forms: dict[int, list[WassersteinForm]] = {k: [] for k in chosen}
    groups: dict[Hashable, list[tuple[int, int]]] = {}
    for k in chosen:
        for j, form in enumerate(affine_forms(problems[k])):
            reason = why_not_batch(form)
            if reason is not None or not isinstance(form, WassersteinForm):
                raise UnsupportedProblemError(f"solve_many cannot batch problem {k}: {reason}.")
            forms[k].append(form)
            groups.setdefault((form.order, form.intercept), []).append((k, j))
    found: dict[tuple[int, int], ProductAnswer] = {}
    for members in groups.values():
        batch = AffineBatch([forms[k][j] for k, j in members])
        rngs = [rng_for(seeds[k], "batch", j) for k, j in members]
        batch.run(batch.draw(rngs, steps // 2), average=False)
        batch.run(batch.draw(rngs, steps - steps // 2), average=True)
        for (k, j), (policy, slopes) in zip(members, batch.answers(), strict=True):
            found[k, j] = ProductAnswer(forms[k][j], *policy, slopes, batch.steps)
    advice = "raise max_steps, loosen gap_tol or use engine='threads'."
    return {
        k: assemble(
            solver, [found[k, j] for j in range(len(forms[k]))], gap_tol=solver.gap_tol, advice=advice,
            warn=final,
        )
        for k in chosen
    }  # fmt: skip
