"""The policies of a panel: decide, judge, summarise, save."""

import math
import statistics
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from surefoot.comparison.splits import RollingWindow
from surefoot.costs import Cost
from surefoot.exceptions import (
    DataWarning,
    InvalidInputError,
    ModelFileError,
    UnsupportedProblemError,
)
from surefoot.panels.fitting import FitSettings, SeriesEvaluation, evaluate_series
from surefoot.panels.picture import draw_savings
from surefoot.panels.pooling import PooledPolicy
from surefoot.panels.records import (
    BORROWED,
    FAILED,
    FITTED,
    SeriesRecord,
    in_key_order,
    median_saving,
    model_from_bytes,
    read_part,
    saving_words,
)
from surefoot.panels.running import PanelProgress, Watch, check_workers, duration, run_tasks
from surefoot.panels.series import Key, PanelColumns, Series, key_text, raw_columns, split_series
from surefoot.panels.series_warnings import in_frame, pass_on, shown, warn_of_missing
from surefoot.panels.sources import Task, make_frame, make_of, source_of
from surefoot.panels.table_file import read_table_file, write_table_file
from surefoot.typing import FloatArray
from surefoot.validation import check_instance, check_integer, check_path

# Models that stay ready after they were read; one takes some 100 kB.
READY_MODELS = 1_000


class PolicyTable:
    """One policy for each series of a panel; ``surefoot.fit_many`` makes it.

    Attributes
    ----------
    columns
        What each column is for: ``by``, ``outcome``, ``time``, ``contexts``.
    random_state
        From which, with its key, each series has its seed.
    pooled
        What all series together say, if they borrow from each other: the pooled policy's ``rows`` are
        how many rows of its own are worth as much to a series.
    records
        One ``SeriesRecord`` for each series, in the order of the keys.
    """

    def __init__(
        self,
        columns: PanelColumns,
        records: Iterable[SeriesRecord],
        random_state: int = 0,
        *,
        pooled: PooledPolicy | None = None,
        folder: Path | None = None,
        frames: str | None = None,
        seconds: float = math.nan,
    ) -> None:
        self.columns, self.random_state, self.pooled = columns, random_state, pooled
        self.records = in_key_order(records)
        self._by_key = {record.key: record for record in self.records}
        if len(self._by_key) != len(self.records):
            raise InvalidInputError(
                f"data must hold each series in one place, got one of {len(self.records)} twice."
            )
        self._folder, self._frames, self._seconds = folder, frames, seconds
        self._ready: OrderedDict[Key, Any] = OrderedDict()
        self._pooled_model = None if pooled is None else model_from_bytes(pooled.model)

    def __len__(self) -> int:
        """How many series, fitted or not."""
        return len(self.records)

    def __iter__(self) -> Iterator[Key]:
        """Give the keys of the series in order, fitted or not."""
        return iter(self._by_key)

    def __contains__(self, key: object) -> bool:
        """Whether there is such a series, fitted or not: ``("north", 7) in table``."""
        return _wanted(key) in self._by_key

    def __repr__(self) -> str:
        """Return what there is to know, in one line."""
        fitted = [record for record in self.records if record.status == FITTED]
        counts = [
            (sum(record.status == word for record in self.records), word) for word in (BORROWED, FAILED)
        ]
        parts = ", ".join(
            [f"{len(fitted):,} fitted", *(f"{count:,} {word}" for count, word in counts if count)]
        )
        if self.pooled is not None:
            parts += f"; the others are worth {self.pooled.rows:g} rows of one's own"
        gaps = [record.gap for record in fitted if math.isfinite(record.gap)]
        saving = median_saving(fitted)
        if gaps:
            parts += f"; median certified gap {100 * statistics.median(gaps):.1g} %"
        if math.isfinite(saving):
            parts += f"; {saving_words(saving)}"
        return f"PolicyTable({len(self):,} series by {', '.join(self.columns.by)}: {parts})"

    def __getitem__(self, key: Any) -> Any:
        """Return the fitted ``PreparedPolicy`` of a series: ``table["north", 7]``."""
        wanted = _wanted(key)
        reason = self.why_not(wanted)
        if reason is None and self._by_key[wanted].status == BORROWED:
            reason = f"the series has no policy of its own: {self._by_key[wanted].reason}"
        if reason is not None:
            raise InvalidInputError(f"{shown(wanted)}: {reason}")
        return self._model(wanted)

    def why_not(self, key: Key) -> str | None:
        """Return why there is no policy for a key, or None if there is one."""
        record = self._by_key.get(key)
        if record is None:
            return "no such series was fitted."
        return f"the series was not fitted: {record.reason}" if record.status == FAILED else None

    def _model(self, key: Key) -> Any:
        if key in self._ready:
            self._ready.move_to_end(key)
            return self._ready[key]
        record = self._by_key[key]
        if record.model is not None:
            self._keep(key, model_from_bytes(record.model, _model_name(key)))
        else:
            self._read_part(record)
        if key not in self._ready:
            raise ModelFileError(f"{record.part} must hold the model of {shown(key)}, got none.")
        return self._ready[key]

    def _read_part(self, record: SeriesRecord) -> None:
        """Read the models of a finished task: whoever asks for one is likely to ask for the next."""
        assert self._folder is not None  # where a record has no model, its part lies there
        members, models = read_part(self._folder / record.part)
        for member in [one for one in members if one.key != record.key] + [record]:
            if member.digest in models and self._by_key.get(member.key, member).digest == member.digest:
                model = model_from_bytes(models[member.digest], _model_name(member.key))
                self._keep(member.key, model)

    def _keep(self, key: Key, model: Any) -> None:
        self._ready[key] = model
        while len(self._ready) > READY_MODELS:
            self._ready.popitem(last=False)

    # --- deciding and judging ---------------------------------------------------------------------

    def decide(self, frame: Any) -> FloatArray:
        """Return a decision for each row of a frame with the key columns and the contexts.

        Rows of a series without a policy (unknown, or not fitted) or with odd values are NaN, and a
        ``DataWarning`` names the series with its reason: one must not hold up ten thousand others.
        """
        columns, _ = raw_columns(frame)
        decisions = np.full(len(frame), np.nan)

        def decide(series: Series) -> None:
            decisions[series.rows] = self._mixed(series)

        if len(frame):
            self._each(split_series(columns, self.columns, outcomes=False), decide)
        return decisions

    def _each(self, panel: Iterable[Series], work: Callable[[Series], None]) -> None:
        """Do work for each series with a policy; say what they warned of, and why some have none."""
        missing: dict[Key, str] = {}
        said: dict[tuple[type[Warning], str], list[Key]] = {}
        for series in panel:
            reason = self.why_not(series.key)
            with warnings.catch_warnings(record=True, action="always") as caught:
                try:
                    if reason is None:
                        work(series)
                except InvalidInputError as error:  # an odd value in its rows
                    reason = str(error)
            for one in caught:
                message = in_frame(str(one.message), series)
                said.setdefault((one.category, message), []).append(series.key)
            if reason is not None:
                missing[series.key] = in_frame(reason, series)
        pass_on(said)
        warn_of_missing(missing)

    def _mixed(self, series: Series) -> FloatArray:
        """Return decisions of a series: its own, mixed with what all series say where it borrows."""
        record, table = self._by_key[series.key], series.table()
        if self.pooled is None or not math.isfinite(record.mean):
            own: FloatArray = self._model(series.key).predict(table)
            return own
        assert self._pooled_model is not None
        # The series' own policy says it.
        with warnings.catch_warnings(action="ignore", category=DataWarning):
            others = record.mean + record.size * self._pooled_model.predict(table)
        share = 0.0 if record.status == BORROWED else self.pooled.share(record.rows)
        if share == 0.0:
            return np.asarray(others)
        return np.asarray(share * self._model(series.key).predict(table) + (1.0 - share) * others)

    def cost(self, frame: Any) -> float:
        """Return the mean realised cost over the rows of a frame whose series have a policy.

        The frame also has the outcome. Rows of a series without a policy or with odd values are left
        out, with a warning; if none is left, the cost is NaN.
        """
        judged = self.judge(frame)
        rows = sum(one.rows for one in judged)
        return sum(one.rows * one.cost for one in judged) / rows if rows else math.nan

    def judge(self, frame: Any) -> tuple[SeriesEvaluation, ...]:
        """Return what decisions on the rows of a frame would have cost, series by series.

        The frame also has the outcome. ``constant_cost`` is that of the constant order that was best in
        the fit, NaN for a series without a policy of its own. Series without a decision or with odd
        values are left out, with a warning.

        Examples
        --------
        >>> from surefoot import RobustNewsvendor, fit_many
        >>> import polars
        >>> frame = polars.DataFrame({"shop": ["north", "south"] * 20, "heat": range(40),
        ...     "sold": [float(k % 7) for k in range(40)]})
        >>> table = fit_many(frame, "shop", "sold", model=RobustNewsvendor(3.0, 1.0, radius=0.1))
        >>> [(one.key, one.rows, one.constant_cost > 0.0) for one in table.judge(frame)]
        [(('north',), 20, True), (('south',), 20, True)]
        """
        columns, _ = raw_columns(frame)
        evaluations: list[SeriesEvaluation] = []
        cost = self._settings().cost
        self._each(
            split_series(columns, self.columns),
            lambda series: evaluations.append(self._judged(series, cost)),
        )
        return tuple(evaluations)

    def _judged(self, series: Series, cost: Cost) -> SeriesEvaluation:
        outcomes = series.clean_outcomes()[:, None]
        constant = np.full_like(outcomes, self._by_key[series.key].constant)
        paid = cost.evaluate(self._mixed(series)[:, None], outcomes)
        return SeriesEvaluation(
            series.key, 1, len(outcomes), float(paid.mean()),
            float(cost.evaluate(constant, outcomes).mean()),
        )  # fmt: skip

    def evaluate(
        self,
        data: Any,
        window: RollingWindow,
        *,
        n_jobs: int | None = None,
        progress: bool | Callable[[PanelProgress], None] = False,
        task_size: int = 20,
    ) -> Any:
        """Fit on rolling windows in order of time, judge on the rows that follow, series by series.

        Parameters
        ----------
        data
            The panel, as ``fit_many`` takes it; without a ``time`` column rows count as in order.
        window
            ``RollingWindow(train, test)``, in rows.
        n_jobs, progress, task_size
            As for ``fit_many``.

        Returns
        -------
        A frame with the key, the windows and rows judged, the mean cost, that of the best constant
        order of each window, the share saved, and the reason where a series cannot be judged.
        """
        check_instance("window", window, RollingWindow, "RollingWindow(train=60, test=10)")
        n_jobs = check_workers(n_jobs)
        if self.pooled is not None:
            raise UnsupportedProblemError(
                "evaluate judges series on their own, got a table that borrows: fit on older rows and "
                "call cost on the newer ones."
            )
        source = source_of(data)
        tasks = source.tasks(self.columns, check_integer("task_size", task_size, at_least=1))
        watch, judged = Watch(len(tasks), progress), []
        for part in run_tasks(evaluate_task, tasks, n_jobs, self._settings(), window):
            judged += part
            watch.add(len(part), sum(bool(one.reason) for one in part))
        order = {key: k for k, key in enumerate(self._by_key)}
        judged.sort(key=lambda one: (order.get(one.key, len(order)), one.key))
        names = ("windows", "rows", "cost", "constant_cost", "saving", "reason")
        columns = {name: [getattr(one, name) for one in judged] for name in names}
        make = make_of(data) or self._frames
        return make_frame({**self._key_columns(one.key for one in judged), **columns}, make)

    def _settings(self) -> FitSettings:
        """Return the settings of the fit, from any fitted series: all share them but for the seed."""
        fitted = next((record.key for record in self.records if record.status == FITTED), None)
        policy = self._pooled_model if fitted is None else self._model(fitted)
        if policy is None:
            raise InvalidInputError("cost and evaluate need a series that was fitted, got none.")
        return FitSettings(self.columns, clone(policy.model), self.random_state)

    # --- looking at it ----------------------------------------------------------------------------

    def summary(self) -> Any:
        """Return one row for each series, as a frame of the kind that the data were.

        Columns: the key, rows, status, reason, radius, gap (certified), cost and constant_cost (on rows
        held out in cross-validation; NaN for a radius of one's own), saving (of one against the other)
        and warnings.
        """
        names = ("rows", "status", "reason", "radius", "gap", "cost", "constant_cost", "saving")
        columns = {name: [getattr(record, name) for record in self.records] for name in names}
        columns["warnings"] = [" ".join(record.warnings) for record in self.records]
        return make_frame({**self._key_columns(r.key for r in self.records), **columns}, self._frames)

    def _key_columns(self, keys: Iterable[Key]) -> dict[str, list[Any]]:
        listed = list(keys)
        return {name: [key[k] for key in listed] for k, name in enumerate(self.columns.by)}

    def picture(self, target: str | Path | Any) -> None:
        """Draw how savings are distributed over series into a file, or onto matplotlib axes."""
        draw_savings(self, target)

    @property
    def time_taken(self) -> str:
        """How long the fit took, in words; empty for a table from a file."""
        return duration(self._seconds) if math.isfinite(self._seconds) else ""

    # --- files ------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one Parquet file: the summary, and each model in the library's own safe format."""
        place = check_path("path", path)
        write_table_file(place, self.columns, self._with_models(), self.random_state, self.pooled)

    def _with_models(self) -> Iterable[SeriesRecord]:
        parts: dict[str, dict[str, bytes]] = {}
        for record in self.records:
            if record.model is None and record.part:
                if record.part not in parts:
                    assert self._folder is not None
                    parts = {record.part: read_part(self._folder / record.part)[1]}
                yield replace(record, model=parts[record.part].get(record.digest), part="")
            else:
                yield record

    @classmethod
    def load(cls, path: str | Path) -> "PolicyTable":
        """Return the table that ``save`` wrote; models are checked when they are first used."""
        columns, records, random_state, pooled = read_table_file(check_path("path", path))
        return cls(columns, records, random_state, pooled=pooled)


def _wanted(key: Any) -> Key:
    """Return a key as texts, the way series are known; one of a single column may stand alone."""
    return tuple(map(key_text, key if isinstance(key, tuple) else (key,)))


def _model_name(key: Key) -> str:
    """Return how messages call the model of a series."""
    return f"The model of {shown(key)}"


def evaluate_task(task: Task, settings: FitSettings, window: RollingWindow) -> list[SeriesEvaluation]:
    """Judge the series of a task on windows of their own past."""
    return [evaluate_series(series, settings, window) for series in task()]
