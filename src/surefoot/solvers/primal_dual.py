"""Stochastic primal-dual hybrid gradient: the quickest certified answer for affine problems."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.ambiguity import AffineForm, WassersteinBall, WassersteinForm
from surefoot.certificates.passes import RowPasses, why_no_passes
from surefoot.costs import ConvexPiecewiseCost
from surefoot.engines.affine import AFFINE_STEPS
from surefoot.engines.affine_proof import why_no_dual, why_no_dual_lines
from surefoot.engines.cutting_planes import CuttingPlaneRun, small_program
from surefoot.engines.engine import Parameters
from surefoot.engines.primal_dual import STEPS_WHERE_STUCK, PrimalDualRun, may_stick
from surefoot.io import register
from surefoot.nominals import Empirical, RowBatches
from surefoot.problem import Problem, affine_forms, user_parameters
from surefoot.problem.problem import check_problem
from surefoot.random import rng_for
from surefoot.solvers.base import (
    DEFAULT_GAP,
    AffineSolver,
    Callback,
    ProductAnswer,
    Solution,
    Solver,
    assemble,
    check_options,
    listed_radii,
)
from surefoot.solvers.loop import draw_blocks, run_until
from surefoot.solvers.passes import finish_by_passes
from surefoot.validation import check_integer

# Blocks between checks grow by this factor: the gap falls geometrically, so it is checked often.
GROWTH = 1.2
# Most rounds of cutting planes where the method stays where it is.
MOST_ROUNDS = 500
# Rehearsals need no proof to a per cent: costs on held-out rows are noisier than that.
ROUGH_GAP, ROUGH_PASSES, ROUGH_STEPS, ROUGH_GROWTH = 0.04, 60, 4_000, 1.5


@register
@dataclass(frozen=True)
class PrimalDual(AffineSolver):
    """Stochastic primal-dual hybrid gradient, in compiled kernels, until the gap is certified.

    Each row keeps a dual variable, the slope of the cost at which it was last seen; a step draws a
    row, moves its slope, and steps the policy along the mean of all slopes. No sample is moved: for
    a linear policy and a free support, the ambiguity ball is a penalty on the norm of the parameters.
    The gap falls geometrically, where that of ``DASGD`` falls like 1/sqrt(steps).

    Where it may stay at zero (lopsided costs and no intercept), cutting planes go on after
    some hundred thousand steps, and the status names them.

    Rows that do not fit into memory (``ParquetRows``) are solved on a sample; Newton's method, with a
    pass over all rows for each of its few steps, then goes on to the best policy of all, and the gap is
    certified over all.

    Parameters
    ----------
    gap_tol
        Largest certified gap (upper - lower) / lower at which the run stops.
    max_steps
        Most steps for each product.
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
    >>> solution = PrimalDual().solve(problem, seed=0)
    >>> solution.converged, solution.certificate.gap <= 0.01
    (True, True)

    References
    ----------
    Chambolle, Ehrhardt, Richtarik and Schoenlieb (2018), "Stochastic primal-dual hybrid gradient
    algorithm with arbitrary sampling and imaging applications", SIAM J. Optim. 28.
    """

    gap_tol: float = DEFAULT_GAP
    max_steps: int = AFFINE_STEPS
    callback: Callback | None = None
    growth = GROWTH

    def __post_init__(self) -> None:
        """Check every option by name."""
        check_options(self)

    def why_not(self, problem: Problem) -> str | None:
        """Return why the problem has no primal-dual form, or None."""
        check_problem(problem)
        if isinstance(problem.nominal, RowBatches):
            return why_no_passes(problem)
        reason = super().why_not(problem)
        if reason is not None:
            return reason
        free, cost = problem.ball.support is None, problem.cost
        # Without a support, forms of a ball say no more than the lines of the cost, and take longer.
        if free and type(problem.ball) is WassersteinBall and isinstance(cost, ConvexPiecewiseCost):
            lines = cost.pieces(problem.nominal.n_products)
            return next((why for one in lines if (why := why_no_dual_lines(one))), None)
        forms = affine_forms(_one_row(problem) if free else problem)
        return next((why for form in forms if (why := why_no_dual(form))), None)

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the answer depends on the problem and the seed alone."""
        check_problem(problem)
        return self.solve_path(problem, [problem.radius], seed)[0]

    def solve_path(self, problem: Problem, radii: Sequence[float], seed: int = 0) -> list[Solution]:
        """Solve a problem at several radii, each from the last one: best from the largest down."""
        check_integer("seed", seed, at_least=0)
        self.refuse_unless_fit(problem)
        radii = listed_radii(radii)
        if isinstance(problem.nominal, RowBatches):
            return [self._finished(problem.at_radius(radius), seed) for radius in radii]
        products = [
            self.path(form, radii, rng_for(seed, "dasgd", str(j)))
            for j, form in enumerate(affine_forms(problem))
        ]
        return [
            assemble(self, answers, gap_tol=self.gap_tol) for answers in zip(*products, strict=True)
        ]

    def _finished(self, problem: Problem, seed: int) -> Solution:
        """Solve on a sample of rows that do not fit into memory, and finish by passes over all."""
        began, passes, quiet = time.perf_counter(), RowPasses.of(problem), replace(self, callback=None)
        sampled = [
            quiet.path(form, [problem.radius], rng_for(seed, "dasgd", str(j)))[0]
            for j, form in enumerate(passes.forms)
        ]
        return finish_by_passes(self, passes, sampled, began)

    def path(
        self, form: AffineForm, radii: Sequence[float], rng: np.random.Generator
    ) -> list[ProductAnswer]:
        """Solve one product at several radii, in units of its ball."""
        assert isinstance(form, WassersteinForm)  # or it was refused
        run = PrimalDualRun.start(form, penalised=max(radii) > 0.0)
        answers = []
        for radius in radii:
            run.move_to(form.at_radius(float(radius)))
            stuck = self.max_steps > STEPS_WHERE_STUCK and may_stick(form) and small_program(form)
            steps = STEPS_WHERE_STUCK if stuck else self.max_steps
            blocks = draw_blocks(run.form, rng, steps, self.growth)
            answer = run_until(run, blocks, gap_tol=self.gap_tol, callback=self.callback)
            answers.append(self._unstuck(answer) if stuck and answer.steps >= steps else answer)
        return answers

    def _unstuck(self, answer: ProductAnswer) -> ProductAnswer:
        """Go on by cutting planes from where the method stays."""
        assert isinstance(answer.form, WassersteinForm)  # or it was refused
        run = CuttingPlaneRun(answer.form, answer.policy)
        run.slopes, run.steps = answer.slopes, answer.steps
        rounds = iter(np.zeros((MOST_ROUNDS, 1), dtype=np.int64))
        planes = run_until(run, rounds, gap_tol=self.gap_tol, callback=self.callback)
        seconds, steps = answer.history[-1].seconds, answer.steps
        later = [
            look._replace(steps=steps + look.steps, seconds=seconds + look.seconds)
            for look in planes.history
        ]
        history = (*answer.history, *later)
        return replace(planes, steps=steps + planes.steps, history=history, finished_by="CuttingPlanes")

    def roughly(self, rows: int) -> Solver:
        """Return a solver for rehearsals on so many rows."""
        return RoughPrimalDual(ROUGH_GAP, max(ROUGH_PASSES * rows, ROUGH_STEPS))


class RoughPrimalDual(PrimalDual):
    """The same method for folds: checked less often, and nobody is told how it ended."""

    growth = ROUGH_GROWTH

    def path_of(
        self, number: int, problem: Problem, radii: Sequence[float], seed: int
    ) -> list[Parameters]:
        """Return the policies of one of several problems at several radii."""
        forms = affine_forms(problem)
        products = [
            self.path(form, radii, rng_for(seed, "path", j, number)) for j, form in enumerate(forms)
        ]
        return [
            user_parameters(forms, tuple(answer.policy for answer in answers))
            for answers in zip(*products, strict=True)
        ]


def _one_row(problem: Problem) -> Problem:
    """Return the problem on one of its rows: without a support the others change no refusal."""
    nominal = problem.nominal
    assert isinstance(nominal, Empirical)  # or it was refused
    offsets = None if nominal.offsets is None else nominal.offsets[:1]
    row = Empirical(nominal.contexts[:1], nominal.outcomes[:1], names=nominal.names, offsets=offsets)
    return replace(problem, nominal=row)
