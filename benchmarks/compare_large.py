"""``surefoot compare`` with all methods on 100,000 rows: wall time, memory, and what it found.

The largest resident size of the command and its children must stay below 1 GB, and the time below three
minutes.

python -m benchmarks.compare_large
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.command_line import COSTS, ROWS, large_table
from benchmarks.common import write_csv


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        large_table(path)
        command = [sys.executable, "-m", "surefoot.cli.main", "compare", str(path), "--json"]
        began = time.perf_counter()
        done = subprocess.run(
            [*command, "--outcome", "demand", *COSTS], check=True, stdout=subprocess.PIPE, text=True
        )
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    found = json.loads(done.stdout)
    print(found["sampled"])
    whole = {
        "what": f"compare {ROWS:,} rows", "seconds": f"{seconds:.0f}",
        "peak_megabytes": f"{peak:.0f}", "cost": "", "load": f"{os.getloadavg()[0]:.1f}",
        "sampled": found["sampled"],
    }  # fmt: skip
    rows = [whole] + [
        {
            "what": f"{row['method']}, each fit", "seconds": f"{row['seconds']:.1f}",
            "peak_megabytes": "", "cost": f"{row['cost']:.2f}", "load": "", "sampled": "",
        }
        for row in found["methods"]
    ]  # fmt: skip
    for row in rows:
        print(row)
    write_csv("compare_large", rows)


if __name__ == "__main__":
    main()
