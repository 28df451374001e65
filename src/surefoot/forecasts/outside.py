"""What a stack follows outside what was seen: the outcome's own past, and lines known to go on."""

from dataclasses import replace

import numpy as np

from surefoot.costs import Pieces
from surefoot.forecasts.candidates import Candidate
from surefoot.forecasts.extrapolation import moving_along, own_past, ranges_of_lines
from surefoot.forecasts.members import Level
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import MOST_RANGES_OF_LINES, Stack
from surefoot.typing import BoolArray, FloatArray, IntArray

# A past that may be none is followed from these quantiles outwards to see whether that pays.
OUTER = 0.3
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
