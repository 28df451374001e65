"""The same newsvendor instances through Surefoot and its neighbours: cost, time, and what went wrong.

python -m benchmarks.peers
"""

import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.environments import PLACE, environment
from benchmarks.machine import machine, write_csv
from benchmarks.peers.calls import HERE, carry_out, surroundings
from benchmarks.peers.catalogue import PEERS, REPETITIONS, SIZES
from benchmarks.peers.worker import BACKORDER, HOLDING
from surefoot.datasets import synthetic

COLUMNS, PROBE = 100, 50


def cost(decisions, outcomes):
    residuals = np.asarray(decisions) - outcomes
    return float(np.maximum(HOLDING * residuals, -BACKORDER * residuals).mean())


def draw(path):
    """Save the instances, largest n (smaller ones are its first rows); return them and the oracle's costs."""
    drawn = [synthetic(SIZES[-1], COLUMNS, seed=r) for r in range(REPETITIONS)]
    arrays = {
        f"{name}{r}": getattr(data, name)
        for r, data in enumerate(drawn)
        for name in ("X", "y", "X_test", "y_test")
    }
    np.savez(path, **arrays)
    oracle = [
        cost(data.oracle_decisions(data.X_test, BACKORDER, HOLDING), data.y_test) for data in drawn
    ]
    return arrays, oracle


def installed(peer):
    """Return interpreter, version, megabytes and import seconds, or why it cannot be installed."""
    try:
        python = environment(f"peers-{peer.package}", list(peer.install))
    except subprocess.CalledProcessError:
        return None, f"pip install {' '.join(peer.install)} fails"
    (packages,) = (PLACE / f"peers-{peer.package}" / "lib").glob("python*/site-packages")
    tools = {"pip", "setuptools"}
    files = [
        f for f in packages.rglob("*") if f.is_file() and f.relative_to(packages).parts[0] not in tools
    ]
    version = f"from importlib.metadata import version; print(version({peer.package!r}))"
    timed = f"import time; t = time.perf_counter(); {peer.imports}; print(time.perf_counter() - t)"
    imports = [float(say(peer, python, timed)) for _ in range(REPETITIONS)]
    return python, {
        "version": say(peer, python, version),
        "install_mb": round(sum(f.stat().st_size for f in files) / 1e6),
        "import_seconds": round(statistics.median(imports), 2),
    }


def say(peer, python, code):
    """Return the last word that a line of Python prints in the peer's environment."""
    answer = subprocess.run(
        [python, "-c", code],
        cwd=HERE,
        env=surroundings(peer),
        check=True,
        capture_output=True,
        text=True,
    )
    return answer.stdout.split()[-1]


def asked(method, n, repetition, radius, column=False):
    return {
        "method": method.name, "way": method.radius, "n": n, "repetition": repetition, "radius": radius,
        "column": column,
    }  # fmt: skip


def calls_of(peer, repetition, best):
    """All radii at every repetition; at the largest n, and where nothing worked, the first one decides."""
    calls = []
    for method in peer.methods:
        for n in SIZES:
            if n > method.largest or repetition >= method.repetitions:
                continue
            radii = method.radii(n)
            if repetition > 0 and (n == SIZES[-1] or (method, n) not in best):
                radii = [best[method, n]] if (method, n) in best else []
            calls += [asked(method, n, repetition, radius) for radius in radii]
    return calls


def judge(found, arrays):
    """Add the out-of-sample cost; a policy that is not finite costs infinity."""
    if "error" in found:
        return found | {"cost": float("inf")}
    X_test, y_test = (arrays[f"{name}{found['repetition']}"] for name in ("X_test", "y_test"))
    if "decisions" in found:
        decisions = np.asarray(found.pop("decisions"))
    else:
        decisions = X_test @ np.asarray(found.pop("theta")) + found["intercept"]
    value = cost(decisions, y_test)
    return found | {"cost": value if np.isfinite(value) else float("inf")}


def of(answers, method, n):
    return [a for a in answers if (a["method"], a["way"], a["n"]) == (method.name, method.radius, n)]


def best_radii(peer, answers):
    """The radius of the smallest mean cost for each method and n; none where every call failed."""
    best = {}
    for method in peer.methods:
        for n in SIZES:
            tried = of(answers, method, n)
            costs = {
                a["radius"]: [b["cost"] for b in tried if b["radius"] == a["radius"]] for a in tried
            }
            ranks = {
                radius: (
                    sum(np.isinf(found)),
                    -len(found),
                    np.mean([c for c in found if np.isfinite(c)]),
                )
                for radius, found in costs.items()
                if np.isfinite(found).any()
            }
            if ranks:
                best[method, n] = min(ranks, key=ranks.get)
    return best


def column_note(peer, python, instances, arrays):
    """What the library's own fit makes of outcomes as a column."""
    method = peer.methods[0]
    radius = method.radii(PROBE)[0]
    pair = [asked(method, PROBE, 0, radius), asked(method, PROBE, 0, radius, column=True)]
    flat, column = (judge(found, arrays) for found in carry_out(peer, python, pair, instances))
    if "error" in column:
        return f"y of shape (n, 1) raises {column['error'].split(':')[0]}"
    if abs(column["cost"] - flat["cost"]) < 1e-3 * flat["cost"]:
        return "y of shape (n, 1) gives the same policy"
    return f"y of shape (n, 1) silently gives another policy, cost {column['cost']:.3g} for {flat['cost']:.3g}"


def row(peer, facts, method, n, answers, best, oracle):
    """One line of the table."""
    tried = of(answers, method, n)
    radius = best.get((method, n))
    chosen = [a for a in tried if a["radius"] == radius and np.isfinite(a["cost"])]
    notes = [method.note] if method.note else []
    for failure in sorted({a["error"] for a in tried if "error" in a}):
        count = sum(a.get("error") == failure for a in tried)
        notes.append(f"{count} of {len(tried)} calls: {failure}")
    if any("error" not in a and not np.isfinite(a["cost"]) for a in tried):
        notes.append("some policies are not finite")
    notes += sorted({w for a in chosen for w in a["warnings"]})[:1]
    judged = [oracle[a["repetition"]] for a in chosen]
    automatic = "radius auto" if peer.name == "Surefoot" else ""
    way = {"default": automatic, "hindsight": "best of 4 radii in hindsight", "one": "one radius"}[
        method.radius
    ]
    return {
        "library": peer.name,
        "version": facts["version"],
        "method": ", ".join(part for part in (method.name, way) if part),
        "n": n,
        "radius": "" if radius is None else radius,
        "mean_cost": round(statistics.mean(a["cost"] for a in chosen), 4) if chosen else "",
        "ratio_to_oracle": round(sum(a["cost"] for a in chosen) / sum(judged), 3) if chosen else "",
        "fit_seconds": round(statistics.median(a["seconds"] for a in chosen), 4) if chosen else "",
        "cpu_seconds": round(statistics.median(a["cpu_seconds"] for a in chosen), 4) if chosen else "",
        "times_surefoot": "",
        "repetitions": len(chosen),
        "import_seconds": facts["import_seconds"],
        "install_mb": facts["install_mb"],
        "note": "; ".join(notes),
    }


def silent(peer, facts, method, note):
    """A line without numbers, for what cannot be asked."""
    empty = dict.fromkeys(
        ("n", "radius", "mean_cost", "ratio_to_oracle", "fit_seconds", "cpu_seconds", "times_surefoot"),
        "",
    )
    known = {key: facts.get(key, "") for key in ("import_seconds", "install_mb")}
    version = facts.get("version", peer.install[0].partition("==")[2])
    return {"library": peer.name, "version": version, "method": method} | empty | {"repetitions": 0} | known | {
        "note": note
    }  # fmt: skip


def compare(rows):
    """Fill in how many times the processor time of our automatic fit at the same n each row took."""
    ours = {r["n"]: r["cpu_seconds"] for r in reversed(rows) if r["method"] == "order 2, radius auto"}
    for line in rows:
        if line["cpu_seconds"] != "":
            line["times_surefoot"] = round(line["cpu_seconds"] / ours[line["n"]], 2)
    return rows


def main():
    rows, ready = [], {peer: installed(peer) for peer in PEERS}
    pythons = {peer: python for peer, (python, _) in ready.items() if python}
    with tempfile.TemporaryDirectory() as folder:
        instances = Path(folder, "instances.npz")
        arrays, oracle = draw(instances)
        answers, best = {peer: [] for peer in pythons}, {peer: {} for peer in pythons}
        for repetition in range(
            REPETITIONS
        ):  # in turns, so that a noisy neighbour disturbs all of them
            for peer, python in pythons.items():
                calls = calls_of(peer, repetition, best[peer])
                found = [judge(a, arrays) for a in carry_out(peer, python, calls, instances)]
                answers[peer] += found
                best[peer] = best_radii(peer, answers[peer])
                print(f"repetition {repetition}: {peer.name}, {len(found)} calls", flush=True)
        columns = {
            peer: column_note(peer, python, instances, arrays)
            for peer, python in pythons.items()
            if peer.fits_outcomes
        }
    for peer, (python, facts) in ready.items():
        if not python:
            rows += [silent(peer, {}, method, f"{facts}: {note}") for method, note in peer.cannot]
            continue
        rows += [
            row(peer, facts, method, n, answers[peer], best[peer], oracle)
            for method in peer.methods
            for n in SIZES
            if n <= method.largest
        ]
        rows += [silent(peer, facts, method, note) for method, note in peer.cannot]
        if peer in columns:
            rows.append(silent(peer, facts, "outcomes as a column", columns[peer]))
    for line in compare(rows):
        print(
            *(line[key] for key in ("library", "method", "n", "mean_cost", "cpu_seconds", "note")),
            sep=" | ",
        )
    print(machine())
    write_csv("peers", rows)
