"""Solvers: the answer, with what is proved about it."""

from surefoot.engines.optimizers import SGD, Adam
from surefoot.solvers.base import Progress, Solution, Solver
from surefoot.solvers.choice import default_solver
from surefoot.solvers.convex_program import ConvexProgram
from surefoot.solvers.cutting_planes import CuttingPlanes
from surefoot.solvers.dasgd import DASGD
from surefoot.solvers.exact import Exact
from surefoot.solvers.literal import LiteralDASGD
from surefoot.solvers.many import solve_many
from surefoot.solvers.primal_dual import PrimalDual
from surefoot.solvers.smoothed_newton import SmoothedNewton
from surefoot.solvers.solutions import Solutions

__all__ = [
    "DASGD",
    "SGD",
    "Adam",
    "ConvexProgram",
    "CuttingPlanes",
    "Exact",
    "LiteralDASGD",
    "PrimalDual",
    "Progress",
    "SmoothedNewton",
    "Solution",
    "Solutions",
    "Solver",
    "default_solver",
    "solve_many",
]
