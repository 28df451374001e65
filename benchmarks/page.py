"""Write docs/benchmarks.md from the committed results.

python -m benchmarks.page
"""

import shutil
from pathlib import Path

from benchmarks.common import RESULTS, read_csv

DOCS = Path(__file__).parent.parent / "docs"


def table(rows, columns):
    """Markdown table of some columns: {key: heading}."""
    lines = ["| " + " | ".join(columns.values()) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(row[key]) for key in columns) + " |" for row in rows]
    return "\n".join(lines)


def stamp(rows):
    times = dict.fromkeys(f"{row['date']}: {row['machine']}" for row in rows)
    return f"Measured on {'; '.join(times)}."


def gap_section():
    rows = read_csv("gap")
    true = [float(row["true_gap"]) for row in rows]
    certified = [float(row["certified_gap"]) for row in rows]
    loose = sum(c > 2 * max(t, 0.0) + 0.005 for t, c in zip(true, certified, strict=True))
    cells = {}
    for row in rows:
        cells.setdefault((row["n"], row["s"]), []).append(row)
    summary = [
        {
            "n": n,
            "s": s,
            "cells": len(part),
            "true": f"{100 * max(float(r['true_gap']) for r in part):.3f} %",
            "certified": f"{100 * max(float(r['certified_gap']) for r in part):.3f} %",
            "seconds": f"{sorted(float(r['seconds']) for r in part)[len(part) // 2]:.3f}",
        }
        for (n, s), part in cells.items()
    ]
    heads = {
        "n": "n", "s": "s", "cells": "cells", "true": "largest true gap",
        "certified": "largest certified gap", "seconds": "median seconds",
    }  # fmt: skip
    return f"""`PrimalDual()`, the default, against the optimum from CVXPY with Clarabel, over both orders, radii of 1, 10, 50
and 100 % of `rho_max`, with and without intercept, both sign patterns: {len(rows)} cells. The true gap is
(value - optimum) / max(optimum, 1 % of the best constant order's cost). Largest true gap
{100 * max(true):.3f} %, largest certified gap {100 * max(certified):.3f} %; cells in which the certified gap
exceeds twice the true gap plus 0.5 %: {loose}.

{table(summary, heads)}

{stamp(rows)} `python -m benchmarks.gap`, results in `benchmarks/results/gap.csv`."""


def step_section():
    rows = read_csv("step_cost")
    heads = {
        "n": "n", "s": "s", "floor_c": "floor in C", "dasgd": "DA-SGD", "dasgd_rotated": "rotated",
        "primal_dual": "primal-dual", "literal_k10": "literal, K = 10",
        "numpy_literal_k10": "literal in NumPy", "dasgd_over_floor": "DA-SGD / floor",
        "numpy_over_dasgd": "NumPy / DA-SGD",
    }  # fmt: skip
    by_rows = read_csv("step_cost_rows")
    shutil.copy(RESULTS / "step_cost_rows.png", DOCS / "images")
    return f"""Microseconds per step. The floor is a C program built when the benchmark runs: the dependency chain and one
streaming pass, and nothing else. Where n < s, `DASGD` rotates the rows into their principal axes, so that a step costs
as little as with s = n. `PrimalDual`, which solves such problems by default, always works in them.

{table(rows, heads)}

{stamp(rows)} `python -m benchmarks.step_cost`.

![Step cost against rows](images/step_cost_rows.png)

{table(by_rows, {"n": "n (s = 100)", "megabytes": "data, MB", "dasgd": "DA-SGD", "primal_dual": "primal-dual"})}

The cost of a step does not depend on n while the data fit the cache; beyond it each step waits for one row from
memory."""


def time_section():
    rows = read_csv("time_to_gap")
    shutil.copy(RESULTS / "time_to_gap.png", DOCS / "images")
    heads = {
        "n": "n (s = 100)", "surefoot_seconds": "Surefoot, s", "clarabel_seconds": "CVXPY + Clarabel, s",
        "ratio": "ratio", "certified_gap": "certified gap", "true_gap": "true gap",
    }  # fmt: skip
    return f"""Both solve the same problem (order 2, 10 % of `rho_max`, intercept) in one run; ours includes building the problem
and the certificate and is the median of five runs, Clarabel's is one run. Clarabel solves to its own default precision, which is far better than 1 %: it has no setting
that makes it stop there with a proof.

![Seconds to a 1 % gap](images/time_to_gap.png)

{table(rows, heads)}

{stamp(rows)} `python -m benchmarks.time_to_gap`."""


def startup_section():
    words = {
        "import_surefoot": "`import surefoot`",
        "import_estimator": "`from surefoot import RobustNewsvendor`",
        "of which sklearn itself": "of which scikit-learn itself",
        "of which numba itself": "of which Numba itself",
        "first_fit": "the first fit",
    }
    found = {row["what"]: row for row in read_csv("startup")}
    rows = [{**found[what], "what": said} for what, said in words.items()]
    jax = "loaded, too" if found["jax imported"]["median_seconds"] == "True" else "not loaded"
    return f"""Median of seven fresh processes, compiled kernels cached on disk; JAX is {jax}.

{table(rows, {"what": "", "median_seconds": "seconds"})}

{stamp(rows)} `python -m benchmarks.startup`."""


def compare_section():
    rows = read_csv("compare_large")
    shown = {"what": "", "seconds": "seconds", "peak_megabytes": "peak MB", "cost": "mean cost"}
    return f"""`surefoot compare` on a CSV file of 12 columns, from the start of the process to its end, while other work ran on the machine
(load {rows[0]["load"]}). {rows[0]["sampled"]}

{table(rows, shown)}

{stamp(rows)} `python -m benchmarks.compare_large`."""


def fit_section():
    rows = read_csv("fit_time")
    shown = {"n": "n", "s": "s", "data": "data", "seconds": "seconds"}
    return f"""`RobustNewsvendor(backorder=1.0, holding=0.2).fit(X, y)`: members, their weights, the bound and its radius. Median of
seven fits, kernels compiled.

{table(rows, shown)}

{stamp(rows)} `python -m benchmarks.fit_time`."""


def online_section():
    rows = read_csv("online")
    shown = {
        "library": "", "what": "what", "us_per_sample": "microseconds a sample",
        "samples_per_second": "samples a second",
    }  # fmt: skip
    return f"""One pass over a stream with 20 columns, best chunk of rows; river's linear model with a quantile loss in the same run.
Its `learn_many` takes one step for each block of 1,000 rows, ours one for each row.

{table(rows, shown)}

{stamp(rows)} `python -m benchmarks.online`."""


def neural_section():
    rows = read_csv("mlp_step")
    heads = {
        "what": "MLP(64, 64), K = 10, s = 100, batch 1", "microseconds": "microseconds per step",
        "torch_over_this": "PyTorch / this", "this_over_numba": "this / Numba",
    }  # fmt: skip
    return f"""One step moves a sample by ten gradient steps of the inner problem, then steps the parameters and the multiplier.
The Numba program has its derivatives written out by hand for this one network; the PyTorch program is the usual
eager loop, on one thread, in an environment of its own.

{table(rows, heads)}

{stamp(rows)} `python -m benchmarks.mlp_step`."""


def before_after_section():
    words, found = {"nan %": "", "inf %": "none claimed"}, read_csv("before_after")
    rows = [{name: words.get(entry, entry) for name, entry in row.items()} for row in found]
    heads = {
        "work": "", "before_s": "before, s", "after_s": "after, s", "ratio": "after / before",
        "gap_before": "certified gap before", "gap_after": "after",
    }  # fmt: skip
    return f"""The same work in one run, in turns, with revision {rows[0]["revision"]} (before the engines were joined, and before the
ensemble was the default) and with the library as it is. At a given radius both take the same steps to the same gap; in a box
`DASGD` proves more with the same steps. `learn_one` compares each value with the range seen so far, so that a slip does no
harm, and takes longer for that. Where policies changed, as with the default, it is not the same answer that takes so long.

{table(rows, heads)}

{stamp(rows)} `python -m benchmarks.before_after {rows[0]["revision"]}`."""


def cores_section():
    rows = read_csv("cores")
    heads = {
        "what": "", "cores": "cores", "seconds": "seconds", "times_one_core": "times one core",
        "least_seconds": "least, s", "least_times_one_core": "times one core's least",
    }  # fmt: skip
    return f"""{int(rows[0]["problems"]):,} problems of 100 rows and 20 columns by `solve_many`, each to a certified gap of 1 %: parameters
and gaps read as arrays, or policy and certificate of each `Solution`, which is Python on one core. Medians of
{len(rows[0]["rounds"].split())} rounds that take all numbers of cores in turn; each round is in the results. Below them is what the
machine gives to loops that share nothing: `chain`, in which each operation waits for the last one, and `sums`, in which
none does. A machine of whole cores gives as many times one core in both. This one says of itself that it has one thread a
core (`lscpu`); but where `sums` gains half of what `chain` does, two of its "cores" are most likely hyperthreads of one.

{table(rows, heads)}

{stamp(rows)} `python -m benchmarks.cores`."""


def device_section():
    rows = read_csv("device")
    heads = {
        "what": f"on one {rows[0]['device']}", "first_seconds": "first run, s", "seconds": "then, s",
        "each_solution_seconds": "each Solution read, s", "ratio_to_one": "ratio to one policy",
        "check": "",
    }  # fmt: skip
    return f"""Affine problems, each to a certified gap of 1 %, by `solve_many` on the host's cores and with `engine="batch"` on the
GPU in turn, parameters and gaps read as arrays, or policy and certificate of each `Solution`; and neural policies trained
side by side, their data on the device. Times after the first run, which compiles: medians of problems, the best of
policies.

{table(rows, heads)}

{stamp(rows)} `python -m benchmarks.device`."""


def peers_section():
    rows = read_csv("peers")
    sizes = sorted({int(row["n"]) for row in rows if row["n"]})
    lines = {}
    for row in rows:
        lines.setdefault((row["library"], row["version"], row["method"]), {})[row["n"]] = row
    costs, times, notes = [], [], []
    for (library, version, method), found in lines.items():
        name = {"library": f"{library} {version}", "method": method}
        said = list(dict.fromkeys(row["note"] for row in found.values() if row["note"]))
        notes += [name | {"note": note} for note in said]
        if any(row["ratio_to_oracle"] for row in found.values()):
            here = {str(n): found.get(str(n), {}) for n in sizes}
            costs.append(name | {n: row.get("ratio_to_oracle") or "-" for n, row in here.items()})
            times.append(name | {n: row.get("cpu_seconds") or "-" for n, row in here.items()})
    installs = {row["library"]: row for row in rows if row["install_mb"]}.values()
    heads = {"library": "", "method": "how"} | {str(n): f"n = {n}" for n in sizes}
    sizes_of = {
        "library": "", "version": "version", "install_mb": "MB installed", "import_seconds": "import, s",
    }  # fmt: skip
    return f"""The same newsvendor instances (`synthetic`, 100 contexts, noise variance 1, b = 1, h = 0.2, three repetitions)
through other libraries, each in an environment of its own, one thread each. Everyone gets columns divided by
their standard deviations, so that a radius means the same. "Best of 4 radii in hindsight" looks at the test
rows, which nobody can do: it says what a library could reach if its radius were the best of those four. Ours
with `radius="auto"` sees the training rows alone, and its time includes the choice. The four radii were set after a
look at our own costs on one of the three seeds.

Cost on 10,000 test rows as a multiple of the oracle's:

{table(costs, heads)}

Ours is the plain robust problem here (`nominal=None`), like for like. It has two weak spots: with ten rows
`radius="auto"` does worse than always ordering the same (about 2.0), and with coefficients that are all positive a policy
without intercept does better than any choice of radius. A forecast with a robust correction is
[measured apart](quality.md); it has neither.

Processor seconds of one fit (the machine was shared, so that seconds on the clock are longer for all):

{table(times, heads)}

Installation and import of each, in seconds on the clock. torch is a build for processors alone.

{table(installs, sizes_of)}

What to know about a line, and what could not be asked:

{table(notes, {"library": "", "method": "how", "note": "note"})}

{stamp(rows)} `python -m benchmarks.peers`, results in `benchmarks/results/peers.csv`."""


def beside_section():
    parts = ("prices", "restaurant", "drifting")
    rows = [row for part in parts for row in read_csv(f"beside_statsforecast_{part}")]
    shown = {
        "way": "", "order": "order", "series": "series", "cost": "cost", "apart": "against one policy each",
        "processor_ms_each": "processor ms a fit",
    }  # fmt: skip
    for row in rows:
        more, error = 100 * float(row["more_than_one_each"]), 100 * float(row["standard_error"])
        row["apart"] = "" if row["way"].endswith("one policy each") else f"{more:+.1f} % ± {error:.1f}"
    tables = "\n\n".join(
        f"**{name[0].upper()}{name[1:]}**\n\n{table([row for row in rows if row['panel'] == name], shown)}"
        for name in dict.fromkeys(row["panel"] for row in rows)
    )
    return f"""Orders for the next 28 days, a unit short costing five times one left over. A forecast of statsforecast
{rows[0]["statsforecast"]} becomes an order by a quantile of its own errors in the past, or as the end of its own interval.
`AutoETS` sees past sales alone; `AutoARIMA` has the contexts as regressors (weekdays, the logarithm of the price) and,
being slow, at most a hundred series. `fit_many`, with everything on automatic, has the contexts and the order of days, and no past sales among the contexts.
Generated series have 200 days of history; calendar, promotions and a level that drifts act by factors. Prices are known
beforehand. The restaurant has seven ingredients with a year of history before each of fourteen windows, and the
weather of the day, which a restaurant would have to forecast. Costs are shares of a series' mean sales; ± is one standard
error over series (over windows and ingredients there). One thread, forecasts and decisions included, while other work ran
on the machine.

{tables}

Where prices act, `AutoETS`, which sees none, costs about twice as much as a policy that does. AutoARIMA with the same
contexts costs a little more than a policy and takes several times as long. At the restaurant `AutoETS` with the week as season is as good as policies, with or without borrowing, and much quicker. Where
a level drifts by 3 % a day and there are no prices, policies told when rows were follow it and are as good as `AutoETS`
with the week as season and AutoARIMA: differences are within two standard errors.

{stamp(rows)} `python -m benchmarks.beside_statsforecast`."""


def scaling_section():
    shutil.copy(RESULTS / "scaling.png", DOCS / "images")
    rows, memory = read_csv("panel_series"), read_csv("panel_memory")[0]
    shown = {"way": "", "series": "series", "processor_s": "processor s", "ms_each": "ms each"}
    return f"""![Series against time, cores against time, rows against memory](images/scaling.png)

Time grows with the number of series and no faster. Series of {rows[0]["rows"]} rows and {rows[0]["columns"]} columns, in one process:

{table(rows, shown)}

The driver holds no data: {int(memory["series"]):,} series of {memory["rows"]} rows in a folder of Parquet files, two workers, models
kept in a folder, take {memory["driver_fit_mb"]} MB of the driver at most ({memory["imported_mb"]} MB of them the imports),
{memory["driver_decide_mb"]} MB after a decision for each of the {int(memory["decided"]):,} series (`python -m benchmarks.panel_memory`).

{stamp(rows)} `python -m benchmarks.scaling`."""


def attack_section():
    rows = [row for row in read_csv("attack") if row["solver"] == "all"]
    whole = rows[-1]
    missing = "What is missing was not run. " if int(whole["cases"]) < 2_000 else ""
    shown = [
        {
            **row,
            "true": f"{100 * float(row['true_gap_p95']):.2g} %",
            "certified": f"{100 * float(row['certified_gap_p95']):.2g} %",
        }
        for row in rows
    ]
    heads = {
        "group": "problems", "cases": "cases", "not_converged": "not converged",
        "true": "true gap, 95th percentile", "certified": "certified gap, 95th percentile",
        "without_oracle": "without an oracle", "violations": "violations",
    }  # fmt: skip
    return f"""Random problems with ties, heavy tails, weights, columns that nearly depend on each other, costs of 100 to 1, units from
1e-6 to 1e6, boxes with open sides and radii from nothing to beyond the spread, solved by the default, `DASGD`,
`PrimalDual` and `Exact` in turn, and in the autodiff engine by `DASGD(optimizer=Adam(), max_steps=3_000)`. Each is judged by
a convex program for CVXPY that shares no formula with the library: the true worst case of the policy, and the true
optimum. A violation is a bound that does not hold, "converged" beside a true gap above the tolerance (1 %; `Exact` 0.01 %), or
non-convergence without a warning. {int(whole["cases"]):,} of 2,000 problems, {whole["violations"]} violations; where the program gave
up, there was no oracle. {missing}All were run with one version of the code.

{table(shown, heads)}

{stamp(rows)} `make attack`, results in `benchmarks/results/attack.csv`."""


SECTIONS = {
    "Time to a 1 % gap": time_section,
    "How close to the optimum": gap_section,
    "Hostile problems": attack_section,
    "Cost of a step": step_section,
    "Cost of a step of a neural policy": neural_section,
    "Before and after": before_after_section,
    "Cores": cores_section,
    "On a GPU": device_section,
    "Many series": scaling_section,
    "Beside statsforecast": beside_section,
    "Fitting with everything on automatic": fit_section,
    "Learning while deciding": online_section,
    "Beside other libraries": peers_section,
    "Starting up": startup_section,
    "Comparing all methods on 100,000 rows": compare_section,
}


def former_sections():
    """The text below each heading of the page as it is."""
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    parts = (part.partition("\n\n") for part in text.split("\n## ")[1:])
    return {heading: body.rstrip("\n") for heading, _, body in parts}


def written(heading, section, former):
    """The text below a heading: as its results say, or as it was where they are older than the script."""
    try:
        return section()
    except KeyError as missing:
        print(
            f"'{heading}' stays as it was: its results have no column {missing}. Run its script first."
        )
        return former[heading]


def main():
    former = former_sections()
    parts = [
        f"## {heading}\n\n{written(heading, section, former)}" for heading, section in SECTIONS.items()
    ]
    text = (
        "# Benchmarks\n\nEvery figure comes from a script in `benchmarks/` and its committed result; "
    )
    text += "`make bench` runs them all.\nThis page is written by `python -m benchmarks.page`.\n\n"
    (DOCS / "benchmarks.md").write_text(text + "\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"wrote {DOCS / 'benchmarks.md'}")


if __name__ == "__main__":
    main()
