"""Seconds of a fit with everything on automatic, on linear and on curved data.

python -m benchmarks.fit_time
"""

import statistics
import time

import numpy as np

from benchmarks.machine import write_csv
from surefoot import RobustNewsvendor
from surefoot.datasets import synthetic

SIZES = ((10, 100), (50, 100), (100, 20), (100, 100), (500, 100), (500, 1000), (5000, 100))
REPETITIONS = 7


def curved(n, s):
    """Return rows whose outcome bends, so that every part of the forecast takes part."""
    rng = np.random.default_rng(n + s)
    X = rng.random((n, s))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 2 * rng.standard_normal(n)
    return X, y


def seconds(X, y):
    """Median time of a fit, after one that loads what is compiled."""
    model, times = RobustNewsvendor(backorder=1.0, holding=0.2).fit(X, y), []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        model.fit(X, y)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main():
    """Measure and write results/fit_time.csv."""
    rows = []
    for n, s in SIZES:
        data = synthetic(n, s, seed=1, coefficients="mixed")
        for name, (X, y) in {"linear": (data.X, data.y), "curved": curved(n, s)}.items():
            rows.append({"n": n, "s": s, "data": name, "seconds": f"{seconds(X, y):.4f}"})
            print(rows[-1], flush=True)
    write_csv("fit_time", rows)


if __name__ == "__main__":
    main()
