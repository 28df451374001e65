"""The runner: any backend, any interruption, the same results."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from reproduction import METHODS, ResultStore, Suite, SyntheticSet, YazSet, run_cell, run_suite
from reproduction.methods import Method
from reproduction.runner import Progress, clock, run_one_line
from surefoot.exceptions import InvalidInputError, MissingExtraError


@pytest.fixture(scope="module")
def reference(tmp_path_factory, small_suite, numbers):
    """The small suite, run once and never interrupted."""
    with ResultStore(tmp_path_factory.mktemp("whole") / "results.sqlite") as store:
        outcome = run_suite(small_suite(), store)
        assert (outcome.ran, outcome.failed, outcome.refused) == (16, 0, 0)
        return numbers(store.results())


def test_a_cell_alone_equals_the_cell_in_the_run(reference, small_suite, numbers):
    for cell in reversed(list(small_suite().cells())):
        assert numbers([run_cell(cell)]) == {cell.key: reference[cell.key]}


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_backends_give_equal_numbers(backend, reference, tmp_path, small_suite, numbers):
    with ResultStore(tmp_path / "results.sqlite") as store:
        run_suite(small_suite(), store, jobs=2, backend=backend)
        assert numbers(store.results()) == reference


class _Stopping:
    """Raises as Ctrl-C would after some results have been stored."""

    def __init__(self, after):
        self.after = after

    def __call__(self, progress):
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("jobs", "backend"), [(1, "loky"), (2, "threading")])
def test_interrupted_at_random_and_resumed_gives_the_same(
    jobs, backend, reference, tmp_path, small_suite, numbers
):
    rng = np.random.default_rng(4)
    ran = []
    with ResultStore(tmp_path / "results.sqlite") as store:
        for _ in range(20):
            before = {result.key for result in store.results()}
            try:
                run_suite(small_suite(), store, jobs=jobs, backend=backend,
                          on_progress=_Stopping(int(rng.integers(1, 5))))  # fmt: skip
            except KeyboardInterrupt:
                ran.append(len(store.results()) - len(before))
                assert before <= {result.key for result in store.results()}
            else:
                break
        assert len(ran) > 2
        assert numbers(store.results()) == reference
        assert run_suite(small_suite(), store).ran == 0


SCRIPT = """
import sys
from reproduction import ResultStore, Suite, SyntheticSet, chosen_methods, run_suite
if __name__ == "__main__":
    data = tuple(SyntheticSet(n, 4, 1.0, test=60) for n in (8, 12))
    suite = Suite(data, chosen_methods(["ours-fixed-2", "saa", "erm-vertex", "oracle"]), 40)
    with ResultStore(sys.argv[1]) as store:
        run_suite(suite, store, on_progress=lambda progress: print(progress.done, flush=True))
"""


def test_killed_and_resumed_loses_nothing_and_repeats_nothing(tmp_path, small_suite, numbers):
    path, script = tmp_path / "results.sqlite", tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(path)]
    # ``reproduction`` is not installed: it is found from the root of the repository.
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        for line in process.stdout:
            if int(line) >= 25:
                os.kill(process.pid, signal.SIGKILL)
                break
    with ResultStore(path) as store:
        kept = store.results()
        assert 25 <= len(kept) < 320
        outcome = run_suite(small_suite(40), store)
        assert outcome.ran == 320 - len(kept)
        whole = store.results()
    assert whole[: len(kept)] == kept  # times and all: nothing was run twice
    alone = {cell.key: cell for cell in small_suite(40).cells()}
    for result in (whole[3], whole[-1]):
        assert numbers([run_cell(alone[result.key])]) == numbers([result])


@dataclass(frozen=True)
class Broken(Method):
    """Fails on every second repetition."""

    name: str = "broken"
    label: str = "Broken"
    mended: bool = False

    def estimator(self, sample, seed):
        if not self.mended and sample.y[0] != SyntheticSet(8, 4, 1.0, test=60).load(0).y[0]:
            raise ZeroDivisionError("no luck\ntoday")
        return METHODS[6].estimator(sample, seed)

    def settings(self):
        return {"method": "Broken"}


@pytest.mark.parametrize(("jobs", "backend"), [(1, "loky"), (2, "threading")])
def test_a_failing_method_is_recorded_and_does_not_stop_the_run(jobs, backend, tmp_path, small_suite):
    base = small_suite(2, ["saa"])
    suite = Suite(base.data[:1], (Broken(), *base.methods), 2)
    seen = []
    with ResultStore(tmp_path / "results.sqlite") as store:
        outcome = run_suite(suite, store, jobs=jobs, backend=backend, on_progress=seen.append)
        assert (outcome.ran, outcome.failed) == (4, 1)
        assert seen[-1].failed == 1
        assert seen[-1].done == seen[-1].total == 4
        (failed,) = [result for result in store.results() if result.status == "failed"]
        assert failed.error == "ZeroDivisionError: no luck today"
        assert failed.repetition == 1
        assert run_suite(suite, store).ran == 0  # a failure is a result, too
        mended = Suite(base.data[:1], (Broken(mended=True), *base.methods), 2)
        assert run_suite(mended, store, retry_failed=True).ran == 1
        assert {result.status for result in store.results()} == {"done"}


def test_refusals_are_counted_and_settled(tmp_path):
    suite = Suite((YazSet("fish", 30),), (METHODS[-1],), 1)
    with ResultStore(tmp_path / "results.sqlite") as store:
        assert run_suite(suite, store).refused == 1
        assert run_suite(suite, store, retry_failed=True).ran == 0


def test_growing_a_suite_runs_only_what_is_new(tmp_path, small_suite):
    with ResultStore(tmp_path / "results.sqlite") as store:
        assert run_suite(small_suite(1, ["saa"]), store).ran == 2
        assert run_suite(small_suite(2, ["saa", "oracle"]), store).ran == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "jobs must be >= 1, got 0"),
        ({"backend": "slurm"}, "backend must be .*'slurm'"),
    ],
)
def test_options_are_checked(options, message, tmp_path, small_suite):
    with (
        ResultStore(tmp_path / "results.sqlite") as store,
        pytest.raises(InvalidInputError, match=message),
    ):
        run_suite(small_suite(), store, **options)


@pytest.mark.parametrize(("backend", "package"), [("ray", "ray"), ("dask", "dask")])
def test_a_missing_cluster_package_is_named(backend, package, tmp_path, monkeypatch, small_suite):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with ResultStore(tmp_path / "results.sqlite") as store:
        with pytest.raises(MissingExtraError, match=f"run pip install .*{package}"):
            run_suite(small_suite(), store, jobs=2, backend=backend)
        assert store.results() == []


@pytest.mark.nightly  # Ray takes long to start; tests/panels/test_running.py starts it each time
@pytest.mark.filterwarnings("default")  # Ray's own
def test_a_local_ray_cluster_of_two_workers_gives_equal_numbers(
    reference, tmp_path, small_suite, numbers
):
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    with ResultStore(tmp_path / "results.sqlite") as store:
        run_suite(small_suite(), store, jobs=2, backend="ray")
        assert numbers(store.results()) == reference


def test_the_line_of_progress_says_how_far_and_how_long(made_up):
    line = run_one_line(Progress(5, 1200, 2, 95.0, made_up("saa", 1.0)), time.monotonic() - 7)
    assert line == "5 of 1,200 cells, 2 failed, 7 s gone, about 1 min 35 s left"
    assert clock(7322) == "2 h 2 min"


def test_time_left_falls_to_zero(tmp_path, small_suite):
    seen = []
    with ResultStore(tmp_path / "results.sqlite") as store:
        run_suite(small_suite(), store, on_progress=seen.append)
    assert [progress.done for progress in seen] == list(range(1, 17))
    assert seen[-1].seconds_left == 0.0
    assert seen[0].seconds_left > 0
