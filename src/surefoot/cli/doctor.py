"""``surefoot doctor``: versions, engines, caches, and what to do about what is missing."""

import importlib
import importlib.metadata
import os
import platform
import tempfile
import time
from pathlib import Path

import numpy as np

from surefoot.cli.screen import Screen
from surefoot.engines.compiling import kernel_folder
from surefoot.estimators import RobustNewsvendor, load
from surefoot.version import __version__

_CORE = ("numpy", "scipy", "scikit-learn", "numba", "highspy", "threadpoolctl", "joblib")
# By extra: what it is for, and what it installs.
_EXTRAS = {
    "cli": ("the command line and pictures", ("typer", "rich", "polars", "openpyxl", "matplotlib")),
    "jax": ("costs and policies of one's own, a GPU", ("jax", "optax")),
    "exact": ("convex programs to compare with", ("cvxpy", "clarabel")),
    "panels": ("a policy for each series (--by), folders of Parquet", ("pyarrow",)),
    "online": ("river's drift detectors", ("river",)),
    "ray": ("panels on a Ray cluster", ("ray",)),
    "mlflow": ("MLflow", ("mlflow", "skops")),
}


def run(*, screen: Screen) -> None:
    """Look at everything once; say what is missing and what mends it."""
    versions = {name: _version(name) for name in _CORE}
    rows = [(name, version or "missing", "core") for name, version in versions.items()]
    fixes = ["pip install --upgrade surefoot"] if None in versions.values() else []
    for extra, (purpose, names) in _EXTRAS.items():
        optional = {name: _version(name) for name in names}
        rows += [(name, version or "not installed", f"[{extra}]") for name, version in optional.items()]
        if None in optional.values():
            fixes.append(f'For {purpose}: pip install "surefoot[{extra}]"')
        versions |= optional
    screen.say(f"Surefoot {__version__}, Python {platform.python_version()}, {platform.platform()}")
    screen.say(f"{os.cpu_count()} processors\n")
    screen.table(["package", "version", "part"], rows)
    checks = {
        "compiled engine": _try_fit(), "its kernels": _kernels(), "autodiff engine": _autodiff(),
    }  # fmt: skip
    screen.say()
    screen.table(["check", "result"], list(checks.items()))
    screen.say()
    for fix in fixes:
        screen.say(fix)
    screen.result(
        {
            "surefoot": __version__, "python": platform.python_version(),
            "versions": versions, "checks": checks, "fixes": fixes,
        }
    )  # fmt: skip


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _try_fit() -> str:
    """Fit, save and load a small model; return how that went."""
    began = time.perf_counter()
    X = np.arange(40.0).reshape(20, 2) % 7
    model = RobustNewsvendor(2.0, 1.0, radius=0.1).fit(X, X @ [1.0, 2.0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.surefoot"
        model.save(path)
        same = (load(path).predict(X) == model.predict(X)).all()
    word = "ok" if same else "the model read back decides otherwise: please report this"
    return f"{word} (fit, save, load in {time.perf_counter() - began:.1f} s)"


def _kernels() -> str:
    """Return where compiled kernels are kept, or what to do if they are not."""
    folder = kernel_folder()
    if folder.is_dir():  # the fit above has left some
        return f"kept in {folder}"
    return f"not kept: {folder} cannot be written; set NUMBA_CACHE_DIR to a folder of yours"


def _autodiff() -> str:
    """Return where JAX computes, if it is there."""
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        return "not installed"
    return f"ok, on {', '.join(str(device) for device in jax.devices())}"
