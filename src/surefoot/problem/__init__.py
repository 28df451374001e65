"""The problem: cost, policy, nominal and ball, and its affine form."""

from surefoot.problem.affine import (
    AffineProblem,
    affine_problems,
    column_spread,
    user_parameters,
    why_not_affine,
)
from surefoot.problem.problem import Problem

__all__ = [
    "AffineProblem",
    "Problem",
    "affine_problems",
    "column_spread",
    "user_parameters",
    "why_not_affine",
]
