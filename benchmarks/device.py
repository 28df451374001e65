"""On a GPU: ten thousand affine problems beside the host's cores, and neural policies side by side.

python -m benchmarks.device          (needs a GPU that JAX can see; writes results/device.csv)
"""

import os
import statistics
import sys
import time

import jax
import numpy as np

from benchmarks.machine import machine, write_csv
from benchmarks.many_problems import describe, read_arrays, read_each
from surefoot import Problem, WassersteinBall, solve_many
from surefoot.costs import Newsvendor
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.engine import Options
from surefoot.nominals import Empirical
from surefoot.policies import MLP
from surefoot.solvers import SGD

COST = Newsvendor(backorder=1.0, holding=0.2)
RADIUS, ROUNDS = 0.1, 7
ENGINES = {"threads": f"{os.cpu_count()} cores", "batch": "the GPU"}
SIZES = ((10_000, 100, 20), (1_000, 1_000, 50))  # problems, rows, columns
MLP_STEPS, MLP_COUNTS, INNER = 500, (1, 10, 100, 1000), 10


def best(run):
    """Return the first time (with compilation) and the best of the following ones, in seconds."""
    times = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return times[0], min(times[1:])


def side_by_side(order, count, rows, columns):
    """Affine problems, each to its certified gap, on the cores and on the GPU in turn.

    Parameters and gaps are read as arrays, then policy and certificate of each Solution.
    """
    problems, times = describe(order, count, rows, columns), {}
    for _ in range(ROUNDS + 1):
        for engine in ENGINES:
            for read in (read_arrays, read_each):
                began = time.perf_counter()
                answers = solve_many(problems, engine=engine)
                read(answers)
                times.setdefault((engine, read), []).append(time.perf_counter() - began)
            times[engine] = answers.gap.max()
    lines = []
    for engine, where in ENGINES.items():
        first, *arrays = times[engine, read_arrays]
        lines.append(
            {"what": f"{count} problems of {rows} x {columns}, order {order}, on {where}",
             "count": count, "first_seconds": round(first, 3),
             "seconds": round(statistics.median(arrays), 4),
             "each_solution_seconds": round(statistics.median(times[engine, read_each][1:]), 4),
             "ratio_to_one": "", "check": f"largest certified gap {100 * times[engine]:.2f} %"}
        )  # fmt: skip
    return lines


def neural(count):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 100))
    y = np.abs(X[:, 0]) + 0.3 * rng.normal(size=500)
    problem = Problem(COST, MLP((64, 64)), Empirical(X, y), WassersteinBall(RADIUS))
    options = Options(10**6, inner_steps=INNER, optimizer=SGD(1e-3))
    engine = Autodiff([problem] * count, range(count), options)
    state = engine.init()
    rows = rng.integers(500, size=(count, MLP_STEPS))
    with jax.enable_x64(True):
        contexts, outcomes = jax.numpy.asarray(X[rows]), jax.numpy.asarray(y[rows][:, :, None])
    return best(lambda: jax.block_until_ready(engine.learn(state, contexts, outcomes)[0]))


def main():
    device = jax.devices()[0]
    print(device, jax.__version__)
    if device.platform == "cpu":
        sys.exit("This benchmark needs a GPU that JAX can see.")
    rows = [line for size in SIZES for order in (2, 1) for line in side_by_side(order, *size)]
    times = {count: neural(count) for count in MLP_COUNTS}
    for count, (first, seconds) in times.items():
        rows.append(
            {
                "what": f"MLP(64, 64), K={INNER}, {MLP_STEPS} steps, {count} side by side",
                "count": count,
                "first_seconds": round(first, 3),
                "seconds": round(seconds, 4),
                "each_solution_seconds": "",
                "ratio_to_one": round(seconds / times[1][1], 2),
                "check": "",
            }
        )
    for row in rows:
        row["device"] = device.device_kind
        print(row)
    print(machine())
    write_csv("device", rows)


if __name__ == "__main__":
    main()
