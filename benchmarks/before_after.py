"""The same work on two versions of the package, in turns, in one run.

python -m benchmarks.before_after REVISION      compares a git revision with the working tree
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import write_csv

ROOT = Path(__file__).parents[1]
ROUNDS = 3
WORK = """
import json, time, warnings
start = time.perf_counter()
from surefoot import Box, DASGD, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.online import OnlinePolicy
warnings.simplefilter("ignore")
small, large = synthetic(n=500, s=20, seed=0, test=10), synthetic(n=10_000, s=50, seed=0, test=10)
tiny = synthetic(n=50, s=10, seed=0, test=10)
found = {}
RobustNewsvendor(1.0, 0.2, radius=0.1).fit(tiny.X, tiny.y)
found["import and first fit"] = time.perf_counter() - start, float("nan")

def timed(name, work, repeats=3):
    model, times = work(), []
    gap = getattr(getattr(model, "certificate_", None), "gap", float("nan"))
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    found[name] = min(times), gap

timed("certified 1 %, n=500, s=20", lambda: RobustNewsvendor(1.0, 0.2, radius=0.1).fit(small.X, small.y), 50)
timed("certified 1 %, n=500, s=20, order 1",
      lambda: RobustNewsvendor(1.0, 0.2, radius=0.1, order=1).fit(small.X, small.y), 50)
timed("certified 1 %, n=10,000, s=50", lambda: RobustNewsvendor(1.0, 0.2, radius=0.1).fit(large.X, large.y))
boxed = RobustPolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1, support=Box(-50, 50)),
                     solver=DASGD(max_steps=300_000))
timed("1 % in a box or 300,000 steps, n=500, s=20", lambda: boxed.fit(small.X, small.y))
timed("radius by cross-validation, n=500, s=20",
      lambda: RobustNewsvendor(1.0, 0.2, nominal=None).fit(small.X, small.y))
timed("default, n=50, s=10", lambda: RobustNewsvendor(1.0, 0.2).fit(tiny.X, tiny.y))
timed("default, n=500, s=20", lambda: RobustNewsvendor(1.0, 0.2).fit(small.X, small.y))
keys = [f"x{j}" for j in range(20)]
rows = [dict(zip(keys, row)) for row in large.X[:3000, :20].tolist()]

def stream():
    policy = OnlinePolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1))
    for row, outcome in zip(rows, large.y[:3000].tolist()):
        policy.learn_one(row, outcome)

timed("learn_one, 3,000 rows of 20 keys", stream, 10)
online = OnlinePolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1))
arrays = large.X[:100, :20].copy(), large.y[:100].copy()
timed("partial_fit, 100 rows of 20 columns", lambda: online.partial_fit(*arrays), 2000)
print(json.dumps(found))
"""


def measured(source: Path) -> dict[str, list[float]]:
    """Return seconds and certified gaps with the package of a source folder, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WORK],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main(revision: str) -> None:
    """Write the least seconds of each version, their ratio, and what was proved."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", tree, revision], check=True)
        try:
            sources = {"before": tree / "src", "after": ROOT / "src"}
            rounds = [
                {name: measured(source) for name, source in sources.items()} for _ in range(ROUNDS)
            ]
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)
    rows = []
    for work in rounds[0]["before"]:
        (before, gap_before), (after, gap_after) = (
            min(turn[name][work] for turn in rounds) for name in ("before", "after")
        )
        rows.append({
            "work": work, "before_s": f"{before:.5f}", "after_s": f"{after:.5f}",
            "ratio": f"{after / before:.2f}", "gap_before": f"{100 * gap_before:.2g} %",
            "gap_after": f"{100 * gap_after:.2g} %", "revision": revision,
        })  # fmt: skip
        print(rows[-1])
    write_csv("before_after", rows)


if __name__ == "__main__":
    main(sys.argv[1])
