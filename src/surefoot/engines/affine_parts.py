"""The problems of the affine engine: on their rows, or on rows drawn from a nominal without rows.

A problem whose nominal has no rows is judged on rows that are drawn once and set apart, and learns from
fresh ones alone: the worst case of the policy on the judging rows estimates the true one without bias,
as the policy is no function of them, and a lower bound on their own optimum is, on average, one on the
true optimum (Mak, Morton and Wood 1999).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.ambiguity import AffineForm, Plan, WassersteinForm
from surefoot.certificates import Certificate, relative_gap
from surefoot.certificates.certificate import certified
from surefoot.certificates.passes import RowPasses, why_no_passes
from surefoot.engines.affine_adversary import multiplier_unit
from surefoot.engines.affine_lane import TARGET_SHARE, Lane, Policy, Seen
from surefoot.engines.affine_proof import (
    FIRST_PASSES,
    FIRST_STEPS,
    draw_rows,
    why_no_dual,
)
from surefoot.engines.engine import Answer, Bounds, Options
from surefoot.engines.newton_passes import MOST_PASSES, NewtonPasses
from surefoot.engines.primal_dual import PrimalDualRun
from surefoot.nominals import Empirical, RowBatches
from surefoot.nominals.shapes import checked_draw
from surefoot.problem import Problem, affine_forms, fitted_problem, user_parameters
from surefoot.problem.columns import some_rows
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray, IntArray

# Blocks double, so that the newest, over which policies are averaged, outweighs all before it together;
# the first of fresh draws has so many steps.
FIRST_FRESH_STEPS, GROWTH = 2_048, 2
# The rows that judge a nominal without rows: at least so many, more for many columns, but no more
# numbers than fit 128 MiB. For order 1 in a box the lower bound takes hundreds of sorts: few must do.
JUDGING_ROWS, ROWS_PER_COLUMN, JUDGING_NUMBERS, JUDGING_ROWS_IN_BOX = 20_000, 200, 2**24, 4_000
# Fresh rows are drawn and learned in chunks of about so many numbers, 8 MiB.
CHUNK_NUMBERS = 2**20
# The judging rows' own optimum is bounded to this share of the tolerance; less must do where the run
# behind the bound is plain DA-SGD, whose gap falls like 1/sqrt(steps).
DUAL_SHARE, PLAIN_SHARE, DUAL_GROWTH = 0.1, 0.25, 1.2


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
        certificate, gammas = certified(forms, policies, [lane.slopes for lane in self.lanes])
        return self._answer(forms, policies, certificate, gammas)

    def _answer(
        self,
        forms: tuple[AffineForm, ...],
        policies: tuple[Policy, ...],
        certificate: Certificate,
        gammas: Sequence[float],
    ) -> Answer:
        multipliers = np.array(gammas) * [multiplier_unit(form) for form in forms]
        return Answer(user_parameters(forms, policies), multipliers, certificate, self.steps)


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
        policies = tuple(lane.policy for lane in self.lanes)
        gammas = [lane.form.worst_value(*lane.policy)[1] for lane in self.lanes]
        return self._answer(forms, policies, certificate, gammas)

    def standard_error(self) -> float:
        """Return the standard error of the upper bound, from the spread of what rows add to it."""
        weights = self.lanes[0].form.weights
        values = np.zeros(len(weights))
        for lane in self.lanes:
            adversary = lane.form.adversary(*lane.policy)
            pieces, costs = lane.form.pieces, np.zeros(len(weights))
            residuals = adversary.contexts @ lane.policy[0] + lane.policy[1] - adversary.outcomes
            gains = pieces.evaluate(residuals) - adversary.multiplier[0] * adversary.distances
            np.add.at(costs, adversary.rows, adversary.weights * gains)
            if lane.form.cut is not None:
                costs += weights * pieces.evaluate(lane.form.cut)
            values = values + costs / weights * lane.form.value_unit
        variance = weights @ (values - weights @ values) ** 2
        return math.sqrt(float(variance) / self.judging_rows)


class BatchedPart(FreshPart):
    """One problem on rows in batches: it learns from draws, and passes over all rows certify it."""

    def answer(self) -> Answer:
        """Return the best policies with what is proved of them over all rows."""
        estimate = super().answer()
        if why_no_passes(self.problem) is not None:
            return estimate
        try:
            certificate, passes = self._proved()
        except KeyboardInterrupt:
            return estimate._replace(remark="The passes over all rows were interrupted.")
        told = f"Passes over all rows to certify it: {passes}."
        return estimate._replace(certificate=certificate, remark=told)

    def _proved(self) -> tuple[Certificate, int]:
        """Return the certificate over all rows, and how many passes it took."""
        rows, tol = RowPasses.of(self.problem), self.lanes[0].options.gap_tol
        policies = [
            form.from_user_units(*lane.form.in_user_units(*lane.policy))
            for form, lane in zip(rows.forms, self.lanes, strict=True)
        ]
        run = NewtonPasses.start(rows, policies, tol)
        uppers = run.take_pass(policies)
        # The bound may rise up to the best policy that the passes know.
        while run.taken < MOST_PASSES and run.gap > DUAL_SHARE * tol:
            if rows.certificate(uppers, run.lowers).gap <= TARGET_SHARE * tol:
                break
            run.take_pass()
        return rows.certificate(uppers, run.lowers), run.taken


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


def part_of(problem: Problem, seed: int, options: Options) -> Part:
    """Return a problem on its rows, or on rows drawn to judge if its nominal has none."""
    if isinstance(problem.nominal, Empirical):
        forms = affine_forms(problem)
        lanes = [Lane(form, options, rotate=True) for form in forms]
        return Part(problem, lanes, [rng_for(seed, "dasgd", str(j)) for j in range(len(lanes))])
    nominal = problem.nominal
    if isinstance(nominal, RowBatches):
        problem = fitted_problem(problem)
        drawn = some_rows(nominal, rng_for(seed, "evaluation"), _judging_size(problem, seed))
    else:
        drawn = fresh_rows(problem, rng_for(seed, "evaluation"), _judging_size(problem, seed))
    rows = len(drawn.contexts)
    forms = affine_forms(problem.around(drawn))
    # Fresh rows are not in the span of the judging rows, so nothing is rotated.
    lanes = [Lane(form, options, rotate=False) for form in forms]
    units = forms[0].scale / forms[0].column_unit
    movable = forms[0].movable if isinstance(forms[0], WassersteinForm) else np.ones(len(units), bool)
    kind = BatchedPart if isinstance(nominal, RowBatches) else FreshPart
    return kind(in_fitted_ball(problem, units, movable), lanes, seed, rows)


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
