"""Run cells on cores or on a cluster, and store each result the moment it arrives."""

import importlib
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import joblib

from reproduction.cell_run import quiet, run_cell, run_isolated
from reproduction.result import FAILED, REFUSED, Result
from reproduction.store import ResultStore
from reproduction.suite import Cell, Suite
from surefoot.exceptions import MissingExtraError
from surefoot.validation import check_choice, check_integer

BACKENDS = ("loky", "threading", "ray", "dask")


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total
        Cells finished, those of earlier runs included, and cells in all.
    failed
        Cells that failed in this run.
    seconds_left
        An estimate; None before the first cell.
    latest
        The result that has just been stored.
    """

    done: int
    total: int
    failed: int
    seconds_left: float | None
    latest: Result


@dataclass(frozen=True)
class Outcome:
    """What a run did: cells run now, and of those refused and failed."""

    ran: int
    refused: int
    failed: int


@dataclass
class _Estimate:
    """Time left, from what like cells took: same method and size, or same method, or any."""

    waiting: dict[tuple[str, int, int], int]
    jobs: int
    times: dict[object, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))

    def learn(self, result: Result, size: tuple[str, int, int]) -> None:
        self.waiting[size] -= 1
        seconds = (result.fit_seconds or 0.0) + (result.predict_seconds or 0.0)
        for known in (size, size[0], None):
            entry = self.times[known]
            entry[0] += seconds
            entry[1] += 1

    def seconds_left(self) -> float:
        total = 0.0
        for size, count in self.waiting.items():
            for known in (size, size[0], None):
                spent, seen = self.times[known]
                if seen:
                    total += count * spent / seen
                    break
        return total / self.jobs


def _size(cell: Cell) -> tuple[str, int, int]:
    parts = cell.data.parts
    return cell.method.name, parts.n, parts.s or 0


def run_suite(
    suite: Suite,
    store: ResultStore,
    *,
    jobs: int = 1,
    backend: str = "loky",
    retry_failed: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Run every cell of the suite that the store does not have yet.

    Parameters
    ----------
    suite, store
        What to run, and where results go. Only this process writes to the store.
    jobs
        How many cells at a time.
    backend
        "loky" (processes), "threading", "ray" or "dask" (a cluster, or processes of this machine).
    retry_failed
        Run cells that failed once more.
    on_progress
        Called after each result has been stored.
    """
    check_integer("jobs", jobs, at_least=1)
    check_choice("backend", backend, BACKENDS)
    cells = list(suite.cells())
    store.claim(cells)
    pending = store.pending(cells, retry_failed=retry_failed)
    waiting: dict[tuple[str, int, int], int] = defaultdict(int)
    by_key = {cell.key: _size(cell) for cell in pending}
    for size in by_key.values():
        waiting[size] += 1
    estimate = _Estimate(waiting, jobs)
    done, refused, failed = len(cells) - len(pending), 0, 0
    with closing(_results(pending, jobs, backend)) as results:
        for result in results:
            store.append(result)
            estimate.learn(result, by_key[result.key])
            done += 1
            refused += result.status == REFUSED
            failed += result.status == FAILED
            if on_progress is not None:
                on_progress(Progress(done, len(cells), failed, estimate.seconds_left(), result))
    return Outcome(len(pending), refused, failed)


def _results(cells: list[Cell], jobs: int, backend: str) -> Generator[Result, None, None]:
    """Yield results as they come, in any order."""
    if not cells:
        return
    with ExitStack() as stack:
        if jobs == 1 and backend in ("loky", "threading"):
            stack.enter_context(quiet())
            yield from map(run_cell, cells)
            return
        stack.enter_context(warnings.catch_warnings())
        # An interrupted run leaves tasks behind: that is what the user asked for.
        warnings.filterwarnings("ignore", message=r"\d+ tasks ", category=UserWarning)
        work = _worker(backend, jobs, stack)
        # One cell a batch: a batch would reach the store only when its last cell is done.
        parallel = joblib.Parallel(
            n_jobs=jobs, batch_size=1, pre_dispatch="2*n_jobs", return_as="generator_unordered"
        )
        yield from parallel(joblib.delayed(work)(cell) for cell in cells)


def _worker(backend: str, jobs: int, stack: ExitStack) -> Callable[[Cell], Result]:
    """Enter joblib's backend and return what it is to call; clusters are those they are pointed to."""
    work: Callable[[Cell], Result] = run_isolated
    if backend == "threading":
        # Threads share the filters of warnings and the pools of threads: set them once, here.
        stack.enter_context(quiet())
        work = run_cell
    elif backend == "ray":
        # Joblib's own Ray backend hands results over when the last one is there. So threads of this
        # process wait for Ray's tasks, one each, and every result reaches the store at once.
        work, backend = _on_ray(jobs, stack), "threading"
    elif backend == "dask":
        distributed = _package("distributed", 'pip install "dask[distributed]"')
        # Client() follows DASK_SCHEDULER_ADDRESS; without it the workers are this machine's.
        local = {} if os.environ.get("DASK_SCHEDULER_ADDRESS") else {"n_workers": jobs}
        stack.enter_context(distributed.Client(**local, set_as_default=True))
    stack.enter_context(joblib.parallel_config(backend=backend, n_jobs=jobs))
    return work


def _on_ray(jobs: int, stack: ExitStack) -> Callable[[Cell], Result]:
    """Return a function that runs a cell on the cluster of RAY_ADDRESS, or on this machine."""
    ray = _package("ray", "pip install ray")
    if not ray.is_initialized():
        local: dict[str, Any] = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": jobs}
        ray.init(log_to_driver=False, include_dashboard=False, **local)
        stack.callback(ray.shutdown)
    remote = ray.remote(run_isolated)

    def work(cell: Cell) -> Result:
        result: Result = ray.get(remote.remote(cell))
        return result

    return work


def _package(name: str, command: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(f"The backend needs {name}: run {command}.") from error


def run_one_line(progress: Progress, began: float) -> str:
    """Return the progress as a line of text.

    ``began`` is what ``time.monotonic()`` said at the start.
    """
    left = progress.seconds_left
    spent = time.monotonic() - began
    failures = f", {progress.failed} failed" if progress.failed else ""
    return f"{progress.done:,} of {progress.total:,} cells{failures}, {clock(spent)} gone" + (
        "" if left is None else f", about {clock(left)} left"
    )


def clock(seconds: float) -> str:
    """Return a time a person can read.

    >>> clock(7), clock(95), clock(3700)
    ('7 s', '1 min 35 s', '1 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
