"""Worst cases of several products of a linear policy under one adversary, exactly: the user's units."""

from dataclasses import replace

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.certificates import Certificate, bounded, certify
from surefoot.engines.affine_adversary import affine_worst_case
from surefoot.engines.affine_proof import best_proof, small_joint_program
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.problem import Problem, joint_form, with_adversaries
from surefoot.typing import FloatArray

# Most rounds of cutting planes behind a lower bound.
PROOF_ROUNDS = 50


def joint_adversary(problem: Problem, parameters: LinearParameters) -> Adversary:
    """Return the worst distribution for all products together.

    The value of decisions that are cut to limits is a bound: that of decisions before they are cut, or
    of an adversary for each product, who together can do no less than one.
    """
    nominal, policy = problem.nominal, problem.policy
    assert isinstance(nominal, Empirical)  # a problem around rows
    form = joint_form(problem, merge=False)
    worst = form.adversary(*form.from_user_units(parameters.theta, parameters.intercept))
    features = policy.transform(nominal.contexts)
    units = np.array([one.outcome_unit for one in form.products])
    # Moves are added to the user's own numbers, so that what stays still stays to the last bit.
    contexts = features[worst.rows] + (worst.contexts - form.contexts[worst.rows]) * form.scale
    outcomes = nominal.outcomes[worst.rows] + (worst.outcomes - form.outcomes[worst.rows]) * units
    fixed = policy.inputs(nominal.contexts, nominal.offsets)[:, features.shape[1] :]
    decisions = replace(policy, features=None).decide(
        parameters, contexts, fixed[worst.rows] if fixed.shape[1] else None
    )
    length, value = form.column_unit**form.order, (worst.value + form.unavoidable) * form.value_unit
    if form.limited:
        value = min(value, affine_worst_case(with_adversaries(problem), parameters)[0])
    return worst._replace(
        value=value,
        expected_cost=problem.cost.mean(decisions, outcomes, worst.weights),
        multiplier=worst.multiplier * form.value_unit / length,
        transport_cost=worst.transport_cost * length,
        contexts=contexts,
        outcomes=outcomes,
        distances=worst.distances * length,
    )


def joint_worst_values(
    problem: Problem, parameters: LinearParameters, radii: FloatArray
) -> tuple[FloatArray, str]:
    """Return the worst case of a policy at each radius, and whether it is exact."""
    form = joint_form(problem, merge=False)
    policy = form.from_user_units(parameters.theta, parameters.intercept)
    values = [form.at_radius(float(radius)).worst_value(*policy)[0] for radius in radii]
    total = (np.array(values) + form.unavoidable) * form.value_unit
    if not form.limited:
        return total, "exact"
    each = [
        affine_worst_case(with_adversaries(problem.at_radius(float(radius))), parameters)[0]
        for radius in radii
    ]
    return np.minimum(total, each), "bound"


def joint_certificate(
    problem: Problem, parameters: LinearParameters, least: float, target: float | None
) -> Certificate:
    """Return the exact worst case of a policy, beside a lower bound where one is quickly proved.

    The lower bound comes from cutting planes, whose own policy is never handed out. ``target`` is how
    closely they bound the best policy (None: not at all), ``least`` the least cost there is.
    """
    form = joint_form(problem)
    policy = form.from_user_units(parameters.theta, parameters.intercept)
    if target is not None and small_joint_program(form):
        return certify([form], [policy], [best_proof(form, target, PROOF_ROUNDS)])
    upper = (form.worst_value(*policy)[0] + form.unavoidable) * form.value_unit
    at_most = "at most " if form.limited else ""
    return bounded(upper, least, least, f"The worst-case expected cost is {at_most}{upper:.6g}")
