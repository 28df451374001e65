"""What members would have decided on later rows, learned from the rows before them.

Leaving out single rows says what members are worth between rows that were seen: neighbours stay. In
order of time decisions lie ahead of all rows, often at a level that none of them had, and a member that
was best in between may be worst there. Later rows say which, and whether columns that rise with the
outcome go with its past to a new level or stay.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from surefoot.costs import Pieces
from surefoot.forecasts.candidates import candidates
from surefoot.forecasts.outside import decision_bounds, following, lined, pasts, staying
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import Member, Stack
from surefoot.typing import BoolArray, FloatArray, IntArray

# Rows are decided from those before, from these shares of the rows on, if they are so many.
ORIGINS, LEAST_ROWS = (0.5, 0.75), 20


class Occurrences(NamedTuple):
    """When rows were there; one that is there twice has two.

    Attributes
    ----------
    places
        Of each occurrence, which row it is.
    turns
        When it was.
    masses
        How often it counts.
    """

    places: IntArray
    turns: IntArray
    masses: FloatArray

    def among(self, some: IntArray, n: int) -> "Occurrences":
        """Return the occurrences of some of n rows, in their order.

        >>> twice = Occurrences(np.array([0, 1, 1]), np.array([5, 6, 7]), np.ones(3))
        >>> twice.among(np.array([1]), 2).turns
        array([6, 7])
        """
        place = np.full(n, -1, dtype=np.int64)
        place[some] = np.arange(len(some))
        kept = np.flatnonzero(place[self.places] >= 0)
        return Occurrences(place[self.places[kept]], self.turns[kept], self.masses[kept])

    def masses_of(self, chosen: IntArray, n: int) -> FloatArray:
        """Return how often each of n rows counts by chosen occurrences."""
        counts = np.bincount(self.places[chosen], weights=self.masses[chosen], minlength=n)
        return counts.astype(float)


class LaterRows(NamedTuple):
    """Later rows with their decisions, one for each member.

    Attributes
    ----------
    places
        Which rows these are.
    masses
        How often each counts as a later one.
    moved, stayed
        Decisions if columns that rise with the outcome go with its past to a new level, and if they
        stay where they are; shape (later rows, members).
    lined
        Decisions of the linear forecast alone where rows lay outside, NaN inside.
    """

    places: IntArray
    masses: FloatArray
    moved: FloatArray
    stayed: FloatArray
    lined: FloatArray


def later_rows(
    rows: Rows,
    occurrences: Occurrences,
    lagged: BoolArray | None,
    members: Sequence[Member],
    margins: tuple[float, float],
    pieces: Pieces,
    seed: int,
) -> LaterRows | None:
    """Return what members would have decided on later rows, None with few rows.

    What is an error, and which columns hold earlier outcomes, is known from all rows.

    Parameters
    ----------
    rows
        In any order.
    occurrences
        When each row was; those of one time stay together.
    lagged
        Columns known to hold outcomes of earlier rows; None is none.
    members
        Of all rows. One that fewer rows do not allow decides as the first does.
    margins
        How far outside contexts are cut, and called far, in ranges: as by members of all rows.
    pieces, seed
        As members were learned with.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> rows, cost = Rows.of(X, X[:, 0], None), Pieces.kinked(up=1.0, down=1.0)
    >>> tried = candidates(rows, cost, 0, pasts(rows, None)[0], constant=False)
    >>> members = [one.member(0.0) for one in tried]
    >>> days = Occurrences(np.arange(40), np.arange(40), np.ones(40))
    >>> later = later_rows(rows, days, None, members, (0.05, 1.0), cost, 0)
    >>> later.places.min(), later.moved.shape == (20, len(members))
    (np.int64(20), True)
    """
    n, order = len(rows.outcomes), np.argsort(occurrences.turns, kind="stable")
    if len(order) < LEAST_ROWS:
        return None
    turns, count = occurrences.turns[order], np.cumsum(occurrences.masses[order])
    unit = rows.masses.sum() / count[-1]  # one, where masses count rows
    edges = [int(np.searchsorted(count, share * count[-1], side="right")) for share in ORIGINS]
    edges = [int(np.searchsorted(turns, turns[edge])) for edge in edges]
    found = []
    for start, end in zip(edges, [*edges[1:], len(order)], strict=True):
        if not min(ORIGINS) * LEAST_ROWS <= start < end:
            continue
        early, late = (
            unit * occurrences.masses_of(chosen, n) for chosen in (order[:start], order[start:end])
        )
        places = np.flatnonzero(late)
        ways = _decided(rows, early, places, lagged, members, margins, pieces, seed)
        found.append(LaterRows(places, late[places], *ways))
    return LaterRows(*map(np.concatenate, zip(*found, strict=True))) if found else None


def _decided(
    rows: Rows,
    masses: FloatArray,
    late: IntArray,
    lagged: BoolArray | None,
    members: Sequence[Member],
    margins: tuple[float, float],
    pieces: Pieces,
    seed: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return decisions on late rows, learned from rows of such masses, in each way."""
    early = np.flatnonzero(masses)
    seen = Rows.of(rows.contexts[early], rows.outcomes[early], masses[early])
    past, lags = pasts(seen, lagged)
    tried = candidates(seen, pieces, seed, past, constant=False)
    learned = [one.member(one.constant(seen, seen.masses, pieces)) for one in tried]
    stack = Stack(
        tuple(learned), np.full(len(learned), 1.0 / len(learned)),
        seen.contexts.min(axis=0), seen.contexts.max(axis=0),
        *margins, *decision_bounds(seen.outcomes), trend=None,
    )  # fmt: skip
    stack = following(stack, seen, past, lags, tried[1], pieces)
    names = _names(learned)
    chosen = [names.index(name) if name in names else 0 for name in _names(members)]
    moved, stayed = (
        np.column_stack(
            [replace(way, members=(one,), weights=np.ones(1))(rows.contexts[late]) for one in learned]
        )[:, chosen]
        for way in (stack, staying(stack))
    )
    contexts = rows.contexts[late]
    on_line = np.where(stack.outside(contexts), lined(stack, seen)(contexts), np.nan)
    return moved, stayed, on_line


def _names(members: Sequence[Member]) -> list[tuple[str, int]]:
    """Return the kind of each member, and which of its kind it is."""
    seen: Counter[str] = Counter()
    names = []
    for member in members:
        kind = type(member).__name__
        names.append((kind, seen[kind]))
        seen[kind] += 1
    return names
