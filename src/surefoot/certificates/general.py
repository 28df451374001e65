"""What can be said about a policy of any kind.

The moves come from an engine and are not trusted: costs and distances are computed anew from the
moved samples, with NumPy. A move that an ascent did not find cannot be ruled out in general, so the
worst case is an estimate, unless the inner problem is known to be concave: then the slope that is
left at the moved sample bounds what is left to gain.
"""

from dataclasses import dataclass

import numpy as np

from surefoot.certificates.certificate import Certificate
from surefoot.costs import AuxiliaryCost
from surefoot.policies import Linear
from surefoot.problem import GeneralProblem
from surefoot.random import rng_for
from surefoot.typing import FloatArray

# How the cost grows far away is looked at on so many rows, in so many directions, between two moves
# of so many units of transport.
FAR_ROWS, FAR_DIRECTIONS, FAR_STEPS = 32, 8, (1e9, 1e10)
# A policy that reacts so little that even there costs are below this many times those of the rows
# themselves shows no growth to speak of.
FAR_FACTOR = 1e3


@dataclass(frozen=True, eq=False)
class MovedRows:
    """Rows of a problem and where an adversary took them, in the user's units.

    ``steepness`` is the norm of the inner problem's gradient that is left at each moved row.
    """

    contexts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    moved_contexts: FloatArray
    moved_outcomes: FloatArray
    steepness: FloatArray


def costs_of(
    problem: GeneralProblem,
    trained: object,
    auxiliary: FloatArray,
    contexts: FloatArray,
    outcomes: FloatArray,
) -> FloatArray:
    """Return the cost of each row under a policy, in NumPy."""
    decisions = problem.decisions(trained, contexts)
    if isinstance(problem.cost, AuxiliaryCost):
        return np.asarray(problem.cost.evaluate_at(decisions, auxiliary, outcomes))
    return np.asarray(problem.cost.evaluate(decisions, outcomes))


def distances_of(problem: GeneralProblem, rows: MovedRows) -> FloatArray:
    """Return d_p of each row's move."""
    contexts = (rows.moved_contexts - rows.contexts) / problem.scale
    squares = (contexts**2).sum(axis=1)
    outcome_squares = ((rows.moved_outcomes - rows.outcomes) ** 2).sum(axis=1)
    if not problem.outcomes_move:
        return np.asarray(squares if problem.order == 2 else np.sqrt(squares))
    if problem.order == 2:
        return np.asarray(squares + problem.outcome_cost * outcome_squares)
    return np.asarray(np.sqrt(squares) + problem.outcome_cost * np.sqrt(outcome_squares))


def dual_value(
    problem: GeneralProblem, trained: object, auxiliary: FloatArray, gamma: float, rows: MovedRows
) -> float:
    """Return gamma radius^p + E[c - gamma d] at the moved rows."""
    costs = costs_of(problem, trained, auxiliary, rows.moved_contexts, rows.moved_outcomes)
    gains = costs - gamma * distances_of(problem, rows)
    return float(gamma * problem.radius**problem.order + rows.weights @ gains)


def inner_concavity(problem: GeneralProblem, trained: object, gamma: float) -> float | None:
    """Return mu > 0 if the inner problem is mu-strongly concave everywhere, None if not known to be.

    Known for affine policies without limits and costs of bounded curvature: the second derivative of
    the cost in the sample is then at most curvature times the squared norm of the parameters.
    """
    policy, curvature = problem.policy, problem.cost.curvature()
    if not isinstance(policy, Linear) or policy.decisions is not None or not np.isfinite(curvature):
        return None
    if problem.order != 2 or problem.outcomes_move or problem.boxed:
        return None
    theta = policy.in_user_units(trained, problem.units.tree()).theta
    moving = (theta * problem.scale[:, None])[problem.movable]
    norm = float(np.linalg.norm(moving, ord=2)) if moving.size else 0.0
    mu = 2.0 * gamma - curvature * norm**2
    return mu if mu > 0.0 else None


def growth_power(
    problem: GeneralProblem, trained: object, auxiliary: FloatArray, rows: MovedRows
) -> float:
    """Return the power with which the largest cost grows as rows move far away.

    A cost that grows faster than the distance has no finite worst case at any multiplier, yet an
    ascent that starts at the sample may never see it. The largest costs of all rows and directions
    are compared: a single row may cost next to nothing at one of the two distances by chance.
    """
    here, near, far = (_largest_cost(problem, trained, auxiliary, rows, t) for t in (0.0, *FAR_STEPS))
    if not np.isfinite(far):
        return float("inf")
    if near <= FAR_FACTOR * here:
        return 0.0
    return float(np.log(far / near) / np.log(FAR_STEPS[1] / FAR_STEPS[0]))


def _largest_cost(
    problem: GeneralProblem, trained: object, auxiliary: FloatArray, rows: MovedRows, length: float
) -> float:
    """Return the largest cost after moves of about this length, at least zero."""
    rng = rng_for(0, "far away")
    contexts, outcomes = rows.contexts[:FAR_ROWS], rows.outcomes[:FAR_ROWS]
    largest = 0.0
    for _ in range(FAR_DIRECTIONS):
        ahead = rng.normal(size=contexts.shape) * problem.scale * problem.movable
        aside = rng.normal(size=outcomes.shape) * float(problem.outcomes_move)
        with np.errstate(over="ignore", invalid="ignore"):
            costs = costs_of(
                problem, trained, auxiliary,
                np.clip(contexts + length * ahead, problem.lower, problem.upper),
                np.clip(outcomes + length * aside, *problem.outcome_bounds),
            )  # fmt: skip
        largest = max(largest, float(np.where(np.isnan(costs), np.inf, costs).max()))
    return largest


def certify_general(
    problem: GeneralProblem,
    trained: object,
    auxiliary: FloatArray,
    gamma: float,
    rows: MovedRows,
) -> Certificate:
    """Return what the moved rows prove about the worst case of a policy.

    "bound": every row of the nominal was moved and the inner problem is concave. "estimate"
    otherwise. There is no lower bound on the best policy beyond the cost's own floor.
    """
    upper = dual_value(problem, trained, auxiliary, gamma, rows)
    lower, whole = problem.cost.floor(), len(rows.weights) == len(problem.weights)
    if problem.radius == 0.0 and whole and problem.exact_rows:
        message = f"The expected cost is {upper:.6g}; whether a better policy exists is not proved."
        return Certificate(upper, lower, float("inf"), "bound", message)
    mu = inner_concavity(problem, trained, gamma)
    if mu is not None and whole and problem.exact_rows:
        upper += float(rows.weights @ rows.steepness**2) / (2.0 * mu)
        message = (
            f"The worst-case expected cost is at most {upper:.6g} (the inner problem is concave); "
            "whether a better policy exists is not proved."
        )
        return Certificate(upper, lower, float("inf"), "bound", message)
    message = (
        f"The worst-case expected cost is about {upper:.6g}, the most that gradient ascent found; "
        "no bound is proved."
    )
    return Certificate(upper, lower, float("inf"), "estimate", message)
