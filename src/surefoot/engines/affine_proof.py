"""Lower bounds of affine problems from a run beside the one that is asked for.

DA-SGD, by whichever engine, finds good policies long before its own slopes prove that they are good. A
quicker method runs beside it, and only what it proves is used: its policy is never handed out.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.ambiguity import AffineForm, JointForm, WassersteinForm
from surefoot.certificates import Certificate, certify, relative_gap
from surefoot.costs import Pieces
from surefoot.engines.cutting_planes import FEW_PAIRS, CuttingPlaneRun, small_program
from surefoot.engines.primal_dual import PrimalDualRun
from surefoot.policies import LinearParameters
from surefoot.problem import Problem, affine_forms, form_policies
from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray

# The first look comes after this many passes over the rows, and at least so many steps.
FIRST_PASSES, FIRST_STEPS = 2, 2_000
# Most rounds behind the bound of a policy that was found without one.
MOST_ROUNDS = 200
# Several products under one adversary begin where adversaries of their own leave them after so many
# passes over the rows.
PASSES_APART = 200
# Their programs of up to so many numbers for each round are quicker than any other way to a proof. In a
# box every line is moved by itself for each multiplier that is tried: quick for so many lines.
SMALL_PROGRAM, FEW_LINES = 60_000, 32


def why_no_dual(form: AffineForm) -> str | None:
    """Return why the primal-dual method cannot treat a form, or None."""
    if not isinstance(form, WassersteinForm):
        return "it needs a WassersteinBall, got another ambiguity set"
    if form.boxed:
        return "it needs a free support"
    return why_no_dual_lines(form.pieces)


def why_no_dual_lines(pieces: Pieces) -> str | None:
    """Return why the primal-dual method cannot treat the lines of a cost, or None."""
    if pieces.smoothing > 0.0:
        return "it needs an unsmoothed cost: set smoothing=0"
    return None if pieces.two else "it needs a cost of two lines that meet at zero"


def draw_rows(weights: FloatArray, rng: np.random.Generator, count: int) -> IntArray:
    """Return so many row numbers: shuffled passes, or draws by weight if weights are unequal."""
    n = len(weights)
    if np.ptp(weights) <= 1e-12 * weights[0]:
        passes = np.tile(np.arange(n), (math.ceil(count / n), 1))
        return np.asarray(rng.permuted(passes, axis=1).reshape(-1)[:count])
    return rng.choice(n, size=count, p=weights)


def small_joint_program(form: JointForm) -> bool:
    """Whether several products under one adversary have a program that is quickly solved."""
    (rows, columns), lines = form.contexts.shape, len(form.lines.levels)
    if form.boxed and lines > FEW_LINES:
        return False
    pairs = rows * lines if rows * lines <= FEW_PAIRS else rows
    return bool(pairs * columns * len(form.products) <= SMALL_PROGRAM)


def provable(form: AffineForm | JointForm) -> bool:
    """Whether some run proves a bound on a form quickly."""
    if isinstance(form, JointForm):
        return small_joint_program(form)
    return why_no_dual(form) is None or small_program(form)


def joint_run(form: JointForm) -> CuttingPlaneRun:
    """Return a run that begins where each product would be under an adversary of its own, if better."""
    run = CuttingPlaneRun(form)
    if all(why_no_dual(one) is None for one in form.products):
        alone = [_policy_apart(one) for one in form.products]
        run.begin_at((np.column_stack([theta for theta, _ in alone]), np.array([t for _, t in alone])))
    return run


def _policy_apart(form: WassersteinForm) -> tuple[FloatArray, float]:
    """Return roughly the best policy of one product under an adversary of its own."""
    run = PrimalDualRun.start(form)
    count = max(PASSES_APART * len(form.outcomes), FIRST_STEPS)
    run.run(draw_rows(form.weights, rng_for(0, "apart"), count))
    return run.policy()


@dataclass
class Proof:
    """A run of the primal-dual method, or of cutting planes, behind a lower bound.

    Attributes
    ----------
    form
        One that is ``provable``.
    least
        The smallest worst case that the run has seen: no lower bound is above it.
    """

    form: WassersteinForm | JointForm
    least: float = math.inf
    rng: np.random.Generator = field(default_factory=lambda: rng_for(0, "proof"))

    def __post_init__(self) -> None:
        """Begin at the constant order."""
        self._run: PrimalDualRun | CuttingPlaneRun
        if isinstance(self.form, JointForm):
            self._run = joint_run(self.form)
        elif why_no_dual(self.form) is None:
            self._run = PrimalDualRun.start(self.form)
        else:
            self._run = CuttingPlaneRun(self.form)
        self.least = self.form.worst_value(*self.form.start()[0])[0]

    def gap(self, lower: float) -> float:
        """How much a lower bound can still rise, at most."""
        return relative_gap(self.least, lower, self.form.gap_floor)

    def go_on(self) -> Any:
        """Take a round; return the slopes, or the plan, that a bound can be computed from."""
        if isinstance(self._run, PrimalDualRun):
            count = max(FIRST_PASSES * len(self.form.weights), FIRST_STEPS)
            self._run.run(draw_rows(self.form.weights, self.rng, count))
        else:
            self._run.run(np.zeros(1, dtype=np.int64))
        self.least = min(self.least, self.form.worst_value(*self._run.policy())[0])
        return self._run.slopes


def affine_certificate(problem: Problem, parameters: LinearParameters, target: float) -> Certificate:
    """Certify an affine policy that was found without a proof: its exact worst case, and a lower bound.

    ``target`` is how closely the best policy is bounded.
    """
    forms = affine_forms(problem)
    slopes = [best_proof(form, target) for form in forms]
    return certify(forms, form_policies(forms, parameters), slopes)


def best_proof(form: AffineForm | JointForm, target: float, rounds: int = MOST_ROUNDS) -> Any:
    """Return the slopes or the plan with the largest lower bound found."""
    best = form.start()[1]
    lower = form.lower_bound(best)
    if not provable(form):
        return best
    assert isinstance(form, WassersteinForm | JointForm)  # or it were not
    proof = Proof(form)
    for _ in range(rounds):
        if proof.gap(lower) <= target:
            break
        slopes = proof.go_on()
        bound = form.lower_bound(slopes)
        if bound > lower:
            best, lower = slopes.copy(), bound
    return best
