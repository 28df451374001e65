"""What can be said about a policy of any kind.

The moves come from an engine and are not trusted: costs and distances are computed anew from the
moved samples, with NumPy. A move that an ascent did not find cannot be ruled out in general, so the
worst case is an estimate, unless the inner problem is known to be concave: then the slope that is
left at the moved sample bounds what is left to gain.
"""

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.certificates.certificate import Certificate
from surefoot.policies import Linear
from surefoot.problem import GeneralForm
from surefoot.random import rng_for
from surefoot.typing import FloatArray

# How the cost grows far away is looked at on so many rows, in so many directions, between two moves
# of so many units of transport.
FAR_ROWS, FAR_DIRECTIONS, FAR_STEPS = 32, 8, (1e9, 1e10)
# A policy that reacts so little that even there costs are below this many times those of the rows
# themselves shows no growth to speak of.
FAR_FACTOR = 1e3


def move_distances(form: GeneralForm, contexts: FloatArray, outcomes: FloatArray) -> FloatArray:
    """Return d_p of each row's move, given as displacements in the user's units."""
    squares = ((contexts / form.scale) ** 2).sum(axis=1)
    outcome_squares = (outcomes**2).sum(axis=1)
    if not form.outcomes_move:
        return np.asarray(squares if form.order == 2 else np.sqrt(squares))
    if form.order == 2:
        return np.asarray(squares + form.outcome_cost * outcome_squares)
    return np.asarray(np.sqrt(squares) + form.outcome_cost * np.sqrt(outcome_squares))


def dual_value(form: GeneralForm, trained: object, auxiliary: FloatArray, moved: Adversary) -> float:
    """Return gamma radius^p + E[c - gamma d] at the moved rows."""
    gamma = float(moved.multiplier[0])
    gains = form.costs(trained, auxiliary, moved.contexts, moved.outcomes) - gamma * moved.distances
    return float(gamma * form.radius**form.order + moved.weights @ gains)


def inner_concavity(form: GeneralForm, trained: object, gamma: float) -> float | None:
    """Return mu > 0 if the inner problem is mu-strongly concave everywhere, None if not known to be.

    Known for affine policies without limits and costs of bounded curvature: the second derivative of
    the cost in the sample is then at most curvature times the squared norm of the parameters.
    """
    policy, curvature = form.policy, form.cost.curvature()
    if not isinstance(policy, Linear) or policy.decisions is not None or not np.isfinite(curvature):
        return None
    if form.order != 2 or form.outcomes_move or form.boxed:
        return None
    theta = policy.in_user_units(trained, form.units.tree()).theta
    features = len(theta)
    moving = (theta * form.scale[:features, None])[form.movable[:features]]
    norm = float(np.linalg.norm(moving, ord=2)) if moving.size else 0.0
    mu = 2.0 * gamma - curvature * norm**2
    return mu if mu > 0.0 else None


def growth_power(
    form: GeneralForm,
    trained: object,
    auxiliary: FloatArray,
    contexts: FloatArray,
    outcomes: FloatArray,
) -> float:
    """Return the power with which the largest cost grows as rows move far away.

    A cost that grows faster than the distance has no finite worst case at any multiplier, yet an
    ascent that starts at the sample may never see it. The largest costs of all rows and directions
    are compared: a single row may cost next to nothing at one of the two distances by chance.
    """
    rows = contexts[:FAR_ROWS], outcomes[:FAR_ROWS]
    here, near, far = (_largest_cost(form, trained, auxiliary, *rows, t) for t in (0.0, *FAR_STEPS))
    if not np.isfinite(far):
        return float("inf")
    if near <= FAR_FACTOR * here:
        return 0.0
    return float(np.log(far / near) / np.log(FAR_STEPS[1] / FAR_STEPS[0]))


def _largest_cost(
    form: GeneralForm, trained: object, auxiliary: FloatArray, contexts: FloatArray,
    outcomes: FloatArray, length: float,
) -> float:  # fmt: skip
    """Return the largest cost after moves of about this length, at least zero."""
    rng = rng_for(0, "far away")
    largest = 0.0
    for _ in range(FAR_DIRECTIONS):
        ahead = rng.normal(size=contexts.shape) * form.scale * form.movable
        aside = rng.normal(size=outcomes.shape) * float(form.outcomes_move)
        with np.errstate(over="ignore", invalid="ignore"):
            costs = form.costs(
                trained, auxiliary,
                np.clip(contexts + length * ahead, form.lower, form.upper),
                np.clip(outcomes + length * aside, *form.outcome_bounds),
            )  # fmt: skip
        largest = max(largest, float(np.where(np.isnan(costs), np.inf, costs).max()))
    return largest


def certify_general(
    form: GeneralForm,
    trained: object,
    auxiliary: FloatArray,
    moved: Adversary,
    steepness: FloatArray,
) -> Certificate:
    """Return what the moved rows prove about the worst case of a policy.

    ``steepness`` is the norm of the inner problem's gradient that is left at each moved row.
    "bound": every row of the nominal was moved and the inner problem is concave. "estimate"
    otherwise. There is no lower bound on the best policy beyond the cost's own floor.
    """
    upper = dual_value(form, trained, auxiliary, moved)
    lower = form.cost.floor(form.outcomes.shape[1])
    whole = len(moved.weights) == int((form.weights > 0.0).sum())
    if form.radius == 0.0 and whole and form.exact_rows:
        message = f"The expected cost is {upper:.6g}; whether a better policy exists is not proved."
        return Certificate(upper, lower, float("inf"), "bound", message)
    mu = inner_concavity(form, trained, float(moved.multiplier[0]))
    if mu is not None and whole and form.exact_rows:
        upper += float(moved.weights @ steepness**2) / (2.0 * mu)
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
