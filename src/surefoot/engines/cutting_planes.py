"""Cutting planes for affine problems of any support: a linear program over moved samples.

For a fixed move of row i to (x', y') at transport cost c, w (theta'x' + t - y') + v - gamma c is linear
in the policy and the multiplier, and nowhere above the row's worst case. So

    min gamma rho^p + sum_i w_i s_i   with   s_i >= w (theta'x' + t - y') + v - gamma c   for every atom

bounds the best worst case from below, and meets it once the right atoms are there. Each round solves
the program near the best policy so far and adds the adversary's answer. The program's multipliers are
masses of the atoms: a plan of the adversary, from which the certificate proves its lower bound.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import optimize
from scipy.sparse import csr_array, hstack

from surefoot.ambiguity import AffineForm, Plan, WassersteinForm
from surefoot.ambiguity.moves import line_moves
from surefoot.ambiguity.worst_case import open_ways, value_and_multipliers
from surefoot.certificates import relative_gap
from surefoot.typing import FloatArray, IntArray

# The first program looks this many units of cost away from the constant order.
FIRST_REACH = 4.0
# A step that gains this share of what the program promised is taken; after so many that do not, the
# program looks less far. One that ends at its border and gains looks farther by this factor.
GAINED, FAILURES, FARTHER = 0.1, 3, 4.0
# An atom without mass leaves after so many rounds.
KEPT_ROUNDS = 8
# A policy found elsewhere is proved by so many rounds at most, to this share of the tolerance; the
# adversary answers at these shares of the way from it to the program's own policy.
PROVING_ROUNDS, PROVED_SHARE, PROVING_WAY = 60, 0.5, (0.3, 0.03)
# Programs of up to so many numbers for each round are quicker than any other way to a proof.
SMALL_PROGRAM = 30_000
# Moved samples, in NamedTuples of arrays that all have one entry for each.
AnyAtoms = TypeVar("AnyAtoms", bound=NamedTuple)


def why_no_cuts(form: AffineForm) -> str | None:
    """Return why a form has no such program, or None."""
    if not isinstance(form, WassersteinForm):
        return f"it needs a Wasserstein ball, got {type(form).__name__}"
    return "it needs an unsmoothed cost: set smoothing=0" if form.pieces.smoothing > 0.0 else None


def small_program(form: AffineForm) -> bool:
    """Whether a form has a program that is quickly solved."""
    numbers = form.contexts.size * len(form.pieces.slopes)
    return why_no_cuts(form) is None and numbers <= SMALL_PROGRAM


class Atoms(NamedTuple):
    """Moved samples; ``ages`` counts the rounds in which an atom had no mass. See ``Plan``."""

    rows: IntArray
    lines: IntArray
    contexts: FloatArray
    outcomes: FloatArray
    prices: FloatArray
    ages: IntArray


def joined(first: AnyAtoms, *others: AnyAtoms) -> AnyAtoms:
    """Return atoms followed by others."""
    return first._make(np.concatenate(parts) for parts in zip(first, *others, strict=True))


def picked(atoms: AnyAtoms, kept: IntArray) -> AnyAtoms:
    """Return some of the atoms."""
    return atoms._make(part[kept] for part in atoms)


def plane_program(
    dense: FloatArray, right: FloatArray, rows: IntArray, weights: FloatArray, centre: FloatArray,
    reach: FloatArray,
) -> tuple[FloatArray, float, FloatArray] | None:  # fmt: skip
    """Minimise g + sum_i w_i s_i with dense (parameters, g) - s_row <= right, within reach of a centre.

    Atoms of row -1 have no s. Return parameters, value and multipliers, or None if there is no answer.
    """
    size = np.maximum(np.abs(dense).max(axis=1), 1.0)
    held = np.flatnonzero(rows >= 0)
    shape = len(rows), len(weights)
    levels = csr_array((-1.0 / size[held], (held, rows[held])), shape=shape)
    found = optimize.linprog(
        np.concatenate([np.zeros(len(centre)), [1.0], weights]),
        A_ub=hstack([csr_array(dense / size[:, None]), levels], format="csr"),
        b_ub=right / size,
        bounds=[
            *zip(centre - reach, centre + reach, strict=True),
            (0.0, None),
            *([(None, None)] * len(weights)),
        ],
        method="highs",
    )
    if found.status != 0:
        return None
    masses = np.maximum(-found.ineqlin.marginals, 0.0) / size
    return found.x[: len(centre)], float(found.fun), masses


class PlaneRun(ABC):
    """A run that adds the adversary's answers to a linear program, round by round.

    A subclass says what a policy and an atom are.
    """

    atoms: Any
    best: tuple[FloatArray, Any]
    slopes: Any
    value: float
    reach: float
    form: Any

    def __init__(self) -> None:
        self.steps = self.failures = 0

    def policy(self) -> tuple[FloatArray, Any]:
        """Return (theta, intercept) of the best policy so far."""
        return self._plain(self.best)

    def run(self, draws: IntArray) -> None:
        """Take one round for each entry of ``draws``."""
        for _ in draws:
            self.steps += 1
            if not self._round():
                break

    @abstractmethod
    def _plain(self, policy: tuple[FloatArray, Any]) -> tuple[FloatArray, Any]:
        """Return a policy of the program in the units of the form."""

    @abstractmethod
    def _program(self) -> tuple[tuple[FloatArray, Any], float, FloatArray] | None:
        """Return the best policy for the atoms within reach, what it would cost, and their masses."""

    @abstractmethod
    def _plan(self, masses: FloatArray) -> Any:
        """Return the atoms with these masses as a plan of the adversary."""

    @abstractmethod
    def _judged(self, policy: tuple[FloatArray, Any]) -> tuple[float, Any]:
        """Return the worst case of a policy (in the units of the form), and the adversary's answer."""

    def _round(self) -> bool:
        """Solve the program, try its policy, and add the adversary's answer; False if it failed."""
        solved = self._program()
        if solved is None:
            self.reach *= 0.25
            self.failures += 1
            return self.failures < 10
        policy, promised, masses = solved
        self.slopes = self._plan(masses)
        value, answers = self._judged(self._plain(policy))
        far = max(
            float(np.abs(now - before).max(initial=0.0))
            for now, before in zip(policy, self.best, strict=True)
        )
        if self.value - value >= GAINED * (self.value - promised):
            if far >= 0.99 * self.reach:
                self.reach *= FARTHER
            self.failures = 0
        else:
            self.failures += 1
            if self.failures >= FAILURES:
                self.reach, self.failures = 0.5 * min(self.reach, max(far, 1e-3 * self.reach)), 0
        if value < self.value:
            self.best, self.value = policy, value
        self.atoms = joined(self._kept(masses), answers)
        return True

    def _kept(self, masses: FloatArray) -> Any:
        """Return the atoms that have mass, had some lately, or have not moved."""
        ages = np.where(masses > 0.0, 0, self.atoms.ages + 1)
        stays = self.atoms.prices == 0.0
        return picked(self.atoms._replace(ages=ages), np.flatnonzero((ages <= KEPT_ROUNDS) | stays))


class CuttingPlaneRun(PlaneRun):
    """The run of one product, from the constant order or from a policy."""

    def __init__(self, form: WassersteinForm, policy: tuple[FloatArray, float] | None = None) -> None:
        super().__init__()
        self.form = form
        decision, slopes = form.constant_order()
        self.slopes: FloatArray | Plan = slopes
        mean = form.weights @ form.contexts
        self.centre = mean if form.intercept else np.zeros_like(mean)
        apart = form.contexts - self.centre
        # Parameters count in what they add to costs, by the rows or by the moves, in any units.
        moves = np.where(form.movable, form.radius, 0.0)
        self.sizes = np.sqrt(form.weights @ apart**2 + moves**2)
        self.sizes = np.where(self.sizes > 0.0, self.sizes, 1.0)
        cost = form.mean_cost(decision - form.outcomes) - min(form.pieces.least, 0.0)
        self.reach = FIRST_REACH * (cost / form.pieces.steepest or 1.0)
        self.best = np.zeros(len(self.sizes)), decision if form.intercept else 0.0
        if policy is not None:
            self.best = policy[0] * self.sizes, float(policy[1] + self.centre @ policy[0])
        self.value, gammas = value_and_multipliers(form, *self._plain(self.best))
        self.atoms = self._answers(self._plain(self.best)[0], gammas, still=True)

    def _plain(self, policy: tuple[FloatArray, float]) -> tuple[FloatArray, float]:
        theta = policy[0] / self.sizes
        return theta, float(policy[1] - self.centre @ theta)

    def _answers(self, theta: FloatArray, gammas: tuple[float, ...], *, still: bool = False) -> Atoms:
        """Return the adversary's moves of every row on every line, at some multipliers."""
        form, n = self.form, len(self.form.weights)
        parts = []
        every, none = np.arange(n), np.zeros(n, dtype=np.int64)
        for line, slope in enumerate(form.pieces.slopes):
            lines = np.full(n, line)
            if still:
                nothing = np.zeros(n)
                parts.append(Atoms(every, lines, np.zeros_like(form.contexts), nothing, nothing, none))
            for gamma in gammas:
                contexts, outcomes, prices = line_moves(form, theta, slope, gamma)
                moved = np.isfinite(prices) & (prices > 0.0)
                atoms = Atoms(every, lines, contexts, outcomes, prices, none)
                parts.append(picked(atoms, np.flatnonzero(moved)))
            for context, outcome in open_ways(form, theta, slope):
                parts.append(
                    Atoms(
                        np.array([-1]), np.array([line]), context[None, :], np.array([outcome]),
                        np.ones(1), np.zeros(1, dtype=np.int64),
                    )
                )  # fmt: skip
        every_row = Atoms(every, none, form.contexts, form.outcomes, form.weights, none)
        return joined(picked(every_row, none[:0]), *parts)

    def _judged(self, policy: tuple[FloatArray, Any]) -> tuple[float, "Atoms"]:
        value, gammas = value_and_multipliers(self.form, *policy)
        return value, self._answers(policy[0], gammas)

    def _plan(self, masses: FloatArray) -> Plan:
        atoms = self.atoms
        return Plan(atoms.rows, atoms.lines, masses, atoms.contexts, atoms.outcomes)

    def _program(self) -> tuple[tuple[FloatArray, float], float, FloatArray] | None:
        """Return the best policy for the atoms within reach, what it would cost, and their masses."""
        form, atoms = self.form, self.atoms
        s = len(self.sizes)
        w = np.array(form.pieces.slopes)[atoms.lines]
        v = np.array(form.pieces.intercepts)[atoms.lines]
        gone = atoms.rows < 0
        at = np.where(gone[:, None], 0.0, form.contexts[atoms.rows] - self.centre) + atoms.contexts
        y = np.where(gone, 0.0, form.outcomes[atoms.rows]) + atoms.outcomes
        unit = form.budget or 1.0
        # Columns: theta, t, gamma times budget, s. Prices are shares of the budget.
        dense = np.column_stack(
            [w[:, None] * at / self.sizes, np.where(gone, 0.0, w), -atoms.prices / unit]
        )
        right = w * y - np.where(gone, 0.0, v)
        centre = np.append(self.best[0], self.best[1])
        reach = np.append(np.full(s, self.reach), self.reach if form.intercept else 0.0)
        found = plane_program(dense, right, atoms.rows, form.weights, centre, reach)
        if found is None:
            return None
        at, value, masses = found
        return (at[:s], float(at[s])), value, np.where(gone, masses * atoms.prices, masses)


class ProvingRun(CuttingPlaneRun):
    """Rounds that look for the adversary's best plan against a policy that is known to be good.

    Nothing is gained from a better policy, so the program never looks less far; the adversary answers
    near the policy, where its best plan lies.
    """

    def _round(self) -> bool:
        solved = self._program()
        if solved is None:
            return False
        policy, _, masses = solved
        self.slopes = self._plan(masses)
        self.atoms = self._kept(masses)
        for share in PROVING_WAY:
            tried = (
                self.best[0] + share * (policy[0] - self.best[0]),
                self.best[1] + share * (policy[1] - self.best[1]),
            )
            self.atoms = joined(self.atoms, self._judged(self._plain(tried))[1])
        return True


def proving_slopes(
    form: WassersteinForm, policy: tuple[FloatArray, float], slopes: FloatArray, gap_tol: float
) -> FloatArray | Plan:
    """Return a plan that proves a policy as good as it is, or the slopes where they do already.

    Large programs keep their slopes, too.
    """
    upper, lower = form.worst_value(*policy)[0], form.lower_bound(slopes)
    if relative_gap(upper, lower, form.gap_floor) <= gap_tol or not small_program(form):
        return slopes
    best: FloatArray | Plan = slopes
    run = ProvingRun(form, policy)
    for _ in range(PROVING_ROUNDS):
        run.run(np.zeros(1, dtype=np.int64))
        bound = form.lower_bound(run.slopes)
        if bound > lower:
            best, lower = run.slopes, bound
        if relative_gap(upper, lower, form.gap_floor) <= PROVED_SHARE * gap_tol:
            break
    return best
