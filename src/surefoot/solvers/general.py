"""Solve problems with any policy and cost in the general engine, one or many side by side."""

import contextlib
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.certificates import MovedRows, certify_general, growth_power
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, UnboundedProblemError
from surefoot.policies import Linear, PolicyParameters
from surefoot.problem import GeneralProblem
from surefoot.solvers.base import Callback, Progress, Solution
from surefoot.solvers.general_run import BLOCK, GeneralRun, GeneralSettings
from surefoot.solvers.judgement import CHECK_ROWS, Judgement
from surefoot.typing import BoolArray, FloatArray

# Looks at the worst case during a run; the last two are compared to say whether it has settled.
CHECKS, FEWEST_CHECKS = 8, 2
# One look costs as much as about so many steps; short runs have fewer.
CHECK_STEPS = 1_000
# Growth is measured between two far moves; a power this much above the order is above it.
POWER_SLACK = 0.25
# From this share of rows with several maximisers on, samples are looked at from both sides.
RESTART_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class GeneralSolution(Solution):
    """A policy of any kind, what is known about it, and where its run stands.

    Attributes
    ----------
    problem
        The problem in the form that was solved.
    trained, auxiliary
        The parameters as the engine has them, and the cost's own variables.
    leaves
        The arrays of the run's state, from which learning can go on.
    non_concave
        Share of rows for which the inner problem is not concave at the multiplier found.
    """

    problem: GeneralProblem = field(repr=False)
    trained: Any = field(repr=False)
    auxiliary: FloatArray = field(repr=False)
    leaves: tuple[FloatArray, ...] = field(repr=False)
    non_concave: float


@dataclass
class _Best:
    """The best policy of each problem so far, by its judged worst case."""

    values: FloatArray
    trained: Any


def solve_general(
    problems: Sequence[GeneralProblem],
    settings: GeneralSettings,
    seeds: Sequence[int],
    *,
    gap_tol: float,
    callback: Callback | None = None,
    stacklevel: int = 3,
) -> list[GeneralSolution]:
    """Run DA-SGD on problems that share a cost, a policy and sizes.

    The run stops after ``max_steps`` steps, on Ctrl-C, or where a number stops being finite; the best
    policy seen is returned in each case.
    """
    run = GeneralRun(problems, settings, seeds)
    sound = run.state  # where the run last had finite numbers in every check
    began, best = time.perf_counter(), None
    history: list[Progress] = []
    blocks = max(1, -(-settings.max_steps // BLOCK))
    count = min(max(settings.max_steps // CHECK_STEPS, FEWEST_CHECKS), CHECKS)
    checks = {round(blocks * (k + 1) / count) for k in range(count)} - {0}
    changes = np.full(len(run.problems), np.inf)
    last: Judgement | None = None
    ended, failed = "steps", None
    try:
        for block in range(1, blocks + 1):
            failed = run.advance(min(BLOCK, settings.max_steps - run.steps))
            if failed is not None:
                ended = "failure"
                break
            if block in checks:
                best, judged = _look(run, best)
                changes, last = _changes(judged, last), judged
                history.append(_progress(run, judged, float(changes.max()), began))
                if callback is not None:
                    callback(history[-1])
                if not np.isfinite(judged.value).all():
                    ended, failed = "failure", run.steps + 1
                    break
                sound = run.state
                if block <= blocks // 2:
                    run.restart_average()
    except KeyboardInterrupt:
        ended = "interrupt"
    if failed == 1:
        raise InvalidInputError(
            "the cost and its derivative must be finite, got NaN or infinity at the first step: check "
            "the cost function and the units of the outcomes."
        )
    stopped = run.candidates()
    if failed is not None:
        run.state = sound
    best, _ = _look(run, best)
    if failed is not None:
        with contextlib.suppress(UnboundedProblemError):  # where it stopped may be anywhere
            best, _ = _look(run, best, stopped)
        run.state = sound
    settled = changes <= gap_tol
    return _finish(run, best, history, ended, failed, settled, stacklevel + 1)


def _changes(judged: Judgement, last: Judgement | None) -> FloatArray:
    """Return how much each problem's worst case changed since the last check.

    It is relative to the worst case or, where that is near zero (a profit that may be a loss), to
    the spread of the costs of single rows.
    """
    if last is None:
        return np.full(len(judged.value), np.inf)
    costs = np.asarray(judged.verdict.cost)
    mean = (judged.weights * costs).sum(axis=1, keepdims=True)
    spread = np.sqrt((judged.weights * (costs - mean) ** 2).sum(axis=1))
    size = np.maximum(np.abs(judged.value), spread)
    return np.abs(judged.value - last.value) / np.where(size > 0.0, size, 1.0)


def _finite_or_worse(values: FloatArray) -> FloatArray:
    """Return judged values with infinity for NaN, so that a policy that ran away is never the best."""
    return np.where(np.isnan(values), np.inf, values)


def _better(run: GeneralRun, best: _Best, rival: _Best) -> _Best:
    """Return the better policy of each problem."""
    better = rival.values < best.values

    def pick(new: Any, old: Any) -> Any:
        shape = (-1, *[1] * (new.ndim - 1))
        return np.where(better.reshape(shape), np.asarray(new), np.asarray(old))

    trained = run.engine.jax.tree.map(pick, rival.trained, best.trained)
    return _Best(np.where(better, rival.values, best.values), trained)


def _last_look(run: GeneralRun, best: _Best) -> tuple[_Best, Judgement]:
    """Judge the best policy closely; on few rows, one that happens to suit them may have won."""
    judged = run.judge(best.trained, last=True)
    if max(len(problem.weights) for problem in run.problems) > CHECK_ROWS:
        best = _Best(_finite_or_worse(judged.value), best.trained)
        for trained in run.candidates():
            values = _finite_or_worse(run.judge(trained, last=True).value)
            best = _better(run, best, _Best(values, trained))
        judged = run.judge(best.trained, last=True)
    return best, judged


def _look(
    run: GeneralRun, best: _Best | None, candidates: list[Any] | None = None
) -> tuple[_Best, Judgement]:
    """Judge where the run stands, remember the best, and set the multiplier to what was found."""
    first: Judgement | None = None
    for trained in candidates or run.candidates():
        judged = run.judge(trained)
        first = first or judged
        values = _finite_or_worse(judged.value)
        if best is None:
            best = _Best(values, trained)
            continue
        best = _better(run, best, _Best(values, trained))
    assert first is not None  # a run always has a candidate
    assert best is not None
    run.set_multiplier(first.multiplier)
    affected = _non_concave(run, first) > RESTART_SHARE
    if affected.any():
        run.use_restarts(affected)
    return best, first


def _non_concave(run: GeneralRun, judged: Judgement) -> FloatArray:
    """Return the share of rows whose inner problem is not concave, for each problem."""
    bend = 2.0 * judged.multiplier[:, None] if run.method.order == 2 else 0.0
    # Rounding leaves a straight cost a trace of curvature.
    curved = np.asarray(judged.verdict.curvature) > bend * (1.0 + 1e-9) + 1e-9
    affected = curved | np.asarray(judged.verdict.several)
    moving = np.array([problem.radius > 0.0 for problem in run.problems])
    return np.where(moving, (judged.weights * affected).sum(axis=1), 0.0)


def _progress(run: GeneralRun, judged: Judgement, change: float, began: float) -> Progress:
    """Return a check of all problems; without a lower bound the gap is the change since the last."""
    upper = float(judged.value.mean())
    lower = run.problems[0].cost.floor()
    return Progress(run.steps, upper, lower, change, time.perf_counter() - began)


def _finish(
    run: GeneralRun, best: _Best, history: list[Progress], ended: str, failed: int | None,
    settled: BoolArray, stacklevel: int,
) -> list[GeneralSolution]:  # fmt: skip
    best, judged = _last_look(run, best)
    shares = _non_concave(run, judged)
    run.state = run.state._replace(trained=run.stacked(best.trained))  # learning goes on from there
    solutions = []
    for number, problem in enumerate(run.problems):
        tree = run.engine.jax.tree.map(lambda leaf, i=number: np.asarray(leaf[i]), best.trained)
        trained = tree["policy"]
        auxiliary = problem.auxiliary[0] + problem.auxiliary[1] * tree["auxiliary"]
        gamma = float(judged.multiplier[number])
        rows = run.moved_rows(judged, number)
        _refuse_unbounded(problem, trained, auxiliary, rows)
        certificate = certify_general(problem, trained, auxiliary, gamma, rows)
        status = _status(run, history, ended, failed, bool(settled[number]), float(shares[number]))
        solutions.append(
            GeneralSolution(
                parameters=_parameters(problem, trained, auxiliary),
                multiplier=np.array([gamma]),
                certificate=certificate,
                converged=bool(settled[number]) and ended == "steps",
                status=status,
                n_steps=run.steps if failed is None else failed - 1,
                history=tuple(history),
                problem=problem,
                trained=trained,
                auxiliary=auxiliary,
                leaves=run.leaves(number),
                non_concave=float(shares[number]),
            )
        )
    unsettled = [solution.status for solution in solutions if not solution.converged]
    if unsettled:
        warnings.warn(unsettled[0], ConvergenceWarning, stacklevel=stacklevel)
    return solutions


def _refuse_unbounded(
    problem: GeneralProblem, trained: Any, auxiliary: FloatArray, rows: MovedRows
) -> None:
    """Raise if the cost outgrows the distance: moving far then pays at any multiplier."""
    power = growth_power(problem, trained, auxiliary, rows) if problem.radius > 0.0 else 0.0
    if power > problem.order + POWER_SLACK:
        raise UnboundedProblemError(
            f"The worst case is unbounded: far away the cost grows with the power {power:.2g} of a "
            f"move, faster than the distance of order {problem.order}. "
            + ("Use order=2, give" if problem.order == 1 and power <= 2.0 + POWER_SLACK else "Give")
            + " the ball a support, or bound the decisions."
        )


def _parameters(problem: GeneralProblem, trained: Any, auxiliary: FloatArray) -> Any:
    policy = problem.policy
    if isinstance(policy, Linear):
        return policy.in_user_units(trained, problem.units.tree())
    return PolicyParameters(trained, problem.units, auxiliary)


def _status(
    run: GeneralRun, history: list[Progress], ended: str, failed: int | None, settled: bool,
    share: float,
) -> str:  # fmt: skip
    steps = f"{run.steps:,} steps"
    change = f"{100 * history[-1].gap:.2g} %" if len(history) > 1 else "an unknown amount"
    if ended == "failure":
        text = (
            f"Stopped at step {failed:,}: the cost or its derivative was NaN or infinite. The best "
            "finite policy is returned; lower the learning rate or check the cost function."
        )
    elif ended == "interrupt":
        text = f"Interrupted after {steps}: the best policy so far is returned."
    elif settled:
        text = f"Settled after {steps} (the worst case changed by {change} at the last check)."
        if run.decays:
            text += " The learning rate fell to zero on schedule: a longer run may still find better."
    else:
        text = (
            f"Ran out of steps after {steps} (the worst case still changed by {change} at the last "
            "check): raise max_steps."
        )
    if share > 0.0:
        text += (
            f" The inner problem is not concave for {100 * share:.2g} % of the rows at this "
            "multiplier: they were searched from two sides, and the certificate is an estimate."
        )
    return text
