"""Cost of one step: our kernels, the floor in C (built here, now), and a NumPy loop of the paper.

python -m benchmarks.step_cost
"""

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np

from benchmarks.common import BACKORDER, HOLDING, RESULTS, machine, write_csv
from surefoot import Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.engines.affine_lane import Lane
from surefoot.engines.engine import Options
from surefoot.engines.literal_kernel import literal_steps
from surefoot.engines.primal_dual import PrimalDualRun
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms
from tests.oracles.literal_twin import literal_update

mpl.use("Agg")
import matplotlib.pyplot as plt

RADIUS = 0.1
REPEATS, ROUNDS = 5, 7


def affine(n, s, *, intercept=False):
    data = synthetic(n=n, s=s, coefficients="mixed", seed=0, test=1)
    problem = Problem(
        Newsvendor(BACKORDER, HOLDING), Linear(intercept=intercept), Empirical(data.X, data.y),
        WassersteinBall(RADIUS),
    )  # fmt: skip
    return affine_forms(problem)[0].in_plain_units()


def best(run, steps):
    """Microseconds per step, the best of several repeats: noise only ever adds."""
    run()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return 1e6 * min(times) / steps


def build_floors():
    """Build the floor in several ways; the fastest of them is the floor."""
    folder = Path(tempfile.mkdtemp())
    source = Path(__file__).with_name("floor.c")
    floors = []
    for lanes in (1, 8, 16, 32, 64):
        for width in (256, 512):
            library = folder / f"floor_{lanes}_{width}.so"
            flags = ["-O3", "-march=native", "-ffast-math", "-funroll-loops", f"-DLANES={lanes}"]
            flags += [f"-mprefer-vector-width={width}", "-shared", "-fPIC"]
            subprocess.run(["cc", *flags, str(source), "-o", str(library), "-lm"], check=True)
            function = ctypes.CDLL(str(library)).floor_seconds
            function.restype = ctypes.c_double
            floors.append(function)
    return floors


def floor_cost(function, problem, draws):
    rows, y = problem.contexts, problem.outcomes
    norms = (rows**2).sum(axis=1)
    theta = np.zeros(rows.shape[1])
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (rows, y, norms, draws)]

    def once():
        return function(
            *pointers, ctypes.c_int64(len(draws)), ctypes.c_int64(rows.shape[1]),
            ctypes.c_double(HOLDING), ctypes.c_double(BACKORDER), ctypes.c_double(RADIUS),
            theta.ctypes.data_as(ctypes.c_void_p),
        )  # fmt: skip

    once()
    return 1e6 * min(once() for _ in range(REPEATS)) / len(draws)


def numpy_literal(problem, draws, inner_steps=10):
    theta, gamma = np.zeros(problem.contexts.shape[1]) + 0.01, 1.0
    began = time.perf_counter()
    for i in draws:
        theta, gamma = literal_update(
            theta, gamma, (problem.contexts[i], problem.outcomes[i]),
            slopes=(HOLDING, BACKORDER, 0.1), radius=RADIUS, order=1,
            step_sizes=(1e-3, 1e-3, 1e-2), inner_steps=inner_steps, epsilon=1e-6, movable=1.0,
        )  # fmt: skip
    return 1e6 * (time.perf_counter() - began) / len(draws)


def dasgd(form, draws, *, rotate=False):
    """Return what takes one step of DA-SGD for each draw, in the columns or in principal axes."""
    lane = Lane(form, Options(), rotate=rotate)
    theta, numbers = lane.first()
    return lambda: lane.step(theta, numbers, form, lane.rows, draws)


def kernels(n, s, floors):
    """Measure everything in turn, several rounds, and keep the best: all see the same noise."""
    rng = np.random.default_rng(0)
    steps = int(4e6 / s) + 20_000
    draws = rng.integers(n, size=steps)
    problem = affine(n, s)
    plain, run = dasgd(problem, draws), PrimalDualRun.start(problem)
    theta = np.full(s, 0.01)

    def literal():
        literal_steps(
            problem.contexts, problem.outcomes, draws, HOLDING, BACKORDER, 0.1, RADIUS, 1, 1e-3,
            1e-3, 1e-2, 10, 1e-6, np.ones(s), theta, 1.0,
        )  # fmt: skip

    measures = {
        "floor_c": lambda: min(floor_cost(f, problem, draws) for f in floors),
        "dasgd": lambda: best(plain, steps),
        "primal_dual": lambda: best(lambda: run.run(draws), steps),
        "literal_k10": lambda: best(literal, steps),
        "numpy_literal_k10": lambda: numpy_literal(problem, draws[:1000]),
    }
    if n < s:
        rotated = dasgd(problem, draws, rotate=True)
        measures["dasgd_rotated"] = lambda: best(rotated, steps)
    rounds = [{name: measure() for name, measure in measures.items()} for _ in range(ROUNDS)]
    row = {"n": n, "s": s} | {name: min(r[name] for r in rounds) for name in measures}
    row["dasgd_over_floor"] = row["dasgd"] / row["floor_c"]
    row["numpy_over_dasgd"] = row["numpy_literal_k10"] / row["dasgd"]
    return {key: f"{v:.4f}" if isinstance(v, float) else v for key, v in row.items()}


def against_rows():
    """Step cost from n = 10 to n = 1e6 at s = 100: flat, but for the cache."""
    rows = []
    rng = np.random.default_rng(0)
    for n in (10, 100, 1_000, 10_000, 100_000, 1_000_000):
        problem = affine(n, 100)
        draws = rng.integers(n, size=1_000_000)
        plain, run = dasgd(problem, draws), PrimalDualRun.start(problem)
        rows.append(
            {
                "n": n,
                "megabytes": f"{problem.contexts.nbytes / 1e6:.3f}",
                "dasgd": f"{best(plain, len(draws)):.4f}",
                "primal_dual": f"{best(lambda r=run, d=draws: r.run(d), len(draws)):.4f}",
            }
        )
        print(rows[-1], flush=True)
    return rows


def last_cache_bytes():
    """Size of the last-level cache, or None where the system does not tell."""
    path = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return int(path.read_text().strip().removesuffix("K")) * 1024 if path.exists() else None


def draw(rows):
    figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
    n = [row["n"] for row in rows]
    for key, label, colour in (
        ("dasgd", "DA-SGD", "#1f6f8b"),
        ("primal_dual", "primal-dual", "#c8553d"),
    ):
        axes.plot(n, [float(row[key]) for row in rows], "o-", label=label, color=colour)
    axes.set(xscale="log", xlabel="rows n (s = 100)", ylabel="microseconds per step", ylim=(0, None))
    cache = last_cache_bytes()
    if cache:
        edge = cache / (8 * 100)  # rows of 100 doubles
        axes.axvspan(edge, max(n), color="#eeeeee", zorder=0)
        label = f"data larger than\nthe cache ({cache / 2**20:.0f} MiB)"
        axes.text(edge * 1.1, 0.01, label, fontsize=8, color="#666666")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    axes.set_title(f"Step cost against rows ({machine().split(',')[0]})", loc="left", fontsize=9)
    figure.savefig(RESULTS / "step_cost_rows.png", dpi=150)


def main():
    floors = build_floors()
    rows = [kernels(n, s, floors) for n, s in ((500, 100), (500, 1000), (50, 1000))]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    rows = [{key: row.get(key, "") for key in keys} for row in rows]
    for row in rows:
        print(row)
    write_csv("step_cost", rows)
    by_rows = against_rows()
    write_csv("step_cost_rows", by_rows)
    draw(by_rows)


if __name__ == "__main__":
    main()
