"""The problem: cost, policy, nominal and ball, and the forms in which it is solved."""

from surefoot.problem.affine import (
    AffineProblem,
    affine_problems,
    column_spread,
    user_parameters,
    why_not_affine,
)
from surefoot.problem.general import GeneralProblem, general_problem, why_not_general
from surefoot.problem.problem import Problem

__all__ = [
    "AffineProblem",
    "GeneralProblem",
    "Problem",
    "affine_problems",
    "column_spread",
    "general_problem",
    "user_parameters",
    "why_not_affine",
    "why_not_general",
]
