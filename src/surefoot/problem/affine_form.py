"""Problems with an affine policy and a piecewise linear cost, as one form for each product."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surefoot.ambiguity import AffineForm, AffineRows, JointForm, WassersteinBall, WassersteinForm
from surefoot.ambiguity.joint_rows import why_no_joint_lines
from surefoot.costs import ConvexPiecewiseCost
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.nominals.empirical import column_spread
from surefoot.policies import Linear, LinearParameters
from surefoot.problem.columns import check_support, spread_units
from surefoot.problem.problem import Problem, check_problem
from surefoot.sets import Box
from surefoot.typing import FloatArray


def why_not_affine(problem: Problem) -> str | None:
    """Return why the problem has no affine form, or None if it has one (on rows of its nominal)."""
    check_problem(problem)
    if not isinstance(problem.policy, Linear):
        return f"it needs a Linear policy, got {type(problem.policy).__name__}"
    if not isinstance(problem.cost, ConvexPiecewiseCost):
        return f"it needs a piecewise linear cost such as Newsvendor, got {type(problem.cost).__name__}"
    if one_adversary(problem):
        return "it needs adversary='each' for several products, got 'joint'"
    return _why_not_lines(problem)


def one_adversary(problem: Problem) -> bool:
    """Whether one adversary faces several products."""
    check_problem(problem)
    ball = problem.ball
    joint = isinstance(ball, WassersteinBall) and ball.adversary == "joint"
    return joint and problem.nominal.n_products > 1


def with_adversaries(problem: Problem) -> Problem:
    """Return the problem with an adversary of its own for each product."""
    check_problem(problem)
    if not isinstance(problem.ball, WassersteinBall):
        return problem
    return replace(problem, ball=replace(problem.ball, adversary="each"))


def with_one_adversary(problem: Problem) -> Problem:
    """Return the problem with one adversary for all products, unless it says that each has its own."""
    check_problem(problem)
    ball = problem.ball
    if not isinstance(ball, WassersteinBall) or ball.adversary != "auto":
        return problem
    if problem.nominal.n_products == 1:  # which faces one in any case
        return problem
    return replace(problem, ball=replace(ball, adversary="joint"))


def why_not_joint(problem: Problem) -> str | None:
    """Return why the problem has no exact worst case under one adversary, or None if it has one."""
    if not one_adversary(problem):
        return "it needs several products and a WassersteinBall with adversary='joint'"
    if not isinstance(problem.nominal, Empirical):
        return f"it needs an Empirical nominal, got {type(problem.nominal).__name__}"
    reason = why_not_affine(with_adversaries(problem))
    if reason is not None or not isinstance(problem.cost, ConvexPiecewiseCost):
        return reason
    return why_no_joint_lines(problem.cost.pieces(problem.nominal.n_products))


def joint_form(problem: Problem, *, merge: bool = True) -> JointForm:
    """Return the problem of several products under one adversary as one form; see ``affine_forms``."""
    reason = why_not_joint(problem)
    if reason is not None:
        raise UnsupportedProblemError(f"The problem has no joint form: {reason}.")
    each = affine_forms(with_adversaries(problem), merge=merge)
    return JointForm(tuple(form for form in each if isinstance(form, WassersteinForm)))


def _why_not_lines(problem: Problem) -> str | None:
    limits = problem.policy.decisions
    if limits is None:
        return None
    if not isinstance(limits, Box):
        return f"it needs decisions limited one by one (a Box), got {type(limits).__name__}"
    # Cutting splits the cost of two lines that meet at zero, and of nothing else.
    assert isinstance(problem.cost, ConvexPiecewiseCost)  # or it was refused
    if any(p.smoothing > 0 or not p.two for p in problem.cost.pieces(problem.nominal.n_products)):
        return "it needs a cost of two lines without smoothing where decisions have limits"
    if math.isfinite(problem.ball.outcome_cost):
        return "it needs outcome_cost=inf where decisions have limits, got a finite one"
    return None


def affine_forms(problem: Problem, *, merge: bool = True) -> tuple[AffineForm, ...]:
    """Return the problem as one affine form for each product.

    Parameters
    ----------
    problem
        A problem with a Linear policy, a piecewise linear cost and an Empirical nominal.
    merge
        Whether equal rows are joined and ordered, as solvers want it, or rows stay as they came.
    """
    reason = why_not_affine(problem)
    policy, cost, given = problem.policy, problem.cost, problem.nominal
    if not isinstance(given, Empirical):
        reason = reason or f"it needs an Empirical nominal, got {type(given).__name__}"
    if (
        reason is not None
        or not isinstance(policy, Linear)
        or not isinstance(cost, ConvexPiecewiseCost)
    ):
        raise UnsupportedProblemError(f"The problem has no affine form: {reason}.")
    assert isinstance(given, Empirical)  # or there was a reason
    nominal = given.distinct() if merge else given
    features = policy.transform(nominal.contexts)
    plain = merge and policy.features is None
    spread = nominal.spread if plain else column_spread(features, nominal.weights)
    units = spread_units(problem, given.names, spread)
    check_support(problem, features, nominal.outcomes)
    outcomes = nominal.outcomes
    if policy.decisions is not None:
        refusal = policy.decisions.why_not(outcomes.shape[1])
        if refusal is not None:
            raise InvalidInputError(f"{refusal}.")
        outcomes = policy.decisions.map_into(outcomes)
    offsets = policy.offsets(nominal.contexts) if nominal.offsets is None else nominal.offsets
    if offsets is not None and offsets.shape != outcomes.shape:
        raise InvalidInputError(
            f"offset(X) of the policy must have shape {outcomes.shape}, got {offsets.shape}."
        )
    fixed = np.zeros_like(outcomes) if offsets is None else offsets
    errors = outcomes if offsets is None else outcomes - offsets
    contexts = np.ascontiguousarray(features / units.scale)
    cut = None if policy.decisions is None else outcomes - nominal.outcomes
    forms = []
    for j, pieces in enumerate(cost.pieces(nominal.n_products)):
        unit, cost_unit = outcome_unit(errors[:, j], nominal.weights), power_of_two(pieces.steepest)
        rows = AffineRows(
            contexts=contexts, outcomes=np.ascontiguousarray(errors[:, j] / unit),
            weights=nominal.weights, intercept=policy.intercept, pieces=pieces.scaled(cost_unit, unit),
            offsets=fixed[:, j] / unit, scale=units.scale, column_unit=units.common,
            outcome_unit=unit, cost_unit=cost_unit,
            cut=None if cut is None else cut[:, j] / unit,
        )  # fmt: skip
        forms.append(problem.ball.form(rows, units.movable))
    return tuple(forms)


def power_of_two(size: float) -> float:
    """Return the power of two next to a positive number: dividing by it changes no digit.

    >>> power_of_two(0.3), power_of_two(100.0)
    (0.25, 128.0)
    """
    return 2.0 ** round(math.log2(size))


def outcome_unit(outcomes: FloatArray, weights: FloatArray) -> float:
    """Return a power of two near the spread of outcomes, or near their size where all are equal."""
    size = float(np.abs(outcomes).max())
    if size == 0.0:
        return 1.0
    shares = outcomes / size  # squares neither overflow nor vanish
    spread = math.sqrt(float(weights @ (shares - weights @ shares) ** 2))
    return power_of_two(size * (spread if spread > 1e-12 else 1.0))


def user_parameters(
    forms: Sequence[AffineForm | JointForm], policies: Sequence[tuple[FloatArray, Any]]
) -> LinearParameters:
    """Return (theta, intercept) of each form as parameters in the user's units."""
    pairs = [form.in_user_units(*policy) for form, policy in zip(forms, policies, strict=True)]
    theta = np.column_stack([theta for theta, _ in pairs])
    return LinearParameters(theta=theta, intercept=np.hstack([t for _, t in pairs]))


def form_policies(
    forms: tuple[AffineForm, ...], parameters: LinearParameters
) -> list[tuple[FloatArray, float]]:
    """Return parameters in the user's units as (theta, intercept) of each form."""
    return [
        form.from_user_units(parameters.theta[:, j], float(parameters.intercept[j]))
        for j, form in enumerate(forms)
    ]
