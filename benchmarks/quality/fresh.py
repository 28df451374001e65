"""The default on repetitions that nobody looked at while it was designed.

python -m benchmarks.quality.fresh
"""

import statistics

import numpy as np

from benchmarks.machine import RESULTS, machine, read_csv, write_csv
from benchmarks.quality.grid import BASELINES, OURS, asks_parts, synthetic_sets
from benchmarks.sections import put_section
from reproduction.cell_run import quiet, run_cell
from reproduction.suite import Cell, chosen_methods

FIRST = 50  # the grid uses 0 to 9


def repetitions(data):
    """Ten of the smallest size, where chance is largest and fits are quick, three of the others."""
    return range(FIRST, FIRST + (10 if data.n == 10 else 3))


PAGE = RESULTS.parents[1] / "docs" / "quality.md"


def main():
    """Run the quick cells on fresh repetitions; write results/quality_fresh.csv and the page."""
    rows = []
    with quiet():
        for data in filter(asks_parts, synthetic_sets()):
            costs = {
                method.name: statistics.mean(
                    run_cell(Cell(data, method, k)).cost for k in repetitions(data)
                )
                for method in (OURS, *chosen_methods(BASELINES))
            }
            best = min(BASELINES, key=costs.get)
            ratio = costs[OURS.name] / costs[best]
            rows.append({"data": data.key, "best_baseline": best, "ratio": f"{ratio:.4f}"})
            print(rows[-1], flush=True)
    write_csv("quality_fresh", rows)
    write_page()


def write_page():
    """Write the sentence of the page."""
    ratios = np.array([float(row["ratio"]) for row in read_csv("quality_fresh")])
    tiny = np.array([row["data"].endswith("/n=10") for row in read_csv("quality_fresh")])
    lines = ["| cells with 100 columns | mean ratio | better in | worst cell |", "|---|---|---|---|"]
    for name, kept in (("10 rows, 10 repetitions", tiny), ("30 to 100 rows, 3 repetitions", ~tiny)):
        some = ratios[kept]
        lines.append(
            f"| {name} | {some.mean():.3f} | {(some < 1).sum()} of {len(some)} | {some.max():.3f} |"
        )
    put_section(PAGE, "fresh", "\n".join([*lines, "", f"On {machine()}."]))


if __name__ == "__main__":
    main()
