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
from surefoot.forecasts.outside import decision_bounds, following, pasts, staying
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import Member, Stack
from surefoot.typing import BoolArray, FloatArray, IntArray

# Rows are decided from those before, from these shares of the rows on, if they are so many.
ORIGINS, LEAST_ROWS = (0.5, 0.75), 20


class LaterRows(NamedTuple):
    """Later rows with their decisions, one for each member.

    Attributes
    ----------
    places
        Which rows these are.
    moved, stayed
        Decisions if columns that rise with the outcome go with its past to a new level, and if they
        stay where they are; shape (later rows, members).
    """

    places: IntArray
    moved: FloatArray
    stayed: FloatArray


def later_rows(
    rows: Rows,
    turns: IntArray,
    lagged: BoolArray | None,
    members: Sequence[Member],
    margins: tuple[float, float],
    pieces: Pieces,
    seed: int,
) -> LaterRows | None:
    """Return what members would have decided on later rows, None with few rows.

    Parameters
    ----------
    rows
        In any order.
    turns
        When each row was; rows of one time stay together.
    lagged
        Columns known to hold outcomes of earlier rows; None is none.
    members
        Of all rows. One that fewer rows do not allow decides as the first does.
    margins
        How far outside contexts are cut, and called far, in ranges.
    pieces, seed
        As members were learned with.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> rows, cost = Rows.of(X, X[:, 0], None), Pieces.kinked(up=1.0, down=1.0)
    >>> tried = candidates(rows, cost, 0, pasts(rows, None)[0], constant=False)
    >>> members = [one.member(0.0) for one in tried]
    >>> later = later_rows(rows, np.arange(40), None, members, (0.05, 1.0), cost, 0)
    >>> later.places.min(), later.moved.shape == (20, len(members))
    (np.int64(20), True)
    """
    n, order = len(turns), np.argsort(turns, kind="stable")
    if n < LEAST_ROWS:
        return None
    edges = [int(np.searchsorted(turns[order], turns[order[int(n * share)]])) for share in ORIGINS]
    blocks = [
        (np.sort(order[:start]), order[start:end])
        for start, end in zip(edges, [*edges[1:], n], strict=True)
        if min(ORIGINS) * LEAST_ROWS <= start < end
    ]
    if not blocks:
        return None
    found = [
        _decided(rows, early, late, lagged, members, margins, pieces, seed) for early, late in blocks
    ]
    moved, stayed = (np.vstack(ways) for ways in zip(*found, strict=True))
    return LaterRows(np.concatenate([late for _, late in blocks]), moved, stayed)


def _decided(
    rows: Rows,
    early: IntArray,
    late: IntArray,
    lagged: BoolArray | None,
    members: Sequence[Member],
    margins: tuple[float, float],
    pieces: Pieces,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Return decisions on late rows, learned from early ones, in both ways."""
    seen = Rows.of(rows.contexts[early], rows.outcomes[early], rows.masses[early])
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
    return moved, stayed


def _names(members: Sequence[Member]) -> list[tuple[str, int]]:
    """Return the kind of each member, and which of its kind it is."""
    seen: Counter[str] = Counter()
    names = []
    for member in members:
        kind = type(member).__name__
        names.append((kind, seen[kind]))
        seen[kind] += 1
    return names
