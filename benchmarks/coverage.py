"""Stated against measured coverage of the radius rules, and the table in docs/theory.md.

    python -m benchmarks.coverage [repetitions]      measure what is missing, then write the table
    python -m benchmarks.coverage page               write the table from the committed results

Cells are kept as they are done; a second run goes on where the first one stopped.
"""

import itertools
import sys
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.machine import RESULTS, read_csv, write_csv
from reproduction.coverage import coverage_cell

COLUMNS, ROWS = (1, 2, 5, 20, 100), (30, 100, 500)
REPETITIONS = 200
# The convex program of "compatible" grows with rows and columns; these cells take seconds.
SMALL = {(d, n) for d in (1, 2, 5) for n in (30, 100)}
PAGE = RESULTS.parent.parent / "docs" / "theory.md"
PICTURE = PAGE.parent / "images" / "coverage.png"
COLOURS = {"paper": "#d55e00", "profile": "#0060a8", "auto": "#8a8a8a"}
LINES = {30: ":", 500: "-"}  # of all that the table shows: more lines would hide each other
START, END = "<!-- coverage: start -->", "<!-- coverage: end -->"


def written(value):
    """A number as text that is short, and empty where nothing was measured."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def measure(repetitions):
    rows = [row for row in read_csv("coverage") if int(row["repetitions"]) == repetitions]
    for row in rows:
        row.pop("machine"), row.pop("date")
    done = {(int(row["columns"]), int(row["rows"])) for row in rows}
    for d, n in itertools.product(COLUMNS, ROWS):
        if (d, n) in done:
            continue
        began = time.perf_counter()
        found = coverage_cell(d, n, repetitions=repetitions, compatible=(d, n) in SMALL)
        rows += [{key: written(value) for key, value in line.as_row().items()} for line in found]
        write_csv("coverage", rows)
        print(f"d = {d}, N = {n}: {time.perf_counter() - began:.0f} s", flush=True)
    rows.sort(key=lambda row: (int(row["columns"]), int(row["rows"])))  # stable: rules keep their order
    write_csv("coverage", rows)


def percent(text):
    return f"{100 * float(text):.0f} %" if text else ""


def bracket(row):
    low, high = percent(row["ball_low"]), percent(row["ball_high"])
    return low if low == high else f"{low} to {high}"


def table():
    """The committed results as a Markdown table, with what they were measured on."""
    rows = read_csv("coverage")
    lines = [
        "| d | N | rule | states | ball holds the contexts' distribution | score within the ball "
        "| best policy compatible | certificate covers the true cost | radius / rho_max "
        "| true cost / best |",
        "|" + "---|" * 10,
    ]
    for row in rows:
        cells = [
            row["columns"], row["rows"], row["rule"], percent(row["stated"]) or "nothing", bracket(row),
            percent(row["score"]), percent(row["compatible"]) or "-", percent(row["certificate"]),
            f"{float(row['share_of_max']):.2f}", f"{float(row['cost_ratio']):.2f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    first = rows[0]
    return "\n".join(lines) + (
        f"\n\n{first['repetitions']} samples for each cell. Measured on {first['date']}: "
        f"{first['machine']}. `python -m benchmarks.coverage`, results in "
        "`benchmarks/results/coverage.csv`."
    )


def page(text):
    """The page with the table between its markers."""
    before, rest = text.split(START)
    after = rest.split(END)[1]
    return f"{before}{START}\n{table()}\n{END}{after}"


def own_statement(row):
    """Measured coverage of what the rule itself states; None where it states nothing."""
    if row["rule"] == "auto":
        return None
    return float(row["ball_high"] if row["rule"] == "paper" else row["score"])


def draw():
    """Three panels against the number of columns: own statement, certificate, radius."""
    rows = read_csv("coverage")
    panels = {
        "The rule's own statement\n(paper: contexts alone, at most)": own_statement,
        "Certificate covers\nthe true cost": lambda row: float(row["certificate"]),
        "Radius as a share\nof the collapse radius": lambda row: float(row["share_of_max"]),
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for axis, (title, value) in zip(axes, panels.items(), strict=True):
        for rule, n in itertools.product(COLOURS, LINES):
            found = [row for row in rows if row["rule"] == rule and int(row["rows"]) == n]
            points = [(int(row["columns"]), value(row)) for row in found if value(row) is not None]
            if points:
                axis.plot(*zip(*points, strict=True), LINES[n], color=COLOURS[rule], marker="o",
                          markersize=3.5, linewidth=1.4)  # fmt: skip
        axis.set_xscale("log")
        axis.set_xticks(COLUMNS, [str(d) for d in COLUMNS])
        axis.minorticks_off()
        axis.set_xlabel("columns d")
        axis.set_title(title, loc="left", fontsize=9.5)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[:2]:
        axis.axhline(0.95, color="black", linewidth=0.6, linestyle="--")
        axis.set_ylim(-0.03, 1.05)
        axis.set_yticks([0, 0.25, 0.5, 0.75, 0.95])
        axis.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0, decimals=0))
    axes[2].axhline(1.0, color="black", linewidth=0.6, linestyle="--")
    axes[2].set_yscale("log")
    axes[2].set_yticks([0.01, 0.1, 1.0], ["1 %", "10 %", "100 %"])
    handles = [plt.Line2D([], [], color=colour, label=rule) for rule, colour in COLOURS.items()]
    handles += [
        plt.Line2D([], [], color="black", linestyle=line, label=f"N = {n}") for n, line in LINES.items()
    ]
    reference = "95 %, or the collapse radius"
    handles.append(plt.Line2D([], [], color="black", linewidth=0.6, linestyle="--", label=reference))
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)


def write_page():
    PAGE.write_text(page(PAGE.read_text()))
    draw()
    print(f"wrote {PAGE} and {PICTURE}")


def main(arguments=()):
    if list(arguments) != ["page"]:
        measure(int(arguments[0]) if arguments else REPETITIONS)
    write_page()


if __name__ == "__main__":
    main(sys.argv[1:])
