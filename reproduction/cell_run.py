"""Run one cell: load, fit (timed), decide (timed apart), judge."""

import time
import warnings
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from reproduction.data import Sample
from reproduction.methods import Facts, Method
from reproduction.result import DONE, FAILED, REFUSED, Result, machine, versions
from reproduction.suite import Cell
from surefoot.datasets import synthetic
from surefoot.exceptions import SurefootWarning
from surefoot.typing import FloatArray


def mean_cost(decisions: FloatArray, y: FloatArray, backorder: float, holding: float) -> float:
    """Return the mean newsvendor cost of decisions.

    >>> mean_cost(np.array([2.0, 2.0]), np.array([3.0, 1.0]), 1.0, 0.2)
    0.6
    """
    over = decisions - y
    return float(np.maximum(holding * over, -backorder * over).mean())


@lru_cache(maxsize=64)
def _warm_up(method: Method) -> None:
    """Load compiled kernels before the first timed fit of a process: wide data and tall."""
    for n, s in ((12, 3), (6, 9)):
        data = synthetic(n, s, test=2)
        sample = Sample(data.X, data.y, data.X_test, data.y_test, 1.0, 0.2, False, data)
        # Whether the method can treat the cell is for the cell to say.
        with suppress(Exception):
            method.estimator(sample, 0).fit(data.X, data.y).predict(data.X_test)


def quiet() -> ExitStack:
    """One thread of linear algebra and no warnings: what they say is in a result's note.

    Cells run side by side, so threads inside them would only fight; and the last digits of a
    product depend on their number.
    """
    stack = ExitStack()
    stack.enter_context(threadpool_limits(limits=1, user_api="blas"))
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore", SurefootWarning)
    return stack


def run_cell(cell: Cell) -> Result:
    """Run a cell. Whatever goes wrong in the method is in the result; nothing is raised.

    Examples
    --------
    >>> from reproduction import Cell, SyntheticSet, chosen_methods, run_cell
    >>> (saa,) = chosen_methods(["saa"])
    >>> result = run_cell(Cell(SyntheticSet(n=10, s=5, noise_variance=1.0, test=100), saa, 0))
    >>> result.status, result.cost > 0.2
    ('done', True)
    """
    sample = cell.data.load(cell.repetition)
    reason = cell.method.why_not(sample)
    if reason is not None:
        return _result(cell, sample, REFUSED, error=reason)
    try:
        _warm_up(cell.method)
        model = cell.method.estimator(sample, cell.seed)
        began = time.perf_counter()
        model.fit(sample.X, sample.y)
        fitted = time.perf_counter()
        decisions = np.asarray(model.predict(sample.X_test), dtype=np.float64)
        decided = time.perf_counter()
        facts = cell.method.facts(model)
    # Not narrower: a night's run must outlive any error of any method, and shows it in the report.
    except Exception as error:
        return _result(cell, sample, FAILED, error=f"{type(error).__name__}: {error}")
    if decisions.shape != sample.y_test.shape or not np.isfinite(decisions).all():
        return _result(cell, sample, FAILED, error="decisions must be finite, one for each row")
    cost = mean_cost(decisions, sample.y_test, sample.backorder, sample.holding)
    seconds = (fitted - began, decided - fitted)
    return _result(cell, sample, DONE, cost=cost, seconds=seconds, facts=facts)


def run_isolated(cell: Cell) -> Result:
    """Run a cell in a process of its own."""
    with quiet():
        return run_cell(cell)


def _result(
    cell: Cell,
    sample: Sample,
    status: str,
    *,
    cost: float | None = None,
    seconds: tuple[float | None, float | None] = (None, None),
    facts: Facts | None = None,
    error: str = "",
) -> Result:
    parts, facts = cell.data.parts, facts or Facts()
    return Result(
        key=cell.key, kind=parts.kind, n=parts.n, s=sample.X.shape[1],
        noise_variance=parts.noise_variance, contexts=parts.contexts,
        coefficients=parts.coefficients, product=parts.product, method=cell.method.name,
        repetition=cell.repetition, status=status, cost=cost, fit_seconds=seconds[0],
        predict_seconds=seconds[1], gap=facts.gap, radius=facts.radius,
        note=" ".join(facts.note.split()), error=" ".join(error.split()), machine=machine(),
        versions=versions(), finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
