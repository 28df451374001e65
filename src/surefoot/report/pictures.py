"""The pictures of a report: decisions over time, dots with intervals, lines."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.report.svg import (
    Frame,
    day_ticks,
    dot,
    drawing,
    left_of,
    line,
    number,
    padded,
    path,
    text,
    ticks,
)
from surefoot.typing import FloatArray

# A picture half a page wide is as wide as a telephone.
HALF, WIDE, NARROW = 360.0, 740.0, 360.0
# So many rows are drawn one by one, the newest, on paper and on a telephone.
WIDE_ROWS, NARROW_ROWS = 180, 60
# More lines than this in a panel cannot be told apart.
MOST_LINES = 7


class Interval(NamedTuple):
    """A number with its interval, and what it is of; ``kind`` is the class of its colour."""

    label: str
    value: float
    low: float
    high: float
    kind: str = "other"


class Line(NamedTuple):
    """A named line; ``kind`` is the class of its colour and dashes."""

    label: str
    values: Sequence[float]
    kind: str


def over_time(
    outcomes: FloatArray | None, decisions: FloatArray, days: NDArray[Any] | None, label: str
) -> str:
    """Return decisions as a line and outcomes as dots, newest rows, for paper and for telephones.

    Outcomes of another unit than decisions are None. Without days rows are numbered from zero.
    """
    return "".join(
        _over_time(None if outcomes is None else outcomes[-rows:], decisions[-rows:],
                   None if days is None else days[-rows:], max(0, len(decisions) - rows), label, width,
                   kind)
        for width, rows, kind in ((WIDE, WIDE_ROWS, "wide"), (NARROW, NARROW_ROWS, "narrow"))
    )  # fmt: skip


def _over_time(
    outcomes: FloatArray | None, decisions: FloatArray, days: NDArray[Any] | None, first: int,
    label: str, width: float, kind: str,
) -> str:  # fmt: skip
    count = len(decisions)
    values = decisions if outcomes is None else np.append(outcomes, decisions)
    heights = padded(values, zero=bool((values >= 0).all()))
    frame = Frame(left_of(heights), width - 8.0, 26.0, 236.0, (-0.5, count - 0.5), heights)
    parts = frame.y_axis(label)
    parts.append(line(frame.left, frame.bottom, frame.right, frame.bottom, "axis"))
    across = int(width // 110)
    marks = (
        [(int(k), str(first + int(k))) for k in ticks(0.0, count - 1.0, across)]
        if days is None
        else day_ticks(days, across)
    )
    for place, name in marks:
        x = float(frame.x(place))
        end = "end" if x > frame.right - 30.0 else "middle"
        parts.append(line(x, frame.bottom, x, frame.bottom + 4, "axis"))
        parts.append(text(x, frame.bottom + 18, name, anchor=end))
    xs = frame.x(np.arange(count))
    if outcomes is not None:
        parts += [dot(x, y, "outcome", 2.6) for x, y in zip(xs, frame.y(outcomes), strict=True)]
    parts.append(path(xs, frame.y(decisions), "decision"))
    dots_too = "" if outcomes is None else " and outcomes (dots)"
    words = f"Decisions (line){dots_too} of {count} rows."
    return drawing(width, 260.0, parts, words, kind)


def dots(entries: Sequence[Interval], label: str, *, zero: bool = False) -> str:
    """Return numbers with their intervals, one below the other, each under its name.

    With ``zero`` a line marks zero. The names stand above, so that long ones have room.
    """
    ends = [value for entry in entries for value in (entry.value, entry.low, entry.high)]
    span = padded([*ends, 0.0] if zero else ends)
    bottom = 8.0 + 34.0 * len(entries)
    frame = Frame(6.0, HALF - 6.0, 6.0, bottom, span, (0.0, 1.0))
    parts = frame.x_axis(label, 4, grid=True)
    if zero:
        parts.append(line(float(frame.x(0.0)), frame.top, float(frame.x(0.0)), bottom, "axis"))
    for place, entry in enumerate(entries):
        top = 20.0 + 34.0 * place
        parts.append(text(8.0, top, entry.label, "name", longest=36))
        shown = f"{entry.value:+.3g}" if zero else f"{entry.value:.4g}"
        parts.append(text(HALF - 8.0, top, shown, "value", "end"))
        y = top + 11.0
        words = f"{entry.label}: {shown}"
        if not (math.isnan(entry.low) or math.isnan(entry.high)):
            x1, x2 = float(frame.x(entry.low)), float(frame.x(entry.high))
            parts.append(line(x1, y, x2, y, f"bar {entry.kind}"))
            words += f", 95 % interval {entry.low:.4g} to {entry.high:.4g}"
        parts.append(dot(float(frame.x(entry.value)), y, f"mark {entry.kind}", 4.5, words))
    said = "; ".join(f"{entry.label} {entry.value:.4g}" for entry in entries)
    return drawing(HALF, bottom + 40.0, parts, f"{label}: {said}")


def swatch(kind: str) -> str:
    """Return a piece of a line as it is drawn, or a dot for "outcome", for a legend."""
    mark = dot(13.0, 4.0, kind, 3.0) if kind == "outcome" else line(1.0, 4.0, 25.0, 4.0, kind)
    return f'<svg viewBox="0 0 26 8" aria-hidden="true" xmlns="http://www.w3.org/2000/svg">{mark}</svg>'


def lines(xs: Sequence[float], entries: Sequence[Line], label: str, height: str) -> str:
    """Return named lines over common places; the names are in the legend beside the picture."""
    everything = [value for entry in entries for value in entry.values]
    heights = padded(everything)
    across = float(xs[0]), float(xs[-1])
    frame = Frame(left_of(heights), HALF - 12.0, 26.0, 196.0, across, heights)
    parts = [*frame.y_axis(height), *frame.x_axis(label, 5)]
    for entry in entries[:MOST_LINES]:
        parts.append(path(frame.x(xs), frame.y(entry.values), f"curve {entry.kind}"))
        for x, value in zip(xs, entry.values, strict=True):
            words = f"{entry.label}: {value:.4g} at {number(float(x), 0.05)}"
            parts.append(
                dot(float(frame.x(x)), float(frame.y(value)), f"mark {entry.kind}", 2.6, words)
            )
    said = "; ".join(f"{e.label} from {e.values[0]:.4g} to {e.values[-1]:.4g}" for e in entries)
    return drawing(HALF, 236.0, parts, f"{height} by {label}: {said}")
