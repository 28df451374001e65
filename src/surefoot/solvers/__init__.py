"""Solvers: the answer, with what is proved about it."""

from surefoot.solvers.base import AffineSolution, Progress, Solution, Solver
from surefoot.solvers.convex import ConvexProgram
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.exact import Exact
from surefoot.solvers.literal import LiteralDASGD

__all__ = [
    "DASGD",
    "AffineSolution",
    "ConvexProgram",
    "Exact",
    "LiteralDASGD",
    "Progress",
    "Solution",
    "Solver",
]
