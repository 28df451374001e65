"""How far a stream has come: its first samples, then its engine, watched for drift."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.engines.choice import begin_stream, restored_stream
from surefoot.engines.stream import START_ROWS, Stream, column_records, support_of
from surefoot.exceptions import InvalidInputError, SurefootError
from surefoot.online.columns import Columns
from surefoot.online.settings import Settings
from surefoot.typing import FloatArray

# Samples that wait for learning to start: rows, of as many columns as were known then, and outcomes.
FirstRows = tuple[tuple[FloatArray, FloatArray], ...]


class Following:
    """All that learning has changed, but for columns and pending decisions."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.first: FirstRows = ()
        self.stream: Stream | None = None
        self.watch = None if settings.drift is None else settings.drift.start()
        self.rows = self.restarts = 0

    @property
    def takes_new_columns(self) -> bool:
        """Whether a new column can still enter the policy."""
        return self.stream is None or self.stream.widens

    def decide(self, rows: FloatArray) -> FloatArray:
        """Return decisions, shape (rows, decisions)."""
        if self.stream is None:
            return np.tile(first_decision(self.first, self.settings), (len(rows), 1))
        return self.stream.decide(rows)

    # --- learning ---------------------------------------------------------------------------------

    def learn(
        self, columns: Columns, known: int, rows: FloatArray, outcomes: FloatArray, made: Any = None
    ) -> FloatArray:
        """Learn rows over ``columns``, of which ``known`` are not new, in order.

        ``made`` is the decision of a single row where it was made earlier. Return the decisions before
        each row was learned.
        """
        settings = self.settings
        if settings.ball.support is not None and settings.policy.features is None:
            refuse_outside(rows, *support_of(settings.ball, len(columns)), columns.names)
        if len(columns) > known and self.stream is not None and self.stream.widens:
            unseen = np.full((0, len(columns) - known), np.nan)
            self.stream.widen(records_of(unseen, columns, settings, known, self.rows))
        kept = self._kept(len(rows))
        try:
            decided = self._learn_in_order(columns, rows, outcomes, made)
        except SurefootError:
            self._put_back(*kept)  # all rows or none
            raise
        self.rows += len(rows)
        return decided

    def _learn_in_order(
        self, columns: Columns, rows: FloatArray, outcomes: FloatArray, made: Any
    ) -> FloatArray:
        running = self.stream
        if running is not None:
            return self._go_on(running, rows, outcomes, made)
        taken = START_ROWS - len(self.first)
        decided = self._begin(columns, rows[:taken], outcomes[:taken])
        if self.stream is None or taken >= len(rows):
            return decided
        return np.concatenate([decided, self._go_on(self.stream, rows[taken:], outcomes[taken:], made)])

    def _kept(self, n_rows: int) -> tuple[Any, ...]:
        """Return what ``_put_back`` needs; without drift an engine itself takes all rows or none."""
        watched = self.watch is not None and self.stream is not None and n_rows > 1
        arrays = self.stream.arrays() if watched and self.stream is not None else None
        seen = self.watch.state() if watched and self.watch is not None else None
        return self.first, self.stream, self.restarts, arrays, seen

    def _put_back(
        self, first: FirstRows, stream: Stream | None, restarts: int, arrays: Any, seen: Any
    ) -> None:
        self.first, self.stream, self.restarts = first, stream, restarts
        if self.settings.drift is not None and (seen is not None or stream is None):
            self.watch = self.settings.drift.start()
        if stream is not None and arrays is not None and self.watch is not None:
            stream.put(arrays)
            self.watch.restore(seen)

    def _begin(self, columns: Columns, rows: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Keep first rows; begin when there are enough."""
        first, decided = self.first, []
        for row, outcome in zip(rows, outcomes, strict=True):
            decided.append(first_decision(first, self.settings, outcome.size))
            refuse_endless(self.settings, decided[-1], outcome)
            first = (*first, (row.copy(), outcome.copy()))
        if len(first) == START_ROWS:
            if len(columns) == 0:
                raise InvalidInputError(
                    f"the first {START_ROWS} contexts must have a key with a value, got none."
                )
            contexts, seen = first_matrices(first, len(columns))
            records = records_of(contexts, columns, self.settings)
            options = self.settings.stream_options
            self.stream, first = begin_stream(options, records, contexts, seen), ()
        self.first = first
        return np.array(decided)

    def _go_on(self, stream: Stream, rows: FloatArray, outcomes: FloatArray, made: Any) -> FloatArray:
        """Take rows through the engine; where drift is watched, block by block."""
        if self.watch is None:
            return stream.learn(rows, outcomes)
        decided, place = [], 0
        while place < len(rows):
            block = slice(place, place + stream.block)
            before = stream.arrays() if len(rows) > 1 else {}
            decisions = stream.learn(rows[block], outcomes[block])
            looked_at = decisions if made is None else np.asarray(made)[None, :]
            rise = self._first_rise(stream.realised(looked_at, outcomes[block]))
            if rise is not None:
                if rise + 1 < len(decisions):  # the rest of the block is learned after the restart
                    stream.put(before)
                    decisions = stream.learn(
                        rows[place : place + rise + 1], outcomes[place : place + rise + 1]
                    )
                stream.restart()
            decided.append(decisions)
            place += len(decisions)
        return np.concatenate(decided)

    def _first_rise(self, costs: FloatArray) -> int | None:
        """Show costs to the watch; return where it found a rise, and start it afresh then."""
        drift, watch = self.settings.drift, self.watch
        if drift is None or watch is None:
            return None
        for place, cost in enumerate(costs.tolist()):
            if watch.update(cost):
                self.watch, self.restarts = drift.start(), self.restarts + 1
                return place
        return None

    # --- saving -----------------------------------------------------------------------------------

    def state(self, n_columns: int) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Return plain values and arrays."""
        rows, outcomes = first_matrices(self.first, n_columns)
        arrays = {"first_rows": rows, "first_outcomes": outcomes}
        values = {
            "learning": self.stream is not None,
            "rows": self.rows,
            "restarts": self.restarts,
            "watch": None if self.watch is None else self.watch.state(),
        }
        return values, arrays if self.stream is None else arrays | self.stream.arrays()

    @classmethod
    def restore(
        cls, settings: Settings, values: Mapping[str, Any], arrays: Mapping[str, FloatArray]
    ) -> "Following":
        """Return the progress that ``state`` described."""
        following = cls(settings)
        following.first = tuple(zip(arrays["first_rows"], arrays["first_outcomes"], strict=True))
        if values["learning"]:
            options, outcomes = settings.stream_options, int(values["outcomes"])
            following.stream = restored_stream(options, outcomes, arrays)
        following.rows, following.restarts = int(values["rows"]), int(values["restarts"])
        if following.watch is not None:
            following.watch.restore(values["watch"])
        return following


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
