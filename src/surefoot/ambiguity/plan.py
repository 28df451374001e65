"""An adversary's plan, and the lower bound that it proves.

A plan says how much of each row's mass sits on which line of the cost, and how far it has moved. If
no change of a policy helps against it, E[w x'] = 0 with w the line's slope (and E[w] = 0 with an
intercept), then no policy costs less than E[v - w y']. A plan may come from anywhere: here it is first
put into the box and the budget, and what is left of E[w x'] is cancelled by a small share of mass that
is kept for that. So the bound is valid for any plan, and close to the plan's own value for a good one.
"""

from typing import NamedTuple

import numpy as np

from surefoot.ambiguity.transport import TransportForm
from surefoot.typing import FloatArray, IntArray

# More mass than this to cancel what a plan leaves over, and the plan was no good.
MOST_REPAIR = 0.2
# The mass that repairs may be moved this many radii.
REPAIR_REACH = 2.0


class Plan(NamedTuple):
    """Where an adversary has put the mass of each row.

    Attributes
    ----------
    rows, lines
        Which row each atom comes from, and on which line of the cost it sits. Row -1: mass that has
        gone for ever (order 1, an open side), of which only mass times distance is left.
    masses
        Probability of each atom; of mass that has gone, its transport cost.
    contexts, outcomes
        How far it has moved; of mass that has gone, for each unit of transport.
    """

    rows: IntArray
    lines: IntArray
    masses: FloatArray
    contexts: FloatArray
    outcomes: FloatArray

    def copy(self) -> "Plan":
        """Return itself: nobody writes into a plan."""
        return self


def rebalanced(rows: IntArray, masses: FloatArray, weights: FloatArray) -> FloatArray | None:
    """Return masses that hold just the weight of each row, or None where a row has none at all.

    Mass that has gone for ever (row -1) keeps its transport cost.
    """
    gone = rows < 0
    held = np.zeros(len(weights))
    np.add.at(held, rows[~gone], masses[~gone])
    if not (held > 0.0).all():
        return None
    return np.where(gone, masses, masses * (weights / held)[rows])


def plan_bound(form: TransportForm, plan: Plan) -> float:
    """Return a value that the worst case of no policy can go below, minus infinity if there is none."""
    plan = _inside(form, plan)
    gone = plan.rows < 0
    masses = rebalanced(plan.rows, plan.masses, form.weights)
    if masses is None:
        return -np.inf
    prices = _prices(form, plan)
    spent = float(masses @ prices)
    if spent > form.budget:
        share = form.budget / spent
        masses = np.where(gone, share * masses, masses)
        share = share if form.order == 1 else np.sqrt(share)
        step = np.where(gone, 1.0, share)
        plan = plan._replace(contexts=plan.contexts * step[:, None], outcomes=plan.outcomes * step)
        spent = form.budget
    w, v = np.array(form.pieces.slopes)[plan.lines], np.array(form.pieces.intercepts)[plan.lines]
    # With an intercept the mean slope vanishes, so that contexts may be measured from their mean.
    centre = form.weights @ form.contexts if form.intercept else np.zeros(len(form.scale))
    at = np.where(gone[:, None], 0.0, form.contexts[plan.rows] - centre)
    left = (masses * w) @ (at + plan.contexts)
    still = np.where(gone, 0.0, masses * w)
    value = float(np.where(gone, 0.0, masses) @ v - still @ form.outcomes[plan.rows])
    value -= float((masses * w) @ plan.outcomes)
    mended = repair(form, centre, left, float(still.sum()))
    if mended is None:
        return -np.inf
    share, repaired, price = mended
    value, spent = (value + share * repaired) / (1.0 + share), (spent + share * price) / (1.0 + share)
    # Mass without a slope stays where it is and costs no transport: it pays for what is too much.
    over = 1.0 - form.budget / spent if spent > form.budget else 0.0
    return (1.0 - over) * value + over * idle_value(form)


def _inside(form: TransportForm, plan: Plan) -> Plan:
    """Return the plan with its moves cut to the box, and mass that has gone to its open sides."""
    gone = plan.rows < 0
    low = np.where(gone[:, None], np.where(np.isinf(form.lower), -np.inf, 0.0),
                   form.lower - form.contexts[plan.rows])  # fmt: skip
    high = np.where(gone[:, None], np.where(np.isinf(form.upper), np.inf, 0.0),
                    form.upper - form.contexts[plan.rows])  # fmt: skip
    moved = np.where(
        form.movable, np.clip(plan.contexts, np.minimum(low, 0.0), np.maximum(high, 0.0)), 0.0
    )
    below, above = form.outcome_lower, form.outcome_upper
    if form.pull == 0.0:
        shifted = np.zeros_like(plan.outcomes)
    else:
        least = np.where(
            gone, -np.inf if np.isinf(below).all() else 0.0, (below - form.outcomes)[plan.rows]
        )
        most = np.where(
            gone, np.inf if np.isinf(above).all() else 0.0, (above - form.outcomes)[plan.rows]
        )
        shifted = np.clip(plan.outcomes, np.minimum(least, 0.0), np.maximum(most, 0.0))
    masses = np.maximum(plan.masses, 0.0)
    if form.order == 2:
        masses = np.where(gone, 0.0, masses)
    return plan._replace(masses=masses, contexts=moved, outcomes=shifted)


def _prices(form: TransportForm, plan: Plan) -> FloatArray:
    """Return the transport cost of each atom, for each unit of its mass."""
    squares = np.einsum("ij,ij->i", plan.contexts, plan.contexts)
    prices = squares if form.order == 2 else np.sqrt(squares)
    if form.pull > 0.0:
        prices = prices + form.outcome_cost * np.abs(plan.outcomes) ** form.order
    return np.asarray(prices)


def idle_value(form: TransportForm) -> float:
    """Value of mass that stays, on the outermost lines so that its mean slope is zero."""
    up, down = form.pieces.up, form.pieces.down
    return (up * form.pieces.intercepts[0] + down * form.pieces.intercepts[-1]) / (up + down)


def repair(
    form: TransportForm, centre: FloatArray, left: FloatArray, mean: float
) -> tuple[float, float, float] | None:
    """Return the mass, beside the plan's one, that cancels what is left over; its value and its price.

    Slopes of that mass cancel the intercept and columns that cannot move; its moves the others.
    """
    up, down, weights = form.pieces.up, form.pieces.down, form.weights
    X, movable = form.contexts - centre, form.movable & (form.radius > 0.0)
    slopes = np.zeros(len(weights))
    fixed = X[:, ~movable]
    target = left[~movable]
    if form.intercept:
        fixed, target = np.column_stack([np.ones(len(X)), fixed]), np.append(mean, target)
    if fixed.shape[1]:
        sizes = np.maximum(np.abs(fixed).max(axis=0), np.finfo(np.float64).tiny)
        root = np.sqrt(weights)
        gram = (root[:, None] * fixed / sizes).T
        slopes = -np.linalg.lstsq(gram, target / sizes, rcond=1e-13)[0] / root
        missing = np.abs(gram @ (root * slopes) + target / sizes)
        if (missing > 1e-14).any():
            return None
    share = 2.0 * max(float(slopes.max()) / up, float(-slopes.min()) / down, 0.0)
    owed = -(left + X.T @ (weights * slopes))[movable]
    reach = REPAIR_REACH * form.radius
    above = np.minimum(form.upper - form.contexts, reach)[:, movable]
    below = np.minimum(form.contexts - form.lower, reach)[:, movable]
    # At least half of the smaller slope's mass is on each line, whatever the slopes are.
    on_up, on_down = 0.5 * down / (up + down), 0.5 * up / (up + down)
    sign = np.sign(owed)
    gain_up = up * on_up * np.where(sign > 0, above, below)
    gain_down = down * on_down * np.where(sign > 0, below, above)
    room = weights @ (gain_up + gain_down)
    needed = np.abs(owed) > 1e-16 * np.abs(X[:, movable]).max(axis=0, initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(needed, np.abs(owed) / room, 0.0)
    share = max(share, float(shares.max(initial=0.0)))
    if not share <= MOST_REPAIR:
        return None
    if share == 0.0:
        return 0.0, 0.0, 0.0
    used = shares / share
    squares = weights @ ((np.where(sign > 0, above, below) * used) ** 2 * on_up
                         + (np.where(sign > 0, below, above) * used) ** 2 * on_down)  # fmt: skip
    # For order 1 a root of the mean square is no less than the mean length.
    price = float(squares.sum()) if form.order == 2 else float(np.sqrt(squares.sum()))
    mean_slopes = slopes / share
    line = idle_value(form) + float(weights @ mean_slopes) * (
        (form.pieces.intercepts[-1] - form.pieces.intercepts[0]) / (up + down)
    )
    return share, line - float((weights * mean_slopes) @ form.outcomes), price
