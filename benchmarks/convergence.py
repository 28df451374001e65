"""How fast DA-SGD converges: gap against steps T and against rows N, on log axes, beside the theory.

python -m benchmarks.convergence          measure, draw and write the numbers into docs/robustness.md
python -m benchmarks.convergence --page   only draw and write, from the committed results
"""

import sys
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.stats import norm

from benchmarks.machine import read_csv, write_csv
from benchmarks.sections import put_section
from reproduction.convergence import empirical_rate, gaps_against_steps
from surefoot import Exact, PrimalDual, Problem, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.diagnostics.pictures import plot_rates
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent.parent / "docs"
IMAGES = DOCS / "images" / "robustness"
BACKORDER, HOLDING = 1.0, 0.2
COST = Newsvendor(BACKORDER, HOLDING)

# Gap against steps: two problems, order 2 at a tenth of the collapse radius.
STEPS = tuple(2**k for k in range(8, 23))
CELLS, STEP_ROWS, SHARE = (20, 100), 500, 0.1
STEP_SEEDS = tuple(range(10))
TAIL = 6  # doublings over which the slope of the tail is fitted
SMALLEST = 1e-6  # ten times the precision of the optimum

# Gap against rows: cost of new rows above that of the oracle.
ROWS, COLUMNS, REPETITIONS = (30, 100, 300, 1_000, 3_000, 10_000), 10, 20
RULES = {
    "radius 0": lambda n: 0.0,
    "radius 1/sqrt(N)": lambda n: 1.0 / np.sqrt(n),
    "radius 0.1": lambda n: 0.1,
    'radius "auto"': lambda n: "auto",
}


def problem_of(columns):
    data = synthetic(n=STEP_ROWS, s=columns, seed=0, test=1)
    nominal = Empirical(data.X, data.y)
    still = Problem(COST, Linear(), nominal, WassersteinBall(0.0))
    radius = SHARE * affine_forms(still)[0].collapse_radius()
    return Problem(COST, Linear(), nominal, WassersteinBall(radius))


def measure_steps():
    rows = []
    for columns in CELLS:
        began = time.perf_counter()
        curves = gaps_against_steps(problem_of(columns), STEPS, seeds=STEP_SEEDS)
        for curve in curves:
            for k, steps in enumerate(curve.steps):
                low, middle, high = np.quantile(curve.gaps[:, k], [0.1, 0.5, 0.9])
                rows.append(
                    {
                        "s": columns, "algorithm": curve.algorithm, "steps": steps,
                        "median_gap": f"{middle:.4g}", "low": f"{low:.4g}", "high": f"{high:.4g}",
                        "seeds": len(curve.gaps),
                    }
                )  # fmt: skip
        print(f"s = {columns}: {time.perf_counter() - began:.0f} s", flush=True)
    write_csv("convergence_steps", rows)


def expected_cost(data, decisions):
    """Exact expected cost given the test contexts: the noise is normal and known."""
    sigma = np.sqrt(data.noise_variance)
    z = (decisions - data.X_test @ data.theta - data.intercept) / sigma
    costs = sigma * ((BACKORDER + HOLDING) * (norm.pdf(z) + z * norm.cdf(z)) - BACKORDER * z)
    return float(costs.mean())


def measure_rows():
    rows = []
    for n in ROWS:
        began = time.perf_counter()
        for name, rule in RULES.items():
            excess = []
            for repetition in range(REPETITIONS):
                data = synthetic(n=n, s=COLUMNS, seed=repetition)
                ball = WassersteinBall(rule(n))
                model = RobustPolicy(COST, ball=ball, solver=PrimalDual(gap_tol=1e-4))
                model.fit(data.X, data.y)
                cost = expected_cost(data, model.predict(data.X_test))
                excess.append(cost / data.oracle_cost(BACKORDER, HOLDING) - 1.0)
            error = np.std(excess, ddof=1) / np.sqrt(REPETITIONS)
            rows.append(
                {
                    "n": n, "s": COLUMNS, "rule": name, "mean_gap": f"{np.mean(excess):.5g}",
                    "standard_error": f"{error:.2g}", "repetitions": REPETITIONS,
                }
            )  # fmt: skip
        print(f"n = {n}: {time.perf_counter() - began:.0f} s", flush=True)
    write_csv("convergence_rows", rows)


def step_curves(columns):
    """{algorithm: (steps, median gap, low, high)} of one problem, from the committed results."""
    curves = {}
    for row in read_csv("convergence_steps"):
        if int(row["s"]) == columns:
            point = [float(row[key]) for key in ("steps", "median_gap", "low", "high")]
            curves.setdefault(row["algorithm"], []).append(point)
    return {name: np.array(points).T for name, points in curves.items()}


def row_curves():
    curves = {}
    for row in read_csv("convergence_rows"):
        gap, error = float(row["mean_gap"]), 2.0 * float(row["standard_error"])
        curves.setdefault(row["rule"], []).append([float(row["n"]), gap, gap - error, gap + error])
    return {name: np.array(points).T for name, points in curves.items()}


def draw():
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, len(CELLS), figsize=(11, 4.2), layout="constrained")
    for one, columns in zip(axes, CELLS, strict=True):
        plot_rates(step_curves(columns), one, theory=-0.5, smallest=SMALLEST)
        one.set(xlabel="steps T", ylabel="gap to the optimum")
        one.set_title(f"n = {STEP_ROWS}, s = {columns}", loc="left", fontsize=9.5)
    axes[1].get_legend().remove()
    figure.savefig(IMAGES / "rate-steps.png", dpi=130)
    plt.close(figure)
    axes = plot_rates(row_curves(), theory=-0.5)
    axes.set(xlabel="rows N", ylabel="cost of new rows above the oracle's")
    axes.figure.savefig(IMAGES / "rate-rows.png", dpi=130)
    plt.close(axes.figure)


def slope(sizes, gaps):
    kept = gaps > SMALLEST
    if kept.sum() < 3:
        return "-"
    rate = empirical_rate(sizes[kept], gaps[kept])
    return f"{rate.slope:.2f} ± {rate.error:.2f}"


def convex_bound(columns):
    """R G / sqrt(T) at the last T, relative to the optimum: the bound for averages of convex problems.

    R is the distance from the start to the best parameters, G^2 the mean square of the gradients
    there, both in the scaled and centred columns in which the algorithm steps.
    """
    problem = problem_of(columns)
    form, best = affine_forms(problem)[0].in_plain_units(), Exact().solve(problem)
    found = best.parameters
    theta, intercept = form.from_user_units(found.theta[:, 0], float(found.intercept[0]))
    middle = form.weights @ form.contexts
    moved = intercept + middle @ theta - form.constant_order()[0]
    slopes = np.where(form.residuals(theta, intercept) >= 0.0, HOLDING, BACKORDER)
    sizes = ((form.contexts - middle) ** 2).sum(axis=1) + 1.0
    product = (theta @ theta + moved**2) * (form.weights @ (slopes**2 * sizes))
    return np.sqrt(product / STEPS[-1]) / best.certificate.lower


def steps_to(sizes, gaps, level):
    reached = np.flatnonzero(gaps <= level)
    return f"{int(sizes[reached[0]]):,}" if len(reached) else "not reached"


def section():
    lines = [
        "| algorithm | s | slope | slope, last 6 doublings | gap at T = 4,194,304 | steps to 1 % |"
    ]
    lines.append("|---|---|---|---|---|---|")
    for columns in CELLS:
        for name, (sizes, gaps, _, _) in step_curves(columns).items():
            tail = slope(sizes[-TAIL - 1 :], gaps[-TAIL - 1 :])
            last = f"{gaps[-1]:.2g}" if gaps[-1] > SMALLEST else f"below {SMALLEST:g}"
            whole = slope(sizes, gaps)
            if name == "primal-dual":
                whole, tail = f"{whole} (geometric)", "-"
            reached = steps_to(sizes, gaps, 0.01)
            lines.append(f"| {name} | {columns} | {whole} | {tail} | {last} | {reached} |")
    bounds = " and ".join(f"{convex_bound(s):.2g} (s = {s})" for s in CELLS)
    lines += ["", f"The bound of convex theory for averages, R G / sqrt(T), is {bounds} at the last T."]
    lines += ["", "![Gap against steps](images/robustness/rate-steps.png)", ""]
    lines += ["| radius | slope in N | gap at N = 30 | gap at N = 10,000 |", "|---|---|---|---|"]
    for name, (sizes, gaps, _, _) in row_curves().items():
        rate = empirical_rate(sizes, gaps)
        lines.append(
            f"| {name} | {rate.slope:.2f} ± {rate.error:.2f} | {100 * gaps[0]:.1f} % | {100 * gaps[-1]:.2f} % |"
        )
    stamp = read_csv("convergence_rows")[0]
    lines += ["", "![Gap against rows](images/robustness/rate-rows.png)", ""]
    lines.append(
        f"Measured on {stamp['date']}: {stamp['machine']}. `python -m benchmarks.convergence`."
    )
    return "\n".join(lines)


def main(arguments=()):
    if "--page" not in arguments:
        measure_rows()
        measure_steps()
    draw()
    put_section(DOCS / "robustness.md", "convergence", section())


if __name__ == "__main__":
    main(sys.argv[1:])
