"""Pictures as inline SVG: text stays text, and colours come from the page, light or dark.

Nothing is loaded for it, and the same figures give the same bytes.
"""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.typing import FloatArray

# Letters beyond this are cut off, and shown in full where the pointer rests.
LONGEST_LABEL = 44
# About how wide a digit is, in the fonts that the page asks for.
LETTER = 7.5
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def text(
    x: float,
    y: float,
    words: str,
    kind: str = "tick",
    anchor: str = "start",
    longest: int = LONGEST_LABEL,
) -> str:
    """Return words at a place; long ones are cut and have their full text as a title."""
    shown, more = words, ""
    if len(words) > longest:
        shown, more = words[: longest - 1] + "…", f"<title>{html.escape(words)}</title>"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{html.escape(shown)}{more}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def dot(x: float, y: float, kind: str, radius: float, words: str = "") -> str:
    """Return a dot, with words where the pointer rests."""
    title = f"<title>{html.escape(words)}</title>" if words else ""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">{title}</circle>'


def path(xs: Iterable[float], ys: Iterable[float], kind: str) -> str:
    """Return a line through points."""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    return f'<polyline class="{kind}" points="{points}"/>'


def drawing(width: float, height: float, parts: Sequence[str], words: str, kind: str = "") -> str:
    """Return the parts as one picture that says in words what it shows."""
    name = f' class="{kind}"' if kind else ""
    return (
        f'<svg{name} viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{html.escape(words)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def ticks(low: float, high: float, count: int = 5) -> FloatArray:
    """Return round numbers from ``low`` to ``high``, about so many.

    >>> ticks(0.0, 103.0)
    array([  0.,  20.,  40.,  60.,  80., 100.])
    """
    if not high > low:
        return np.array([low])
    rough = (high - low) / max(count, 1)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(size * unit for size in (1.0, 2.0, 5.0, 10.0) if size * unit >= 0.7 * rough)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return np.array([k * step for k in range(first, last + 1)])


def number(value: float, step: float = 0.0) -> str:
    """Return a number for an axis, with the decimals that its steps need.

    >>> number(0.30000000000000004, 0.1), number(1200.0, 200.0), number(2.5e9, 5e8)
    ('0.3', '1,200', '2.5e+09')
    """
    if abs(value) >= 1e7 or 0.0 < abs(step) < 1e-4:
        return f"{value:.3g}"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0.0 else 2
    shown = f"{value:,.{decimals}f}"
    return shown.removeprefix("-") if float(shown.replace(",", "")) == 0.0 else shown


def day_ticks(days: Any, count: int = 6) -> list[tuple[int, str]]:
    """Return positions among ordered days at which something begins, and what: day, month or year.

    >>> days = np.arange("2024-01-15", "2024-07-01", dtype="datetime64[D]")
    >>> [name for _, name in day_ticks(days, 3)]
    ['Mar 2024', 'May']
    >>> [name for _, name in day_ticks(days[:10], 3)]
    ['15 Jan', '19 Jan', '24 Jan']
    """
    first, last = days[0], days[-1]
    months = int((last.astype("datetime64[M]") - first.astype("datetime64[M]")).astype(int)) + 1
    if months < max(3, count // 2):
        places = np.unique(np.linspace(0, len(days) - 1, min(count, len(days))).round().astype(int))
        return [(int(k), _day_name(days[k])) for k in places]
    step = next(size for size in (1, 2, 3, 4, 6, 12, 24, 60, 120, 600) if months / size <= count)
    start = int(first.astype("datetime64[M]").astype(int)) + 1
    ticks: list[tuple[int, str]] = []
    for month in range(start, start + months - 1):
        if month % step == 0:
            place = int(np.searchsorted(days, np.datetime64(month, "M").astype("datetime64[D]")))
            new_year = month % 12 == 0 or not ticks
            ticks.append((min(place, len(days) - 1), _month_name(month, year=new_year)))
    return ticks


def _month_name(month: int, *, year: bool) -> str:
    name = _MONTHS[month % 12]
    return f"{name} {1970 + month // 12}" if year else name


def _day_name(day: Any) -> str:
    month = day.astype("datetime64[M]")
    number_of_day = int((day - month.astype("datetime64[D]")).astype(int)) + 1
    return f"{number_of_day} {_MONTHS[int(month.astype(int)) % 12]}"


@dataclass(frozen=True)
class Frame:
    """A rectangle in a picture, and the numbers at its edges."""

    left: float
    right: float
    top: float
    bottom: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: Any) -> Any:
        """Return where a number lies across."""
        low, high = self.x_range
        return self.left + (np.asarray(value) - low) / ((high - low) or 1.0) * (self.right - self.left)

    def y(self, value: Any) -> Any:
        """Return where a number lies up."""
        low, high = self.y_range
        return self.bottom - (np.asarray(value) - low) / ((high - low) or 1.0) * (
            self.bottom - self.top
        )

    def x_axis(self, label: str, count: int = 5, *, grid: bool = False) -> list[str]:
        """Return numbers below, as many as have room, and what they are."""
        parts = [line(self.left, self.bottom, self.right, self.bottom, "axis")]
        for value, name in self._roomy(count):
            x = float(self.x(value))
            if grid:
                parts.append(line(x, self.top, x, self.bottom, "grid"))
            parts.append(text(x, self.bottom + 17, name, anchor=self.anchor(x, name)))
        middle = 0.5 * (self.left + self.right)
        return [*parts, text(middle, self.bottom + 33, label, "label", "middle", longest=64)]

    def _roomy(self, count: int) -> list[tuple[float, str]]:
        """Return at most about so many numbers below, fewer where their names are long."""
        named: list[tuple[float, str]] = []
        for fewer in range(count, 0, -1):
            places = ticks(*self.x_range, fewer)
            step = float(places[1] - places[0]) if len(places) > 1 else 0.0
            named = [(float(value), number(float(value), step)) for value in places]
            # Names at both ends are pushed inside, so one and a half of them must fit between two.
            widest = 1.5 * LETTER * max((len(name) for _, name in named), default=0)
            if len(named) < 2 or float(self.x(places[1]) - self.x(places[0])) >= widest:
                break
        return named

    def anchor(self, x: float, words: str) -> str:
        """Return how words at a place are put so that they stay inside."""
        half = 0.5 * LETTER * len(words)
        if x + half > self.right + 6.0:
            return "end"
        return "start" if x < half else "middle"

    def y_axis(self, label: str, count: int = 5) -> list[str]:
        """Return numbers on the left with lines across, and what they are, above."""
        places = ticks(*self.y_range, count)
        step = float(places[1] - places[0]) if len(places) > 1 else 0.0
        parts = [text(0.0, self.top - 8, label, "label", longest=64)]
        for value in places:
            y = float(self.y(value))
            parts.append(line(self.left, y, self.right, y, "grid"))
            parts.append(text(self.left - 5, y + 4, number(float(value), step), anchor="end"))
        return parts


def left_of(heights: tuple[float, float], count: int = 5) -> float:
    """Return where a frame may begin, so that the numbers on its left have room.

    >>> left_of((0.0, 100.0)), left_of((0.0, 1e6)) > 60.0
    (44.0, True)
    """
    places = ticks(*heights, count)
    step = float(places[1] - places[0]) if len(places) > 1 else 0.0
    return max(
        44.0, 9.0 + LETTER * max((len(number(float(value), step)) for value in places), default=0)
    )


def padded(values: Iterable[float], *, zero: bool = False) -> tuple[float, float]:
    """Return a range with some room around values, from zero on if asked for."""
    finite = np.array([value for value in values if math.isfinite(value)])
    if len(finite) == 0:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return (low if zero and low == 0.0 else low - room), high + room
