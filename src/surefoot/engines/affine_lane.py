"""One product of one problem in the affine engine: where it stands, and the best policy so far."""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity import AffineForm, Geometry, Plan, WassersteinForm
from surefoot.certificates import relative_gap
from surefoot.engines.affine_kernels import GEOMETRY, NUMBERS, affine_steps
from surefoot.engines.affine_proof import (
    Proof,
    provable,
    why_no_dual,
)
from surefoot.engines.arrangement import Arrangement
from surefoot.engines.canonical import lopsided
from surefoot.engines.engine import Options
from surefoot.engines.open_set import open_steps
from surefoot.typing import FloatArray, IntArray

# A run on rows stops at this share of the tolerance.
TARGET_SHARE = 0.5
# After so many looks a run that is not done begins each block at its best policy, with steps of the
# first share of the distance that the last block went. A block that gained less than the last share of
# the gap went the wrong way: the next begins with the second, and with its powers if that is in vain.
RESTART_LOOKS, SHORTER, LONGER, LEAST_GAIN = 3, 0.1, 3.0, 0.2
# Where a run's own slopes prove too little after so many looks (more where the proof solves programs,
# which take longer than a look), so many rounds of another run at each further look prove more, up to
# this share of the tolerance.
OWN_LOOKS, LOOKS_BEFORE_PROGRAMS, PROOF_ROUNDS, PROOF_SHARE = 3, 4, 25, 0.1
Policy = tuple[FloatArray, float]


class Seen(NamedTuple):
    """What a block of steps has to show for a lane: the average policy, and mean slopes of the rows.

    ``arranged`` is the policy in the coordinates of the kernels, where a run on rows can go on from it.
    """

    policy: Policy
    slopes: FloatArray | Plan
    arranged: Policy | None = None


def first_numbers(form: AffineForm, rows: FloatArray) -> Any:
    """Return the numbers of a lane before its first step, at the constant order (or at zero)."""
    decision, _ = form.constant_order()
    cost = form.mean_cost(decision - form.outcomes) - min(form.pieces.least, 0.0)
    # First rows with one and the same outcome say nothing about the scale: guess, and grow from there.
    spread = cost / form.pieces.steepest or 0.01 * max(abs(decision), 1.0)
    size = math.sqrt(float(form.weights @ (rows**2).sum(axis=1)))
    if size <= 1e-12 * math.sqrt(float(form.weights @ (form.contexts**2).sum(axis=1))):
        size = 0.0  # what centring leaves of constant columns is rounding
    numbers = np.zeros(1, NUMBERS)
    numbers["start"] = numbers["intercept"] = decision if form.intercept else 0.0
    numbers["spread"] = numbers["intercept_travelled"] = spread
    numbers["travelled"] = spread / size if size > 0.0 else 0.0
    numbers["square_slope"] = form.pieces.up * form.pieces.down
    if isinstance(form, WassersteinForm) and form.radius > 0.0:
        first = float(numbers["travelled"][0]) or spread / math.sqrt(rows.shape[1])
        least = form.inverse_kappa if form.order == 1 else math.sqrt(form.inverse_kappa)
        guess = form.slope_constant * max(first, least)
        numbers["log_multiplier"] = math.log(guess if form.order == 1 else guess / (2.0 * form.radius))
    return numbers


def geometry_record(geometry: Geometry, movable: int, intercept: bool, options: Options) -> Any:
    """Return a form's geometry as the kernels read it."""
    record = np.zeros(1, GEOMETRY)
    record["radius"], record["order"] = geometry.radius, geometry.order
    record["inverse_kappa"] = geometry.inverse_kappa
    record["smoothing"], record["steepest"] = geometry.smoothing, np.abs(geometry.slopes).max()
    record["movable"], record["intercept"], record["boxed"] = movable, intercept, geometry.boxed
    record["batch"], record["inner_steps"] = options.minibatch, options.inner_steps
    return record


class Lane:
    """One product of one problem: its form, its coordinates, and the best policy so far."""

    def __init__(self, form: AffineForm, options: Options, *, rotate: bool) -> None:
        self.form, self.options = form, options
        self.geometry = form.geometry
        movable = form.movable if isinstance(form, WassersteinForm) else np.ones(len(form.scale), bool)
        plain = options.minibatch == 1 and options.inner_steps == 0
        free = self.geometry is not None and not self.geometry.boxed
        still = self.geometry is not None and self.geometry.radius == 0.0 and lopsided(form)
        if still:  # no column has a penalty, so that all are alike
            movable = np.ones_like(movable)
        self.arrangement = Arrangement.of(
            form, movable, rotate=rotate and plain and free, unpenalised=still
        )
        self.slopes: FloatArray | Plan
        decision, self.slopes = form.constant_order()
        self.policy: Policy = (np.zeros(len(form.scale)), decision if form.intercept else 0.0)
        self.upper, self.lower = form.worst_value(*self.policy)[0], form.lower_bound(self.slopes)
        # Rows that only judge have a run behind their bound already.
        self.looks, self.whole = 0, rotate
        self.arranged: Policy | None = None
        self.restarted_at: FloatArray | None = None
        self.restarted_from, self.shorter, self.vain = math.inf, True, 0
        self.proof: Proof | None = None
        # Slopes of order 1 in a box prove little and take hundreds of sorts: another run does better.
        slow = isinstance(form, WassersteinForm) and form.boxed and form.order == 1
        proved = slow and rotate and not options.rough and provable(form)
        programs = why_no_dual(form) is not None
        self.own_looks = 0 if proved else LOOKS_BEFORE_PROGRAMS if programs else OWN_LOOKS

    @cached_property
    def rows(self) -> FloatArray:
        """Contexts in the coordinates of the kernels."""
        return self.arrangement.rows(self.form.contexts)

    def first(self) -> tuple[FloatArray, Any]:
        """Return parameters and numbers before the first step."""
        return np.zeros(self.rows.shape[1]), first_numbers(self.form, self.rows)

    def step(
        self, theta: FloatArray, numbers: Any, form: AffineForm, rows: FloatArray, draws: IntArray
    ) -> Seen:
        """Take one step for each draw of rows of a form, in place; return what was seen."""
        if self.geometry is None:
            policy, slopes = open_steps(form, self.arrangement, theta, numbers, len(draws))
            return Seen(policy, slopes)
        assert isinstance(form, WassersteinForm)  # it has a geometry
        at, n = self.arrangement, len(form.outcomes)
        slope_sums, visits, average = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(len(theta))
        numbers["averaged"] = numbers["averaged_intercept"] = 0.0
        affine_steps(
            rows, form.outcomes, form.outcome_lower, form.outcome_upper,
            np.einsum("ij,ij->i", rows, rows), draws,
            self.geometry.slopes, self.geometry.intercepts,
            at.bounds(self.geometry.lower), at.bounds(self.geometry.upper),
            geometry_record(self.geometry, at.n_movable, form.intercept, self.options),
            theta, numbers, 0, self.origin(len(theta)), average, slope_sums, visits,
        )  # fmt: skip
        count = max(float(numbers["averaged"][0]), 1.0)
        arranged = average / count, float(numbers["averaged_intercept"][0]) / count
        policy = at.original(*arranged)
        at_average = form.pieces.derivative_at(form.residuals(*policy))
        slopes = np.where(visits > 0, slope_sums / np.maximum(visits, 1), at_average)
        return Seen(policy, slopes, arranged)

    def origin(self, size: int) -> FloatArray:
        """Return the parameters from which the distance travelled counts."""
        return np.zeros(size) if self.restarted_at is None else self.restarted_at

    def go_on(self, theta: FloatArray, numbers: Any) -> tuple[FloatArray, Any]:
        """Return where the next block of steps begins: from now and then at the best policy so far.

        Steps of one long run fall like 1/sqrt(steps) from the distance to the first policy. Costs have
        kinks, and so has the best policy: begun again near it, at shorter steps, a run gains a constant
        share with each block.
        """
        short = self.looks <= RESTART_LOOKS or self.gap <= TARGET_SHARE * self.options.gap_tol
        if short or self.arranged is None or not self.whole or self.options.rough:
            return theta, numbers
        least = LEAST_GAIN * (self.restarted_from - self.lower)
        little = self.restarted_at is not None and self.upper > self.restarted_from - least
        self.vain = self.vain + 1 if little else 0
        self.shorter = self.shorter != little
        share = SHORTER if self.shorter else LONGER ** (1 + self.vain // 2)
        numbers, self.restarted_from = numbers.copy(), self.upper
        self.restarted_at, decision = self.arranged
        numbers["intercept"] = numbers["start"] = decision
        numbers["squares"] = numbers["intercept_squares"] = 0.0
        for name in ("travelled", "intercept_travelled"):
            numbers[name] *= share
        return self.restarted_at.copy(), numbers

    def take(self, seen: Seen) -> None:
        """Keep the policy, and the slopes, if they are better than the best so far."""
        value = self.form.worst_value(*seen.policy)[0]
        if value < self.upper:
            self.upper, self.policy = value, seen.policy
            self.arranged = seen.arranged
        if self.own_looks > 0:
            self.take_slopes(seen.slopes)
        self.looks += 1
        if self.looks > self.own_looks and self.gap > TARGET_SHARE * self.options.gap_tol:
            self._prove()

    def _prove(self) -> None:
        """Go on with the run behind the bound: where slopes of single draws prove little.

        Its policy is never handed out.
        """
        if self.options.rough or not self.whole or not provable(self.form):
            return
        assert isinstance(self.form, WassersteinForm)  # or nothing were provable
        self.proof = self.proof or Proof(self.form)
        target = PROOF_SHARE * self.options.gap_tol
        for _ in range(PROOF_ROUNDS):
            done = self.gap <= TARGET_SHARE * self.options.gap_tol
            if done or self.proof.gap(self.lower) <= target:
                break
            self.take_slopes(self.proof.go_on())

    def take_slopes(self, slopes: FloatArray | Plan) -> None:
        """Keep slopes that prove more than the best so far."""
        bound = self.form.lower_bound(slopes)
        if bound > self.lower:
            self.lower, self.slopes = bound, slopes.copy()

    @property
    def gap(self) -> float:
        """How far the best policy so far can be from the best possible."""
        return relative_gap(self.upper, self.lower, self.form.gap_floor)
