"""One step on a stream as a formula: the slow, pure NumPy twin of ``engines.stream_kernels``.

``stream_update(stream, sample, form, rules) -> stream`` takes the newest pair into the running scale,
hands the scaled pair to ``affine_twin.update`` (the one step of DA-SGD), and averages. Values far
outside what a column has shown are taken as the nearest that are not.
"""

from dataclasses import dataclass, replace

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.engines.stream_kernels import (
    ADAPTIVE_RULE,
    CONSTANT_SHARE,
    CUT_ROWS,
    CUT_SPREADS,
    DECAYING_RULE,
    HELD_ROWS,
    SETTLED_ROWS,
    SETTLED_SQUARES,
    SHORT_WINDOW,
    TAIL,
)
from surefoot.typing import BoolArray, FloatArray
from tests.oracles.affine_twin import Sample, State, update


@dataclass(frozen=True, eq=False)
class StreamRules:
    """How a stream steps, averages and forgets; see ``surefoot.online`` for what each means."""

    radius_rows: float = 0.0
    scaled: bool = True
    step_rule: float = ADAPTIVE_RULE
    step_size: float = 0.0
    averages: bool = True
    window: float = 0.0


@dataclass(frozen=True, eq=False)
class Columns:
    """What is known of each column, as arrays of shape (columns,).

    Attributes
    ----------
    mean, deviations, count
        Running mean, sum of squared deviations and values seen.
    low, high
        The range of the values, as they were taken.
    uncut
        Whether no value is ever cut.
    cut
        How many values were.
    """

    mean: FloatArray
    deviations: FloatArray
    count: FloatArray
    low: FloatArray
    high: FloatArray
    uncut: BoolArray
    cut: FloatArray

    @property
    def spread(self) -> FloatArray:
        """Standard deviations, zero where they are only rounding."""
        spread = np.sqrt(self.deviations / np.maximum(self.count, 1.0))
        return np.where(spread > CONSTANT_SHARE * np.abs(self.mean), spread, 0.0)

    @property
    def range(self) -> tuple[FloatArray, FloatArray]:
        """The values that are taken as they are: those in the range seen or within six spreads."""
        free = (self.count < CUT_ROWS) | (self.count >= SETTLED_ROWS) | self.uncut | (self.spread == 0)
        least = np.minimum(self.low, self.mean - CUT_SPREADS * self.spread)
        most = np.maximum(self.high, self.mean + CUT_SPREADS * self.spread)
        return np.where(free, -np.inf, least), np.where(free, np.inf, most)

    def known(self, x: FloatArray) -> FloatArray:
        """Return a context as it is taken: the mean where a value is missing, far values cut."""
        return np.clip(np.where(np.isnan(x), self.mean, x), *self.range)


@dataclass(frozen=True, eq=False)
class Stream:
    """All that the next step of a stream needs to know, for one product.

    Attributes
    ----------
    columns
        What is known of each column.
    state
        The state of ``affine_twin.update``, with theta in the user's units and the intercept at the
        mean: z = theta'(x - mean) + t.
    average, average_intercept
        The averaged policy, in the same units.
    rows
        Samples since the start or the last restart.
    """

    columns: Columns
    state: State
    average: FloatArray
    average_intercept: float
    rows: int


def decide(stream: Stream, x: FloatArray, form: WassersteinForm) -> float:
    """Return the averaged policy's decision."""
    centre = stream.columns.mean if form.intercept else 0.0
    return float(stream.average @ (stream.columns.known(x) - centre)) + stream.average_intercept


def stream_update(stream: Stream, sample: Sample, form: WassersteinForm, rules: StreamRules) -> Stream:
    """Take one step on the newest pair, missing entries of the context being NaN.

    Parameters
    ----------
    stream
        Where the stream stands; it is not changed.
    sample
        (x, y) in the user's units.
    form
        The geometry in the user's units: lines, radius, order, support, columns that may move.
    rules
        How the stream steps, averages and forgets.
    """
    x, y = sample
    stream = _taken_into_scale(stream, x, form, rules)
    rows = stream.rows + 1
    time = min(rows, rules.window) if rules.window else rows
    here, unit, scaled = _scaled(stream.columns, x, form, rules)
    radius = form.radius
    if rules.radius_rows and time > rules.radius_rows:
        radius *= np.sqrt(rules.radius_rows / time)
    before = _with_given_step(replace(stream.state, theta=stream.state.theta * unit), rules, time)
    state, _ = update(before, (scaled, y), replace(here, radius=radius))
    state = replace(state, theta=state.theta / unit)
    share = (1.0 + TAIL) / (time + TAIL) if rules.averages else 1.0
    keep = 1.0 - 1.0 / rules.window if rules.window and rows > rules.window else 1.0
    average = share * state.theta + (1.0 - share) * stream.average
    travelled = state.travelled
    if keep < 1.0 and rules.window < SHORT_WINDOW * len(average):
        travelled = max(keep * travelled, float(np.linalg.norm(average * unit)))
    return replace(
        stream,
        state=replace(
            state,
            travelled=travelled,
            squares=keep * state.squares,
            intercept_squares=keep * state.intercept_squares,
            multiplier_squares=keep * state.multiplier_squares,
        ),
        average=average,
        average_intercept=share * state.intercept + (1.0 - share) * stream.average_intercept,
        rows=rows,
    )


def taken_in(columns: Columns, x: FloatArray, window: float = 0.0) -> Columns:
    """Return mean, spread and range with one context more (Welford); a window forgets the oldest."""
    seen = ~np.isnan(x) & (columns.count < SETTLED_ROWS)
    value = np.where(seen, columns.known(x), columns.mean)
    count = columns.count + seen
    full = (window > 0) & (count > window) & seen
    count = np.where(full, window, count)
    kept = np.where(full, (window - 1.0) / np.maximum(columns.count, 1.0), 1.0)
    away = value - columns.mean
    mean = columns.mean + away / np.maximum(count, 1.0)
    return replace(
        columns,
        mean=mean,
        deviations=kept * columns.deviations + away * (value - mean),
        count=count,
        low=np.where(seen, np.minimum(columns.low, value), columns.low),
        high=np.where(seen, np.maximum(columns.high, value), columns.high),
        cut=columns.cut + (seen & (value != x)),
    )


def _taken_into_scale(
    stream: Stream, x: FloatArray, form: WassersteinForm, rules: StreamRules
) -> Stream:
    """Update the columns; intercepts follow the mean, so that no decision moves.

    Where a value was cut, the column is wider than it was thought to be: parameters shrink as the spread
    grows, as what was learned within a narrow range says nothing of the wider one.
    """
    before, columns = stream.columns, taken_in(stream.columns, x, rules.window)
    shift = columns.mean - before.mean if form.intercept else np.zeros_like(columns.mean)
    widened = (columns.cut > before.cut) & (before.spread > 0.0) & form.intercept
    shrink = np.where(
        widened, np.minimum(1.0, before.spread / np.where(widened, columns.spread, 1.0)), 1.0
    )
    state, moved = stream.state, float(stream.state.theta @ shift)
    return replace(
        stream,
        columns=columns,
        state=replace(
            state,
            theta=shrink * state.theta,
            intercept=state.intercept + moved,
            start=state.start + moved,
            travelled=state.travelled if rules.scaled else state.travelled * float(shrink.prod()),
        ),
        average=shrink * stream.average,
        average_intercept=stream.average_intercept + float(stream.average @ shift),
    )


def _scaled(
    columns: Columns, x: FloatArray, form: WassersteinForm, rules: StreamRules
) -> tuple[WassersteinForm, FloatArray, FloatArray]:
    """Return the geometry in scaled units, the unit of each column and the scaled context."""
    spread = columns.spread
    unit = np.where(rules.scaled & (spread > 0.0), spread, 1.0)
    centre = columns.mean if form.intercept else np.zeros_like(columns.mean)
    scaled = np.where(columns.count >= HELD_ROWS, (columns.known(x) - centre) / unit, 0.0)
    here = replace(
        form,
        movable=form.movable & (spread > 0.0) if rules.scaled else form.movable,
        lower=(form.lower - centre) / unit,
        upper=(form.upper - centre) / unit,
    )
    return here, unit, scaled


def _with_given_step(state: State, rules: StreamRules, time: float) -> State:
    """Return a state that steps by the given size: sums so large that one gradient adds nothing."""
    if rules.step_rule == ADAPTIVE_RULE:
        return state
    size = rules.step_size / np.sqrt(time) if rules.step_rule == DECAYING_RULE else rules.step_size
    travelled = size * float(np.sqrt(SETTLED_SQUARES))
    return replace(
        state,
        squares=SETTLED_SQUARES,
        intercept_squares=SETTLED_SQUARES,
        travelled=travelled,
        intercept_travelled=travelled,
    )
