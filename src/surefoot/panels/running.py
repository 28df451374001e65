"""Run tasks on joblib's backend of the moment, and survive workers that die."""

import importlib
import numbers
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from joblib import Parallel, delayed, parallel
from joblib.externals.loky.process_executor import TerminatedWorkerError

from surefoot.exceptions import InvalidInputError, InvalidTypeError

# A worker that was killed takes its task with it; the others' tasks are done again at most so often.
ATTEMPTS = 3
# Signs of a line of progress, so that a shorter one covers a longer one on a common terminal.
LINE = 79


@dataclass(frozen=True)
class PanelProgress:
    """Where a panel stands: tasks done and in all, series done, how many failed, and the time.

    Attributes
    ----------
    tasks_done, tasks
        Tasks that are finished, and in all.
    series, failed
        Series that are finished, and how many of them have no policy.
    seconds, seconds_left
        Time since the start, and what is left if the other tasks take as long as those done.
    """

    tasks_done: int
    tasks: int
    series: int
    failed: int
    seconds: float

    @property
    def seconds_left(self) -> float:
        """Time that is left, at the pace so far."""
        return self.seconds * (self.tasks - self.tasks_done) / max(self.tasks_done, 1)

    def __str__(self) -> str:
        """Return one line: how far and how long, or what was done at the end."""
        series = f"{self.series:,} series" + (f" ({self.failed:,} failed)" if self.failed else "")
        if self.tasks_done == self.tasks:
            return f"{series} in {duration(self.seconds)}"
        return (
            f"{series}, {100 * self.tasks_done / self.tasks:.0f} %, "
            f"{duration(self.seconds)} so far, about {duration(self.seconds_left)} left"
        )


def duration(seconds: float) -> str:
    """Return a time in words of a clock.

    >>> duration(4.2), duration(75), duration(7260)
    ('4.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def shown(progress: Any) -> Callable[[PanelProgress], None] | None:
    """Return what to call with the progress: the user's own function, a line on stderr, or nothing."""
    if callable(progress):
        called: Callable[[PanelProgress], None] = progress
        return called
    if not isinstance(progress, bool):
        raise InvalidTypeError(f"progress must be True, False or a function, got {progress!r}.")
    return _to_stderr if progress else None


def _to_stderr(progress: PanelProgress) -> None:
    """Write one line over the last one; where nobody watches, in a file or pipe, the end alone."""
    ended = progress.tasks_done == progress.tasks
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{progress!s:<{LINE}}" + ("\n" if ended else ""))
    elif ended:
        sys.stderr.write(f"{progress}\n")
    sys.stderr.flush()


def check_workers(n_jobs: Any, name: str = "n_jobs") -> int | None:
    """Return a number of workers as joblib counts them, or refuse it.

    >>> check_workers(-1)
    -1
    """
    if n_jobs is None:
        return None
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if not whole or n_jobs == 0:
        raise InvalidInputError(
            f"{name} must be a number of workers (1, 2, ...) or -1 for all cores, got {n_jobs!r}."
        )
    return int(n_jobs)


def run_tasks(
    work: Callable[..., list[Any]], tasks: Sequence[Any], n_jobs: int | None, *arguments: Any
) -> Iterator[list[Any]]:
    """Yield what each task gives, in no particular order, on the joblib backend of the moment.

    If a worker dies, the tasks that were not finished are tried again.
    """
    backend, workers = parallel.get_active_backend()
    if type(backend).__name__ == "RayBackend":
        yield from _run_on_ray(work, tasks, workers if n_jobs is None else n_jobs, arguments)
        return
    left = dict(enumerate(tasks))
    for attempt in range(ATTEMPTS):
        runner = Parallel(n_jobs=n_jobs, return_as=_how())
        try:
            for number, answer in runner(
                delayed(_numbered)(work, number, task, *arguments)
                for number, task in list(left.items())
            ):
                left.pop(number)
                yield answer
        except TerminatedWorkerError:
            if attempt == ATTEMPTS - 1:
                raise
        if not left:
            return


def _run_on_ray(
    work: Callable[..., list[Any]], tasks: Sequence[Any], workers: int | None, arguments: Sequence[Any]
) -> Iterator[list[Any]]:
    """Yield what tasks give as Ray finishes them; Ray itself does the task of a dead worker again.

    Joblib's own way onto Ray gives nothing back before the last task is done, waits for a dead worker
    for ever, and without a number of workers runs in this process.
    """
    ray = importlib.import_module("ray")
    if not ray.is_initialized():
        ray.init()  # the cluster of RAY_ADDRESS, else this machine
    if workers is None or workers < 1:
        workers = max(int(ray.cluster_resources()["CPU"]), 1)
    remote, shared = ray.remote(max_retries=ATTEMPTS)(_numbered), [ray.put(one) for one in arguments]
    left = enumerate(tasks)
    waiting = [remote.remote(work, *one, *shared) for one in islice(left, workers)]
    while waiting:
        finished, waiting = ray.wait(waiting)
        waiting += [remote.remote(work, *one, *shared) for one in islice(left, len(finished))]
        yield from (answer for _, answer in ray.get(finished))


def _how() -> str:
    """Return how results come back: as they are finished, where the backend can."""
    backend = parallel.get_active_backend()[0]
    return "generator_unordered" if backend.supports_return_generator else "list"


def _numbered(work: Callable[..., Any], number: int, task: Any, *arguments: Any) -> tuple[int, Any]:
    return number, work(task, *arguments)


class Watch:
    """Counts what is done and tells whoever wants to know."""

    def __init__(self, tasks: int, progress: Any) -> None:
        self.tasks, self.tell, self.began = tasks, shown(progress), time.perf_counter()
        self.done = self.series = self.failed = 0

    def add(self, series: int, failed: int) -> None:
        """Count a finished task."""
        self.done, self.series, self.failed = self.done + 1, self.series + series, self.failed + failed
        if self.tell is not None:
            seconds = time.perf_counter() - self.began
            self.tell(PanelProgress(self.done, self.tasks, self.series, self.failed, seconds))
