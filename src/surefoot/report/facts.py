"""Everything that a report says, as data: gathered once, before any word is written."""

import hashlib
import platform
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from surefoot.comparison import Splits
from surefoot.costs import Cost
from surefoot.estimators import RobustEstimator
from surefoot.estimators.inputs import check_contexts, fingerprint
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.estimators.preparation.table import DATE, NUMBER, Column
from surefoot.estimators.row_costs import refuse_levels
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.forecasts import Suspect
from surefoot.nominals import Nominal
from surefoot.random import rng_for
from surefoot.report.promise import Promise, Shares, adversary_of_columns, promise_of, robust_part
from surefoot.report.rows import Origin, ReportRows
from surefoot.report.trials import MOST_ROWS, Trials, run_trials
from surefoot.typing import FloatArray
from surefoot.validation import check_instance
from surefoot.version import __version__

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "highspy", "joblib")
# Levels of a category that are named one by one.
SHOWN_LEVELS = 4


@dataclass(frozen=True, eq=False)
class Facts:
    """What a report says.

    Attributes
    ----------
    outcome
        What the outcome is called.
    cost
        What judges decisions.
    rows, decisions, own_cost
        All rows, what the model itself decides on them, and what that costs on average.
    seen
        Whether these are the rows that the model learned from; None if that is not known.
    judged, trials
        The rows of the trials, and what came out of them.
    promise, adversary
        What is stated about new rows; which columns the worst case moves, and what this means.
    columns
        Of each column of the contexts its name, what it is, what is in it, and how many gaps.
    suspects, notes
        About the data.
    settings, versions
        To repeat it all.
    """

    outcome: str
    cost: Cost
    rows: ReportRows
    decisions: FloatArray
    own_cost: float
    seen: bool | None
    judged: ReportRows
    trials: Trials
    promise: Promise
    adversary: tuple[Shares, str]
    columns: tuple[tuple[str, str, str, int], ...]
    suspects: tuple[Suspect, ...]
    notes: tuple[str, ...]
    origin: Origin
    recipe: str
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def each(self) -> str:
        """What a row is called: a day where every row has one of its own."""
        days = self.rows.days
        return "day" if days is not None and len(np.unique(days)) == len(days) else "row"


def checked_policy(model: Any) -> Any:
    """Return a fitted robust model, prepared or not; refuse what is none."""
    wanted = "a fitted RobustNewsvendor, RobustPolicy or PreparedPolicy"
    if not isinstance(model, RobustEstimator | PreparedPolicy):
        raise InvalidTypeError(f"model must be {wanted}, got {model!r}.")
    check_is_fitted(model)
    check_instance("model", robust_part(model), RobustEstimator, f"{wanted} around a robust model")
    refuse_levels(robust_part(model), "report")
    return model


def gather(
    model: Any,
    X: Any,
    y: Any,
    *,
    outcome: str = "outcome",
    time: Any = None,
    splits: Splits | None = None,
    origin: Origin | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Facts:
    """Return everything that a report on a fitted model says."""
    model, robust = checked_policy(model), robust_part(model)
    if splits is not None:
        check_instance("splits", splits, Splits, "Folds(...) or RollingWindow(...)")
    origin, cost = Origin() if origin is None else origin, robust.problem_.cost
    rows = ReportRows.of(X, y, time)
    if rows.y.shape[1] != robust.n_outcomes:
        raise InvalidInputError(
            f"y must have {robust.n_outcomes} outcomes in a row as in fit, got {rows.y.shape[1]}."
        )
    decisions, notes = _decisions(model, rows)
    judged = _judged(rows, robust.random_state)
    seen = _seen(model, X, rows, origin)
    trials = run_trials(
        model, cost, judged, splits, robust.random_state, on_progress, new=seen is False
    )
    return Facts(
        outcome=outcome, cost=cost, rows=rows, decisions=decisions,
        own_cost=float(cost.evaluate(decisions, rows.y).mean()), seen=seen, judged=judged,
        trials=trials,
        promise=promise_of(model, rows, origin), adversary=adversary_of_columns(model, rows),
        columns=tuple(
            _column_fact(name, column)
            for name, column in zip(rows.names, rows.table.columns, strict=True)
        ),
        suspects=model.suspects_ if seen and model.suspects_ else trials.suspects,
        notes=(*origin.notes, *notes, *_status(robust)), origin=origin, recipe=_recipe(model),
        settings=_settings(model, robust), versions=_versions(),
    )  # fmt: skip


def _decisions(model: Any, rows: ReportRows) -> tuple[FloatArray, tuple[str, ...]]:
    """Return what the model itself decides, and what it had to say about the contexts."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        decisions = np.asarray(model.predict(rows.X), dtype=np.float64)
    notes = dict.fromkeys(" ".join(str(one.message).split()) for one in caught)
    return decisions.reshape(len(rows), -1), tuple(notes)


def _judged(rows: ReportRows, seed: int) -> ReportRows:
    """Return the rows of the trials: all, the newest of many in order of time, or some of many."""
    if len(rows) <= MOST_ROWS:
        return rows
    if rows.ordered or rows.days is not None:
        return rows.take(np.arange(len(rows) - MOST_ROWS, len(rows)))
    chosen = rng_for(seed, "report", "judged").choice(len(rows), MOST_ROWS, replace=False)
    return rows.take(np.sort(chosen))


def _seen(model: Any, X: Any, rows: ReportRows, origin: Origin) -> bool | None:
    """Return whether the model learned from these rows, or None if nobody knows."""
    learned = getattr(robust_part(model), "fingerprint_", origin.fingerprint)
    if not learned:
        return None
    y = rows.y[np.argsort(rows.places)]  # as they were handed in
    with warnings.catch_warnings(action="ignore"):
        prepared = isinstance(model, PreparedPolicy)
        contexts = model.prepare(X) if prepared else check_contexts(model, X, reset=False)
    return fingerprint(contexts, y) == learned


def _column_fact(name: str, column: Column) -> tuple[str, str, str, int]:
    gaps = int(column.gaps.sum())
    values = column.values[~column.gaps]
    if len(values) == 0:
        return name, column.kind, "nothing", gaps
    if column.kind == NUMBER:
        flag = bool(np.isin(values, [0.0, 1.0]).all())
        holds = "0 or 1" if flag else f"{values.min():g} to {values.max():g}"
    elif column.kind == DATE:
        holds = f"{values.min()} to {values.max()}"
    else:
        levels = sorted(set(values))
        more = f" and {len(levels) - SHOWN_LEVELS} more" if len(levels) > SHOWN_LEVELS else ""
        holds = ", ".join(levels[:SHOWN_LEVELS]) + more
    return name, column.kind, holds, gaps


def _status(robust: RobustEstimator) -> tuple[str, ...]:
    """Return what deserves a look about the model itself."""
    notes = [robust.status_] if robust.converged_ is False else []
    if isinstance(robust.get_params(deep=False).get("nominal"), Nominal):
        notes.append(
            "The model learns from a nominal of its own and not from rows: whether that nominal knows "
            "these rows, and so whether costs are out of sample, cannot be told."
        )
    return tuple(notes)


def _recipe(model: Any) -> str:
    return " ".join(model.__repr__(N_CHAR_MAX=10_000).split())


def _settings(model: Any, robust: RobustEstimator) -> tuple[tuple[str, str], ...]:
    settings = [("model", type(model).__name__)]
    settings += [
        (name, repr(value)) for name, value in model.get_params(deep=True).items() if name != "model"
    ]
    settings += [("radius chosen", f"{robust.radius_:.6g}"), ("how it ended", robust.status_)]
    return tuple(settings)


def _versions() -> tuple[tuple[str, str], ...]:
    """Return versions of what computed this."""
    versions = [("surefoot", __version__), ("Python", platform.python_version())]
    return (*versions, *((name, metadata.version(name)) for name in _PACKAGES))


def rows_checksum(facts: Facts) -> str:
    """Return the SHA-256 of the rows as they were handed in, column by column."""
    digest = hashlib.sha256()
    back = np.argsort(facts.rows.places)
    for column in facts.rows.table.take(back).columns:
        digest.update(column.name.encode())
        digest.update("\x1f".join(map(str, column.values.tolist())).encode())
    digest.update(np.ascontiguousarray(facts.rows.y[back], dtype="<f8").tobytes())
    return digest.hexdigest()
