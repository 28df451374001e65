"""The default under dirty data and shifted contexts, and how often its guarantee holds.

python -m benchmarks.quality.robust            all of them (an hour on two cores)
python -m benchmarks.quality.robust dirty|shift|guarantee|order [repeats]
"""

import sys
import warnings
from itertools import product

import numpy as np

from benchmarks.machine import write_csv
from surefoot import RobustNewsvendor
from surefoot.baselines import ERM, SAA
from surefoot.datasets import load_yaz, synthetic
from surefoot.random import rng_for

B, H = 1.0, 0.2


def _linear(rng, X):
    return X[:, :3].sum(axis=1)


LAWS = {
    "linear normal": lambda rng, X: 10 + _linear(rng, X) + rng.normal(size=len(X)),
    "linear laplace": lambda rng, X: 10 + _linear(rng, X) + rng.laplace(size=len(X)),
    "linear t3": lambda rng, X: 10 + _linear(rng, X) + rng.standard_t(3, size=len(X)),
    "growing spread": lambda rng, X: 10 + X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=len(X)),
    "lognormal": lambda rng, X: np.exp(1 + 0.3 * X[:, 0] + 0.4 * rng.normal(size=len(X))),
    "heavy lognormal": lambda rng, X: np.exp(0.3 * X[:, 0] + rng.normal(size=len(X))),
    "exponential": lambda rng, X: (1 + np.abs(X[:, 0])) * rng.exponential(size=len(X)),
    "poisson": lambda rng, X: rng.poisson(np.exp(1 + 0.3 * X[:, 0])).astype(float),
    "steps": lambda rng, X: 5 * (X[:, 0] > 0) + 3 * (X[:, 1] > 1) + rng.normal(size=len(X)),
    "waves": lambda rng, X: 3 * np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + rng.normal(size=len(X)),
    "bimodal": lambda rng, X: X[:, 0] + 4 * rng.integers(0, 2, len(X)) + 0.5 * rng.normal(size=len(X)),
    "no signal": lambda rng, X: rng.gamma(2.0, size=len(X)),
}


def draw(law, seed, n, s=5):
    rng = rng_for(seed, law)
    X = rng.normal(size=(n, s))
    return X, LAWS[law](rng, X)


def cost(decided, y):
    return float(np.mean(np.maximum(B * (y - decided), H * (decided - y))))


DIRT = {
    "times 100": lambda rng, X, y, bad: y.__setitem__(bad, 100 * y[bad]),
    "times -1": lambda rng, X, y, bad: y.__setitem__(bad, -y[bad]),
    "decimal shift": lambda rng, X, y, bad: y.__setitem__(bad, y[bad] * rng.choice([0.1, 10.0], len(bad))),
    "context times 100": lambda rng, X, y, bad: X.__setitem__((bad, 0), 100 * X[bad, 0]),
    "stuck sensor": lambda rng, X, y, bad: X.__setitem__((slice(0, len(bad)), 0), X[0, 0]),
    "duplicated block": None,
}  # fmt: skip


def dirty(repeats):
    """Cost over that of the same fit on clean data."""
    rows = []
    for kind, soil in DIRT.items():
        for share in (0.01, 0.02, 0.05):
            ratios = []
            for law in LAWS:
                for k in range(repeats):
                    X, y = draw(law, k, 100)
                    new, then = draw(law, 1000 + k, 2000)
                    clean = cost(RobustNewsvendor(B, H).fit(X, y).predict(new), then)
                    rng = rng_for(k, kind)
                    bad = rng.choice(100, max(int(100 * share), 1), replace=False)
                    if soil is None:
                        X, y = np.vstack([X, X[: len(bad)]]), np.concatenate([y, y[: len(bad)]])
                    else:
                        soil(rng, X, y, bad)
                    ratios.append(cost(RobustNewsvendor(B, H).fit(X, y).predict(new), then) / clean)
            row = {"dirt": kind, "share": share, "mean": f"{np.mean(ratios):.3f}",
                   "largest": f"{max(ratios):.3f}", "fits": len(ratios)}  # fmt: skip
            rows.append(row)
            print(row, flush=True)
    write_csv("quality_dirty", rows)


def shift(repeats):
    """Cost when contexts of new rows move, of policies fitted for each size of shift and others."""
    sizes, rows = (0.0, 0.1, 0.3, 1.0), []
    makers = {f"surefoot protect={p:g}": (lambda p=p: RobustNewsvendor(B, H, protect=p)) for p in sizes}
    makers |= {
        f"robust linear {r:g}": (lambda r=r: RobustNewsvendor(B, H, radius=r)) for r in (0.1, 0.3, 1.0)
    }
    makers |= {"SAA": lambda: SAA(B, H), "l1 quantile": lambda: ERM(B, H, l1="auto")}
    for kind in ("noise", "mean"):
        for size in sizes[1:]:
            costs = {name: [] for name in makers}
            for k in range(repeats):
                data = synthetic(n=100, s=10, seed=k, test=2000)
                rng = rng_for(k, kind)
                step = rng.standard_normal(data.X_test.shape if kind == "noise" else data.X.shape[1])
                moved = data.X_test + size * data.X.std(axis=0) * step
                for name, make in makers.items():
                    costs[name].append(cost(make().fit(data.X, data.y).predict(moved), data.y_test))
            for name, some in costs.items():
                rows.append(
                    {"shift": kind, "size": size, "method": name, "cost": f"{np.mean(some):.4f}"}
                )
                print(rows[-1], flush=True)
    write_csv("quality_shift", rows)


def guarantee(repeats):
    """How often the stated 95 % hold, and how far the bound is above the true cost."""
    rows = []
    for n in (20, 50, 200, 1000):
        for law in LAWS:
            held, ratio = [], []
            new, then = draw(law, 10_000, 20_000)
            for k in range(repeats):
                model = RobustNewsvendor(B, H).fit(*draw(law, k, n))
                true = cost(model.predict(new), then)
                held.append(model.certificate_.upper >= true)
                ratio.append(model.certificate_.upper / true)
            row = {"n": n, "law": law, "held": f"{np.mean(held):.3f}", "ratio": f"{np.median(ratio):.3f}",
                   "fits": repeats}  # fmt: skip
            rows.append(row)
            print(row, flush=True)
    write_csv("quality_guarantee", rows)


def order(windows):
    """How often bounds hold for the next days of the restaurant, which are not draws."""
    data, rows = load_yaz(drop_closed=True), []
    for n, timed in product((20, 60, 200), (False, True)):
        starts = np.linspace(0, len(data.dates) - n - 100, windows).astype(int)
        found = [
            _next_days(data.contexts[start:], data.product(dish)[start:], n, timed)
            for dish in data.products
            for start in starts
        ]
        block, hundred, ratio = np.array(found).T
        rows.append({
            "rows": n, "time": "given" if timed else "not given", "held, next block": f"{block.mean():.2f}",
            "held, next 100": f"{hundred.mean():.2f}", "bound over cost of 100, median":
            f"{np.median(ratio):.2f}", "fits": len(found),
        })  # fmt: skip
        print(rows[-1], flush=True)
    write_csv("quality_order", rows)


def _next_days(X, y, n, timed):
    """Return whether the bound held for the next block and the next hundred days, and how wide it was."""
    model = RobustNewsvendor(15.0, 10.0).fit(X[:n], y[:n], time=np.arange(n) if timed else None)
    bound, ahead = model.certificate_.upper, n + n // 5
    cost = model.cost(X[n : n + 100], y[n : n + 100])
    return bound >= model.cost(X[n:ahead], y[n:ahead]), bound >= cost, bound / cost


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    usual = {"dirty": 5, "shift": 20, "guarantee": 200, "order": 10}
    chosen = sys.argv[1:2] or list(usual)
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else usual
    for name in chosen:
        run = {"dirty": dirty, "shift": shift, "guarantee": guarantee, "order": order}[name]
        run(repeats if isinstance(repeats, int) else repeats[name])
