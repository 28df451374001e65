"""What every peer's script shares: reading calls, timing them, writing answers. Needs NumPy alone.

A script runs in its peer's own environment: python with_PEER.py JOB.json ANSWERS.jsonl
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

BACKORDER, HOLDING = 1.0, 0.2


def columns(X, centre):
    """Return mean and scale of the columns: a radius is in standard deviations for every peer."""
    return X.mean(axis=0) * centre, X.std(axis=0)


def answer(fit, call, data):
    """Time one fit and return its policy in the units of the data."""
    X, y = data[f"X{call['repetition']}"][: call["n"]], data[f"y{call['repetition']}"][: call["n"]]
    mean, scale = columns(X, "no intercept" not in call["method"])
    contexts, outcomes = (X - mean) / scale, y[:, None] if call["column"] else y
    wall, processor = time.perf_counter(), time.process_time()
    policy = fit(contexts, outcomes, call["radius"])
    took = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - processor}
    if callable(policy):
        X_test = data[f"X_test{call['repetition']}"]
        return took | {"decisions": np.ravel(policy((X_test - mean) / scale)).tolist()}
    theta, intercept = policy
    theta = np.asarray(theta, dtype=float).reshape(X.shape[1]) / scale
    return took | {"theta": theta.tolist(), "intercept": float(np.ravel(intercept)[0] - mean @ theta)}


def attempt(fit, call, data):
    """Return the answer to a call, or what went wrong: a peer may raise anything at all."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = answer(fit, call, data)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    return found | {"warnings": sorted({f"{w.category.__name__}: {w.message}"[:200] for w in caught})}


def serve(methods):
    """Answer every call of the job, in order, one line each."""
    job = json.loads(Path(sys.argv[1]).read_text())
    data = dict(np.load(job["instances"]))
    first = job["calls"][0] | {"n": 10, "repetition": 0, "radius": 0.1, "column": False}
    attempt(methods[first["method"]], first, data)  # what a library loads or compiles on first use
    with Path(sys.argv[2]).open("a", buffering=1) as out:
        out.write(json.dumps({"ready": True}) + "\n")
        for call in job["calls"]:
            out.write(json.dumps(attempt(methods[call["method"]], call, data)) + "\n")
