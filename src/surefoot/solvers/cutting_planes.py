"""Cutting planes: certified answers in boxes and for costs of many lines, without another package."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surefoot.ambiguity import AffineForm, WassersteinForm
from surefoot.engines.affine_proof import joint_run
from surefoot.engines.cutting_planes import CuttingPlaneRun, why_no_cuts
from surefoot.io import register
from surefoot.problem import Problem, affine_forms, joint_form, one_adversary, why_not_joint
from surefoot.solvers.base import (
    DEFAULT_GAP,
    AffineSolver,
    Callback,
    ProductAnswer,
    Solution,
    Solver,
    assemble,
    check_options,
)
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.loop import run_until
from surefoot.typing import IntArray
from surefoot.validation import check_integer


@register
@dataclass(frozen=True)
class CuttingPlanes(AffineSolver):
    """Solve a linear program over moved samples, and add the adversary's answer, round by round.

    It needs no random numbers and no tuning, and takes any support and any number of lines. Its
    programs grow with the rows: it is for problems of up to some thousand rows and tens of columns.
    It is the solver of several products under one adversary (``adversary="joint"``).

    Parameters
    ----------
    gap_tol
        Largest certified gap (upper - lower) / lower at which the run stops.
    max_steps
        Most rounds for each product.
    callback
        Called with a ``Progress`` after every round.

    Examples
    --------
    >>> from surefoot import Box, Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> problem = Problem(Newsvendor(1.0, 0.2), Linear(), Empirical([[0.0], [0.6], [1.0]], [1, 2, 4]),
    ...                   WassersteinBall(radius=0.3, support=Box(0, 1)))
    >>> CuttingPlanes().solve(problem).converged
    True

    References
    ----------
    Linderoth and Wright (2003), "Decomposition algorithms for stochastic programming on a computational
    grid", Comput. Optim. Appl. 24.
    """

    gap_tol: float = DEFAULT_GAP
    max_steps: int = 500
    callback: Callback | None = None

    def __post_init__(self) -> None:
        """Check every option by name."""
        check_options(self)

    def why_not(self, problem: Problem) -> str | None:
        """Return why the problem has no such program, or None."""
        if one_adversary(problem):
            return why_not_joint(problem)
        reason = super().why_not(problem)
        if reason is not None:
            return reason
        return next((why for form in affine_forms(problem) if (why := why_no_cuts(form))), None)

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the seed is not used."""
        check_integer("seed", seed, at_least=0)
        self.refuse_unless_fit(problem)
        if one_adversary(problem):
            products = [self._solved(joint_run(joint_form(problem)))]
        else:
            products = [self.solve_form(form) for form in affine_forms(problem)]
        return assemble(self, products, gap_tol=self.gap_tol)

    def solve_form(self, form: AffineForm) -> ProductAnswer:
        """Solve one product."""
        assert isinstance(form, WassersteinForm)  # or it was refused
        return self._solved(CuttingPlaneRun(form))

    def _solved(self, run: CuttingPlaneRun) -> ProductAnswer:
        return run_until(run, self._rounds(), gap_tol=self.gap_tol, callback=self.callback)

    def roughly(self, rows: int) -> Solver:
        """Return a solver for rehearsals: a few quick steps, as nobody asks for a proof."""
        return DASGD().roughly(rows)

    def _rounds(self) -> Iterator[IntArray]:
        for number in range(self.max_steps):
            yield np.array([number])
