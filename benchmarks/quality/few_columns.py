"""Few of many columns matter: the default beside methods that are made for it.

python -m benchmarks.quality.few_columns [repeats]     4 minutes on two cores
"""

import sys
from itertools import product

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import LassoCV
from sklearn.model_selection import cross_val_predict

from benchmarks.machine import write_csv
from benchmarks.quality.robust import fitted
from surefoot import RobustNewsvendor
from surefoot.baselines import ERM, Forest
from surefoot.costs import Newsvendor
from surefoot.random import rng_for

B, H, NEW = 4.0, 1.0, 2_000
COLUMNS, USED, ROWS = (20, 80, 300), (1, 4), (30, 100, 300)


class Lasso:
    """A cross-validated lasso, and the quantile of its errors on rows that it had not seen."""

    def __init__(self, backorder, holding):
        self.quantile, self.model = backorder / (backorder + holding), LassoCV(cv=5)

    def fit(self, X, y):
        errors = y - cross_val_predict(self.model, X, y, cv=5)
        self.model.fit(X, y)
        self.constant = float(np.quantile(errors, self.quantile))
        return self

    def predict(self, X):
        return self.model.predict(X) + self.constant


METHODS = {
    "surefoot": RobustNewsvendor, "lasso": Lasso, "forest": Forest,
    "l1 quantile": lambda backorder, holding: ERM(backorder, holding, l1="auto"),
}  # fmt: skip


def costs(s, used, n, k):
    """Return what each method costs on new rows."""
    rng = rng_for(k, f"few columns/{s}/{used}/{n}")
    X = rng.standard_normal((n + NEW, s))
    slopes = np.zeros(s)
    slopes[:used] = 3.0 / np.sqrt(used) * rng.choice([-1.0, 1.0], used)
    y, cost = 20.0 + X @ slopes + rng.standard_normal(n + NEW), Newsvendor(B, H)
    return [
        float(cost.evaluate(np.reshape(fitted(make(backorder=B, holding=H), X[:n], y[:n]).predict(X[n:]),
                                       (-1, 1)), y[n:, None]).mean())
        for make in METHODS.values()
    ]  # fmt: skip


def main(repeats):
    """Run all cells and write them."""
    rows = []
    for s, used, n in product(COLUMNS, USED, ROWS):
        paid = np.array(Parallel(n_jobs=-1)(delayed(costs)(s, used, n, k) for k in range(repeats)))
        best = paid[:, 1:].min(axis=1)
        over = {name: paid[:, j] / best for j, name in enumerate(METHODS)}
        rows.append({
            "columns": s, "used": used, "n": n, "fits": repeats,
            "largest": f"{over['surefoot'].max():.2f}",
            **{name: f"{np.exp(np.log(ratio).mean()):.3f}" for name, ratio in over.items()},
        })  # fmt: skip
        print(rows[-1], flush=True)
    write_csv("quality_few_columns", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
