"""Cutting planes for several products under one adversary: one linear program over moved samples.

As for one product (``cutting_planes.py``), with a policy of all products and one line for each choice
of a line of every product: for a fixed move of row i to (x', y') on line l at transport cost c,
w_l'(Theta'x' + t - y') + v_l - gamma c is linear in the policy and the multiplier.
"""

from typing import Any

import numpy as np

from surefoot.ambiguity import JointForm, JointPlan, WassersteinForm
from surefoot.ambiguity.joint_worst_case import (
    best_moves,
    line_moves,
    open_ways,
    stay,
    value_and_multipliers,
)
from surefoot.engines.affine_proof import FIRST_STEPS, draw_rows, why_no_dual
from surefoot.engines.cutting_planes import FIRST_REACH, Atoms, PlaneRun, joined, picked, plane_program
from surefoot.engines.primal_dual import PrimalDualRun
from surefoot.random import rng_for
from surefoot.typing import FloatArray

# Up to so many pairs of a row and a line, each is in the program from the start, and answers are given
# on every line; beyond, on the best line of each row alone.
FEW_PAIRS = 400
# The first policy is that of adversaries of their own, after so many passes over the rows.
FIRST_PASSES = 200
# Of mass that goes for ever, so many lines are added in each round: those that gain most.
MOST_WAYS = 32
# In a box every line is moved by itself for each multiplier that is tried: quick for so many lines.
FEW_LINES = 32
# Programs of up to so many numbers for each round are quicker than any other way to a proof.
SMALL_PROGRAM = 60_000


def small_joint_program(form: JointForm) -> bool:
    """Whether several products under one adversary have a program that is quickly solved."""
    (rows, columns), lines = form.contexts.shape, len(form.lines.levels)
    if form.boxed and lines > FEW_LINES:
        return False
    pairs = rows * lines if rows * lines <= FEW_PAIRS else rows
    return bool(pairs * columns * len(form.products) <= SMALL_PROGRAM)


class JointPlaneRun(PlaneRun):
    """The run of several products under one adversary."""

    def __init__(self, form: JointForm) -> None:
        super().__init__()
        self.form, self.slopes, self.reach = form, None, FIRST_REACH
        first, count = form.first, len(form.products)
        mean = form.weights @ form.contexts
        self.centre = mean if form.intercept else np.zeros_like(mean)
        moves = np.where(first.movable, form.radius, 0.0)
        sizes = np.sqrt(form.weights @ (form.contexts - self.centre) ** 2 + moves**2)
        self.sizes = np.where(sizes > 0.0, sizes, 1.0)[:, None]
        # Parameters of each product count in what they add to its own costs, in any units.
        self.units = np.array([_cost_size(one) for one in form.products])
        (theta, decisions), _ = form.start()
        self.best = theta, decisions / self.units
        lines = len(form.lines.levels)
        self.few = len(form.weights) * lines <= FEW_PAIRS
        self.present = np.zeros((len(form.weights), lines), dtype=bool)
        self.empty = Atoms(
            np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, len(theta))),
            np.zeros((0, count)), np.zeros(0), np.zeros(0, dtype=np.int64),
        )  # fmt: skip
        self.value, answers = self._judged(self._plain(self.best))
        self.atoms = joined(self._still(np.ones_like(self.present)), answers) if self.few else answers
        self._begin_apart()

    def _begin_apart(self) -> None:
        """Begin where each product would be under an adversary of its own, if that is better."""
        if any(why_no_dual(one) is not None for one in self.form.products):
            return
        found = [_policy_apart(one) for one in self.form.products]
        theta = np.column_stack([theta for theta, _ in found])
        decisions = np.array([decision for _, decision in found])
        value, answers = self._judged((theta, decisions))
        if value < self.value:
            self.value = value
            self.best = theta * self.sizes / self.units, (decisions + self.centre @ theta) / self.units
            self.atoms = joined(self.atoms, answers)

    def _plain(self, policy: tuple[FloatArray, Any]) -> tuple[FloatArray, FloatArray]:
        theta = policy[0] * self.units / self.sizes
        return theta, policy[1] * self.units - self.centre @ theta

    def _judged(self, policy: tuple[FloatArray, Any]) -> tuple[float, Atoms]:
        form = self.form
        value, gammas = value_and_multipliers(form, policy)
        parts = [self._moved(policy, gamma) for gamma in gammas]
        wanted = np.zeros_like(self.present)
        wanted[np.arange(len(wanted)), stay(form, policy).line] = True
        parts.append(self._still(wanted))
        ways = sorted(open_ways(form, policy[0]), key=lambda way: -way.gain)[:MOST_WAYS]
        if ways:
            parts.append(
                Atoms(
                    np.full(len(ways), -1), np.array([way.line for way in ways]),
                    np.array([way.contexts for way in ways]), np.array([way.outcomes for way in ways]),
                    np.ones(len(ways)), np.zeros(len(ways), dtype=np.int64),
                )
            )  # fmt: skip
        return value, joined(self.empty, *parts)

    def _still(self, wanted: Any) -> Atoms:
        """Return atoms that stay where they are, of those wanted that are not there yet."""
        rows, lines = np.nonzero(wanted & ~self.present)
        self.present[rows, lines] = True
        contexts = np.zeros((len(rows), len(self.sizes)))
        outcomes = np.zeros((len(rows), len(self.units)))
        return Atoms(rows, lines, contexts, outcomes, np.zeros(len(rows)), np.zeros_like(rows))

    def _moved(self, policy: tuple[FloatArray, Any], gamma: float) -> Atoms:
        """Return the adversary's moves at a multiplier: on every line if there are few, or the best."""
        n = len(self.form.weights)
        every, none = np.arange(n), np.zeros(n, dtype=np.int64)
        if self.few:
            lines = range(self.present.shape[1])
            moved = [line_moves(self.form, policy[0], line, gamma) for line in lines]
            parts = [Atoms(every, np.full(n, line), *moved[line], none) for line in lines]
        else:
            moves = best_moves(self.form, policy, gamma)
            parts = [Atoms(every, moves.line, moves.contexts, moves.outcomes, moves.distance, none)]
        found = joined(self.empty, *parts)
        return picked(found, np.flatnonzero(np.isfinite(found.prices) & (found.prices > 0.0)))

    def _plan(self, masses: FloatArray) -> JointPlan:
        atoms = self.atoms
        picks = self.form.lines.picks[atoms.lines]
        return JointPlan(atoms.rows, picks, masses, atoms.contexts, atoms.outcomes)

    def _program(self) -> tuple[tuple[FloatArray, FloatArray], float, FloatArray] | None:
        """Return the best policy for the atoms within reach, what it would cost, and their masses."""
        form, atoms = self.form, self.atoms
        (s, d), m = self.best[0].shape, len(atoms.rows)
        # Solvers of programs know numbers of the size of one: costs count in those of the best policy.
        unit = self.value - min(form.least, 0.0) or 1.0
        w, levels = form.lines.slopes[atoms.lines] / unit, form.lines.levels / unit
        gone = atoms.rows < 0
        at = np.where(gone[:, None], 0.0, form.contexts[atoms.rows] - self.centre) + atoms.contexts
        y = np.where(gone[:, None], 0.0, form.outcomes[atoms.rows]) + atoms.outcomes
        # Columns: theta (products side by side), t, gamma times budget, s. Prices are shares of it.
        products = np.einsum("mj,ms->msj", w * self.units, at / self.sizes[:, 0]).reshape(m, s * d)
        constants = np.where(gone[:, None], 0.0, w * self.units)
        dense = np.column_stack([products, constants, -atoms.prices / (form.budget or 1.0)])
        right = (w * y).sum(axis=1) - np.where(gone, 0.0, levels[atoms.lines])
        centre = np.concatenate([self.best[0].ravel(), self.best[1]])
        reach = np.full(len(centre), self.reach)
        reach[s * d :] *= form.intercept
        found = plane_program(dense, right, atoms.rows, form.weights, centre, reach)
        if found is None:
            return None
        policy, value, masses = found
        masses = np.where(gone, masses * atoms.prices, masses)
        return (policy[: s * d].reshape(s, d), policy[s * d :]), unit * value, masses


def _cost_size(form: Any) -> float:
    """Return the size of a product's residuals at its best constant decision."""
    cost = form.mean_cost(form.constant_order()[0] - form.outcomes) - min(form.pieces.least, 0.0)
    return cost / form.pieces.steepest or 1.0


def _policy_apart(form: WassersteinForm) -> tuple[FloatArray, float]:
    """Return roughly the best policy of one product under an adversary of its own."""
    run = PrimalDualRun.start(form)
    count = max(FIRST_PASSES * len(form.outcomes), FIRST_STEPS)
    run.run(draw_rows(form.weights, rng_for(0, "apart"), count))
    return run.policy()
