"""Contexts with long tails: new rows lie far outside those seen, and lines may or may not go on there.

python -m benchmarks.quality.tails costs [repeats]      3 minutes on two cores
python -m benchmarks.quality.tails bounds [repeats]     how often the stated bound holds, 15 minutes
"""

import sys
import warnings
from itertools import product

import numpy as np
from joblib import Parallel, delayed

from benchmarks.machine import write_csv
from benchmarks.quality.robust import fitted
from surefoot import RobustNewsvendor
from surefoot.baselines import ERM, SAA, Forest
from surefoot.costs import Newsvendor
from surefoot.estimators.guarantees import guarantee_of
from surefoot.random import rng_for

B, H, COLUMNS, NEW = 4.0, 1.0, 3, 2_000
# Samples from here on had no part in when a reservation is made, and are judged on so many rows.
FRESH, MANY_NEW = 5_000, 20_000
METHODS = {"surefoot": RobustNewsvendor, "linear": ERM, "constant": SAA, "forest": Forest}
CONTEXTS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "student 3": lambda rng, shape: rng.standard_t(3, shape),
    "lognormal 1": lambda rng, shape: rng.lognormal(0.0, 1.0, shape),
    "lognormal 1.5": lambda rng, shape: rng.lognormal(0.0, 1.5, shape),
    "pareto 3": lambda rng, shape: rng.pareto(3.0, shape),
    "pareto 1.5": lambda rng, shape: rng.pareto(1.5, shape),
}
EFFECTS = {
    "straight": lambda X: X,
    "straight, five times the noise": lambda X: 5.0 * X,
    "root": lambda X: 2.0 * np.sign(X) * np.sqrt(np.abs(X)),
    "ends at 3": lambda X: np.clip(X, -3.0, 3.0),
}


def costs(contexts, effect, n, k):
    """Return what each method costs on new rows."""
    rng = rng_for(k, f"{contexts}/{effect}/{n}")
    X = CONTEXTS[contexts](rng, (n + NEW, COLUMNS))
    y = EFFECTS[effect](X) @ rng.uniform(0.5, 1.5, COLUMNS) + rng.standard_normal(n + NEW)
    cost, found = Newsvendor(B, H), []
    for method in METHODS.values():
        decided = fitted(method(backorder=B, holding=H), X[:n], y[:n]).predict(X[n:])
        found.append(cost.evaluate(np.reshape(decided, (-1, 1)), y[n:, None]).mean())
    return found


def main(repeats):
    """Run all cells and write them."""
    rows = []
    for effect, contexts, n in product(EFFECTS, CONTEXTS, (30, 100, 300)):
        found = np.array(
            Parallel(n_jobs=-1)(delayed(costs)(contexts, effect, n, k) for k in range(repeats))
        )
        over = found[:, 0] / found[:, 1:].min(axis=1)
        rows.append({
            "effect": effect, "contexts": contexts, "n": n, "mean": f"{np.exp(np.log(over).mean()):.3f}",
            "largest": f"{over.max():.2f}", "fits": repeats,
        })  # fmt: skip
        print(rows[-1], flush=True)
    write_csv("quality_tails", rows)


def held(contexts, effect, n, k):
    """Return whether a reservation was made, and whether the bound held for all new rows and for those inside."""
    rng = rng_for(FRESH + k, f"{contexts}/{effect}/{n}")
    X = CONTEXTS[contexts](rng, (n + MANY_NEW, COLUMNS))
    y = EFFECTS[effect](X) @ rng.uniform(0.5, 1.5, COLUMNS) + rng.standard_normal(n + MANY_NEW)
    model = fitted(RobustNewsvendor(B, H), X[:n], y[:n])
    stated = guarantee_of(model, [0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decided = model.predict(X[n:])
    paid = Newsvendor(B, H).evaluate(decided[:, None], y[n:, None])
    named = [int(label.split()[1]) for label in stated.within]  # "column 2"
    low, high = np.reshape(list(stated.within.values()), (-1, 2)).T
    inside = ((X[n:, named] >= low) & (X[n:, named] <= high)).all(axis=1)
    return bool(named), stated.bound >= paid.mean(), stated.bound >= paid[inside].mean()


def bounds(repeats):
    """Write how often the stated bound holds, with and without a reservation."""
    rows = []
    for contexts, effect, n in product(CONTEXTS, ("straight", "ends at 3"), (50, 200)):
        told = np.array(
            Parallel(n_jobs=-1)(delayed(held)(contexts, effect, n, k) for k in range(repeats))
        )
        reserved = told[:, 0]
        rows.append({
            "contexts": contexts, "effect": effect, "n": n, "fits": repeats,
            "held for all new rows": f"{told[:, 1].mean():.3f}",
            "with a reservation": f"{reserved.mean():.3f}",
            "held as stated": f"{np.where(reserved, told[:, 2], told[:, 1]).mean():.3f}",
        })  # fmt: skip
        print(rows[-1], flush=True)
    write_csv("quality_tail_bounds", rows)


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "costs"
    {"costs": main, "bounds": bounds}[what](int(sys.argv[2]) if len(sys.argv) > 2 else 20)
