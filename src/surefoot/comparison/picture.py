"""The picture of a comparison: what each method costs beyond the reference."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.exceptions import InvalidTypeError
from surefoot.io.writing import check_target
from surefoot.tracing import load_extra

if TYPE_CHECKING:
    from surefoot.comparison.result import Comparison, ComparisonRow

BETTER, WORSE, OPEN = "#0060a8", "#c8553d", "#7a7a7a"
FORMATS = (".png", ".svg", ".pdf")


def require_matplotlib(module: str = "matplotlib") -> Any:
    """Return a module of matplotlib; raise before any work if pictures cannot be drawn."""
    return load_extra(module, 'A picture needs matplotlib: run pip install "surefoot[cli]".')


def draw_onto(target: Any, method: str, size: tuple[float, float], draw: Callable[[Any], None]) -> None:
    """Draw onto axes, which have a method of this name, or into a file of so many inches."""
    if hasattr(target, method):
        draw(target)
        return
    if not isinstance(target, str | Path):
        raise InvalidTypeError(f"A picture must go to a path or to axes, got {target!r}.")
    path = check_target(Path(target), FORMATS, "A picture")
    # A figure of its own, without pyplot: no window, no global state.
    figure = require_matplotlib("matplotlib.figure").Figure(figsize=size, layout="constrained")
    draw(figure.subplots())
    figure.savefig(path, dpi=150)


def draw(comparison: "Comparison", target: Any) -> None:
    """Draw into a file, or onto axes."""
    require_matplotlib()
    shown = [row for row in comparison.rows if not math.isnan(row.cost)]
    draw_onto(target, "barh", (8.2, 1.7 + 0.42 * len(shown)), partial(_draw, comparison))


def _draw(comparison: "Comparison", axes: Any) -> None:
    rows = [row for row in comparison.rows if not math.isnan(row.difference)]
    rows = sorted(rows, key=lambda row: row.cost)[::-1]  # the cheapest on top, as in the table
    for place, row in enumerate(rows):
        _mark(axes, place, row, comparison)
    axes.axvline(0.0, color="#333333", linewidth=0.8, zorder=1)
    axes.set_yticks(range(len(rows)), [f"{row.method}  ({row.cost:.4g})" for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel(
        f"cost beyond that of {comparison.reference}, with {100 * comparison.confidence:g} % "
        "intervals\n"
        "(blue: costs less, red: costs more, grey: not settled)"
    )
    axes.set_title(comparison.splits.describe(comparison.rows_in_all), loc="left", fontsize=10)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)


def _mark(axes: Any, place: int, row: "ComparisonRow", comparison: "Comparison") -> None:
    if row.method == comparison.reference:
        axes.plot([0.0], [place], "D", color="#333333", markersize=6, zorder=3)
        return
    colour = BETTER if row.high < 0 else WORSE if row.low > 0 else OPEN
    if not math.isnan(row.low):
        axes.plot([row.low, row.high], [place, place], color=colour, linewidth=2.4, zorder=2,
                  solid_capstyle="butt")  # fmt: skip
    axes.plot([row.difference], [place], "o", color=colour, markersize=7, zorder=3)
