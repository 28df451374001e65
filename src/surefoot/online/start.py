"""The first samples of a stream: kept until there are enough to know the scale of things."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from surefoot.engines.online_constants import COUNT, DEVIATIONS, FROZEN, LOWER, MEAN, TABLE_ROWS, UPPER
from surefoot.exceptions import InvalidInputError
from surefoot.online.columns import Columns
from surefoot.online.settings import Settings
from surefoot.typing import BoolArray, FloatArray

# Learning starts with so many samples; before that, decisions are the best constant one.
START_ROWS = 16


@dataclass
class FirstRows:
    """Samples that wait for learning to start."""

    rows: list[FloatArray] = field(default_factory=list)
    outcomes: list[FloatArray] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def with_more(self, row: FloatArray, outcome: FloatArray) -> "FirstRows":
        """Return these samples and one more."""
        return FirstRows([*self.rows, row.copy()], [*self.outcomes, outcome.copy()])

    def matrices(self, n_columns: int) -> tuple[FloatArray, FloatArray]:
        """Return contexts, NaN where a column was not known yet, and outcomes."""
        contexts = np.full((len(self.rows), n_columns), np.nan)
        for k, row in enumerate(self.rows):
            contexts[k, : len(row)] = row
        return contexts, np.array(self.outcomes) if self.outcomes else np.zeros((0, 0))

    def decide(self, settings: Settings, n_outcomes: int | None = None) -> FloatArray:
        """Return the best constant decision for the outcomes so far, shape (decisions,).

        Before the first outcome it is zero; ``n_outcomes`` says how many numbers one has, if known.
        """
        limits = settings.policy.decisions
        if self.rows:
            outcomes = np.array(self.outcomes)
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


def column_table(
    rows: FloatArray, columns: Columns, settings: Settings, after: int = 0, rows_before: int = 0
) -> FloatArray:
    """Return what is known of the columns from place ``after`` on.

    Parameters
    ----------
    rows
        Shape (rows, new columns), NaN where nothing was seen.
    rows_before
        Samples learned before: a new indicator was zero in all of them.
    """
    size = len(columns)
    frozen = np.array([columns.is_frozen(place, settings.ball.frozen) for place in range(after, size)])
    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    if settings.ball.support is not None and settings.policy.features is None:
        lower, upper = settings.ball.support.arrays(size)
    indicator = np.array([text is not None for _, text in columns.columns[after:]], dtype=bool)
    seen = np.where(indicator, float(rows_before), 0.0)
    return _table(rows, seen, frozen, lower[after:], upper[after:])


def feature_table(features: FloatArray, settings: Settings) -> FloatArray:
    """Return what is known of features; ``frozen`` and ``support`` of the ball speak of them."""
    size = features.shape[1]
    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    if settings.ball.support is not None:
        lower, upper = settings.ball.support.arrays(size)
    return _table(features, np.zeros(size), settings.ball.frozen_mask(size), lower, upper)


def _table(
    rows: FloatArray, zeros: FloatArray, frozen: BoolArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Return means, deviations and counts of rows and of so many zeros before them."""
    seen = ~np.isnan(rows)
    count = zeros + seen.sum(axis=0)
    mean = np.where(seen, rows, 0.0).sum(axis=0) / np.maximum(count, 1.0)
    deviations = (np.where(seen, rows - mean, 0.0) ** 2).sum(axis=0) + zeros * mean**2
    table = np.zeros((TABLE_ROWS, rows.shape[1]))
    table[MEAN], table[DEVIATIONS], table[COUNT] = mean, deviations, count
    table[FROZEN], table[LOWER], table[UPPER] = frozen, lower, upper
    return table


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
