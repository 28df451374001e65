"""What each theorem says in numbers, and whether it may be believed.

A claim *holds* when its assumptions do and it says more than a trivial bound; it is *vacuous* when it
is true but no better than the trivial bound named beside it, and *void* when an assumption fails.
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.diagnostics.theory_constants import Constants, context_lengths, start
from surefoot.typing import FloatArray


@dataclass(frozen=True)
class Assumption:
    """One assumption of the paper: whether it holds for this model, and why."""

    name: str
    holds: bool
    why: str


@dataclass(frozen=True)
class Claim:
    """One statement, in numbers.

    Attributes
    ----------
    name
        Where it stands.
    quantity
        What is bounded.
    value
        The bound, or the stated probability.
    yardstick, against
        A trivial bound on the same quantity, and what it is; None if there is none.
    verdict
        "holds", "vacuous" or "void".
    why
        The reason for the verdict.
    """

    name: str
    quantity: str
    value: float
    yardstick: float | None
    against: str
    verdict: str
    why: str


@dataclass(frozen=True)
class StepSizes:
    """Step sizes that the theorems ask for after T steps.

    Attributes
    ----------
    theorem, largest
        alpha = beta of Theorem 1, and 1/L, below which its proof needs them.
    inner
        epsilon, how well the inner problem must be solved.
    convex
        The step size R / (G sqrt(T)) of the convex bound.
    steps_to_say_something
        T from which Theorem 1's bound is below the trivial one and its step size below 1/L.
    """

    theorem: float
    largest: float
    inner: float
    convex: float
    steps_to_say_something: float


def judged(value: float, yardstick: float, void: str | None, good: str) -> tuple[str, str]:
    """Return the verdict on a bound and the reason."""
    if void is not None:
        return "void", void
    if not value < yardstick:
        return "vacuous", "it is true, and no smaller than the trivial bound"
    return "holds", good


def theorem_one_bound(constants: Constants, steps: float) -> float:
    """Return the right side of Theorem 1, a bound on the mean squared gradient norm over T steps.

    (4 sqrt(L v Lambda) + 2) / sqrt(T) + 2 sqrt(L Lambda / v) / T, v = sigma_theta^2 + sigma_gamma^2.
    """
    variance = constants.variance_theta + constants.variance_gamma
    rough = constants.smoothness * constants.gap_at_start
    if not math.isfinite(rough):
        return math.inf
    return (4.0 * math.sqrt(rough * variance) + 2.0) / math.sqrt(steps) + 2.0 * math.sqrt(
        rough / variance
    ) / steps


def step_sizes(constants: Constants, steps: int, convex_step: float) -> StepSizes:
    """Return the step sizes of Theorem 1 and of the convex bound."""
    variance = constants.variance_theta + constants.variance_gamma
    if not math.isfinite(constants.smoothness):
        return StepSizes(0.0, 0.0, 0.0, convex_step, math.inf)
    rough = constants.smoothness * constants.gap_at_start
    # bound(T) = trivial is a quadratic equation in 1/sqrt(T).
    first, second = 4.0 * math.sqrt(rough * variance) + 2.0, 2.0 * math.sqrt(rough / variance)
    root = math.sqrt(first**2 + 4.0 * second * constants.gradient_squared)
    small = 2.0 * constants.gradient_squared / (first + root)  # of 1/sqrt(T)
    return StepSizes(
        theorem=math.sqrt(constants.gap_at_start / (constants.smoothness * variance * steps)),
        largest=1.0 / constants.smoothness,
        inner=constants.mu / ((constants.l_tx**2 + 1.0) * math.sqrt(steps)),
        convex=convex_step,
        steps_to_say_something=max(small**-2, rough / variance),
    )


@dataclass(frozen=True)
class ConvexBound:
    """The bound that applies to affine policies: E H(average) - H(policy) <= R G / sqrt(T).

    It holds for stochastic subgradient steps of size R / (G sqrt(T)) on the convex function H with
    gamma profiled out, against any policy at distance R from the start.

    Attributes
    ----------
    distance
        R, from the start (the constant order) to the fitted parameters, contexts centred.
    gradient
        G, a bound on the root mean square of the steps' length max(b, h) ||(x', 1)||: the moves have
        a root mean square of at most the radius, so max(b, h) (rms ||(x, 1)|| + radius).
    """

    distance: float
    gradient: float

    def gap(self, steps: int) -> float:
        """Return R G / sqrt(T)."""
        return self.distance * self.gradient / math.sqrt(steps)

    def regret(self, steps: int) -> float:
        """Return R^2 / (2 alpha) + alpha G^2 T / 2 at its best alpha: R G sqrt(T)."""
        return self.distance * self.gradient * math.sqrt(steps)

    def step(self, steps: int) -> float:
        """Return R / (G sqrt(T))."""
        return self.distance / (self.gradient * math.sqrt(steps))


def convex_bound(form: WassersteinForm, theta: FloatArray, intercept: float) -> ConvexBound:
    """Return the constants of the convex bound at a fitted policy, in scaled units."""
    begun = start(form)[1]
    moved = 0.0
    if form.intercept:  # centred contexts move the intercept by theta'mean
        moved = intercept + float(form.weights @ (form.contexts @ theta)) - begun
    move = form.radius
    if form.order == 1 and form.boxed:  # few rows move far: E move^2 <= radius * longest move
        sides = (form.upper - form.lower)[form.movable]
        move = math.sqrt(form.radius * float(np.linalg.norm(sides)))
    size = math.sqrt(float(form.weights @ context_lengths(form) ** 2))
    return ConvexBound(
        distance=math.hypot(float(np.linalg.norm(theta)), moved),
        gradient=form.pieces.steepest * (size + move),
    )


def out_of_sample_bound(
    form: WassersteinForm,
    bound: ConvexBound,
    nominal_cost: float,
    rows: float,
    confidence: float,
) -> float:
    """Return a bound on the true expected cost of every policy within R of the start.

    Nominal cost + 2 max(b, h) R sqrt(E||(x, 1)||^2 / N) + 3 M sqrt(log(2 / (1 - q)) / (2 N)): empirical
    Rademacher complexity of the affine family, contraction by the cost, and McDiarmid's inequality,
    with M the largest cost in the region.
    """
    pieces = form.pieces
    lengths = context_lengths(form)
    spread = math.sqrt(float(form.weights @ lengths**2) / rows)
    away = float(np.abs(form.outcomes - start(form)[1]).max())
    largest = pieces.steepest * (bound.distance * float(lengths.max()) + away)
    tail = 3.0 * largest * math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * rows))
    return nominal_cost + 2.0 * pieces.steepest * bound.distance * spread + tail
