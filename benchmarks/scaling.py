"""How time and memory grow: series against time, cores against time, rows against memory.

python -m benchmarks.scaling         measures results/panel_series.csv, then draws
python -m benchmarks.scaling draw    results/scaling.png from the committed results alone
"""

import sys
import time

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.machine import RESULTS, read_csv, write_csv
from benchmarks.panels import COST, plain
from surefoot import Problem, RobustNewsvendor, WassersteinBall, fit_many, solve_many
from surefoot.nominals import Empirical
from surefoot.policies import Linear

ROWS, COLUMNS = 100, 20
FIXED = RobustNewsvendor(1.0, 0.2, radius=0.1)
EVEN = "one core's time, shared evenly"
COLOURS = ("#0060a8", "#c8553d", "#2f7d4f", "#8a5fa8", "#b8860b")


def fit_each(frame, **how):
    """Fit a policy for each series."""
    return fit_many(frame, "key", "y", **how)


def solve_each(frame):
    """Solve the problem of each series in one compiled loop."""
    names = [name for name in frame if name not in ("key", "y")]
    X, y = frame[names].to_numpy(), frame["y"].to_numpy()
    parts = [slice(k, k + ROWS) for k in range(0, len(frame), ROWS)]
    ball = WassersteinBall(0.1)
    return solve_many([Problem(COST, Linear(), Empirical(X[p], y[p]), ball) for p in parts])


WAYS = {
    "fit_many, everything automatic": (lambda f: fit_each(f, cost=COST), (3, 10, 30)),
    "fit_many, radius 0.1": (lambda f: fit_each(f, model=FIXED), (10, 30, 100, 300)),
    "solve_many, radius 0.1": (solve_each, (100, 1_000, 10_000)),
}


def measure():
    """Processor seconds of each way on more and more series, in one process."""
    rows = []
    for way, (work, counts) in WAYS.items():
        work(plain(counts[0], ROWS, COLUMNS))  # loads what is compiled
        for count in counts:
            frame, began = plain(count, ROWS, COLUMNS), time.process_time()
            work(frame)
            seconds = time.process_time() - began
            rows.append(
                {"way": way, "series": count, "rows": ROWS, "columns": COLUMNS,
                 "processor_s": f"{seconds:.3f}", "ms_each": f"{1e3 * seconds / count:.2f}"}
            )  # fmt: skip
            print(rows[-1], flush=True)
    write_csv("panel_series", rows)


def lines_of(rows, x, y, name):
    """Return the points of each line, by its name."""
    lines = {}
    for row in rows:
        lines.setdefault(name(row), []).append((float(row[x]), float(row[y])))
    return {label: sorted(points) for label, points in lines.items()}


def memory_name(row):
    """Name a way to fit rows that may not fit into memory."""
    return ", ".join(part for part in (row["data"], row["solver"]) if part)


def draw_lines(axes, lines, title, x, y):
    """Draw lines on logarithmic axes, each with its name."""
    for (name, points), colour in zip(lines.items(), COLOURS, strict=False):
        style = {"linestyle": "--"} if name == EVEN else {"marker": "o", "markersize": 4}
        axes.plot(*zip(*points, strict=True), color=colour, label=name, **style)
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, -0.16))


def draw():
    """Draw the panels whose results there are."""
    rows = read_csv("cores")
    cores = lines_of(
        [row for row in rows if row["problems"]], "cores", "seconds", lambda row: row["what"]
    )
    counts, seconds = zip(*cores[rows[0]["what"]], strict=True)
    cores[EVEN] = [(count, seconds[0] * counts[0] / count) for count in counts]
    panels = [
        (lines_of(read_csv("panel_series"), "series", "processor_s", lambda row: row["way"]),
         "Series against time", "series of 100 rows and 20 columns", "processor seconds"),
        (cores, f"Cores against time, {int(rows[0]['problems']):,} problems", "cores", "seconds"),
    ]  # fmt: skip
    memory = read_csv("beyond_memory")
    if memory:
        found = lines_of(memory, "rows", "peak_megabytes", memory_name)
        panels.append((found, "Rows against memory", "rows of 10 columns", "peak MB"))
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 4.4), layout="constrained")
    for one, panel in zip(axes, panels, strict=True):
        draw_lines(one, *panel)
    axes[1].minorticks_off()
    axes[1].set_xticks(counts, [f"{count:g}" for count in counts])
    shares = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0]
    axes[1].set_yticks(shares, [f"{share:g}" for share in shares])
    figure.savefig(RESULTS / "scaling.png", dpi=130)
    print(f"wrote {RESULTS / 'scaling.png'}")


def main():
    """Measure what belongs here, and draw."""
    measure()
    draw()


if __name__ == "__main__":
    draw() if sys.argv[1:] == ["draw"] else main()
