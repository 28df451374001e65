"""Fit every method on every cell; each result is in the store the moment it is there."""

import csv
import time

from benchmarks.machine import RESULTS
from benchmarks.quality.grid import (
    ABLATIONS,
    BASELINES,
    FIXED,
    FORMER,
    OURS,
    REPETITIONS,
    all_sets,
    asks_parts,
    asks_radius,
)
from reproduction.result import read_result
from reproduction.runner import run_one_line, run_suite
from reproduction.store import ResultStore
from reproduction.suite import Suite, chosen_methods

STORE = RESULTS.parent.parent / ".bench" / "quality.sqlite"
ROWS = RESULTS / "quality" / "costs.csv"
COLUMNS = ("key", "method", "repetition", "cost", "fit_seconds", "radius", "machine", "versions")
# Parts left out and radii in hindsight explain the default; five repetitions are enough for that.
HINDSIGHT_REPETITIONS = 5


def seed_store(store):
    """Take over baselines that ``python -m reproduction paper`` has run on the same rows already."""
    wanted = {
        cell.key for cell in Suite(all_sets(), chosen_methods(BASELINES), REPETITIONS).cells()
    } - {result.key for result in store.results()}
    with (RESULTS / "reproduction" / "results.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["key"] in wanted and row["status"] == "done":
                store.append(read_result(row))


def main():
    """Run all cells, the quick ones first, and write the costs."""
    STORE.parent.mkdir(exist_ok=True)
    began, said = time.monotonic(), [0.0]

    def say(progress):
        if time.monotonic() - said[0] > 30:
            said[0] = time.monotonic()
            print(f"{run_one_line(progress, began)}  {progress.latest.key}", flush=True)

    with ResultStore(STORE) as store:
        seed_store(store)
        for data in all_sets():
            run_suite(
                Suite((data,), (OURS, FORMER, *chosen_methods(BASELINES)), REPETITIONS),
                store,
                on_progress=say,
            )
        for data in all_sets():
            methods = (*(ABLATIONS if asks_parts(data) else ()), *(FIXED if asks_radius(data) else ()))
            if methods:
                run_suite(Suite((data,), methods, HINDSIGHT_REPETITIONS), store, on_progress=say)
        write(store)


def write(store):
    """Write the cost of every fit."""
    ROWS.parent.mkdir(exist_ok=True)
    with ROWS.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=("data", *COLUMNS[1:]))
        writer.writeheader()
        for result in sorted(store.results(), key=lambda result: result.key):
            if result.status == "done":
                row = {name: getattr(result, name) for name in COLUMNS[1:]}
                writer.writerow({"data": result.data_key, **row})
    print(f"wrote {ROWS}")
