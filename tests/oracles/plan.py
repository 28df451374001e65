"""The adversary's own program, written with CVXPY and without a formula of the library.

An adversary splits row i among the lines of the cost: mass p_ik sits on line k, and q_ik and e_ik are
that mass times how far its context and its outcome have moved. Cost, transport and box are convex in
(p, q, e), so the largest expected cost of a given policy is one program; and the smallest largest cost
of all linear policies is the same program with one demand more, that no change of the policy helps:
E[w x'] = 0 (and E[w] = 0 with an intercept), w the slope of the line.
"""

import math
import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np


@dataclass(frozen=True)
class Question:
    """A problem in plain numbers, contexts already in the units of the ball.

    The cost of a decision z is max_k (slopes_k (z - y) + levels_k).
    """

    contexts: np.ndarray
    outcomes: np.ndarray
    weights: np.ndarray
    slopes: np.ndarray
    levels: np.ndarray
    radius: float
    order: int
    outcome_cost: float
    intercept: bool
    lower: np.ndarray
    upper: np.ndarray
    outcome_lower: float = -math.inf
    outcome_upper: float = math.inf

    def nominal_cost(self, theta, intercept):
        """Expected cost of a policy on the rows as they are."""
        return float(self.weights @ self.costs(self.contexts @ theta + intercept))

    def costs(self, decisions):
        residuals = np.asarray(decisions - self.outcomes)
        return (self.slopes * residuals[:, None] + self.levels).max(axis=1)

    def scale(self):
        """What a gap is measured in at least: a hundredth of what the best constant decision costs.

        Of a profit, it is what that costs beyond the best that can happen.
        """
        kinks = -np.diff(self.levels) / np.diff(self.slopes)
        least = float((self.slopes * kinks[:, None] + self.levels).max(axis=1).min())
        return 0.01 * (self.constant_cost() - min(least, 0.0))

    def constant_cost(self):
        """Expected cost of the best constant decision: it lies where a row meets a kink."""
        kinks = -np.diff(self.levels) / np.diff(self.slopes)
        places = (self.outcomes[:, None] + kinks).ravel()
        return min(float(self.weights @ self.costs(place)) for place in places)

    def in_tame_units(self):
        """The same question in numbers near one, and what a unit of its value is worth."""
        mean = self.weights @ self.outcomes if self.intercept else 0.0
        y_unit = float(np.abs(self.outcomes - mean).max()) or float(np.abs(self.outcomes).max()) or 1.0
        c_unit = float(np.abs(self.slopes).max())
        centre = self.weights @ self.contexts if self.intercept else np.zeros(self.contexts.shape[1])
        x_unit = float(np.abs(self.contexts - centre).max()) or 1.0
        kappa = self.outcome_cost * (y_unit / x_unit) ** self.order
        tame = Question(
            (self.contexts - centre) / x_unit, (self.outcomes - mean) / y_unit, self.weights,
            self.slopes / c_unit, self.levels / (c_unit * y_unit), self.radius / x_unit, self.order,
            kappa, self.intercept, (self.lower - centre) / x_unit, (self.upper - centre) / x_unit,
            (self.outcome_lower - mean) / y_unit, (self.outcome_upper - mean) / y_unit,
        )  # fmt: skip
        return tame, x_unit, y_unit, centre, mean, c_unit * y_unit


class NoAnswerError(Exception):
    """The program's own solver gave up."""


def _solve(program):
    """Return the value, from the first solver whose answer can be trusted."""
    for options in (
        {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9},
        {"solver": "CLARABEL"},
        {
            "solver": "CLARABEL",
            "equilibrate_max_iter": 50,
            "max_iter": 500,
            "static_regularization_constant": 1e-10,
        },
        {"solver": "CLARABEL", "equilibrate_enable": False},
    ):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program.solve(**options)
        except cp.error.SolverError:
            continue
        if program.status == cp.OPTIMAL:
            return float(program.value)
    raise NoAnswerError(program.status)


def _plan(q: Question):
    """Variables and constraints of the adversary; q has rows first, lines second, stacked."""
    n, s = q.contexts.shape
    lines = len(q.slopes)
    p = cp.Variable(n * lines, nonneg=True)
    moved = cp.Variable((n * lines, s))
    shifted = cp.Variable(n * lines) if math.isfinite(q.outcome_cost) else None
    X, y = np.repeat(q.contexts, lines, axis=0), np.repeat(q.outcomes, lines)
    constraints = [cp.sum(cp.reshape(p, (n, lines), order="C"), axis=1) == q.weights]
    # Moves are in units of the radius (at radius zero: of one, and must vanish).
    unit = q.radius or 1.0
    for bound, side in ((q.upper, 1.0), (q.lower, -1.0)):
        for j in np.flatnonzero(np.isfinite(bound)):
            room = np.abs(bound[j] - X[:, j]) / unit
            constraints.append(side * moved[:, j] <= cp.multiply(p, room))
    if shifted is not None:
        for bound, side in ((q.outcome_upper, 1.0), (q.outcome_lower, -1.0)):
            if math.isfinite(bound):
                constraints.append(side * shifted <= cp.multiply(p, np.abs(bound - y)))
    if q.radius == 0.0:
        constraints.append(moved == 0.0)
        if shifted is not None:
            constraints.append(shifted == 0.0)
    elif q.order == 1:
        spent = cp.sum(cp.norm(moved, 2, axis=1))
        if shifted is not None:
            spent = spent + q.outcome_cost / q.radius * cp.sum(cp.abs(shifted))
        constraints.append(spent <= 1.0)
    else:
        spent = cp.Variable(n * lines, nonneg=True)  # times p at least the squared move
        parts = [2.0 * moved.T, cp.reshape(spent - p, (1, n * lines), order="C")]
        if shifted is not None:
            length = 2.0 * math.sqrt(q.outcome_cost) / q.radius
            parts.append(cp.reshape(length * shifted, (1, n * lines), order="C"))
        constraints += [cp.SOC(spent + p, cp.vstack(parts), axis=0), cp.sum(spent) <= 1.0]
    w = np.tile(q.slopes, n)
    return p, moved, shifted, constraints, w, np.tile(q.levels, n), X, y, unit


def worst_case(question: Question, theta, intercept) -> float:
    """The largest expected cost of a policy in the ball."""
    q, x_unit, y_unit, centre, mean, value_unit = question.in_tame_units()
    constant = (intercept + centre @ theta - mean) / y_unit
    theta = theta * x_unit / y_unit
    p, moved, shifted, constraints, w, levels, X, y, unit = _plan(q)
    residuals = X @ theta + constant - y
    nominal = q.nominal_cost(theta, constant)
    # What the moves add is measured against what they can add, so that a small part keeps its digits.
    gain = (w * residuals + levels) @ p + unit * (cp.multiply(w, moved @ theta) @ np.ones(len(w)))
    if shifted is not None:
        gain = gain - w @ shifted
    size = max(abs(nominal), unit * float(np.linalg.norm(theta)), 1e-12)
    value = _solve(cp.Problem(cp.Maximize(gain / size), constraints)) * size
    return value * value_unit


def optimum(question: Question) -> float:
    """The smallest worst case of all linear policies."""
    q, *_, value_unit = question.in_tame_units()
    p, moved, shifted, constraints, w, levels, X, y, unit = _plan(q)
    gain = levels @ p - (w * y) @ p
    if shifted is not None:
        gain = gain - w @ shifted
    sizes = np.maximum(np.abs(q.contexts).max(axis=0), np.finfo(float).tiny)
    balance = (w[:, None] * X).T @ p + unit * (moved.T @ w)
    constraints = [*constraints, cp.multiply(1.0 / np.maximum(sizes, unit), balance) == 0.0]
    if q.intercept:
        constraints.append(w @ p == 0.0)
    return _solve(cp.Problem(cp.Maximize(gain), constraints)) * value_unit
