"""Newton's method on a smoothed worst case: several products under one adversary, certified."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import ThreadpoolController

from surefoot.ambiguity import JointForm
from surefoot.engines.engine import Parameters
from surefoot.engines.joint_newton import JointNewtonRun
from surefoot.io import register
from surefoot.problem import Problem, joint_form, why_not_joint, with_one_adversary
from surefoot.problem.problem import check_problem
from surefoot.solvers.base import (
    DEFAULT_GAP,
    Callback,
    ProductAnswer,
    Solution,
    Solver,
    assemble,
    check_options,
    listed_radii,
)
from surefoot.solvers.loop import run_until
from surefoot.typing import IntArray
from surefoot.validation import check_integer

# Two threads made the small products of a step up to thirty times slower beside other work.
_THREADS = ThreadpoolController()
# Most steps at one level of smoothing before the bounds are looked at.
LEVEL_STEPS = 25
# Rehearsals stop at this gap.
ROUGH_GAP = 0.03
# A product whose constant decision costs a smaller share of all would be lost among the others.
SMALLEST_SHARE = 1e-4
# Most parameters, whose square is the matrix of a step, and most pairs of a row and a line.
MOST_PARAMETERS, MOST_PAIRS = 1_500, 4_000_000


@register
@dataclass(frozen=True)
class SmoothedNewton(Solver):
    """Solve several products under one adversary by Newton's method on ever less smoothed costs.

    For order 2 without a support, where the worst case has a closed form. It needs no random numbers
    and no tuning; its time grows with rows times lines (two to the number of newsvendors) and with the
    square of columns times products. It reads ``adversary="auto"`` as "joint".

    Parameters
    ----------
    gap_tol
        Largest certified gap (upper - lower) / lower. The run goes on until the gap is no more than
        this share of the cheapest product: a dear one must not hide that another is unsolved.
    max_steps
        Most Newton steps.
    callback
        Called with a ``Progress`` after every level of smoothing.

    Examples
    --------
    >>> from surefoot import Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> rows = Empirical([[0.0], [0.6], [1.0]], [[1, 5], [2, 5], [4, 3]])
    >>> problem = Problem(Newsvendor(1.0, 0.2), Linear(), rows, WassersteinBall(radius=0.3))
    >>> SmoothedNewton().solve(problem).converged
    True

    References
    ----------
    Nesterov (2005), "Smooth minimization of non-smooth functions", Math. Program. 103.
    """

    gap_tol: float = DEFAULT_GAP
    max_steps: int = 300
    callback: Callback | None = None

    def __post_init__(self) -> None:
        """Check every option by name."""
        check_options(self)

    def why_not(self, problem: Problem) -> str | None:
        """Return why the problem has no such worst case, or None."""
        problem = self.settled(problem)
        reason = why_not_joint(problem)
        if reason is not None:
            return reason
        form = joint_form(problem.at_radius(1.0))
        if form.order == 1:
            return "it needs a ball of order 2, got order 1"
        if form.boxed:
            return "it needs a free support"
        rows, columns = form.contexts.shape
        parameters, pairs = columns * len(form.products), rows * len(form.lines.levels)
        if parameters > MOST_PARAMETERS:
            return (
                f"it needs at most {MOST_PARAMETERS:,} parameters (columns times products), "
                f"got {parameters:,}"
            )
        if pairs > MOST_PAIRS:
            return f"it needs at most {MOST_PAIRS:,} rows times choices of lines, got {pairs:,}"
        share = _smallest_share(form)
        if share < SMALLEST_SHARE:
            return (
                f"it needs products of which each costs at least {SMALLEST_SHARE:g} of all, "
                f"got one with {share:.1g}"
            )
        return None

    def settled(self, problem: Problem) -> Problem:
        """Return the problem under one adversary, unless each product is to have its own."""
        return with_one_adversary(problem)

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the seed is not used."""
        check_problem(problem)
        with _THREADS.limit(limits=1, user_api="blas"):
            return self.solve_path(problem, [problem.radius], seed)[0]

    def solve_path(self, problem: Problem, radii: Sequence[float], seed: int = 0) -> list[Solution]:
        """Solve a problem at several radii, each from the last one."""
        check_integer("seed", seed, at_least=0)
        self.refuse_unless_fit(problem)
        form, policy, answers = joint_form(self.settled(problem)), None, []
        for radius in listed_radii(radii):
            run = JointNewtonRun(form.at_radius(radius), policy)
            answers.append(self._solved(run))
            policy = answers[-1].policy
        return [assemble(self, [answer], gap_tol=self.gap_tol) for answer in answers]

    def solve_paths(
        self, problems: Sequence[Problem], radii: Sequence[float], seed: int = 0
    ) -> list[list[Parameters]]:
        """Solve several problems at several radii, in threads that share one limit."""
        with _THREADS.limit(limits=1, user_api="blas"):
            return super().solve_paths(problems, radii, seed)

    def _solved(self, run: JointNewtonRun) -> ProductAnswer:
        gap_tol = self.gap_tol * _smallest_share(run.form)
        return run_until(run, self._levels(run), gap_tol=gap_tol, callback=self.callback)

    def _levels(self, run: JointNewtonRun) -> Iterator[IntArray]:
        while run.steps < self.max_steps:
            yield np.zeros(min(LEVEL_STEPS, self.max_steps - run.steps), dtype=np.int64)

    def roughly(self, rows: int) -> Solver:
        """Return a solver for rehearsals on so many rows, such as folds."""
        del rows
        return replace(self, gap_tol=max(self.gap_tol, ROUGH_GAP))


def _smallest_share(form: JointForm) -> float:
    """Return the share of the cheapest product in what the best constant decisions cost.

    Products whose outcomes are all equal cost nothing and do not count.
    """
    costs = np.array(
        [
            one.mean_cost(one.constant_order()[0] - one.outcomes) * one.value_unit
            for one in form.products
        ]
    )
    costs = costs[costs > 0.0]
    return float(costs.min() / costs.sum()) if len(costs) else 1.0
