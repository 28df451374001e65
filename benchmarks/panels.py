"""Panels: processor time and memory of a series, and what short series gain from the others.

python -m benchmarks.panels time      results/panel_time.csv
python -m benchmarks.panels borrow    results/panel_borrowing.csv
"""

import resource
import sys
import tempfile
import time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.machine import write_csv
from surefoot import PolicyTable, RobustNewsvendor, fit_many
from surefoot.costs import Newsvendor

COST = Newsvendor(1.0, 0.2)
LEVEL = 1.0 / 1.2
CONTEXTS = ["a", "b", "c", "price", "date"]
DAYS_AHEAD, SERIES = 60, 200


def plain(series, rows=100, columns=20):
    """Independent linear series."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(series * rows, columns))
    y = X[:, :5].sum(axis=1) + rng.normal(size=len(X)) + 5.0
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)])
    return frame.assign(key=np.repeat(np.arange(series), rows), y=y)


def peak():
    """Most memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_time():
    """Processor time of a series, model file included, in one process; memory with a folder."""
    rows = []
    ways = (
        ("radius 0.1", 1_000, {"model": RobustNewsvendor(1.0, 0.2, radius=0.1)}),
        ("everything automatic", 100, {"cost": COST}),
    )
    for name, series, how in ways:
        frame = plain(series)
        fit_many(frame[:300], "key", "y", **how)  # loads what is compiled
        with tempfile.TemporaryDirectory() as folder:
            before, cpu = peak(), time.process_time()
            table = fit_many(frame, "key", "y", folder=folder, **how)
            cpu, memory = time.process_time() - cpu, peak() - before
            again = time.process_time()
            fit_many(frame, "key", "y", folder=folder, **how)
            again = time.process_time() - again
        rows.append(
            {
                "policy": name, "series": series, "rows": 100, "columns": 20,
                "fitted": sum(record.status == "fitted" for record in table.records),
                "processor_ms_each": f"{1e3 * cpu / series:.1f}",
                "finished_already_ms_each": f"{1e3 * again / series:.2f}",
                "memory_more_mb": f"{memory:.0f}",
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
    write_csv("panel_time", rows)


def demand(days, seed):
    """Daily series of very different sizes: weekday, price and weather act much, not quite, alike."""
    rng = np.random.default_rng(seed)
    common, week = rng.normal(size=3) * [0.15, 0.1, 0.1], rng.normal(size=7) * 0.15
    frames = []
    for k in range(SERIES):
        size, own = np.exp(rng.normal(3.0, 1.0)), common + 0.05 * rng.normal(size=3)
        weekdays, elasticity = week + 0.05 * rng.normal(size=7), -0.3 + 0.1 * rng.normal()
        count = days + DAYS_AHEAD
        X, price = rng.normal(size=(count, 3)), rng.choice([0.8, 1.0], count, p=[0.2, 0.8])
        dates = pd.date_range("2023-01-02", periods=count) + pd.Timedelta(days=int(rng.integers(200)))
        mean = 1.0 + X @ own + weekdays[dates.dayofweek] + elasticity * (price - 1.0) / 0.2
        sales = size * np.maximum(mean + 0.15 * rng.normal(size=count), 0.0)
        frame = pd.DataFrame(X, columns=list("abc"))
        frames.append(
            frame.assign(
                price=price, date=dates.astype("datetime64[s]"), key=k, y=sales, day=np.arange(count)
            )
        )
    return pd.concat(frames, ignore_index=True)


def boosted(past, ahead):
    """A global gradient-boosting quantile model of scaled sales, with the series as features."""
    mean, spread = (past.groupby("key")["y"].agg(how) for how in ("mean", "std"))

    def features(frame):
        own = frame[["a", "b", "c", "price"]].assign(weekday=frame["date"].dt.dayofweek)
        return own.assign(spread=frame["key"].map(spread) / frame["key"].map(mean))

    model = HistGradientBoostingRegressor(loss="quantile", quantile=LEVEL, random_state=0)
    model.fit(features(past), past["y"] / past["key"].map(mean))
    return model.predict(features(ahead)) * ahead["key"].map(mean)


def measure_borrowing():
    """Mean cost over series, each in units of its mean sales, on the 60 days that follow."""
    rows = []
    for days in (10, 30, 100):
        data = demand(days, seed=days)
        past, ahead = data[data["day"] < days], data[data["day"] >= days]
        began = time.process_time()
        table = fit_many(past, "key", "y", cost=COST, time="day", contexts=CONTEXTS, borrow=True)
        seconds = time.process_time() - began
        alone = PolicyTable(table.columns, table.records, table.random_state)
        mean = past.groupby("key")["y"].mean()
        constant = past.groupby("key")["y"].quantile(LEVEL, interpolation="higher")
        everyone = (past["y"] / past["key"].map(mean)).quantile(LEVEL) * mean
        decisions = {
            "one policy each": alone.decide(ahead),
            "borrow=True": table.decide(ahead),
            "global boosted quantile": boosted(past, ahead),
            "constant order of each series": ahead["key"].map(constant),
            "constant order, pooled": ahead["key"].map(everyone),
        }
        y, unit = ahead["y"].to_numpy(), ahead["key"].map(mean).to_numpy()
        for name, z in decisions.items():
            z = np.asarray(z, dtype=float)
            by_row = np.where(z >= y, 0.2 * (z - y), y - z) / unit
            each = pd.Series(by_row).groupby(ahead["key"].to_numpy()).mean()
            rows.append(
                {
                    "days": days, "series": SERIES, "way": name, "cost": f"{each.mean():.4f}",
                    "standard_error": f"{each.std() / len(each) ** 0.5:.4f}",
                    "worth_rows": f"{table.pooled.rows:g}", "fit_processor_s": f"{seconds:.0f}",
                }
            )  # fmt: skip
            print(rows[-1], flush=True)
    write_csv("panel_borrowing", rows)


if __name__ == "__main__":
    {"time": measure_time, "borrow": measure_borrowing}[sys.argv[1]]()
