"""Samples a second of a stream: ours with arrays and dictionaries, river's linear model beside it.

python -m benchmarks.online
"""

import json
import subprocess
import time
from pathlib import Path

import numpy as np

from benchmarks.environments import environment
from benchmarks.machine import write_csv
from surefoot import WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.online import DecayingRadius, OnlinePolicy, PageHinkley, Restart

S, ROWS = 20, 40_000
BLOCK, CHUNK = 4_000, 200
RIVER = ("river>=0.22", "numpy", "pandas")


def data(rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, S))
    return X, X @ rng.uniform(size=S) + rng.normal(size=rows)


def policy(**options):
    return OnlinePolicy(
        Newsvendor(1.0, 0.2), ball=WassersteinBall(1.0), radius=DecayingRadius(), **options
    )


def best(run, chunk):
    """Microseconds per sample in the best chunk: noise only ever adds."""
    times = []
    for first in range(0, ROWS, chunk):
        began = time.perf_counter()
        run(slice(first, first + chunk))
        times.append(time.perf_counter() - began)
    return 1e6 * min(times) / chunk


def ours():
    X, y = data(ROWS)
    names = [f"x{j}" for j in range(S)]
    dicts = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    gaps = [{k: v for k, v in x.items() if k != "x3"} for x in dicts]
    outcomes = y.tolist()
    arrays, watched, one = policy(), policy(drift=Restart(PageHinkley())), policy()
    for learner in (arrays, watched, one):
        learner.partial_fit(X[:100], y[:100])

    def learn_one(contexts, part):
        for x, outcome in zip(contexts[part], outcomes[part], strict=True):
            one.learn_one(x, outcome)

    def decide_one(contexts, part):
        for x in contexts[part]:
            one.decide_one(x)

    yield "arrays, partial_fit", best(lambda part: arrays.partial_fit(X[part], y[part]), BLOCK)
    yield "arrays, Restart()", best(lambda part: watched.partial_fit(X[part], y[part]), BLOCK)
    yield "dictionaries, learn_one", best(lambda part: learn_one(dicts, part), CHUNK)
    yield "a missing key, learn_one", best(lambda part: learn_one(gaps, part), CHUNK)
    yield "dictionaries, decide_one", best(lambda part: decide_one(dicts, part), CHUNK)
    yield "a missing key, decide_one", best(lambda part: decide_one(gaps, part), CHUNK)


def rivers():
    program = Path(__file__).with_name("river_online.py")
    python = environment("river", RIVER)
    out = subprocess.run(
        [python, program, str(S), str(ROWS)], check=True, capture_output=True, text=True
    )
    found = json.loads(out.stdout)
    name = f"river {found['version']}"
    yield name, "frames of 1,000 rows, learn_many", found["learn_many"]
    yield name, "dictionaries, learn_one", found["learn_one"]
    yield name, "dictionaries, predict_one", found["predict_one"]


def main():
    rows = [("Surefoot", what, cost) for what, cost in ours()]
    rows += list(rivers())
    for library, what, cost in rows:
        print(f"{library:14s} {what:34s} {cost:8.2f} us  {1e6 / cost:12,.0f} a second")
    write_csv(
        "online",
        [
            {"library": library, "what": what, "columns": S, "us_per_sample": round(cost, 3),
             "samples_per_second": round(1e6 / cost)}
            for library, what, cost in rows
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
