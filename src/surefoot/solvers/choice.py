"""Which solver runs where the user names none."""

from surefoot.engines.affine_proof import small_joint_program
from surefoot.engines.cutting_planes import small_program
from surefoot.nominals import RowBatches
from surefoot.problem import Problem, affine_forms, joint_form, why_not_joint
from surefoot.problem.problem import check_problem
from surefoot.solvers.base import Solver
from surefoot.solvers.cutting_planes import CuttingPlanes
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.primal_dual import PrimalDual
from surefoot.solvers.smoothed_newton import SmoothedNewton


def default_solver(problem: Problem) -> Solver:
    """Return the quickest solver that can certify.

    ``SmoothedNewton()`` for several products under one adversary, of order 2 without a support (also
    where "auto" leaves open how many adversaries there are); ``PrimalDual()`` for other free supports
    and costs of two lines; elsewhere
    ``CuttingPlanes()`` for problems of some hundred rows, also of several products under one
    adversary, and ``DASGD()`` for the others.

    Examples
    --------
    >>> from surefoot import Box, Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> rows = Empirical([[0.0], [0.6], [1.0]], [1, 2, 4])
    >>> free, boxed = WassersteinBall(0.1), WassersteinBall(0.1, support=Box(0, 1))
    >>> [type(default_solver(Problem(Newsvendor(1.0, 0.2), Linear(), rows, ball))).__name__
    ...  for ball in (free, boxed)]
    ['PrimalDual', 'CuttingPlanes']
    """
    check_problem(problem)
    if problem.nominal.n_products > 1:
        if SmoothedNewton().why_not(problem) is None:
            return SmoothedNewton()
        if why_not_joint(problem) is None:
            return CuttingPlanes() if small_joint_program(joint_form(problem)) else DASGD()
    quick = PrimalDual()
    if quick.why_not(problem) is None:
        return quick
    cuts, batches = CuttingPlanes(), isinstance(problem.nominal, RowBatches)
    if batches or cuts.why_not(problem) is not None:
        return DASGD()
    return cuts if all(small_program(form) for form in affine_forms(problem)) else DASGD()


def solver_for(problem: Problem, solver: Solver | None = None) -> Solver:
    """Return the solver that was asked for, or the default one; refuse what it cannot treat."""
    own = default_solver(problem) if solver is None else solver
    own.refuse_unless_fit(problem)
    return own
