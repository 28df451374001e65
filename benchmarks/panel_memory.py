"""Memory of the driver for ten thousand series in a folder of Parquet files that workers read.

python -m benchmarks.panel_memory    results/panel_memory.csv
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor

from benchmarks.machine import write_csv
from surefoot import RobustNewsvendor, fit_many

SHOPS, PRODUCTS, ROWS, COLUMNS = 100, 100, 100, 5
BY = ["shop", "product"]


def shop_rows(shop, rows):
    """Return the rows of all products of a shop."""
    rng = np.random.default_rng(shop)
    X = rng.normal(size=(PRODUCTS * rows, COLUMNS))
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(COLUMNS)])
    product = np.repeat(np.arange(PRODUCTS), rows)
    return frame.assign(product=product, sales=10.0 + X.sum(axis=1) + rng.normal(size=len(X)))


def write_panel(folder):
    """Write one Parquet file for each shop."""
    for shop in range(SHOPS):
        place = Path(folder) / f"shop={shop}"
        place.mkdir()
        shop_rows(shop, ROWS).to_parquet(place / "part-0.parquet", index=False)


def peak(who=resource.RUSAGE_SELF):
    """Most memory so far, MB: of this process, or of its largest worker."""
    return resource.getrusage(who).ru_maxrss / 1024


def fit_here(data, results):
    """Fit, then decide for each series; print what this process, the driver, held at most."""
    start, began = peak(), time.perf_counter()
    model = RobustNewsvendor(1.0, 0.2, radius=0.1)
    table = fit_many(data, BY, "sales", model=model, n_jobs=2, folder=results)
    seconds, after_fit = time.perf_counter() - began, peak()
    ahead = pd.concat([shop_rows(1_000 + k, 1).assign(shop=k) for k in range(SHOPS)])
    decided = int(np.isfinite(table.decide(ahead)).sum())
    get_reusable_executor().shutdown()  # only workers that have ended are counted
    print(
        json.dumps(
            {
                "series": len(table), "decided": decided, "seconds": f"{seconds:.0f}",
                "imported_mb": f"{start:.0f}", "driver_fit_mb": f"{after_fit:.0f}",
                "driver_decide_mb": f"{peak():.0f}",
                "worker_mb": f"{peak(resource.RUSAGE_CHILDREN):.0f}",
            }
        )
    )  # fmt: skip


def main():
    """Measure in a process of its own and write results/panel_memory.csv."""
    with tempfile.TemporaryDirectory() as data, tempfile.TemporaryDirectory() as results:
        write_panel(data)
        command = [sys.executable, "-m", "benchmarks.panel_memory", data, results]
        found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    row = {"rows": ROWS, "columns": COLUMNS, **json.loads(found)}
    print(row)
    write_csv("panel_memory", [row])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        fit_here(*sys.argv[1:])
    else:
        main()
