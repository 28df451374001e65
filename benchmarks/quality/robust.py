"""The default under dirty data and shifted contexts, and how often its guarantee holds.

python -m benchmarks.quality.robust            all of them (an hour on two cores)
python -m benchmarks.quality.robust dirty|shift|guarantee|order [repeats]
"""

import sys
import warnings
from itertools import product

import numpy as np
from joblib import Parallel, delayed

from benchmarks.machine import write_csv
from surefoot import RobustNewsvendor
from surefoot.baselines import ERM, SAA, Forest
from surefoot.datasets import load_yaz, synthetic
from surefoot.random import rng_for

B, H = 1.0, 0.2
PARALLEL = Parallel(n_jobs=-1)
FRESH = 20_000  # samples from here on had no part in the choice of the bound


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


def fitted(model, X, y):
    """Fit without a word about what the data are soiled with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


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


def _dirty_ratio(kind, share, law, k):
    """Return the cost of the fit on dirty rows over that of the same fit on clean ones."""
    X, y = draw(law, k, 100)
    new, then = draw(law, 1000 + k, 2000)
    clean = cost(fitted(RobustNewsvendor(B, H), X, y).predict(new), then)
    rng, soil = rng_for(k, kind), DIRT[kind]
    bad = rng.choice(100, max(int(100 * share), 1), replace=False)
    if soil is None:
        X, y = np.vstack([X, X[: len(bad)]]), np.concatenate([y, y[: len(bad)]])
    else:
        soil(rng, X, y, bad)
    return cost(fitted(RobustNewsvendor(B, H), X, y).predict(new), then) / clean


def dirty(repeats):
    """Cost over that of the same fit on clean data."""
    rows = []
    for kind, share in product(DIRT, (0.01, 0.02, 0.05)):
        cases = [(kind, share, law, k) for law in LAWS for k in range(repeats)]
        ratios = PARALLEL(delayed(_dirty_ratio)(*case) for case in cases)
        row = {"dirt": kind, "share": share, "mean": f"{np.mean(ratios):.3f}",
               "largest": f"{max(ratios):.3f}", "fits": len(ratios)}  # fmt: skip
        rows.append(row)
        print(row, flush=True)
    write_csv("quality_dirty", rows)


SIZES = (0.0, 0.1, 0.3, 1.0)
DIRECTIONS = 32  # in which the worst is looked for, for each row
MAKERS = {
    **{f"surefoot protect={p:g}": lambda p=p: RobustNewsvendor(B, H, protect=p) for p in SIZES},
    **{f"robust linear {r:g}": lambda r=r: RobustNewsvendor(B, H, radius=r) for r in (0.1, 0.3, 1.0)},
    "SAA": lambda: SAA(B, H), "l1 quantile": lambda: ERM(B, H, l1="auto"), "forest": lambda: Forest(B, H),
}  # fmt: skip


def _worst_moves(model, X, y, spread, size, rng):
    """Return each row moved by ``size`` standard deviations in the most costly of many directions."""
    slope = np.linalg.lstsq(np.c_[X / spread, np.ones(len(X))], model.predict(X), rcond=None)[0][:-1]
    ways = rng.standard_normal((DIRECTIONS, X.shape[1]))
    if slope.any():
        ways = np.vstack([ways, slope, -slope])
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    moved = [X] + [X + size * spread * way for way in ways]
    costs = []
    for contexts in moved:
        residual = y - model.predict(contexts)
        costs.append(np.maximum(B * residual, -H * residual))
    return float(np.mean(np.max(costs, axis=0)))


def _shift_costs(k):
    """Return what each method costs under each kind and size of shift, on one sample."""
    data, found = synthetic(n=100, s=10, seed=k, test=2000), {}
    spread = data.X.std(axis=0)
    for name, make in MAKERS.items():
        model = fitted(make(), data.X, data.y)
        for kind, size in product(("noise", "mean", "worst"), SIZES[1:]):
            rng = rng_for(k, kind)
            if kind == "worst":
                found[kind, size, name] = _worst_moves(
                    model, data.X_test, data.y_test, spread, size, rng
                )
                continue
            step = rng.standard_normal(data.X_test.shape if kind == "noise" else data.X.shape[1])
            found[kind, size, name] = cost(
                model.predict(data.X_test + size * spread * step), data.y_test
            )
    return found


def shift(repeats):
    """Cost when contexts of new rows move, of policies fitted for each size of shift and others."""
    found = PARALLEL(delayed(_shift_costs)(k) for k in range(repeats))
    rows = []
    for kind, size in product(("noise", "mean", "worst"), SIZES[1:]):
        means = {name: np.mean([one[kind, size, name] for one in found]) for name in MAKERS}
        rows += [
            {"shift": kind, "size": size, "method": name, "cost": f"{mean:.4f}",
             "over best": f"{mean / min(means.values()):.3f}"}
            for name, mean in means.items()
        ]  # fmt: skip
        print(kind, size, {name: round(mean / min(means.values()), 3) for name, mean in means.items()})
    write_csv("quality_shift", rows)


def _held(law, k, n):
    """Return whether the bound held, and the bound over the true cost."""
    new, then = draw(law, 10_000, 5_000)
    model = fitted(RobustNewsvendor(B, H), *draw(law, k, n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        true = cost(model.predict(new), then)
    return model.certificate_.upper >= true, model.certificate_.upper / true


def guarantee(repeats):
    """How often the stated 95 % hold, and how far the bound is above the true cost."""
    rows = []
    for n, law in product((20, 50, 200, 1000), LAWS):
        held, ratio = zip(
            *PARALLEL(delayed(_held)(law, FRESH + k, n) for k in range(repeats)), strict=True
        )
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
