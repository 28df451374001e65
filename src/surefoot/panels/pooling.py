"""Short series borrow strength: a policy learned over all series, mixed with each series' own.

Outcomes of each series are measured from their mean, in units of their mean size, so that a pooled
policy g speaks of all of them. A series of n rows with mean m and size s decides

    z = share * own(x) + (1 - share) * (m + s g(x)),      share = n / (n + rows)

where m is corrected for the contexts that the series happened to meet, and ``rows`` says how many rows
of its own are worth as much as all the others: few where series differ, many where they are alike. It
is chosen once for the whole panel, by the cost of decisions on the newest rows of many series, which
neither policy had seen, and is zero unless borrowing is clearly better.
"""

import hashlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.costs import ConvexPiecewiseCost
from surefoot.estimators.preparation import PreparedPolicy, Table
from surefoot.exceptions import DataWarning, SurefootError, UnsupportedProblemError
from surefoot.panels.fitting import FitSettings
from surefoot.panels.records import model_bytes, model_from_bytes
from surefoot.panels.running import run_tasks
from surefoot.panels.series import Columns, Key, Series
from surefoot.panels.sources import Task
from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray

# Rows that the pooled policy learns from: at most so many of a series, and in all.
SERIES_ROWS, POOLED_ROWS = 50, 20_000
# The worth of the others is chosen on so many series, on this share of their rows, the newest.
REHEARSALS, NEWEST_SHARE, LEAST_ROWS = 100, 0.2, 5
# What is tried: from "own alone" to "pooled alone"; and what is taken where nothing can be tried.
ROWS_TRIED, ROWS_UNTRIED = (0.0, 3.0, 10.0, 30.0, 100.0, 300.0, math.inf), 30.0


@dataclass(frozen=True)
class PooledPolicy:
    """What all series together say: a policy in their common units, and how many rows it is worth."""

    model: bytes
    rows: float

    def share(self, rows: int) -> float:
        """Return the share of a series' own policy, of so many rows, in its decisions."""
        return 0.0 if math.isinf(self.rows) else rows / (rows + self.rows)


@dataclass(frozen=True, eq=False)
class PooledRows:
    """Some rows of a series, with mean and size of its outcomes: of all, and of the older ones."""

    key: Key
    rows: int
    contexts: Columns
    outcomes: FloatArray
    older: Any
    units: tuple[float, float]
    older_units: tuple[float, float]


def check_scales(settings: FitSettings) -> None:
    """Refuse a cost that changes its shape with the units of the outcome."""
    cost = settings.cost
    pieces = cost.pieces(1) if isinstance(cost, ConvexPiecewiseCost) else ()
    if not pieces or not pieces[0].two or pieces[0].smoothing > 0.0:
        raise UnsupportedProblemError(
            "borrow=True needs a cost of two lines such as Newsvendor(1.0, 0.2), which is the same in "
            f"all units, got {cost!r}."
        )


def outcome_units(outcomes: FloatArray) -> tuple[float, float]:
    """Return the mean of outcomes and their mean size."""
    return float(outcomes.mean()), float(np.abs(outcomes).mean())


def older_rows(count: int) -> int:
    """Return how many rows of a series count as older."""
    return count - max(1, round(NEWEST_SHARE * count))


def learn_together(
    tasks: Sequence[Task], settings: FitSettings, n_jobs: int | None
) -> tuple[PooledPolicy | None, dict[Key, tuple[float, float]]]:
    """Return the pooled policy, and mean and size of the outcomes of each series that can use it."""
    check_scales(settings)
    members = [one for part in run_tasks(collect_task, tasks, n_jobs, settings) for one in part]
    members.sort(key=lambda one: one.key)
    if sum(len(one.outcomes) for one in members) < 2:
        return None, {}
    chosen = frozenset(
        sorted((one.key for one in members if one.rows >= LEAST_ROWS), key=_shuffled)[:REHEARSALS]
    )
    worth = ROWS_UNTRIED
    if chosen:
        past, error = _pooled(members, settings, older=True)
        tried = run_tasks(rehearse_task, tasks, n_jobs, settings, chosen, model_bytes(past), error)
        costs = [one for part in tried for one in part]
        if costs:  # sorted, so that sums do not depend on which worker was first
            worth = chosen_rows(np.array(sorted(costs)))
    model, error = _pooled(members, settings, older=False)
    units = {
        one.key: _corrected(one.units, Table.of(one.contexts), one.outcomes, model, error)
        for one in members
    }
    return PooledPolicy(model_bytes(model), worth), units


def _corrected(
    units: tuple[float, float], contexts: Table, outcomes: FloatArray, pooled: Any, error: float
) -> tuple[float, float]:
    """Return mean and size of outcomes, the mean as it would be had the contexts been average ones.

    The pooled policy misses the outcomes of a series by its error of the mean, and by ``error`` those
    of all series, which is the distance that the cost makes it keep.
    """
    mean, size = units
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        expected = mean + size * (pooled.predict(contexts) + error)
    return mean + float((outcomes - expected).mean()), size


def chosen_rows(costs: FloatArray) -> float:
    """Return the worth of the others with the smallest mean of costs (series, worths tried).

    Own policies stay alone unless a mixture is better by more than a standard error of the difference.
    """
    best = int(np.argmin(costs.mean(axis=0)))
    gains = costs[:, 0] - costs[:, best]
    if len(gains) < 2 or gains.mean() <= np.std(gains, ddof=1) / math.sqrt(len(gains)):
        return ROWS_TRIED[0]
    return ROWS_TRIED[best]


def _shuffled(key: Key) -> str:
    return hashlib.sha256("\x1f".join(key).encode()).hexdigest()


def collect_task(task: Task, settings: FitSettings) -> list[PooledRows]:
    """Return some rows of each series of a task; series that cannot be read have none."""
    collected = []
    for series in task():
        try:
            series.table()
            outcomes = series.clean_outcomes()
        except SurefootError:
            continue
        count = len(outcomes)
        rng = rng_for(settings.seed, "pooled rows", *series.key)
        rows = np.sort(rng.permutation(count)[:SERIES_ROWS])
        past = outcomes[: older_rows(count)] if count > 1 else outcomes
        collected.append(
            PooledRows(
                series.key, count, series.take(rows).contexts, outcomes[rows],
                rows < older_rows(count), outcome_units(outcomes), outcome_units(past),
            )
        )  # fmt: skip
    return collected


def _pooled(
    members: Sequence[PooledRows], settings: FitSettings, *, older: bool
) -> tuple[PreparedPolicy, float]:
    """Fit the policy of all series, in units of their outcomes; return its mean error, too."""
    outcomes, kept = [], []
    for one in members:
        mean, size = one.older_units if older else one.units
        rows = np.flatnonzero(one.older) if older else np.arange(len(one.outcomes))
        if size > 0.0 and len(rows):
            kept.append({name: values[rows] for name, values in one.contexts.items()})
            outcomes.append((one.outcomes[rows] - mean) / size)
    whole = np.concatenate(outcomes)
    chosen = _some(len(whole), settings.seed)
    contexts = {
        name: np.concatenate([columns[name] for columns in kept])[chosen]
        for name in settings.columns.contexts
    }
    # Each series says itself which of its columns do not vary.
    with warnings.catch_warnings(action="ignore"):
        table = Table.of(contexts)
        policy = settings.policy(("all series",)).fit(table, whole[chosen])
        return policy, float((whole[chosen] - policy.predict(table)).mean())


def _some(count: int, seed: int) -> IntArray:
    if count <= POOLED_ROWS:
        return np.arange(count)
    return np.sort(rng_for(seed, "pooled rows").permutation(count)[:POOLED_ROWS])


def rehearse_task(
    task: Task, settings: FitSettings, chosen: frozenset[Key], past: bytes, error: float
) -> list[tuple[float, ...]]:
    """Return, for each chosen series, the cost on its newest rows at each worth of the others."""
    pooled = model_from_bytes(past)
    return [
        costs
        for series in task()
        if series.key in chosen and (costs := _rehearsed(series, settings, pooled, error)) is not None
    ]


def _rehearsed(
    series: Series, settings: FitSettings, pooled: Any, error: float
) -> tuple[float, ...] | None:
    """Fit on the older rows, decide for the newest; costs in units of the series."""
    count = older_rows(len(series.rows))
    past, ahead = series.take(np.arange(count)), series.take(np.arange(count, len(series.rows)))
    with warnings.catch_warnings(action="ignore"):
        try:
            outcomes, judged = past.clean_outcomes(), ahead.clean_outcomes()
            own = settings.policy(series.key).fit(past.table(), outcomes, time=past.times)
            own = own.predict(ahead.table())
            units = outcome_units(outcomes)
            mean, size = _corrected(units, past.table(), outcomes, pooled, error)
            others = mean + size * pooled.predict(ahead.table())
        except Exception:  # such a series says nothing here, and its reason in its own fit
            return None
    if size == 0.0:
        return None
    costs = []
    for rows in ROWS_TRIED:
        share = PooledPolicy(b"", rows).share(count)
        decisions = share * own + (1.0 - share) * others
        costs.append(float(settings.cost.evaluate(decisions[:, None], judged[:, None]).mean()) / size)
    return tuple(costs)
