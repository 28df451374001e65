"""The numbers that the page of the stream study shows, and its verdicts."""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from reproduction.stream_laws import COEFFICIENTS, KINDS
from reproduction.stream_measures import growth_exponent
from reproduction.stream_results import StreamFindings, StreamResult, mean_and_half

LABELS = {
    "online": "online",
    "online-falling": "online, falling radius",
    "online-restart": "online, restart on a change",
    "online-both": "online, falling radius and restart",
    "online-window": "online, window",
    "refit": "refit every day on all data",
    "river": "river: online quantile regression",
    "saa-window": "SAA on a window",
}
LIMIT = 0.55  # the largest exponent that counts as the theory's 1/2
DECADES = 2  # over which the exponent is measured
# Which regret goes with which radius: (radius, measure, what it is).
REGRETS = (
    ("fixed", "robust", "robust objective, fixed radius"),
    ("falling", "plain", "plain cost, radius falling as 1/√t"),
    ("fixed", "plain", "plain cost, fixed radius"),
)


@dataclass(frozen=True)
class Growth:
    """How one kind of regret grows.

    Attributes
    ----------
    exponent, half
        Slope of log regret against log T: mean over seeds, and half of its 95 % interval.
    added
        The exponent of what is added: the logarithm to base 10 of the mean regret that the last decade
        adds over what the decade before it adds. A large regret at the start does not lower it.
    last
        Mean regret at the end.
    """

    radius: str
    measure: str
    label: str
    coefficients: str
    seeds: int
    rows: int
    exponent: float
    half: float
    added: float
    last: float


def growths(findings: StreamFindings) -> list[Growth]:
    """Return the growth of each kind of regret for each kind of coefficients."""
    found = []
    for radius, measure, label in REGRETS:
        for coefficients in COEFFICIENTS:
            paths = regret_paths(findings, radius, measure, coefficients)
            if not paths:
                continue
            rows = max(int(times[-1]) for times, _ in paths)
            exponents = [growth_exponent(t, r, first=rows // 10**DECADES) for t, r in paths]
            mean, half = mean_and_half(exponents)
            found.append(
                Growth(
                    radius, measure, label, coefficients, len(paths), rows, mean, half, *_ends(paths)
                )
            )
    return found


def _ends(paths: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    """Return the exponent of what is added, and the last mean regret."""
    times = paths[0][0]
    mean = np.mean([regret for _, regret in paths], axis=0)
    before, middle, last = (float(np.interp(times[-1] / k, times, mean)) for k in (100, 10, 1))
    ratio = (last - middle) / (middle - before) if middle > before else math.nan
    return (math.log10(ratio) if ratio > 0 else math.nan), last


def regret_paths(
    findings: StreamFindings, radius: str, measure: str, coefficients: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (times, regrets) of each seed."""
    chosen = [
        one for one in findings.regret if (one.radius, one.coefficients) == (radius, coefficients)
    ]
    paths = []
    for seed in sorted({one.seed for one in chosen}):
        points = sorted((one.time, getattr(one, measure)) for one in chosen if one.seed == seed)
        paths.append((np.array([t for t, _ in points]), np.array([r for _, r in points])))
    return paths


@dataclass(frozen=True)
class MethodSummary:
    """One method on one kind of stream, over seeds; costs as multiples of the oracle's."""

    stream: str
    coefficients: str
    method: str
    seeds: int
    cost: float
    half: float
    late: float
    total: float
    regret: float
    recoveries: tuple[int | None, ...]
    per_second: float

    @property
    def recovery(self) -> float:
        """Median rows to recover; infinite where at least half of the streams saw no recovery."""
        return statistics.median(math.inf if one is None else one for one in self.recoveries)


def method_summaries(findings: StreamFindings) -> list[MethodSummary]:
    """Return a summary for each stream, kind of coefficients and method."""
    found = []
    for stream in KINDS:
        for coefficients in COEFFICIENTS:
            for method in LABELS:
                runs = [
                    one
                    for one in findings.results
                    if (one.stream, one.coefficients, one.method) == (stream, coefficients, method)
                ]
                if runs:
                    found.append(_summary(runs))
    return found


def _summary(runs: list[StreamResult]) -> MethodSummary:
    first = runs[0]
    cost, half = mean_and_half([one.cost / one.oracle_cost for one in runs])
    return MethodSummary(
        first.stream, first.coefficients, first.method, len(runs), cost, half,
        statistics.fmean(one.late_cost / one.late_oracle_cost for one in runs),
        statistics.fmean(one.cost for one in runs),
        statistics.fmean(one.cost - one.oracle_cost for one in runs),
        tuple(one.recovery for one in runs) if first.stream == "abrupt" else (),
        sum(one.rows for one in runs) / max(sum(one.seconds for one in runs), 1e-9),
    )  # fmt: skip


@dataclass(frozen=True)
class StreamClaim:
    """A sentence, whether it holds, and the figures that say so."""

    sentence: str
    holds: bool
    readings: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Holds or fails."""
        return "holds" if self.holds else "fails"


def stream_claims(findings: StreamFindings) -> list[StreamClaim]:
    """Judge the sentences that the study was made for; those without data are left out."""
    claims = []
    grown = [one for one in growths(findings) if (one.radius, one.measure) != ("fixed", "plain")]
    for measure, what in (
        ("robust", "the robust objective (fixed radius)"),
        ("plain", "plain cost (falling radius)"),
    ):
        part = [one for one in grown if one.measure == measure]
        if part:
            claims.append(
                StreamClaim(
                    f"On stationary streams the regret of {what} grows no faster than "
                    f"T^{LIMIT:g} (theory: 1/2).",
                    all(one.exponent <= LIMIT for one in part),
                    tuple(_growth_reading(one) for one in part),
                )
            )
    return claims + list(_recovery_claims(findings))


def _growth_reading(one: Growth) -> str:
    return (
        f"{one.coefficients} coefficients: exponent {one.exponent:.3f} ± {one.half:.3f} "
        f"({one.seeds} seeds, T up to {one.rows:,})"
    )


def _recovery_claims(findings: StreamFindings) -> Iterable[StreamClaim]:
    known = {
        (one.coefficients, one.method): one
        for one in method_summaries(findings)
        if one.stream == "abrupt"
    }
    for method in ("online-restart", "online-both", "online-window"):
        trios = [
            tuple(known[coefficients, name] for name in (method, "refit", "online"))
            for coefficients in COEFFICIENTS
            if all((coefficients, name) in known for name in (method, "refit", "online"))
        ]
        if trios:
            yield StreamClaim(
                f"After an abrupt change, “{LABELS[method]}” is back within 10 % of the oracle's "
                "cost sooner than daily refitting on all data.",
                all(ours.recovery < theirs.recovery for ours, theirs, _ in trios),
                tuple(_recovery_reading(*trio) for trio in trios),
            )


def _recovery_reading(ours: MethodSummary, theirs: MethodSummary, plain: MethodSummary) -> str:
    sooner = sum(
        (math.inf if a is None else a) < (math.inf if b is None else b)
        for a, b in zip(ours.recoveries, theirs.recoveries, strict=True)
    )
    return (
        f"{ours.coefficients} coefficients: median {rows_text(ours)} against {rows_text(theirs)}; "
        f"sooner on {sooner} of {ours.seeds} streams (online without any handling: {rows_text(plain)})"
    )


def rows_text(one: MethodSummary) -> str:
    """Return the median recovery as text."""
    return "never" if math.isinf(one.recovery) else f"{one.recovery:,.0f} rows"


def better_elsewhere(findings: StreamFindings) -> list[str]:
    """Return a sentence for each comparison in which a method that is not ours does better."""
    sentences = []
    summaries = method_summaries(findings)
    for stream in KINDS:
        for coefficients in COEFFICIENTS:
            here = [
                one for one in summaries if (one.stream, one.coefficients) == (stream, coefficients)
            ]
            costs = {one.method: one.cost for one in here}
            place = f"{stream} stream, {coefficients} coefficients: total cost"
            sentences += _beaten(place, costs, lambda cost: f"{cost:.3f} times the oracle's")
            rows = {one.method: one.recovery for one in here if one.recoveries}
            place = f"recovery after a jump, {coefficients} coefficients"
            sentences += _beaten(place, rows, lambda count: f"{count:,.0f} rows")
    totals: dict[str, float] = {}
    for result in findings.restaurant:
        totals[result.method] = totals.get(result.method, 0.0) + result.cost / result.days
    return sentences + _beaten("restaurant, cost a day", totals, lambda cost: f"{cost:.1f}")


def _beaten(place: str, values: dict[str, float], text: Callable[[float], str]) -> list[str]:
    ours = [method for method in values if method.startswith("online")]
    if not ours:
        return []
    own, best = min(ours, key=values.__getitem__), min(values, key=values.__getitem__)
    if values[best] >= values[own]:
        return []
    return [
        f"{place}: “{LABELS[best]}” {text(values[best])}, the best of ours, “{LABELS[own]}”, "
        f"{text(values[own])}"
    ]
