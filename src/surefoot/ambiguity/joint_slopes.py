"""What slopes of several products prove under one adversary of order 2, free to move anywhere.

A plan of that adversary needs no moves: those that leave nothing over at the least transport cost are
linear in the slopes. With p the share of each row's mass on each line, S = E[w w'] and M = E[x w'],

    x' - x = -M inv(S) w   gives   E[w x'] = 0   at a cost of   trace(M inv(S) M') <= rho^2,

and what is left of the budget moves the outcomes. Where moves cost too much, a share of the mass goes
to the outermost lines with mean slope zero, which has no M. So any p proves something.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from surefoot.ambiguity.joint_rows import JointRows
from surefoot.ambiguity.plan import idle_value, mended_bound
from surefoot.typing import BoolArray, FloatArray

# Directions of S below this share of its largest one are left to the repair.
LEAST_DIRECTION = 1e-13
# Halvings of the bracket around the idle share, and cuts of the one in which outcomes gain most: any
# share proves something, so the second need not be as close.
HALVINGS, CUTS = 45, 30


class JointSlopes(NamedTuple):
    """How much of each row's mass sits on which choice of lines, shape (rows, lines)."""

    probabilities: FloatArray

    def copy(self) -> "JointSlopes":
        """Return itself: nobody writes into it."""
        return self


class SlopeMoments(NamedTuple):
    """What a plan earns on each product, its M and E[w] (contexts from the centre), and its S."""

    own: FloatArray
    first: FloatArray
    mean: FloatArray
    second: FloatArray

    def idle(self, share: float, other: "SlopeMoments") -> "SlopeMoments":
        """Return the moments once a share of the mass has gone to another plan."""
        return SlopeMoments(*((1.0 - share) * a + share * b for a, b in zip(self, other, strict=True)))


def joint_slopes_bound(form: JointRows, plan: JointSlopes) -> float:
    """Return a value that the worst case of no policy can go below, minus infinity if there is none."""
    if form.order == 1 or form.boxed:  # moves are others there
        return -np.inf
    first, shares = form.first, form.shares
    centre = form.weights @ form.contexts if form.intercept else np.zeros(len(form.scale))
    probabilities = np.maximum(plan.probabilities, 0.0)
    totals = probabilities.sum(axis=1, keepdims=True)
    if not (totals > 0.0).all():
        return -np.inf
    busy, idle = _moments(form, probabilities / totals, centre), _idle_moments(form)
    movable = first.movable & (first.radius > 0.0)

    def transport_cost(share: float) -> float:
        return _moved(busy.idle(share, idle), movable)[1]

    def gain(share: float) -> float:
        mixed = busy.idle(share, idle)
        left = max(form.budget - _moved(mixed, movable)[1], 0.0)
        return float(mixed.own.sum() + np.sqrt(left * _outcome_rate(form, mixed)))

    least = 0.0
    if transport_cost(0.0) > form.budget:
        least = _first_affordable(transport_cost, form.budget)
    if form.inverse_kappas.any():  # outcomes want a part of the budget
        least = max((least, _most_gained(gain, least)), key=gain)
    mixed = busy.idle(least, idle)
    moved, spent = _moved(mixed, movable)
    own = mixed.own
    rate = _outcome_rate(form, mixed)
    if rate > 0.0 and form.budget > spent:
        pace = np.sqrt((form.budget - spent) / rate)
        own = own + pace * form.inverse_kappas * shares**2 * np.diag(mixed.second)
        spent = form.budget
    return mended_bound(form.products, shares, centre, own, (mixed.first - moved, mixed.mean), spent)


def _first_affordable(transport_cost: Callable[[float], float], budget: float) -> float:
    """Return the least share at which a transport cost that falls to zero is within the budget."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if transport_cost(middle) > budget else (low, middle)
    return high


def _most_gained(gain: Callable[[float], float], least: float) -> float:
    """Return the share from ``least`` to one that gains most, of a gain that is concave in it."""
    low, high = least, 1.0
    for _ in range(CUTS):
        third = (high - low) / 3.0
        rising = gain(low + third) < gain(high - third)
        low, high = (low + third, high) if rising else (low, high - third)
    return 0.5 * (low + high)


def _moments(form: JointRows, probabilities: FloatArray, centre: FloatArray) -> SlopeMoments:
    """Return the moments of a plan."""
    slopes = form.lines.slopes / form.shares
    each, masses = probabilities @ slopes, form.weights @ probabilities
    weighted = form.weights[:, None] * each
    levels = [
        masses @ np.array(one.pieces.intercepts)[form.lines.picks[:, j]]
        for j, one in enumerate(form.products)
    ]
    own = form.shares * (levels - np.einsum("ij,ij->j", weighted, form.outcomes))
    return SlopeMoments(
        own, (form.contexts - centre).T @ weighted, weighted.sum(axis=0),
        (slopes * masses[:, None]).T @ slopes,
    )  # fmt: skip


def _idle_moments(form: JointRows) -> SlopeMoments:
    """Return the moments of mass on the outermost lines with mean slope zero, product by product."""
    count = len(form.products)
    own = form.shares * [idle_value(one) for one in form.products]
    second = np.diag([one.pieces.up * one.pieces.down for one in form.products])
    return SlopeMoments(own, np.zeros((len(form.scale), count)), np.zeros(count), second)


def _moved(moments: SlopeMoments, movable: BoolArray) -> tuple[FloatArray, float]:
    """Return how much of M the cheapest moves cancel, and their transport cost."""
    sizes, ways = np.linalg.eigh(moments.second)
    resolved = sizes > LEAST_DIRECTION * sizes[-1]
    along = np.where(movable[:, None], moments.first, 0.0) @ ways[:, resolved]
    return along @ ways[:, resolved].T, float((along**2 / sizes[resolved]).sum())


def _outcome_rate(form: JointRows, moments: SlopeMoments) -> float:
    """Return what the square of the outcomes' moves earns for each unit of their transport cost."""
    return float(form.inverse_kappas * form.shares**2 @ np.diag(moments.second))
