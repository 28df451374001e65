"""Run, check, stop: the loop that every iterative solver shares.

The loop trusts nothing that a run says of itself. It takes the run's policy and slopes, has the
certificate bound them, keeps the best of each, and stops on the bounds alone.
"""

import math
import time
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from surefoot.certificates import gap_floor, lower_bound, relative_gap, worst_case_value
from surefoot.problem import AffineProblem
from surefoot.solvers.base import AffineSolution, Callback, Progress
from surefoot.typing import FloatArray, IntArray

# The first check comes after this many passes over the rows, and at least so many steps.
FIRST_PASSES, FIRST_STEPS = 2, 2_000
# Stop at this share of the tolerance: the extra passes are few, and then the certified gap is close
# to the true one instead of just under the tolerance.
TARGET_SHARE = 0.5
# Blocks between checks grow by this factor. Memory converges geometrically, so it is checked often;
# plain DA-SGD averages over its newest block, which must outweigh all blocks before it.
MEMORY_GROWTH, PLAIN_GROWTH = 1.2, 2.0


class Run(Protocol):
    """Something that takes steps and can be asked where it stands."""

    problem: AffineProblem
    slopes: FloatArray
    steps: int

    def run(self, draws: IntArray) -> None:
        """Take one step per draw."""

    def policy(self) -> tuple[FloatArray, float]:
        """Return (theta, intercept) where the run stands."""


def draw_blocks(
    problem: AffineProblem, rng: np.random.Generator, max_draws: int, growth: float
) -> Iterator[IntArray]:
    """Yield blocks of row numbers, ever longer: shuffled passes, or draws by weight if unequal."""
    n = len(problem.weights)
    equal = np.ptp(problem.weights) <= 1e-12 * problem.weights[0]
    size = float(max(FIRST_PASSES * n, FIRST_STEPS))
    taken = 0
    while taken < max_draws:
        count = min(math.ceil(size), max_draws - taken)
        if equal:
            passes = np.tile(np.arange(n), (math.ceil(count / n), 1))
            draws = rng.permuted(passes, axis=1).reshape(-1)[:count]
        else:
            draws = rng.choice(n, size=count, p=problem.weights)
        yield draws
        taken += count
        size *= growth


def run_until(
    run: Run,
    blocks: Iterator[IntArray],
    *,
    gap_tol: float,
    callback: Callback | None = None,
) -> AffineSolution:
    """Continue a run until its certified gap is small enough or the blocks are spent."""
    problem = run.problem
    began, first, floor = time.perf_counter(), run.steps, gap_floor(problem)
    decision, slopes = problem.constant_order()
    policy = (np.zeros(len(problem.movable)), decision if problem.intercept else 0.0)
    upper = worst_case_value(problem, *policy)[0]
    lower = lower_bound(problem, slopes)

    def look() -> None:
        nonlocal upper, policy, lower, slopes
        tried = run.policy()
        value = worst_case_value(problem, *tried)[0]
        if value < upper:
            upper, policy = value, tried
        bound = lower_bound(problem, run.slopes)
        if bound > lower:
            lower, slopes = bound, run.slopes.copy()

    if run.steps > 0:  # continued from another radius: where it stands may already do
        look()
    history: list[Progress] = []
    stopped = "steps"
    try:
        while True:
            gap = relative_gap(upper, lower, floor)
            seconds = time.perf_counter() - began
            history.append(Progress(run.steps - first, upper, lower, gap, seconds))
            if callback is not None:
                callback(history[-1])
            if gap <= TARGET_SHARE * gap_tol:
                break
            draws = next(blocks, None)
            if draws is None:
                break
            run.run(draws)
            look()
    except KeyboardInterrupt:
        stopped = "interrupt"
    if stopped == "steps" and relative_gap(upper, lower, floor) <= gap_tol:
        stopped = "gap"
    return AffineSolution(*policy, slopes, run.steps - first, stopped, tuple(history))
