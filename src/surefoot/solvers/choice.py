"""Which solver runs where the user names none."""

from surefoot.ambiguity import AffineForm, WassersteinForm
from surefoot.engines.affine_proof import small_joint_program
from surefoot.engines.cutting_planes import small_program
from surefoot.nominals import RowBatches
from surefoot.problem import Problem, affine_forms, joint_form, why_not_joint
from surefoot.solvers.base import Solver
from surefoot.solvers.cutting_planes import CuttingPlanes
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.primal_dual import PrimalDual
from surefoot.solvers.smoothed_newton import SmoothedNewton

# Costs are lopsided from this ratio on; rows are few up to so many for each column.
LOPSIDED, ROWS_PER_COLUMN = 20.0, 2


def default_solver(problem: Problem) -> Solver:
    """Return the quickest solver that can certify.

    ``SmoothedNewton()`` for several products under one adversary, of order 2 without a support (also
    where "auto" leaves open how many adversaries there are); ``PrimalDual()`` for other free supports
    and costs of two lines (but for lopsided costs of few rows without an intercept); elsewhere
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
    if problem.nominal.n_products > 1:
        if SmoothedNewton().why_not(problem) is None:
            return SmoothedNewton()
        if why_not_joint(problem) is None:
            return CuttingPlanes() if small_joint_program(joint_form(problem)) else DASGD()
    quick = PrimalDual()
    dual = quick.why_not(problem) is None
    if isinstance(problem.nominal, RowBatches):
        return quick if dual else DASGD()
    if dual and not _interpolated(problem):
        return quick
    cuts = CuttingPlanes()
    if cuts.why_not(problem) is None and all(small_program(form) for form in affine_forms(problem)):
        return cuts
    return quick if dual else DASGD()


def solver_for(problem: Problem, solver: Solver | None = None) -> Solver:
    """Return the solver that was asked for, or the default one; refuse what it cannot treat."""
    own = default_solver(problem) if solver is None else solver
    own.refuse_unless_fit(problem)
    return own


def _interpolated(problem: Problem) -> bool:
    """Whether some product's rows are interpolated; most problems are told apart without their rows."""
    if getattr(problem.policy, "intercept", False):
        return False
    return any(_interpolates(form) for form in affine_forms(problem))


def _interpolates(form: AffineForm) -> bool:
    """Whether a policy without intercept can pass through all rows at hardly any cost.

    With lopsided costs of order 2 the constant of the ball then depends on slopes that are tiny beside
    the others, and the primal-dual method stays at zero.
    """
    if not isinstance(form, WassersteinForm) or form.order == 1 or form.intercept:
        return False
    up, down = form.pieces.up, form.pieces.down
    few = len(form.outcomes) <= ROWS_PER_COLUMN * form.contexts.shape[1]
    return few and max(up, down) > LOPSIDED * min(up, down)
