"""What can be said about a policy of any kind.

The moves come from an engine and are not trusted: costs and distances are computed anew from the
moved samples, with NumPy. A move that an ascent did not find cannot be ruled out in general, so the
worst case is an estimate, unless the inner problem is known to be concave: then the slope that is
left at the moved sample bounds what is left to gain.

A lower bound on the best policy comes from any one distribution in the ball: no policy has a worst case
below the least expected cost under it. For affine policies the cost itself says what that least cost
is at least (``Cost.affine_floor``); that the distribution lies in the ball is checked here.
"""

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.certificates.certificate import Certificate, relative_gap
from surefoot.costs import Quadratic
from surefoot.policies import Linear
from surefoot.problem import GeneralForm
from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray

# How the cost grows far away is looked at on so many rows, in so many directions, between two moves
# of so many units of transport.
FAR_ROWS, FAR_DIRECTIONS, FAR_STEPS = 32, 8, (1e9, 1e10)
# Sums of many weights and distances may be off by rounding.
ROUNDING = 1e-9
# A lower bound that is above the least cost there is by a smaller share of the worst case is none.
TRIFLE = 1e-6
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
    the cost in the sample is then at most theta diag(curvatures) theta'. Where outcomes move, too, it
    is known of squares, which decisions and outcomes bend alike.
    """
    policy, curvature = form.policy, form.cost.curvature()
    if not isinstance(policy, Linear) or policy.decisions is not None or not np.isfinite(curvature):
        return None
    if form.order != 2 or (form.outcomes_move and not isinstance(form.cost, Quadratic)):
        return None
    theta = policy.in_user_units(trained, form.units.tree()).theta
    features = len(theta)
    moving = (theta * form.scale[:features, None])[form.movable[:features]]
    if form.outcomes_move:
        moving = np.vstack([moving, np.eye(form.n_decisions) / np.sqrt(form.outcome_cost)])
    steep = moving * np.sqrt(form.cost.curvatures(form.n_decisions))
    norm = float(np.linalg.norm(steep, ord=2)) if moving.size else 0.0
    mu = 2.0 * gamma - norm**2
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
    still, near, far = (_largest_cost(form, trained, auxiliary, *rows, t) for t in (0.0, *FAR_STEPS))
    if not np.isfinite(far):
        return float("inf")
    if near <= FAR_FACTOR * still:
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


def in_ball(form: GeneralForm, atoms: Adversary) -> bool:
    """Whether atoms are a distribution in the ball around the rows of a form, found anew from them."""
    mass = np.bincount(atoms.rows, atoms.weights, minlength=len(form.weights))
    moved = atoms.contexts - form.contexts[atoms.rows]
    aside = atoms.outcomes - form.outcomes[atoms.rows]
    spent = atoms.weights @ move_distances(form, moved, aside)
    low, high = form.outcome_bounds
    return bool(
        np.abs(mass - form.weights).max() <= ROUNDING / len(form.weights)
        and spent <= form.radius**form.order * (1.0 + ROUNDING)
        and (moved[:, ~form.movable] == 0.0).all()
        and (form.outcomes_move or (aside == 0.0).all())
        and ((atoms.contexts >= form.lower) & (atoms.contexts <= form.upper))[:, form.movable].all()
        and ((atoms.outcomes >= low) & (atoms.outcomes <= high)).all()
    )


def affine_design(form: GeneralForm, contexts: FloatArray) -> FloatArray:
    """Return what the parameters of a linear policy are multiplied with: a one, and scaled features."""
    features = contexts[:, : form.n_features]
    if isinstance(form.policy, Linear) and not form.policy.intercept:
        return np.asarray(features / form.units.spread)
    scaled = (features - form.units.mean) / form.units.spread
    return np.column_stack([np.ones(len(features)), scaled])


def lower_bound(form: GeneralForm, atoms: Adversary) -> float:
    """Return a worst case that no policy of the family can undercut, by a distribution in the ball."""
    floor, policy = form.cost.floor(form.outcomes.shape[1]), form.policy
    if not isinstance(policy, Linear) or not form.exact_rows or not in_ball(form, atoms):
        return floor
    if policy.decisions is not None:
        groups = _free_groups(form, atoms.contexts)
        if groups is None:
            return floor
        return max(
            floor, form.cost.limited_floor(policy.decisions, groups, atoms.outcomes, atoms.weights)
        )
    design = affine_design(form, atoms.contexts)
    fixed = atoms.contexts[:, form.n_features :] if policy.offset is not None else 0.0
    # A little of the budget may be overspent by rounding: the bound is that of a ball as much larger.
    return max(floor, form.cost.affine_floor(design, atoms.outcomes - fixed, atoms.weights))


def _free_groups(form: GeneralForm, contexts: FloatArray) -> IntArray | None:
    """Return which rows share a context, None if contexts depend on each other linearly.

    Where they do not, every context can have a decision of its own, so that limits on decisions leave
    the problem convex: it is one in the decisions.
    """
    distinct, groups = np.unique(contexts, axis=0, return_inverse=True)
    if len(distinct) > form.n_features + 1:
        return None
    rank = np.linalg.matrix_rank(affine_design(form, distinct))
    return groups.reshape(-1) if rank == len(distinct) else None


def certify_general(
    form: GeneralForm,
    trained: object,
    auxiliary: FloatArray,
    moved: Adversary,
    steepness: FloatArray,
    atoms: Adversary | None = None,
) -> Certificate:
    """Return what the moved rows prove about the worst case of a policy.

    ``steepness`` is the norm of the inner problem's gradient that is left at each moved row, without
    what the support does not let it follow. ``atoms`` are a distribution that may lie in the ball, for
    the lower bound. "bound": every row of the nominal was moved and the inner problem is concave.
    "estimate" otherwise; its gap is infinite, as nothing is proved.
    """
    upper = dual_value(form, trained, auxiliary, moved)
    least = form.cost.floor(form.outcomes.shape[1])
    lower = least if atoms is None else lower_bound(form, atoms)
    if lower - least <= TRIFLE * abs(upper):  # true, and worth nothing
        lower = least
    whole = len(moved.weights) == int((form.weights > 0.0).sum())
    mu = inner_concavity(form, trained, float(moved.multiplier[0]))
    floor, reason = _gap_floor(form, trained, auxiliary, least), _why_no_lower(form, atoms)
    if form.radius == 0.0 and whole and form.exact_rows:
        return bounded(upper, lower, least, f"The expected cost is {upper:.6g}", floor, reason)
    if mu is not None and whole and form.exact_rows:
        upper += float(moved.weights @ steepness**2) / (2.0 * mu)
        told = f"The worst-case expected cost is at most {upper:.6g} (the inner problem is concave)"
        return bounded(upper, lower, least, told, reason=reason)
    if atoms is not None and in_ball(form, atoms):
        # A distribution in the ball costs this much, whatever the ascents have missed.
        costs = form.costs(trained, auxiliary, atoms.contexts, atoms.outcomes)
        upper = max(upper, float(atoms.weights @ costs))
    about = (
        f"The worst-case expected cost is about {upper:.6g}, the most that gradient ascent found "
        f"{_where(form, len(moved.weights))}"
    )
    message = f"{about}; no bound is proved."
    if lower > least:
        message = (
            f"{about}. No policy of this family has one below {lower:.6g}, but that no move costs more "
            "than those found is not proved, and so there is no gap."
        )
    return Certificate(upper, lower, float("inf"), "estimate", message)


def _gap_floor(form: GeneralForm, trained: object, auxiliary: FloatArray, least: float) -> float:
    """Return the size below which a gap stops being relative: zero for costs that have a least one.

    A profit is no size; the spread of the costs of single rows is.
    """
    if np.isfinite(least):
        return 0.0
    costs = form.costs(trained, auxiliary, form.contexts, form.outcomes)
    return float(np.sqrt(form.weights @ (costs - form.weights @ costs) ** 2))


def _why_no_lower(form: GeneralForm, atoms: Adversary | None) -> str:
    """Say why a distribution proves nothing about the best policy, if that can be said."""
    if not isinstance(form.policy, Linear):
        return "none is known for policies that are not linear"
    if atoms is None or not form.exact_rows:
        return "the nominal is known by draws alone"
    rank = form.n_features + int(form.policy.intercept)
    count = len(np.unique(atoms.contexts[:, : form.n_features], axis=0))
    if form.policy.decisions is None and count <= rank:
        return f"a linear policy of {rank} parameters can meet each of {count} moved rows"
    return "no distribution found in the ball rules one out"


def bounded(
    upper: float, lower: float, least: float, told: str, floor: float = 0.0, reason: str = ""
) -> Certificate:
    """Return a certificate with a proved upper value, and a gap where the lower one is proved, too.

    ``reason`` says why there is no lower one, where there is none.
    """
    if lower <= max(least, 0.0 if floor == 0.0 else -np.inf):
        because = f" (no lower bound: {reason})" if reason else ""
        message = f"{told}; whether a better policy exists is not proved{because}."
        return Certificate(upper, lower, float("inf"), "bound", message)
    gap = relative_gap(upper, lower, floor)
    message = (
        f"{told}; no policy of this family has one below {lower:.6g}, so this one is within "
        f"{100 * gap:.2g} % of the best."
    )
    return Certificate(upper, lower, gap, "bound", message)


def _where(form: GeneralForm, judged: int) -> str:
    """Say which rows were looked at."""
    if not form.exact_rows:
        return f"on {judged:,} draws of the nominal"
    whole = int((form.weights > 0.0).sum())
    return f"on all {whole:,} rows" if judged == whole else f"on {judged:,} draws of {whole:,} rows"
