"""Ten thousand problems on 1, 2, 4, ... cores of one machine: wall time, and the ratio to one core.

Parameters and gaps are read as arrays; making a Solution of each answer is Python, and comes on top.

python -m benchmarks.cores
"""

import json
import os
import subprocess
import sys
import time

from benchmarks.machine import write_csv
from benchmarks.many_problems import PROBLEMS, describe, read_arrays
from surefoot import solve_many

ROUNDS = 5


def measured(count):
    """Return the best wall seconds of some rounds on so many cores, and with each Solution made."""
    command = [sys.executable, "-m", "benchmarks.cores", str(count)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def solve_on(count):
    """Solve on so many cores and print the best time."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    problems, times = describe(order=2), []
    solve_many(problems[:20])  # loads what is compiled
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answers = solve_many(problems)
        read_arrays(answers)
        read = time.perf_counter() - began
        list(answers)
        times.append((read, time.perf_counter() - began))
    print(json.dumps([min(column) for column in zip(*times, strict=True)]))


def main():
    """Measure and write results/cores.csv."""
    most, counts = len(os.sched_getaffinity(0)), []
    while not counts or counts[-1] < most:
        counts.append(min(2 * counts[-1], most) if counts else 1)
    rows = []
    for count in counts:
        seconds, made = measured(count)
        one = float(rows[0]["seconds"]) if rows else seconds
        rows.append(
            {"cores": count, "problems": PROBLEMS, "seconds": f"{seconds:.3f}",
             "times_one_core": f"{one / seconds:.1f}", "with_solutions_seconds": f"{made:.3f}"}
        )  # fmt: skip
        print(rows[-1], flush=True)
    write_csv("cores", rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        solve_on(int(sys.argv[1]))
    else:
        main()
