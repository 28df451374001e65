"""Drive the kernels without memory: boxes, smoothed costs, minibatches, gradient inner steps."""

import math
from dataclasses import dataclass, replace

import numpy as np

from surefoot.engines import adaptive as slots
from surefoot.engines.adaptive import N_SCALARS, free_steps, gram_steps
from surefoot.engines.general import general_steps
from surefoot.engines.twin import State, initial_state
from surefoot.problem import AffineProblem
from surefoot.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Movable columns first, and centred where an intercept makes that free."""

    problem: AffineProblem
    order: IntArray
    mean: FloatArray

    @classmethod
    def of(cls, problem: AffineProblem, mean: FloatArray | None = None) -> "Arrangement":
        """Arrange the columns of a problem for the kernels, centred on its rows or on ``mean``."""
        order = np.argsort(~problem.movable, kind="stable")
        if mean is None:
            mean = np.zeros(len(order))
            if problem.intercept:
                mean = problem.weights @ problem.contexts
        arranged = replace(
            problem,
            contexts=np.ascontiguousarray((problem.contexts - mean)[:, order]),
            movable=problem.movable[order],
            lower=(problem.lower - mean)[order],
            upper=(problem.upper - mean)[order],
        )
        return cls(arranged, order, mean)

    def original(self, theta: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """Return a policy in the original columns."""
        restored = np.empty_like(theta)
        restored[self.order] = theta
        return restored, float(intercept - self.mean @ restored)

    def arranged(self, theta: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """Return a policy of the original columns in the arranged ones."""
        return theta[self.order], float(intercept + self.mean @ theta)


def pack(state: State) -> FloatArray:
    """Return the running numbers of a state in the order that the kernels use."""
    scalars = np.zeros(N_SCALARS)
    for slot, value in (
        (slots.INTERCEPT, state.intercept),
        (slots.START, state.start),
        (slots.LOG_MULTIPLIER, state.log_multiplier),
        (slots.SQUARE_SLOPE, state.square_slope),
        (slots.TRAVELLED, state.travelled),
        (slots.INTERCEPT_TRAVELLED, state.intercept_travelled),
        (slots.SQUARES, state.squares),
        (slots.INTERCEPT_SQUARES, state.intercept_squares),
        (slots.MULTIPLIER_SQUARES, state.multiplier_squares),
        (slots.STEPS, state.steps),
    ):
        scalars[slot] = value
    return scalars


def unpack(theta: FloatArray, scalars: FloatArray) -> State:
    """Return the state that the kernels left in their arrays."""
    return State(
        theta=theta.copy(),
        intercept=float(scalars[slots.INTERCEPT]),
        start=float(scalars[slots.START]),
        log_multiplier=float(scalars[slots.LOG_MULTIPLIER]),
        square_slope=float(scalars[slots.SQUARE_SLOPE]),
        travelled=float(scalars[slots.TRAVELLED]),
        intercept_travelled=float(scalars[slots.INTERCEPT_TRAVELLED]),
        squares=float(scalars[slots.SQUARES]),
        intercept_squares=float(scalars[slots.INTERCEPT_SQUARES]),
        multiplier_squares=float(scalars[slots.MULTIPLIER_SQUARES]),
        steps=int(scalars[slots.STEPS]),
    )


class AdaptiveRun:
    """A run of plain DA-SGD that averages its policies and slopes block by block.

    The average over the newest block, which is longer than all before it together once blocks
    double, is the tail average.
    """

    def __init__(self, problem: AffineProblem, *, batch: int = 1, inner_steps: int = 0) -> None:
        self.problem = problem
        self._begin(Arrangement.of(problem), None, batch, inner_steps)

    @classmethod
    def resume(cls, arranged: AffineProblem, state: State) -> "AdaptiveRun":
        """Go on from a state on rows that are already arranged: one pass of a stream."""
        run = cls.__new__(cls)
        run.problem = arranged
        columns = len(arranged.movable)
        run._begin(Arrangement(arranged, np.arange(columns), np.zeros(columns)), state, 1, 0)
        return run

    def _begin(
        self, arrangement: Arrangement, state: State | None, batch: int, inner_steps: int
    ) -> None:
        arranged = arrangement.problem
        self.arrangement, self.batch, self.inner_steps = arrangement, batch, inner_steps
        streaming = state is not None
        state = state or initial_state(arranged)
        self.theta, self.scalars, self.steps = state.theta.copy(), pack(state), 0
        n, s = arranged.contexts.shape
        self.fused = not arranged.boxed and batch == 1 and inner_steps == 0
        # With fewer rows than columns, X theta and XX' say all there is to know. A stream's policy
        # does not lie in the span of its newest rows, so it cannot be kept that way.
        self.by_gram = self.fused and not streaming and n < s and bool(arranged.movable.all())
        self.norms = np.einsum("ij,ij->i", arranged.contexts, arranged.contexts)
        if self.by_gram:
            self.gram = arranged.contexts @ arranged.contexts.T
            self.coefficients = np.zeros(n)
        self.averaged_policy = arrangement.original(self.theta, state.intercept)
        self.slopes = arranged.constant_order()[1]

    def run(self, draws: IntArray) -> None:
        """Take one step per ``batch`` draws."""
        arranged = self.arrangement.problem
        n, s = arranged.contexts.shape
        slope_sums, visits = np.zeros(n), np.zeros(n, dtype=np.int64)
        self.scalars[slots.AVERAGED] = self.scalars[slots.AVERAGED_INTERCEPT] = 0.0
        average = np.zeros(n if self.by_gram else s)
        if self.by_gram:
            self._run_gram(draws, average, slope_sums, visits)
        elif self.fused:
            self._run_fused(draws, average, slope_sums, visits)
        else:
            self._run_general(draws, average, slope_sums, visits)
        self.steps += len(draws) // self.batch
        count = max(float(self.scalars[slots.AVERAGED]), 1.0)
        mean = average / count
        theta = arranged.contexts.T @ mean if self.by_gram else mean
        intercept = float(self.scalars[slots.AVERAGED_INTERCEPT]) / count
        self.averaged_policy = self.arrangement.original(theta, intercept)
        seen = visits > 0
        at_average = np.where(
            arranged.residuals(theta, intercept) >= 0, arranged.pieces.up, -arranged.pieces.down
        )
        self.slopes = np.where(seen, slope_sums / np.maximum(visits, 1), at_average)

    def policy(self) -> tuple[FloatArray, float]:
        """Return the average policy of the newest block."""
        return self.averaged_policy

    def state(self) -> State:
        """Return where the run stands, for a stream to go on from."""
        theta = self.arrangement.problem.contexts.T @ self.coefficients if self.by_gram else self.theta
        return unpack(theta, self.scalars)

    def _run_fused(
        self, draws: IntArray, average: FloatArray, slope_sums: FloatArray, visits: IntArray
    ) -> None:
        p = self.arrangement.problem
        free_steps(
            p.contexts, p.outcomes, self.norms, draws,
            p.pieces.up, p.pieces.down, p.pieces.smoothing, p.radius, p.order, p.outcome_pull,
            int(p.movable.sum()), p.intercept,
            self.theta, self.scalars, average, slope_sums, visits,
        )  # fmt: skip

    def _run_gram(
        self, draws: IntArray, average: FloatArray, slope_sums: FloatArray, visits: IntArray
    ) -> None:
        p = self.arrangement.problem
        decisions = self.gram @ self.coefficients
        gram_steps(
            self.gram, p.outcomes, draws,
            p.pieces.up, p.pieces.down, p.pieces.smoothing, p.radius, p.order, p.outcome_pull,
            p.intercept,
            self.coefficients, decisions, self.scalars, average, slope_sums, visits,
        )  # fmt: skip

    def _run_general(
        self, draws: IntArray, average: FloatArray, slope_sums: FloatArray, visits: IntArray
    ) -> None:
        p = self.arrangement.problem
        low, high = p.outcome_bounds
        general_steps(
            p.contexts, p.outcomes, draws, self.batch,
            p.pieces.up, p.pieces.down, p.pieces.smoothing, p.radius, p.order,
            min(p.outcome_cost, math.inf), int(p.movable.sum()), p.intercept, p.boxed,
            p.lower, p.upper, low, high, self.inner_steps,
            self.theta, self.scalars, average, slope_sums, visits,
        )  # fmt: skip
