"""Solvers: the answer, with what is proved about it."""

from surefoot.solvers.base import AffineAnswer, AffineSolution, Progress, Solution, Solver
from surefoot.solvers.convex import ConvexProgram
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.exact import Exact
from surefoot.solvers.general import GeneralSolution
from surefoot.solvers.literal import LiteralDASGD
from surefoot.solvers.many import solve_many
from surefoot.solvers.optimizers import SGD, Adam

__all__ = [
    "DASGD",
    "SGD",
    "Adam",
    "AffineAnswer",
    "AffineSolution",
    "ConvexProgram",
    "Exact",
    "GeneralSolution",
    "LiteralDASGD",
    "Progress",
    "Solution",
    "Solver",
    "solve_many",
]
