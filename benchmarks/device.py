"""The general engine on a GPU: the paper's whole grid in one program, and neural policies side by side.

python -m benchmarks.device          (needs a GPU that JAX can see; writes results/device.csv)
"""

import sys
import time

import jax
import numpy as np

from benchmarks.machine import machine, write_csv
from surefoot import Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.engines.affine_lanes import AffineBatch
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.engine import Options
from surefoot.nominals import Empirical
from surefoot.policies import MLP, Linear
from surefoot.problem import affine_forms
from surefoot.random import rng_for
from surefoot.solvers import SGD

COST = Newsvendor(backorder=1.0, holding=0.2)
ROWS, COLUMNS, NOISE = (10, 30, 50, 70, 100, 300, 500), (100, 1000), (0.1, 0.5, 1.0, 5.0)
REPETITIONS, STEPS, RADIUS, ROUNDS = 20, 10_000, 0.1, 5
MLP_STEPS, MLP_COUNTS, INNER = 500, (1, 10, 100, 1000), 10


def grid():
    """Return the paper's 1,120 instances as affine forms."""
    forms = []
    for n in ROWS:
        for s in COLUMNS:
            for variance in NOISE:
                for repetition in range(REPETITIONS):
                    data = synthetic(n=n, s=s, noise_variance=variance, seed=repetition, test=1)
                    problem = Problem(
                        COST, Linear(), Empirical(data.X, data.y), WassersteinBall(RADIUS)
                    )
                    forms.append(affine_forms(problem)[0])
    return forms


def best(run):
    """Return the first time (with compilation) and the best of the following ones, in seconds."""
    times = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return times[0], min(times[1:])


def whole_grid(forms, dtype):
    batch = AffineBatch(forms, dtype=dtype)
    rngs = [rng_for(0, "device", k) for k in range(len(forms))]
    start = batch.state
    with jax.enable_x64(True):
        halves = [jax.numpy.asarray(batch.draw(rngs, STEPS // 2)) for _ in range(2)]

    def run():
        batch.state = start
        batch.run(halves[0], average=False)
        batch.run(halves[1], average=True)
        jax.block_until_ready(batch.state)

    first, seconds = best(run)
    costs = [
        form.mean_cost(form.residuals(*policy)) * form.value_unit
        for form, (policy, _) in zip(forms[:20], batch.answers()[:20], strict=True)
    ]
    name = np.dtype(dtype).name
    return {
        "what": f"{len(forms)} instances of the paper, {STEPS} steps each, {name}",
        "count": len(forms), "first_seconds": round(first, 3), "seconds": round(seconds, 4),
        "ratio_to_one": "", "check": round(float(np.mean(costs)), 6),
    }  # fmt: skip


def neural(count):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 100))
    y = np.abs(X[:, 0]) + 0.3 * rng.normal(size=500)
    problem = Problem(COST, MLP((64, 64)), Empirical(X, y), WassersteinBall(RADIUS))
    options = Options(10**6, inner_steps=INNER, optimizer=SGD(1e-3))
    engine = Autodiff([problem] * count, range(count), options)
    state = engine.init()
    rows = rng.integers(500, size=(count, MLP_STEPS))
    with jax.enable_x64(True):
        contexts, outcomes = jax.numpy.asarray(X[rows]), jax.numpy.asarray(y[rows][:, :, None])
    return best(lambda: jax.block_until_ready(engine.learn(state, contexts, outcomes)[0]))


def main():
    device = jax.devices()[0]
    print(device, jax.__version__)
    if device.platform == "cpu":
        sys.exit("This benchmark needs a GPU that JAX can see.")
    forms = grid()
    rows = [whole_grid(forms, dtype) for dtype in (np.float64, np.float32)]
    times = {count: neural(count) for count in MLP_COUNTS}
    for count, (first, seconds) in times.items():
        rows.append(
            {
                "what": f"MLP(64, 64), K={INNER}, {MLP_STEPS} steps, {count} side by side",
                "count": count,
                "first_seconds": round(first, 3),
                "seconds": round(seconds, 4),
                "ratio_to_one": round(seconds / times[1][1], 2),
                "check": "",
            }
        )
    for row in rows:
        row["device"] = device.device_kind
        print(row)
    print(machine())
    write_csv("device", rows)


if __name__ == "__main__":
    main()
