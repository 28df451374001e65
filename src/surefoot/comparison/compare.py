"""Compare ways to decide on one's own data: same splits, paired differences, honest intervals."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from surefoot.baselines import SAA
from surefoot.comparison.methods import OURS, Method, chosen_methods
from surefoot.comparison.result import Comparison, Trial
from surefoot.comparison.splits import Folds, Split, Splits, some_of, taken
from surefoot.costs import Cost
from surefoot.estimators.preparation import read_table
from surefoot.exceptions import InvalidInputError, InvalidTypeError, SurefootError
from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_instance, check_integer, check_number, outcome_matrix

# Of more rows a split takes a sample: linear programs and forests would take minutes a fit.
MOST_ROWS = 5_000
# Beyond so many rows, folds are shuffled once: they hold enough rows each.
MANY_ROWS = 20_000


@dataclass(frozen=True)
class ComparisonProgress:
    """Where a comparison stands: fits done, fits in all, and which one is next."""

    done: int
    total: int
    method: str
    split: str


def compare(
    X: Any,
    y: Any,
    cost: Cost,
    methods: Any = None,
    *,
    splits: Splits | None = None,
    reference: str | None = None,
    confidence: float = 0.95,
    most_rows: int | None = MOST_ROWS,
    random_state: int = 0,
    on_progress: Callable[[ComparisonProgress], None] | None = None,
) -> Comparison:
    """Judge ways to decide on data they did not learn from, split by split.

    Every method learns and is judged on the same splits, so that differences are paired. A method
    that fails on a split is reported with its reason, and the others go on. Ctrl-C returns what was
    finished if that is two splits or more, and says so in the result.

    Parameters
    ----------
    X
        Contexts: an array, or a pandas or polars frame. Text, categories, dates and gaps are prepared
        as ``PreparedPolicy`` does, anew from the training rows of each split.
    y
        Outcomes, shape (rows,) or (rows, products).
    cost
        ``Newsvendor(backorder, holding)`` or any other cost; it judges all methods.
    methods
        None is all of "surefoot", "erm", "erm-l1", "forest", "shapley" and "saa" ("surefoot" and
        "saa" for costs that are not piecewise linear); or some of these names; or a dictionary of
        unfitted estimators of your own, by name.
    splits
        ``Folds(5, repeats=3)`` by default, beyond 20,000 rows ``Folds(5, repeats=1)``;
        ``RollingWindow(train, test)`` for rows in order of time.
    reference
        The method that others are compared with; None is "surefoot", or else the first method.
    confidence
        Level of the intervals, between 0 and 1.
    most_rows
        So many rows of a split are learned from at most, and so many are judged on: more are sampled,
        the same for all methods, and the result says so. None takes all. "shapley", which looks at all
        pairs of rows, learns from 600 at most.
    random_state
        A whole number: it decides the folds, the samples and the methods by name.
    on_progress
        Called before each fit with a ``ComparisonProgress``.

    Returns
    -------
    Comparison
        Print it; ``rows``, ``to_frame()`` and ``picture(path)`` have the rest.

    Examples
    --------
    >>> from surefoot.comparison import Folds, compare
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=60, s=5, seed=0)
    >>> found = compare(data.X, data.y, Newsvendor(1.0, 0.2), ["surefoot", "saa"], splits=Folds(5, 1))
    >>> [row.method for row in found.rows]
    ['surefoot', 'saa']
    >>> found.row("saa").score
    0.0
    """
    check_instance("cost", cost, Cost, "a cost such as Newsvendor(1.0, 0.2)")
    level = check_number("confidence", confidence, above=0, below=1)
    seed = check_integer("random_state", random_state, at_least=0)
    if splits is not None:
        check_instance("splits", splits, Splits, "Folds(...) or RollingWindow(...)")
    if most_rows is not None:
        check_integer("most_rows", most_rows, at_least=2)
    if on_progress is not None and not callable(on_progress):
        raise InvalidTypeError(f"on_progress must be a function or None, got {on_progress!r}.")
    table = read_table(X)
    plan = Folds(repeats=1 if len(table) > MANY_ROWS else 3) if splits is None else splits
    outcomes = _outcomes(y, len(table), cost)
    chosen = chosen_methods(methods, cost, table, seed)
    named = _reference(reference, chosen)
    data = _Data(X, outcomes, cost, most_rows, seed)
    parts = plan.splits(len(table), seed)
    trials, status = _run(data, chosen, parts, on_progress)
    return Comparison(
        methods=tuple(method.name for method in chosen), reference=named, trials=trials,
        splits=plan, rows_in_all=len(table), n_splits=len(parts), confidence=level, status=status,
    )  # fmt: skip


def _reference(reference: str | None, chosen: tuple[Method, ...]) -> str:
    names = [method.name for method in chosen]
    if reference is None:
        return OURS if OURS in names else names[0]
    if reference not in names:
        raise InvalidInputError(
            f"reference must be one of the methods ({', '.join(names)}), got {reference!r}."
        )
    return reference


def _outcomes(y: Any, rows: int, cost: Cost) -> FloatArray:
    """Return outcomes as a vector or a matrix, as they came."""
    if y is None:
        raise InvalidTypeError("y must be the outcomes, one for each row of X, got None.")
    matrix = outcome_matrix("y", y, rows)
    reason = cost.why_not(matrix.shape[1])
    if reason is not None:
        raise InvalidInputError(reason)
    return matrix[:, 0] if np.ndim(y) == 1 else matrix


@dataclass(frozen=True, eq=False)
class _Data:
    """All rows, and what judges decisions on some of them."""

    X: Any
    outcomes: FloatArray
    cost: Cost
    most_rows: int | None
    seed: int

    def mean_cost(self, decisions: Any, rows: IntArray) -> float:
        outcomes = self.outcomes[rows]
        decisions = np.asarray(decisions, dtype=np.float64)
        count = self.cost.n_decisions(outcomes.reshape(len(rows), -1).shape[1])
        wanted = outcomes.shape if count == outcomes.reshape(len(rows), -1).shape[1] else (len(rows),)
        if decisions.shape != wanted and decisions.shape != (len(rows), count):
            raise SurefootError(f"decisions must have the shape {wanted}, got {decisions.shape}")
        if not np.isfinite(decisions).all():
            raise SurefootError("decisions must be finite, got NaN or infinity")
        pairs = decisions.reshape(len(rows), -1), outcomes.reshape(len(rows), -1)
        return self.cost.mean(*pairs, np.full(len(rows), 1.0 / len(rows)))


def _run(
    data: _Data,
    methods: tuple[Method, ...],
    splits: tuple[Split, ...],
    on_progress: Callable[[ComparisonProgress], None] | None,
) -> tuple[tuple[Trial, ...], str]:
    """Return the trials of whole splits, and a sentence that says whether these are all."""
    finished: list[Trial] = []
    total = len(methods) * len(splits)
    done = 0
    for k, split in enumerate(splits):
        current: list[Trial] = []
        try:
            sample = split.sampled(data.most_rows, rng_for(data.seed, "compare", "rows", k))
            yardstick = _constant_cost(data, sample)
            for method in methods:
                if on_progress is not None:
                    on_progress(ComparisonProgress(done, total, method.name, split.name))
                current.append(_trial(data, method, k, split, sample, yardstick))
                done += 1
        except KeyboardInterrupt:
            if k < 2:
                raise
            return tuple(finished), f"Interrupted: {k} of {len(splits)} splits are done."
        finished += current
    return tuple(finished), f"All {len(splits)} splits are done."


def _constant_cost(data: _Data, split: Split) -> float:
    """Return what the constant order costs, the yardstick of the prescriptiveness score."""
    model = SAA(cost_function=data.cost)
    model.fit(np.zeros((len(split.train), 1)), data.outcomes[split.train])
    return data.mean_cost(model.predict(np.zeros((len(split.test), 1))), split.test)


def _trial(data: _Data, method: Method, k: int, split: Split, sample: Split, yardstick: float) -> Trial:
    """Fit and judge one method on a sample of split k; whatever goes wrong is in the answer."""
    train = some_of(sample.train, method.most_rows, rng_for(data.seed, "compare", method.name, k))
    began = time.perf_counter()
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            model = clone(method.estimator)
            model.fit(taken(data.X, train), data.outcomes[train])
            cost = data.mean_cost(model.predict(taken(data.X, sample.test)), sample.test)
        # Not narrower: methods are the user's own, and one that fails must not end the others.
        except Exception as error:
            cost, reason = None, f"{type(error).__name__}: {error}"
        else:
            reason = ""
    return Trial(
        method=method.name, split=k, name=split.name, train=len(split.train), test=len(split.test),
        learned=len(train), judged=len(sample.test), cost=cost, yardstick=yardstick,
        seconds=time.perf_counter() - began, reason=" ".join(reason.split()),
        notes=tuple(dict.fromkeys(str(one.message) for one in caught)),
    )  # fmt: skip
