"""Rows against memory: fits to folders of Parquet files that do not fit into memory, certified over all rows.

Demand with ten columns of float32, files of a million rows in order of time, with a season and a trend, so
that no part of the files is like the whole. Each fit runs in a process of its own, whose largest resident
size is taken. Beside it, as far as memory allows, the same rows at once; and a fit with everything on
automatic to a million rows. A hundred million rows take 4.4 GB of disk while they are needed.

python -m benchmarks.beyond_memory              # 1e6, 3e6, 1e7 and 1e8 rows
python -m benchmarks.beyond_memory 1000000      # some of them
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.beyond_memory_fit import AUTOMATIC, COLUMNS, FILE_ROWS, FILES, MEMORY, RADIUS, demand
from benchmarks.machine import read_csv, write_csv
from benchmarks.page import stamp, table
from benchmarks.sections import put_section

mpl.use("Agg")
import matplotlib.pyplot as plt

ROWS = (1_000_000, 3_000_000, 10_000_000, 100_000_000)
AT_ONCE = 3_000_000  # most rows that are held in memory at once
DOCS = Path(__file__).parents[1] / "docs"
PICTURE = DOCS / "images" / "beyond_memory.png"


def write_files(folder, rows):
    """Write so many rows into files of a million each."""
    for first in range(0, rows, FILE_ROWS):
        X, y = demand(first, min(FILE_ROWS, rows - first), rows)
        columns = {f"x{j}": X[:, j] for j in range(COLUMNS)}
        pq.write_table(pa.table({**columns, "sales": y}), folder / f"part-{first:012}.parquet")


def measured(how, solver, folder, rows):
    """Fit in a process of its own."""
    call = [sys.executable, "-m", "benchmarks.beyond_memory_fit", how, solver, str(folder), str(rows)]
    done = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True)
    row = {"rows": rows, "data": how, "solver": solver, **json.loads(done.stdout.splitlines()[-1])}
    print(row, flush=True)
    return row


def picture(rows):
    """Draw rows against memory and time."""
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.2), layout="constrained")
    names = {
        (FILES, "PrimalDual"): ("PrimalDual, files", "o-"),
        (FILES, "DASGD"): ("DASGD, files", "s-"),
        (MEMORY, "PrimalDual"): ("PrimalDual, rows in memory", "^--"),
    }
    for axis, key, unit, label in (
        (axes[0], "peak_megabytes", 1e3, "peak memory, GB"),
        (axes[1], "processor_seconds", 1.0, "processor seconds"),
    ):
        for (how, solver), (name, style) in names.items():
            mine = [row for row in rows if (row["data"], row["solver"]) == (how, solver)]
            numbers = sorted((int(row["rows"]), float(row[key]) / unit) for row in mine)
            if numbers:
                axis.plot(*zip(*numbers, strict=True), style, label=name)
        axis.set(xscale="log", yscale="log", xlabel="rows (10 columns)", ylabel=label)
        axis.grid(alpha=0.3)
    axes[0].axhline(2.0, color="grey", lw=0.8, ls=":")
    axes[0].legend(fontsize=8)
    figure.savefig(PICTURE, dpi=150)
    print(f"wrote {PICTURE}")


def page(rows):
    """Write the table and the picture's place into the how-to page."""
    shown = [
        {
            **row,
            "count": f"{int(row['rows']):,}",
            "data": "rows in memory, everything automatic" if row["data"] == AUTOMATIC
            else {FILES: "files", MEMORY: "rows in memory"}[row["data"]],
            "solver": row["solver"] or "the ensemble",
            "proved": f"{100 * float(row['gap']):.2f} %" if row["gap"] else "",
        }
        for row in rows
    ]  # fmt: skip
    heads = {
        "count": "rows", "data": "data", "solver": "solver", "peak_megabytes": "peak MB",
        "seconds": "seconds", "processor_seconds": "processor seconds", "proved": "certified gap",
    }  # fmt: skip
    loads = [float(row["load"]) for row in rows]
    text = f"""Ten columns of 32 bits, files of a million rows in order of time, radius {RADIUS}; peak memory of the whole process,
seconds of the fit from the first byte read, while other work ran on the machine (load {min(loads):.0f} to {max(loads):.0f}).

![Peak memory and processor seconds against rows](../images/beyond_memory.png)

{table(shown, heads)}

{stamp(rows)} `python -m benchmarks.beyond_memory`."""
    put_section(DOCS / "howto" / "large.md", "beyond_memory", text)


def main(sizes=ROWS):
    """Measure and write results/beyond_memory.csv and the picture."""
    rows = []
    with tempfile.TemporaryDirectory() as name:  # compile what is compiled, and keep it on disk
        write_files(Path(name), 10_000)
        for solver in ("PrimalDual", "DASGD"):
            measured(FILES, solver, Path(name), 10_000)
        measured(AUTOMATIC, "", Path(name), 10_000)
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_files(folder, size)
            rows += [measured(FILES, solver, folder, size) for solver in ("PrimalDual", "DASGD")]
            if size <= AT_ONCE:
                rows.append(measured(MEMORY, "PrimalDual", folder, size))
            if size == FILE_ROWS:
                rows.append(measured(AUTOMATIC, "", folder, size))
    others = [row for row in read_csv("beyond_memory") if int(row["rows"]) not in sizes]
    kept = [{key: row[key] for key in rows[0]} for row in others]
    rows = sorted([*kept, *rows], key=lambda row: int(row["rows"]))
    write_csv("beyond_memory", rows)
    picture(rows)
    page(read_csv("beyond_memory"))


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or ROWS)
