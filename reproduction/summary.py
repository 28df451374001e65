"""Means, deviations and confidence bands over repetitions; Table 1 beside the paper's figures."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from reproduction.result import DONE, FAILED, REFUSED, Result
from reproduction.timing import RowTimes

LEVEL = 0.95

# Table 1 of the paper: seconds per instance of DA-SGD and of Shapley, by (s, n).
PAPER_SECONDS = {
    (100, 10): (1.5558, 14.6389), (100, 30): (1.5158, 37.9416), (100, 50): (1.5066, 62.1709),
    (100, 70): (1.5048, 86.1249), (100, 100): (1.5113, 125.1831), (100, 300): (1.4911, 434.9086),
    (100, 500): (1.4865, 574.5781), (1000, 10): (1.8482, 73.4890), (1000, 30): (1.8425, 214.5982),
    (1000, 50): (1.8534, 357.0431), (1000, 70): (1.8562, 499.2080), (1000, 100): (1.8418, 712.4738),
    (1000, 300): (1.8375, 2188.1067), (1000, 500): (1.8376, 3494.8938),
}  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """One data set and method, over repetitions.

    Attributes
    ----------
    runs, failed, refused
        Repetitions with a cost, and those without one.
    mean, deviation, variance
        Of the out-of-sample cost; deviation and variance with n - 1, None after a single run.
    mean_low, mean_high
        95 % confidence interval of the mean (Student's t).
    variance_low, variance_high
        95 % confidence interval of the variance (chi-squared).
    fit_seconds, predict_seconds, radius
        Medians; fits ran side by side, so these are not the times of Table 1.
    gap_mean, gap_max
        Of the certified gap.
    """

    data: str
    kind: str
    n: int
    s: int
    noise_variance: float | None
    contexts: str | None
    coefficients: str | None
    product: str | None
    method: str
    runs: int
    failed: int
    refused: int
    mean: float | None
    deviation: float | None
    mean_low: float | None
    mean_high: float | None
    variance: float | None
    variance_low: float | None
    variance_high: float | None
    fit_seconds: float | None
    predict_seconds: float | None
    gap_mean: float | None
    gap_max: float | None
    radius: float | None


def summarise(results: Iterable[Result]) -> list[Summary]:
    """Return one summary for each data set and method, in the order of first appearance."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.data_key, result.method), []).append(result)
    return [_summary(group) for group in groups.values()]


def _numbers(group: list[Result], name: str) -> list[float]:
    return [getattr(result, name) for result in group if getattr(result, name) is not None]


def _middle(values: list[float]) -> float | None:
    return float(np.median(values)) if values else None


def _summary(group: list[Result]) -> Summary:
    first = group[0]
    costs, gaps = np.array(_numbers(group, "cost")), _numbers(group, "gap")
    mean = float(costs.mean()) if len(costs) else None
    spread: tuple[float | None, ...] = (None,) * 6
    if mean is not None and len(costs) > 1:
        spread = _spread(costs)
    deviation, low, high, variance, variance_low, variance_high = spread
    done, failed, refused = (
        sum(result.status == status for result in group) for status in (DONE, FAILED, REFUSED)
    )
    return Summary(
        first.data_key, first.kind, first.n, first.s, first.noise_variance, first.contexts,
        first.coefficients, first.product, first.method, done, failed, refused, mean, deviation, low,
        high,
        variance, variance_low, variance_high, _middle(_numbers(group, "fit_seconds")),
        _middle(_numbers(group, "predict_seconds")), float(np.mean(gaps)) if gaps else None,
        max(gaps) if gaps else None, _middle(_numbers(group, "radius")),
    )  # fmt: skip


def _spread(costs: np.ndarray) -> tuple[float, ...]:
    """Return the deviation, the interval of the mean, the variance and its interval."""
    free, variance = len(costs) - 1, float(costs.var(ddof=1))
    half = float(stats.t.ppf(0.5 + LEVEL / 2, free)) * np.sqrt(variance / len(costs))
    upper, lower = stats.chi2.ppf([0.5 + LEVEL / 2, 0.5 - LEVEL / 2], free)
    mean = float(costs.mean())
    return (
        float(np.sqrt(variance)), mean - half, mean + half,
        variance, free * variance / upper, free * variance / lower,
    )  # fmt: skip


@dataclass(frozen=True)
class TimeRow:
    """One row of Table 1: seconds of training and testing, ours beside the paper's.

    Attributes
    ----------
    dasgd_paper, shapley_paper
        The paper's figures (i5-11400H, Python, Gurobi).
    dasgd_steps
        10,000 steps of the printed algorithm and 10,000 decisions.
    dasgd_certified
        Our fit to a certified gap of 1 % and 10,000 decisions.
    shapley
        Our Shapley: training at a fixed radius and the extension to 10,000 rows.
    dasgd_speedup, shapley_speedup
        The paper's figure over ours (for DA-SGD, over the certified fit).
    shapley_over_dasgd
        Our Shapley over our certified fit.
    """

    s: int
    n: int
    dasgd_paper: float
    dasgd_steps: float
    dasgd_certified: float
    dasgd_speedup: float
    shapley_paper: float
    shapley: float
    shapley_speedup: float
    shapley_over_dasgd: float


def table1(rows: Iterable[RowTimes]) -> list[TimeRow]:
    """Return Table 1 for the rows that the paper has."""
    found = []
    for row in rows:
        if (row.s, row.n) not in PAPER_SECONDS:
            continue
        dasgd_paper, shapley_paper = PAPER_SECONDS[row.s, row.n]
        certified = row.certified + row.decisions
        shapley = row.shapley + row.shapley_decisions
        found.append(
            TimeRow(
                row.s, row.n, dasgd_paper, row.steps + row.decisions, certified,
                dasgd_paper / certified, shapley_paper, shapley, shapley_paper / shapley,
                shapley / certified,
            )
        )  # fmt: skip
    return sorted(found, key=lambda row: (row.s, row.n))
