"""Tables and pictures from the committed costs; the page docs/quality.md."""

import csv
import statistics
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.machine import RESULTS
from benchmarks.quality.grid import ABLATIONS, BASELINES, FIXED, FORMER, OURS
from benchmarks.quality.run import ROWS
from benchmarks.sections import put_section

DOCS = Path(__file__).parents[2] / "docs"
LABELS = {
    "saa": "SAA", "erm-vertex": "ERM, vertex", "erm-norm": "ERM, minimum norm", "erm-l1": "ERM, l1",
    "forest": "Forest", "shapley-auto": "Shapley",
    **{method.name: method.label for method in (OURS, FORMER, *ABLATIONS, *FIXED)},
}  # fmt: skip
COLOURS = {"positive": "#0f766e", "mixed": "#b45309"}


def read():
    """Return {data: {method: {repetition: cost}}} and the rows themselves."""
    costs = defaultdict(lambda: defaultdict(dict))
    with ROWS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        costs[row["data"]][row["method"]][int(row["repetition"])] = float(row["cost"])
    return costs, rows


def part(key, name):
    """Return a part of a data set's key, such as n."""
    return next(piece.split("=")[1] for piece in key.split("/") if piece.startswith(f"{name}="))


def cells(costs):
    """Return one row for each synthetic cell: means, deviations and ratios."""
    found = []
    for key, methods in sorted(costs.items()):
        if not key.startswith("synthetic"):
            continue
        own = methods[OURS.name]
        mean = {name: statistics.mean(methods[name].values()) for name in BASELINES}
        spread = {name: statistics.stdev(methods[name].values()) for name in BASELINES}
        best = min(mean, key=mean.get)
        _, coefficients, contexts, *_ = key.split("/")
        row = {
            "coefficients": coefficients, "contexts": contexts, "s": int(part(key, "s")),
            "noise_variance": float(part(key, "variance")), "n": int(part(key, "n")),
            "repetitions": len(own), "ours": statistics.mean(own.values()), "best_baseline": best,
            "best_cost": mean[best], "ratio": statistics.mean(own.values()) / mean[best],
            "deviation_ratio": statistics.stdev(own.values()) / min(spread.values()),
        }  # fmt: skip
        row |= {f"cost_{name}": mean[name] for name in BASELINES}
        fixed = [methods[method.name] for method in FIXED if method.name in methods]
        if fixed:
            shared = sorted(set(own).intersection(*fixed))
            hindsight = min(statistics.mean(m[k] for k in shared) for m in fixed)
            row["fixed_ratio"] = statistics.mean(own[k] for k in shared) / hindsight
        found.append(row)
    return found


def write_cells(found):
    """Write the cells as a table anyone can read."""
    path = RESULTS / "quality" / "cells.csv"
    names = list(dict.fromkeys(name for row in found for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=names)
        writer.writeheader()
        for row in found:
            writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()})
    print(f"wrote {path}")


def verdicts(found):
    """Return the claims with what was measured, as a table."""
    ratios = np.array([row["ratio"] for row in found])
    small = [row["deviation_ratio"] for row in found if row["n"] <= 100]
    at_ten = [row["fixed_ratio"] for row in found if row["n"] == 10]
    large = [row["fixed_ratio"] for row in found if row["n"] >= 100]
    steady = sum(ratio <= 1.1 for ratio in small)
    lines = [
        ("mean ratio to the best baseline in hindsight", "at most 0.90", f"{ratios.mean():.3f}",
         ratios.mean() <= 0.90),
        ("cells in which it costs less", "at least 85 %",
         f"{100 * (ratios < 1).mean():.0f} % of {len(ratios)}", (ratios < 1).mean() >= 0.85),
        ("worst cell", "at most 1.02", f"{ratios.max():.3f}", ratios.max() <= 1.02),
        ("deviation over repetitions smallest, or within 10 % of it, for n <= 100", "every cell",
         f"{steady} of {len(small)} cells", steady == len(small)),
        ("mean ratio to the best fixed radius in hindsight, n = 10", "at most 1.08",
         f"{np.mean(at_ten):.3f}", np.mean(at_ten) <= 1.08),
        ("the same, n >= 100", "at most 1.04", f"{np.mean(large):.3f}", np.mean(large) <= 1.04),
    ]  # fmt: skip
    table = ["| measure | aim | measured | |", "|---|---|---|---|"]
    table += [f"| {what} | {aim} | {got} | {'reached' if ok else '**missed**'} |"
              for what, aim, got, ok in lines]  # fmt: skip
    return "\n".join(table)


def by_size(found):
    """Return mean ratios by n and coefficient pattern, and the worst cells."""
    sizes = sorted({row["n"] for row in found})
    table = [
        "| n | " + " | ".join(f"{c}, {x}" for c in COLOURS for x in ("uniform", "gaussian")) + " |"
    ]
    table.append("|---" * 5 + "|")
    for n in sizes:
        entries = []
        for coefficients in COLOURS:
            for contexts in ("uniform", "gaussian"):
                ratios = [
                    row["ratio"] for row in found
                    if (row["n"], row["coefficients"], row["contexts"]) == (n, coefficients, contexts)
                ]  # fmt: skip
                entries.append(f"{np.mean(ratios):.2f}")
        table.append(f"| {n} | " + " | ".join(entries) + " |")
    return "\n".join(table)


def restaurant(costs):
    """Return the total cost over the seven products by window."""
    totals = defaultdict(lambda: defaultdict(float))
    for key, methods in costs.items():
        if key.startswith("yaz"):
            for name, values in methods.items():
                totals[int(part(key, "days"))][name] += values[0]
    shown = (OURS.name, FORMER.name, *BASELINES, *(method.name for method in ABLATIONS))
    days = sorted(totals)
    table = [
        "| method | " + " | ".join(f"{d} days" for d in days) + " |",
        "|---" * (len(days) + 1) + "|",
    ]
    for name in shown:
        if not all(name in totals[d] for d in days):
            continue
        least = {d: min(totals[d][other] for other in (OURS.name, *BASELINES)) for d in days}
        entries = [
            f"**{totals[d][name]:.1f}**" if totals[d][name] == least[d] else f"{totals[d][name]:.1f}"
            for d in days
        ]
        whole = name in (*BASELINES, OURS.name, FORMER.name)
        label = LABELS[name] if whole else f"former, {LABELS[name]}"
        table.append(f"| {label} | " + " | ".join(entries) + " |")
    return "\n".join(table)


def ablation(costs):
    """Return the mean ratio to the best baseline with one part left out, on shared repetitions."""
    table = ["| | mean ratio | worst cell |", "|---|---|---|"]
    variants = (OURS, FORMER, *ABLATIONS)
    for method in variants:
        ratios = []
        for key, methods in costs.items():
            if key.startswith("synthetic") and all(other.name in methods for other in ABLATIONS):
                shared = sorted(set.intersection(*(set(methods[m.name]) for m in variants)))
                best = min(statistics.mean(methods[b][k] for k in shared) for b in BASELINES)
                ratios.append(statistics.mean(methods[method.name][k] for k in shared) / best)
        table.append(f"| {method.label} | {np.mean(ratios):.3f} | {max(ratios):.3f} |")
    return "\n".join(table)


def picture(found):
    """Draw every cell: ratio to the best baseline against n."""
    figure, axes = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    sizes = sorted({row["n"] for row in found})
    for row in found:
        shift = {"positive": -0.12, "mixed": 0.12}[row["coefficients"]]
        shift += 0.05 if row["s"] == 1000 else -0.05
        axes.plot(
            sizes.index(row["n"]) + shift, row["ratio"], "o" if row["s"] == 100 else "^",
            color=COLOURS[row["coefficients"]], markersize=5, alpha=0.75, markeredgewidth=0,
        )  # fmt: skip
    axes.axhline(1.0, color="#444444", linewidth=0.8)
    axes.set_xticks(range(len(sizes)), [str(n) for n in sizes])
    axes.set_xlabel("rows to learn from")
    axes.set_ylabel("cost over that of the\nbest baseline in hindsight")
    axes.set_ylim(0, 1.15)
    for name, colour in COLOURS.items():
        axes.plot([], [], "s", color=colour, label=f"{name} coefficients")
    for marker, s in (("o", 100), ("^", 1000)):
        axes.plot([], [], marker, color="#777777", label=f"{s} columns")
    axes.legend(loc="lower right", frameon=False, fontsize=8, ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("Default settings, one point for each cell of the grid", fontsize=10, loc="left")
    path = DOCS / "images" / "quality.png"
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"wrote {path}")


def main():
    """Write tables, picture and page."""
    costs, rows = read()
    found = cells(costs)
    write_cells(found)
    picture(found)
    page = DOCS / "quality.md"
    machines = sorted({row["machine"] for row in rows})
    counts = sorted({row["repetitions"] for row in found})
    put_section(page, "verdicts", verdicts(found))
    put_section(page, "sizes", by_size(found))
    put_section(page, "restaurant", restaurant(costs))
    put_section(page, "ablation", ablation(costs))
    put_section(
        page, "machine",
        f"{len(rows):,} fits; {' to '.join(map(str, counts))} repetitions of each cell; "
        f"on {'; '.join(machines)}.",
    )  # fmt: skip


if __name__ == "__main__":
    main()
