"""The machine's name and result files; nothing here needs more than Python itself."""

import csv
import os
import platform
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def machine():
    """Say on what machine this runs."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def write_csv(name, rows):
    """Write rows (dicts with equal keys) to results/NAME.csv, with the machine and the date.

    Rows that name theirs keep them: they were measured before.
    """
    path = RESULTS / f"{name}.csv"
    stamp = {"machine": machine(), "date": time.strftime("%Y-%m-%d")}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list({**rows[0], **stamp}))
        writer.writeheader()
        writer.writerows({**stamp, **row} for row in rows)
    print(f"wrote {path}")


def read_csv(name):
    """Return the rows of results/NAME.csv, or none."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
