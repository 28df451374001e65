"""What a stack follows outside what was seen: the outcome's own past, and lines known to go on."""

from dataclasses import replace

import numpy as np

from surefoot.costs import Pieces
from surefoot.costs.quantiles import weighted_quantile
from surefoot.forecasts.candidates import Candidate, linear_errors
from surefoot.forecasts.extrapolation import moving_along, nearest_past, own_past, ranges_of_lines
from surefoot.forecasts.members import Level
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import MOST_RANGES_OF_LINES, Stack, SureLine
from surefoot.typing import BoolArray, FloatArray, IntArray

# A past that may be none is followed from these quantiles outwards to see whether that pays.
OUTER = 0.3
# A line decides alone outside if it errs by less than this share of what the best constant does, and by
# less than this one of what the outcome's past does; with so many distinct rows at least.
SURE, SURE_BESIDE_PAST, LEAST_SURE_ROWS = 0.05, 0.3, 8
# Decisions may lie outside outcomes by so many ranges over the number of rows, one at most.
DECISION_GAPS = 20.0


def decision_bounds(outcomes: FloatArray) -> tuple[float, float]:
    """Return the least and the largest sensible decision; never negative where outcomes never were.

    >>> decision_bounds(np.array([1.0, 3.0] * 20))
    (0.0, 4.0)
    """
    low, high = float(outcomes.min()), float(outcomes.max())
    room = (high - low) * min(DECISION_GAPS / len(outcomes), 1.0)
    return (max(low - room, 0.0) if low >= 0.0 else low - room), high + room


def pasts(rows: Rows, lagged: BoolArray | None) -> tuple[IntArray, IntArray]:
    """Return the columns that are the outcome's own past, and those of them that are known to be.

    Parameters
    ----------
    rows
        What is learned from.
    lagged
        Columns known to hold outcomes of earlier rows; None is none.
    """
    lags = np.flatnonzero(rows.varies & (False if lagged is None else lagged))
    return np.union1d(lags, own_past(rows)).astype(np.int64), lags


def following(
    stack: Stack, rows: Rows, past: IntArray, lags: IntArray, linear: Candidate, pieces: Pieces
) -> Stack:
    """Return a stack that follows the past, and lines where they are known to go on, outside.

    Parameters
    ----------
    stack
        Follows nothing yet; its second member is the linear forecast.
    rows
        What it was learned from.
    past, lags
        As ``pasts`` tells them.
    linear
        The second member before its constant was chosen.
    pieces
        The cost.
    """
    line = stack.members[1]
    assert isinstance(line, Level)  # of the linear forecast, as candidates come
    decided, slopes = linear.decide(line.constant), line.forecast.theta
    lines = ranges_of_lines(rows, lags, decided, slopes, pieces, MOST_RANGES_OF_LINES)
    if len(past) and not len(lags):
        all_lines = bool(lines[:, past].any(axis=0).all())
        if all_lines or not _worth_following(stack, rows, past, pieces):
            past = past[:0]
    lines[:, past] = 0.0
    known = np.flatnonzero(lines.any(axis=0))
    along = moving_along(rows, past)
    along[known] = 0.0
    return replace(stack, trend=past, along=along, lines=lines)


def staying(stack: Stack) -> Stack:
    """Return the same stack with all columns but the past where they are when the past is followed."""
    assert stack.trend is not None
    along = np.zeros_like(stack.least)
    along[stack.trend] = 1.0
    return replace(stack, along=along)


def lined(stack: Stack, rows: Rows) -> Stack:
    """Return the same stack with its linear forecast alone outside."""
    level = stack.members[1]
    assert isinstance(level, Level)  # of the linear forecast, as candidates come
    between = ((rows.contexts > stack.least) & (rows.contexts < stack.most)).any(axis=0)
    return replace(stack, line=SureLine(level, np.where(between, level.forecast.theta, 0.0)))


def is_sure(rows: Rows, past: IntArray, lags: IntArray, errors: FloatArray) -> bool:
    """Whether a linear forecast hardly errs, for any cost.

    What nearly computes the outcome wherever rows are does so beyond them, too, and every other way to
    decide there costs many times as much. One that errs as much as outcomes differ from their past, or
    as a line of earlier outcomes alone, does no such thing: smooth curves go on, and then turn.

    Parameters
    ----------
    rows
        What it was learned from.
    past, lags
        As ``pasts`` tells them.
    errors
        Of the forecast, learned without the row.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> rows, none = Rows.of(X, X[:, 0] + 3.0 * X[:, 1], None), np.zeros(0, dtype=np.int64)
    >>> [is_sure(rows, none, none, size * X[:, 0]) for size in (0.05, 0.5)]
    [True, False]
    """
    if len(rows.outcomes) < LEAST_SURE_ROWS:
        return False
    size = _mean_deviation(errors, rows.masses)
    if size >= SURE * _mean_deviation(rows.outcomes, rows.masses):
        return False
    others = []
    nearest = nearest_past(rows, past)
    if nearest is not None:
        others.append(rows.outcomes - rows.contexts[:, nearest])
    if len(lags):
        before = Rows.of(rows.contexts[:, lags], rows.outcomes, rows.masses)
        others.append(linear_errors(before, nearest_past(before, np.arange(len(lags)))))
    most = min((_mean_deviation(one, rows.masses) for one in others), default=np.inf)
    return size < SURE_BESIDE_PAST * most


def _mean_deviation(values: FloatArray, masses: FloatArray) -> float:
    """Return the mean distance from the median."""
    return float(masses @ np.abs(values - weighted_quantile(values, masses, 0.5)) / masses.sum())


def _worth_following(stack: Stack, rows: Rows, past: IntArray, pieces: Pieces) -> bool:
    """Whether rows far from the middle of what looks like their past cost less if it is followed.

    Many columns are distributed like outcomes. Only the past has their level.
    """
    low, high = np.quantile(rows.contexts[:, past], [OUTER, 1.0 - OUTER], axis=0)
    along = moving_along(rows, past)
    out, *decisions = stack.at_level(rows.contexts, past, along, low, high)
    outcomes, masses = rows.outcomes[out], rows.masses[out]
    followed, nearest = (masses @ pieces.evaluate(decided - outcomes) for decided in decisions)
    return bool(followed <= nearest)
