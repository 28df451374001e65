"""The default beside the former one, a forecast with a robust correction.

python -m benchmarks.quality.default              quick cells of the paper's grid, and the restaurant
python -m benchmarks.quality.default restaurant   the restaurant alone, as the demo judges it
"""

import sys

import numpy as np

from benchmarks.machine import write_csv
from benchmarks.quality.grid import asks_parts, synthetic_sets
from reproduction.cell_run import quiet, run_cell
from reproduction.methods import Default
from reproduction.suite import Cell
from surefoot import RobustNewsvendor
from surefoot.cli.demo import BACKORDER, HOLDING, TEST_DAYS, WINDOWS
from surefoot.datasets import load_yaz
from surefoot.forecasts import Forecaster

METHODS = (Default("default", "Surefoot"), Default("corrected", "forecast + correction", Forecaster()))
REPEATS = 3


def restaurant():
    """Write the cost a day of all dishes, judged on the last 165 days."""
    data, rows = load_yaz(drop_closed=True), []
    first = len(data.dates) - TEST_DAYS
    for days in WINDOWS:
        train, test = slice(first - days, first), slice(first, None)
        X = data.contexts[:, np.ptp(data.contexts[train], axis=0) > 0]
        costs = [
            sum(
                RobustNewsvendor(BACKORDER, HOLDING, nominal=nominal)
                .fit(X[train], data.product(dish)[train])
                .cost(X[test], data.product(dish)[test])
                for dish in data.products
            )
            for nominal in ("auto", Forecaster())
        ]
        rows.append({"days": days, "default": f"{costs[0]:.1f}", "corrected": f"{costs[1]:.1f}"})
        print(rows[-1], flush=True)
    write_csv("quality_restaurant", rows)


def grid():
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
    if sys.argv[1:] != ["restaurant"]:
        grid()
    with quiet():
        restaurant()
