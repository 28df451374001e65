"""Run, check, stop: the loop that solvers of single products share.

The loop trusts nothing that a run says of itself. It takes the run's policy and slopes, has the
certificate bound them, keeps the best of each, and stops on the bounds alone.
"""

import math
import time
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from surefoot.ambiguity import AffineForm, JointForm
from surefoot.certificates import relative_gap
from surefoot.engines.affine_lane import TARGET_SHARE
from surefoot.engines.affine_proof import FIRST_PASSES, FIRST_STEPS, draw_rows
from surefoot.solvers.base import Callback, ProductAnswer, Progress
from surefoot.typing import FloatArray, IntArray


class Run(Protocol):
    """Something that takes steps and can be asked where it stands."""

    steps: int

    @property
    def slopes(self) -> Any:
        """Slopes of the rows, or a plan of the adversary: what a lower bound is proved from."""

    @property
    def form(self) -> AffineForm | JointForm:
        """What is solved."""

    def run(self, draws: IntArray) -> None:
        """Take one step per draw."""

    def policy(self) -> tuple[FloatArray, Any]:
        """Return (theta, intercept) where the run stands."""


def draw_blocks(
    form: AffineForm, rng: np.random.Generator, max_draws: int, growth: float
) -> Iterator[IntArray]:
    """Yield blocks of row numbers, ever longer."""
    size = float(max(FIRST_PASSES * len(form.weights), FIRST_STEPS))
    taken = 0
    while taken < max_draws:
        count = min(math.ceil(size), max_draws - taken)
        yield draw_rows(form.weights, rng, count)
        taken += count
        size *= growth


def run_until(
    run: Run,
    blocks: Iterator[IntArray],
    *,
    gap_tol: float,
    callback: Callback | None = None,
) -> ProductAnswer:
    """Continue a run until its certified gap is small enough or the blocks are spent."""
    form, unit = run.form, run.form.value_unit
    began, first, floor = time.perf_counter(), run.steps, form.gap_floor
    policy, slopes = form.start()
    upper = form.worst_value(*policy)[0]
    lower = form.lower_bound(slopes)

    def look() -> None:
        nonlocal upper, policy, lower, slopes
        tried = run.policy()
        value = form.worst_value(*tried)[0]
        if value < upper:
            upper, policy = value, tried
        bound = form.lower_bound(run.slopes)
        if bound > lower:
            lower, slopes = bound, run.slopes.copy()

    if run.steps > 0:  # continued from another radius: where it stands may already do
        look()
    history: list[Progress] = []
    interrupted = False
    try:
        while True:
            gap = relative_gap(upper, lower, floor)
            seconds = time.perf_counter() - began
            history.append(Progress(run.steps - first, unit * upper, unit * lower, gap, seconds))
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
        interrupted = True
    return ProductAnswer(form, *policy, slopes, run.steps - first, interrupted, tuple(history))
