"""Many problems at once: radii, folds, seeds and data sets of different sizes."""

import os
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from surefoot.engines.choice import steps_together
from surefoot.engines.lockstep import solve_in_lockstep
from surefoot.engines.problem_batch import PlainProblems, plain_problems, solve_batch
from surefoot.engines.row_draws import generator_words
from surefoot.exceptions import UnsupportedProblemError
from surefoot.problem import Problem
from surefoot.random import rng_for
from surefoot.solvers.base import Solution, Solver, listed_problems, seed_for_each
from surefoot.solvers.choice import solver_for
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.primal_dual import PrimalDual
from surefoot.solvers.solutions import Batch, Solutions
from surefoot.validation import check_choice, check_instance

# Fewer problems are solved one by one: compiling a loop over them (once on a machine) takes longer.
FEWEST = 16


def solve_many(
    problems: Sequence[Problem],
    solver: Solver | None = None,
    *,
    seeds: int | Sequence[int] = 0,
    engine: str = "auto",
) -> Solutions:
    """Solve problems side by side; answers come in the order of the problems.

    Problems may differ in radius, data, number of rows and seed. Small affine problems run in one
    compiled loop on all cores, each to its certified gap, with the draws and the answer (but for
    rounding) that it would have alone; others run one by one, or step together in one program where
    they share what compiled code is made for. The answer reads like a list of ``Solution``, and has
    bounds and parameters of all problems as arrays.

    Parameters
    ----------
    problems
        Any problems that the solver can treat.
    solver
        None takes the quickest that can certify, for each problem.
    seeds
        One for all, or one for each problem.
    engine
        For small affine problems. "threads": compiled kernels on all cores. "batch": all of them step
        together in one JAX program, on a GPU if JAX has one, each to the same certified gap; needs
        ``PrimalDual`` or no solver. "auto": "threads", also where there is a GPU, because a program has
        to be compiled first.

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
    problems = listed_problems(problems)
    listed = seed_for_each(seeds, problems)
    if solver is not None:
        check_instance("solver", solver, Solver, "a solver such as PrimalDual(), or None")
    packing = _packing(solver)
    if engine == "batch" and packing is None:
        raise UnsupportedProblemError(
            "engine='batch' needs the solver PrimalDual without a callback, or none, got "
            f"{solver!r}: use engine='threads'."
        )
    plain = _plain(problems, packing)
    # What no solver can treat is refused before any work.
    solvers = {k: solver_for(problems[k], solver) for k in _others(len(problems), [plain])}
    batches = _solve_packed(plain, packing, listed, lockstep=engine == "batch")
    own = PrimalDual() if solver is None else solver  # of what the compiled loop leaves open
    left = {k: solvers.get(k, own) for k in _others(len(problems), batches)}
    return Solutions(len(problems), _solve_alone(problems, left, listed), batches)


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


def _others(count: int, parts: Iterable[PlainProblems | Batch]) -> list[int]:
    """Return the problems that are in no part."""
    left = np.ones(count, dtype=bool)
    for part in parts:
        left[part.places] = False
    return np.flatnonzero(left).tolist()


def _solve_alone(
    problems: list[Problem], solvers: dict[int, Solver], seeds: list[int]
) -> dict[int, Solution]:
    """Solve problems one by one, or in one program where they share what it is made for."""
    groups: dict[Hashable, list[int]] = {}
    for k, solver in solvers.items():
        groups.setdefault(_kind(k, problems[k], solver), []).append(k)
    if not groups:
        return {}
    answers: dict[int, Solution] = {}
    # Problems are small: a product of matrices that itself takes all cores would only be in the way.
    with (
        threadpool_limits(1 if len(groups) > 1 else None, user_api="blas"),
        ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool,
    ):
        by_group = pool.map(
            lambda members: solvers[members[0]].solve_together(
                [problems[k] for k in members], [seeds[k] for k in members]
            ),
            groups.values(),
        )
        for members, solutions in zip(groups.values(), by_group, strict=True):
            answers |= dict(zip(members, solutions, strict=True))
    return answers


def _packing(solver: Solver | None) -> PrimalDual | None:
    """Return the solver whose compiled loop over problems there is, if nobody watches it."""
    if solver is None:
        return PrimalDual()
    return solver if type(solver) is PrimalDual and solver.callback is None else None


def _plain(problems: list[Problem], solver: PrimalDual | None) -> PlainProblems:
    """Return the problems that the compiled loop takes; none if they are few."""
    if solver is None:
        return plain_problems([], 0.0, 0)
    plain = plain_problems(problems, solver.gap_tol, solver.max_steps)
    return plain if len(plain.places) >= FEWEST else plain.some([])


def _solve_packed(
    plain: PlainProblems, solver: PrimalDual | None, seeds: list[int], *, lockstep: bool
) -> list[Batch]:
    """Solve what one compiled loop takes, in lockstep first if asked, and say what was solved."""
    batches: list[Batch] = []
    if solver is None or not len(plain.places):
        return batches
    if lockstep:
        left = np.ones(len(plain.places), dtype=bool)
        for members, replies in solve_in_lockstep(plain, solver.max_steps):
            batches.append(Batch.solved(solver, plain.places[members], replies))
            left[members] = ~replies.records["solved"]
        plain = plain.some(np.flatnonzero(left).tolist())
        if not left.any():
            return batches
    distinct, which = np.unique(np.array(seeds)[plain.places], return_inverse=True)
    words = np.stack([generator_words(rng_for(int(seed), "dasgd", "0")) for seed in distinct])
    replies = solve_batch(plain, words[which], solver.growth)
    return [*batches, Batch.solved(solver, plain.places, replies)]
