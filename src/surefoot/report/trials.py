"""Decisions on rows that a policy had not seen: the model's recipe beside simpler ways to decide."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from surefoot.comparison import Folds, RollingWindow, Split, Splits
from surefoot.comparison.methods import Method, chosen_methods
from surefoot.costs import ConvexPiecewiseCost, Cost
from surefoot.forecasts import Suspect
from surefoot.random import rng_for
from surefoot.report.rows import ReportRows
from surefoot.typing import FloatArray, IntArray

OURS, MODEL = "surefoot", "model"
LABELS = {
    MODEL: "this model",
    OURS: "Surefoot",
    "erm": "linear policy",
    "erm-l1": "linear policy, few columns",
    "forest": "weighted forest",
    "saa": "constant order",
}
N_SPLITS = 5
# Of more rows than this so many are judged on: the figures hardly move, and the time does.
MOST_ROWS = 1_500
# How far contexts are moved, in standard deviations of their columns.
MOVES = (0.25, 0.5, 0.75, 1.0)
# Of more columns than this those that move decisions most are looked at; an error of this size in each.
MOST_COLUMNS, ERROR = 30, 0.5
# So many rows of a split say which columns matter.
EFFECT_ROWS = 150


@dataclass(frozen=True, eq=False)
class MethodTrial:
    """One way to decide, on the rows judged.

    Attributes
    ----------
    name, label
        As ``surefoot.compare`` calls it, and in words.
    decisions, costs
        Of each row judged, shape (rows, decisions) and (rows,).
    moved
        Mean cost when contexts are off by each of ``MOVES``.
    reason
        Why there is no answer; empty where there is one.
    """

    name: str
    label: str
    decisions: FloatArray
    costs: FloatArray
    moved: tuple[float, ...]
    reason: str = ""


@dataclass(frozen=True, eq=False)
class ColumnEffects:
    """What columns are worth to decisions on unseen rows.

    Attributes
    ----------
    rows, columns
        Positions of the rows looked at, and of the columns among those of X.
    unknown, wrong
        Shape (rows, columns): how much more a row costs if the column holds the value of another row,
        and if it is off by half a standard deviation (zero for text, dates and 0/1 columns).
    """

    rows: IntArray
    columns: tuple[int, ...]
    unknown: FloatArray
    wrong: FloatArray


@dataclass(frozen=True, eq=False)
class Trials:
    """All ways to decide on the same rows, none of which they had learned from.

    Attributes
    ----------
    methods
        First the model itself if these rows are new to it, else its recipe.
    judged
        Positions of the rows judged.
    described
        How rows were split, in words.
    effects
        Of the first method.
    suspects
        Numbers in these rows that look like errors.
    """

    methods: tuple[MethodTrial, ...]
    judged: IntArray
    described: str
    effects: ColumnEffects
    suspects: tuple[Suspect, ...]

    @property
    def ours(self) -> MethodTrial:
        """The model itself, or its recipe learned from other rows."""
        return self.methods[0]

    @property
    def answered(self) -> tuple[MethodTrial, ...]:
        """Methods that gave an answer on every split."""
        return tuple(method for method in self.methods if not method.reason)


def default_splits(rows: int, *, ordered: bool) -> Splits:
    """Return five folds, or five windows of the later half in order of time."""
    if not ordered:
        return Folds(N_SPLITS, repeats=1)
    test = max(1, (rows - rows // 2) // N_SPLITS)
    return RollingWindow(rows - N_SPLITS * test, test)


def run_trials(
    model: Any,
    cost: Cost,
    rows: ReportRows,
    splits: Splits | None,
    seed: int,
    on_progress: Callable[[str], None] | None = None,
    *,
    new: bool = False,
) -> Trials:
    """Let fresh copies of a model, and simpler ways to decide, learn and be judged split by split.

    Where all rows are ``new`` to the model, it is judged on them itself, too, as it is. Warnings of
    these fits are not passed on: they speak of parts of the rows.
    """
    plan = default_splits(len(rows), ordered=rows.ordered) if splits is None else splits
    parts = plan.splits(len(rows), seed)
    trials, effects, suspects = [], None, dict[tuple[int, str], Suspect]()
    for method in _methods(model, cost, rows, seed, new=new):
        trial, fitted = _tried(method, cost, rows, parts, seed, on_progress)
        trials.append(trial)
        if effects is None:
            effects = _column_effects(fitted, cost, rows, parts, seed)
        if method.name == OURS:
            for one, split in zip(fitted, parts, strict=False):
                suspects |= _suspects(one, split, rows)
    assert effects is not None  # the model or its recipe is always tried
    return Trials(
        methods=tuple(trials), judged=np.concatenate([split.test for split in parts]),
        described=plan.describe(len(rows)), effects=effects,
        suspects=tuple(suspects[key] for key in sorted(suspects)),
    )  # fmt: skip


def _methods(model: Any, cost: Cost, rows: ReportRows, seed: int, *, new: bool) -> list[Method]:
    """Return the model if rows are new to it, its recipe, and the baselines that take its cost."""
    kinked = isinstance(cost, ConvexPiecewiseCost)
    names = [name for name in LABELS if name not in (MODEL, OURS)] if kinked else ["saa"]
    own = [Method(MODEL, model)] if new else []
    return [*own, Method(OURS, clone(model)), *chosen_methods(names, cost, rows.table, seed)]


def _tried(
    method: Method, cost: Cost, rows: ReportRows, splits: Sequence[Split], seed: int,
    on_progress: Callable[[str], None] | None,
) -> tuple[MethodTrial, list[Any]]:  # fmt: skip
    """Fit a method on each split and judge it on the rows left out; return the fits, too."""
    label, spread, answers = LABELS[method.name], rows.spread, []
    fits: list[Any] = []
    for split in splits:
        if on_progress is not None:
            on_progress(f"{method.name}, {split.name}")
        train, test = rows.take(split.train), rows.take(split.test)
        with warnings.catch_warnings(action="ignore"):
            try:
                y = train.y[:, 0] if train.y.shape[1] == 1 else train.y
                # The model itself is judged as it is.
                fitted = method.estimator
                if method.name != MODEL:
                    fitted = clone(fitted).fit(train.X, y)
                contexts = [test.X, *(test.moved(shift, spread, seed) for shift in MOVES)]
                decisions = [_decide(fitted, X) for X in contexts]
            # Not narrower: a baseline that fails on a split must not end the report.
            except Exception as error:
                reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
                return MethodTrial(method.name, label, np.empty((0, 1)), np.empty(0), (), reason), fits
        fits.append(fitted)
        answers.append((decisions[0], [cost.evaluate(z, test.y) for z in decisions]))
    joined = [np.concatenate(costs) for costs in zip(*(costs for _, costs in answers), strict=True)]
    decided = np.concatenate([decisions for decisions, _ in answers])
    moved = tuple(float(costs.mean()) for costs in joined[1:])
    return MethodTrial(method.name, label, decided, joined[0], moved), fits


def _decide(fitted: Any, X: Any) -> FloatArray:
    decisions = np.asarray(fitted.predict(X), dtype=np.float64)
    return decisions.reshape(len(decisions), -1)


def _some(rows: int, seed: int) -> IntArray:
    """Return so many rows as say which columns matter."""
    if rows <= EFFECT_ROWS:
        return np.arange(rows)
    return np.sort(rng_for(seed, "report", "rows").choice(rows, EFFECT_ROWS, replace=False))


def _strong_columns(fitted: Any, rows: ReportRows, seed: int) -> tuple[int, ...]:
    """Return all columns, or of many those that move decisions most."""
    count = len(rows.table.columns)
    if count <= MOST_COLUMNS:
        return tuple(range(count))
    with warnings.catch_warnings(action="ignore"):
        before = _decide(fitted, rows.X)
        change = [
            float(np.abs(_decide(fitted, rows.shuffled(j, seed)) - before).mean()) for j in range(count)
        ]
    strongest = np.argsort(-np.array(change), kind="stable")[:MOST_COLUMNS]
    return tuple(int(j) for j in np.sort(strongest))


def _column_effects(
    fitted: Sequence[Any], cost: Cost, rows: ReportRows, splits: Sequence[Split], seed: int
) -> ColumnEffects:
    """Return what columns are worth to the policies of each split, on some of its rows."""
    looked_at, unknown, wrong = [np.empty(0, dtype=np.int64)], [], []
    columns: tuple[int, ...] = ()
    for one, split in zip(fitted, splits, strict=False):
        places = split.test[_some(len(split.test), seed)]
        some = rows.take(places)
        looked_at.append(places)
        columns = columns or _strong_columns(one, some, seed)
        effects = _effects(one, cost, some, columns, rows.spread, seed)
        unknown.append(effects[0])
        wrong.append(effects[1])
    nothing = [np.empty((0, 0))]
    return ColumnEffects(
        np.concatenate(looked_at), columns, np.concatenate(unknown or nothing),
        np.concatenate(wrong or nothing),
    )  # fmt: skip


def _effects(
    fitted: Any, cost: Cost, rows: ReportRows, columns: tuple[int, ...], spread: FloatArray, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return how much more each row costs without a column, and with an error in it."""
    with warnings.catch_warnings(action="ignore"):
        before = cost.evaluate(_decide(fitted, rows.X), rows.y)
        unknown, wrong = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
        for k, j in enumerate(columns):
            unknown[:, k] = cost.evaluate(_decide(fitted, rows.shuffled(j, seed)), rows.y) - before
            if spread[j] > 0.0:
                off = rows.moved(ERROR, spread, seed, column=j)
                wrong[:, k] = cost.evaluate(_decide(fitted, off), rows.y) - before
    return unknown, wrong


def _suspects(fitted: Any, split: Split, rows: ReportRows) -> dict[tuple[int, str], Suspect]:
    """Return what a fit on some rows took for errors, by the places of the rows handed in."""
    moved = [one._replace(row=int(rows.places[split.train[one.row]])) for one in fitted.suspects_]
    return {(one.row, one.column): one for one in moved}
