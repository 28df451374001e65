"""Measurements: kept once, read back, and of the right work."""

import numpy as np
import pytest

from reproduction import METHODS, ResultStore, SyntheticSet, timing
from reproduction.timing import measure, pass_times, row_times, time_pass


def test_measurements_are_kept_and_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "VARIANCES", (1.0,))
    monkeypatch.setattr(timing, "SHORT_RUNS", 2)
    with ResultStore(tmp_path / "results.sqlite") as store:
        names = list(measure(store, sizes=(6, 9), columns=(4,), repetitions=2))
        assert names == ["row/s=4/n=6", "row/s=4/n=9", "pass/instances=4"]
        assert list(measure(store, sizes=(6, 9), columns=(4,), repetitions=2)) == []
        kept = store.timings()
    assert [(row.s, row.n) for row in row_times(kept)] == [(4, 6), (4, 9)]
    for row in row_times(kept):
        assert min(row.steps, row.decisions, row.certified, row.shapley, row.shapley_decisions) > 0
    (whole,) = pass_times(kept)
    assert whole.instances == 4
    assert whole.largest_gap <= 0.01
    assert "machine" in kept["row/s=4/n=6"]


def test_a_pass_solves_every_instance():
    data = (SyntheticSet(6, 4, 1.0), SyntheticSet(8, 4, 1.0))
    found = time_pass(3, data)
    assert found.instances == 6
    assert found.threads >= 1
    assert found.certified > 0


def test_printed_steps_take_the_steps_of_the_algorithm(monkeypatch):
    seen = []
    monkeypatch.setattr(timing, "literal_steps", lambda *arguments: seen.append(arguments))
    literal = next(method for method in METHODS if method.name == "literal")
    sample = SyntheticSet(6, 4, 1.0, test=5).load(0)
    timing.printed_steps(sample, literal, 0)()
    rows, outcomes, draws = seen[0][:3]
    assert np.array_equal(np.sort(rows, axis=0), np.sort(sample.X, axis=0))
    assert np.array_equal(np.sort(outcomes), np.sort(sample.y))
    assert len(draws) == 10_000
    assert seen[0][8:13] == (0.01, 0.01, 0.01, 10, pytest.approx(1e-3))
