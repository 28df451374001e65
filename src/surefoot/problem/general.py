"""Problems with any policy and cost, as arrays in the units in which they are solved.

The general engine and the certificates of general policies speak about this form. Contexts are in
the user's units; moves are measured in units of ``scale``.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from surefoot.costs import AuxiliaryCost, Cost
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import Linear, Policy, Units
from surefoot.problem.affine import column_spread, movable_columns, support_bounds
from surefoot.problem.problem import Problem
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray, IntArray

# Rows drawn from a nominal that has no rows of its own: they fix units and judge policies.
JUDGING_ROWS = 2_000


@dataclass(frozen=True, eq=False)
class GeneralProblem:
    """A problem with everything that the data decide before learning starts.

    Attributes
    ----------
    cost, policy, nominal
        The parts of the question; the policy's feature map has been applied to ``contexts``.
    contexts, outcomes, weights
        Rows that stand for the nominal: its own if it has any, draws otherwise. Contexts are
        features if the policy has a feature map.
    units
        What the policy computes in.
    scale
        Shape (columns,): moves are measured in units of it.
    movable
        Shape (columns,): which columns the adversary may move.
    lower, upper, outcome_bounds
        The support in the user's units.
    auxiliary
        Where the cost's own variables start and the unit in which they vary; both empty for most.
    """

    cost: Cost
    policy: Policy
    nominal: Nominal
    contexts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    units: Units
    scale: FloatArray
    movable: BoolArray
    lower: FloatArray
    upper: FloatArray
    outcome_bounds: tuple[float, float]
    radius: float
    order: int
    outcome_cost: float
    auxiliary: tuple[FloatArray, FloatArray]

    @property
    def n_decisions(self) -> int:
        """How many numbers a decision has."""
        return len(self.units.centre)

    @property
    def outcomes_move(self) -> bool:
        """Whether the adversary may move outcomes."""
        return math.isfinite(self.outcome_cost)

    @property
    def boxed(self) -> bool:
        """Whether the support stops the adversary anywhere."""
        held = np.isfinite(self.lower[self.movable]) | np.isfinite(self.upper[self.movable])
        outcome_held = self.outcomes_move and bool(np.isfinite(self.outcome_bounds).any())
        return bool(held.any()) or outcome_held

    @property
    def exact_rows(self) -> bool:
        """Whether the rows are the nominal, and not a sample of it."""
        return isinstance(self.nominal, Empirical)

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Draw rows from the nominal, through the feature map."""
        contexts, outcomes = self.nominal.sample(rng, size)
        return self.policy.transform(contexts), outcomes

    def subset(self, rows: IntArray) -> "GeneralProblem":
        """Return the problem on some of its rows, in the same units."""
        contexts, outcomes, weights = self.contexts[rows], self.outcomes[rows], self.weights[rows]
        return replace(
            self,
            policy=replace(self.policy, features=None),  # contexts are features already
            nominal=Empirical(contexts, outcomes, weights),
            contexts=contexts,
            outcomes=outcomes,
            weights=weights / weights.sum(),
        )

    def at_radius(self, radius: float) -> "GeneralProblem":
        """Return the problem at another radius."""
        return replace(self, radius=radius)

    def decisions(self, trained: object, contexts: FloatArray) -> FloatArray:
        """Return decisions for rows of ``contexts`` (features), without JAX."""
        return np.asarray(self.policy.evaluate(trained, self.units.tree(), contexts, np))


def why_not_general(problem: Problem) -> str | None:
    """Return why no engine can treat the problem, or None if the general one can."""
    cost, policy, ball = problem.cost, problem.policy, problem.ball
    if policy.decisions is None:
        reason = cost.why_unlimited()
        if reason is not None:
            return reason
    unlimited = policy.decisions is None and isinstance(policy, Linear) and ball.support is None
    if ball.order == 1 and unlimited and problem.radius > 0 and 1.0 < cost.growth() < math.inf:
        return (
            f"the worst case is unbounded: {type(cost).__name__} grows faster than the distance of "
            "order 1, so moving far always pays; use order=2 or give the ball a support"
        )
    return None


def general_problem(
    problem: Problem,
    seed: int = 0,
    scale: FloatArray | None = None,
    movable: BoolArray | None = None,
    units: Units | None = None,
) -> GeneralProblem:
    """Return the problem in the form that the general engine solves.

    Parameters
    ----------
    problem
        Any problem; its policy's feature map must be fitted.
    seed
        Of the rows drawn from a nominal that has none.
    scale, movable, units
        Those of an earlier fit; None finds them from the nominal.
    """
    cost, policy, ball, nominal = problem.cost, problem.policy, problem.ball, problem.nominal
    if isinstance(nominal, Empirical):
        contexts, outcomes, weights = nominal.contexts, nominal.outcomes, nominal.weights
    else:
        contexts, outcomes = nominal.sample(rng_for(seed, "judging rows"), JUDGING_ROWS)
        weights = np.full(len(contexts), 1.0 / len(contexts))
    features = policy.transform(contexts)
    columns, decisions = features.shape[1], cost.n_decisions(outcomes.shape[1])
    reason = policy.why_not(columns, decisions)
    if reason is not None:
        raise InvalidInputError(f"{reason}.")
    spread = column_spread(features, weights)
    if movable is None or scale is None:
        names = nominal.names if policy.features is None else None
        movable = movable_columns(problem, names, spread)
        scale = np.where(spread > 0.0, spread, 1.0) if ball.scale else np.ones(columns)
    if units is None:
        centre, unit = cost.typical(outcomes, weights)
        if policy.decisions is not None and not policy.decisions.in_units:
            centre, unit = np.zeros(decisions), np.ones(decisions)
        elif policy.decisions is not None:
            # Beyond the limits every decision is cut, and nothing could be learned.
            centre = policy.decisions.map_into(centre)
        units = Units(weights @ features, np.where(spread > 0.0, spread, 1.0), centre, unit)
    lower, upper, outcome_bounds = support_bounds(problem, features, outcomes)
    nothing = (np.zeros(0), np.zeros(0))
    auxiliary = (
        cost.typical_auxiliary(outcomes, weights) if isinstance(cost, AuxiliaryCost) else nothing
    )
    return GeneralProblem(
        cost=cost, policy=policy, nominal=nominal, contexts=features, outcomes=outcomes,
        weights=weights, units=units, scale=scale, movable=movable, lower=lower, upper=upper,
        outcome_bounds=outcome_bounds, radius=problem.radius, order=ball.order,
        outcome_cost=ball.outcome_cost, auxiliary=auxiliary,
    )  # fmt: skip
