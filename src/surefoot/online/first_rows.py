"""The first samples of a stream: kept until there are enough to know the scale of things."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.engines.stream import column_records, support_of
from surefoot.exceptions import InvalidInputError
from surefoot.online.columns import Columns
from surefoot.online.settings import Settings
from surefoot.typing import FloatArray

# Samples that wait for learning to start: rows, of as many columns as were known then, and outcomes.
FirstRows = tuple[tuple[FloatArray, FloatArray], ...]


def first_matrices(first: FirstRows, n_columns: int) -> tuple[FloatArray, FloatArray]:
    """Return contexts, NaN where a column was not known yet, and outcomes."""
    contexts = np.full((len(first), n_columns), np.nan)
    for k, (row, _) in enumerate(first):
        contexts[k, : len(row)] = row
    return contexts, np.array([outcome for _, outcome in first]) if first else np.zeros((0, 0))


def first_decision(first: FirstRows, settings: Settings, n_outcomes: int | None = None) -> FloatArray:
    """Return the best constant decision for the outcomes so far, shape (decisions,).

    Before the first outcome it is zero; ``n_outcomes`` says how many numbers one has, if known.
    """
    limits = settings.policy.decisions
    if first:
        outcomes = np.array([outcome for _, outcome in first])
        decision, _ = settings.cost.typical(outcomes, np.full(len(outcomes), 1.0 / len(outcomes)))
    elif n_outcomes is None and limits is not None and not limits.in_units:
        raise InvalidInputError(
            "decide must come after one learned outcome where decisions share a total, got none: "
            "how many numbers a decision has is not known yet."
        )
    else:
        decision = np.zeros(settings.cost.n_decisions(n_outcomes or 1))
    return decision if limits is None else limits.map_into(decision)


def refuse_endless(settings: Settings, decision: FloatArray, outcome: FloatArray) -> None:
    """Refuse a sample without a finite cost at once: kept, it would stop every later start."""
    cost = settings.cost.evaluate(decision[None, :], outcome[None, :])
    if not np.isfinite(cost).all():
        raise InvalidInputError(
            f"the cost must be finite at y, got {cost.item():g} for y = {outcome.tolist()}."
        )


def records_of(
    rows: FloatArray, columns: Columns, settings: Settings, after: int = 0, rows_before: int = 0
) -> Any:
    """Return what is known of the columns from place ``after`` on.

    Parameters
    ----------
    rows
        Shape (rows, new columns), NaN where nothing was seen.
    rows_before
        Samples learned before: a new indicator was zero in all of them.
    """
    size, named = len(columns), settings.ball.frozen
    if after == 0 and settings.policy.features is None:
        named = columns.frozen_columns(named)
    frozen = np.array([columns.is_frozen(place, named) for place in range(after, size)])
    if settings.policy.features is None:
        lower, upper = support_of(settings.ball, size)
    else:
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    indicator = np.array([text is not None for _, text in columns.columns[after:]], dtype=bool)
    zeros = np.where(indicator, float(rows_before), 0.0)
    return column_records(rows, frozen.astype(bool), (lower[after:], upper[after:]), zeros)


def refuse_outside(
    rows: FloatArray, lower: FloatArray, upper: FloatArray, names: Sequence[str]
) -> None:
    """Refuse contexts outside the support, by key."""
    outside = (rows < lower) | (rows > upper)  # a missing entry is neither
    if outside.any():
        k, j = (int(place) for place in np.argwhere(outside)[0])
        raise InvalidInputError(
            f"x[{names[j]!r}] must lie in the ball's support [{lower[j]:g}, {upper[j]:g}], "
            f"got {rows[k, j]:g}."
        )
