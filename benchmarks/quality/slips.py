"""One typo on a row with a rare flag, promotions that are none, and a series that moves to a new level.

python -m benchmarks.quality.slips     half a minute
"""

from itertools import product

import numpy as np

from benchmarks.machine import write_csv
from benchmarks.quality.robust import fitted
from surefoot import RobustNewsvendor
from surefoot.baselines import ERM

REPEATS, NEW = 12, 3_000


def flagged(rows, times, seed):
    """Return the cost of a fit whose first flagged outcome is typed many times over the clean fit's."""
    rng = np.random.default_rng(seed)

    def draw(n):
        flags = np.zeros(n)
        flags[rng.choice(n, rows * n // 60, replace=False)] = 1.0
        X = np.column_stack([rng.normal(size=(n, 3)), flags])
        return X, 50.0 + 5.0 * X[:, 0] + 10.0 * flags + 3.0 * rng.normal(size=n)

    (X, y), new = draw(60), draw(NEW)
    clean = fitted(RobustNewsvendor(4.0, 1.0), X, y).cost(*new)
    y[np.flatnonzero(X[:, 3])[0]] *= times
    return fitted(RobustNewsvendor(4.0, 1.0), X, y).cost(*new) / clean


def promoted(rows, times, seed):
    """Return what the default costs where flagged outcomes really are so large, and a linear policy."""
    rng = np.random.default_rng(seed)

    def draw(n):
        X = np.column_stack([rng.normal(size=(n, 3)), np.arange(n) < rows * n // 60])
        usual = 50.0 + 5.0 * X[:, 0] + 3.0 * rng.normal(size=n)
        return X, usual * np.where(X[:, 3] > 0.0, times, 1.0)

    rows, new = draw(60), draw(NEW)
    return [fitted(make(4.0, 1.0), *rows).cost(*new) for make in (RobustNewsvendor, ERM)]


def new_level(n, later, seed):
    """Return what the default costs after the last rows have moved from 50 to 130, and a linear policy."""
    total = n + 17
    z = np.where(np.arange(total) < total - 14 - later, 50.0, 130.0)
    z = z + 5.0 * np.random.default_rng(seed).normal(size=total)
    X, y = np.column_stack([z[2:-1], z[1:-2], z[:-3]]), z[3:]
    return [fitted(make(5.0, 2.0), X[:n], y[:n]).cost(X[n:], y[n:]) for make in (RobustNewsvendor, ERM)]


def main():
    """Run all and write them."""
    rows = []
    for count, times in product((1, 2, 3, 5), (100.0, 10.0)):
        ratios = [flagged(count, times, seed) for seed in range(REPEATS)]
        rows.append({"what": f"typo times {times:g} on one of {count} flagged rows of 60, over the clean fit",
                     "surefoot": f"{np.mean(ratios):.2f}", "largest": f"{max(ratios):.2f}", "linear": ""})  # fmt: skip
    for count, times in product((1, 2, 3), (4.0, 30.0)):
        costs = np.array([promoted(count, times, seed) for seed in range(REPEATS)])
        rows.append({"what": f"{count} of 60 rows promoted {times:g} times, cost", "surefoot": f"{costs[:, 0].mean():.1f}",
                     "largest": f"{costs[:, 0].max():.1f}", "linear": f"{costs[:, 1].mean():.1f}"})  # fmt: skip
    for n, later in ((200, 20), (120, 11), (60, 8), (60, 5), (40, 5), (40, 3)):
        costs = np.array([new_level(n, later, seed) for seed in range(REPEATS)])
        rows.append({"what": f"{later} of {n} rows at a new level, cost", "surefoot": f"{costs[:, 0].mean():.1f}",
                     "largest": f"{costs[:, 0].max():.1f}", "linear": f"{costs[:, 1].mean():.1f}"})  # fmt: skip
    for row in rows:
        print(row)
    write_csv("quality_slips", rows)


if __name__ == "__main__":
    main()
