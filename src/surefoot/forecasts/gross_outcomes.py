"""Outcomes that look like errors, judged by a quick forecast that bounds them."""

from typing import NamedTuple

import numpy as np

from surefoot.forecasts.explanations import WILD_TIMES, explained
from surefoot.forecasts.extrapolation import own_past
from surefoot.forecasts.robust_scales import GROSS, LEAST_ROWS, robust_scale
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.spectrum import Spectrum
from surefoot.typing import BoolArray, FloatArray

# So many scales below the middle on the logarithm, where a factor of ten is a step of 2.3, is nothing.
GROSS_LOG = 5.0
# The tail of outcomes is that of so many rows, or this share. One that lies behind a gap, on the
# logarithm, that this share of samples of a tail of powers has, and this factor at least, stands alone.
TAIL_ROWS, TAIL_SHARE, ALONE_BY_CHANCE, LEAST_FACTOR = 5, 0.1, 0.05, 2.5
# Of outcomes that are positive but for slips of the sign so many may be negative; one is turned around
# if it is as far below zero as all but this share are above, and so many scales from its forecast.
MOST_SIGNS, TURNED, GROSS_TURNED = 0.06, 0.1, 4.0
# What is expected counts as this quantile of positive outcomes at least where it is a factor.
TYPICAL = 0.25
# Of positive outcomes, smaller ones than this share of the median count as this on the logarithm.
LOG_FLOOR = 0.01
# Outcomes so many scales at most from a forecast of their logarithm, which leaves at most this share of
# its spread, are in proportion.
PROPORTION, TELLING = 4.0, 0.5
# A column of which at least this share are numbers of outcomes is a past.
SAME_NUMBERS = 0.5
# Far outcomes count as so many times the largest that is not far, at most.
MOST_TIMES = 3.0
# More outcomes than this share are how the data are, and more contexts than this share of a column.
MOST_GROSS, MOST_SUSPECTS = 0.08, 0.2
# Ridge strengths of the quick forecast that outcomes are judged by.
QUICK = np.array([0.0, 1e-2, 1e-1, 1.0, 10.0, 1e3])
# Its outcomes are cut anew so often, or until they move by this share of what they may be away.
TURNS, SETTLED = 10, 1e-3
# Far outcomes are believed if that leaves at most this share of the errors of the other rows.
SHARED_LINE = 0.98
# About so many rows are learned from, at most twice as many.
MANY_ROWS = 20_000


def wild(outcomes: FloatArray) -> BoolArray:
    """Return which outcomes are many times as large as the middle one."""
    sizes = np.abs(outcomes)
    return np.asarray(sizes > WILD_TIMES * np.median(sizes))


def holds_outcomes(contexts: FloatArray, outcomes: FloatArray) -> BoolArray:
    """Return which columns hold the very numbers of outcomes."""
    return np.asarray(np.isin(contexts, outcomes).mean(axis=0) >= SAME_NUMBERS)


def copies(contexts: FloatArray, outcomes: FloatArray, wrong: BoolArray) -> BoolArray:
    """Return which contexts repeat an outcome that is wrong, in columns that hold earlier ones.

    >>> sales = np.array([5.0, 6.0, -7.0, 8.0, 9.0])
    >>> copies(sales[:-1, None], sales[1:], sales[1:] < 0.0)[:, 0]
    array([False, False,  True, False])
    """
    if not wrong.any():
        return np.zeros(contexts.shape, dtype=bool)
    values = np.setdiff1d(outcomes[wrong], outcomes[~wrong])
    return np.asarray(np.isin(contexts, values) & holds_outcomes(contexts, outcomes))


def near_own_past(contexts: FloatArray, outcomes: FloatArray) -> BoolArray:
    """Return which numbers of its own past the outcome of their row is near, shape of the contexts.

    A new level is far from all others, but not from yesterday's. A slip is far from its past.

    >>> sales = np.append(10.0 + np.arange(40.0) % 7, 90.0 + np.arange(4.0) % 3)
    >>> near_own_past(sales[:-1, None], sales[1:])[[38, 39, 40], 0]
    array([ True, False,  True])
    """
    near = np.zeros(contexts.shape, dtype=bool)
    if len(outcomes) < LEAST_ROWS:
        return near
    # Few rows at a new level hide a past that holds the very numbers of outcomes.
    same = np.flatnonzero(holds_outcomes(contexts, outcomes))
    past = np.union1d(own_past(Rows.of(contexts, outcomes, None)), same).astype(np.int64)
    if len(past):
        changes = outcomes[:, None] - contexts[:, past]
        near[:, past] = np.abs(changes) <= GROSS * robust_scale(changes).min()
        near &= outcomes[:, None] * contexts >= 0.0  # no past bears witness to a turned sign
        near[wild(outcomes)] = False  # 9999 may repeat
    return near


class JudgedOutcomes(NamedTuple):
    """Which outcomes are gross errors, what was to be expected, and outcomes of bounded influence."""

    gross: BoolArray
    expected: FloatArray
    bounded: FloatArray


def judged_outcomes(contexts: FloatArray, outcomes: FloatArray) -> JudgedOutcomes:
    """Judge outcomes by a linear forecast that bounds them.

    An outcome is a gross error if it is many robust scales away from a linear forecast and, where
    outcomes are positive, beyond what their own distribution lets one expect, too: heavy tails are no
    errors, and neither are outcomes that their contexts explain. Where most outcomes are one number, as
    on days without demand, only the others are judged, among themselves.
    """
    n, middle = len(outcomes), float(np.median(outcomes))
    none, expected = np.zeros(n, dtype=bool), np.full(n, middle)
    others = outcomes != middle
    if n >= LEAST_ROWS and others.mean() < 0.5:
        return _judged_among_others(contexts, outcomes, others)
    width = float(robust_scale(outcomes[:, None])[0])
    if n < LEAST_ROWS or width == 0.0:
        return JudgedOutcomes(none, expected, outcomes)
    expected = expected_outcomes(contexts, outcomes)
    errors = outcomes - expected
    scale = float(robust_scale(errors[:, None])[0]) or width
    middle = float(np.median(errors))
    away = np.abs(errors - middle) / scale
    turned = turned_around(outcomes) & (away > GROSS_TURNED)
    far = (away > GROSS) | turned
    if far.any():
        far &= ~near_own_past(contexts, outcomes).any(axis=1)
    times = np.abs(outcomes) / np.abs(outcomes[~far]).max(initial=1e-300)
    unusual = far
    far = far & ~explained(contexts, far, np.where(turned, np.inf, times))
    low, high = expected + middle - GROSS * scale, expected + middle + GROSS * scale
    # A common kind of large order is no slip: outcomes are bounded where sound ones show how.
    most = MOST_TIMES * np.abs(outcomes[~unusual]).max(initial=0.0)
    bounded = np.where(far, np.clip(outcomes, np.minimum(low, -most), np.maximum(high, most)), outcomes)
    gross = far & beyond_others(outcomes, far, ~unusual, expected)
    if gross.any() and mostly_positive(outcomes):
        gross &= ~_in_proportion(contexts, outcomes)
    return JudgedOutcomes(
        gross if gross.mean() <= max(MOST_GROSS, 2.0 / n) else none, expected, bounded
    )


def mostly_positive(outcomes: FloatArray) -> bool:
    """Whether outcomes are positive but for a few, which may be slips of the sign."""
    return bool((outcomes < 0.0).mean() <= MOST_SIGNS and (outcomes > 0.0).mean() > 0.5)


def turned_around(outcomes: FloatArray) -> BoolArray:
    """Return which outcomes have lost their sign: as large as the others, but below zero.

    Numbers that really fall below zero now and then do so by little.

    >>> turned_around(np.array([12.0, 9.0, 15.0, 8.0, -11.0, -0.5] + 40 * [10.0])).nonzero()[0]
    array([4])
    """
    if not (outcomes < 0.0).any() or not mostly_positive(outcomes):
        return np.zeros(len(outcomes), dtype=bool)
    return outcomes <= -np.quantile(outcomes[outcomes > 0.0], TURNED)


def beyond_others(
    outcomes: FloatArray, far: BoolArray, usual: BoolArray, expected: FloatArray
) -> BoolArray:
    """Return which outcomes are beyond what the distribution of the usual ones lets one expect.

    Where outcomes are of both signs that is all of them.

    Parameters
    ----------
    outcomes
        Of all rows.
    far, usual
        Which are far from what is expected of them and not explained, and which are not far; the others
        are believed, and say nothing of the tail.
    expected
        What a forecast expects: a promotion that it knows of is no tail.
    """
    if not mostly_positive(outcomes):
        return np.ones(len(outcomes), dtype=bool)
    positive = outcomes > 0.0
    floor = LOG_FLOOR * float(np.median(outcomes[positive]))
    logs = np.log(np.maximum(outcomes, floor))
    spread = max(float(robust_scale(logs[positive][:, None])[0]), 1e-9)
    least = np.median(logs[positive]) - GROSS_LOG * spread
    believed = positive & ~far
    factors = logs - np.log(np.clip(expected, *np.quantile(outcomes[positive], [TYPICAL, 1.0])))
    alone = standing_alone(factors, far & positive, positive & usual)
    if believed.any():
        alone &= logs > logs[believed].max() + np.log(LEAST_FACTOR)
    return np.asarray((logs < least) | (outcomes < 0.0) | alone)


def _in_proportion(contexts: FloatArray, outcomes: FloatArray) -> BoolArray:
    """Return which outcomes are as expected where effects multiply: far, but in proportion."""
    floor = LOG_FLOOR * float(np.median(outcomes[outcomes > 0.0]))
    logs = np.log(np.maximum(outcomes, floor))
    errors = logs - expected_outcomes(contexts, logs)
    scale, spread = robust_scale(np.column_stack([errors, logs]))
    near = np.abs(errors - np.median(errors)) <= PROPORTION * scale
    return np.asarray(near & (outcomes > floor) & (scale <= TELLING * spread))


def standing_alone(logs: FloatArray, judged: BoolArray, usual: BoolArray) -> BoolArray:
    """Return which numbers lie behind a gap that the tail of those before it does not let one expect.

    In a tail of powers the spacings of logarithms are independent and exponential, each divided by its
    place from the top (Renyi 1953); so a gap over the mean of the spacings below it is as likely as
    Hill's estimate (1975) lets one say, however far out that is.

    Parameters
    ----------
    logs
        Logarithms.
    judged
        Which may stand alone.
    usual
        Which tell of the tail.
    """
    if usual.sum() < TAIL_ROWS:
        return np.zeros(len(logs), dtype=bool)
    beyond = judged & (logs > logs[usual].max())
    ordered = np.concatenate([np.sort(logs[usual]), np.sort(logs[beyond])])
    place = np.arange(int(usual.sum()), len(ordered))
    rows = np.maximum(TAIL_ROWS, (TAIL_SHARE * place).astype(np.int64))
    total, least, most = np.append(0.0, np.cumsum(ordered)), ordered[place - rows], ordered[place - 1]
    # The sum of the spacings, each times its place: that of the excesses, and the largest once more.
    spacings = total[place] - total[place - rows] + most - (rows + 1) * least
    times = ALONE_BY_CHANCE ** (-1.0 / (rows - 1)) - 1.0
    behind = np.flatnonzero(ordered[place] - most > np.maximum(np.log(LEAST_FACTOR), times * spacings))
    return np.asarray(beyond & (logs >= ordered[place[behind]].min(initial=np.inf)))


def expected_outcomes(contexts: FloatArray, outcomes: FloatArray) -> FloatArray:
    """Return what a linear forecast, learned without the row, expects of each row.

    Far outcomes are cut. Where that serves the other rows, outcomes far from the forecast are cut in
    their place, and it is learned again until nothing moves (Huber's estimator): so a slip has a
    bounded say, and a far context still has the outcome that belongs to it. Of many rows some are
    learned from.
    """
    every = max(len(outcomes) // MANY_ROWS, 1)
    some = Rows.of(contexts[::every], outcomes[::every], None)
    middle, most = np.median(some.outcomes), GROSS * robust_scale(some.outcomes[:, None])
    if some.trivial:
        return np.full(len(outcomes), middle)
    spectrum = Spectrum.of(some.scaled / np.sqrt(some.scaled.shape[1]), some)
    bounded = np.clip(some.outcomes, middle - most, middle + most)
    told, slopes = _settled(spectrum, some, bounded, 1)
    errors = some.outcomes - told
    sound = np.abs(errors - np.median(errors)) <= GROSS * robust_scale(errors[:, None])
    if not sound.all():
        # Far outcomes that belong to far contexts bring other rows nearer to the line, slips do not.
        least = SHARED_LINE * np.abs(errors[sound]).mean()
        for start in (bounded, some.outcomes):
            other = _settled(spectrum, some, start, TURNS)
            left = np.abs(some.outcomes - other[0])[sound].mean()
            if left < least:
                least, (told, slopes) = left, other
    if every == 1:
        return told
    kept = some.varies
    return np.asarray(told.mean() + (contexts[:, kept] - some.mean[kept]) / some.spread[kept] @ slopes)


def _settled(
    spectrum: Spectrum, rows: Rows, bounded: FloatArray, turns: int
) -> tuple[FloatArray, FloatArray]:
    """Return what is expected of each row, and the slopes, once outcomes are cut where they are far."""
    for _ in range(turns):
        paths = spectrum.of_outcomes(rows.telling(bounded)).solve(QUICK, np.zeros(len(QUICK)))
        likely = paths.by_evidence()
        told, before = bounded - likely @ paths.errors, bounded
        errors = rows.outcomes - told
        middle, most = np.median(errors), GROSS * float(robust_scale(errors[:, None])[0])
        bounded = np.clip(rows.outcomes, told + middle - most, told + middle + most)
        if most == 0.0 or np.abs(bounded - before).max() <= SETTLED * most:
            break
    return told, likely @ paths.coefficients / np.sqrt(rows.scaled.shape[1])


def _judged_among_others(
    contexts: FloatArray, outcomes: FloatArray, others: BoolArray
) -> JudgedOutcomes:
    """Judge those outcomes that are not the number which most of them are."""
    gross, expected, bounded = np.zeros_like(others), np.full(len(outcomes), np.nan), outcomes.copy()
    expected[~others] = outcomes[~others]
    if others.any():
        told = judged_outcomes(contexts[others], outcomes[others])
        gross[others], expected[others], bounded[others] = told
    return JudgedOutcomes(gross, expected, bounded)
