"""The problem: cost, policy, nominal and ambiguity set, and the forms in which it is solved."""

from surefoot.nominals.empirical import column_spread
from surefoot.problem.affine_form import (
    affine_forms,
    form_policies,
    joint_form,
    one_adversary,
    user_parameters,
    why_not_affine,
    why_not_joint,
    with_adversaries,
    with_one_adversary,
)
from surefoot.problem.columns import check_support, fitted_problem, sampled_rows
from surefoot.problem.general_form import GeneralForm, general_form, why_not_general
from surefoot.problem.problem import Problem

__all__ = [
    "GeneralForm",
    "Problem",
    "affine_forms",
    "check_support",
    "column_spread",
    "fitted_problem",
    "form_policies",
    "general_form",
    "joint_form",
    "one_adversary",
    "sampled_rows",
    "user_parameters",
    "why_not_affine",
    "why_not_general",
    "why_not_joint",
    "with_adversaries",
    "with_one_adversary",
]
