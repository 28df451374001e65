"""Dirty data, long tails, shifts, the stated bound, and bounds in time order, as tables of the page on quality.

python -m benchmarks.quality.robust_page
"""

import numpy as np

from benchmarks.machine import RESULTS, read_csv
from benchmarks.sections import put_section

PAGE = RESULTS.parents[1] / "docs" / "quality.md"
SHIFTS = {"noise": "noise", "mean": "all rows alike", "worst": "each row in its worst direction"}


def _table(head, rows) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def dirty() -> str:
    """Return mean and largest cost over the clean fit, by kind of dirt and share of rows."""
    found = read_csv("quality_dirty")
    shares = sorted({float(row["share"]) for row in found})
    rows = [
        [kind, *(
            f"{row['mean']} ({row['largest']})"
            for share in shares
            for row in found if row["dirt"] == kind and float(row["share"]) == share
        )]
        for kind in dict.fromkeys(row["dirt"] for row in found)
    ]  # fmt: skip
    return _table(["rows that are dirty", *(f"{share:.0%}" for share in shares)], rows)


def shift() -> str:
    """Return costs over the best method, by kind and size of shift."""
    found = read_csv("quality_shift")
    names = list(dict.fromkeys(row["method"] for row in found))
    cells = {(row["shift"], row["size"], row["method"]): row["over best"] for row in found}
    cases = list(dict.fromkeys((row["shift"], row["size"]) for row in found))
    rows = [
        [
            f"{SHIFTS[kind]}, {float(size):g}",
            *(f"{float(cells[kind, size, name]):.2f}" for name in names),
        ]
        for kind, size in cases
    ]
    # Short: eleven columns have to fit on a page.
    heads = [name.replace("surefoot protect=", "protect ") for name in names]
    return _table(["shift, standard deviations", *heads], rows)


def guarantee() -> str:
    """Return how often bounds held, and how far they are above the true cost, by number of rows."""
    found = read_csv("quality_guarantee")
    rows = []
    for n in dict.fromkeys(row["n"] for row in found):
        held = [float(row["held"]) for row in found if row["n"] == n]
        ratio = [float(row["ratio"]) for row in found if row["n"] == n]
        rows.append([
            n, f"{np.mean(held):.1%}", f"{min(held):.1%} to {max(held):.1%}", f"{np.median(ratio):.2f}",
            f"{min(ratio):.2f} to {max(ratio):.2f}",
        ])  # fmt: skip
    return _table(["rows", "held, all laws", "law by law", "bound over true cost", "law by law"], rows)


def order() -> str:
    """Return how often bounds held for the next days of the restaurant."""
    found = read_csv("quality_order")
    names = [name for name in found[0] if name not in ("machine", "date")]
    return _table(names, [[row[name] for name in names] for row in found])


def tails() -> str:
    """Return costs over the best other method, by law and effect of contexts."""
    found = read_csv("quality_tails")
    cells = {(row["effect"], row["contexts"], row["n"]): row for row in found}
    effects = list(dict.fromkeys(row["effect"] for row in found))
    rows = [
        [f"{contexts}, {n} rows", *(
            f"{float(cells[effect, contexts, n]['mean']):.2f} ({float(cells[effect, contexts, n]['largest']):.1f})"
            for effect in effects
        )]
        for contexts, n in dict.fromkeys((row["contexts"], row["n"]) for row in found)
    ]  # fmt: skip
    return _table(["contexts", *effects], rows)


def tail_bounds() -> str:
    """Return how often bounds held with contexts of long tails, and how often with a reservation."""
    found = read_csv("quality_tail_bounds")
    told = ("held for all new rows", "with a reservation", "held as stated")
    rows = [
        [
            f"{row['contexts']}, {row['effect']}, {row['n']} rows",
            *(f"{float(row[name]):.0%}" for name in told),
        ]
        for row in found
    ]
    return _table(["contexts and effect", *told], rows)


def few_columns() -> str:
    """Return costs over the best other method where few of many columns matter."""
    found = read_csv("quality_few_columns")
    names = ("lasso", "l1 quantile", "forest")
    rows = [
        [f"{row['used']} of {row['columns']}, {row['n']} rows",
         f"{float(row['surefoot']):.2f} ({float(row['largest']):.1f})",
         *(f"{float(row[name]):.2f}" for name in names)]
        for row in found
    ]  # fmt: skip
    return _table(["columns that matter", "Surefoot", *names], rows)


def main():
    """Write the tables."""
    for make in (dirty, tails, few_columns, shift, guarantee, tail_bounds, order):
        name = make.__name__
        machine = read_csv(f"quality_{name}")[0]["machine"]
        put_section(PAGE, f"robust-{name}", f"{make()}\n\nOn {machine}.")


if __name__ == "__main__":
    main()
