"""Small random problems that tests of every layer share."""

import gc
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from surefoot import Box, Problem, WassersteinBall
from surefoot.ambiguity import WassersteinForm
from surefoot.costs import Newsvendor
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms
from surefoot.tracing import keep_compiled, load_jax
from tests.sweeps import mark_sweeps

# The programs that tests have JAX compile are small and many: all are kept, for the other worker, for
# processes that tests start, and for the next run. JAX reads the variable when it is imported.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Every push tries a few examples of each law; ``make attack`` tries many.
PROFILE = os.environ.get("SUREFOOT_LAWS", "push")
# Matrices of tests are small and every core has a worker: threads of BLAS and OpenMP would wait for each other. What
# is loaded is told; what is loaded or started later reads the variables. ``make attack`` has threads as users do.
if PROFILE == "push":
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    threadpool_limits(1)
# Tests compile long and compute little: without its fusion emitters, LLVM's optimisations and threads of its
# own XLA gets their tests through in two thirds of the time. ``make attack`` compiles them as users do. A flag that
# XLA does not know ends the process: only versions that have these are given them.
QUICKLY_COMPILED = (
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0"
    " --xla_cpu_parallel_codegen_split_count=1"
)
with suppress(PackageNotFoundError):
    if PROFILE == "push" and version("jaxlib").startswith(("0.8.", "0.9.", "0.10.")):
        os.environ.setdefault("XLA_FLAGS", QUICKLY_COMPILED)
with suppress(ImportError):  # MissingExtraError is one
    keep_compiled(load_jax("A test"))

# The same code gets the same answer on every push, on every machine; what is new is found at night.
settings.register_profile("push", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=200, deadline=None)
settings.load_profile(PROFILE)

# With SUREFOOT_WITHOUT_EXTRAS=1 the suite runs in an environment with the core's dependencies alone.
WITHOUT_EXTRAS = os.environ.get("SUREFOOT_WITHOUT_EXTRAS") == "1"
EXTRA = re.compile(
    r"No module named '(cvxpy|jax|matplotlib|openpyxl|optax|pandas|polars|pyarrow|rich|river|typer)\b"
)


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is nightly
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most cases of sweeps to the night."""
    mark_sweeps(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Keep the garbage collector away from what is collected, which stays to the end: it took a third."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> object:
    """Skip a test file that imports a missing extra, where that is asked for."""
    report = yield
    missing = EXTRA.search(str(report.longrepr)) if WITHOUT_EXTRAS and report.failed else None
    if missing:
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, missing[0])
        _forget_half_imported(str(collector.path))
    return report


def _forget_half_imported(path: str) -> None:
    """Drop what pytest leaves of a file that it could not import: another would find names missing."""
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == path:
            del sys.modules[name]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> object:
    """Skip a test whose fixture ran into a missing extra, where that is asked for."""
    with _skipped_without_extras():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> object:
    """Skip a test that ran into a missing extra, where that is asked for."""
    with _skipped_without_extras():
        return (yield)


@contextmanager
def _skipped_without_extras() -> Iterator[None]:
    try:
        yield
    except ImportError as error:  # MissingExtraError is one
        if WITHOUT_EXTRAS:
            pytest.skip(str(error))
        raise


def _problem(
    seed: int = 0,
    *,
    rows: int = 8,
    columns: int = 3,
    backorder: float = 1.0,
    holding: float = 0.3,
    smoothing: float = 0.0,
    intercept: bool = True,
    box: str | None = None,
    weighted: bool = False,
    **ball: object,
) -> Problem:
    """A random problem in its own units; ``box`` is "closed", "open" (above) or None."""
    rng = np.random.default_rng([seed, rows, columns])
    X = rng.normal(size=(rows, columns)) + rng.normal(size=columns)
    y = X @ rng.normal(size=columns) + rng.normal(size=rows) + 1.0
    support = None
    if box is not None:
        # Some rows touch the box and others have room.
        lower = X.min(axis=0) - 0.2 * (np.arange(columns) % 2)
        upper = X.max(axis=0) + 0.3 * (np.arange(columns) % 3)
        if box == "open":
            upper[::2] = np.inf
        support = Box(lower, upper, outcome=(y.min() - 0.5, math.inf if box == "open" else y.max()))
    weights = rng.uniform(0.2, 2.0, size=rows) if weighted else None
    options = {"radius": 0.3, "scale": False, "support": support, **ball}
    return Problem(
        Newsvendor(backorder, holding, smoothing),
        Linear(intercept=intercept),
        Empirical(X, y, weights),
        WassersteinBall(**options),
    )


def _affine(seed: int = 0, **options: object) -> WassersteinForm:
    """The form of such a problem, in the user's own units."""
    return affine_forms(_problem(seed, **options))[0].in_plain_units()


@pytest.fixture(autouse=True)
def no_figures() -> None:
    """Close what earlier tests drew: matplotlib warns of the twenty-first open figure."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


@pytest.fixture(scope="session")
def make_problem() -> Callable[..., Problem]:
    """Return the maker of random problems."""
    return _problem


@pytest.fixture(scope="session")
def make_affine() -> Callable[..., WassersteinForm]:
    """Return the maker of random affine forms."""
    return _affine
