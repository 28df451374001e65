"""Measure times one fit after another, as Table 1 of the paper needs them.

Cells of the suite run side by side and share the machine, so their times are not for a table. Here
nothing else of ours runs, and the quickest of a few runs counts: what the machine does beside it
can only add.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from reproduction.cell_run import quiet
from reproduction.data import PAPER_COSTS, Sample, SyntheticSet
from reproduction.methods import METHODS, Literal, Method, Robust, ShapleyPolicy
from reproduction.result import machine, versions
from reproduction.store import ResultStore
from reproduction.suite import COLUMNS, SIZES, VARIANCES
from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.engines.literal_kernel import literal_steps
from surefoot.estimators.radius_rules import transport_forms
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import Problem
from surefoot.random import rng_for
from surefoot.solvers import solve_many

# The quickest of so many runs: of what takes milliseconds, and of what takes seconds.
SHORT_RUNS, LONG_RUNS = 11, 3
# Instances that are solved in one go: enough to fill the cores, few enough to hold in memory.
_CHUNK = 56


@dataclass(frozen=True)
class RowTimes:
    """One row of Table 1: seconds, mean over the noise variances.

    Attributes
    ----------
    steps
        10,000 steps of the printed algorithm.
    decisions
        Decisions of a linear policy for 10,000 test rows.
    certified
        Our fit at a fixed radius until the gap is certified below 1 %.
    shapley, shapley_decisions
        Training at a fixed radius, and the extension to 10,000 test rows.
    """

    n: int
    s: int
    steps: float
    decisions: float
    certified: float
    shapley: float
    shapley_decisions: float


@dataclass(frozen=True)
class PassTimes:
    """Seconds for DA-SGD at a fixed radius on many instances.

    Attributes
    ----------
    instances, threads
        How many instances, on how many threads.
    certified, certified_cpu
        To a certified gap of 1 %: on the clock, and of processor time.
    largest_gap
        The largest certified gap.
    steps, steps_cpu
        10,000 steps of the printed algorithm on each, one after another.
    """

    instances: int
    threads: int
    certified: float
    certified_cpu: float
    largest_gap: float
    steps: float
    steps_cpu: float


def _named(name: str) -> Any:
    return next(method for method in METHODS if method.name == name)


def _fastest(work: Callable[[], Any], runs: int) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def printed_steps(sample: Sample, method: Literal, seed: int) -> Callable[[], None]:
    """Return work that takes the steps of Algorithm 1, and nothing else: no check, no certificate."""
    ball = WassersteinBall(method.radius, order=method.order, scale=False)
    cost = Newsvendor(sample.backorder, sample.holding, method.smoothing)
    nominal = Empirical(sample.X, sample.y)
    problem = Problem(cost, Linear(intercept=False), nominal, ball)
    form = transport_forms(problem, "timing", merge=True)[0].in_plain_units()
    rng = rng_for(seed, "timing")
    rows, pieces = np.ascontiguousarray(form.contexts), form.pieces
    draws = rng.integers(len(rows), size=method.steps)
    start = np.asarray(rng.normal(size=rows.shape[1]))

    def work() -> None:
        literal_steps(
            rows, form.outcomes, draws, pieces.up, pieces.down, pieces.smoothing,
            form.radius, form.order, method.alpha, method.beta, method.eta, method.K,
            method.epsilon, np.ones(rows.shape[1]), start.copy(), 0.5,
        )  # fmt: skip

    return work


def _fit_times(method: Method, sample: Sample, runs: int) -> tuple[float, float]:
    model = method.estimator(sample, 0)
    fit = _fastest(lambda: model.fit(sample.X, sample.y), runs)
    return fit, _fastest(lambda: model.predict(sample.X_test), runs)


def time_row(n: int, s: int, test: int = 10_000) -> RowTimes:
    """Measure one row of Table 1, at the first repetition of every noise variance."""
    ours: Robust = _named("ours-fixed-2")
    literal: Literal = _named("literal")
    shapley: ShapleyPolicy = _named("shapley-fixed")
    rows = []
    for variance in VARIANCES:
        sample = SyntheticSet(n, s, variance, test=test).load(0)
        certified, decisions = _fit_times(ours, sample, SHORT_RUNS)
        steps = _fastest(printed_steps(sample, literal, 0), SHORT_RUNS)
        rows.append((steps, decisions, certified, *_fit_times(shapley, sample, LONG_RUNS)))
    return RowTimes(n, s, *(float(value) for value in np.mean(rows, axis=0)))


def time_pass(repetitions: int, data: tuple[SyntheticSet, ...]) -> PassTimes:
    """Solve every instance of the grid at our fixed radius; drawing the data is not timed."""
    ours: Robust = _named("ours-fixed-2")
    literal: Literal = _named("literal")
    ball = WassersteinBall(ours.radius, order=ours.order)
    clock, cpu, gap = np.zeros(2), np.zeros(2), 0.0
    sets = [(replace(which, test=1), k) for k in range(repetitions) for which in data]
    for first in range(0, len(sets), _CHUNK):
        samples = [which.load(k) for which, k in sets[first : first + _CHUNK]]
        problems = [
            Problem(Newsvendor(*PAPER_COSTS), Linear(), Empirical(sample.X, sample.y), ball)
            for sample in samples
        ]
        walks = [printed_steps(sample, literal, 0) for sample in samples]
        began = time.perf_counter(), time.process_time()
        solutions = solve_many(problems, engine="threads")
        middle = time.perf_counter(), time.process_time()
        for walk in walks:
            walk()
        ended = time.perf_counter(), time.process_time()
        clock += (middle[0] - began[0], ended[0] - middle[0])
        cpu += (middle[1] - began[1], ended[1] - middle[1])
        gap = max(gap, *(solution.certificate.gap for solution in solutions))
    seconds = [float(value) for value in (*clock, *cpu)]
    return PassTimes(
        len(sets), os.cpu_count() or 1, seconds[0], seconds[2], gap, seconds[1], seconds[3]
    )


def measure(
    store: ResultStore,
    *,
    sizes: tuple[int, ...] = SIZES,
    columns: tuple[int, ...] = COLUMNS,
    repetitions: int = 20,
) -> Iterator[str]:
    """Measure what the store does not have yet; yield the name of each measurement as it is kept."""
    known = store.timings()
    stamp = {"machine": machine(), "versions": versions()}
    with quiet():
        for s in columns:
            for n in sizes:
                name = f"row/s={s}/n={n}"
                if name not in known:
                    store.keep_timing(name, {**asdict(time_row(n, s)), **stamp})
                    yield name
        grid = tuple(SyntheticSet(n, s, v) for s in columns for n in sizes for v in VARIANCES)
        name = f"pass/instances={len(grid) * repetitions}"
        if name not in known:
            store.keep_timing(name, {**asdict(time_pass(repetitions, grid)), **stamp})
            yield name


def row_times(timings: dict[str, dict[str, Any]]) -> list[RowTimes]:
    """Return the rows of Table 1 among kept measurements."""
    return [
        RowTimes(**{name: kept[name] for name in RowTimes.__dataclass_fields__})
        for key, kept in timings.items()
        if key.startswith("row/")
    ]


def pass_times(timings: dict[str, dict[str, Any]]) -> list[PassTimes]:
    """Return the passes over the grid among kept measurements."""
    return [
        PassTimes(**{name: kept[name] for name in PassTimes.__dataclass_fields__})
        for key, kept in timings.items()
        if key.startswith("pass/")
    ]
