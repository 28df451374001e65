"""What is proved about an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surefoot.certificates.lower import lower_bound
from surefoot.certificates.worst_case import worst_case_value
from surefoot.problem import AffineProblem
from surefoot.typing import FloatArray

# The gap is relative to the optimum, but never to less than this share of the best constant cost:
# where the optimum is nearly zero, a relative gap would ask for digits that nobody needs.
FLOOR_SHARE = 0.01


@dataclass(frozen=True)
class Certificate:
    """Bounds on the best worst-case cost, computed without the solver that found the policy.

    Attributes
    ----------
    upper
        Worst-case expected cost of the returned policy.
    lower
        No policy of this family has a smaller worst case.
    gap
        (upper - lower) / max(lower, floor): how far from the best the policy can be at most. Where
        decisions have limits, it speaks of the policy before its decisions are cut to them.
    kind
        "exact": both bounds are exact duals of each other. "bound": both are valid, the lower one
        is not tight. "estimate": computed from a sample, true only on average.
    message
        What this means, as a sentence.
    """

    upper: float
    lower: float
    gap: float
    kind: str
    message: str


def relative_gap(upper: float, lower: float, floor: float) -> float:
    """Return (upper - lower) / max(lower, floor), zero when both bounds agree to rounding."""
    difference = upper - lower
    if np.isneginf(lower):  # nothing is known of the best
        return float("inf")
    if difference <= 1e-12 * max(abs(upper), abs(lower)):
        return 0.0
    base = max(lower, floor)
    return difference / base if base > 0 else float("inf")


def gap_floor(problem: AffineProblem) -> float:
    """Return the size below which the gap stops being relative."""
    decision, _ = problem.constant_order()
    cost = float(problem.weights @ problem.pieces.evaluate(decision - problem.outcomes))
    nothing = float(problem.weights @ problem.pieces.evaluate(-problem.outcomes))
    # Equal outcomes cost nothing at the constant order; the cost of deciding zero is a scale then.
    return max(FLOOR_SHARE * cost, 1e-9 * nothing)


def certify(
    problems: Sequence[AffineProblem],
    parameters: Sequence[tuple[FloatArray, float]],
    slopes: Sequence[Sequence[FloatArray]],
) -> Certificate:
    """Certify an affine policy, product by product.

    Parameters
    ----------
    problems
        One affine problem for each product.
    parameters
        (theta, intercept) of each product, in scaled units.
    slopes
        For each product, candidate slopes for the lower bound; the best of them counts.
    """
    upper = sum(
        worst_case_value(problem, theta, intercept)[0]
        for problem, (theta, intercept) in zip(problems, parameters, strict=True)
    )
    lower = sum(
        max((lower_bound(problem, u) for u in candidates), default=0.0)
        for problem, candidates in zip(problems, slopes, strict=True)
    )
    floor = sum(gap_floor(problem) for problem in problems)
    # A smoothed cost is bounded through its kink, an order-1 plan in a box by reweighting.
    loose = any(p.pieces.smoothing > 0 or (p.boxed and p.order == 1) for p in problems)
    if not any(p.limited for p in problems):
        return make_certificate(upper, lower, floor, "bound" if loose else "exact")
    unavoidable = sum(p.unavoidable for p in problems)
    certificate = make_certificate(upper + unavoidable, lower + unavoidable, floor, "bound")
    message = (
        f"The worst-case expected cost is at most {certificate.upper:.6g}, of which "
        f"{unavoidable:.6g} no decision within the limits avoids; before its decisions are cut to the "
        f"limits, the policy is within {100 * certificate.gap:.2g} % of the best."
    )
    # A cut policy may do better than any affine one; perfect foresight within the limits is no better.
    return replace(certificate, lower=unavoidable, message=message)


def make_certificate(upper: float, lower: float, floor: float, kind: str) -> Certificate:
    """Return a certificate with its sentence."""
    if not np.isfinite(upper):
        message = "The worst-case cost of this policy is unbounded."
        return Certificate(upper, lower, float("inf"), kind, message)
    gap = relative_gap(upper, lower, floor)
    if kind == "estimate":
        message = f"The worst-case expected cost on the newest rows is {upper:.6g}; no bound is proved."
        return Certificate(upper, lower, gap, kind, message)
    message = (
        f"The worst-case expected cost is {upper:.6g}; no policy of this family has one below "
        f"{lower:.6g}, so this one is within {100 * gap:.2g} % of the best."
    )
    return Certificate(upper, lower, gap, kind, message)
