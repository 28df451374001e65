"""What a slip of the pen may do: columns keep to the range of sound rows, gross errors are named."""

from typing import NamedTuple

import numpy as np

from surefoot.forecasts.gross_outcomes import (
    MOST_SUSPECTS,
    copies,
    expected_outcomes,
    holds_outcomes,
    judged_outcomes,
    near_own_past,
    wild,
)
from surefoot.forecasts.robust_scales import GROSS, LEAST_ROWS, robust_scale
from surefoot.typing import BoolArray, FloatArray, IntArray

# A context must be so many times as far out as any sound one, or as any nearer one that is far, in a
# column of so many levels.
ALONE, ALONE_IN_TAIL, LEAST_LEVELS = 3.0, 5.0, 5
# So many rows tell whether a column has few levels; one row, or this share, may be slips.
LEVEL_ROWS, MOST_SLIPS = 1_000, 0.01
# A far context leaves at most this share of what would be unexpected without it.
MOST_LEFT = 0.25
# Outcomes beyond these quantiles have no more say in where a column pushes.
MIDDLE = 0.05, 0.95
MOST_LOST = 0.2  # share of rows that may be left out for a context that looks like an error


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


def _belonging(contexts: FloatArray, cut: FloatArray, outcomes: FloatArray) -> BoolArray:
    """Return which outcomes are far from what is expected of cut contexts, and not of the others.

    They must lie where their far contexts push them: several slips in one column level the line.
    """
    errors = np.column_stack([outcomes - expected_outcomes(told, outcomes) for told in (contexts, cut)])
    whole, left = np.abs(errors - np.median(errors, axis=0)).T
    gross = GROSS * robust_scale(errors[:, :1])
    centred = cut - cut.mean(axis=0)
    size = np.sqrt((centred**2).mean(axis=0))
    pushes = np.clip(outcomes, *np.quantile(outcomes, MIDDLE)) @ centred / np.maximum(size, 1e-300)
    pushed = (np.sign(contexts - cut) @ pushes) * errors[:, 1] > 0.0
    return np.asarray(pushed & (left > gross) & (whole <= np.maximum(gross, MOST_LEFT * left)))


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
        # Nor is an earlier outcome that nothing but another wild one follows: a slip may repeat.
        repeats = wild(outcomes)[:, None] & holds_outcomes(contexts, outcomes)
        gross &= lone | repeats | ~_belonging(contexts, cut, outcomes)[:, None]
        least, most = column_range(contexts, gross)
        cut = np.clip(contexts, least, most)
    wrong, expected, bounded = judged_outcomes(cut, outcomes)
    gross |= copies(contexts, outcomes, wrong)
    suspects = [
        Suspect(int(i), "outcome", float(outcomes[i]), float(expected[i]))
        for i in np.flatnonzero(wrong)
    ] + [
        Suspect(int(i), str(j), float(contexts[i, j]), float(np.median(contexts[:, j])))
        for i, j in np.argwhere(gross)
    ]
    lost = wrong | gross.any(axis=1)
    kept = np.flatnonzero(~(lost if lost.mean() <= MOST_LOST else wrong))
    if wrong.any():  # what only they hold was not seen
        least, most = column_range(contexts[kept], gross[kept])
        cut = np.clip(contexts, least, most)
    return Cleaned(cut, bounded, least, most, kept, tuple(suspects))
