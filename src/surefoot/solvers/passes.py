"""Rows that do not fit into memory: solved on a sample, finished and certified by passes over all."""

import time
from collections.abc import Sequence
from typing import Any

from surefoot.certificates.passes import RowPasses
from surefoot.engines.affine_lane import TARGET_SHARE
from surefoot.engines.newton_passes import MOST_PASSES, NewtonPasses
from surefoot.exceptions import ConvergenceWarning, warn_user
from surefoot.problem import user_parameters
from surefoot.solvers.base import ProductAnswer, Progress, Solution

ADVICE = "loosen gap_tol."


def finish_by_passes(
    solver: Any, passes: RowPasses, sampled: Sequence[ProductAnswer], began: float
) -> Solution:
    """Take answers on a sample to the best policy of all rows, until the gap over all is small enough.

    Parameters
    ----------
    solver
        The one that found the answers, with ``gap_tol`` and ``callback``.
    passes, sampled
        The problem around all rows, and the answers for each product on its sample.
    began
        When the solver started, by ``time.perf_counter``.
    """
    name, gap_tol, callback = type(solver).__name__, solver.gap_tol, solver.callback
    steps = sum(answer.steps for answer in sampled)
    policies = [answer.policy for answer in sampled]
    run = NewtonPasses.start(passes, policies, gap_tol)
    history, interrupted = list[Progress](), any(answer.interrupted for answer in sampled)
    try:
        while run.taken < MOST_PASSES:
            run.take_pass(policies if run.taken == 0 else ())
            proof, seconds = run.certificate(), time.perf_counter() - began
            history.append(Progress(steps + run.taken, proof.upper, proof.lower, proof.gap, seconds))
            if callback is not None:
                callback(history[-1])
            if interrupted or proof.gap <= TARGET_SHARE * gap_tol:
                break
    except KeyboardInterrupt:
        if run.taken == 0:  # nothing is known of all rows yet
            raise
        interrupted = True
    return _solution(name, run, steps, tuple(history), interrupted=interrupted, gap_tol=gap_tol)


def _solution(
    name: str,
    run: NewtonPasses,
    steps: int,
    history: tuple[Progress, ...],
    *,
    interrupted: bool,
    gap_tol: float,
) -> Solution:
    """Return the best policies of the passes, with a sentence on how they ended."""
    passes, certificate = run.passes, run.certificate()
    rows, kept = passes.nominal.n_rows, len(passes.nominal.survey.sample.contexts)
    work = (
        f"{steps:,} steps on {kept:,} rows and {run.taken} pass{'es'[: 2 * (run.taken > 1)]} over all "
        f"{rows:,}"
    )
    share = f"certified gap {100 * certificate.gap:.2g} %, tolerance {100 * gap_tol:.2g} %"
    converged = bool(certificate.gap <= gap_tol)
    if converged:
        status = f"{name} converged after {work} ({share})."
    elif interrupted:
        status = f"{name} was interrupted after {work} ({share}): the best policy so far is returned."
    else:
        status = f"{name} stopped after {work} ({share}): {ADVICE}"
    if not converged:
        warn_user(status, ConvergenceWarning)
    policies = run.policies()
    return Solution(
        parameters=user_parameters(passes.forms, policies),
        multiplier=passes.multipliers([theta for theta, _ in policies]),
        certificate=certificate,
        converged=converged,
        status=status,
        n_steps=steps + run.taken,
        history=history,
    )
