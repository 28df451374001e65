"""Cutting planes for linear policies of any convex cost: a linear program over moved samples.

The moves are those that gradient ascent finds, and the cost of a moved sample is replaced by its
tangent in the parameters: c(theta_k) + c'(theta_k)(theta - theta_k) - gamma d is nowhere above the
row's worst case where the cost is convex. So the program of ``cutting_planes.py`` bounds the best worst
case from below, and its policy meets it once the right tangents are there. The autodiff engine ends a
run with some rounds of it: steps on single samples lead near the best policy, and rarely onto it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity import Adversary
from surefoot.ambiguity.plan import rebalanced
from surefoot.certificates import move_distances
from surefoot.certificates.general import affine_design
from surefoot.engines.autodiff_forms import FormBatch
from surefoot.engines.cutting_planes import (
    FIRST_TRUST_RADIUS,
    KEPT_ROUNDS,
    PlaneRun,
    joined,
    picked,
    plane_program,
)
from surefoot.engines.multiplier_search import CHECK_ROWS
from surefoot.exceptions import UnboundedProblemError
from surefoot.policies import Linear
from surefoot.problem import GeneralForm
from surefoot.typing import FloatArray, IntArray

# Programs of up to so many numbers for each round are solved quickly, beside the moves themselves.
SMALL_PROGRAM = 4_000
# Rounds end after so many, when the program promises less than this share of the worst case (and of the
# tolerance), or when it looks no farther than this share of the outcomes' spread.
MOST_ROUNDS, MET, MET_SHARE, LEAST_TRUST_RADIUS = 80, 1e-4, 0.1, 1e-8


def why_no_planes(form: GeneralForm) -> str | None:
    """Return why a form has no such program, or one that is not quickly solved, or None."""
    if not isinstance(form.policy, Linear) or form.policy.decisions is not None:
        return "it needs a linear policy without limits"
    if not form.cost.convex():
        return f"it needs a cost that is known to be convex, got {form.cost!r}"
    if not form.exact_rows:
        return "it needs a nominal of rows"
    rows, numbers = len(form.weights), (form.n_features + 1) * form.n_decisions
    if rows > CHECK_ROWS or rows * numbers > SMALL_PROGRAM:
        return f"it needs few rows and parameters, got {rows} and {numbers}"
    return None


class Tangents(NamedTuple):
    """Costs of moved samples, linear in the parameters; ``ages`` as of ``Atoms``."""

    rows: IntArray
    slopes: FloatArray
    levels: FloatArray
    distances: FloatArray
    contexts: FloatArray
    outcomes: FloatArray
    ages: IntArray


class MovedPlaneRun(PlaneRun):
    """Rounds for one problem, from a policy that a run of DA-SGD has found.

    The program counts parameters in what they add to decisions, in units of the outcomes' spread.
    """

    def __init__(self, batch: FormBatch, multiplier: FloatArray, trained: Any) -> None:
        super().__init__()
        self.batch, self.form, self.slopes = batch, batch.forms[0], None
        self.multiplier = multiplier
        self.rows = np.flatnonzero(self.form.weights > 0.0)
        leaves, self.tree = batch.engine.jax.tree.flatten(trained)
        self.shapes = [np.shape(leaf)[1:] for leaf in leaves]
        self.sizes = _parameter_sizes(self.form)
        self.trust_radius, self.bound = FIRST_TRUST_RADIUS, -np.inf
        self.best = self._flat(leaves) * self.sizes, 0.0
        self.value, answers = self._judged(self._plain(self.best))
        # A run that went astray is worse than its start, the best constant decision.
        start = np.zeros_like(self.sizes), 0.0
        value, self.atoms = self._judged(self._plain(start))
        self.atoms = joined(self.atoms, answers)
        if value < self.value:
            self.best, self.value = start, value

    @property
    def trained(self) -> Any:
        """The best policy so far, as the engine has it."""
        return self._unflat(self._plain(self.best)[0])

    @property
    def met(self) -> bool:
        """Whether the program promises next to nothing."""
        share = min(MET, MET_SHARE * self.batch.options.gap_tol)
        return self.value - self.bound <= share * abs(self.value)

    def _flat(self, leaves: Any) -> FloatArray:
        return np.concatenate([np.ravel(np.asarray(leaf, dtype=np.float64)) for leaf in leaves])

    def _unflat(self, vector: FloatArray) -> Any:
        """Return parameters as a tree with a leading problem axis."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        parts = np.split(vector, ends[:-1])
        leaves = [part.reshape(1, *shape) for part, shape in zip(parts, self.shapes, strict=True)]
        return self.tree.unflatten(leaves)

    def _plain(self, policy: tuple[FloatArray, Any]) -> tuple[FloatArray, Any]:
        return policy[0] / self.sizes, 0.0

    def _judged(self, policy: tuple[FloatArray, Any]) -> tuple[float, Tangents]:
        """Return the worst case that ascents find, with tangents at the moved rows and at the rows."""
        form, trained = self.form, self._unflat(policy[0])
        samples = [(form.contexts[self.rows], form.outcomes[self.rows])]
        try:
            judged = self.batch.judge_closely(self.multiplier, trained)
        except UnboundedProblemError:  # so far away, tangents at the rows lead back
            return np.inf, self._tangents(policy[0], trained, *samples[0])
        value = float(judged.value[0])
        if np.isfinite(value):
            self.multiplier = np.where(judged.multiplier > 0.0, judged.multiplier, self.multiplier)
            for verdict in (judged.verdict, judged.beyond):
                moved = np.asarray(verdict.context)[0], np.asarray(verdict.outcome)[0]
                samples.append((moved[0][self.rows], moved[1][self.rows]))
        parts = [self._tangents(policy[0], trained, *sample) for sample in samples]
        return value if np.isfinite(value) else np.inf, joined(*parts)

    def _tangents(
        self, vector: FloatArray, trained: Any, contexts: FloatArray, outcomes: FloatArray
    ) -> Tangents:
        """Return the costs of moved rows as they change with the parameters."""
        form, rows = self.form, self.rows
        costs, leaves = self.batch.parameter_slopes(trained, contexts, outcomes)
        slopes = np.hstack([leaf.reshape(len(rows), -1) for leaf in leaves])
        moves = contexts - form.contexts[rows], outcomes - form.outcomes[rows]
        tangents = Tangents(
            rows, slopes / self.sizes, costs - slopes @ vector, move_distances(form, *moves),
            contexts, outcomes, np.zeros(len(rows), dtype=np.int64),
        )  # fmt: skip
        finite = np.isfinite(tangents.levels) & np.isfinite(slopes).all(axis=1)
        return picked(tangents, np.flatnonzero(finite & np.isfinite(tangents.distances)))

    def _kept(self, masses: FloatArray) -> Tangents:
        """Return the tangents that have mass or had some lately; each row has one that has."""
        ages = np.where(masses > 0.0, 0, self.atoms.ages + 1)
        atoms: Tangents = self.atoms._replace(ages=ages)
        return picked(atoms, np.flatnonzero(ages <= KEPT_ROUNDS))

    def _plan(self, masses: FloatArray) -> Adversary | None:
        """Return the program's masses as a distribution in the ball, None where they are none."""
        form, atoms = self.form, self.atoms
        held = rebalanced(np.searchsorted(self.rows, atoms.rows), masses, form.weights[self.rows])
        if held is None:
            return None
        kept = held > 0.0
        spent, budget = float(held @ atoms.distances), form.radius**form.order
        share = 1.0 if spent <= budget else budget / spent
        share = (share if form.order == 1 else np.sqrt(share)) * (1.0 - 1e-12)
        original = form.contexts[atoms.rows[kept]], form.outcomes[atoms.rows[kept]]
        moved = atoms.contexts[kept], atoms.outcomes[kept]
        x, y = (a + share * (b - a) for a, b in zip(original, moved, strict=True))
        distances = move_distances(form, x - original[0], y - original[1])
        return Adversary(
            value=self.value, expected_cost=float("nan"), multiplier=self.multiplier,
            transport_cost=np.array([held[kept] @ distances]), rows=atoms.rows[kept],
            products=np.zeros(int(kept.sum()), dtype=np.int64), contexts=x, outcomes=y,
            weights=held[kept], distances=distances,
        )  # fmt: skip

    def _program(self) -> tuple[tuple[FloatArray, float], float, FloatArray] | None:
        form, atoms = self.form, self.atoms
        unit = self._cost_unit()  # solvers of programs know numbers of the size of one
        budget = form.radius**form.order or 1.0
        dense = np.column_stack([atoms.slopes / unit, -atoms.distances / budget])
        centre, trust_radius = self.best[0], np.full(len(self.sizes), self.trust_radius)
        right = -atoms.levels / unit
        answer = plane_program(dense, right, atoms.rows, form.weights, centre, trust_radius)
        if answer is None:
            return None
        at, promised, masses = answer
        inside = np.abs(at - centre).max(initial=0.0) < 0.99 * self.trust_radius
        self.bound = max(self.bound, unit * promised) if inside else self.bound
        return (at, 0.0), unit * promised, masses

    def _cost_unit(self) -> float:
        """Return the size of costs above the least one."""
        least = self.form.cost.floor(self.form.outcomes.shape[1])
        size = self.value - least if np.isfinite(least) and least < 0.0 else abs(self.value)
        return size if 0.0 < size < np.inf else 1.0


def _parameter_sizes(form: GeneralForm) -> FloatArray:
    """Return what a unit of each parameter adds to decisions, by the rows or by the moves.

    In units of the outcomes' spread, and in the order in which trees of parameters are flattened.
    """
    design = affine_design(form, form.contexts)
    features = slice(0, form.n_features)
    moves = np.where(form.movable, form.radius * form.scale, 0.0)[features] / form.units.spread
    columns = np.sqrt(form.weights @ design[:, -form.n_features :] ** 2 + moves**2)
    columns = np.where(columns > 0.0, columns, 1.0)
    one = np.ones(form.n_decisions)
    theta = np.outer(columns, one / form.units.unit).ravel()
    constant = isinstance(form.policy, Linear) and form.policy.intercept
    intercept = one / form.units.unit if constant else one[:0]
    return np.concatenate([np.ones(len(form.auxiliary[0])), intercept, theta])


def polished_batch(
    batch: FormBatch, numbers: Sequence[int], multipliers: FloatArray, trained: Any
) -> tuple[Any, list[Adversary | None], list[int]]:
    """Return policies no worse than those given, plans of their adversaries, and how many rounds.

    Only some problems of a batch are looked at, and only where they have a program.
    ``multipliers`` are where the searches for the adversaries' multipliers begin.
    """
    leaves, tree = batch.engine.jax.tree.flatten(trained)
    leaves = [np.array(leaf) for leaf in leaves]
    plans: list[Adversary | None] = [None] * len(batch.forms)
    rounds = [0] * len(batch.forms)
    for k in numbers:
        form = batch.forms[k]
        if why_no_planes(form) is not None or not all(np.isfinite(leaf[k]).all() for leaf in leaves):
            continue
        alone = batch if len(batch.forms) == 1 else FormBatch([form], [batch.seeds[k]], batch.options)
        first = tree.unflatten([leaf[k : k + 1] for leaf in leaves])
        run = MovedPlaneRun(alone, multipliers[k : k + 1], first)
        while run.steps < MOST_ROUNDS and run.trust_radius > LEAST_TRUST_RADIUS and not run.met:
            run.run(np.zeros(1, dtype=np.int64))
        plans[k], rounds[k] = run.slopes, run.steps
        for leaf, one in zip(leaves, batch.engine.jax.tree.leaves(run.trained), strict=True):
            leaf[k] = one[0]
    return tree.unflatten(leaves), plans, rounds
