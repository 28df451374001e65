"""What saying when rows were is worth: the cost with ``time=`` over the cost without.

On the design tasks in time order, all of them known when the way to follow a level was designed; those
that judge are left alone.

python -m benchmarks.quality.real order    results/quality_in_order.csv
"""

import warnings

import numpy as np
from joblib import Parallel, delayed

from benchmarks.machine import write_csv
from benchmarks.quality.real.run import SIZES, cells
from benchmarks.quality.real.tasks import DESIGN, task
from surefoot import RobustNewsvendor

HORIZONS = (7, 28, 150)


def costs(cell):
    """Return the mean costs of the next rows, shape (without and with time, horizons)."""
    data, (learn, judge) = task(cell.task), cell.split()
    X, y, paid = data.X[learn], data.y[learn], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for time in (None, np.arange(len(y))):
            model = RobustNewsvendor(cell.backorder, cell.holding, random_state=cell.repeat)
            missed = model.fit(X, y, time=time).predict(data.X[judge]) - data.y[judge]
            each = np.maximum(cell.holding * missed, -cell.backorder * missed)
            paid.append([float(each[:ahead].mean()) for ahead in HORIZONS])
    return np.array(paid)


def main() -> None:
    """Write geometric means over cells, repeats averaged, and the largest."""
    chosen = [cell for cell in cells(DESIGN) if task(cell.task).ordered]
    sums = {}
    for cell, paid in zip(chosen, Parallel(n_jobs=-1)(delayed(costs)(c) for c in chosen), strict=True):
        key = (cell.task, cell.n, cell.backorder, cell.holding)
        sums[key] = sums.get(key, 0.0) + paid
    rows = []
    for n in (*SIZES, None):
        some = [paid[1] / paid[0] for key, paid in sums.items() if n in (key[1], None)]
        for ahead, ratios in zip(HORIZONS, np.transpose(some), strict=True):
            rows.append({
                "rows": "all" if n is None else n, "ahead": ahead, "cells": len(ratios),
                "cost_over_without_time": f"{np.exp(np.log(ratios).mean()):.3f}",
                "smallest": f"{ratios.min():.2f}", "largest": f"{ratios.max():.2f}",
            })  # fmt: skip
            print(rows[-1], flush=True)
    write_csv("quality_in_order", rows)
