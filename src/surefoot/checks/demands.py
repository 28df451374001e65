"""What all checks share: demands, rows to try parts on, and what every part must keep."""

import dataclasses
import inspect
import math
import numbers
import random
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from surefoot.ambiguity import AffineForm, AmbiguitySet
from surefoot.costs import Cost
from surefoot.exceptions import (
    ConvergenceWarning,
    MissingExtraError,
    ModelFileError,
    SurefootError,
)
from surefoot.io import is_registered, pack, unpack
from surefoot.nominals import Nominal
from surefoot.policies import Policy
from surefoot.problem import Problem
from surefoot.solvers import Solution, Solver
from surefoot.tracing import load_jax
from surefoot.typing import FloatArray

# Relative slack of comparisons that rounding may touch.
SLACK = 1e-9
# How far decisions are from the typical one, in its units: what holds close by may not hold far out.
WIDTHS = (0.3, 30.0)
# What has methods of somebody else's.
KINDS: tuple[type, ...] = (Cost, Policy, Nominal, AmbiguitySet, AffineForm, Solver)
# Errors of others are quoted up to this length.
LONGEST_QUOTE = 160


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


def numbers_of(value: Any, what: str) -> FloatArray:
    """Return an array of floats, or refuse what is none: others lose their digits or their gradient."""
    good = isinstance(value, np.ndarray | np.floating) and np.issubdtype(value.dtype, np.floating)
    got = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
    demand(good, f"{what} must be an array of floats, got {got}")
    return np.asarray(value)


def number_of(value: Any, what: str) -> float:
    """Return a number that may be infinite, or refuse what is none."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    demand(real and not math.isnan(value), f"{what} must be a number, got {value!r}")
    return float(value)


def reason_of(value: Any) -> str | None:
    """Return what ``why_not`` says, or refuse what is no reason."""
    fits = value is None or (isinstance(value, str) and value.strip() != "")
    demand(fits, f"why_not must return a sentence, or None where nothing is wrong, got {value!r}")
    return value if isinstance(value, str) else None


def some_rows(seed: int = 0, n: int = 12, products: int = 1) -> tuple[FloatArray, FloatArray]:
    """Return contexts and skewed outcomes to try a part on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 2.0
    return X, X @ rng.normal(size=(3, products)) + rng.gumbel(size=(n, products)) + 5.0


def guarded(run: Callable[[Any], None], part: Any) -> None:
    """Run a check; what a method of the part raises names the method and what it must do.

    The global generators belong to the user: nobody moves them.
    """
    _load_jax()
    before = _global_state()
    try:
        with np.errstate(all="ignore"):  # what is not finite is found and named
            run(part)
    except (ConformanceError, MissingExtraError):
        raise
    except Exception as error:  # whatever somebody else's code raises is quoted to them
        raise ConformanceError(_blamed(run, part, error)) from error
    demand(
        _global_state() == before,
        f"{type(part).__name__} must leave the global random state alone, and draw from the "
        "generator or the seed that it is handed",
    )


def _load_jax() -> None:
    """Load JAX, which moves the global generators when it is first imported: no part is to blame."""
    with suppress(MissingExtraError):
        load_jax("checks")


def _global_state() -> tuple[Any, ...]:
    """Return where NumPy's and Python's global generators stand."""
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002  looked at, never drawn from
    parts = [*state.pop("state").values(), *state.values()]
    return random.getstate(), *(np.asarray(part).tobytes() for part in parts)


def _blamed(run: Callable[[Any], None], part: Any, error: Exception) -> str:
    """Return a sentence on the method that raised an error: what it must do, and what it did."""
    said = next(iter(str(error).strip().splitlines()), "")[:LONGEST_QUOTE].rstrip(".")
    got = f"got {type(error).__name__}: {said}." if said else f"got {type(error).__name__}."
    hint = ""
    if run.__name__.endswith("in_jax"):
        hint = " with the functions of xp, which is numpy or jax.numpy"
    found = _method(part, error)
    if found is not None:
        return f"{found[0]} must {found[1]}{hint}, {got}"
    kept = (run.__doc__ or "").splitlines()[0].rstrip(".")
    return f"{type(part).__name__} must keep this{hint}: {kept}, {got}"


def _method(part: Any, error: Exception) -> tuple[str, str] | None:
    """Return the innermost method that somebody else wrote and an error came through, and its duty."""
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner, code = frame.f_locals.get("self"), frame.f_code
        if not isinstance(owner, KINDS):
            continue
        if owner is not part and type(owner).__module__.startswith("surefoot."):
            continue
        own = (item for base in type(owner).__mro__ for item in vars(base).items())
        name = next((key for key, f in own if getattr(f, "__code__", None) is code), code.co_name)
        bases = [base for base in type(owner).__mro__ if base.__module__.startswith("surefoot.")]
        texts = [vars(base)[name].__doc__ for base in reversed(bases) if name in vars(base)]
        if texts and texts[0]:
            found = f"{type(owner).__name__}.{name}", _duty(texts[0])
    return found


def _duty(text: str) -> str:
    """Return the first line of a docstring as what a method must do."""
    line = text.strip().splitlines()[0].rstrip(".")
    line = line[0].lower() + line[1:]
    asked = line.split()[0] in ("return", "draw", "solve", "raise", "refuse", "check")
    return line if asked else f"say {line}"


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
    demand("__dataclass_fields__" in vars(type(part)) or not _adds_fields(type(part)), promise)
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


def _adds_fields(kind: type) -> bool:
    """Whether a class names fields of its own, which without its own @dataclass are none."""
    return any("ClassVar" not in str(hint) for hint in inspect.get_annotations(kind).values())


def solved(solver: Solver, problem: Problem, seed: int) -> Solution:
    """Return the answer; that it is not good enough is no fault of its form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solver.solve(problem, seed)
