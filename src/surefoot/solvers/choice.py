"""Which solver runs where the user names none."""

from surefoot.problem import Problem
from surefoot.solvers.base import Solver
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.primal_dual import PrimalDual


def default_solver(problem: Problem) -> Solver:
    """Return the quickest solver that can certify: ``PrimalDual()`` where it can, else ``DASGD()``.

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
    ['PrimalDual', 'DASGD']
    """
    quick = PrimalDual()
    return quick if quick.why_not(problem) is None else DASGD()
