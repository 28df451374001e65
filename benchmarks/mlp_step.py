"""Cost of one step of a neural policy: our general engine, Numba by hand, PyTorch eager.

python -m benchmarks.mlp_step
"""

import subprocess
import time
from pathlib import Path

import numba
import numpy as np

from benchmarks.common import BACKORDER, HOLDING, machine, write_csv
from benchmarks.environments import environment
from surefoot import Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.engines.autodiff import Autodiff
from surefoot.engines.engine import Options
from surefoot.nominals import Empirical
from surefoot.policies import MLP
from surefoot.solvers import SGD, Adam

S, HIDDEN, K, RATE, RADIUS = 100, 64, 10, 1e-3, 0.1
STEPS, ROUNDS, TORCH_STEPS = 2_000, 7, 100


def data(rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, S))
    return X, np.abs(X[:, 0]) + 0.3 * rng.normal(size=rows)


@numba.njit(fastmath=True, inline="always")
def _bend(values, slopes):
    for j in range(values.shape[0]):
        v = values[j]
        e = np.exp(min(v, 0.0))
        slopes[j] = 1.0 if v > 0.0 else e
        values[j] = v if v > 0.0 else e - 1.0


@numba.njit(fastmath=True, inline="always")
def _times(x, W, b, out):
    """out = x W + b, row by row of W: contiguous, so that it vectorises."""
    out[:] = b
    for i in range(W.shape[0]):
        xi = x[i]
        for j in range(W.shape[1]):
            out[j] += xi * W[i, j]


@numba.njit(fastmath=True, inline="always")
def _back(g, W, out):
    """out = W g."""
    for i in range(W.shape[0]):
        total = 0.0
        for j in range(W.shape[1]):
            total += W[i, j] * g[j]
        out[i] = total


@numba.njit(fastmath=True, inline="always")
def _forward(x, W0, b0, W1, b1, W2, b2, a0, s0, a1, s1):
    _times(x, W0, b0, a0)
    _bend(a0, s0)
    _times(a0, W1, b1, a1)
    _bend(a1, s1)
    z = b2[0]
    for j in range(a1.shape[0]):
        z += a1[j] * W2[j, 0]
    return z


@numba.njit(fastmath=True)
def numba_steps(X, Y, W0, b0, W1, b1, W2, b2, log_gamma):
    """The same step with the derivatives written out: the best that one gets by hand in Numba."""
    hidden, s = W0.shape[1], W0.shape[0]
    a0, s0, g0 = np.empty(hidden), np.empty(hidden), np.empty(hidden)
    a1, s1, g1 = np.empty(hidden), np.empty(hidden), np.empty(hidden)
    move, moved = np.empty(s), np.empty(s)
    for t in range(X.shape[0]):
        gamma = np.exp(log_gamma)
        move[:] = 0.0
        for _ in range(K):
            moved[:] = X[t] + move
            z = _forward(moved, W0, b0, W1, b1, W2, b2, a0, s0, a1, s1)
            slope = HOLDING if z - Y[t] >= 0.0 else -BACKORDER
            for j in range(hidden):
                g1[j] = slope * W2[j, 0] * s1[j]
            _back(g1, W1, g0)
            for j in range(hidden):
                g0[j] *= s0[j]
            _back(g0, W0, move)
            for j in range(s):
                move[j] /= 2.0 * gamma
        moved[:] = X[t] + move
        z = _forward(moved, W0, b0, W1, b1, W2, b2, a0, s0, a1, s1)
        slope = HOLDING if z - Y[t] >= 0.0 else -BACKORDER
        for j in range(hidden):
            g1[j] = slope * W2[j, 0] * s1[j]
        _back(g1, W1, g0)
        for j in range(hidden):
            g0[j] *= s0[j]
        for i in range(s):
            for j in range(hidden):
                W0[i, j] -= RATE * moved[i] * g0[j]
        for i in range(hidden):
            for j in range(hidden):
                W1[i, j] -= RATE * a0[i] * g1[j]
        distance = 0.0
        for j in range(s):
            distance += move[j] * move[j]
        for j in range(hidden):
            b0[j] -= RATE * g0[j]
            b1[j] -= RATE * g1[j]
            W2[j, 0] -= RATE * slope * a1[j]
        b2[0] -= RATE * slope
        log_gamma -= RATE * gamma * (RADIUS * RADIUS - distance)
    return log_gamma


def ours(optimizer):
    X, y = data(500)
    problem = Problem(
        Newsvendor(BACKORDER, HOLDING), MLP((HIDDEN, HIDDEN)), Empirical(X, y), WassersteinBall(RADIUS)
    )
    engine = Autodiff([problem], [0], Options(10**9, inner_steps=K, optimizer=optimizer))
    state = engine.init()
    X, y = data(STEPS, seed=1)
    rows, outcomes = X[None], y[None, :, None]
    return lambda: engine.learn(state, rows, outcomes)


def by_hand():
    X, y = data(STEPS, seed=1)
    weights = MLP((HIDDEN, HIDDEN)).initial(np.random.default_rng(0), S, 1)
    arrays = [weights[f"{part}{layer}"] for layer in range(3) for part in ("weight", "bias")]
    return lambda: numba_steps(X, y, *arrays, 0.0)


def main():
    python = environment("torch", ["torch==2.13.0", "numpy"])
    candidates = {
        "general engine, SGD": ours(SGD(RATE)),
        "general engine, Adam": ours(Adam(RATE, decay=False)),
        "Numba by hand, SGD": by_hand(),
    }
    times = {name: [] for name in candidates}
    torch_times = []
    for run in candidates.values():
        run()
    for _ in range(ROUNDS):  # in turns, so that a noisy neighbour disturbs all of them
        for name, run in candidates.items():
            began = time.perf_counter()
            run()
            times[name].append(1e6 * (time.perf_counter() - began) / STEPS)
        torch = Path(__file__).parent / "torch_mlp.py"
        answer = subprocess.run(
            [python, torch, str(TORCH_STEPS)], check=True, capture_output=True, text=True
        )
        torch_times.append(float(answer.stdout))
    best = {name: min(found) for name, found in times.items()} | {
        "PyTorch eager, SGD": min(torch_times)
    }
    rows = [
        {
            "what": name,
            "microseconds": round(value, 2),
            "torch_over_this": round(best["PyTorch eager, SGD"] / value, 1),
            "this_over_numba": round(value / best["Numba by hand, SGD"], 2),
        }
        for name, value in best.items()
    ]
    for row in rows:
        print(row)
    print(machine())
    write_csv("mlp_step", rows)


if __name__ == "__main__":
    main()
