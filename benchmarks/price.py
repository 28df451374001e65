"""Seconds of a price-of-robustness curve: 30 radii, with and without refitting at each of them.

python -m benchmarks.price          measure, and write the numbers into docs/robustness.md
python -m benchmarks.price --page   only write, from the committed results
"""

import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import read_csv, write_csv
from benchmarks.sections import put_section
from surefoot import Box, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.diagnostics.price import price_of_robustness

SIZES = ((100, 100), (500, 100), (500, 1_000), (5_000, 100))
RUNS = 5
PAGE = Path(__file__).parent.parent / "docs" / "robustness.md"


def measure(n, s, order, *, boxed=False):
    data = synthetic(n=n, s=s, seed=0)
    support = Box(np.zeros(s), np.ones(s)) if boxed else None
    ball = WassersteinBall(0.1, order=order, support=support)
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball).fit(data.X, data.y)
    seconds = {}
    for refit in (False, True)[: 1 if boxed else 2]:
        taken = []
        for _ in range(RUNS):
            began = time.perf_counter()
            curve = price_of_robustness(
                model, data.X, data.y, None, data.X_test, data.y_test, refit=refit
            )
            taken.append(time.perf_counter() - began)
        seconds[refit] = sorted(taken)[RUNS // 2]
    refitted = curve.refitted
    return {
        "n": n,
        "s": s,
        "order": order,
        "support": "box" if boxed else "free",
        "radii": len(curve.radii),
        "test_rows": len(data.X_test),
        "seconds_fixed": f"{seconds[False]:.3f}",
        "seconds_fixed_and_refitted": f"{seconds[True]:.3f}" if True in seconds else "",
        "all_within_1_percent": refitted.converged.all() if refitted else "",
    }


def section():
    rows = read_csv("price")
    lines = [
        "| n | s | order | support | policy as fitted, s | and refitted, s |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['n']} | {row['s']} | {row['order']} | {row['support']} | {row['seconds_fixed']} | "
        f"{row['seconds_fixed_and_refitted'] or '-'} |"
        for row in rows
    ]
    lines.append(
        f"\nSeconds for {rows[0]['radii']} radii and {int(rows[0]['test_rows']):,} new rows, median of {RUNS} "
        "runs; every refit is certified to within 1 % of the best. In a box, refits have no common path "
        f"and take as long as so many fits. Measured on {rows[0]['date']}: {rows[0]['machine']}. "
        "`python -m benchmarks.price`."
    )
    return "\n".join(lines)


def main(arguments=()):
    if "--page" not in arguments:
        rows = []
        for n, s in SIZES:
            for order in (1, 2):
                rows.append(measure(n, s, order))
                print(rows[-1], flush=True)
        rows.append(measure(500, 100, 2, boxed=True))
        print(rows[-1], flush=True)
        write_csv("price", rows)
    put_section(PAGE, "price", section())


if __name__ == "__main__":
    main(sys.argv[1:])
