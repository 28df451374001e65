"""Many problems at once: radii, folds, seeds and data sets of different sizes."""

import math
import os
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from surefoot.certificates import make_certificate
from surefoot.costs import Pieces
from surefoot.engines.choice import steps_together
from surefoot.engines.lockstep import solve_in_lockstep
from surefoot.engines.problem_batch import BatchReply, plain_lines, solve_batch
from surefoot.engines.row_draws import generator_words
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.problem import Problem
from surefoot.random import rng_for
from surefoot.solvers.base import Progress, Solution, Solver, sentence
from surefoot.solvers.choice import solver_for
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.primal_dual import PrimalDual
from surefoot.validation import check_choice, check_instance, check_integer

# Fewer problems are solved one by one: compiling a loop over them (once on a machine) takes longer.
FEWEST = 16


def solve_many(
    problems: Sequence[Problem],
    solver: Solver | None = None,
    *,
    seeds: int | Sequence[int] = 0,
    engine: str = "auto",
) -> list[Solution]:
    """Solve problems side by side; answers come in the order of the problems.

    Problems may differ in radius, data, number of rows and seed. Small affine problems run in one
    compiled loop on all cores, each to its certified gap, with the draws and the answer (but for
    rounding) that it would have alone; others run one by one, or step together in one program where
    they share what compiled code is made for.

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
    problems = list(problems)
    listed = _one_seed_each(seeds, len(problems))
    for problem in problems:
        check_instance("problems", problem, Problem, "a sequence of Problem(...)")
    if engine == "batch" and not _may_be_packed(solver):
        raise UnsupportedProblemError(
            "engine='batch' needs the solver PrimalDual without a callback, or none, got "
            f"{solver!r}: use engine='threads'."
        )
    lines = _lines(problems, packed=_may_be_packed(solver))
    packing = PrimalDual() if solver is None else solver
    solvers = [
        packing if pieces is not None else solver_for(problem, solver)
        for problem, pieces in zip(problems, lines, strict=True)
    ]
    answers: dict[int, Solution] = {}
    if engine == "batch":
        answers |= _solve_packed(problems, lines, solvers, listed, lockstep=True)
    for k in answers:
        lines[k] = None
    answers |= _solve_packed(problems, lines, solvers, listed, lockstep=False)
    groups: dict[Hashable, list[int]] = {}
    for k in sorted(set(range(len(problems))) - set(answers)):
        groups.setdefault(_kind(k, problems[k], solvers[k]), []).append(k)
    if not groups:
        return [answers[k] for k in range(len(problems))]
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
    if isinstance(seeds, int | np.integer):
        return [check_integer("seeds", int(seeds), at_least=0)] * count
    listed = list(seeds)
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


def _may_be_packed(solver: Solver | None) -> bool:
    """Whether a solver is the one whose compiled loop over problems there is, and nobody watches it."""
    return solver is None or (type(solver) is PrimalDual and solver.callback is None)


def _lines(problems: list[Problem], *, packed: bool) -> list[Pieces | None]:
    """Return the lines of the problems that the compiled loop takes, None for all if they are few."""
    lines = plain_lines(problems) if packed else []
    few = sum(pieces is not None for pieces in lines) < FEWEST
    return [None] * len(problems) if few else lines


def _solve_packed(
    problems: list[Problem],
    lines: list[Pieces | None],
    solvers: list[Solver],
    seeds: list[int],
    *,
    lockstep: bool,
) -> dict[int, Solution]:
    """Solve what one compiled loop takes, in turn or in lockstep; what it leaves open is left out."""
    chosen = [k for k, pieces in enumerate(lines) if pieces is not None]
    if not chosen:
        return {}
    solver = solvers[chosen[0]]  # the same for all
    assert isinstance(solver, PrimalDual)
    asked = [problems[k] for k in chosen], [pieces for pieces in lines if pieces is not None]
    replies: Iterable[BatchReply | None]
    if lockstep:
        replies = solve_in_lockstep(*asked, gap_tol=solver.gap_tol, max_steps=solver.max_steps)
    else:
        distinct, which = np.unique([seeds[k] for k in chosen], return_inverse=True)
        words = np.stack([generator_words(rng_for(int(seed), "dasgd", "0")) for seed in distinct])
        replies = solve_batch(
            *asked, words[which],
            gap_tol=solver.gap_tol, max_steps=solver.max_steps, growth=solver.growth,
        )  # fmt: skip
    return {
        k: _packed_solution(solver, reply)
        for k, reply in zip(chosen, replies, strict=True)
        if reply is not None
    }


def _packed_solution(solver: PrimalDual, reply: BatchReply) -> Solution:
    """Return what the compiled loop found; it does not look at a clock."""
    certificate = make_certificate(reply.upper, reply.lower, reply.floor, "exact")
    share = f"certified gap {100 * certificate.gap:.2g} %, tolerance {100 * solver.gap_tol:.2g} %"
    return Solution(
        parameters=reply.parameters,
        multiplier=np.array([reply.multiplier]),
        certificate=certificate,
        converged=True,
        status=sentence(type(solver).__name__, reply.steps, share, True),
        n_steps=reply.steps,
        history=tuple(
            [
                Progress(int(steps), upper, lower, gap, math.nan)
                for steps, upper, lower, gap in reply.looks.tolist()
            ]
        ),
    )
