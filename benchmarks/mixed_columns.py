"""What freezing 0/1 columns and leaving rare levels out costs: the restaurant, and a mixed table.

Run `python -m benchmarks.mixed_columns`. It goes on where it stopped, and writes results/mixed_columns.csv.
"""

import warnings
from pathlib import Path

import numpy as np

from benchmarks.machine import read_csv, write_csv
from benchmarks.sections import put_section
from surefoot import RobustNewsvendor
from surefoot.baselines import ERM, SAA
from surefoot.datasets import load_yaz
from surefoot.estimators.preparation import PreparedPolicy, Table
from surefoot.exceptions import SurefootWarning
from surefoot.random import rng_for

WINDOWS, TEST_DAYS, TEST_WINDOWS = (30, 60, 120, 300), 30, 4
SIZES, EFFECTS, REPETITIONS, TEST_ROWS = (20, 50, 100, 300), (0.3, 1.0), 10, 2000
LEVELS = (3, 7, 12)


def methods(backorder, holding):
    """Ours frozen and not, as it comes and robust linear, and with rare levels; and two baselines."""
    default = RobustNewsvendor(backorder, holding)
    plain = RobustNewsvendor(backorder, holding, nominal=None)
    return {
        "frozen": PreparedPolicy(default),
        "free": PreparedPolicy(default, freeze=False),
        "frozen, rare levels kept": PreparedPolicy(default, min_rows=1),
        "robust linear, frozen": PreparedPolicy(plain),
        "robust linear, free": PreparedPolicy(plain, freeze=False),
        "saa": PreparedPolicy(SAA(backorder, holding)),
        "erm": PreparedPolicy(ERM(backorder, holding)),
    }


def restaurant(days):
    """Yield (table, outcomes, training rows, test rows) for the newest windows of all products."""
    data = load_yaz(drop_closed=True)
    columns = {name: data.contexts[:, data.feature_names.index(name)] for name in data.numeric}
    columns["holiday"] = data.contexts[:, data.feature_names.index("is_holiday")] > 0
    table = Table.of({**columns, "date": data.dates})
    for k in range(TEST_WINDOWS):
        end = len(table) - k * TEST_DAYS
        test = np.arange(end - TEST_DAYS, end)
        for product in data.products:
            yield table, data.product(product), test[0] - days + np.arange(days), test


def mixed(rows, effect):
    """Yield the same for a synthetic table: five numbers, and categories of 3, 7 and 12 levels."""
    for repetition in range(REPETITIONS):
        rng = rng_for(11, "mixed", effect, rows, repetition)
        n = rows + TEST_ROWS
        X = rng.normal(size=(n, 5))
        y = 5.0 + X @ (0.5 * rng.normal(size=5)) + rng.normal(size=n)
        columns = {f"x{j}": X[:, j] for j in range(5)}
        for k, levels in enumerate(LEVELS):
            level = rng.integers(levels, size=n)
            y = y + rng.normal(scale=effect, size=levels)[level]
            columns[f"c{k}"] = [f"level {value}" for value in level]
        yield Table.of(columns), y, np.arange(rows), np.arange(rows, n)


def mean_costs(cases, backorder, holding):
    """Mean cost of each method over the cases."""
    costs = {}
    for table, y, train, test in cases:
        for name, policy in methods(backorder, holding).items():
            policy.fit(table.take(train), y[train])
            costs.setdefault(name, []).append(policy.cost(table.take(test), y[test]))
    return {name: float(np.mean(values)) for name, values in costs.items()}


def main():
    warnings.simplefilter("ignore", SurefootWarning)
    keys = ("data", "rows", "method", "cost")
    rows = [{key: row[key] for key in keys} for row in read_csv("mixed_columns")]
    done = {(row["data"], row["rows"]) for row in rows}
    cells = [("yaz", days, restaurant, (days,), (15.0, 10.0)) for days in WINDOWS]
    cells += [
        (f"mixed, effects {effect}", size, mixed, (size, effect), (1.0, 0.2))
        for effect in EFFECTS
        for size in SIZES
    ]
    for data, size, make, arguments, costs in cells:
        if (data, str(size)) in done:
            continue
        for name, cost in mean_costs(make(*arguments), *costs).items():
            rows.append({"data": data, "rows": size, "method": name, "cost": f"{cost:.4f}"})
            print(data, size, name, f"{cost:.4f}", flush=True)
        write_csv("mixed_columns", rows)
    write_page()


def write_page():
    """Write the table of the how-to page."""
    found = {}
    for row in read_csv("mixed_columns"):
        found.setdefault((row["data"], row["rows"]), {})[row["method"]] = float(row["cost"])
    names = list(next(iter(found.values())))
    lines = ["| learned from | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for (data, size), costs in found.items():
        shown = " | ".join(f"{costs[name]:.3g}" for name in names)
        lines.append(f"| {data}, {size} rows | {shown} |")
    page = Path(__file__).parents[1] / "docs" / "howto" / "mixed-columns.md"
    machine = read_csv("mixed_columns")[0]["machine"]
    put_section(page, "freezing", "\n".join([*lines, "", f"On {machine}."]))


if __name__ == "__main__":
    main()
