"""The coverage experiment: a small cell, its closed forms, and the committed table."""

import csv
import importlib
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from reproduction.coverage import HALF_SIDE, RULES, World, coverage_cell
from surefoot.costs import Newsvendor

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def world():
    return World(3, Newsvendor(1.0, 0.2))


def test_expected_cost_is_that_of_a_large_sample(world):
    rng = np.random.default_rng(0)
    X, y = world.sample(rng, 400_000)
    theta, t = world.theta * 0.7, 0.3
    r = X @ theta + t - y
    assert world.expected_cost(theta, t) == pytest.approx(np.maximum(0.2 * r, -r).mean(), rel=0.03)


def test_no_policy_beats_the_best_one(world):
    best = world.expected_cost(world.theta, world.intercept)
    for move in (0.1, -0.1):
        assert world.expected_cost(world.theta + move * np.eye(3)[0], world.intercept) > best
        assert world.expected_cost(world.theta, world.intercept + move) > best


def test_contexts_fill_the_cube(world):
    X = world.contexts(np.random.default_rng(1), 50_000)
    assert X.std(axis=0) == pytest.approx(np.ones(3), abs=0.01)
    assert abs(X).max() <= HALF_SIDE
    assert world.diameter == pytest.approx(np.linalg.norm(np.full(3, 2 * HALF_SIDE)))


def test_bounds_bracket_the_distance_in_one_dimension():
    line = World(1, Newsvendor(1.0, 0.2))
    rng = np.random.default_rng(2)
    grid = np.linspace(-HALF_SIDE, HALF_SIDE, 20_001)
    brackets = []
    for _ in range(20):
        X = line.contexts(rng, 40)
        exact = wasserstein_distance(X[:, 0], grid)
        low, high = line.context_distance(X, rng)
        assert low <= exact * 1.01
        brackets.append((exact, high))
    exact, high = np.mean(brackets, axis=0)
    assert exact <= high <= 3 * exact


def test_a_small_cell_says_what_the_big_table_says():
    cell = {found.rule: found for found in coverage_cell(5, 100, repetitions=25, compatible=True)}
    assert tuple(cell) == RULES
    assert cell["profile"].score >= 0.8  # stated 95 %; three standard errors of 25 are 13 points
    assert cell["profile"].compatible >= 0.8
    assert cell["auto"].stated is None
    assert cell["paper"].share_of_max > 1
    assert cell["paper"].norm == pytest.approx(0.0, abs=1e-9)
    assert cell["paper"].certificate < 0.95  # a constant policy's certificate is its nominal cost
    assert cell["auto"].cost_ratio < cell["profile"].cost_ratio < cell["paper"].cost_ratio
    for found in cell.values():
        assert found.ball_low <= found.ball_high


def test_cells_repeat():
    assert coverage_cell(2, 30, repetitions=3) == coverage_cell(2, 30, repetitions=3)


@pytest.fixture(scope="module")
def rows():
    with (ROOT / "benchmarks" / "results" / "coverage.csv").open(newline="") as file:
        return list(csv.DictReader(file))


class TestCommittedTable:
    def test_every_cell_and_rule_is_there(self, rows):
        cells = {(int(row["columns"]), int(row["rows"]), row["rule"]) for row in rows}
        assert cells == {
            (d, n, rule) for d in (1, 2, 5, 20, 100) for n in (30, 100, 500) for rule in RULES
        }

    def test_profile_covers_as_stated_everywhere(self, rows):
        for row in rows:
            if row["rule"] == "profile":
                error = 4 * math.sqrt(0.95 * 0.05 / int(row["repetitions"]))
                assert abs(float(row["score"]) - 0.95) <= error

    def test_paper_covers_nothing_in_high_dimension(self, rows):
        high = [
            row
            for row in rows
            if row["rule"] == "paper" and int(row["columns"]) >= 20 and int(row["rows"]) >= 100
        ]
        assert high
        assert all(float(row["ball_high"]) == 0.0 for row in high)

    def test_the_page_shows_the_committed_numbers(self, monkeypatch):
        monkeypatch.syspath_prepend(str(ROOT))
        bench = importlib.import_module("benchmarks.coverage")
        shown = bench.PAGE.read_text()
        assert bench.page(shown) == shown
