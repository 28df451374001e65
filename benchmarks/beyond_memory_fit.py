"""One fit of ``benchmarks.beyond_memory``, in a process that imports nothing else.

python -m benchmarks.beyond_memory_fit files PrimalDual FOLDER ROWS
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from surefoot import RobustNewsvendor
from surefoot.nominals import ParquetRows
from surefoot.solvers import DASGD, PrimalDual

COLUMNS, FILE_ROWS = 10, 1_000_000
BACKORDER, HOLDING, RADIUS = 1.0, 0.2, 0.1
FILES, MEMORY, AUTOMATIC = "files", "memory", "memory, automatic"


def demand(first, count, total):
    """Return contexts and outcomes of some rows, as numbers of 32 bits."""
    rng = np.random.default_rng([first, 7])
    when = (first + np.arange(count)) / total
    X = rng.standard_normal((count, COLUMNS))
    X[:, 0] = np.sin(24 * np.pi * when) + 0.1 * X[:, 0]
    X[:, 1] = when
    weights = np.linspace(1.0, 3.0, COLUMNS)
    y = 30.0 + X @ weights + (1.0 + 0.5 * np.abs(X[:, 2])) * rng.gamma(2.0, 2.0, count)
    return X.astype(np.float32), y.astype(np.float32)


def whole(rows):
    """Return all rows at once, as in the files."""
    X, y = np.empty((rows, COLUMNS)), np.empty(rows)
    for first in range(0, rows, FILE_ROWS):
        part = slice(first, min(first + FILE_ROWS, rows))
        X[part], y[part] = demand(first, part.stop - first, rows)
    return X, y


def peak():
    """Return the largest resident size of this process in MB; getrusage would count its parent's, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def fitted(how, solver, folder, rows):
    """Fit in this process; return how it went."""
    if how == AUTOMATIC:
        model = RobustNewsvendor(BACKORDER, HOLDING)
    else:
        solvers = {"PrimalDual": PrimalDual(), "DASGD": DASGD()}
        model = RobustNewsvendor(BACKORDER, HOLDING, radius=RADIUS, solver=solvers[solver])
    given = (ParquetRows(folder, outcome="sales"),) if how == FILES else whole(rows)
    began, spent = time.perf_counter(), time.process_time()
    model.fit(*given)
    return {
        "seconds": f"{time.perf_counter() - began:.1f}",
        "processor_seconds": f"{time.process_time() - spent:.1f}",
        "peak_megabytes": f"{peak():.0f}",
        "gap": f"{model.certificate_.gap:.2e}" if how != AUTOMATIC else "",
        "upper": f"{model.certificate_.upper:.6g}",
        "lower": f"{model.certificate_.lower:.6g}" if how != AUTOMATIC else "",
        "converged": model.converged_,
        "load": f"{os.getloadavg()[0]:.1f}",
        "status": model.status_,
    }


if __name__ == "__main__":
    print(json.dumps(fitted(*sys.argv[1:4], int(sys.argv[4]))))
