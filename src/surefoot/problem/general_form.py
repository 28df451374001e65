"""Problems with any policy and cost, as arrays in the units in which they are solved.

The autodiff engine and the certificates of general policies speak about this form. Contexts are in
the user's units; moves are measured in units of ``scale``.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import AuxiliaryCost, Cost
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical, Nominal
from surefoot.nominals.empirical import column_spread
from surefoot.policies import Linear, Policy, Units
from surefoot.problem.columns import check_support, sampled_rows, spread_units
from surefoot.problem.problem import Problem, check_problem
from surefoot.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class GeneralForm:
    """A problem with everything that the data decide before learning starts.

    Attributes
    ----------
    cost, policy, nominal
        The parts of the question; the policy's feature map has been applied to ``contexts``.
    contexts, outcomes, weights
        Rows that stand for the nominal: its own if it has any, draws otherwise. Contexts are the
        policy's inputs: features if it has a feature map, and its offsets behind them.
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
    def n_features(self) -> int:
        """How many of the inputs are features, and not offsets."""
        return int(self.contexts.shape[1]) - self.policy.n_fixed(self.n_decisions)

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

    @cached_property
    def canonical(self) -> IntArray:
        """The rows in an order that depends on what they hold, and not on where they stand."""
        first = np.argsort(self.outcomes[:, 0], kind="stable")
        if (np.diff(self.outcomes[first, 0]) > 0.0).all():
            return first
        # By value, so that other units of outcomes or contexts leave the order as it is.
        columns = [*self.outcomes.T, *self.contexts.T, self.weights]
        return np.lexsort(columns[::-1])

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Draw rows from the nominal, as the policy sees them."""
        if self.exact_rows:
            order = self.canonical
            rows = order[rng.choice(len(order), size=size, p=self.weights[order])]
            return self.contexts[rows], self.outcomes[rows]
        contexts, outcomes = self.nominal.sample(rng, size)
        return self.policy.inputs(contexts), outcomes

    def at_radius(self, radius: float) -> "GeneralForm":
        """Return the form at another radius."""
        return replace(self, radius=radius)

    def decisions(self, trained: object, contexts: FloatArray) -> FloatArray:
        """Return decisions for rows of ``contexts`` (inputs), without JAX."""
        return np.asarray(self.policy.evaluate(trained, self.units.tree(), contexts, np))

    def costs(
        self, trained: object, auxiliary: FloatArray, contexts: FloatArray, outcomes: FloatArray
    ) -> FloatArray:
        """Return the cost of each row under a policy, in NumPy."""
        decisions = self.decisions(trained, contexts)
        if isinstance(self.cost, AuxiliaryCost):
            return np.asarray(self.cost.evaluate_at(decisions, auxiliary, outcomes))
        return np.asarray(self.cost.evaluate(decisions, outcomes))


def why_not_general(problem: Problem) -> str | None:
    """Return why no engine can treat the problem, or None if the autodiff engine can."""
    check_problem(problem)
    cost, policy, ball = problem.cost, problem.policy, problem.ball
    if not isinstance(ball, WassersteinBall):
        return f"it needs a WassersteinBall around a policy or cost of this kind, got {ball!r}"
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


def _rows(nominal: Nominal, policy: Policy, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return inputs, outcomes and weights of rows that stand for the nominal."""
    if isinstance(nominal, Empirical):
        inputs = policy.inputs(nominal.contexts, nominal.offsets)
        return inputs, nominal.outcomes, nominal.weights
    drawn = sampled_rows(nominal, seed)
    return policy.inputs(drawn.contexts), drawn.outcomes, drawn.weights


def general_form(problem: Problem, seed: int = 0, units: Units | None = None) -> GeneralForm:
    """Return the problem in the form that the autodiff engine solves.

    Parameters
    ----------
    problem
        Any problem in a Wasserstein ball; its policy's feature map must be fitted.
    seed
        Of the rows drawn from a nominal that has none.
    units
        Those of an earlier fit; None finds them from the nominal.
    """
    check_problem(problem)
    cost, policy, ball, nominal = problem.cost, problem.policy, problem.ball, problem.nominal
    if not isinstance(ball, WassersteinBall):
        raise UnsupportedProblemError(f"The problem has no general form: {why_not_general(problem)}.")
    contexts, outcomes, weights = _rows(nominal, policy, seed)
    decisions = cost.n_decisions(outcomes.shape[1])
    fixed = policy.n_fixed(decisions)
    features = contexts[:, : contexts.shape[1] - fixed]
    reason = policy.why_not(features.shape[1], decisions)
    if reason is not None:
        raise InvalidInputError(f"{reason}.")
    columns = spread_units(problem, nominal.names, column_spread(features, weights))
    if units is None:
        units = _units(problem, features, outcomes, weights, columns.spread, fixed > 0)
    check_support(problem, features, outcomes)
    lower, upper = np.full(contexts.shape[1], -np.inf), np.full(contexts.shape[1], np.inf)
    bounds = (-math.inf, math.inf)
    if ball.support is not None:
        lower[: features.shape[1]], upper[: features.shape[1]] = ball.support.arrays(features.shape[1])
        bounds = ball.support.outcome
    nothing = (np.zeros(0), np.zeros(0))
    return GeneralForm(
        cost=cost, policy=policy, nominal=nominal, contexts=contexts, outcomes=outcomes,
        weights=weights, units=units, scale=np.append(columns.scale / columns.common, np.ones(fixed)),
        movable=np.append(columns.movable, np.zeros(fixed, dtype=bool)), lower=lower, upper=upper,
        outcome_bounds=bounds, radius=problem.radius, order=ball.order,
        outcome_cost=ball.outcome_cost,
        auxiliary=cost.typical_auxiliary(outcomes, weights)
        if isinstance(cost, AuxiliaryCost) else nothing,
    )  # fmt: skip


def _units(
    problem: Problem, features: FloatArray, outcomes: FloatArray, weights: FloatArray,
    spread: FloatArray, corrects: bool,
) -> Units:  # fmt: skip
    """Return the units in which a policy computes; ``corrects`` says that it starts at an offset."""
    centre, unit = problem.cost.typical(outcomes, weights)
    limits = problem.policy.decisions
    if limits is not None and not limits.in_units:
        centre, unit = np.zeros(len(centre)), np.ones(len(centre))
    elif limits is not None:
        # Beyond the limits every decision is cut, and nothing could be learned.
        centre = limits.map_into(centre)
    if corrects:
        centre = np.zeros(len(centre))
    return Units(weights @ features, np.where(spread > 0.0, spread, 1.0), centre, unit)
