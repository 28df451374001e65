"""The default on tasks that nobody chose, beside the other methods.

python -m benchmarks.quality.real.wide design|judge|other|later [method ...]    20 minutes on two cores each
python -m benchmarks.quality.real.wide page
"""

import sys
import warnings

import numpy as np
from joblib import Parallel, delayed

from benchmarks.machine import read_csv, write_csv
from benchmarks.quality.real.methods import METHODS, decide
from benchmarks.quality.real.page import NAMES, PAGE
from benchmarks.quality.real.run import LEAST_TEST, RATIOS, REPEATS, split_rows
from benchmarks.quality.real.wide_tasks import wide_tasks
from benchmarks.sections import put_section
from surefoot.costs import Newsvendor

SIZES = (20, 50, 100, 300)
HALVES = {"design": 0, "judge": 1, "other": 2, "later": 3}
# The other two methods of the real tasks are slow, and were first nowhere.
OTHERS = ("saa", "l1_quantile", "ridge", "quantile_forest", "lightgbm", "boosting")
# Cells in which some method costs less than this share of the constant order hold an identity, not a task.
IDENTITY = 1e-3
TABLE = "quality_wide"
KEYS = ("half", "task", "ordered", "n", "b", "h")
GROUPS = {
    "all": lambda key: True,
    "in time order": lambda key: key[2] == "True",
    "shuffled": lambda key: key[2] == "False",
    "n <= 50": lambda key: int(key[3]) <= 50,
    "n >= 300": lambda key: int(key[3]) >= 300,
}


def costs(half, task, names):
    """Return what methods cost on all cells of a task, repeats averaged."""
    warnings.simplefilter("ignore")
    methods, rows = [method for method in METHODS if method.__name__ in names], []
    for n in (n for n in SIZES if n + LEAST_TEST <= len(task.y)):
        for b, h in RATIOS:
            cost = Newsvendor(b, h)
            for method in methods:
                total = 0.0
                for repeat in range(REPEATS):
                    learn, judge = split_rows(task, task.name, n, repeat)
                    z = decide(method, task.X[learn], task.y[learn], b, h, repeat, task.X[judge])
                    total += float(cost.evaluate(np.reshape(z, (-1, 1)), task.y[judge, None]).mean())
                key = (half, task.name, str(task.ordered), str(n), str(b), str(h))
                rows.append(
                    {**dict(zip(KEYS, key, strict=True)), "method": method.__name__,
                     "cost": f"{total / REPEATS:.6g}"}
                )  # fmt: skip
    return rows


def run(half, names):
    """Run methods on a half; rows of others stay."""
    names = names or ("surefoot", *OTHERS)
    kept = [row for row in read_csv(TABLE) if row["half"] != half or row["method"] not in names]
    tasks = wide_tasks(HALVES[half])
    fresh = Parallel(n_jobs=-1)(delayed(costs)(half, task, names) for task in tasks)
    rows = kept + [row for part in fresh for row in part]
    write_csv(TABLE, sorted(rows, key=lambda row: [row[key] for key in (*KEYS, "method")]))


def ratios(half):
    """Return for each cell what each method costs over the best in hindsight; without identities."""
    cells = {}
    for row in read_csv(TABLE):
        if row["half"] == half:
            cells.setdefault(tuple(row[key] for key in KEYS), {})[row["method"]] = float(row["cost"])
    tasks = {key: cell for key, cell in cells.items() if min(cell.values()) > IDENTITY * cell["saa"]}
    return {
        key: {name: cost / min(cell.values()) for name, cost in cell.items()}
        for key, cell in tasks.items()
    }


def table(half):
    """Return geometric means of the ratios, method by method, and the largest cells."""
    found = ratios(half)
    names = {key[1] for key in found}
    lines = [
        f"| {len(found)} cells of {len(names)} tasks | {' | '.join(GROUPS)} | largest | above 2.5 |",
        "|---" * (len(GROUPS) + 3) + "|",
    ]
    rows = []
    for name in next(iter(found.values())):
        means = [
            float(np.exp(np.mean([np.log(cell[name]) for key, cell in found.items() if chosen(key)])))
            for chosen in GROUPS.values()
        ]
        largest = max(cell[name] for cell in found.values())
        above = sum(cell[name] > 2.5 for cell in found.values())
        shown = " | ".join(f"{mean:.2f}" for mean in means)
        rows.append((means[0], f"| {NAMES[name]} | {shown} | {largest:.1f} | {above} |"))
    return "\n".join(lines + [row for _, row in sorted(rows)])


def page():
    """Write the tables of the halves that were run."""
    machines = sorted({row["machine"] for row in read_csv(TABLE)})
    titles = {
        "design": "**The half that the default was looked at on**",
        "judge": "**The half that judged an earlier design, and is known now**",
        "other": "**Tables that judged an earlier design once, and are known now**",
        "later": "**Tables of other packages, looked at once**",
    }
    parts = [f"{title}\n\n{table(half)}" for half, title in titles.items() if ratios(half)]
    run_on = f"On {' and '.join(machines)}. `python -m benchmarks.quality.real.wide`."
    put_section(PAGE, "wide", "\n\n".join([*parts, run_on]))


if __name__ == "__main__":
    command, *rest = sys.argv[1:] or ["page"]
    if command in HALVES:
        run(command, tuple(rest))
    page()
