"""The picture of a panel: what policies save against the constant order, over all series."""

import math
from functools import partial
from typing import Any

import numpy as np

from surefoot.comparison.picture import draw_onto, require_matplotlib
from surefoot.exceptions import InvalidInputError

BETTER, WORSE = "#0060a8", "#c8553d"
BINS = 40


def draw_savings(table: Any, target: Any) -> None:
    """Draw into a file, or onto axes."""
    require_matplotlib()
    savings = np.array([record.saving for record in table.records])
    savings = 100.0 * savings[np.isfinite(savings)]
    if not len(savings):
        raise InvalidInputError(
            "A picture needs costs on rows held out, got none: leave the radius to the fit."
        )
    draw_onto(target, "hist", (8.2, 4.0), partial(_draw, savings, len(table)))


def _draw(savings: Any, series: int, axes: Any) -> None:
    low, high = np.quantile(savings, [0.005, 0.995])
    step = max((high - low) / BINS, 1e-9)
    # Zero is an edge, so that a bar is on one side of it.
    edges = step * np.arange(math.floor(low / step), math.ceil(high / step) + 2)
    shown = np.clip(savings, edges[0], edges[-1])
    _, _, bars = axes.hist(shown, bins=edges)
    for bar, left in zip(bars, edges, strict=False):
        bar.set_facecolor(BETTER if left >= -1e-12 else WORSE)
    median, better = float(np.median(savings)), float(np.mean(savings > 0.0))
    axes.axvline(0.0, color="#333333", linewidth=0.8)
    axes.axvline(median, color="#333333", linewidth=1.0, linestyle="--")
    axes.set_xlabel("cost below the constant order, % (rows held out)")
    axes.set_ylabel("series")
    axes.set_title(
        f"{len(savings):,} of {series:,} series: median {median:.1f} %, "
        f"cheaper in {100 * better:.0f} %",
        loc="left", fontsize=11,
    )  # fmt: skip
