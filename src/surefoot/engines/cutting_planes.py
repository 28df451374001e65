"""Cutting planes for affine problems of any support: a linear program over moved samples.

For a fixed move of row i to (x', y') at transport cost c, w (theta'x' + t - y') + v - gamma c is linear
in the policy and the multiplier, and nowhere above the row's worst case. So

    min gamma rho^p + sum_i w_i s_i   with   s_i >= w (theta'x' + t - y') + v - gamma c   for every atom

bounds the best worst case from below, and meets it once the right atoms are there. Each round solves
the program near the best policy so far and adds the adversary's answer. The program's multipliers are
masses of the atoms: a plan of the adversary, from which the certificate proves its lower bound.

Of several products under one adversary there is one line for each choice of a line of every product,
w_l'(Theta'x' + t - y') + v_l - gamma c, and the rest is the same.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import optimize
from scipy.sparse import csr_array, hstack

from surefoot.ambiguity import AffineForm, JointForm, JointPlan, Plan, WassersteinForm
from surefoot.ambiguity.joint_worst_case import best_moves, line_moves, open_ways, stay
from surefoot.ambiguity.joint_worst_case import value_and_multipliers as joint_value_and_multipliers
from surefoot.ambiguity.worst_case import value_and_multipliers
from surefoot.certificates import relative_gap
from surefoot.typing import FloatArray, IntArray

# The first program looks this many units of cost away from the constant order.
FIRST_TRUST_RADIUS = 4.0
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
# Of several products, up to so many pairs of a row and a line, each is in the program from the start,
# and answers are given on every line; beyond, on the best line of each row alone.
FEW_PAIRS = 400
# Of mass that goes for ever, so many lines are added in each round: those that gain most.
MOST_WAYS = 32
# Moved samples, in NamedTuples of arrays that all have one entry for each.
AnyAtoms = TypeVar("AnyAtoms", bound=NamedTuple)


def why_no_cuts(form: AffineForm) -> str | None:
    """Return why a form has no such program, or None."""
    if not isinstance(form, WassersteinForm):
        return "it needs a WassersteinBall, got another ambiguity set"
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
    distances: FloatArray
    ages: IntArray


def joined(first: AnyAtoms, *others: AnyAtoms) -> AnyAtoms:
    """Return atoms followed by others."""
    return first._make(np.concatenate(parts) for parts in zip(first, *others, strict=True))


def picked(atoms: AnyAtoms, kept: IntArray) -> AnyAtoms:
    """Return some of the atoms."""
    return atoms._make(part[kept] for part in atoms)


def plane_program(
    dense: FloatArray, right: FloatArray, rows: IntArray, weights: FloatArray, centre: FloatArray,
    trust_radius: FloatArray,
) -> tuple[FloatArray, float, FloatArray] | None:  # fmt: skip
    """Minimise g + sum_i w_i s_i with dense (parameters, g) - s_row <= right, within a trust region.

    Atoms of row -1 have no s. Return parameters, value and multipliers, or None if there is no answer.
    """
    size = np.maximum(np.abs(dense).max(axis=1), 1.0)
    held = np.flatnonzero(rows >= 0)
    shape = len(rows), len(weights)
    levels = csr_array((-1.0 / size[held], (held, rows[held])), shape=shape)
    result = optimize.linprog(
        np.concatenate([np.zeros(len(centre)), [1.0], weights]),
        A_ub=hstack([csr_array(dense / size[:, None]), levels], format="csr"),
        b_ub=right / size,
        bounds=[
            *zip(centre - trust_radius, centre + trust_radius, strict=True),
            (0.0, None),
            *([(None, None)] * len(weights)),
        ],
        method="highs",
    )
    if result.status != 0:
        return None
    masses = np.maximum(-result.ineqlin.marginals, 0.0) / size
    return result.x[: len(centre)], float(result.fun), masses


class PlaneRun(ABC):
    """A run that adds the adversary's answers to a linear program, round by round.

    A subclass says what a policy and an atom are.
    """

    atoms: Any
    best: tuple[FloatArray, Any]
    slopes: Any
    value: float
    trust_radius: float
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
        """Return the best policy in the trust region, what it would cost, and masses of the atoms."""

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
            self.trust_radius *= 0.25
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
            if far >= 0.99 * self.trust_radius:
                self.trust_radius *= FARTHER
            self.failures = 0
        else:
            self.failures += 1
            if self.failures >= FAILURES:
                self.trust_radius, self.failures = (
                    0.5 * min(self.trust_radius, max(far, 1e-3 * self.trust_radius)),
                    0,
                )
        if value < self.value:
            self.best, self.value = policy, value
        self.atoms = joined(self._kept(masses), answers)
        return True

    def _kept(self, masses: FloatArray) -> Any:
        """Return the atoms that have mass, had some lately, or have not moved."""
        ages = np.where(masses > 0.0, 0, self.atoms.ages + 1)
        stays = self.atoms.distances == 0.0
        return picked(self.atoms._replace(ages=ages), np.flatnonzero((ages <= KEPT_ROUNDS) | stays))


class CuttingPlaneRun(PlaneRun):
    """The run of one product, or of several under one adversary: policies have a column for each.

    Parameters count in what they add to costs, by the rows or by the moves, in any units.
    """

    def __init__(
        self, form: WassersteinForm | JointForm, policy: tuple[FloatArray, Any] | None = None
    ) -> None:
        super().__init__()
        self.form, self.alone = form, isinstance(form, WassersteinForm)
        self.joint = JointForm((form,)) if isinstance(form, WassersteinForm) else form
        joint, mean = self.joint, form.weights @ form.contexts
        self.centre = mean if form.intercept else np.zeros_like(mean)
        moves = np.where(joint.first.movable, form.radius, 0.0)
        sizes = np.sqrt(form.weights @ (form.contexts - self.centre) ** 2 + moves**2)
        self.sizes = np.where(sizes > 0.0, sizes, 1.0)[:, None]
        costs = np.array([_cost_size(one) for one in joint.products])
        self.units, self.trust_radius = costs, FIRST_TRUST_RADIUS
        if self.alone:
            self.units, self.trust_radius = np.ones(1), FIRST_TRUST_RADIUS * float(costs[0])
        start, self.slopes = form.start()
        self.best = self._inner(start if policy is None else policy)
        self.present = np.zeros((len(form.weights), len(joint.lines.levels)), dtype=bool)
        self.few = self.alone or self.present.size <= FEW_PAIRS
        nothing = np.zeros((0, len(self.sizes))), np.zeros((0, len(self.units)))
        self.empty = Atoms(
            np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), *nothing, np.zeros(0),
            np.zeros(0, dtype=np.int64),
        )  # fmt: skip
        self.value, answers = self._judged(self._plain(self.best))
        self.atoms = answers
        if self.few:
            still = self._still(np.ones_like(self.present))
            self.atoms = self._in_order(joined(still, answers))

    def policy(self) -> tuple[FloatArray, Any]:
        """Return (theta, intercept) of the best policy so far, as the form has it."""
        theta, constants = self._plain(self.best)
        return (theta[:, 0], float(constants[0])) if self.alone else (theta, constants)

    def begin_at(self, policy: tuple[FloatArray, Any]) -> None:
        """Go on from another policy, if it is better."""
        value, answers = self._judged(policy)
        if value < self.value:
            self.value, self.best = value, self._inner(policy)
            self.atoms = joined(self.atoms, answers)

    def _inner(self, policy: tuple[FloatArray, Any]) -> tuple[FloatArray, FloatArray]:
        theta = policy[0].reshape(len(self.sizes), -1)
        return theta * self.sizes / self.units, (policy[1] + self.centre @ theta) / self.units

    def _plain(self, policy: tuple[FloatArray, Any]) -> tuple[FloatArray, Any]:
        theta = policy[0] * self.units / self.sizes
        return theta, policy[1] * self.units - self.centre @ theta

    def _judged(self, policy: tuple[FloatArray, Any]) -> tuple[float, "Atoms"]:
        joint = self.joint
        if self.alone:
            value, gammas = value_and_multipliers(self.form, policy[0][:, 0], float(policy[1][0]))
        else:
            value, gammas = joint_value_and_multipliers(joint, policy)
        parts = [self._moved(policy, gamma) for gamma in gammas]
        ways = open_ways(joint, policy[0])
        if not self.alone:
            wanted = np.zeros_like(self.present)
            wanted[np.arange(len(wanted)), stay(joint, policy).line] = True
            parts.append(self._still(wanted))
            ways = sorted(ways, key=lambda way: -way.gain)[:MOST_WAYS]
        if ways:
            parts.append(
                Atoms(
                    np.full(len(ways), -1), np.array([way.line for way in ways]),
                    np.array([way.contexts for way in ways]), np.array([way.outcomes for way in ways]),
                    np.ones(len(ways)), np.zeros(len(ways), dtype=np.int64),
                )
            )  # fmt: skip
        return value, self._in_order(joined(self.empty, *parts))

    def _in_order(self, atoms: Atoms) -> Atoms:
        """Return atoms in the order in which programs of one product are solved: line by line."""
        return picked(atoms, np.argsort(atoms.lines, kind="stable")) if self.alone else atoms

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
            moved = [line_moves(self.joint, policy[0], line, gamma) for line in lines]
            parts = [Atoms(every, np.full(n, line), *moved[line], none) for line in lines]
        else:
            moves = best_moves(self.joint, policy, gamma)
            parts = [Atoms(every, moves.line, moves.contexts, moves.outcomes, moves.distance, none)]
        atoms = joined(self.empty, *parts)
        return picked(atoms, np.flatnonzero(np.isfinite(atoms.distances) & (atoms.distances > 0.0)))

    def _plan(self, masses: FloatArray) -> Plan | JointPlan | FloatArray:
        rows, lines, contexts, outcomes, *_ = self.atoms
        if isinstance(self.form, WassersteinForm):
            return stronger(self.form, Plan(rows, lines, masses, contexts, outcomes[:, 0]))
        return JointPlan(rows, self.joint.lines.picks[lines], masses, contexts, outcomes)

    def _program(self) -> tuple[tuple[FloatArray, FloatArray], float, FloatArray] | None:
        joint, atoms = self.joint, self.atoms
        (s, d), m = self.best[0].shape, len(atoms.rows)
        # Solvers of programs know numbers of the size of one: costs of several products count in those
        # of the best policy.
        unit = 1.0 if self.alone else self.value - min(joint.least, 0.0) or 1.0
        w, levels = joint.lines.slopes[atoms.lines] / unit, joint.lines.levels / unit
        gone = atoms.rows < 0
        at = np.where(gone[:, None], 0.0, joint.contexts[atoms.rows] - self.centre) + atoms.contexts
        y = np.where(gone[:, None], 0.0, joint.outcomes[atoms.rows]) + atoms.outcomes
        # Columns: theta (products side by side), t, gamma times budget, s. Distances are shares of it.
        products = np.einsum("mj,ms->msj", w * self.units, at) / self.sizes
        constants = np.where(gone[:, None], 0.0, w * self.units)
        dense = np.column_stack(
            [products.reshape(m, s * d), constants, -atoms.distances / (joint.budget or 1.0)]
        )
        right = (w * y).sum(axis=1) - np.where(gone, 0.0, levels[atoms.lines])
        centre = np.concatenate([self.best[0].ravel(), self.best[1]])
        trust_radius = np.full(len(centre), self.trust_radius)
        trust_radius[s * d :] *= joint.intercept
        answer = plane_program(dense, right, atoms.rows, joint.weights, centre, trust_radius)
        if answer is None:
            return None
        policy, value, masses = answer
        masses = np.where(gone, masses * atoms.distances, masses)
        return (policy[: s * d].reshape(s, d), policy[s * d :]), unit * value, masses


def stronger(form: WassersteinForm, plan: Plan) -> Plan | FloatArray:
    """Return a plan, or the mean slopes of its rows where they prove more.

    At the border of a trust region a plan leaves something over, and mass that cancels it earns
    nothing: of costs of 200 : 1, three per cent of the mass may take seven of the bound. Where
    slopes alone can prove the optimum, the certificate finds the moves that go with them by itself.
    """
    if not form.tight:
        return plan
    held = plan.rows >= 0
    rows, masses = plan.rows[held], plan.masses[held]
    sums, mass = np.zeros_like(form.weights), np.zeros_like(form.weights)
    np.add.at(sums, rows, masses * np.array(form.pieces.slopes)[plan.lines[held]])
    np.add.at(mass, rows, masses)
    slopes = sums / np.where(mass > 0.0, mass, 1.0)
    return slopes if form.lower_bound(slopes) > form.lower_bound(plan) else plan


def _cost_size(form: WassersteinForm) -> float:
    """Return the size of a product's residuals at its best constant decision."""
    cost = form.mean_cost(form.constant_order()[0] - form.outcomes) - min(form.pieces.least, 0.0)
    return cost / form.pieces.steepest or 1.0


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
            tried = tuple(a + share * (b - a) for a, b in zip(self.best, policy, strict=True))
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
