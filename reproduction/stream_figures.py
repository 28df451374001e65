"""Figures of the stream study."""

from typing import Any

import numpy as np

from reproduction.figures import TEXT, Figure, Style, finish, pyplot, style_axes
from reproduction.stream_laws import COEFFICIENTS
from reproduction.stream_results import StreamFindings
from reproduction.stream_summary import DECADES, LABELS, REGRETS, regret_paths

_DASHES = (0, (5, 2))
_DOTS = (0, (1, 1.4))
STYLES = {
    "online": Style("#0060a8", _DOTS, "o", 1.6, 4),
    "online-falling": Style("#3fa7e0", _DOTS, "s", 1.6, 4),
    "online-restart": Style("#0060a8", "-", "D", 2.4, 6),
    "online-both": Style("#3fa7e0", "-", "v", 2.0, 5),
    "online-window": Style("#0b1f5b", _DASHES, "P", 1.6, 5),
    "refit": Style("#d55e00", "-", "^", 1.8, 4),
    "river": Style("#009e73", "-", "X", 1.4, 3),
    "saa-window": Style("#8a8a8a", "-", "*", 1.4, 2),
}
_TICKS = (1, 1.1, 1.5, 2, 3, 5, 8)
# More than seven lines in a panel cannot be told apart; this one is in the tables.
LEFT_OUT = "online-falling"
_COLOURS = {"positive": "#0060a8", "mixed": "#d55e00"}


def stream_figures(findings: StreamFindings) -> list[Figure]:
    """Draw everything there is to draw."""
    figures = []
    if findings.regret:
        figures.append(_regret(findings))
    if findings.curves:
        figures.append(_costs(findings))
    if any(one.method == "saa-window" for one in findings.restaurant):
        figures.append(_restaurant(findings))
    return figures


def _regret(findings: StreamFindings) -> Figure:
    plt = pyplot()
    with plt.rc_context(TEXT):
        figure, grid = plt.subplots(1, len(REGRETS), figsize=(10.2, 3.6), layout="constrained")
        for axes, (radius, measure, label) in zip(grid, REGRETS, strict=True):
            style_axes(axes)
            for coefficients in COEFFICIENTS:
                _regret_lines(axes, regret_paths(findings, radius, measure, coefficients), coefficients)
            axes.set(xscale="log", yscale="log", xlabel="rows T")
            axes.set_title(label, loc="left")
        grid[0].set_ylabel("regret up to T")
        grid[0].legend(frameon=False, fontsize=8.5)
        seeds = len({one.seed for one in findings.regret})
        caption = (
            f"Regret on stationary streams: mean (lines) and range (bands) of {seeds} seeds. Dashes "
            "grow as the root of T. With a fixed radius, plain regret must end up proportional to T."
        )
        return finish(figure, "regret", caption)


def _regret_lines(axes: Any, paths: list[tuple[Any, Any]], coefficients: str) -> None:
    if not paths:
        return
    colour = _COLOURS[coefficients]
    times, first = paths[0][0], not axes.lines
    regrets = np.array([regret for _, regret in paths])
    mean = regrets.mean(axis=0)
    kept = (times >= 10) & (regrets > 0).all(axis=0)
    low, high = regrets.min(axis=0)[kept], regrets.max(axis=0)[kept]
    axes.fill_between(times[kept], low, high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(
        times[kept], mean[kept], color=colour, linewidth=2.2, label=f"{coefficients} coefficients"
    )
    late = times >= times[-1] / 10**DECADES
    guide = mean[late][0] * np.sqrt(times[late] / times[late][0])
    name = "growing as the root of T" if first else "_nolegend_"
    axes.plot(times[late], guide, color="#555555", linewidth=1.0, linestyle=_DASHES, label=name)


def _costs(findings: StreamFindings) -> Figure:
    plt = pyplot()
    streams = ("abrupt", "gradual")
    with plt.rc_context(TEXT):
        figure, grid = plt.subplots(
            2, len(COEFFICIENTS), figsize=(10.2, 6.6), sharex=True, layout="constrained"
        )
        for row, stream in zip(grid, streams, strict=True):
            for axes, coefficients in zip(row, COEFFICIENTS, strict=True):
                style_axes(axes)
                for method, label in LABELS.items():
                    if method == LEFT_OUT:
                        continue
                    _cost_line(axes, findings, stream, coefficients, method, label)
                axes.axhspan(1.0, 1.1, color="#eef3e6", zorder=0)
                axes.axhline(1.0, color="black", linewidth=0.8, linestyle=_DOTS)
                axes.set(yscale="log", ylim=(0.95, 8.0))
                axes.set_yticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
                axes.minorticks_off()
                axes.set_title(f"{stream} change, {coefficients} coefficients", loc="left")
        for axes in grid[:, 0]:
            axes.set_ylabel("cost / cost of the oracle")
        for axes in grid[-1]:
            axes.set_xlabel("row")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=4, frameon=False, handlelength=3.0
        )
        caption = (
            "Mean cost of each run of 100 rows, over seeds, as a multiple of the oracle's. The band is "
            "within 10 % of the oracle. The law jumps at half time, or drifts over the middle third. "
            f"“{LABELS[LEFT_OUT]}” is left out: its line runs close to that of “{LABELS['online']}”."
        )
        return finish(figure, "costs", caption)


def _cost_line(
    axes: Any, findings: StreamFindings, stream: str, coefficients: str, method: str, label: str
) -> None:
    points = [
        (one.row, one.cost / one.oracle_cost)
        for one in findings.curves
        if (one.stream, one.coefficients, one.method) == (stream, coefficients, method)
    ]
    if not points:
        return
    style = STYLES[method]
    xs, ys = zip(*sorted(points), strict=True)
    axes.plot(
        xs, ys, color=style.colour, linestyle=style.line, linewidth=0.75 * style.width,
        zorder=style.front, label=label,
    )  # fmt: skip


def _restaurant(findings: StreamFindings) -> Figure:
    plt = pyplot()
    products = list(dict.fromkeys(one.product for one in findings.restaurant))
    cost = {(one.product, one.method): one.cost for one in findings.restaurant}
    methods = [m for m in LABELS if m != "saa-window" and any(key[1] == m for key in cost)]
    with plt.rc_context(TEXT):
        figure, axes = plt.subplots(figsize=(8.6, 3.9), layout="constrained")
        style_axes(axes)
        for k, method in enumerate(methods):
            style = STYLES[method]
            shift = 0.09 * (k - (len(methods) - 1) / 2)
            ys = [cost[product, method] / cost[product, "saa-window"] for product in products]
            axes.plot(
                np.arange(len(products)) + shift, ys, style.marker, color=style.colour, markersize=6,
                markeredgecolor="white", markeredgewidth=0.4, label=LABELS[method],
            )  # fmt: skip
        axes.axhline(1.0, color="#8a8a8a", linewidth=1.2, zorder=1, label=LABELS["saa-window"])
        axes.set_xticks(np.arange(len(products)), products)
        axes.set_ylabel("cost / cost of SAA on a window")
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        caption = (
            "Restaurant, in date order: total cost of each method as a multiple of that of SAA on a "
            "window of days."
        )
        return finish(figure, "restaurant", caption)
