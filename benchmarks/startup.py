"""Import time and the first fit of a fresh process (kernels cached on disk).

python -m benchmarks.startup
"""

import json
import subprocess
import sys

from benchmarks.common import write_csv

PROGRAM = """
import json, sys, time
t0 = time.perf_counter()
import surefoot
t1 = time.perf_counter()
from surefoot import RobustNewsvendor
t2 = time.perf_counter()
from surefoot.datasets import synthetic
data = synthetic(n=100, s=10, seed=0, test=10)
t3 = time.perf_counter()
RobustNewsvendor(radius=0.1).fit(data.X, data.y).predict(data.X_test)
t4 = time.perf_counter()
print(json.dumps({"import_surefoot": t1 - t0, "import_estimator": t2 - t0, "first_fit": t4 - t3,
                  "jax": "jax" in sys.modules}))
"""


REFERENCE = """
import json, time
t0 = time.perf_counter()
import sklearn.base
t1 = time.perf_counter()
import numba
print(json.dumps({"sklearn": t1 - t0, "numba": time.perf_counter() - t1}))
"""


def fresh(program=PROGRAM):
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def main():
    fresh()  # compile and fill the cache
    runs = [fresh() for _ in range(7)]
    rows = [
        {"what": key, "median_seconds": f"{sorted(run[key] for run in runs)[3]:.4f}"}
        for key in ("import_surefoot", "import_estimator", "first_fit")
    ]
    floors = [fresh(REFERENCE) for _ in range(7)]
    rows += [
        {
            "what": f"of which {key} itself",
            "median_seconds": f"{sorted(run[key] for run in floors)[3]:.4f}",
        }
        for key in ("sklearn", "numba")
    ]
    rows.append({"what": "jax imported", "median_seconds": str(any(run["jax"] for run in runs))})
    for row in rows:
        print(row)
    write_csv("startup", rows)


if __name__ == "__main__":
    main()
