"""The question that the ensemble answers: a policy, its honest decisions, and what they may cost."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from surefoot.ambiguity import AmbiguitySet, WassersteinBall
from surefoot.costs import ConvexPiecewiseCost, Cost, Pieces
from surefoot.exceptions import UnsupportedProblemError
from surefoot.forecasts.centred import Forecasts, Question, why_not_centred
from surefoot.forecasts.cleaning import Suspect
from surefoot.forecasts.confidence import cost_bound_of_rows
from surefoot.forecasts.drift import drift
from surefoot.forecasts.ensemble import Ensemble
from surefoot.forecasts.extrapolation import MIDDLE, unbounded_columns
from surefoot.forecasts.forecaster import one_thread
from surefoot.forecasts.lags import lagged_columns
from surefoot.forecasts.later_rows import Occurrences
from surefoot.forecasts.rolling import Rolling, rolling
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import Stack
from surefoot.nominals import Empirical
from surefoot.nominals.empirical import column_spread
from surefoot.policies import Linear, LinearParameters, Policy
from surefoot.policies.features import Select
from surefoot.problem import Problem, affine_forms, form_policies
from surefoot.typing import BoolArray, FloatArray, IntArray

CONFIDENCE = 0.95
# A row beyond all seen that moves the mean cost by more than this share of the bound is worth a word.
# Beside such a column others with long tails are named from this share on.
UNTOLD, UNTOLD_BESIDE = 0.05, 0.005
RADIUS_TOL = 1e-6
# Where the search for a radius begins, and what it doubles or halves to at most.
SMALLEST_RADIUS, USUAL_RADIUS, LARGEST_RADIUS = 1e-3, 0.128, 1e3


def ensembled(
    cost: Cost,
    policy: Policy,
    ball: AmbiguitySet,
    ensemble: Ensemble,
    rows: Empirical,
    seed: int,
    when: IntArray | None = None,
) -> Question:
    """Return the question that the ensemble itself answers: only its worst case is asked for.

    The policy is the ensemble plus a linear correction, which is zero until a stream learns it. The
    nominal holds the honest decisions as offsets. Outcomes may move: a radius of one moves them by
    one standard deviation. ``when`` says how late each row was, None where that is not known.
    """
    reason = why_not_centred(cost, policy)
    if reason is None and not isinstance(ball, WassersteinBall):
        reason = f"it needs a WassersteinBall, got {type(ball).__name__}"
    if (
        reason is not None
        or not isinstance(cost, ConvexPiecewiseCost)
        or not isinstance(policy, Linear)
        or not isinstance(ball, WassersteinBall)
    ):
        raise UnsupportedProblemError(f"nominal='auto' cannot treat this: {reason}; use nominal=None.")
    frozen = ball.frozen_columns(rows.n_columns, rows.names)
    learned = _learn(cost, ensemble, rows, seed, frozen, when)
    nominal = learned.nominal
    features = Select(tuple(np.flatnonzero(~frozen).tolist())) if frozen.any() else None
    free = ball if features is None else ball.on_columns(np.flatnonzero(~frozen))
    if not math.isfinite(free.outcome_cost) and policy.decisions is None:
        spread = float(column_spread(nominal.outcomes, nominal.weights).mean())
        free = replace(free, outcome_cost=spread**-free.order if spread > 0.0 else 1.0)
    problem = Problem(
        cost, replace(policy, offset=learned.stacks, features=features), nominal, free.at(0.0)
    )
    size = rows.n_columns if features is None else max(int((~frozen).sum()), 1)
    parameters = LinearParameters(np.zeros((size, rows.n_products)), np.zeros(rows.n_products))
    rolled = None
    if when is not None:
        order = np.argsort(when, kind="stable")
        wrong = np.isin(order, [suspect.row for suspect in learned.suspects])
        order = order[~wrong & (rows.weights[order] > 0.0)]
        rolled = _rolled(cost, policy, ensemble, rows.take(order), when[order], seed, frozen)
    return Question(problem, problem, parameters=parameters, suspects=learned.suspects, rolling=rolled)


class Learned(NamedTuple):
    """What ensembles learned from rows: policies, rows with their honest decisions, and suspects."""

    stacks: Forecasts
    nominal: Empirical
    suspects: tuple[Suspect, ...]


def _learn(
    cost: ConvexPiecewiseCost,
    ensemble: Ensemble,
    rows: Empirical,
    seed: int,
    frozen: BoolArray,
    when: IntArray | None,
) -> Learned:
    """Fit an ensemble for each product; in order of time decisions follow a level that drifts."""
    order, masses, places = rows.distinct_rows()
    distinct = rows.take(order, masses)
    products = cost.pieces(rows.n_products)
    given = np.arange(len(places)) if when is None else np.argsort(when, kind="stable")
    in_order = rows.take(given[places[given] >= 0])
    lagged = [lagged_columns(in_order.contexts, outcomes) for outcomes in in_order.outcomes.T]
    some = np.flatnonzero(places >= 0)
    turns = some if when is None else when[some]
    occurrences = Occurrences(places[some], turns, rows.masses[some])
    with one_thread():
        made = [
            ensemble.fit(
                distinct.contexts, outcomes, distinct.masses, pieces, seed, frozen, known,
                None if when is None and not known.any() else occurrences,
            )
            for outcomes, pieces, known in zip(distinct.outcomes.T, products, lagged, strict=True)
        ]  # fmt: skip
    decided = np.full(distinct.outcomes.shape, np.nan)
    for j, one in enumerate(made):
        decided[one.kept, j] = one.decisions
    told, stacks = distinct, tuple(one.stack for one in made)
    late = np.zeros(0, dtype=np.int64)
    if when is not None:  # equal rows were at different times
        late = np.lexsort((places, when))
        late = late[places[late] >= 0]
        told, decided = rows.take(late), decided[places[late]]
    kept = np.flatnonzero(np.isfinite(decided).all(axis=1))
    told, decided = told.take(kept), decided[kept]
    if when is not None:
        stacks, decided = _drifting(stacks, told, decided, when[late[kept]], products)
    nominal = Empirical(told.contexts, told.outcomes, told.masses, names=rows.names, offsets=decided)
    suspects = tuple(
        suspect._replace(row=int(order[suspect.row]), column=_column(suspect.column, j, rows))
        for j, one in enumerate(made)
        for suspect in one.suspects
        if j == 0 or suspect.column == "outcome"
    )
    return Learned(Forecasts(stacks), nominal, suspects)


def _drifting(
    stacks: tuple[Stack, ...],
    rows: Empirical,
    decided: FloatArray,
    times: IntArray,
    products: Sequence[Pieces],
) -> tuple[tuple[Stack, ...], FloatArray]:
    """Return policies and honest decisions that follow recent errors."""
    moved, decisions = [], np.empty_like(decided)
    for j, (stack, pieces) in enumerate(zip(stacks, products, strict=True)):
        told, lowest = rows.outcomes[:, j], stack.lowest
        moves, ahead = drift(decided[:, j], told, rows.masses, times, pieces, lowest)
        decisions[:, j] = np.maximum(decided[:, j] + moves, lowest)
        moved.append(replace(stack, shift=ahead))
    return tuple(moved), decisions


def _rolled(
    cost: ConvexPiecewiseCost,
    policy: Linear,
    ensemble: Ensemble,
    rows: Empirical,
    times: IntArray,
    seed: int,
    frozen: BoolArray,
) -> Rolling | None:
    """Return what decisions cost in order of time."""

    def learn(past: Empirical) -> Callable[[FloatArray], FloatArray]:
        forecasts = _learn(cost, ensemble, past, seed, frozen, times[: len(past.outcomes)]).stacks
        limits = policy.decisions
        return forecasts if limits is None else lambda contexts: limits.map_into(forecasts(contexts))

    return rolling(rows, times, learn, cost.evaluate)


def _column(column: str, product: int, rows: Empirical) -> str:
    if column == "outcome":
        return column if rows.n_products == 1 else f"outcome {product}"
    return f"column {column}" if rows.names is None else repr(rows.names[int(column)])


def rare_rows(problem: Problem) -> float:
    """Return how many observations are to be expected on the rarer side of the best decision."""
    assert isinstance(problem.cost, ConvexPiecewiseCost)  # or no ensemble would decide
    assert isinstance(problem.nominal, Empirical)
    shares = []
    for pieces in problem.cost.pieces(problem.nominal.n_products):
        up, down = abs(pieces.slopes[0]), abs(pieces.slopes[-1])
        shares.append(min(up, down) / (up + down))
    return min(shares) * observations(problem.nominal)


def cost_bound(problem: Problem, rolled: Rolling | None = None) -> float:
    """Return the 95 % confidence bound of the mean cost of honest decisions.

    In order of time it is at least the prediction bound for the next block.
    """
    nominal, limits = problem.nominal, problem.policy.decisions
    assert isinstance(nominal, Empirical)  # honest decisions of rows
    assert nominal.offsets is not None
    decided = nominal.offsets if limits is None else limits.map_into(nominal.offsets)
    costs = problem.cost.evaluate(decided, nominal.outcomes)
    bound = cost_bound_of_rows(costs, nominal.weights, CONFIDENCE, observations(nominal))
    return bound if rolled is None else max(bound, rolled.bound(CONFIDENCE))


def observations(rows: Empirical) -> float:
    """Return how many observations rows stand for: their masses where those count repetitions."""
    if Rows.of(rows.contexts, rows.outcomes[:, 0], rows.masses).units:
        return float(rows.masses.sum())
    return 1.0 / float(rows.weights @ rows.weights)


def unbounded(problem: Problem, bound: float) -> BoolArray:
    """Return the columns whose rows beyond all seen are not in a bound; see ``unbounded_columns``."""
    nominal, offset = problem.nominal, getattr(problem.policy, "offset", None)
    assert isinstance(problem.cost, ConvexPiecewiseCost)  # or no ensemble would decide
    assert isinstance(nominal, Empirical)
    assert isinstance(offset, Forecasts)
    told = np.zeros(nominal.n_columns, dtype=bool)
    products = problem.cost.pieces(nominal.n_products)
    for stack, pieces in zip(offset.forecasts, products, strict=True):
        if isinstance(stack, Stack):
            steepest = max(abs(pieces.slopes[0]), abs(pieces.slopes[-1]))
            slopes = steepest * np.maximum(np.abs(stack.slopes), _bends(stack, nominal.contexts))
            if unbounded_columns(nominal.contexts, slopes, UNTOLD * bound).any():
                told |= unbounded_columns(nominal.contexts, slopes, UNTOLD_BESIDE * bound)
    return told


def _bends(stack: Stack, contexts: FloatArray) -> FloatArray:
    """Return by how much decisions change for a unit of each column, from most rows to the farthest."""
    middle, low, high = np.quantile(contexts, [0.5, 1.0 - MIDDLE, MIDDLE], axis=0)
    ends = (contexts.min(axis=0), low), (contexts.max(axis=0), high)
    steepest = np.zeros(len(middle))
    for far, near in ends:
        points = np.repeat(middle[None], 2 * len(middle), axis=0)
        places = np.arange(len(middle))
        points[places, places], points[len(middle) + places, places] = far, near
        there, here = stack(points).reshape(2, -1)
        apart = np.abs(far - near)
        slopes = np.abs(there - here) / np.where(apart > 0.0, apart, np.inf)
        steepest = np.maximum(steepest, slopes)
    return steepest


def confident_radius(problem: Problem, parameters: Any, rolled: Rolling | None = None) -> float:
    """Return the radius at which the worst case is the 95 % confidence bound of the mean cost.

    It is zero where nothing may move: outcomes stay where decisions have limits.
    """
    if not math.isfinite(problem.ball.outcome_cost):
        return 0.0
    bound = cost_bound(problem, rolled)
    forms = affine_forms(problem)
    policies = form_policies(forms, parameters)

    @cache
    def worst(radius: float) -> float:
        return sum(
            (form.at_radius(radius).worst_value(*policy)[0] + form.unavoidable) * form.value_unit
            for form, policy in zip(forms, policies, strict=True)
        )

    if bound <= worst(0.0) * (1.0 + 1e-12):
        return 0.0
    high = USUAL_RADIUS
    while worst(high) < bound and high < LARGEST_RADIUS:
        high *= 2.0
    while high > SMALLEST_RADIUS and worst(0.5 * high) >= bound:
        high *= 0.5
    low = 0.5 * high if high > SMALLEST_RADIUS else 0.0
    if worst(high) < bound:
        return high
    root = float(optimize.brentq(lambda radius: worst(radius) - bound, low, high, rtol=RADIUS_TOL))
    return min(root * (1.0 + 2.0 * RADIUS_TOL), high)  # on the safe side of the root
