"""The affine engine: linear policies with piecewise linear costs, product by product, compiled.

Each product of each problem is a lane with a state of its own.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity import Adversary, WassersteinForm
from surefoot.engines.affine_adversary import affine_adversary, product_values
from surefoot.engines.affine_lane import Lane, Seen
from surefoot.engines.affine_parts import GROWTH, FreshPart, part_of
from surefoot.engines.engine import Answer, Bounds, Engine, Options, Parameters
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.problem import Problem, affine_forms
from surefoot.typing import FloatArray

# Most steps where the user sets none.
AFFINE_STEPS = 50_000_000
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


class AffineState(NamedTuple):
    """Where every lane stands: parameters in the coordinates of its arrangement, and its numbers."""

    theta: tuple[FloatArray, ...]
    numbers: tuple[Any, ...]


class Affine(Engine):
    """Linear policies with piecewise linear costs, in compiled kernels, with certificates."""

    def __init__(self, problems: Sequence[Problem], seeds: Sequence[int], options: Options) -> None:
        self.problems, self.options = list(problems), options
        self.parts = [part_of(p, seed, options) for p, seed in zip(problems, seeds, strict=True)]

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
        """Return the worst case of a policy at each radius; see ``product_values`` on limits."""
        assert isinstance(parameters, LinearParameters)  # of a linear policy
        forms, values = affine_forms(problem, merge=False), []
        for radius in radii:
            there = tuple(form.at_radius(float(radius)) for form in forms)
            worst = product_values(problem, there, parameters)
            values.append(
                sum(
                    (value + form.unavoidable) * form.value_unit
                    for (value, _), form in zip(worst, there, strict=True)
                )
            )
        rough = any(form.limited or form.pieces.smoothing > 0.0 for form in forms)
        # Another set than a ball is bounded where decisions have limits.
        known = all(isinstance(form, WassersteinForm) or not form.limited for form in forms)
        loose = not known or (rough and any(getattr(form, "supported", False) for form in forms))
        return np.array(values), "bound" if loose else "exact"

    @staticmethod
    def radius_grid(problem: Problem) -> FloatArray:
        """Return radii from the largest collapse radius of all products down, and zero."""
        largest = max(form.collapse_radius() for form in affine_forms(problem, merge=False))
        if largest == 0.0:
            return np.zeros(1)
        return np.append(np.geomspace(largest, SMALLEST_RADIUS_SHARE * largest, N_RADII - 1), 0.0)
