"""An adversary's plan, and the lower bound that it proves.

A plan says how much of each row's mass sits on which line of the cost, and how far it has moved. If
no change of a policy helps against it, E[w x'] = 0 with w the line's slope (and E[w] = 0 with an
intercept), then no policy costs less than E[v - w y']. A plan may come from anywhere: here it is first
put into the box and the budget, and what is left of E[w x'] is cancelled by a small share of mass that
is kept for that. So the bound is valid for any plan, and close to the plan's own value for a good one.

Of several products under one adversary the same holds for each: E[w_j x'] = 0 for every product j. What
a plan leaves over is cancelled product by product, by a small share of mass on which the other products
sit on their outermost lines with mean slope zero, whatever this one does: so they feel nothing of it.
"""

from typing import NamedTuple

import numpy as np

from surefoot.ambiguity.transport import TransportForm
from surefoot.typing import FloatArray, IntArray

# More mass than this to cancel what a plan leaves over, and the plan was no good.
MOST_REPAIR = 0.2
# The mass that repairs may be moved this many radii.
REPAIR_RADII = 2.0


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

    def joint(self) -> "JointPlan":
        """Return the same for one product among several."""
        outcomes = self.outcomes[:, None]
        return JointPlan(self.rows, self.lines[:, None], self.masses, self.contexts, outcomes)


class JointPlan(NamedTuple):
    """Where one adversary has put the mass of each row.

    Attributes
    ----------
    rows
        Which row each atom comes from; -1: mass that has gone for ever (order 1, an open side), of
        which only mass times distance is left.
    picks
        Shape (atoms, products): on which line of each product's cost it sits.
    masses
        Probability of each atom; of mass that has gone, its transport cost.
    contexts, outcomes
        Shape (atoms, columns) and (atoms, products): how far it has moved; of mass that has gone, for
        each unit of transport.
    """

    rows: IntArray
    picks: IntArray
    masses: FloatArray
    contexts: FloatArray
    outcomes: FloatArray

    def copy(self) -> "JointPlan":
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
    return joint_plan_bound((form,), np.ones(1), plan.joint())


def joint_plan_bound(products: tuple[TransportForm, ...], shares: FloatArray, plan: JointPlan) -> float:
    """Return a value that the worst case of no policy can go below, minus infinity if there is none."""
    first = products[0]
    plan = _inside(products, plan)
    gone = plan.rows < 0
    masses = rebalanced(plan.rows, plan.masses, first.weights)
    if masses is None:
        return -np.inf
    spent = float(masses @ _distances(products, plan))
    if spent > first.budget:
        share = first.budget / spent
        masses = np.where(gone, share * masses, masses)
        step = np.where(gone, 1.0, share if first.order == 1 else np.sqrt(share))[:, None]
        plan = plan._replace(contexts=plan.contexts * step, outcomes=plan.outcomes * step)
        spent = first.budget
    # With an intercept mean slopes vanish, so that contexts may be measured from their mean.
    centre = first.weights @ first.contexts if first.intercept else np.zeros(len(first.scale))
    at = np.where(gone[:, None], 0.0, first.contexts[plan.rows] - centre) + plan.contexts
    own, left, means = np.zeros(len(products)), np.zeros((len(first.scale), len(products))), []
    for j, form in enumerate(products):
        w = np.array(form.pieces.slopes)[plan.picks[:, j]]
        v = np.array(form.pieces.intercepts)[plan.picks[:, j]]
        still = np.where(gone, 0.0, masses * w)
        earned = float(np.where(gone, 0.0, masses) @ v - still @ form.outcomes[plan.rows])
        own[j] = shares[j] * (earned - float((masses * w) @ plan.outcomes[:, j]))
        left[:, j] = (masses * w) @ at
        means.append(float(still.sum()))
    return mended_bound(products, shares, centre, own, (left, np.array(means)), spent)


def mended_bound(
    products: tuple[TransportForm, ...],
    shares: FloatArray,
    centre: FloatArray,
    own: FloatArray,
    left: tuple[FloatArray, FloatArray],
    spent: float,
) -> float:
    """Return what a plan proves once all that it leaves over is cancelled, product by product.

    Parameters
    ----------
    products, shares
        The forms, and one unit of each one's cost.
    centre
        What contexts are measured from.
    own
        What the plan earns on each product.
    left
        E[w_j (x' - centre)], shape (columns, products), and E[w_j] of each product.
    spent
        Transport cost of the plan.
    """
    budget = products[0].budget
    idle = shares * [idle_value(form) for form in products]
    value, total, gain = 0.0, 1.0, own.sum() - idle.sum()
    for j, form in enumerate(products):
        repairs = repair(form, centre, left[0][:, j], float(left[1][j]))
        # A program does not resolve a product that costs next to nothing beside the others. On its
        # outermost lines with mean slope zero, whatever the others do, it leaves nothing over.
        if repairs is None or own[j] - idle[j] < repairs[0] * gain:
            value += float(idle[j])
            continue
        share, repaired, distance = repairs
        value += float(own[j] + share * (shares[j] * repaired + idle.sum() - idle[j]))
        spent, total = spent + share * distance, total + share
    value, spent = value / total, spent / total
    # Mass without a slope stays where it is and costs no transport: it pays for what is too much.
    over = 1.0 - budget / spent if spent > budget else 0.0
    return (1.0 - over) * value + over * float(idle.sum())


def _inside(products: tuple[TransportForm, ...], plan: JointPlan) -> JointPlan:
    """Return the plan with its moves cut to the box, and mass that has gone to its open sides."""
    form, gone = products[0], plan.rows < 0
    low = np.where(gone[:, None], np.where(np.isinf(form.lower), -np.inf, 0.0),
                   form.lower - form.contexts[plan.rows])  # fmt: skip
    high = np.where(gone[:, None], np.where(np.isinf(form.upper), np.inf, 0.0),
                    form.upper - form.contexts[plan.rows])  # fmt: skip
    moved = np.clip(plan.contexts, np.minimum(low, 0.0), np.maximum(high, 0.0))
    shifted = np.zeros_like(plan.outcomes)
    for j, one in enumerate(products):
        if one.inverse_kappa > 0.0:
            below, above = one.outcome_lower, one.outcome_upper
            least = np.where(gone, -np.inf if np.isinf(below).all() else 0.0,
                             (below - one.outcomes)[plan.rows])  # fmt: skip
            most = np.where(gone, np.inf if np.isinf(above).all() else 0.0,
                            (above - one.outcomes)[plan.rows])  # fmt: skip
            shifted[:, j] = np.clip(plan.outcomes[:, j], np.minimum(least, 0.0), np.maximum(most, 0.0))
    masses = np.maximum(plan.masses, 0.0)
    if form.order == 2:
        masses = np.where(gone, 0.0, masses)
    return plan._replace(masses=masses, contexts=np.where(form.movable, moved, 0.0), outcomes=shifted)


def _distances(products: tuple[TransportForm, ...], plan: JointPlan) -> FloatArray:
    """Return the transport cost of each atom, for each unit of its mass."""
    form = products[0]
    squares = np.einsum("ij,ij->i", plan.contexts, plan.contexts)
    distances = squares if form.order == 2 else np.sqrt(squares)
    if form.inverse_kappa == 0.0:
        return np.asarray(distances)
    costs = np.array([one.outcome_cost for one in products])
    if form.order == 2:
        return np.asarray(distances + plan.outcomes**2 @ costs)
    return np.asarray(distances + np.sqrt(((plan.outcomes * costs) ** 2).sum(axis=1)))


def idle_value(form: TransportForm) -> float:
    """Value of mass that stays, on the outermost lines so that its mean slope is zero."""
    up, down = form.pieces.up, form.pieces.down
    return (up * form.pieces.intercepts[0] + down * form.pieces.intercepts[-1]) / (up + down)


def repair(
    form: TransportForm, centre: FloatArray, left: FloatArray, mean: float
) -> tuple[float, float, float] | None:
    """Return the mass, beside the plan's one, that cancels what is left over; its value, its distance.

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
    most = REPAIR_RADII * form.radius
    above = np.minimum(form.upper - form.contexts, most)[:, movable]
    below = np.minimum(form.contexts - form.lower, most)[:, movable]
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
    distance = float(squares.sum()) if form.order == 2 else float(np.sqrt(squares.sum()))
    mean_slopes = slopes / share
    line = idle_value(form) + float(weights @ mean_slopes) * (
        (form.pieces.intercepts[-1] - form.pieces.intercepts[0]) / (up + down)
    )
    return share, line - float((weights * mean_slopes) @ form.outcomes), distance
