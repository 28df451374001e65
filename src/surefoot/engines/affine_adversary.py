"""The worst distribution for an affine policy, product by product, in the user's units."""

import numpy as np

from surefoot.ambiguity import Adversary, AffineForm, JointForm, WassersteinForm
from surefoot.costs import ConvexPiecewiseCost
from surefoot.engines.limited_adversary import cut_adversary, cut_form, cut_value
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.problem import Problem, affine_forms, form_policies
from surefoot.typing import FloatArray


def multiplier_unit(form: AffineForm | JointForm) -> float:
    """Return one unit of the multiplier of a form, in the user's units of cost and transport."""
    order = form.order if isinstance(form, WassersteinForm | JointForm) else 0
    return form.value_unit / form.column_unit**order


def affine_worst_case(problem: Problem, parameters: LinearParameters) -> tuple[float, FloatArray]:
    """Return value and multipliers of ``affine_adversary``, without the distribution."""
    forms = affine_forms(problem, merge=False)
    worst = product_values(problem, forms, parameters)
    value = sum(
        (value + f.unavoidable) * f.value_unit for (value, _), f in zip(worst, forms, strict=True)
    )
    multipliers = [gamma * multiplier_unit(f) for (_, gamma), f in zip(worst, forms, strict=True)]
    return value, np.array(multipliers)


def product_values(
    problem: Problem, forms: tuple[AffineForm, ...], parameters: LinearParameters
) -> list[tuple[float, float]]:
    """Return worst case and multiplier of each product, in the units of its form.

    Decisions that are cut to limits are bounded by those before they are cut only in a support that
    stops the adversary; elsewhere their worst case is exact.
    """
    values, limits = [], problem.policy.decisions
    for j, (form, policy) in enumerate(zip(forms, form_policies(forms, parameters), strict=True)):
        cut = cut_form(form, policy, limits, j, len(forms))
        values.append(form.worst_value(*policy) if cut is None else cut_value(cut))
    return values


def affine_adversary(problem: Problem, parameters: LinearParameters) -> Adversary:
    """Return the worst distribution for each product's own adversary, in the user's units."""
    nominal = problem.nominal
    assert isinstance(nominal, Empirical)  # a problem around rows
    forms = affine_forms(problem, merge=False)
    policies = form_policies(forms, parameters)
    limits, parts = problem.policy.decisions, []
    for j, (form, policy) in enumerate(zip(forms, policies, strict=True)):
        cut = cut_form(form, policy, limits, j, len(forms))
        parts.append(form.adversary(*policy) if cut is None else cut_adversary(cut))
    features = problem.policy.transform(nominal.contexts)
    # Moves are added to the user's own numbers, so that what stays still stays to the last bit.
    contexts = [
        features[part.rows] + (part.contexts - form.contexts[part.rows]) * form.scale
        for part, form in zip(parts, forms, strict=True)
    ]
    outcomes = [
        nominal.outcomes[part.rows, j] + (part.outcomes - form.outcomes[part.rows]) * form.outcome_unit
        for j, (part, form) in enumerate(zip(parts, forms, strict=True))
    ]
    orders = [form.order if isinstance(form, WassersteinForm) else 0 for form in forms]
    lengths = [form.column_unit**order for form, order in zip(forms, orders, strict=True)]
    offsets = problem.policy.inputs(nominal.contexts, nominal.offsets)[:, features.shape[1] :]
    cost = sum(
        _cost_of_atoms(problem, j, part, contexts[j], outcomes[j], parameters, offsets)
        for j, part in enumerate(parts)
    )
    return Adversary(
        value=sum((p.value + f.unavoidable) * f.value_unit for p, f in zip(parts, forms, strict=True)),
        expected_cost=float(cost),
        multiplier=np.array(
            [float(p.multiplier[0]) * multiplier_unit(f) for p, f in zip(parts, forms, strict=True)]
        ),
        transport_cost=np.array(
            [float(p.transport_cost[0]) * u for p, u in zip(parts, lengths, strict=True)]
        ),
        rows=np.concatenate([part.rows for part in parts]),
        products=np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts]),
        contexts=np.vstack(contexts),
        outcomes=np.concatenate(outcomes),
        weights=np.concatenate([part.weights for part in parts]),
        distances=np.concatenate([p.distances * u for p, u in zip(parts, lengths, strict=True)]),
    )


def _cost_of_atoms(
    problem: Problem, product: int, part: Adversary, contexts: FloatArray, outcomes: FloatArray,
    parameters: LinearParameters, offsets: FloatArray,
) -> float:  # fmt: skip
    """Return what a product's atoms cost under the policy as it decides, limits and all."""
    decisions = contexts @ parameters.theta[:, product] + parameters.intercept[product]
    if offsets.shape[1]:
        decisions = decisions + offsets[part.rows, product]
    limits = problem.policy.decisions
    if limits is not None:
        whole = np.tile(decisions[:, None], (1, parameters.theta.shape[1]))
        decisions = limits.map_into(whole)[:, product]
    assert isinstance(problem.cost, ConvexPiecewiseCost)  # or this engine would not have been chosen
    pieces = problem.cost.pieces(parameters.theta.shape[1])[product]
    return float(part.weights @ pieces.evaluate(decisions - outcomes))
