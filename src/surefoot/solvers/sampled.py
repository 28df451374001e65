"""DA-SGD for nominals that can be sampled for ever: every step sees a row that none saw before.

The policy is learned from fresh rows alone, drawn in chunks, so that neither memory nor the error of
a fixed sample grows with the length of the run. One sample is drawn once and set apart, to judge:

* it fixes what a problem takes from its rows: the column scale, constant columns, the start;
* the worst case of the policy on it estimates the true one, without bias, as the policy is no
  function of it;
* a lower bound on its own optimum is, on average, one on the true optimum: the mean of minima lies
  below the minimum of means.

So the gap between the two overestimates the true gap on average (Mak, Morton and Wood 1999). The part
that no step removes, by which the sample's own optimum is too good, is about (columns / rows).
"""

import itertools
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.certificates import (
    Certificate,
    best_response,
    gap_floor,
    lower_bound,
    relative_gap,
    stay,
    worst_case_value,
)
from surefoot.engines.twin import initial_state
from surefoot.exceptions import ConvergenceWarning, UnsupportedProblemError
from surefoot.nominals import Empirical, Nominal
from surefoot.nominals.parts import checked_draw
from surefoot.problem import (
    AffineProblem,
    Problem,
    affine_problems,
    user_parameters,
    why_not_affine,
)
from surefoot.random import rng_for
from surefoot.solvers.adaptive import AdaptiveRun, Arrangement
from surefoot.solvers.base import DEFAULT_GAP, AffineAnswer, AffineSolution, Callback, Progress
from surefoot.solvers.loop import MEMORY_GROWTH, PLAIN_GROWTH, draw_blocks
from surefoot.solvers.memory import MemoryRun
from surefoot.typing import FloatArray
from surefoot.validation import check_integer, check_number

# The rows that judge: at least so many, more for many columns, but no more numbers than fit 128 MiB.
# 200 rows for each column keep what their optimum is too good by near half a per cent.
EVALUATION_ROWS, ROWS_PER_COLUMN, EVALUATION_NUMBERS = 20_000, 200, 2**24
# For order 1 in a box the lower bound is found by hundreds of sorts of all rows: few must do.
EVALUATION_ROWS_IN_BOX = 4_000
# Fresh rows are drawn and learned in chunks of about so many numbers, 8 MiB.
CHUNK_NUMBERS = 2**20
# Steps of the first block; blocks double, so that the newest outweighs all before it together.
FIRST_STEPS = 2_048
# The judging rows' own optimum is bounded to this share of the tolerance; less must do without
# memory (boxes, smoothed costs), where the gap of the run behind it falls like 1/sqrt(steps).
MEMORY_SHARE, PLAIN_SHARE = 0.1, 0.25
# If an error falls like 1/sqrt(steps), all doublings to come gain 2.4 times what the last one
# gained. A run has stalled if so much, rounded up, would not do, at this many checks in a row and
# after this many steps for each judging row.
PROSPECT, STALLED_CHECKS, STALLED_STEPS = 3.0, 2, 4

Policy = tuple[FloatArray, float]


def why_not_sampled(problem: Problem) -> str | None:
    """Return why the compiled engine cannot learn from draws of this problem's nominal, or None."""
    nominal = problem.nominal
    row = Empirical(np.zeros((1, nominal.n_columns)), np.zeros((1, nominal.n_products)))
    return why_not_affine(replace(problem, nominal=row))


def evaluation_size(problem: Problem, seed: int) -> int:
    """Return how many rows judge unless the user says otherwise; a trial draw counts features."""
    if problem.ball.support is not None and problem.ball.order == 1:
        return EVALUATION_ROWS_IN_BOX
    row = draw_rows(problem.nominal, rng_for(seed, "trial"), 1)
    features = len(affine_problems(replace(problem, nominal=row))[0].movable)
    wanted = max(EVALUATION_ROWS, ROWS_PER_COLUMN * features)
    return max(min(wanted, EVALUATION_NUMBERS // features), 2)


class FreshRun(AdaptiveRun):
    """Plain DA-SGD on rows that arrive in chunks and are forgotten."""

    def __init__(self, problem: AffineProblem, batch: int) -> None:
        self.problem = problem
        arrangement = Arrangement.of(problem)
        self._begin(arrangement, initial_state(arrangement.problem), batch, 0)

    def learn(self, fresh: AffineProblem) -> None:
        """Take one step for each ``batch`` rows, in order; the policy is the chunk's average."""
        self.arrangement = Arrangement.of(fresh, self.arrangement.mean)
        rows = self.arrangement.problem.contexts
        self.norms = np.einsum("ij,ij->i", rows, rows)
        self.run(np.arange(len(rows)))


@dataclass(frozen=True)
class Draws:
    """Rows of a nominal in the units of the judging rows."""

    problem: Problem
    rng: np.random.Generator
    units: AffineProblem
    batch: int

    def chunks(self, steps: int) -> Iterator[tuple[AffineProblem, ...]]:
        """Yield so many steps' rows, one affine problem for each product."""
        scale, movable = self.units.scale, self.units.movable
        fitting = CHUNK_NUMBERS // (len(scale) * self.batch)
        while steps > 0:
            count = min(steps, max(fitting, 1))
            rows = draw_rows(self.problem.nominal, self.rng, count * self.batch)
            fresh = replace(self.problem, nominal=rows)
            yield affine_problems(fresh, scale, movable, merge=False)
            steps -= count


def draw_rows(nominal: Nominal, rng: np.random.Generator, size: int) -> Empirical:
    """Return so many draws of the nominal, checked."""
    source, drawn = f"{type(nominal).__name__}.sample", nominal.sample(rng, size)
    X, y = checked_draw(source, drawn, size, nominal.n_columns, nominal.n_products)
    return Empirical(X, y, names=nominal.names)


class Judge:
    """The rows set apart for one product: they value policies, and bound the best of all.

    The bound comes from a run on these rows, whose policy is never handed out: it knows the rows
    that are to judge.
    """

    def __init__(
        self,
        problem: AffineProblem,
        outcomes: FloatArray,
        rng: np.random.Generator,
        *,
        gap_tol: float,
        max_draws: int,
    ) -> None:
        # Where decisions have limits, the problem's outcomes are cut to them.
        cut = problem.outcomes != outcomes
        self.unavoidable = np.where(cut, problem.pieces.evaluate(problem.outcomes - outcomes), 0.0)
        plain = problem.boxed or problem.pieces.smoothing > 0
        growth, share = (PLAIN_GROWTH, PLAIN_SHARE) if plain else (MEMORY_GROWTH, MEMORY_SHARE)
        self.problem, self.floor, self.target = problem, gap_floor(problem), share * gap_tol
        self.run = AdaptiveRun(problem) if plain else MemoryRun.start(problem)
        self.blocks = draw_blocks(problem, rng, max_draws, growth)
        decision, self.slopes = problem.constant_order()
        self.lower = lower_bound(problem, self.slopes)
        self.policy = (np.zeros(len(problem.movable)), decision if problem.intercept else 0.0)
        self.upper = self.least = worst_case_value(problem, *self.policy)[0]

    def hear(self, policy: Policy) -> None:
        """Keep the policy if it is better than the best so far."""
        value = worst_case_value(self.problem, *policy)[0]
        if value < self.upper:
            self.upper, self.policy = value, policy

    def tighten(self) -> None:
        """Go on with the run behind the bound, unless the bound is tight enough."""
        self.least = min(self.least, self.upper)
        if relative_gap(self.least, self.lower, self.floor) <= self.target:
            return
        draws = next(self.blocks, None)
        if draws is None:
            return
        self.run.run(draws)
        self.least = min(self.least, worst_case_value(self.problem, *self.run.policy())[0])
        bound = lower_bound(self.problem, self.run.slopes)
        if bound > self.lower:
            self.lower, self.slopes = bound, self.run.slopes.copy()

    def row_values(self) -> FloatArray:
        """Return what each row adds to the worst case: sup of cost minus gamma times distance."""
        gamma = worst_case_value(self.problem, *self.policy)[1]
        if gamma == 0.0:
            answer = stay(self.problem, *self.policy)
        else:
            answer = best_response(self.problem, *self.policy, gamma)
        return answer.value + self.unavoidable


@dataclass(frozen=True)
class Bench:
    """The judges of all products."""

    judges: tuple[Judge, ...]
    rows: int

    @property
    def weights(self) -> FloatArray:
        """Weights of the judging rows, more than one draw's where draws were equal."""
        return self.judges[0].problem.weights

    @property
    def unavoidable(self) -> float:
        """Expected cost that no decision within its limits avoids."""
        return float(self.weights @ sum(judge.unavoidable for judge in self.judges))

    @property
    def upper(self) -> float:
        """Worst-case cost of the best policies so far, on the judging rows."""
        return sum(judge.upper for judge in self.judges) + self.unavoidable

    @property
    def lower(self) -> float:
        """A bound on the best worst-case cost on the judging rows."""
        return sum(judge.lower for judge in self.judges) + self.unavoidable

    @property
    def gap(self) -> float:
        """Estimated gap."""
        return relative_gap(self.upper, self.lower, sum(judge.floor for judge in self.judges))

    @property
    def standard_error(self) -> float:
        """Standard error of ``upper``, from the spread of what rows add to it."""
        values = np.sum([judge.row_values() for judge in self.judges], axis=0)
        variance = self.weights @ (values - self.weights @ values) ** 2
        return math.sqrt(float(variance) / self.rows)

    def certificate(self) -> Certificate:
        """Return what the judging rows say of the best policies so far."""
        message = (
            f"The worst-case expected cost is about {self.upper:.6g} (standard error "
            f"{self.standard_error:.2g}), estimated from {self.rows:,} draws of the nominal; on "
            f"average no policy of this family has one below {self.lower:.6g}, so this one is "
            f"within about {100 * self.gap:.2g} % of the best."
        )
        if self.unavoidable > 0.0:
            message += f" {self.unavoidable:.6g} of it no decision within the limits avoids."
        return Certificate(self.upper, self.lower, self.gap, "estimate", message)


def learn_block(
    runs: tuple[FreshRun, ...], chunks: Iterator[tuple[AffineProblem, ...]]
) -> list[Policy]:
    """Let every product learn from one block; return the average policies of its steps."""
    totals = [np.zeros(len(run.problem.movable)) for run in runs]
    intercepts, rows = [0.0] * len(runs), 0
    for chunk in chunks:
        size = len(chunk[0].outcomes)
        rows += size
        for j, (run, fresh) in enumerate(zip(runs, chunk, strict=True)):
            run.learn(fresh)
            theta, intercept = run.policy()
            totals[j] += size * theta
            intercepts[j] += size * intercept
    return [(theta / rows, t / rows) for theta, t in zip(totals, intercepts, strict=True)]


def learn_until(
    bench: Bench, draws: Draws, *, gap_tol: float, max_steps: int, callback: Callback | None
) -> tuple[str, tuple[Progress, ...]]:
    """Learn in doubling blocks until the estimated gap is small enough; return why it ended."""
    runs = tuple(FreshRun(judge.problem, draws.batch) for judge in bench.judges)
    began, taken, size = time.perf_counter(), 0, FIRST_STEPS
    history: list[Progress] = []
    stopped = ""
    try:
        while not stopped:
            seconds = time.perf_counter() - began
            history.append(Progress(taken, bench.upper, bench.lower, bench.gap, seconds))
            if callback is not None:
                callback(history[-1])
            if bench.gap <= gap_tol:
                stopped = "gap"
            elif taken >= max_steps:
                stopped = "steps"
            elif taken >= STALLED_STEPS * bench.rows and has_stalled(history, gap_tol):
                stopped = "stalled"
            else:
                count = min(size, max_steps - taken)
                policies = learn_block(runs, draws.chunks(count))
                taken, size = taken + count, 2 * size
                for judge, policy in zip(bench.judges, policies, strict=True):
                    judge.hear(policy)
                    judge.tighten()
    except KeyboardInterrupt:
        stopped = "interrupt"
    return stopped, tuple(history)


def has_stalled(history: Sequence[Progress], gap_tol: float) -> bool:
    """Whether the newest checks all say that more doublings would not reach the tolerance."""
    pairs = list(itertools.pairwise(check.gap for check in history))[-STALLED_CHECKS:]
    hopeless = (after - PROSPECT * (before - after) > gap_tol for before, after in pairs)
    return len(pairs) == STALLED_CHECKS and all(hopeless)


def solve_sampled(
    problem: Problem,
    *,
    gap_tol: float = DEFAULT_GAP,
    max_steps: int = 50_000_000,
    minibatch: int = 1,
    seed: int = 0,
    callback: Callback | None = None,
    evaluation_rows: int | None = None,
) -> AffineAnswer:
    """Solve an affine problem by learning from fresh draws of its nominal.

    Parameters
    ----------
    problem
        A problem with a Linear policy and a kinked cost; the nominal can be any.
    gap_tol
        Largest estimated gap (upper - lower) / lower at which the run stops.
    max_steps
        Most steps for each product; all learn from the same draws. Bounding the judging rows' own
        optimum takes up to so many again, which are not counted.
    minibatch
        Fresh rows for each step.
    seed
        The answer depends on the problem and the seed alone.
    callback
        Called after every check with a ``Progress`` whose bounds are those of all products.
    evaluation_rows
        Rows that judge; None takes 20,000, or 200 for each column if that is more.
    """
    check_number("gap_tol", gap_tol, above=0)
    check_integer("max_steps", max_steps, at_least=1)
    batch = check_integer("minibatch", minibatch, at_least=1)
    check_integer("seed", seed, at_least=0)
    if evaluation_rows is not None:
        check_integer("evaluation_rows", evaluation_rows, at_least=2)
    reason = why_not_sampled(problem)
    if reason is not None:
        raise UnsupportedProblemError(f"DASGD cannot solve this: {reason}.")
    rows = evaluation_rows or evaluation_size(problem, seed)
    drawn = draw_rows(problem.nominal, rng_for(seed, "evaluation"), rows)
    problems = affine_problems(replace(problem, nominal=drawn))
    outcomes = drawn.distinct().outcomes.T
    judges = tuple(
        Judge(p, y, rng_for(seed, "judge", j), gap_tol=gap_tol, max_draws=max_steps * batch)
        for j, (p, y) in enumerate(zip(problems, outcomes, strict=True))
    )
    bench, draws = Bench(judges, rows), Draws(problem, rng_for(seed, "fresh"), problems[0], batch)
    stopped, history = learn_until(
        bench, draws, gap_tol=gap_tol, max_steps=max_steps, callback=callback
    )
    products = tuple(
        AffineSolution(*judge.policy, judge.slopes, history[-1].steps, stopped, history)
        for judge in judges
    )
    return assemble_estimate(bench, products, gap_tol)


def assemble_estimate(
    bench: Bench, products: tuple[AffineSolution, ...], gap_tol: float
) -> AffineAnswer:
    """Return the solution with its certificate and a sentence on how the run ended."""
    certificate = bench.certificate()
    converged = certificate.gap <= gap_tol
    steps, stopped = sum(product.steps for product in products), products[0].stopped
    share = f"estimated gap {100 * certificate.gap:.2g} %, tolerance {100 * gap_tol:.2g} %"
    ends = {
        "gap": f"Converged after {steps:,} steps ({share}).",
        "steps": f"Ran out of steps after {steps:,} ({share}): raise max_steps or loosen gap_tol.",
        "stalled": f"Stopped after {steps:,} steps, as more would not help ({share}): {bench.rows:,} "
        "rows cannot tell so small a gap; loosen gap_tol.",
        "interrupt": f"Interrupted after {steps:,} steps ({share}): the best policy so far is "
        "returned.",
    }
    if not converged:
        warnings.warn(ends[stopped], ConvergenceWarning, stacklevel=4)
    problems = tuple(judge.problem for judge in bench.judges)
    policies = tuple(judge.policy for judge in bench.judges)
    gammas = [worst_case_value(p, *policy)[1] for p, policy in zip(problems, policies, strict=True)]
    return AffineAnswer(
        parameters=user_parameters(problems, policies),
        multiplier=np.array(gammas),
        certificate=certificate,
        converged=converged,
        status=ends[stopped],
        n_steps=steps,
        history=products[0].history,
        products=products,
        problems=problems,
    )
