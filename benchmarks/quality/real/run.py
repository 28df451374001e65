"""Run every method on every cell; what is there already is not run again.

python -m benchmarks.quality.real run design [method ...]
python -m benchmarks.quality.real run judge
"""

from dataclasses import dataclass

import numpy as np

from benchmarks.machine import read_csv, write_csv
from benchmarks.quality.real.methods import METHODS, decide
from benchmarks.quality.real.tasks import DESIGN, JUDGE, task
from surefoot.costs import Newsvendor
from surefoot.random import rng_for

SIZES = (20, 50, 100, 300, 1000)
RATIOS = ((1.0, 5.0), (1.0, 1.0), (9.0, 1.0))
REPEATS = 2
MOST_TEST, LEAST_TEST = 150, 30
TABLE = "quality_real"


def split_rows(data, name, n, repeat):
    """Return rows to learn from and rows to judge on: those that follow, where there is time."""
    rng = rng_for(repeat, f"{name}/{n}")
    total, test = len(data.y), min(MOST_TEST, len(data.y) - n)
    if data.ordered:
        start = int(rng.integers(total - n - test + 1))
        return np.arange(start, start + n), np.arange(start + n, start + n + test)
    order = rng.permutation(total)
    return order[:n], order[n : n + test]


@dataclass(frozen=True)
class Cell:
    """One split of one task at one cost ratio."""

    task: str
    n: int
    backorder: float
    holding: float
    repeat: int

    def split(self):
        """Return rows to learn from and rows to judge on."""
        return split_rows(task(self.task), self.task, self.n, self.repeat)

    def cost(self, method) -> float:
        """Return the mean cost of a method's decisions."""
        data, (learn, judge) = task(self.task), self.split()
        z = decide(
            method, data.X[learn], data.y[learn], self.backorder, self.holding, self.repeat,
            data.X[judge],
        )  # fmt: skip
        cost = Newsvendor(self.backorder, self.holding)
        return float(np.mean(cost.evaluate(np.asarray(z)[:, None], data.y[judge][:, None])))


def cells(makers):
    """Return the cells of some tasks: all sizes that leave enough rows to judge on."""
    return [
        Cell(make.__name__, n, b, h, k)
        for make in makers
        for n in SIZES
        if n + LEAST_TEST <= len(task(make.__name__).y)
        for b, h in RATIOS
        for k in range(REPEATS)
    ]


def key(row: dict) -> tuple[Cell, str]:
    """Return the cell and the method of a row of the table."""
    cell = Cell(row["task"], int(row["n"]), float(row["b"]), float(row["h"]), int(row["repeat"]))
    return cell, row["method"]


def known() -> dict:
    """Return the costs that are there, by cell and method."""
    return {key(row): float(row["cost"]) for row in read_csv(TABLE)}


def save(costs: dict) -> None:
    """Write all costs; those that are as they were keep the machine and the date of their run."""
    before = {key(row): row for row in read_csv(TABLE)}
    rows = []
    for (c, name), cost in sorted(costs.items(), key=str):
        row = {"task": c.task, "n": c.n, "b": c.backorder, "h": c.holding, "repeat": c.repeat,
               "method": name, "cost": f"{cost:.6g}"}  # fmt: skip
        old = before.get((c, name), {"cost": None})
        if old["cost"] == row["cost"]:
            row |= {"machine": old["machine"], "date": old["date"]}
        rows.append(row)
    write_csv(TABLE, rows)


def main(half: str, names: tuple[str, ...] = ()) -> None:
    """Run what is missing; methods that are named run again."""
    costs = known()
    chosen = [method for method in METHODS if not names or method.__name__ in names]
    for method in chosen:
        for cell in cells(DESIGN if half == "design" else JUDGE):
            if names or (cell, method.__name__) not in costs:
                costs[cell, method.__name__] = cell.cost(method)
        save(costs)
        print(method.__name__, "done", flush=True)
