"""Tasks on processes and clusters: the same bits everywhere, whoever is killed on the way."""

import os
import signal
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import parallel_config

from surefoot import fit_many
from surefoot.comparison import RollingWindow
from surefoot.exceptions import InvalidInputError
from surefoot.panels import panel_fit, sources

from .conftest import panel

BY = ["shop", "product"]
BACKENDS = ["loky", "dask", pytest.param("ray", marks=pytest.mark.nightly)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A panel in Parquet files, a folder for each shop."""
    place = tmp_path_factory.mktemp("panel")
    for shop, rows in panel(shops=("east", "north", "south"), products=(1, 2)).groupby("shop"):
        (place / f"shop={shop}").mkdir()
        rows.drop(columns="shop").to_parquet(place / f"shop={shop}" / "part-0.parquet", index=False)
    return place


@pytest.fixture(scope="module")
def alone(folder, quick):
    """The policies as this process fits them."""
    return fit_many(folder, BY, "sales", model=quick, time="date")


@contextmanager
def local_cluster(backend):
    """Two workers on this machine, and joblib pointed to them."""
    if backend == "loky":
        with parallel_config(backend=backend, n_jobs=2):
            yield
    elif backend == "dask":
        distributed = pytest.importorskip("distributed")
        with (
            distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None),
            parallel_config(backend=backend),
        ):
            yield
    else:
        ray = pytest.importorskip("ray")
        pytest.importorskip("ray.util.joblib").register_ray()
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=10**8)
        try:
            with parallel_config(backend=backend):
                yield
        finally:
            ray.shutdown()


@contextmanager
def at_most(seconds, waiting_for):
    """Fail with a message after so long: Dask waits for ever when no worker comes back."""

    def give_up(number, frame):
        raise TimeoutError(f"Nothing came for {seconds} s: {waiting_for}.")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def one_worker_is_killed(mark):
    """Return what fits a task, but kills the worker that comes first, as the system does without memory.

    A function within a function travels as it is. One of this file would be looked for by its name, and
    what workers find as ``tests`` may be of another package.
    """

    def fit_task(task, *arguments):
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return panel_fit.fit_task(task, *arguments)
        return os.kill(os.getpid(), signal.SIGKILL)

    return fit_task


def not_here(*arguments):
    raise AssertionError("This process must not read the data, nor fit.")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
@pytest.mark.filterwarnings("default")  # Ray's and Dask's own
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cluster_gives_the_same_bits_though_a_worker_is_killed(
    backend, folder, alone, quick, tmp_path, monkeypatch
):
    # Workers import their own: what is replaced here is what this process would do itself.
    monkeypatch.setattr(panel_fit, "fit_task", one_worker_is_killed(tmp_path / "killed"))
    monkeypatch.setattr(panel_fit, "fit_series", not_here)
    monkeypatch.setattr(sources, "_read_files", not_here)
    told = []
    with local_cluster(backend), at_most(240, f"the workers of {backend}, of which one was killed"):
        table = fit_many(
            folder, BY, "sales", model=quick, time="date", task_size=1, progress=told.append
        )
    assert (tmp_path / "killed").exists()
    assert [progress.tasks_done for progress in told] == [1, 2, 3]
    assert [(one.key, one.gap, one.digest) for one in table.records] == [
        (one.key, one.gap, one.digest) for one in alone.records
    ]
    frame = panel(shops=("east", "north", "south"), products=(1, 2))
    np.testing.assert_array_equal(table.decide(frame), alone.decide(frame))


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two", True])
def test_a_number_of_workers_that_is_none_is_refused(quick, n_jobs):
    rows = panel(shops=("north",), products=(1,))
    expected = (
        rf"n_jobs must be a number of workers \(1, 2, \.\.\.\) or -1 for all cores, got {n_jobs!r}"
    )
    with pytest.raises(InvalidInputError, match=expected):
        fit_many(rows, BY, "sales", model=quick, n_jobs=n_jobs)
    table = fit_many(rows, BY, "sales", model=quick, time="date")
    with pytest.raises(InvalidInputError, match=expected):
        table.evaluate(rows, RollingWindow(20, 5), n_jobs=n_jobs)
