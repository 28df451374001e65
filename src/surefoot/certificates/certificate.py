"""What is proved about an answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from surefoot.ambiguity import AffineForm, JointForm
from surefoot.ambiguity.balance import LARGEST_PARAMETER
from surefoot.io import register
from surefoot.typing import FloatArray

# Bounds that agree to this share have met...
MET = 1e-12
# ...and bounds that cross by no more than this one were crossed by rounding: where all outcomes are
# equal, costs are the difference of numbers a billion times as large.
CROSSED = 1e-6


@register
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
        is not tight. "value": the upper one is exact, and there is no lower one. "estimate":
        computed from a sample, true only on average.
    message
        What this means, as a sentence.
    """

    upper: float
    lower: float
    gap: float
    kind: str
    message: str


def relative_gap(upper: float, lower: float, floor: float) -> float:
    """Return (upper - lower) / max(lower, floor), zero when both bounds agree to rounding.

    Bounds that cross by a little were crossed by rounding and have met. Where they cross by more, one
    of them is false and nothing is proved: the gap is infinite.

    >>> relative_gap(1.1, 1.0, 0.01), relative_gap(0.9, 1.0, 0.01), relative_gap(math.inf, 1.0, 0.01)
    (0.10000000000000009, inf, inf)
    """
    if lower == -math.inf or upper == math.inf:  # nothing is known of the best, or of this one
        return float("inf")
    if contradict(upper, lower, floor):
        return float("inf")
    difference = upper - lower
    if difference <= MET * max(abs(upper), abs(lower)):
        return 0.0
    base = max(lower, floor)
    return difference / base if base > 0 else float("inf")


def contradict(upper: float, lower: float, floor: float) -> bool:
    """Whether the lower bound lies above the upper one by more than rounding."""
    return bool(lower - upper > CROSSED * max(abs(upper), abs(lower), floor))


def certify(
    forms: Sequence[AffineForm | JointForm],
    policies: Sequence[tuple[FloatArray, Any]],
    slopes: Sequence[Any],
) -> Certificate:
    """Certify an affine policy, product by product.

    Parameters
    ----------
    forms
        One form for each product, or one for all under one adversary.
    policies
        (theta, intercept) of each product, in the units of its form.
    slopes
        For each product, slopes for the lower bound, or a plan of the adversary.
    """
    return certified(forms, policies, slopes)[0]


def certified(
    forms: Sequence[AffineForm | JointForm],
    policies: Sequence[tuple[FloatArray, Any]],
    slopes: Sequence[Any],
) -> tuple[Certificate, list[float]]:
    """Return the certificate of an affine policy, and the multiplier of each worst case."""
    worst = [form.worst_value(*policy) for form, policy in zip(forms, policies, strict=True)]
    upper = sum(value * form.value_unit for form, (value, _) in zip(forms, worst, strict=True))
    lower = sum(form.lower_bound(u) * form.value_unit for form, u in zip(forms, slopes, strict=True))
    return _certificate(forms, upper, lower), [gamma for _, gamma in worst]


def _certificate(forms: Sequence[AffineForm | JointForm], upper: float, lower: float) -> Certificate:
    """Return what two bounds before the cost that limits make unavoidable say of an affine policy."""
    floor = sum(form.gap_floor * form.value_unit for form in forms)
    kind = "exact" if all(form.tight for form in forms) else "bound"
    if not any(form.limited for form in forms):
        return _with_doubt(make_certificate(upper, lower, floor, kind), forms)
    unavoidable = sum(form.unavoidable * form.value_unit for form in forms)
    certificate = make_certificate(upper + unavoidable, lower + unavoidable, floor, "bound")
    message = (
        f"The worst-case expected cost is at most {certificate.upper:.6g}, of which "
        f"{unavoidable:.6g} no decision within the limits avoids; before its decisions are cut to the "
        f"limits, the policy is within {100 * certificate.gap:.2g} % of the best."
    )
    # A cut policy may do better than any affine one; perfect foresight within the limits is no better.
    return _with_doubt(replace(certificate, lower=unavoidable, message=message), forms)


def _with_doubt(certificate: Certificate, forms: Sequence[AffineForm | JointForm]) -> Certificate:
    """Say of which policies the lower bound does not speak."""
    if not any(form.unresolved > 0.0 for form in forms):
        return certificate
    doubt = (
        f"Policies with parameters above {LARGEST_PARAMETER:.0e} (spreads of the outcome for each "
        "spread of a column) are left out: some columns differ in their last digits alone."
    )
    return replace(certificate, message=f"{certificate.message} {doubt}")


def make_certificate(upper: float, lower: float, floor: float, kind: str) -> Certificate:
    """Return a certificate with its sentence."""
    if not math.isfinite(upper):
        message = "The worst-case cost of this policy is unbounded."
        return Certificate(upper, lower, float("inf"), kind, message)
    gap = relative_gap(upper, lower, floor)
    if contradict(upper, lower, floor):
        message = (
            f"The worst-case expected cost is {upper:.6g}, yet a lower bound of {lower:.6g} was found: "
            "rounding has spoiled one of them, so nothing is proved. Divide columns that differ by "
            "many powers of ten by their spread, and leave out columns that nearly depend on others."
        )
        return Certificate(upper, lower, gap, "estimate", message)
    if kind == "estimate":
        message = f"The worst-case expected cost on the newest rows is {upper:.6g}; no bound is proved."
        return Certificate(upper, lower, gap, kind, message)
    lower = min(lower, upper)  # which rounding alone may have crossed
    share = f"is within {100 * gap:.2g} % of the best"
    if lower < floor:  # of a best that costs next to nothing, nobody needs a per cent
        share = (
            f"costs at most {upper - lower:.2g} more than the best, {100 * gap:.2g} % of {floor:.2g}"
        )
    message = (
        f"The worst-case expected cost is {upper:.6g}; no policy of this family has one below "
        f"{lower:.6g}, so this one {share}."
    )
    return Certificate(upper, lower, gap, kind, message)
