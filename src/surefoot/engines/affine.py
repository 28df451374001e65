"""The affine engine: linear policies with piecewise linear costs, product by product, compiled.

Each product of each problem is a lane with a state of its own. A problem whose nominal has no rows is
judged on rows that are drawn once and set apart, and learns from fresh ones alone: the worst case of
the policy on the judging rows estimates the true one without bias, as the policy is no function of
them, and a lower bound on their own optimum is, on average, one on the true optimum (Mak, Morton and
Wood 1999).
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity import Adversary, AffineForm, Geometry, JointForm, Plan, WassersteinForm
from surefoot.certificates import Certificate, certify, relative_gap
from surefoot.costs import ConvexPiecewiseCost
from surefoot.engines.affine_kernels import GEOMETRY, NUMBERS, affine_steps
from surefoot.engines.affine_proof import (
    FIRST_PASSES,
    FIRST_STEPS,
    Proof,
    draw_rows,
    provable,
    why_no_dual,
)
from surefoot.engines.arrangement import Arrangement
from surefoot.engines.canonical import lopsided
from surefoot.engines.engine import Answer, Bounds, Engine, Options, Parameters
from surefoot.engines.open_set import open_steps
from surefoot.engines.primal_dual import PrimalDualRun
from surefoot.nominals import Empirical
from surefoot.nominals.shapes import checked_draw
from surefoot.policies import LinearParameters
from surefoot.problem import Problem, affine_forms, form_policies, user_parameters
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray, IntArray

# Most steps where the user sets none.
AFFINE_STEPS = 50_000_000
# Blocks double, so that the newest, over which policies are averaged, outweighs all before it together;
# the first of fresh draws has so many steps.
FIRST_FRESH_STEPS, GROWTH = 2_048, 2
# A run on rows stops at this share of the tolerance.
TARGET_SHARE = 0.5
# The rows that judge a nominal without rows: at least so many, more for many columns, but no more
# numbers than fit 128 MiB. For order 1 in a box the lower bound takes hundreds of sorts: few must do.
JUDGING_ROWS, ROWS_PER_COLUMN, JUDGING_NUMBERS, JUDGING_ROWS_IN_BOX = 20_000, 200, 2**24, 4_000
# Fresh rows are drawn and learned in chunks of about so many numbers, 8 MiB.
CHUNK_NUMBERS = 2**20
# The judging rows' own optimum is bounded to this share of the tolerance; less must do where the run
# behind the bound is plain DA-SGD, whose gap falls like 1/sqrt(steps).
DUAL_SHARE, PLAIN_SHARE, DUAL_GROWTH = 0.1, 0.25, 1.2

# After so many looks a run that is not done begins each block at its best policy, with steps of the
# first share of the distance that the last block went. A block that gained less than the last share of
# the gap went the wrong way: the next one begins with the second share.
RESTART_LOOKS, SHORTER, LONGER, LEAST_GAIN = 3, 0.1, 3.0, 0.2
# Where a run's own slopes prove too little after so many looks, so many rounds of cutting planes at
# each further look prove more, up to this share of the tolerance.
OWN_LOOKS, PROOF_ROUNDS, PROOF_SHARE = 3, 25, 0.1
# If an error falls like 1/sqrt(steps), all doublings to come gain 2.4 times what the last one
# gained. A run has stalled if so much, rounded up, would not do, at this many checks in a row and
# after this many steps for each judging row.
PROSPECT, STALLED_CHECKS, STALLED_STEPS = 3.0, 2, 4
# Under a loose bound a run has settled when the gap kept this share over so many looks.
SETTLED_LOOKS, SETTLED_SHARE = 4, 0.98
# Most steps of a rehearsal, in passes over the rows, and at least.
ROUGH_PASSES, ROUGH_STEPS = 60, 4_000
# Useful radii lie between this share of the collapse radius and the collapse radius itself.
SMALLEST_RADIUS_SHARE, N_RADII = 0.003, 12

Policy = tuple[FloatArray, float]


class AffineState(NamedTuple):
    """Where every lane stands: parameters in the coordinates of its arrangement, and its numbers."""

    theta: tuple[FloatArray, ...]
    numbers: tuple[Any, ...]


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
        guess = form.slope_constant * max(first, form.pull if form.order == 1 else math.sqrt(form.pull))
        numbers["log_multiplier"] = math.log(guess if form.order == 1 else guess / (2.0 * form.radius))
    return numbers


def geometry_record(geometry: Geometry, movable: int, intercept: bool, options: Options) -> Any:
    """Return a form's geometry as the kernels read it."""
    record = np.zeros(1, GEOMETRY)
    record["radius"], record["pull"], record["order"] = geometry.radius, geometry.pull, geometry.order
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
        if still:  # no column has a price, so that all are alike
            movable = np.ones_like(movable)
        self.arrangement = Arrangement.of(
            form, movable, rotate=rotate and plain and free, unpriced=still
        )
        self.slopes: FloatArray | Plan
        decision, self.slopes = form.constant_order()
        self.policy: Policy = (np.zeros(len(form.scale)), decision if form.intercept else 0.0)
        self.upper, self.lower = form.worst_value(*self.policy)[0], form.lower_bound(self.slopes)
        # Rows that only judge have a run behind their bound already.
        self.looks, self.whole = 0, rotate
        self.arranged: Policy | None = None
        self.restarted_at: FloatArray | None = None
        self.restarted_from, self.shorter = math.inf, True
        self.proof: Proof | None = None

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
        at_average = form.pieces.slope_at(form.residuals(*policy))
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
        if self.upper > self.restarted_from - LEAST_GAIN * (self.restarted_from - self.lower):
            self.shorter = not self.shorter
        numbers, self.restarted_from = numbers.copy(), self.upper
        self.restarted_at, decision = self.arranged
        numbers["intercept"] = numbers["start"] = decision
        numbers["squares"] = numbers["intercept_squares"] = 0.0
        for name in ("travelled", "intercept_travelled"):
            numbers[name] *= SHORTER if self.shorter else LONGER
        return self.restarted_at.copy(), numbers

    def take(self, seen: Seen) -> None:
        """Keep the policy, and the slopes, if they are better than the best so far."""
        value = self.form.worst_value(*seen.policy)[0]
        if value < self.upper:
            self.upper, self.policy = value, seen.policy
            self.arranged = seen.arranged
        self.take_slopes(seen.slopes)
        self.looks += 1
        if self.looks > OWN_LOOKS and self.gap > TARGET_SHARE * self.options.gap_tol:
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


class Affine(Engine):
    """Linear policies with piecewise linear costs, in compiled kernels, with certificates."""

    def __init__(self, problems: Sequence[Problem], seeds: Sequence[int], options: Options) -> None:
        self.problems, self.options = list(problems), options
        self.parts = [_part(p, seed, options) for p, seed in zip(problems, seeds, strict=True)]

    @staticmethod
    def why_not(problem: Problem, options: Options) -> str | None:
        """Return why these options do not fit an affine problem, or None."""
        if options.inner_steps > 0 and not isinstance(problem.nominal, Empirical):
            return "inner_steps > 0 needs an Empirical nominal: set inner_steps=0"
        if options.inner_steps > 0 and math.isfinite(problem.ball.outcome_cost):
            return "inner_steps > 0 moves contexts only: set outcome_cost=inf or inner_steps=0"
        return None

    @property
    def lanes(self) -> list[Lane]:
        """The lanes of all problems."""
        return [lane for part in self.parts for lane in part.lanes]

    def init(self) -> AffineState:
        """Start every lane at the constant order (at zero without an intercept)."""
        firsts = [lane.first() for lane in self.lanes]
        return AffineState(tuple(theta for theta, _ in firsts), tuple(own for _, own in firsts))

    def start(self) -> list[Bounds]:
        """Return the bounds of the constant order."""
        return [part.bounds() for part in self.parts]

    def done(self, bounds: Sequence[Bounds]) -> bool:
        """Whether every certified gap is within its target."""
        return all(one.gap <= part.target for one, part in zip(bounds, self.parts, strict=True))

    def why_stop(self, gaps: Sequence[float], steps: int) -> str | None:
        """Return why more steps would not help: a bound, or the judging rows, cannot tell."""
        open_sets = [lane for lane in self.lanes if lane.geometry is None and not lane.form.tight]
        if (
            open_sets
            and len(gaps) > SETTLED_LOOKS
            and gaps[-1] > SETTLED_SHARE * gaps[-1 - SETTLED_LOOKS]
        ):
            return "the lower bound of this ambiguity set is not tight: no more can be proved."
        rows = max((p.judging_rows for p in self.parts if isinstance(p, FreshPart)), default=0)
        pairs = list(itertools.pairwise(gaps))[-STALLED_CHECKS:]
        if rows == 0 or steps < STALLED_STEPS * rows or len(pairs) < STALLED_CHECKS:
            return None
        tol = self.options.gap_tol
        if all(after - PROSPECT * (before - after) > tol for before, after in pairs):
            return f"more would not help: {rows:,} rows cannot tell so small a gap; loosen gap_tol."
        return None

    def blocks(self) -> Iterator[int]:
        """Yield doubling blocks of steps."""
        left = AFFINE_STEPS if self.options.max_steps is None else self.options.max_steps
        if self.options.rough:
            rows = max(len(lane.form.outcomes) for lane in self.lanes)
            left = min(left, max(ROUGH_PASSES * rows, ROUGH_STEPS))
        size = max(part.first_block for part in self.parts)
        while left > 0:
            yield min(size, left)
            left, size = left - size, GROWTH * size

    def draw(self, steps: int) -> list[Any]:
        """Return row numbers for each lane, or the promise of fresh rows for each problem."""
        return [part.draw(steps) for part in self.parts]

    def update(self, state: AffineState, samples: list[Any]) -> tuple[AffineState, list[Seen | None]]:
        """Take one step for each sample of each lane that is not done yet."""
        theta = tuple(array.copy() for array in state.theta)
        numbers = tuple(array.copy() for array in state.numbers)
        seen: list[Seen | None] = []
        first = 0
        for part, drawn in zip(self.parts, samples, strict=True):
            lanes = slice(first, first + len(part.lanes))
            if part.bounds().gap > part.target:
                seen += part.learn(theta[lanes], numbers[lanes], drawn)
            else:
                seen += [None] * len(part.lanes)
            first += len(part.lanes)
        return AffineState(theta, numbers), seen

    def judge(
        self, state: AffineState, seen: Sequence[Seen | None]
    ) -> tuple[AffineState, list[Bounds]]:
        """Value the average policies of the newest block, and bound the best possible."""
        begins = []
        for lane, shown, *stands in zip(self.lanes, seen, *state, strict=True):
            if shown is not None:
                lane.take(shown)
            begins.append(tuple(stands) if shown is None else lane.go_on(*stands))
        theta, numbers = zip(*begins, strict=True)
        return AffineState(theta, numbers), [part.bounds() for part in self.parts]

    def finish(self, state: AffineState) -> list[Answer]:
        """Return the best policies with their certificates."""
        del state
        return [part.answer() for part in self.parts]

    @staticmethod
    def adversary(problem: Problem, parameters: Parameters) -> Adversary:
        """Return the worst distribution for each product, exactly."""
        assert isinstance(parameters, LinearParameters)  # of a linear policy
        return affine_adversary(problem, parameters)

    @staticmethod
    def worst_values(
        problem: Problem, parameters: Parameters, radii: FloatArray
    ) -> tuple[FloatArray, str]:
        """Return the worst case of a policy at each radius; cut decisions are bounded by uncut ones."""
        assert isinstance(parameters, LinearParameters)  # of a linear policy
        forms = affine_forms(problem, merge=False)
        policies = form_policies(forms, parameters)
        values = [
            sum(
                (form.at_radius(float(radius)).worst_value(*policy)[0] + form.unavoidable)
                * form.value_unit
                for form, policy in zip(forms, policies, strict=True)
            )
            for radius in radii
        ]
        loose = any(
            form.limited or (form.pieces.smoothing > 0.0 and getattr(form, "boxed", False))
            for form in forms
        )
        return np.array(values), "bound" if loose else "exact"

    @staticmethod
    def radius_grid(problem: Problem) -> FloatArray:
        """Return radii from the largest collapse radius of all products down, and zero."""
        largest = max(form.collapse_radius() for form in affine_forms(problem, merge=False))
        if largest == 0.0:
            return np.zeros(1)
        return np.append(np.geomspace(largest, SMALLEST_RADIUS_SHARE * largest, N_RADII - 1), 0.0)


@dataclass
class Part:
    """One problem on its rows: a lane for each product."""

    problem: Problem
    lanes: list[Lane]
    rngs: list[np.random.Generator]
    steps: int = 0

    @property
    def target(self) -> float:
        """The gap at which a run stops: few passes more, and the proof is closer to the truth."""
        return TARGET_SHARE * self.lanes[0].options.gap_tol

    @property
    def first_block(self) -> int:
        """How many steps to take before the first look."""
        draws = max(FIRST_PASSES * len(self.lanes[0].form.outcomes), FIRST_STEPS)
        return math.ceil(draws / self.lanes[0].options.minibatch)

    def draw(self, steps: int) -> list[IntArray]:
        """Return row numbers for each lane: shuffled passes, or draws by weight if unequal."""
        return [
            draw_rows(lane.form.weights, rng, steps * lane.options.minibatch)
            for lane, rng in zip(self.lanes, self.rngs, strict=True)
        ]

    def learn(
        self, theta: Sequence[FloatArray], numbers: Sequence[Any], draws: list[IntArray]
    ) -> list[Seen]:
        """Take one step for each draw."""
        seen = [
            lane.step(theta[j], numbers[j], lane.form, lane.rows, draws[j])
            for j, lane in enumerate(self.lanes)
        ]
        self.steps += sum(len(rows) // self.lanes[0].options.minibatch for rows in draws)
        return seen

    def totals(self) -> tuple[float, float, float]:
        """Return upper bound, lower bound and floor of all products, in the user's units."""
        units = [lane.form.value_unit for lane in self.lanes]
        unavoidable = sum(lane.form.unavoidable * u for lane, u in zip(self.lanes, units, strict=True))
        upper = sum(lane.upper * u for lane, u in zip(self.lanes, units, strict=True))
        lower = sum(lane.lower * u for lane, u in zip(self.lanes, units, strict=True))
        floor = sum(lane.form.gap_floor * u for lane, u in zip(self.lanes, units, strict=True))
        return upper + unavoidable, lower + unavoidable, floor

    def bounds(self) -> Bounds:
        """Return what is proved of all products together."""
        upper, lower, floor = self.totals()
        return Bounds(upper, lower, relative_gap(upper, lower, floor), proved=True)

    def answer(self) -> Answer:
        """Return the best policies with their certificate."""
        forms = tuple(lane.form for lane in self.lanes)
        policies = tuple(lane.policy for lane in self.lanes)
        certificate = certify(forms, policies, [lane.slopes for lane in self.lanes])
        return self._answer(forms, policies, certificate)

    def _answer(
        self, forms: tuple[AffineForm, ...], policies: tuple[Policy, ...], certificate: Certificate
    ) -> Answer:
        gammas = [
            form.worst_value(*policy)[1] * multiplier_unit(form)
            for form, policy in zip(forms, policies, strict=True)
        ]
        parameters = user_parameters(forms, policies)
        return Answer(parameters, np.array(gammas), certificate, self.steps)


def multiplier_unit(form: AffineForm | JointForm) -> float:
    """Return one unit of the multiplier of a form, in the user's units of cost and transport."""
    order = form.order if isinstance(form, WassersteinForm | JointForm) else 0
    return form.value_unit / form.column_unit**order


class FreshPart(Part):
    """One problem that learns from fresh draws of its nominal and is judged on rows set apart."""

    def __init__(self, problem: Problem, lanes: list[Lane], seed: int, rows: int) -> None:
        super().__init__(problem, lanes, [rng_for(seed, "fresh")])
        self.judging_rows = rows
        self.behind = [DualBound(lane, rng_for(seed, "judge", j)) for j, lane in enumerate(lanes)]

    @property
    def target(self) -> float:
        """The gap at which a run stops: judging rows cannot tell a smaller one."""
        return self.lanes[0].options.gap_tol

    @property
    def first_block(self) -> int:
        """How many steps to take before the first look."""
        return FIRST_FRESH_STEPS

    def draw(self, steps: int) -> Any:
        """Return how many steps' rows to draw; they are drawn in chunks, as they are learned."""
        return steps

    def chunks(self, steps: int) -> Iterator[tuple[AffineForm, ...]]:
        """Yield so many steps' rows, one form for each product, in the units of the judging rows."""
        first = self.lanes[0]
        batch, problem = first.options.minibatch, self.problem
        most = max(CHUNK_NUMBERS // (len(first.form.scale) * batch), 1)
        while steps > 0:
            count = min(steps, most)
            rows = fresh_rows(problem, self.rngs[0], count * batch)
            yield tuple(
                in_units_of(lane.form, form)
                for lane, form in zip(
                    self.lanes, affine_forms(problem.around(rows), merge=False), strict=True
                )
            )
            steps -= count

    def learn(self, theta: Sequence[FloatArray], numbers: Sequence[Any], draws: Any) -> list[Seen]:
        """Learn from fresh rows; return the average policies of the steps, and slopes of a bound."""
        totals = [np.zeros(len(lane.form.scale)) for lane in self.lanes]
        intercepts, count = [0.0] * len(totals), 0
        for chunk in self.chunks(draws):
            size = len(chunk[0].outcomes)
            count += size
            for j, (lane, form) in enumerate(zip(self.lanes, chunk, strict=True)):
                rows = lane.arrangement.rows(form.contexts)
                policy = lane.step(theta[j], numbers[j], form, rows, np.arange(size)).policy
                totals[j] += size * policy[0]
                intercepts[j] += size * policy[1]
        self.steps += draws * len(self.lanes)
        return [
            Seen((totals[j] / count, intercepts[j] / count), self.behind[j].tighten())
            for j in range(len(totals))
        ]

    def answer(self) -> Answer:
        """Return the best policies with what the judging rows say of them."""
        upper, lower, floor = self.totals()
        gap = relative_gap(upper, lower, floor)
        unavoidable = sum(lane.form.unavoidable * lane.form.value_unit for lane in self.lanes)
        message = (
            f"The worst-case expected cost is about {upper:.6g} (standard error "
            f"{self.standard_error():.2g}), estimated from {self.judging_rows:,} draws of the nominal; "
            f"on average no policy of this family has one below {lower:.6g}, so this one is within "
            f"about {100 * gap:.2g} % of the best."
        )
        if unavoidable > 0.0:
            message += f" {unavoidable:.6g} of it no decision within the limits avoids."
        certificate = Certificate(upper, lower, gap, "estimate", message)
        forms = tuple(lane.form for lane in self.lanes)
        return self._answer(forms, tuple(lane.policy for lane in self.lanes), certificate)

    def standard_error(self) -> float:
        """Return the standard error of the upper bound, from the spread of what rows add to it."""
        weights = self.lanes[0].form.weights
        values = np.zeros(len(weights))
        for lane in self.lanes:
            found = lane.form.adversary(*lane.policy)
            pieces, costs = lane.form.pieces, np.zeros(len(weights))
            residuals = found.contexts @ lane.policy[0] + lane.policy[1] - found.outcomes
            gains = pieces.evaluate(residuals) - found.multiplier[0] * found.distances
            np.add.at(costs, found.rows, found.weights * gains)
            if lane.form.cut is not None:
                costs += weights * pieces.evaluate(lane.form.cut)
            values = values + costs / weights * lane.form.value_unit
        variance = weights @ (values - weights @ values) ** 2
        return math.sqrt(float(variance) / self.judging_rows)


class DualBound:
    """The run behind a lower bound on the judging rows' own optimum; its policy is never handed out."""

    def __init__(self, lane: Lane, rng: np.random.Generator) -> None:
        self.lane, self.rng, self.size = lane, rng, 0
        self.least = lane.upper
        self.run: PrimalDualRun | None = None
        if why_no_dual(lane.form) is None:
            assert isinstance(lane.form, WassersteinForm)
            self.run = PrimalDualRun.start(lane.form)
        else:
            plain = replace(lane.options, minibatch=1, inner_steps=0)
            self.plain = Lane(lane.form, plain, rotate=True)
            self.state = self.plain.first()

    def tighten(self) -> FloatArray | Plan:
        """Go on with the run, unless the bound is tight enough; return the best slopes."""
        lane = self.lane
        self.least = min(self.least, lane.upper)
        share = PLAIN_SHARE if self.run is None else DUAL_SHARE
        if relative_gap(self.least, lane.lower, lane.form.gap_floor) <= share * lane.options.gap_tol:
            return lane.slopes
        growth = GROWTH if self.run is None else DUAL_GROWTH
        first = max(FIRST_PASSES * len(lane.form.outcomes), FIRST_STEPS)
        self.size = first if self.size == 0 else math.ceil(growth * self.size)
        draws = draw_rows(lane.form.weights, self.rng, self.size)
        slopes: FloatArray | Plan
        if self.run is not None:
            self.run.run(draws)
            policy, slopes = self.run.policy(), self.run.slopes
        else:
            policy, slopes, _ = self.plain.step(*self.state, lane.form, self.plain.rows, draws)
        self.least = min(self.least, lane.form.worst_value(*policy)[0])
        return slopes


def _part(problem: Problem, seed: int, options: Options) -> Part:
    """Return a problem on its rows, or on rows drawn to judge if its nominal has none."""
    if isinstance(problem.nominal, Empirical):
        forms = affine_forms(problem)
        lanes = [Lane(form, options, rotate=True) for form in forms]
        return Part(problem, lanes, [rng_for(seed, "dasgd", str(j)) for j in range(len(lanes))])
    rows = _judging_size(problem, seed)
    drawn = fresh_rows(problem, rng_for(seed, "evaluation"), rows)
    forms = affine_forms(problem.around(drawn))
    # Fresh rows are not in the span of the judging rows, so nothing is rotated.
    lanes = [Lane(form, options, rotate=False) for form in forms]
    units = forms[0].scale / forms[0].column_unit
    movable = forms[0].movable if isinstance(forms[0], WassersteinForm) else np.ones(len(units), bool)
    return FreshPart(in_fitted_ball(problem, units, movable), lanes, seed, rows)


def in_fitted_ball(problem: Problem, scale: FloatArray, movable: BoolArray) -> Problem:
    """Return the problem with the units and the columns of its ambiguity set as a fit found them."""
    return replace(problem, ball=problem.ball.fitted(scale, movable))


def _judging_size(problem: Problem, seed: int) -> int:
    """Return how many rows judge; a trial draw counts features."""
    if problem.ball.support is not None and getattr(problem.ball, "order", 2) == 1:
        return JUDGING_ROWS_IN_BOX
    row = fresh_rows(problem, rng_for(seed, "trial"), 1)
    features = problem.policy.transform(row.contexts).shape[1]
    wanted = max(JUDGING_ROWS, ROWS_PER_COLUMN * int(features))
    return max(min(wanted, JUDGING_NUMBERS // int(features)), 2)


def fresh_rows(problem: Problem, rng: np.random.Generator, size: int) -> Empirical:
    """Return so many draws of the nominal, checked."""
    nominal = problem.nominal
    source, drawn = f"{type(nominal).__name__}.sample", nominal.sample(rng, size)
    X, y = checked_draw(source, drawn, size, nominal.n_columns, nominal.n_products)
    return Empirical(X, y, names=nominal.names)


def in_units_of(units: AffineForm, form: AffineForm) -> AffineForm:
    """Return a form in the units of another one of the same product."""
    ratio = form.outcome_unit / units.outcome_unit
    shared: dict[str, Any] = {
        "contexts": form.contexts * (form.scale / units.scale), "outcomes": form.outcomes * ratio,
        "pieces": units.pieces, "offsets": form.offsets * ratio, "scale": units.scale,
        "column_unit": units.column_unit, "outcome_unit": units.outcome_unit,
        "cost_unit": units.cost_unit, "cut": None if form.cut is None else form.cut * ratio,
    }  # fmt: skip
    if not isinstance(form, WassersteinForm):
        return replace(form, **shared)
    return replace(
        form, outcome_lower=form.outcome_lower * ratio, outcome_upper=form.outcome_upper * ratio,
        **shared,
    )  # fmt: skip


def affine_adversary(problem: Problem, parameters: LinearParameters) -> Adversary:
    """Return the worst distribution for each product's own adversary, in the user's units."""
    nominal = problem.nominal
    assert isinstance(nominal, Empirical)  # a problem around rows
    forms = affine_forms(problem, merge=False)
    policies = form_policies(forms, parameters)
    parts = [form.adversary(*policy) for form, policy in zip(forms, policies, strict=True)]
    features = problem.policy.transform(nominal.contexts)
    # Moves are added to the user's own numbers, so that what stays still stays to the last bit.
    contexts = [
        features[part.rows] + (part.contexts - form.contexts[part.rows]) * form.scale
        for part, form in zip(parts, forms, strict=True)
    ]
    outcomes = [
        nominal.outcomes[part.rows, j] + (part.outcomes - form.outcomes[part.rows]) * form.outcome_unit
        for j, (part, form) in enumerate(zip(parts, forms, strict=True))
    ]
    orders = [form.order if isinstance(form, WassersteinForm) else 0 for form in forms]
    lengths = [form.column_unit**order for form, order in zip(forms, orders, strict=True)]
    offsets = problem.policy.inputs(nominal.contexts, nominal.offsets)[:, features.shape[1] :]
    cost = sum(
        _cost_of_atoms(problem, j, part, contexts[j], outcomes[j], parameters, offsets)
        for j, part in enumerate(parts)
    )
    return Adversary(
        value=sum((p.value + f.unavoidable) * f.value_unit for p, f in zip(parts, forms, strict=True)),
        expected_cost=float(cost),
        multiplier=np.array(
            [float(p.multiplier[0]) * multiplier_unit(f) for p, f in zip(parts, forms, strict=True)]
        ),
        transport_cost=np.array(
            [float(p.transport_cost[0]) * u for p, u in zip(parts, lengths, strict=True)]
        ),
        rows=np.concatenate([part.rows for part in parts]),
        products=np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts]),
        contexts=np.vstack(contexts),
        outcomes=np.concatenate(outcomes),
        weights=np.concatenate([part.weights for part in parts]),
        distances=np.concatenate([p.distances * u for p, u in zip(parts, lengths, strict=True)]),
    )


def _cost_of_atoms(
    problem: Problem, product: int, part: Adversary, contexts: FloatArray, outcomes: FloatArray,
    parameters: LinearParameters, offsets: FloatArray,
) -> float:  # fmt: skip
    """Return what a product's atoms cost under the policy as it decides, limits and all."""
    decisions = contexts @ parameters.theta[:, product] + parameters.intercept[product]
    if offsets.shape[1]:
        decisions = decisions + offsets[part.rows, product]
    limits = problem.policy.decisions
    if limits is not None:
        whole = np.tile(decisions[:, None], (1, parameters.theta.shape[1]))
        decisions = limits.map_into(whole)[:, product]
    assert isinstance(problem.cost, ConvexPiecewiseCost)  # or this engine would not have been chosen
    pieces = problem.cost.pieces(parameters.theta.shape[1])[product]
    return float(part.weights @ pieces.evaluate(decisions - outcomes))
