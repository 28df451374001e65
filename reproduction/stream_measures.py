"""What is measured of decisions on a stream: regret, how it grows, and recovery after a change."""

import math

import numpy as np

from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError
from surefoot.typing import FloatArray, IntArray

# A method has recovered when its next rows cost at most so much more than the oracle's.
RECOVERED = 1.10
WINDOW = 250


def prices(cost: Newsvendor) -> tuple[float, float]:
    """Return backorder b and holding h of one product.

    >>> prices(Newsvendor(1.0, 0.2))
    (1.0, 0.2)
    """
    (piece,) = cost.pieces(1)
    return piece.down, piece.up


def critical_share(cost: Newsvendor) -> float:
    """Return b/(b+h): the quantile of the outcome that a newsvendor orders.

    >>> critical_share(Newsvendor(3.0, 1.0))
    0.75
    """
    b, h = prices(cost)
    return b / (b + h)


def realised_cost(cost: Newsvendor, decisions: FloatArray, outcomes: FloatArray) -> FloatArray:
    """Return what each decision cost once its outcome was known, shape (rows,).

    >>> realised_cost(Newsvendor(1.0, 0.2), np.array([3.0, 1.0]), np.array([1.0, 3.0]))
    array([0.4, 2. ])
    """
    return cost.evaluate(decisions[:, None], outcomes[:, None])


def growth_exponent(times: IntArray, regrets: FloatArray, *, first: int) -> float:
    r"""Return the slope of log regret against log T, over the times from ``first`` on.

    .. math:: \text{Regret}_T \approx C\, T^{\alpha}

    Least squares over the given times, which should be evenly spaced in log T. Where a regret is not
    positive there is no logarithm and the exponent is NaN.

    Examples
    --------
    >>> times = np.array([100, 1_000, 10_000])
    >>> round(growth_exponent(times, 3.0 * np.sqrt(times), first=100), 6)
    0.5
    """
    last = times >= first
    if int(last.sum()) < 2:
        raise InvalidInputError(f"times must have two entries >= {first}, got {times.tolist()}.")
    if not (regrets[last] > 0).all():
        return math.nan
    slope, _ = np.polyfit(np.log(times[last]), np.log(regrets[last]), 1)
    return float(slope)


def recovery_rows(
    costs: FloatArray, oracle_costs: FloatArray, change: int, *, window: int = WINDOW
) -> int | None:
    """Return after how many rows behind a change a method is back, or None if it never is.

    Back means: over the next ``window`` rows its mean cost is at most 10 % above the oracle's mean
    cost on the same rows. Looking forward keeps rows before the change out of the mean.

    Examples
    --------
    >>> costs = np.concatenate([np.ones(10), np.full(7, 2.0), np.ones(20)])
    >>> recovery_rows(costs, np.ones(37), 10, window=5)
    7
    """
    ours, best = (_window_sums(part[change:], window) for part in (costs, oracle_costs))
    back = np.flatnonzero(ours <= RECOVERED * best)
    return int(back[0]) if len(back) else None


def _window_sums(values: FloatArray, window: int) -> FloatArray:
    """Return the sum over each run of ``window`` values, by where the run starts."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(total[window:] - total[:-window])


def times_of(rows: int, *, per_decade: int = 10) -> IntArray:
    """Return times up to ``rows``, evenly spaced in their logarithm, the last one included.

    >>> times_of(1_000, per_decade=1).tolist()
    [1, 10, 100, 1000]
    """
    count = math.ceil(per_decade * math.log10(rows)) + 1
    return np.unique(np.round(np.logspace(0.0, math.log10(rows), count)).astype(np.int64))
