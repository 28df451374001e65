"""DA-SGD: draw a sample, move it adversarially, step; repeat."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from surefoot.engines.choice import engine_for, steps_together, why_no_engine
from surefoot.engines.engine import Answer, Bounds, Engine, Options, Parameters
from surefoot.engines.optimizers import SGD, Adam
from surefoot.exceptions import ConvergenceWarning, InvalidTypeError, warn_user
from surefoot.io import register
from surefoot.problem import Problem
from surefoot.problem.problem import check_problem
from surefoot.solvers.base import (
    DEFAULT_GAP,
    Callback,
    Progress,
    Solution,
    Solver,
    check_callback,
    listed_problems,
    seed_for_each,
    sentence,
)
from surefoot.solvers.literal import LiteralDASGD
from surefoot.validation import check_integer, check_number

# Rehearsals need no proof to a per cent: costs on held-out rows are noisier than that.
ROUGH_GAP = 0.04


@register
@dataclass(frozen=True)
class DASGD(Solver):
    """Data-augmentation stochastic gradient descent, the paper's method: draw, move, step.

    One step draws a sample of the nominal, moves it to its worst place, and steps the parameters and
    the multiplier. Affine policies with piecewise linear costs run in compiled kernels until an
    independent certificate proves that the policy is within ``gap_tol`` of the best. Every other policy
    and cost runs in the autodiff engine (``pip install "surefoot[jax]"``) for ``max_steps`` steps.
    Linear policies of few rows and convex costs end there with rounds of a program over all rows.

    From rows that do not fit into memory (``ParquetRows``) it draws, too; where bounds are sums over
    rows (see ``PrimalDual``), passes over all of them certify the policy, else a sample judges it.

    Parameters
    ----------
    gap_tol
        Largest certified gap (upper - lower) / lower at which the run stops. Where no lower bound is
        known: the largest change of the worst case between the last two checks at which the run counts
        as settled.
    max_steps
        Most steps for each product; None is 50 million in the compiled kernels, where the gap ends
        a run long before, and 20,000 in the autodiff engine.
    minibatch
        Samples for each step.
    inner_steps
        0: the exact inner maximiser, or 10 gradient steps in the autodiff engine, which knows none.
        K > 0: K proximal gradient steps from the sample itself, as in the paper. They stop at the
        nearest maximiser and do not cross the kink, so for order 2 the certified gap levels off
        above zero.
    optimizer
        How the autodiff engine steps: ``Adam(...)``, ``SGD(...)`` or any gradient transformation of
        optax. None: distance over gradients for linear policies, ``Adam()`` for the others. Given
        one, affine problems run in the autodiff engine, too, and are certified as ever.
    callback
        Called with a ``Progress`` after every check.

    Examples
    --------
    >>> from surefoot import Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.datasets import synthetic
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> data = synthetic(n=50, s=10, seed=0)
    >>> problem = Problem(Newsvendor(backorder=1.0, holding=0.2), Linear(),
    ...                   Empirical(data.X, data.y), WassersteinBall(radius=0.1))
    >>> solution = DASGD().solve(problem, seed=0)
    >>> solution.converged, solution.certificate.gap <= 0.01
    (True, True)

    References
    ----------
    Li, Liu and Zhang, "Achieving robust data-driven contextual decision making in a data
    augmentation way".
    """

    gap_tol: float = DEFAULT_GAP
    max_steps: int | None = None
    minibatch: int = 1
    inner_steps: int = 0
    optimizer: Any = None
    callback: Callback | None = None

    def __post_init__(self) -> None:
        """Check every option by name."""
        check_number("gap_tol", self.gap_tol, above=0)
        if self.max_steps is not None:
            check_integer("max_steps", self.max_steps, at_least=1)
        check_integer("minibatch", self.minibatch, at_least=1)
        check_integer("inner_steps", self.inner_steps, at_least=0)
        check_callback(self.callback)
        known = isinstance(self.optimizer, Adam | SGD | None) or (
            callable(getattr(self.optimizer, "init", None))
            and callable(getattr(self.optimizer, "update", None))
        )
        if not known:
            raise InvalidTypeError(
                "optimizer must be Adam(...), SGD(...), a gradient transformation of optax or None, "
                f"got {self.optimizer!r}."
            )

    @staticmethod
    def literal(
        *, alpha: float, beta: float, eta: float, K: int, epsilon: float, steps: int
    ) -> LiteralDASGD:
        """Return Algorithm 1 exactly as printed in the paper, for comparison.

        Parameters
        ----------
        alpha, beta, eta
            Constant step sizes of theta, of the multiplier and of the inner ascent.
        K, epsilon
            Inner steps stop after K + 1 of them or at this norm of the gradient.
        steps
            Outer steps T.
        """
        return LiteralDASGD(alpha=alpha, beta=beta, eta=eta, K=K, epsilon=epsilon, steps=steps)

    @property
    def options(self) -> Options:
        """How the engines step under these options."""
        return Options(self.max_steps, self.minibatch, self.inner_steps, self.optimizer, self.gap_tol)

    def why_not(self, problem: Problem) -> str | None:
        """Return why no engine can treat the problem, or None."""
        check_problem(problem)
        return why_no_engine(problem, self.options)

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the answer depends on the problem and the seed alone."""
        check_problem(problem)
        return self.solve_together([problem], [check_integer("seed", seed, at_least=0)])[0]

    def solve_together(self, problems: Sequence[Problem], seeds: Sequence[int]) -> list[Solution]:
        """Solve problems that share cost, policy, order and sizes, step by step side by side."""
        problems = listed_problems(problems)
        seeds = seed_for_each(seeds, problems)
        for problem in problems:
            self.refuse_unless_fit(problem)
        engine = engine_for(problems, seeds, self.options)
        return self._run(engine)

    def roughly(self, rows: int) -> Solver:
        """Return a solver for rehearsals, which nobody asks for a proof."""
        del rows
        return RoughDASGD(ROUGH_GAP, self.max_steps, self.minibatch, self.inner_steps, self.optimizer)

    def _run(self, engine: Engine) -> list[Solution]:
        """Step until every gap is small enough or the steps are spent; keep the best policies."""
        began, taken, history = time.perf_counter(), 0, list[Progress]()
        state, bounds, interrupted, reason = engine.init(), engine.start(), False, None

        def record(bounds: Sequence[Bounds]) -> None:
            worst = max(bounds, key=lambda one: one.gap)
            seconds = time.perf_counter() - began
            history.append(Progress(taken, worst.upper, worst.lower, worst.gap, seconds))
            if self.callback is not None:
                self.callback(history[-1])

        try:
            if bounds is not None:
                record(bounds)
            for steps in engine.blocks():
                if reason is not None or (bounds is not None and engine.done(bounds)):
                    break
                state, seen = engine.update(state, engine.draw(steps))
                taken += steps
                state, bounds = engine.judge(state, seen)
                record(bounds)
                reason = engine.why_stop([check.gap for check in history], taken)
        except KeyboardInterrupt:
            interrupted = True
        endings = _Endings(type(self).__name__, interrupted, reason, self.gap_tol)
        solutions = [
            endings.solution(answer, bounds[k] if bounds else None, tuple(history))
            for k, answer in enumerate(engine.finish(state))
        ]
        unfinished = [one.status for one in solutions if not endings.well(one)]
        if unfinished and not engine.options.rough:
            warn_user(unfinished[0], ConvergenceWarning)
        return solutions


class RoughDASGD(DASGD):
    """The same method for folds: fewer steps, no proof."""

    def solve_paths(
        self, problems: Sequence[Problem], radii: Sequence[float], seed: int = 0
    ) -> list[list[Parameters]]:
        """Solve all folds at all radii: in one program where the engine can, else on all cores."""
        if not steps_together(problems[0], self.options):
            return super().solve_paths(problems, radii, seed)
        cells = [problem.at_radius(radius) for problem in problems for radius in radii]
        policies = [one.parameters for one in self.solve_together(cells, [seed] * len(cells))]
        return [policies[k : k + len(radii)] for k in range(0, len(policies), len(radii))]

    @property
    def options(self) -> Options:
        """How the engines step under these options."""
        return replace(super().options, rough=True)


@dataclass(frozen=True)
class _Endings:
    """How a run ended, for all its problems: by whom, why, and at which tolerance."""

    name: str
    interrupted: bool
    reason: str | None
    gap_tol: float

    def solution(
        self, answer: Answer, bounds: Bounds | None, history: tuple[Progress, ...]
    ) -> Solution:
        """Return an answer with a sentence on how its run ended."""
        # An engine that knows no lower bound on the way may have found one at the end.
        proved = bounds is not None and (bounds.proved or math.isfinite(answer.certificate.gap))
        gap = float("inf") if bounds is None else answer.certificate.gap if proved else bounds.gap
        looks = len(history)
        told = self._proved(answer, gap) if proved else self._unproved(answer, gap, looks)
        return Solution(
            parameters=answer.parameters,
            multiplier=answer.multiplier,
            certificate=answer.certificate,
            converged=bool(gap <= self.gap_tol) if proved else None,
            status=f"{told} {answer.remark}".strip(),
            n_steps=answer.steps,
            history=history,
        )

    def well(self, solution: Solution) -> bool:
        """Whether there is nothing to warn of."""
        settled = solution.converged is None and bool(solution.history)
        good = settled and solution.history[-1].gap <= self.gap_tol and self.reason is None
        return bool(solution.converged) or (good and not self.interrupted)

    def _proved(self, answer: Answer, gap: float) -> str:
        word = "estimated" if answer.certificate.kind == "estimate" else "certified"
        share = f"{word} gap {100 * gap:.2g} %, tolerance {100 * self.gap_tol:.2g} %"
        steps = answer.steps
        if self.reason is not None and gap > self.gap_tol:
            return f"{self.name} stopped after {steps:,} steps ({share}), as {self.reason}"
        return sentence(self.name, steps, share, gap <= self.gap_tol, interrupted=self.interrupted)

    def _unproved(self, answer: Answer, change: float, looks: int) -> str:
        steps = answer.steps
        if self.reason is not None:
            return f"{self.name} stopped: {self.reason}"
        if self.interrupted:
            ended = f"{self.name} was interrupted after {steps:,} steps"
            return f"{ended}: the best policy so far is returned."
        told = f"{100 * change:.2g} %" if looks > 1 else "an unknown amount"
        missing = "No lower bound is known here"
        if answer.certificate.kind == "estimate" and answer.certificate.lower not in (0.0, -math.inf):
            missing = "The worst case is an estimate here"
        nothing = f"{missing}, so nothing is claimed about the best policy."
        if change <= self.gap_tol:
            return (
                f"{self.name} settled after {steps:,} steps (the worst case changed by {told} at the "
                f"last check). {nothing}"
            )
        ran_out = (
            f"{self.name} ran out of steps after {steps:,} (the worst case still changed by {told} at "
            "the last check)"
        )
        # More steps cannot help where the policy is not theirs.
        return f"{ran_out}. {nothing}" if answer.polished else f"{ran_out}: raise max_steps."
