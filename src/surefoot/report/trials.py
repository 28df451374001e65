"""Decisions on rows that a policy had not seen: the model's recipe beside simpler ways to decide."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from surefoot.comparison import Folds, RollingWindow, Split, Splits
from surefoot.comparison.methods import Method, chosen_methods
from surefoot.costs import ConvexPiecewiseCost, Cost
from surefoot.estimators.preparation import PreparedPolicy
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


@dataclass(frozen=True, eq=False)
class _AsItIs(Method):
    """A fitted model that learns nothing more."""

    def fresh(self) -> Any:
        """Return what has a ``fit``."""
        return self

    def fit(self, X: Any, y: Any) -> Any:
        """Return the model."""
        del X, y
        return self.estimator


@dataclass(eq=False)
class _Running:
    """What one method has answered so far."""

    method: Method
    decisions: list[FloatArray] = field(default_factory=list)
    costs: list[FloatArray] = field(default_factory=list)
    moved: list[list[FloatArray]] = field(default_factory=list)
    reason: str = ""

    def answer(self) -> MethodTrial:
        """Return all splits in one."""
        label = LABELS[self.method.name]
        if self.reason:
            return MethodTrial(self.method.name, label, np.empty((0, 1)), np.empty(0), (), self.reason)
        moved = [float(np.concatenate(costs).mean()) for costs in zip(*self.moved, strict=True)]
        return MethodTrial(
            self.method.name, label, np.concatenate(self.decisions), np.concatenate(self.costs),
            tuple(moved),
        )  # fmt: skip


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
    running = [_Running(method) for method in _methods(model, cost, rows, seed, new=new)]
    spread = rows.spread
    judged: list[IntArray] = []
    effects: list[tuple[FloatArray, FloatArray]] = []
    looked_at: list[IntArray] = [np.empty(0, dtype=np.int64)]
    suspects: dict[tuple[int, str], Suspect] = {}
    columns: tuple[int, ...] = ()
    for split in plan.splits(len(rows), seed):
        part = rows.take(split.train), rows.take(split.test)
        judged.append(split.test)
        for one in running:
            if one.reason:
                continue
            if on_progress is not None:
                on_progress(f"{one.method.name}, {split.name}")
            fitted = _judge(one, cost, part, spread, seed)
            if one is running[0] and fitted is not None:
                chosen = _some(len(part[1]), seed)
                some = part[1].take(chosen)
                looked_at.append(split.test[chosen])
                columns = columns or _strong_columns(fitted, some, seed)
                effects.append(_effects(fitted, cost, some, columns, spread, seed))
            if one.method.name == OURS and fitted is not None:
                suspects |= _suspects(fitted, split, rows)
    found = tuple(one.answer() for one in running)
    unknown, wrong = zip(*effects, strict=True) if effects else ((np.empty((0, 0)),),) * 2
    return Trials(
        methods=found, judged=np.concatenate(judged), described=plan.describe(len(rows)),
        effects=ColumnEffects(
            np.concatenate(looked_at), columns, np.concatenate(unknown), np.concatenate(wrong)
        ),
        suspects=tuple(suspects[key] for key in sorted(suspects)),
    )  # fmt: skip


def _methods(model: Any, cost: Cost, rows: ReportRows, seed: int, *, new: bool) -> list[Method]:
    """Return the model if rows are new to it, its recipe, and the baselines that take its cost."""
    kinked = isinstance(cost, ConvexPiecewiseCost)
    names = [name for name in LABELS if name not in (MODEL, OURS)] if kinked else ["saa"]
    own: list[Method] = [_AsItIs(MODEL, model)] if new else []
    return [*own, Method(OURS, clone(model)), *chosen_methods(names, cost, rows.table, seed)]


def _judge(
    one: _Running, cost: Cost, part: tuple[ReportRows, ReportRows], spread: FloatArray, seed: int
) -> Any:
    """Fit a method on the first rows and judge it on the second; return it, or None if it failed."""
    train, test = part
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fitted = one.method.fresh().fit(train.X, _outcomes(train))
            decisions = _decide(fitted, test.X)
            moved = [_decide(fitted, test.moved(shift, spread, seed)) for shift in MOVES]
        # Not narrower: a baseline that fails on a split must not end the report.
        except Exception as error:
            one.reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            return None
    one.decisions.append(decisions)
    one.costs.append(cost.evaluate(decisions, test.y))
    one.moved.append([cost.evaluate(z, test.y) for z in moved])
    return fitted


def _outcomes(rows: ReportRows) -> FloatArray:
    return rows.y[:, 0] if rows.y.shape[1] == 1 else rows.y


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = _decide(fitted, rows.X)
        change = [
            float(np.abs(_decide(fitted, rows.shuffled(j, seed)) - before).mean()) for j in range(count)
        ]
    strongest = np.argsort(-np.array(change), kind="stable")[:MOST_COLUMNS]
    return tuple(int(j) for j in np.sort(strongest))


def _effects(
    fitted: Any, cost: Cost, rows: ReportRows, columns: tuple[int, ...], spread: FloatArray, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return how much more each row costs without a column, and with an error in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
    robust = fitted.model_ if isinstance(fitted, PreparedPolicy) else fitted
    moved = [one._replace(row=int(rows.places[split.train[one.row]])) for one in robust.suspects_]
    return {(one.row, one.column): one for one in moved}
