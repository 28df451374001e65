"""Worst cases of several products of a linear policy under one adversary, exactly: the user's units."""

from dataclasses import replace

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.problem import Problem, joint_form
from surefoot.typing import FloatArray


def joint_adversary(problem: Problem, parameters: LinearParameters) -> Adversary:
    """Return the worst distribution for all products together."""
    nominal, policy = problem.nominal, problem.policy
    assert isinstance(nominal, Empirical)  # a problem around rows
    form = joint_form(problem, merge=False)
    found = form.adversary(*form.from_user_units(parameters.theta, parameters.intercept))
    features = policy.transform(nominal.contexts)
    units = np.array([one.outcome_unit for one in form.products])
    # Moves are added to the user's own numbers, so that what stays still stays to the last bit.
    contexts = features[found.rows] + (found.contexts - form.contexts[found.rows]) * form.scale
    outcomes = nominal.outcomes[found.rows] + (found.outcomes - form.outcomes[found.rows]) * units
    fixed = policy.inputs(nominal.contexts, nominal.offsets)[:, features.shape[1] :]
    decisions = replace(policy, features=None).decide(
        parameters, contexts, fixed[found.rows] if fixed.shape[1] else None
    )
    length = form.column_unit**form.order
    return found._replace(
        value=(found.value + form.unavoidable) * form.value_unit,
        expected_cost=problem.cost.mean(decisions, outcomes, found.weights),
        multiplier=found.multiplier * form.value_unit / length,
        transport_cost=found.transport_cost * length,
        contexts=contexts,
        outcomes=outcomes,
        distances=found.distances * length,
    )


def joint_worst_values(
    problem: Problem, parameters: LinearParameters, radii: FloatArray
) -> tuple[FloatArray, str]:
    """Return the worst case of a policy at each radius, and whether it is exact."""
    form = joint_form(problem, merge=False)
    policy = form.from_user_units(parameters.theta, parameters.intercept)
    values = [form.at_radius(float(radius)).worst_value(*policy)[0] for radius in radii]
    total = (np.array(values) + form.unavoidable) * form.value_unit
    return total, "bound" if form.limited else "exact"
