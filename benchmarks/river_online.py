"""River's linear model on the stream of ``benchmarks.online``; runs in an environment of its own.

python benchmarks/river_online.py COLUMNS ROWS
"""

import json
import sys
import time

import numpy as np
import pandas as pd
import river
from river import linear_model, optim, preprocessing

QUANTILE = 1.0 / 1.2
CHUNK, FRAME = 200, 1_000


def model():
    return preprocessing.StandardScaler() | linear_model.LinearRegression(
        optimizer=optim.SGD(0.01), loss=optim.losses.Quantile(QUANTILE)
    )


def best(run, rows, chunk):
    """Microseconds per sample in the best chunk: noise only ever adds."""
    times = []
    for first in range(0, rows, chunk):
        began = time.perf_counter()
        run(slice(first, first + chunk))
        times.append(time.perf_counter() - began)
    return 1e6 * min(times) / chunk


def main(s, rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, s))
    y = X @ rng.uniform(size=s) + rng.normal(size=rows)
    dicts = [{f"x{j}": value for j, value in enumerate(row)} for row in X.tolist()]
    outcomes, frame, series = y.tolist(), pd.DataFrame(X, columns=list(dicts[0])), pd.Series(y)
    one, many = model(), model()

    def learn_one(part):
        for x, outcome in zip(dicts[part], outcomes[part], strict=True):
            one.learn_one(x, outcome)

    def predict_one(part):
        for x in dicts[part]:
            one.predict_one(x)

    found = {
        "version": river.__version__,
        "learn_one": best(learn_one, rows, CHUNK),
        "predict_one": best(predict_one, rows, CHUNK),
        "learn_many": best(lambda part: many.learn_many(frame[part], series[part]), rows, FRAME),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
