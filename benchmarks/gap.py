"""True and certified gap of PrimalDual() at default settings against the CVXPY optimum.

The reference optima take most of an hour (n = s = 1000); they are kept in gap_reference.csv and only
computed where missing, so that the solver can be measured again in seconds.

    python -m benchmarks.gap
"""

import csv
import itertools
import time

from benchmarks.common import (
    BACKORDER,
    HOLDING,
    RESULTS,
    collapse_radius,
    constant_order,
    convex_program,
    read_csv,
    write_csv,
)
from surefoot import PrimalDual, Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.nominals import Empirical
from surefoot.policies import Linear

SIZES = list(itertools.product((10, 100, 1000), (5, 100, 1000)))
GRID = list(
    itertools.product(SIZES, ("positive", "mixed"), (1, 2), (True, False), (0.01, 0.1, 0.5, 1.0))
)
KEYS = ("n", "s", "coefficients", "order", "intercept", "share_of_rho_max")


def instance(n, s, coefficients):
    data = synthetic(n=n, s=s, coefficients=coefficients, seed=0, test=1)
    return data.X / data.X.std(axis=0), data.y


def references():
    """Return the optimum of every cell, computing what is missing."""
    path = RESULTS / "gap_reference.csv"
    known = {
        tuple(row[key] for key in KEYS): float(row["optimum"]) for row in read_csv("gap_reference")
    }
    for (n, s), coefficients, order, intercept, share in GRID:
        cell = tuple(str(v) for v in (n, s, coefficients, order, intercept, share))
        if cell in known:
            continue
        X, y = instance(n, s, coefficients)
        radius = share * collapse_radius(X, y, order)
        optimum, seconds = convex_program(X, y, radius, order, intercept)
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow([*KEYS, "optimum", "seconds"])
            writer.writerow([*cell, repr(optimum), f"{seconds:.3f}"])
        known[cell] = optimum
        print(*cell, f"{optimum:.6g}", f"{seconds:.1f} s", flush=True)
    return known


def main():
    known = references()
    rows = []
    for (n, s), coefficients, order, intercept, share in GRID:
        X, y = instance(n, s, coefficients)
        radius = share * collapse_radius(X, y, order)
        problem = Problem(
            Newsvendor(BACKORDER, HOLDING),
            Linear(intercept=intercept),
            Empirical(X, y),
            WassersteinBall(radius, order=order),
        )
        began = time.perf_counter()
        solution = PrimalDual().solve(problem, seed=0)
        seconds = time.perf_counter() - began
        optimum = known[tuple(str(v) for v in (n, s, coefficients, order, intercept, share))]
        base = max(optimum, constant_order(y)[1] / 100)
        rows.append(
            {
                **dict(zip(KEYS, (n, s, coefficients, order, intercept, share), strict=True)),
                "optimum": f"{optimum:.8g}",
                "value": f"{solution.certificate.upper:.8g}",
                "true_gap": f"{(solution.certificate.upper - optimum) / base:.6f}",
                "certified_gap": f"{solution.certificate.gap:.6f}",
                "steps": solution.n_steps,
                "seconds": f"{seconds:.4f}",
            }
        )
    write_csv("gap", rows)
    true = [float(row["true_gap"]) for row in rows]
    certified = [float(row["certified_gap"]) for row in rows]
    loose = sum(c > 2 * max(t, 0) + 0.005 for t, c in zip(true, certified, strict=True))
    print(f"{len(rows)} cells: largest true gap {max(true):.4%}, smallest {min(true):.4%}, "
          f"largest certified gap {max(certified):.4%}, certified > 2 x true + 0.5 % in {loose}")  # fmt: skip


if __name__ == "__main__":
    main()
