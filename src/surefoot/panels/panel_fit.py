"""One policy for each series of a panel."""

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from surefoot.costs import Cost
from surefoot.estimators import RobustEstimator, RobustPolicy
from surefoot.exceptions import DataWarning, InvalidInputError, ModelFileError, warn_user
from surefoot.panels.fitting import FitSettings, fit_series, series_digest
from surefoot.panels.policy_table import PolicyTable
from surefoot.panels.pooling import check_scales, learn_together
from surefoot.panels.records import BORROWED, FAILED, SeriesRecord, read_part, write_part
from surefoot.panels.running import PanelProgress, Watch, check_workers, run_tasks
from surefoot.panels.sources import Task, make_of, named_columns, source_of
from surefoot.validation import check_flag, check_instance, check_integer, check_path

# Series of a task: few enough to spread evenly and to lose little, many enough to cost nothing.
TASK_SERIES = 100


def fit_many(
    data: Any,
    by: Sequence[str] | str,
    outcome: str,
    *,
    cost: Cost | None = None,
    model: RobustEstimator | None = None,
    time: str | None = None,
    contexts: Sequence[str] | None = None,
    borrow: bool = False,
    folder: str | Path | None = None,
    n_jobs: int | None = None,
    task_size: int = TASK_SERIES,
    random_state: int = 0,
    progress: bool | Callable[[PanelProgress], None] = False,
) -> PolicyTable:
    """Fit one policy for each series of a panel, such as each product in each shop.

    A series that cannot be fitted (a single row, an outcome with gaps) is a row of the summary with
    its reason, never an exception. A policy depends on its own rows, its key and ``random_state``
    alone: not on other series, their order, the number of workers or the backend.

    Parameters
    ----------
    data
        A pandas or polars frame, or a folder of Parquet files partitioned by key columns
        (``shop=1/product=7/...``), which workers read themselves.
    by
        The columns that name a series.
    outcome
        The column of outcomes.
    cost
        What a decision costs, for example ``Newsvendor(backorder=1.0, holding=0.2)``; everything else
        is automatic.
    model
        An unfitted policy in the place of ``cost``, such as ``RobustNewsvendor(1.0, 0.2, radius=0.1)``.
    time
        The column that orders the rows of a series: bounds then come from rolling origins, and
        decisions follow a level that drifts. Dates also count as a context, by weekday and month (to
        the default once every month was seen).
    contexts
        The columns that are known beforehand; None is all others. Numbers, categories, dates and gaps
        are prepared series by series, as ``PreparedPolicy`` does.
    borrow
        Whether short series borrow strength: decisions are a mixture of the series' own policy and of
        one learned over all series, the more of it the fewer rows a series has; how much is chosen by
        the cost on the newest rows. Series that cannot be fitted alone decide by the latter. Needs a
        cost of two lines, and about twice the time.
    folder
        Where finished tasks are kept. A call with the same folder after an interruption fits only what
        is missing: a finished series with the same rows and settings is never fitted again. Models
        then stay in the folder and are read when they are needed.
    n_jobs
        Workers, as joblib counts them: -1 is all cores; None is what ``joblib.parallel_config`` says,
        else one.
    task_size
        Series that a worker fits at a time.
    random_state
        A whole number, from which with its key each series has its seed.
    progress
        True writes a line with the time left to stderr; a function is called with a ``PanelProgress``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from surefoot import RobustNewsvendor, fit_many
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"shop": np.repeat(["north", "south"], 40), "warm": rng.random(80)})
    >>> frame["sales"] = 5.0 + 3.0 * frame["warm"] + rng.random(80)
    >>> table = fit_many(frame, "shop", "sales", model=RobustNewsvendor(1.0, 0.2, radius=0.1))
    >>> table
    PolicyTable(2 series by shop: 2 fitted; median certified gap 0.1 %)
    >>> table.decide(frame[:2]).shape
    (2,)
    """
    settings, source = _settings(data, by, outcome, cost, model, time, contexts, random_state)
    n_jobs = check_workers(n_jobs)
    if check_flag("borrow", borrow):
        check_scales(settings)
    tasks = source.tasks(settings.columns, check_integer("task_size", task_size, at_least=1))
    place = None if folder is None else _made(check_path("folder", folder))
    finished = {} if place is None else _finished(place)
    watch, began = Watch(len(tasks), progress), clock.perf_counter()
    records: list[SeriesRecord] = []
    done = frozenset(finished)
    for of_task in run_tasks(fit_task, tasks, n_jobs, settings, place, done):
        whole = [finished[one] if isinstance(one, str) else one for one in of_task]
        records += whole
        watch.add(len(whole), sum(record.status == FAILED for record in whole))
    pooled = None
    if borrow:
        pooled, units = learn_together(tasks, settings, n_jobs)
        records = [_with_units(record, units.get(record.key)) for record in records]
    seconds = clock.perf_counter() - began
    return PolicyTable(
        settings.columns, records, random_state=settings.seed, pooled=pooled, folder=place,
        frames=make_of(data), seconds=seconds,
    )  # fmt: skip


def _with_units(record: SeriesRecord, units: tuple[float, float] | None) -> SeriesRecord:
    """Return a record of a series that may borrow, and so has a policy in any case."""
    if units is None:
        return record
    status = BORROWED if record.status == FAILED else record.status
    return replace(record, mean=units[0], size=units[1], status=status)


def _settings(
    data: Any, by: Any, outcome: str, cost: Any, model: Any, time: Any, contexts: Any, seed: int
) -> tuple[FitSettings, Any]:
    """Check what was asked for, before any work."""
    if (cost is None) == (model is None):
        raise InvalidInputError("Either cost or model must be given, got both or none.")
    if model is None:
        check_instance("cost", cost, Cost, "a cost such as Newsvendor(1.0, 0.2)")
        model = RobustPolicy(cost, nominal="auto")
    check_instance("model", model, RobustEstimator, "a policy such as RobustNewsvendor(1.0, 0.2)")
    seed = check_integer("random_state", seed, at_least=0)
    source = source_of(data)
    return FitSettings(named_columns(source, by, outcome, time, contexts), model, seed), source


def fit_task(
    task: Task, settings: FitSettings, folder: Path | None, done: frozenset[str]
) -> list[SeriesRecord | str]:
    """Fit the series of a task; those done already are named by their digest.

    What was fitted is written before it is returned, so that it outlives the driver.
    """
    fingerprint = settings.fingerprint()
    records: list[SeriesRecord | str] = []
    for series in task():
        digest = series_digest(series, fingerprint)
        records.append(digest if digest in done else fit_series(series, settings, digest))
    fresh = [one for one in records if isinstance(one, SeriesRecord)]
    if folder is None or not fresh:
        return records
    written = iter(write_part(folder, fresh))
    return [next(written) if isinstance(one, SeriesRecord) else one for one in records]


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"folder must be one that can be written to, got {folder}: {error}."
        ) from error
    return folder.resolve()


def _finished(folder: Path) -> dict[str, SeriesRecord]:
    """Return the series that earlier calls finished; a damaged part is left out, and fitted again."""
    finished: dict[str, SeriesRecord] = {}
    for path in sorted(folder.glob("part-*.surefoot")):
        try:
            finished |= {record.digest: record for record in read_part(path)[0]}
        except ModelFileError as error:
            warn_user(f"A finished task cannot be read and is done again: {error}", DataWarning)
    return finished
