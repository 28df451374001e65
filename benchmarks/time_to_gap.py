"""Time to a certified 1 % gap against CVXPY with Clarabel on the same problem, in one run.

python -m benchmarks.time_to_gap
"""

import time

import matplotlib as mpl

from benchmarks.common import (
    BACKORDER,
    HOLDING,
    RESULTS,
    collapse_radius,
    convex_program,
    machine,
    write_csv,
)
from surefoot import PrimalDual, Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.nominals import Empirical
from surefoot.policies import Linear

mpl.use("Agg")
import matplotlib.pyplot as plt

SIZES = (100, 1_000, 10_000, 100_000)
COLUMNS, ORDER, SHARE = 100, 2, 0.1


def measure(n):
    data = synthetic(n=n, s=COLUMNS, coefficients="mixed", seed=0, test=1)
    X, y = data.X / data.X.std(axis=0), data.y
    radius = SHARE * collapse_radius(X, y, ORDER)
    ours = []
    for _ in range(5):
        began = time.perf_counter()
        problem = Problem(
            Newsvendor(BACKORDER, HOLDING), Linear(), Empirical(X, y), WassersteinBall(radius)
        )
        solution = PrimalDual().solve(problem, seed=0)
        ours.append(time.perf_counter() - began)
    optimum, theirs = convex_program(X, y, radius, ORDER, True)
    return {
        "n": n,
        "s": COLUMNS,
        "order": ORDER,
        "share_of_rho_max": SHARE,
        "surefoot_seconds": f"{sorted(ours)[2]:.5f}",
        "clarabel_seconds": f"{theirs:.4f}",
        "ratio": f"{theirs / sorted(ours)[2]:.1f}",
        "certified_gap": f"{solution.certificate.gap:.6f}",
        "true_gap": f"{(solution.certificate.upper - optimum) / optimum:.6f}",
        "steps": solution.n_steps,
    }


def draw(rows):
    figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
    n = [row["n"] for row in rows]
    for key, label, colour in (
        ("clarabel_seconds", "CVXPY + Clarabel", "#c8553d"),
        ("surefoot_seconds", "Surefoot PrimalDual(), certified", "#1f6f8b"),
    ):
        axes.plot(n, [float(row[key]) for row in rows], "o-", label=label, color=colour)
    for row in rows:
        middle = (float(row["clarabel_seconds"]) * float(row["surefoot_seconds"])) ** 0.5
        axes.text(row["n"], middle, f"{float(row['ratio']):.0f}x", ha="center", fontsize=9)
    axes.set(xscale="log", yscale="log", xlabel="rows n (s = 100)", ylabel="seconds to a 1 % gap")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    axes.set_title(machine(), loc="left", fontsize=7)
    figure.savefig(RESULTS / "time_to_gap.png", dpi=150)


def main():
    warm = synthetic(n=20, s=3, seed=0, test=1)
    PrimalDual().solve(
        Problem(Newsvendor(1, 0.2), Linear(), Empirical(warm.X, warm.y), WassersteinBall(0.1))
    )
    rows = []
    for n in SIZES:
        rows.append(measure(n))
        print(rows[-1], flush=True)
    write_csv("time_to_gap", rows)
    draw(rows)


if __name__ == "__main__":
    main()
