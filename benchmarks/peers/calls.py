"""Running a peer's script in its environment, with a time limit for each call."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.peers.catalogue import ROOT

HERE = Path(__file__).parent
LIMIT, START_LIMIT, PAUSE = 120.0, 240.0, 0.1
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")


def surroundings(peer):
    """One thread for everyone; Surefoot runs from the working tree."""
    path = {"PYTHONPATH": str(ROOT / "src") if peer.name == "Surefoot" else ""}
    return os.environ | path | {f"{name}_NUM_THREADS": "1" for name in THREADS}


def carry_out(peer, python, calls, instances):
    """Return the calls with their answers; a call past the limit ends it for its method and larger n."""
    waiting, done = list(calls), []
    while waiting:
        answers, why = one_process(peer, python, waiting, instances)
        done += [call | found for call, found in zip(waiting, answers, strict=False)]
        waiting = waiting[len(answers) :]
        if waiting:
            failed = waiting.pop(0)
            done.append(failed | {"error": why, "warnings": []})
            late = [c for c in waiting if c["method"] == failed["method"] and c["n"] >= failed["n"]]
            done += [call | {"error": why, "warnings": []} for call in late]
            waiting = [call for call in waiting if call not in late]
    return done


def one_process(peer, python, calls, instances):
    """Return the answers that one process gave, and why it gave no more."""
    with tempfile.TemporaryDirectory() as folder:
        job, out = Path(folder, "job.json"), Path(folder, "answers.jsonl")
        job.write_text(json.dumps({"instances": str(instances), "calls": calls}))
        out.touch()
        with Path(folder, "log").open("w") as log:
            process = subprocess.Popen(
                [python, HERE / peer.script, job, out], env=surroundings(peer), stdout=log, stderr=log
            )
            why = watch(process, out)
        lines = [json.loads(line) for line in out.read_text().splitlines() if line.endswith("}")]
        if not lines and why is None:
            why = Path(folder, "log").read_text().strip().splitlines()[-1]
    return lines[1:], why or f"the process ended with {process.returncode}"


def watch(process, out):
    """Wait for the process while lines keep coming; kill it when one takes too long."""
    seen, since = 0, time.monotonic()
    while process.poll() is None:
        time.sleep(PAUSE)
        count = out.read_text().count("\n")
        if count > seen:
            seen, since = count, time.monotonic()
        limit = LIMIT if seen else START_LIMIT
        if time.monotonic() - since > limit:
            process.kill()
            process.wait()
            return f"not done after {limit:.0f} s"
    return None
