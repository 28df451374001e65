"""What a planner waits for: help, fit and decide on the restaurant, reading 100,000 rows.

python -m benchmarks.command_line
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.common import write_csv

RUNS = 5
ROWS = 100_000
COSTS = ["--backorder", "15", "--holding", "10"]
# pip compiles what it installs. A checkout is compiled when it first runs, unless Python is told to
# keep nothing; then each command would compile anew what no planner waits for.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
READ = """
import resource, sys, time
from surefoot.io import read_file
began = time.perf_counter()
read_file(sys.argv[1])
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def surefoot(folder, *arguments):
    """Wall and processor seconds of one command in a fresh process."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "surefoot.cli.main", *arguments], cwd=folder, check=True,
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - began, worked


def large_table(path, rows=ROWS, seed=0):
    """Sales of 39 stores: a date, a store, a flag, eight numbers and the outcome."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 8)).round(3)
    store, promotion = rng.integers(1, 40, rows), rng.integers(0, 2, rows)
    demand = 40 + store / 4 + 6 * promotion + numbers[:, 0] * 3 + rng.gamma(4.0, 2.0, rows)
    days = np.datetime64("2015-01-01") + (np.arange(rows) * 3000 // rows).astype("timedelta64[D]")
    columns = {"date": days, "store": [f"S{k}" for k in store], "promotion": promotion}
    columns |= {f"x{j}": numbers[:, j] for j in range(8)}
    pl.DataFrame({**columns, "demand": demand.round(1)}).write_csv(path)


def middle(runs):
    """The median of wall and of processor seconds."""
    return tuple(f"{sorted(seconds)[len(runs) // 2]:.2f}" for seconds in zip(*runs, strict=True))


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        surefoot(folder, "datasets", "restaurant", "-o", "past.csv", "--later", "new.csv")
        fit = ("fit", "past.csv", "--outcome", "steak", *COSTS, "-o", "m.surefoot")
        decide = ("decide", "m.surefoot", "new.csv", "-o", "orders.csv")
        surefoot(folder, *fit)  # compile and fill the cache
        rows.append(("help", *middle([surefoot(folder, "--help") for _ in range(RUNS)]), ""))
        pairs = [(surefoot(folder, *fit), surefoot(folder, *decide)) for _ in range(RUNS)]
        both = [tuple(map(sum, zip(*pair, strict=True))) for pair in pairs]
        rows.append(("fit and decide, restaurant", *middle(both), ""))
        table = Path(folder) / "large.csv"
        large_table(table)
        found = subprocess.run(
            [sys.executable, "-c", READ, str(table)], check=True, capture_output=True, text=True
        )
        seconds, megabytes = map(float, found.stdout.split())
        rows.append((f"read {ROWS:,} rows of CSV", f"{seconds:.2f}", "", f"{megabytes:.0f}"))
    written = [
        {"what": what, "seconds": seconds, "processor_seconds": worked, "peak_megabytes": memory}
        for what, seconds, worked, memory in rows
    ]
    for row in written:
        print(row)
    load = os.getloadavg()[0]
    if load > os.cpu_count():
        print(f"The machine is busy (load {load:.1f}): nothing is recorded.")
        return
    write_csv("command_line", written)


if __name__ == "__main__":
    main()
