"""The default beside the forecast with a robust correction, on quick cells of the paper's grid.

python -m benchmarks.quality.default
"""

import numpy as np

from benchmarks.machine import write_csv
from benchmarks.quality.grid import asks_parts, synthetic_sets
from reproduction.cell_run import quiet, run_cell
from reproduction.methods import Default
from reproduction.suite import Cell
from surefoot.forecasts import Forecaster

METHODS = (Default("default", "Surefoot"), Default("corrected", "forecast + correction", Forecaster()))
REPEATS = 3


def main():
    """Write the ratio of costs, cell by cell."""
    rows = []
    with quiet():
        for data in filter(asks_parts, synthetic_sets()):
            costs = [
                np.mean([run_cell(Cell(data, method, 70 + k)).cost for k in range(REPEATS)])
                for method in METHODS
            ]
            rows.append({"data": data.key, "default": f"{costs[0]:.4f}", "corrected": f"{costs[1]:.4f}",
                         "ratio": f"{costs[0] / costs[1]:.4f}"})  # fmt: skip
            print(rows[-1], flush=True)
    write_csv("quality_default", rows)


if __name__ == "__main__":
    main()
