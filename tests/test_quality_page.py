"""The tables of real tasks keep every cost ratio apart."""

import importlib

import pytest

page = pytest.importorskip("benchmarks.quality.real.page", reason="its tasks need pandas")


def test_cells_of_one_backorder_cost_are_told_apart_by_the_holding_cost(monkeypatch):
    Cell = importlib.import_module("benchmarks.quality.real.run").Cell
    chosen = [Cell("a", 20, 1.0, holding, repeat) for holding in (1.0, 5.0) for repeat in range(2)]
    told = {(cell, method.__name__): 2.0 for cell in chosen for method in page.METHODS}
    for cell in chosen:
        told[cell, "surefoot"] = 1.0 if cell.holding == 1.0 else 6.0
    monkeypatch.setattr(page, "known", lambda: told)
    monkeypatch.setattr(page, "cells", lambda makers: chosen)
    found = page.ratios(())
    assert {key: entry["surefoot"] for key, entry in found.items()} == pytest.approx(
        {("a", 20, 1.0, 1.0): 1.0, ("a", 20, 1.0, 5.0): 3.0}
    )
