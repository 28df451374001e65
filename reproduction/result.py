"""What one cell found, and on what machine."""

import importlib.metadata
import os
import platform
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

from surefoot.version import __version__

DONE, REFUSED, FAILED = "done", "refused", "failed"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "highspy")


@dataclass(frozen=True)
class Result:
    """One row of results.

    Attributes
    ----------
    key, kind, n, s, noise_variance, contexts, coefficients, product, method, repetition
        The cell, whole and part by part.
    status
        "done"; "refused": the method said before any work that it cannot treat the data; or
        "failed": it raised.
    cost
        Mean cost on the test rows.
    fit_seconds, predict_seconds
        Wall-clock time of ``fit`` alone and of the decisions for all test rows.
    gap
        Certified gap of the training problem. It says how well the problem was solved, not how
        well the policy does on new rows.
    radius
        The radius used, chosen or given.
    note, error
        The method's own sentence; why it refused or failed.
    machine, versions, finished
        Where, with what, when (UTC).
    """

    key: str
    kind: str
    n: int
    s: int
    noise_variance: float | None
    contexts: str | None
    coefficients: str | None
    product: str | None
    method: str
    repetition: int
    status: str
    cost: float | None
    fit_seconds: float | None
    predict_seconds: float | None
    gap: float | None
    radius: float | None
    note: str
    error: str
    machine: str
    versions: str
    finished: str

    @property
    def data_key(self) -> str:
        """The cell's key without method and repetition."""
        return self.key.rsplit("/", 2)[0]


COLUMNS = tuple(field.name for field in fields(Result))
_HINTS = get_type_hints(Result)


def read_result(row: dict[str, str]) -> Result:
    """Return the result that a row of results.csv holds."""
    values: dict[str, Any] = {}
    for name in COLUMNS:
        text, hint = row[name], _HINTS[name]
        if hint is str:
            values[name] = text
        elif hint is int:
            values[name] = int(text)
        elif text == "":
            values[name] = None
        else:
            values[name] = float(text) if hint == float | None else text
    return Result(**values)


@lru_cache(maxsize=1)
def machine() -> str:
    """Say on what machine this runs."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = models[0].split(":", 1)[1].strip() if models else name
    return f"{name}, {os.cpu_count()} cores, {platform.system()}"


@lru_cache(maxsize=1)
def versions() -> str:
    """Say with which versions this runs."""
    parts = [f"surefoot {__version__}", f"Python {platform.python_version()}"]
    return ", ".join(parts + [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES])
