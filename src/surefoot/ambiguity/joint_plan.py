"""A plan of one adversary for several products, and the lower bound that it proves.

As for one product (``plan.py``): if no change of a policy helps against a plan, E[w_j x'] = 0 for every
product j (and E[w_j] = 0 with an intercept), then no policy costs less than E[v - w'y']. What a plan
leaves over is cancelled product by product, by a small share of mass on which the other products sit on
their outermost lines with mean slope zero, whatever this one does: so they feel nothing of it.
"""

from typing import NamedTuple

import numpy as np

from surefoot.ambiguity.plan import idle_value, rebalanced, repair
from surefoot.ambiguity.transport import TransportForm
from surefoot.typing import FloatArray, IntArray


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


def joint_plan_bound(products: tuple[TransportForm, ...], shares: FloatArray, plan: JointPlan) -> float:
    """Return a value that the worst case of no policy can go below, minus infinity if there is none."""
    first = products[0]
    plan = _inside(products, plan)
    gone = plan.rows < 0
    masses = rebalanced(plan.rows, plan.masses, first.weights)
    if masses is None:
        return -np.inf
    spent = float(masses @ _prices(products, plan))
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
        found = repair(form, centre, left[0][:, j], float(left[1][j]))
        # A program does not resolve a product that costs next to nothing beside the others. On its
        # outermost lines with mean slope zero, whatever the others do, it leaves nothing over.
        if found is None or own[j] - idle[j] < found[0] * gain:
            value += float(idle[j])
            continue
        share, repaired, price = found
        value += float(own[j] + share * (shares[j] * repaired + idle.sum() - idle[j]))
        spent, total = spent + share * price, total + share
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
        if one.pull > 0.0:
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


def _prices(products: tuple[TransportForm, ...], plan: JointPlan) -> FloatArray:
    """Return the transport cost of each atom, for each unit of its mass."""
    form = products[0]
    squares = np.einsum("ij,ij->i", plan.contexts, plan.contexts)
    prices = squares if form.order == 2 else np.sqrt(squares)
    if form.pull == 0.0:
        return np.asarray(prices)
    costs = np.array([one.outcome_cost for one in products])
    if form.order == 2:
        return np.asarray(prices + plan.outcomes**2 @ costs)
    return np.asarray(prices + np.sqrt(((plan.outcomes * costs) ** 2).sum(axis=1)))
