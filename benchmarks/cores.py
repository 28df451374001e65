"""Ten thousand problems on 1, 2, 4, ... cores of one machine: wall time, and the ratio to one core.

python -m benchmarks.cores

Parameters and gaps are read as arrays; a second column reads policy and certificate of each Solution.
Rounds take all counts of cores in turn, so that a machine that is slower for a while is so for each of
them, and the time of a count is the median of its rounds. What the machine itself gives is measured in
the same rounds by two loops that share nothing: in ``chain`` each operation waits for the last one, in
``sums`` none does. Where "cores" of a virtual machine are two hyperthreads of one core, the first finds
all of them, and the second only half.
"""

import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from benchmarks.machine import write_csv
from benchmarks.many_problems import PROBLEMS, describe, read_arrays, read_each
from surefoot import solve_many

ROUNDS, PARTS = 7, 320


@numba.njit(nogil=True)
def chain(count):
    """Multiply and add, each time to the last result."""
    x = 0.5
    for _ in range(count):
        x = x * 1.0000001 + 1e-9
    return x


@numba.njit(nogil=True, fastmath=True)
def sums(numbers, count):
    """Add up squares of numbers that lie in the fastest memory, in as many lanes as there are."""
    total = 0.0
    for _ in range(count):
        square = 0.0
        for i in range(len(numbers)):
            square += numbers[i] * numbers[i]
        numbers[0] = 1e-9 * square
        total += square
    return total


def shared(work, count):
    """Share parts of work among so many threads."""
    parts = iter([np.ones(1024) for _ in range(PARTS)])

    def take(_):
        for part in parts:
            work(part)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(take, range(count)))


def seconds_of(work, count):
    """Wall seconds of work on the first so many cores; threads that begin now stay on them."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:count])
    began = time.perf_counter()
    work(count)
    took = time.perf_counter() - began
    os.sched_setaffinity(0, cores)
    return took


def main():
    """Measure and write results/cores.csv."""
    most, counts = len(os.sched_getaffinity(0)), [1]
    while counts[-1] < most:
        counts.append(min(2 * counts[-1], most))
    problems = describe(order=2)
    works = {
        "solve_many, arrays read": lambda _: read_arrays(solve_many(problems)),
        "solve_many, each Solution read": lambda _: read_each(solve_many(problems)),
        "ceiling: chain": lambda count: shared(lambda part: chain(1_500 * len(part)), count),
        "ceiling: sums": lambda count: shared(lambda part: sums(part, 20_000), count),
    }
    for work in works.values():
        work(most)  # loads what is compiled
    times = {(what, count): [] for what in works for count in counts}
    for _ in range(ROUNDS):
        for what, work in works.items():
            for count in counts:
                times[what, count].append(seconds_of(work, count))
    rows = []
    for (what, count), found in times.items():
        one, median = statistics.median(times[what, 1]), statistics.median(found)
        rows.append(
            {"what": what, "cores": count, "problems": PROBLEMS if "solve" in what else "",
             "seconds": f"{median:.4f}", "times_one_core": f"{one / median:.1f}",
             "least_seconds": f"{min(found):.4f}",
             "least_times_one_core": f"{min(times[what, 1]) / min(found):.1f}",
             "rounds": " ".join(f"{each:.4f}" for each in found)}
        )  # fmt: skip
        print(rows[-1], flush=True)
    write_csv("cores", rows)


if __name__ == "__main__":
    main()
