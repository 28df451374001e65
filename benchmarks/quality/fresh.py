"""The default on repetitions that nobody looked at while it was designed.

python -m benchmarks.quality.fresh
"""

import statistics

import numpy as np

from benchmarks.machine import RESULTS, machine, read_csv, write_csv
from benchmarks.quality.grid import BASELINES, OURS, asks_parts, synthetic_sets
from benchmarks.sections import put_section
from surefoot.experiments.suite import Cell, chosen_methods
from surefoot.experiments.work import quiet, run_cell

REPETITIONS = (50, 51, 52)
PAGE = RESULTS.parents[1] / "docs" / "quality.md"


def main():
    """Run the quick cells on fresh repetitions; write results/quality_fresh.csv and the page."""
    rows = []
    with quiet():
        for data in filter(asks_parts, synthetic_sets()):
            costs = {
                method.name: statistics.mean(run_cell(Cell(data, method, k)).cost for k in REPETITIONS)
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
    put_section(
        PAGE, "fresh",
        f"{len(ratios)} cells with 100 columns and up to 100 rows, {len(REPETITIONS)} fresh repetitions each: mean ratio "
        f"{ratios.mean():.3f}, better in {100 * (ratios < 1).mean():.0f} % of the cells, worst cell "
        f"{ratios.max():.3f}. On {machine()}.",
    )  # fmt: skip


if __name__ == "__main__":
    main()
