"""One step on a stream as a formula: the slow, pure NumPy twin of ``engines.online``.

``stream_update(stream, sample, problem, rules) -> stream`` takes the newest pair into the running
scale, hands the scaled pair to ``twin.update`` (the one step of DA-SGD), and averages.
"""

from dataclasses import dataclass, replace

import numpy as np

from surefoot.engines.online_constants import (
    ADAPTIVE_RULE,
    CONSTANT_SHARE,
    DECAYING_RULE,
    HELD_ROWS,
    SETTLED_SQUARES,
    TAIL,
)
from surefoot.engines.twin import Sample, State, update
from surefoot.problem import AffineProblem
from surefoot.typing import FloatArray


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
class Stream:
    """All that the next step of a stream needs to know, for one product.

    Attributes
    ----------
    mean, deviations, count
        Shape (columns,): running mean, sum of squared deviations and samples seen.
    state
        The state of ``twin.update``, with theta in the user's units and the intercept at the mean:
        z = theta'(x - mean) + t.
    average, average_intercept
        The averaged policy, in the same units.
    rows
        Samples since the start or the last restart.
    """

    mean: FloatArray
    deviations: FloatArray
    count: FloatArray
    state: State
    average: FloatArray
    average_intercept: float
    rows: int


def stream_update(stream: Stream, sample: Sample, problem: AffineProblem, rules: StreamRules) -> Stream:
    """Take one step on the newest pair, missing entries of the context being NaN.

    Parameters
    ----------
    stream
        Where the stream stands; it is not changed.
    sample
        (x, y) in the user's units.
    problem
        The geometry in the user's units: pieces, radius, order, support, columns that may move.
    rules
        How the stream steps, averages and forgets.
    """
    x, y = sample
    stream = _taken_into_scale(stream, x, problem, rules)
    rows = stream.rows + 1
    time = min(rows, rules.window) if rules.window else rows
    here, unit, scaled = _scaled(stream, x, problem, rules)
    radius = problem.radius
    if rules.radius_rows and time > rules.radius_rows:
        radius *= np.sqrt(rules.radius_rows / time)
    before = _with_given_step(replace(stream.state, theta=stream.state.theta * unit), rules, time)
    state, _ = update(before, (scaled, y), replace(here, radius=radius))
    state = replace(state, theta=state.theta / unit)
    share = (1.0 + TAIL) / (time + TAIL) if rules.averages else 1.0
    keep = 1.0 - 1.0 / rules.window if rules.window and rows > rules.window else 1.0
    return replace(
        stream,
        state=replace(
            state,
            squares=keep * state.squares,
            intercept_squares=keep * state.intercept_squares,
            multiplier_squares=keep * state.multiplier_squares,
        ),
        average=share * state.theta + (1.0 - share) * stream.average,
        average_intercept=share * state.intercept + (1.0 - share) * stream.average_intercept,
        rows=rows,
    )


def _taken_into_scale(
    stream: Stream, x: FloatArray, problem: AffineProblem, rules: StreamRules
) -> Stream:
    """Update mean and spread (Welford); intercepts follow the mean, so that no decision moves."""
    seen = ~np.isnan(x)
    count = stream.count + seen
    full = (rules.window > 0) & (count > rules.window) & seen
    count = np.where(full, rules.window, count)
    kept = np.where(full, (rules.window - 1.0) / np.maximum(stream.count, 1.0), 1.0)
    away = np.where(seen, x - stream.mean, 0.0)
    mean = stream.mean + away / np.maximum(count, 1.0)
    deviations = kept * stream.deviations + away * np.where(seen, x - mean, 0.0)
    shift = mean - stream.mean if problem.intercept else np.zeros_like(mean)
    state, moved = stream.state, float(stream.state.theta @ shift)
    return replace(
        stream,
        mean=mean,
        deviations=deviations,
        count=count,
        state=replace(state, intercept=state.intercept + moved, start=state.start + moved),
        average_intercept=stream.average_intercept + float(stream.average @ shift),
    )


def _scaled(
    stream: Stream, x: FloatArray, problem: AffineProblem, rules: StreamRules
) -> tuple[AffineProblem, FloatArray, FloatArray]:
    """Return the geometry in scaled units, the unit of each column and the scaled context."""
    spread = np.sqrt(stream.deviations / np.maximum(stream.count, 1.0))
    spread = np.where(spread > CONSTANT_SHARE * np.abs(stream.mean), spread, 0.0)
    unit = np.where(rules.scaled & (spread > 0.0), spread, 1.0)
    centre = stream.mean if problem.intercept else np.zeros_like(stream.mean)
    known = np.where(np.isnan(x), stream.mean, x) - centre
    scaled = np.where(stream.count >= HELD_ROWS, known / unit, 0.0)
    here = replace(
        problem,
        movable=problem.movable & (spread > 0.0) if rules.scaled else problem.movable,
        lower=(problem.lower - centre) / unit,
        upper=(problem.upper - centre) / unit,
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
