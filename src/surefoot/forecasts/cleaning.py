"""What a slip of the pen may do: columns keep to the range of sound rows, gross errors are named.

A robust scale is the larger of two: what the middle half, and what the middle four fifths, of normal
numbers would have as their standard deviation. Up to a tenth of the rows on one side cannot move it.
"""

import importlib
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc

from surefoot.forecasts.extrapolation import own_past
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.spectrum import Spectrum
from surefoot.typing import BoolArray, FloatArray, IntArray

# Numbers so many robust scales from the middle are gross errors, unless many are.
GROSS = 8.0
# On the logarithm, where a factor of ten is a step of 2.3, fewer are enough.
GROSS_LOG = 5.0
# A context must be so many times as far out as any sound one, or as any nearer one that is far, in a
# column of so many levels.
ALONE, ALONE_IN_TAIL, LEAST_LEVELS = 3.0, 5.0, 5
# So many rows tell whether a column has few levels; one row, or this share, may be slips.
LEVEL_ROWS, MOST_SLIPS = 1_000, 0.01
# Far outcomes are explained by a level of a column of few, or by a corner of so many rows of which so
# many are far, if chance would hardly put them there: slips can share one of very many corners.
MOST_LEVELS, CORNER_ROWS, CORNER_SHARE, CHANCE = 12, 3, 0.75, 1e-3
# An outcome so many times as large as any sound one is explained by others of so many times, not alone.
WILD_TIMES, WITNESS_TIMES = 20.0, 5.0
# A far context leaves at most this share of what would be unexpected without it.
MOST_LEFT = 0.25
# A column of which at least this share are numbers of outcomes is a past.
SAME_NUMBERS = 0.5
MOST_SUSPECTS = 0.2  # of the rows; more than that is how the data are
MOST_LOST = 0.2  # share of rows that may be left out for a context that looks like an error
# Of outcomes that are positive but for slips of the sign, so many may be negative.
MOST_SIGNS = 0.06
LEAST_ROWS = 8
# Ridge strengths of the quick forecast that outcomes are judged by.
QUICK = np.array([0.0, 1e-2, 1e-1, 1.0, 10.0, 1e3])
# Its outcomes are cut anew so often, or until they move by this share of what they may be away.
TURNS, SETTLED = 10, 1e-3
# Far outcomes are believed if that leaves at most this share of the errors of the other rows.
SHARED_LINE = 0.98
# About so many rows are learned from, at most twice as many.
MANY_ROWS = 20_000
SCALE_LEVELS = np.array([0.1, 0.25, 0.75, 0.9])
QUARTILES, TENTHS = 1.349, 2.563  # width of the middle half and four fifths of a standard normal


class Suspect(NamedTuple):
    """A number that looks like an error of who wrote it down.

    Attributes
    ----------
    row
        Its place in the data that ``fit`` was given.
    column
        The name or position of the column; "outcome" (with a number where there are several).
    value
        What is written there.
    expected
        What others would let one expect.
    """

    row: int
    column: str
    value: float
    expected: float

    def __str__(self) -> str:
        """Return where, what and what was to be expected."""
        return f"row {self.row}, {self.column}: {self.value:g} (expected about {self.expected:.3g})"


def robust_scale(values: FloatArray) -> FloatArray:
    """Return a standard deviation of each column that a tenth of the rows cannot move.

    >>> robust_scale(np.append(np.arange(100.0), 1e9)[:, None]).round()
    array([37.])
    """
    places = (len(values) - 1) * SCALE_LEVELS
    below = places.astype(np.int64)
    above = np.minimum(below + 1, len(values) - 1)
    # As np.quantile has it, which takes ten times as long around a hundred numbers.
    ordered = np.partition(values, np.concatenate([below, above]), axis=0)
    low, high, share = ordered[below], ordered[above], (places - below)[:, None]
    q = np.where(share < 0.5, low + share * (high - low), high - (1.0 - share) * (high - low))
    return np.asarray(np.maximum((q[2] - q[1]) / QUARTILES, (q[3] - q[0]) / TENTHS))


def far_contexts(contexts: FloatArray) -> BoolArray:
    """Return which numbers are many robust scales from the middle of their column.

    Flags, counts of a few levels and columns of which many numbers would be far have none.
    """
    far = np.abs(contexts - np.median(contexts, axis=0)) > GROSS * robust_scale(contexts)
    if len(contexts) < LEAST_ROWS or not far.any():
        return np.zeros_like(far)
    judged = far.any(axis=0) & (far.mean(axis=0) <= MOST_SUSPECTS)
    for j in np.flatnonzero(judged):
        judged[j] = len(np.unique(contexts[~far[:, j], j])) >= LEAST_LEVELS
    return np.asarray(far & judged)


def gross_contexts(contexts: FloatArray, far: BoolArray) -> BoolArray:
    """Return which far numbers stand alone: several times as far out as any that is nearer.

    So the long tail of rain is no error.
    """
    away, gross = np.abs(contexts - np.median(contexts, axis=0)), far.copy()
    for j in np.flatnonzero(far.any(axis=0)):
        outwards = np.sort(away[far[:, j], j])
        sound = ALONE * away[~far[:, j], j].max()
        gaps = outwards[outwards > np.append(sound, ALONE_IN_TAIL * outwards[:-1])]
        gross[:, j] &= away[:, j] >= gaps.min(initial=np.inf)
    return gross


def lone_levels(contexts: FloatArray) -> BoolArray:
    """Return which numbers of flags and of counts of few levels stand alone many ranges outside.

    >>> flags = np.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 10.0])
    >>> np.flatnonzero(lone_levels(flags[:, None]))
    array([8])
    """
    lone = np.zeros(contexts.shape, dtype=bool)
    if len(contexts) < LEAST_ROWS:
        return lone
    for j, column in enumerate(contexts.T):
        if len(np.unique(column[:LEVEL_ROWS])) > 2 * LEAST_LEVELS:
            continue
        levels, counts = np.unique(column, return_counts=True)
        sound, slips = levels[counts > 1], max(1, int(MOST_SLIPS * len(column)))
        if 2 <= len(sound) < LEAST_LEVELS and len(levels) <= len(sound) + slips:
            width = GROSS * (sound[-1] - sound[0])
            lone[:, j] = (column > sound[-1] + width) | (column < sound[0] - width)
    return lone


def column_range(contexts: FloatArray, without: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest number of each column, without some."""
    return (
        np.where(without, np.inf, contexts).min(axis=0),
        np.where(without, -np.inf, contexts).max(axis=0),
    )


def near_own_past(contexts: FloatArray, outcomes: FloatArray) -> BoolArray:
    """Return which numbers the outcome of their row is near, shape of the contexts, if it has a past.

    A new level is far from all others, but not from yesterday's. A slip is far from its past.

    >>> sales = np.append(10.0 + np.arange(40.0) % 7, 90.0 + np.arange(4.0) % 3)
    >>> near_own_past(sales[:-1, None], sales[1:])[[38, 39, 40], 0]
    array([ True, False,  True])
    """
    near = np.zeros(contexts.shape, dtype=bool)
    if len(outcomes) < LEAST_ROWS:
        return near
    past = own_past(Rows.of(contexts, outcomes, None))
    if not len(past):  # few rows at a new level hide a past that holds the very numbers of outcomes
        past = np.flatnonzero(np.isin(contexts, outcomes).mean(axis=0) >= SAME_NUMBERS)
    if len(past):
        changes = outcomes[:, None] - contexts[:, past]
        near = np.abs(outcomes[:, None] - contexts) <= GROSS * robust_scale(changes).min()
        near[np.abs(outcomes) > WILD_TIMES * np.median(np.abs(outcomes))] = False  # 9999 may repeat
    return near


class JudgedOutcomes(NamedTuple):
    """Which outcomes are gross errors, what was to be expected, and outcomes of bounded influence."""

    gross: BoolArray
    expected: FloatArray
    bounded: FloatArray


def judged_outcomes(contexts: FloatArray, outcomes: FloatArray) -> JudgedOutcomes:
    """Judge outcomes by a linear forecast that bounds them.

    An outcome is a gross error if it is many robust scales away from a linear forecast and, where
    outcomes are positive, far from the others on the logarithm, too: heavy tails are no errors, and
    neither are outcomes that their contexts explain. Where most outcomes are one number, as on days
    without demand, only the others are judged, among themselves.
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
    far = np.abs(errors - middle) > GROSS * scale
    if far.any():
        far &= ~near_own_past(contexts, outcomes).any(axis=1)
    far &= ~explained(contexts, far, np.abs(outcomes) / np.abs(outcomes[~far]).max(initial=1e-300))
    low, high = expected + middle - GROSS * scale, expected + middle + GROSS * scale
    bounded = np.where(far, np.clip(outcomes, low, high), outcomes)
    gross, positive = far.copy(), outcomes > 0.0
    if (outcomes < 0.0).mean() <= MOST_SIGNS and positive.mean() > 0.5:
        floor = 0.01 * float(np.median(outcomes[positive]))
        logs = np.log(np.maximum(outcomes, floor))
        spread = float(robust_scale(logs[positive][:, None])[0])
        away = np.abs(logs - np.median(logs[positive])) > GROSS_LOG * max(spread, 1e-9)
        gross &= away | (outcomes < 0.0)
    return JudgedOutcomes(gross if gross.mean() <= MOST_SUSPECTS else none, expected, bounded)


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


def explained(contexts: FloatArray, far: BoolArray, times: FloatArray | None = None) -> BoolArray:
    """Return which far outcomes come with a context that tells them from the others.

    A level of a flag or category at which most outcomes are far, or a corner of one or two columns
    with several rows of which nearly all are: a promotion, a holiday, a heat wave. Slips of the pen
    do not choose their context. One that is many ``times`` as large as any sound one may be a slip all
    the same if there is no other like it at its level.
    """
    told = np.zeros_like(far)
    wild, like_it = (
        told if times is None else far & (times > most) for most in (WILD_TIMES, WITNESS_TIMES)
    )
    if not far.any():
        return told
    for column in contexts.T:
        levels, places = np.unique(column, return_inverse=True)
        if len(levels) > MOST_LEVELS:
            continue
        rows = np.bincount(places)
        share = np.bincount(places, weights=far.astype(float)) / rows
        # A level of nearly all rows tells nothing.
        telling = (share >= 0.5) & (rows <= 0.5 * len(column))
        lonely = wild & (np.bincount(places, weights=like_it.astype(float)) == 1.0)[places]
        told |= far & telling[places] & ~lonely
    return told | _cornered(contexts, far & ~told)


def _chance(rows: int, hits: int, far: BoolArray, columns: int) -> float:
    """Return how many corners of so many rows would hold so many far ones if far ones were anywhere."""
    # About so many corners of two columns there are, and any row is as likely to be far as any other.
    return rows * (2.0 * columns) ** 2 * float(bdtrc(hits - 1, rows, far.mean()))


def _cornered(contexts: FloatArray, far: BoolArray) -> BoolArray:
    """Return which far outcomes lie in a corner of one or two columns where nearly all are far."""
    cornered, count, columns = np.zeros_like(far), int(far.sum()), contexts.shape[1]
    if count == 0 or _chance(count, count, far, columns) >= CHANCE:
        return cornered  # not even a corner of all of them would tell
    # Not at the top: it is slow to load, and few tables have far outcomes.
    trees = importlib.import_module("sklearn.tree")
    tree = trees.DecisionTreeClassifier(
        max_depth=2, min_samples_leaf=CORNER_ROWS, class_weight="balanced", random_state=0
    )
    leaves = tree.fit(contexts, far).apply(contexts)
    for leaf in np.unique(leaves):
        inside = leaves == leaf
        rows, hits = int(inside.sum()), int(far[inside].sum())
        telling = hits >= CORNER_SHARE * rows and rows <= 0.5 * len(far)
        if telling and _chance(rows, hits, far, columns) < CHANCE:
            cornered |= far & inside
    return cornered


def _belonging(contexts: FloatArray, cut: FloatArray, outcomes: FloatArray) -> BoolArray:
    """Return which outcomes are far from what is expected of cut contexts, and not of the others."""
    errors = np.column_stack([outcomes - expected_outcomes(told, outcomes) for told in (contexts, cut)])
    whole, left = np.abs(errors - np.median(errors, axis=0)).T
    gross = GROSS * robust_scale(errors[:, :1])
    return np.asarray((left > gross) & (whole <= np.maximum(gross, MOST_LEFT * left)))


class Cleaned(NamedTuple):
    """Rows without gross errors.

    Attributes
    ----------
    contexts, outcomes
        Of all rows, cut to what can be believed.
    least, most
        Of each column.
    kept
        Which rows are worth learning from.
    suspects
        Numbers that look like errors.
    """

    contexts: FloatArray
    outcomes: FloatArray
    least: FloatArray
    most: FloatArray
    kept: IntArray
    suspects: tuple[Suspect, ...]


def cleaned(contexts: FloatArray, outcomes: FloatArray) -> Cleaned:
    """Cut rows to what can be believed, and say which of them look wrong."""
    lone = lone_levels(contexts)
    gross = lone | gross_contexts(contexts, far_contexts(contexts))
    least, most = column_range(contexts, gross)
    cut = np.clip(contexts, least, most)
    if gross.any():
        gross &= lone | ~near_own_past(contexts, outcomes)
        # A context that the outcome bears witness to is no slip, however far it is. A lone level is:
        # it makes all others of its column so alike that no outcome can speak against it.
        gross &= lone | ~_belonging(contexts, cut, outcomes)[:, None]
        least, most = column_range(contexts, gross)
        cut = np.clip(contexts, least, most)
    wrong, expected, bounded = judged_outcomes(cut, outcomes)
    suspects = [
        Suspect(int(i), "outcome", float(outcomes[i]), float(expected[i]))
        for i in np.flatnonzero(wrong)
    ] + [
        Suspect(int(i), str(j), float(contexts[i, j]), float(np.median(contexts[:, j])))
        for i, j in np.argwhere(gross)
    ]
    lost = wrong | gross.any(axis=1)
    kept = np.flatnonzero(~(lost if lost.mean() <= MOST_LOST else wrong))
    return Cleaned(cut, bounded, least, most, kept, tuple(suspects))
