"""Cost over the best of all methods in hindsight, as tables of the page on quality."""

import numpy as np

from benchmarks.machine import RESULTS, read_csv
from benchmarks.quality.real.methods import METHODS
from benchmarks.quality.real.run import TABLE, cells, known
from benchmarks.quality.real.tasks import DESIGN, JUDGE, task
from benchmarks.sections import put_section

PAGE = RESULTS.parents[1] / "docs" / "quality.md"
NAMES = {
    "surefoot": "Surefoot", "robust_linear": "robust linear", "saa": "SAA (constant order)",
    "l1_quantile": "l1 quantile regression", "ridge": "ridge + residual quantile",
    "forest": "forest + residual quantile", "quantile_forest": "quantile forest",
    "lightgbm": "LightGBM (quantile)", "boosting": "scikit-learn boosting (quantile)",
}  # fmt: skip
GROUPS = {
    "all": lambda key: True,
    "in time order": lambda key: task(key[0]).ordered,
    "shuffled": lambda key: not task(key[0]).ordered,
    "n <= 50": lambda key: key[1] <= 50,
    "n >= 300": lambda key: key[1] >= 300,
}


def ratios(makers):
    """Return for each cell (repeats averaged) what each method costs over the best in hindsight.

    A method counts if it was run on every cell.
    """
    costs, sums, chosen = known(), {}, cells(makers)
    methods = [
        method.__name__ for method in METHODS if all((c, method.__name__) in costs for c in chosen)
    ]
    if "surefoot" not in methods:
        return {}
    for cell in chosen:
        key = (cell.task, cell.n, cell.backorder, cell.holding)
        entry = sums.setdefault(key, dict.fromkeys(methods, 0.0))
        for name in methods:
            entry[name] += costs[cell, name]
    return {
        key: {name: cost / min(entry.values()) for name, cost in entry.items()}
        for key, entry in sums.items()
    }


def table(makers) -> str:
    """Return geometric means of the ratios, method by method, and the largest cell."""
    found = ratios(makers)
    if not found:
        return "Not run yet."
    lines = [
        f"| {len(found)} cells | {' | '.join(GROUPS)} | largest |",
        "|---" * (len(GROUPS) + 2) + "|",
    ]
    rows = []
    for name in next(iter(found.values())):
        means = [
            float(np.exp(np.mean([np.log(r[name]) for key, r in found.items() if chosen(key)])))
            for chosen in GROUPS.values()
        ]
        largest = max(r[name] for r in found.values())
        rows.append(
            (means[0], f"| {NAMES[name]} | {' | '.join(f'{m:.2f}' for m in means)} | {largest:.1f} |")
        )
    return "\n".join(lines + [row for _, row in sorted(rows)])


def by_task(makers) -> str:
    """Return geometric means of the ratios, task by task, of the methods that are first somewhere."""
    found = ratios(makers)
    if not found:
        return "Not run yet."
    names = ("surefoot", "robust_linear", "quantile_forest")
    lines = [f"| task | {' | '.join(NAMES[name] for name in names)} |", "|---" * (len(names) + 1) + "|"]
    for make in makers:
        rows = [entry for key, entry in found.items() if key[0] == make.__name__]
        means = [np.exp(np.mean([np.log(entry[name]) for entry in rows])) for name in names]
        lines.append(f"| {make.__name__} | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    return "\n".join(lines)


def main():
    """Write the tables."""
    parts = [
        "**Tasks that the default was designed on**", table(DESIGN),
        "**Tasks that judged an earlier design once, and are known now**", table(JUDGE),
        "The same tasks one by one", by_task(JUDGE),
        f"On {' and '.join(sorted({row['machine'] for row in read_csv(TABLE)}))}. `python -m benchmarks.quality.real`.",
    ]  # fmt: skip
    put_section(PAGE, "real", "\n\n".join(parts))


if __name__ == "__main__":
    main()
