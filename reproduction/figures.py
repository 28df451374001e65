"""Figures 1 and 2 of the paper, and the restaurant, as SVG and PNG."""

import importlib
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproduction.methods import METHODS
from reproduction.summary import Summary
from surefoot.exceptions import MissingExtraError


@dataclass(frozen=True)
class Style:
    """How a method is drawn; colours are told apart by the colour-blind, and lines differ too.

    Lines with a larger ``front`` are drawn over others, and have bands.
    """

    colour: str
    line: str | tuple[float, tuple[float, ...]] = "-"
    marker: str = ""
    width: float = 1.2
    front: int = 2


_DASHES = (0, (5, 2))
_DOTS = (0, (1, 1.4))
STYLES = {
    "ours-auto-2": Style("#0060a8", "-", "o", 2.2, 6),
    "surefoot": Style("#c1121f", "-", "o", 2.6, 7),
    "ours-auto-2-plain": Style("#3fa7e0", "-", "s", 2.2, 5),
    "ours-auto-1": Style("#0060a8", _DASHES, "", 1.1, 3),
    "ours-fixed-2": Style("#0060a8", _DOTS, "", 1.3, 3),
    "ours-fixed-1": Style("#3fa7e0", _DOTS, "", 1.3, 3),
    "literal": Style("#0b1f5b", (0, (6, 1.5, 1, 1.5)), "D", 1.6, 5),
    "saa": Style("#8a8a8a", "-", "", 1.4, 2),
    "erm-vertex": Style("#d55e00", "-", "^", 1.4, 4),
    "erm-norm": Style("#d55e00", _DASHES, "v", 1.2, 3),
    "erm-l1": Style("#e69f00", "-", "P", 1.4, 4),
    "forest": Style("#009e73", "-", "X", 1.4, 4),
    "shapley-auto": Style("#b8548f", "-", "*", 1.4, 4),
    "shapley-fixed": Style("#b8548f", _DOTS, "", 1.2, 3),
    "oracle": Style("#000000", (0, (1, 2.5)), "", 1.4, 2),
}
LABELS = {method.name: method.label for method in METHODS}
# What is drawn where more methods than these were run: more lines cannot be told apart.
DRAWN = ("surefoot", "ours-auto-2", "literal", "saa", "erm-l1", "forest", "shapley-auto")
TEXT = {"font.size": 9, "axes.titlesize": 9.5, "svg.fonttype": "none", "font.family": "sans-serif"}


@dataclass(frozen=True)
class Figure:
    """A finished figure.

    Attributes
    ----------
    name, caption
        What it is called in files and in text.
    svg, png
        The drawing, as text and as bytes.
    """

    name: str
    caption: str
    svg: str
    png: bytes

    def write(self, folder: Path) -> None:
        """Write NAME.svg and NAME.png into a folder."""
        (folder / f"{self.name}.svg").write_text(self.svg)
        (folder / f"{self.name}.png").write_bytes(self.png)

    def inline(self) -> str:
        """Return the drawing to stand inside a page: no header, no addresses, names of its own."""
        body = self.svg[self.svg.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        body = re.sub(r' xmlns(:\w+)?="[^"]*"', "", body)
        body = re.sub(r'\bid="', f'id="{self.name}-', body)
        body = re.sub(r'(href="|url\()#', rf"\1#{self.name}-", body)
        # The view box alone decides the shape, so that the page decides the size.
        head, rest = body.split(">", 1)
        return re.sub(r' (?:width|height)="[^"]*"', "", head) + ">" + rest


def pyplot() -> Any:
    """Load matplotlib without a window, or say how to install it."""
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ImportError as error:
        raise MissingExtraError('The report draws: run pip install "surefoot[cli]".') from error
    matplotlib.use("Agg")
    return importlib.import_module("matplotlib.pyplot")


def require_matplotlib() -> None:
    """Raise before any work if figures cannot be drawn."""
    pyplot()


def finish(figure: Any, name: str, caption: str) -> Figure:
    """Turn a drawn figure into bytes and close it."""
    plt = pyplot()
    text, picture = io.StringIO(), io.BytesIO()
    with plt.rc_context({"svg.hashsalt": name, **TEXT}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(picture, format="png", dpi=130)
    plt.close(figure)
    return Figure(name, caption, text.getvalue(), picture.getvalue())


def style_axes(axes: Any) -> None:
    """Give axes the look of the house."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, which="major", axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=3, color="#777777")


def _line(axes: Any, method: str, xs: Sequence[float], ys: Sequence[float], label: str) -> None:
    style = STYLES.get(method, Style("#555555"))
    edge = "white" if style.marker in ("o", "s", "D") else style.colour
    axes.plot(
        xs, ys, color=style.colour, linestyle=style.line, marker=style.marker or None,
        linewidth=style.width, markersize=3.2 + 0.8 * style.width, markeredgewidth=0.5,
        markeredgecolor=edge, zorder=style.front, label=label,
    )  # fmt: skip


def _legend(figure: Any, axes: Sequence[Any], columns: int) -> None:
    known: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    order = [label for label in LABELS.values() if label in known]
    figure.legend(
        [known[label] for label in order], order, loc="outside lower center", ncols=columns,
        frameon=False, handlelength=3.2, columnspacing=1.6, fontsize=9,
    )  # fmt: skip


def _drawn(summaries: Sequence[Summary]) -> list[Summary]:
    """Leave out variants where there are more methods than a picture bears."""
    crowded = len({one.method for one in summaries}) > len(DRAWN)
    return [one for one in summaries if not crowded or one.method in DRAWN]


Pick = Callable[[Summary], tuple[float | None, float | None, float | None]]


def _panels(
    summaries: Sequence[Summary],
    name: str,
    caption: str,
    y_label: str,
    pick: Pick,
    *,
    floor: float,
    band_from: int,
) -> Figure | None:
    """Draw one panel per (s, variance): a value against n, both on log scales."""
    shown = _drawn([one for one in summaries if pick(one)[0] is not None])
    rows = sorted({one.s for one in shown})
    columns = sorted({one.noise_variance for one in shown if one.noise_variance is not None})
    if not shown:
        return None
    plt = pyplot()
    with plt.rc_context(TEXT):
        size = (max(3.1 * len(columns), 6.4), 3.5 * len(rows) + 1.1)
        figure, grid = plt.subplots(
            len(rows), len(columns), figsize=size, squeeze=False, sharey="row", layout="constrained"
        )
        for axes_row, s in zip(grid, rows, strict=True):
            for axes, variance in zip(axes_row, columns, strict=True):
                here = [one for one in shown if (one.s, one.noise_variance) == (s, variance)]
                _one_panel(axes, here, pick, floor, band_from)
                axes.set_title(f"s = {s},  σ² = {variance:g}", loc="left")
                axes.set_visible(bool(here))
            first = next(axes for axes in axes_row if axes.get_visible())
            first.set_ylabel(y_label)
            first.tick_params(labelleft=True)
            values = [max(pick(one)[0] or 0.0, floor) for one in shown if one.s == s]
            axes_row[0].set_ylim(min(values) * 0.85, max(values) * 1.2)  # bands may leave the frame
        for axes in grid[-1]:
            axes.set_xlabel("training rows n")
        _legend(figure, list(grid.ravel()), min(4, max(2, len(columns))))
        return finish(figure, name, caption)


def _one_panel(axes: Any, here: Sequence[Summary], pick: Pick, floor: float, band_from: int) -> None:
    style_axes(axes)
    for method, label in LABELS.items():
        points = sorted((one.n, *pick(one)) for one in here if one.method == method)
        if not points:
            continue
        xs, ys = [p[0] for p in points], [max(p[1] or 0.0, floor) for p in points]
        _line(axes, method, xs, ys, label)
        if STYLES[method].front >= band_from and all(p[2] is not None for p in points):
            low, high = [max(p[2] or 0.0, floor) for p in points], [p[3] for p in points]
            axes.fill_between(xs, low, high, color=STYLES[method].colour, alpha=0.12, linewidth=0)
    sizes = sorted({one.n for one in here})
    axes.set(xscale="log", yscale="log")
    if sizes:
        crowded = [n for n in sizes if n not in (70,)] if len(sizes) > 5 else sizes
        axes.set_xticks(crowded, [str(n) for n in crowded])
    axes.minorticks_off()
    _plain_ticks(axes, floor)


def _plain_ticks(axes: Any, floor: float) -> None:
    """Ticks at 1, 2 and 5 times powers of ten, in plain numbers where these are short."""
    ticker = importlib.import_module("matplotlib.ticker")
    narrow = floor > 1e-6
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if narrow else (1,)))
    if narrow:
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))


def _mean_band(one: Summary) -> tuple[float | None, float | None, float | None]:
    """The mean and its interval on the log scale, which never reaches down to zero."""
    if one.mean is None or one.mean_high is None:
        return one.mean, None, None
    factor = math.exp((one.mean_high - one.mean) / one.mean)
    return one.mean, one.mean / factor, one.mean * factor


def cost_figure(summaries: Sequence[Summary], name: str = "figure1", what: str = "") -> Figure | None:
    """Draw Figure 1: average out-of-sample cost; None if there is nothing to draw."""
    return _panels(
        summaries, name,
        f"Figure 1{what}. Average out-of-sample cost against training rows. Bands are 95 % confidence "
        "intervals of the mean over repetitions, on the log scale; thin lines have none.",
        "mean cost", _mean_band, floor=1e-3, band_from=4,
    )  # fmt: skip


def variance_figure(
    summaries: Sequence[Summary], name: str = "figure2", what: str = ""
) -> Figure | None:
    """Draw Figure 2: variance over repetitions; None if there is nothing to draw."""
    return _panels(
        summaries, name,
        f"Figure 2{what}. Variance of the out-of-sample cost over repetitions. Bands, for three "
        "methods, are 95 % confidence intervals of the variance.",
        "variance of cost", lambda one: (one.variance, one.variance_low, one.variance_high),
        floor=1e-7, band_from=5,
    )  # fmt: skip


def restaurant_figure(summaries: Sequence[Summary]) -> Figure | None:
    """Draw the restaurant: cost over days learned from, in all and of each product."""
    here = _drawn([one for one in summaries if one.kind == "yaz" and one.mean is not None])
    if not here:
        return None
    products, windows = list(dict.fromkeys(o.product for o in here)), sorted({o.n for o in here})
    cost = {(one.product, one.n, one.method): one.mean for one in here}
    plt = pyplot()
    with plt.rc_context(TEXT):
        panels = [None, *products]
        across = min(4, len(panels))
        down = -(-len(panels) // across)
        figure, grid = plt.subplots(
            down, across, figsize=(3.1 * across, 2.7 * down + 1.1), squeeze=False, layout="constrained"
        )
        for axes, product in zip(grid.ravel(), panels, strict=False):
            style_axes(axes)
            for method, label in LABELS.items():
                _product_line(axes, method, label, [product] if product else products, windows, cost)
            axes.set(xscale="log")
            axes.set_title(product or f"all {len(products)} products", loc="left",
                           fontweight="normal" if product else "bold")  # fmt: skip
            axes.set_xticks(windows, [str(days) for days in windows])
            axes.minorticks_off()
        for axes in grid.ravel()[len(panels) :]:
            axes.set_visible(False)
        for axes in grid[:, 0]:
            axes.set_ylabel("cost a day")
        for axes in grid[-1]:
            axes.set_xlabel("days learned from")
        _legend(figure, list(grid.ravel()), across)
        return finish(figure, "restaurant", _RESTAURANT)


CUT = 1.5  # times the cost of SAA; what is worse lies on the cut
_RESTAURANT = (
    "Restaurant. Cost a day over the last 165 days, after learning from the days before them "
    "(backorder 15, holding 10). Costs are cut off at 1.5 times that of SAA."
)


def _product_line(
    axes: Any, method: str, label: str, products: Sequence[Any], windows: Sequence[int], cost: Any
) -> None:
    """Draw a method's total over products where it has all of them, up to the cut."""
    points = []
    for days in windows:
        costs = [cost.get((product, days, method)) for product in products]
        base = [cost.get((product, days, "saa")) for product in products]
        if all(value is not None for value in costs):
            limit = CUT * sum(base) if all(value is not None for value in base) else float("inf")
            points.append((days, min(sum(costs), limit)))
    if points:
        _line(axes, method, [x for x, _ in points], [y for _, y in points], label)
