"""What all checks share: demands, rows to try parts on, and what every part must keep."""

import dataclasses
import warnings
from typing import Any

import numpy as np

from surefoot.costs import Cost
from surefoot.exceptions import (
    ConvergenceWarning,
    ModelFileError,
    SurefootError,
)
from surefoot.io import is_registered, pack, unpack
from surefoot.problem import Problem
from surefoot.solvers import Solution, Solver
from surefoot.typing import FloatArray

# Relative slack of comparisons that rounding may touch.
SLACK = 1e-9
# How far decisions are from the typical one, in its units: what holds close by may not hold far out.
WIDTHS = (0.3, 30.0)


class ConformanceError(SurefootError, AssertionError):
    """A part does not keep what its class promises; the message says which promise."""


def demand(holds: bool, promise: str) -> None:
    """Raise with a promise that does not hold."""
    if not holds:
        raise ConformanceError(f"{promise}.")


def close(a: Any, b: Any, promise: str, slack: float = SLACK) -> None:
    """Raise unless two arrays agree."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    near = a.shape == b.shape and np.allclose(a, b, rtol=slack, atol=slack)
    demand(bool(near), f"{promise}, got {a} and {b}")


def some_rows(seed: int = 0, n: int = 12, products: int = 1) -> tuple[FloatArray, FloatArray]:
    """Return contexts and skewed outcomes to try a part on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 2.0
    return X, X @ rng.normal(size=(3, products)) + rng.gumbel(size=(n, products)) + 5.0


def outcomes_of(cost: Cost) -> int:
    """Return a number of outcomes that a cost takes."""
    fitting = [count for count in (1, 2, 3, 4) if cost.why_not(count) is None]
    demand(bool(fitting), "why_not must be None for some number of outcomes up to 4")
    return fitting[0]


def saved(part: Any) -> None:
    """A registered part comes back from JSON and arrays as it was; one with a function cannot."""
    arrays: dict[str, Any] = {}
    if not is_registered(part):
        return
    try:
        again = unpack(pack("part", part, arrays), arrays)
    except ModelFileError as error:
        if any(callable(getattr(part, field.name)) for field in dataclasses.fields(part)):
            return
        raise ConformanceError(f"a registered part must be one that can be saved: {error}") from error
    demand(again == part, f"a registered part must come back equal, got {again!r} for {part!r}")


def frozen(part: Any) -> None:
    """A part is a frozen dataclass, so that it can be compared, hashed and shared between threads."""
    promise = f"{type(part).__name__} must be a frozen dataclass"
    demand(dataclasses.is_dataclass(part), promise)
    for field in dataclasses.fields(part)[:1]:
        try:
            setattr(part, field.name, getattr(part, field.name))
        except dataclasses.FrozenInstanceError:
            continue
        raise ConformanceError(f"{promise}.")
    try:
        hash(part)
    except TypeError as error:
        raise ConformanceError(f"{type(part).__name__} must be hashable, got {error}.") from error


def solved(solver: Solver, problem: Problem, seed: int) -> Solution:
    """Return the answer; that it is not good enough is no fault of its form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solver.solve(problem, seed)
