"""Hostile problems against programs written apart from the library: does anything it says not hold?

Every problem is drawn from its number, solved by one of the solvers, and judged by the adversary's own
program in CVXPY (``tests/oracles/plan.py``): the true worst case of the policy that came back, and the
true optimum. A violation is a certified upper bound below the true worst case, a lower bound above the
true optimum, a certified gap below the true one, "converged" beside a true gap beyond the tolerance, or
non-convergence without a warning. Rounding of the programs is allowed for, nothing else.

    python -m benchmarks.attack              # the whole sweep, as in make attack
    python -m benchmarks.attack --resume     # go on with a sweep that was interrupted
    python -m benchmarks.attack 200          # so many problems only; nothing is written
    python -m benchmarks.attack --only 17    # one problem, by its number, told at length
"""

import argparse
import csv
import math
import multiprocessing
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.machine import write_csv
from surefoot import DASGD, Box, Exact, PrimalDual, Problem, WassersteinBall
from surefoot.costs import ConvexPiecewiseCost, Newsvendor, Pieces, TieredNewsvendor
from surefoot.engines.optimizers import Adam
from surefoot.exceptions import ConvergenceWarning
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.solvers import default_solver
from tests.oracles.plan import NoAnswerError, Question, optimum, worst_case

CASES = 2_000
# What the programs' own rounding may explain, as a share of the value.
ROUNDING = 2e-6
GROUPS = (
    "scaled, order 1", "scaled, order 1, kappa", "scaled, order 2", "scaled, order 2, kappa",
    "box, order 1", "box, order 1, kappa", "box, order 2", "box, order 2, kappa",
    "own units, order 1", "own units, order 2",
)  # fmt: skip
GENERAL = "general engine"
# One problem in so many goes to the general engine: a number that has no part in common with that of
# groups and solvers, so that it meets all of them.
GENERAL_SHARE, GENERAL_TURN = 9, 7
SOLVERS = (None, DASGD(), PrimalDual(), Exact())
# One line for each problem of a sweep, so that an interrupted one can go on.
CASES_FILE = Path(".bench") / "attack.csv"


@dataclass(frozen=True)
class Profit(ConvexPiecewiseCost):
    """A cost whose least value is far below zero: a profit in which the risk is a small part."""

    def pieces(self, n_products):
        return (Pieces((-1.0, -0.2, 0.5), (-10.4, -10.0, -10.0)),) * n_products


@dataclass(frozen=True)
class Verdict:
    """What came of one problem."""

    number: int
    group: str
    solver: str
    traits: str
    seconds: float
    steps: int
    converged: bool | None
    true_gap: float
    certified_gap: float
    violations: tuple[str, ...]


def group_of(number):
    """Return the group of a number."""
    return GENERAL if number % GENERAL_SHARE == GENERAL_TURN else GROUPS[number % len(GROUPS)]


def draw_problem(number):
    """Return the group, traits, problem and question of a number."""
    rng = np.random.default_rng([16, number])
    general, group = group_of(number) == GENERAL, GROUPS[number % len(GROUPS)]
    order = 1 if "order 1" in group else 2
    traits = []

    def trait(name, probability):
        happened = bool(rng.random() < probability)
        traits.extend([name] if happened else [])
        return happened

    n, s = int(rng.integers(4, 25)), int(rng.integers(1, 5))
    if trait("n<=s", 0.15) and not general:
        s = n + int(rng.integers(0, 4))
        n, s = min(n, 10), min(s, 13)
    if general:
        n, s = 16, 2
    X = rng.normal(size=(n, s)) + 3.0 * rng.normal(size=s) * trait("far from zero", 0.3)
    noise = rng.standard_t(1.2, size=n) if trait("heavy tails", 0.25) else rng.normal(size=n)
    y = X @ rng.normal(size=s) + 10.0 ** rng.uniform(-2, 1) * noise + rng.normal() * 3.0
    if trait("ties", 0.25):
        X, y = np.round(X), np.round(y)
    if trait("correlated", 0.15) and s > 1:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-4, -1) * rng.normal(size=n)
    if trait("category", 0.15):
        X[:, 0] = rng.integers(0, 2, size=n)
    scale = not group.startswith("own")
    sizes = 10.0 ** rng.uniform(-6, 6, size=s) if not scale else np.ones(s)
    X = X * sizes
    unit = 10.0 ** rng.uniform(-5, 5) if trait("outcome units", 0.5) else 1.0
    y = y * unit
    weights = rng.uniform(0.05, 1.0, size=n) ** 2 if trait("weights", 0.4) else None
    intercept = not trait("no intercept", 0.3)
    # Distances of the ball, in which radius and outcome cost are drawn.
    w = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    spread = np.sqrt(w @ (X - w @ X) ** 2)
    lengths = np.where(spread > 1e-12 * np.abs(X).max(axis=0), spread, 1.0) if scale else np.ones(s)
    typical = math.sqrt(float(np.mean((spread / lengths) ** 2))) or 1.0
    radius = typical * 10.0 ** rng.uniform(-3, 0.5)
    if trait("radius 0", 0.06):
        radius = 0.0
    kappa = math.inf
    if "kappa" in group or (not scale and rng.random() < 0.3):
        y_spread = float(np.sqrt(w @ (y - w @ y) ** 2)) or 1.0
        kappa = (typical / y_spread) ** order * 10.0 ** rng.uniform(-2, 2)
    box = None
    if group.startswith("box"):
        reach = 10.0 ** rng.uniform(-2, 1) * np.ptp(X, axis=0).max()
        lower = X.min(axis=0) - reach * rng.integers(0, 2, size=s)
        upper = X.max(axis=0) + reach * rng.integers(0, 2, size=s)
        if trait("open above", 0.25):
            upper[rng.random(s) < 0.7] = np.inf
        if trait("far box", 0.15):
            upper = X.max(axis=0) + 1e6
        if trait("open below", 0.15):
            lower[rng.random(s) < 0.5] = -np.inf
        room = unit * 10.0 ** rng.uniform(-1, 2)
        low = -math.inf if trait("open outcomes", 0.3) else y.min() - room * rng.integers(0, 2)
        high = math.inf if trait("outcomes open above", 0.3) else y.max() + room * rng.integers(0, 2)
        box = Box(lower, upper, outcome=(float(low), float(high)))
    cost = draw_cost(rng, trait, unit)
    ball = WassersteinBall(radius, order=order, outcome_cost=kappa, support=box, scale=scale)
    problem = Problem(cost, Linear(intercept=intercept), Empirical(X, y, weights), ball)
    (pieces,) = cost.pieces(1)
    lower, upper = (np.full(s, -np.inf), np.full(s, np.inf)) if box is None else box.arrays(s)
    still = scale & (spread <= 1e-12 * np.abs(X).max(axis=0))
    lower, upper = np.where(still, X[0], lower) / lengths, np.where(still, X[0], upper) / lengths
    low, high = (-math.inf, math.inf) if box is None else box.outcome
    question = Question(
        X / lengths, y, w, np.array(pieces.slopes), np.array(pieces.intercepts), radius, order, kappa,
        intercept, lower, upper, low, high,
    )  # fmt: skip
    return (GENERAL if general else group), traits, problem, question, lengths


def draw_cost(rng, trait, unit):
    if trait("tiers", 0.2):
        first, second = sorted(rng.uniform(0.1, 3.0, size=2))
        return TieredNewsvendor(((0, first), (unit * rng.uniform(0.1, 2), second)), rng.uniform(0.1, 2))
    if trait("profit", 0.03):
        return Profit()
    if trait("100:1", 0.2):
        return Newsvendor(1.0, 0.01) if rng.random() < 0.5 else Newsvendor(0.01, 1.0)
    return Newsvendor(rng.uniform(0.1, 3.0), rng.uniform(0.1, 3.0))


def solver_for(number, group, problem):
    """Return the solver whose turn it is, among those that take the problem."""
    if group == GENERAL:
        return DASGD(optimizer=Adam(), max_steps=3_000)
    turn = SOLVERS[(number // len(GROUPS)) % len(SOLVERS)]
    if turn is None or turn.why_not(problem) is not None:
        return default_solver(problem)
    return turn


def judge(number):
    """Solve a problem and compare what is said of the answer with what is true of it."""
    group, traits, problem, question, lengths = draw_problem(number)
    solver = solver_for(number, group, problem)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        solution = solver.solve(problem, seed=number)
    seconds = time.perf_counter() - began
    warned = any(issubclass(one.category, ConvergenceWarning) for one in told)
    certificate = solution.certificate
    theta = solution.parameters.theta[:, 0] * lengths
    policy = theta, float(solution.parameters.intercept[0])
    name = type(solver).__name__
    end = (seconds, solution.n_steps, solution.converged)
    if not (np.isfinite(theta).all() and np.isfinite(certificate.upper)):
        bad = ["not finite"] if solution.converged or not warned else []
        return Verdict(number, group, name, ", ".join(traits), *end, math.inf, math.inf, tuple(bad))
    try:
        truth = optimum(question), worst_case(question, *policy)
        true_gap, bad = compared(solution, solver, question, truth)
        if bad:
            # Programs lose digits where large terms cancel: they are asked again in units of the answer.
            truth = finer_truth(question, policy, abs(truth[1]) or 1.0)
            true_gap, bad = compared(solution, solver, question, truth)
    except NoAnswerError as error:
        missing = (f"no oracle: {error}",)
        return Verdict(number, group, name, ", ".join(traits), *end, math.nan, certificate.gap, missing)
    if solution.converged is False and not warned:
        bad.append("not converged and not a word")
    return Verdict(number, group, name, ", ".join(traits), *end, true_gap, certificate.gap, tuple(bad))


def finer_truth(question, policy, size):
    """Return optimum and worst case, found with all numbers in units of the answer's size.

    With an intercept outcomes may also be counted from any level.
    """
    theta, intercept = policy
    level = float(np.median(question.outcomes)) if question.intercept else 0.0
    own = replace(
        question,
        contexts=question.contexts / size, outcomes=(question.outcomes - level) / size,
        levels=question.levels / size, radius=question.radius / size,
        lower=question.lower / size, upper=question.upper / size,
        outcome_lower=(question.outcome_lower - level) / size,
        outcome_upper=(question.outcome_upper - level) / size,
    )  # fmt: skip
    return optimum(own) * size, worst_case(own, theta, (intercept - level) / size) * size


def compared(solution, solver, question, truth):
    """Return the true gap, and what is said of an answer that is not so."""
    certificate, (best, worst), bad = solution.certificate, truth, []
    # Terms that cancel leave rounding of their own size, not of the sum's.
    size = max(abs(worst), abs(best), abs(question.constant_cost()))
    slack = ROUNDING * size
    base = max(best, question.scale(), slack)
    true_gap = max(worst - best, 0.0) / base
    proved = certificate.kind != "estimate"
    if proved and certificate.upper < worst - slack:
        bad.append(f"upper {certificate.upper:.9g} < true {worst:.9g}")
    if proved and certificate.lower > best + slack:
        bad.append(f"lower {certificate.lower:.9g} > true {best:.9g}")
    if proved and certificate.gap < true_gap - 2 * slack / base:
        bad.append(f"certified gap {certificate.gap:.3g} < true {true_gap:.3g}")
    if solution.converged and true_gap > solver.gap_tol + 2 * slack / base:
        bad.append(f"converged at a true gap of {true_gap:.3g}")
    return true_gap, bad


def table(verdicts):
    """Return a line for each group and solver, and one for all."""
    header = (
        "group", "solver", "cases", "not_converged", "true_gap_p95", "certified_gap_p95",
        "seconds_p95", "without_oracle", "violations",
    )  # fmt: skip
    keys = sorted({(v.group, v.solver) for v in verdicts})
    keys += [(group, "all") for group in sorted({v.group for v in verdicts})] + [("all", "all")]
    lines = []
    for group, solver in keys:
        own = [v for v in verdicts if group in (v.group, "all") and solver in (v.solver, "all")]
        judged = [v for v in own if not math.isnan(v.true_gap)]
        true, certified, seconds = (
            np.quantile([getattr(v, name) for v in part] or [math.nan], 0.95, method="higher")
            for name, part in (("true_gap", judged), ("certified_gap", own), ("seconds", own))
        )
        lines.append(
            (
                group, solver, len(own), sum(v.converged is False for v in own), f"{true:.2e}",
                f"{certified:.2e}", f"{seconds:.3f}", len(own) - len(judged),
                sum(bool(v.violations) for v in judged),
            )
        )  # fmt: skip
    return header, lines


def remember(verdict):
    """Append a verdict to the file of cases."""
    CASES_FILE.parent.mkdir(exist_ok=True)
    line = [";".join(part) if isinstance(part, tuple) else part for part in astuple(verdict)]
    with CASES_FILE.open("a", newline="") as file:
        csv.writer(file).writerow(line)


def remembered():
    """Return the verdicts of the file of cases."""
    if not CASES_FILE.exists():
        return []
    with CASES_FILE.open(newline="") as file:
        return [
            Verdict(
                int(number), group, solver, traits, float(seconds), int(steps),
                {"True": True, "False": False}.get(converged), float(true), float(certified),
                tuple(violations.split(";")) if violations else (),
            )
            for number, group, solver, traits, seconds, steps, converged, true, certified, violations
            in csv.reader(file)
        ]  # fmt: skip


def save(verdicts):
    """Write the table to results/attack.csv."""
    header, lines = table(verdicts)
    write_csv("attack", [dict(zip(header, line, strict=True)) for line in lines])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="?", type=int, default=CASES)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int)
    parser.add_argument("--resume", action="store_true", help="keep what an interrupted sweep has done")
    parser.add_argument("--group", default="", help="only groups whose name has this in it")
    options = parser.parse_args(argv)
    if options.only is not None:
        print(judge(options.only))
        return
    whole = options.cases >= CASES
    verdicts = remembered() if whole and options.resume else []
    if whole and not options.resume:
        CASES_FILE.unlink(missing_ok=True)
    known = {verdict.number for verdict in verdicts}
    numbers = [
        number
        for number in range(options.first, options.first + options.cases)
        if options.group in group_of(number) and number not in known
    ]
    # A pool that says so when a worker dies, instead of waiting for it.
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(judge, number) for number in numbers]):
            verdict = done.result()
            verdicts.append(verdict)
            if verdict.violations or verdict.converged is False:
                print(verdict, flush=True)
            if whole:
                remember(verdict)
    header, lines = table(verdicts)
    width = max(len(line[0]) for line in lines)
    for line in (header, *lines):
        print(f"{line[0]:{width}}", *(f"{part:>13}" for part in line[1:]))
    if whole:
        save(verdicts)
    broken = sum(bool(v.violations) for v in verdicts if not math.isnan(v.true_gap))
    if broken:
        raise SystemExit(f"{broken} of {len(verdicts)} problems show something that is not so.")


if __name__ == "__main__":
    main()
