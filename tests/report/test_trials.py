"""Decisions on rows not seen: they are honest, and whatever fails is said."""

import numpy as np
import pytest
from sklearn.base import clone

from surefoot import Folds, RobustNewsvendor, RollingWindow
from surefoot.costs import Newsvendor, Quadratic
from surefoot.report import trials as module
from surefoot.report.rows import ReportRows
from surefoot.report.trials import MODEL, MOVES, OURS, default_splits, run_trials

COST = Newsvendor(1.0, 0.2)


def test_ours_decides_as_a_copy_that_had_not_seen_the_fold(linear, data, linear_facts):
    trial = linear_facts.trials
    split = default_splits(60, ordered=False).splits(60, 0)[2]
    fresh = clone(linear).fit(data.X[split.train], data.y[split.train])
    mine = trial.ours.decisions[np.isin(trial.judged, split.test)][:, 0]
    assert mine == pytest.approx(fresh.predict(data.X[split.test]))
    assert sorted(trial.judged) == list(range(60))


def test_costs_are_those_of_the_decisions(linear_facts, data):
    trial = linear_facts.trials
    for method in trial.answered:
        expected = COST.evaluate(method.decisions, data.y[trial.judged][:, None])
        assert method.costs == pytest.approx(expected)


def test_methods_are_named_and_all_answer(linear_facts):
    names = [method.name for method in linear_facts.trials.answered]
    assert names == [OURS, "erm", "erm-l1", "forest", "saa"]
    assert all(len(method.moved) == len(MOVES) for method in linear_facts.trials.answered)


def test_a_constant_order_does_not_mind_wrong_contexts(linear_facts):
    constant = linear_facts.trials.answered[-1]
    assert constant.moved == pytest.approx([constant.costs.mean()] * len(MOVES))


def test_with_time_the_later_half_is_judged_in_order(linear, data):
    rows = ReportRows.of(data.X, data.y, np.arange(60.0))
    found = run_trials(linear, COST, rows, None, 0)
    assert found.judged.tolist() == list(range(30, 60))
    assert "5 windows in order of time" in found.described


def test_splits_of_ones_own_are_followed(linear, data):
    rows = ReportRows.of(data.X, data.y)
    assert len(run_trials(linear, COST, rows, Folds(2, repeats=1), 0).judged) == 60
    assert len(run_trials(linear, COST, rows, RollingWindow(40, 5), 0).judged) == 20


def test_a_model_that_had_not_seen_the_rows_is_judged_as_it_is(linear, data):
    X, y = data.X_test[:40], data.y_test[:40]
    found = run_trials(linear, COST, ReportRows.of(X, y), None, 0, new=True)
    assert [method.name for method in found.methods][:2] == [MODEL, OURS]
    assert found.ours.decisions[:, 0] == pytest.approx(linear.predict(X[found.judged]))


def test_a_baseline_that_fails_does_not_end_the_others(linear, data, monkeypatch):
    original = module.chosen_methods

    def broken(names, *rest):
        found = original(names, *rest)
        monkeypatch.setattr(type(found[0].estimator.model), "_learn", None, raising=False)
        return found

    monkeypatch.setattr(module, "chosen_methods", broken)
    found = run_trials(linear, COST, ReportRows.of(data.X, data.y), Folds(2, repeats=1), 0)
    assert not found.ours.reason
    assert any("TypeError" in method.reason for method in found.methods)


def test_costs_that_are_not_piecewise_linear_have_the_constant_beside_them(data):
    class Never(RobustNewsvendor):
        """Fits a newsvendor, whatever judges it."""

    found = run_trials(Never(radius=0.1), Quadratic(), ReportRows.of(data.X, data.y), None, 0)
    assert [method.name for method in found.methods] == [OURS, "saa"]


def test_the_column_that_decides_matters_most():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = 10.0 + 5.0 * X[:, 1] + 0.1 * rng.normal(size=80)
    found = run_trials(RobustNewsvendor(1.0, 0.2, radius=0.01), COST, ReportRows.of(X, y), None, 0)
    assert found.effects.columns == (0, 1, 2)
    for effect in (found.effects.unknown, found.effects.wrong):
        means = effect.mean(axis=0)
        assert means[1] > 10.0 * max(abs(means[0]), abs(means[2]))


def test_of_many_columns_those_that_move_decisions_are_kept(monkeypatch):
    monkeypatch.setattr(module, "MOST_COLUMNS", 2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = 10.0 + 5.0 * X[:, 4] + 3.0 * X[:, 1] + 0.1 * rng.normal(size=80)
    found = run_trials(RobustNewsvendor(1.0, 0.2, radius=0.01), COST, ReportRows.of(X, y), None, 0)
    assert found.effects.columns == (1, 4)


def test_progress_is_told_before_each_fit(linear, data):
    steps = []
    run_trials(linear, COST, ReportRows.of(data.X, data.y), Folds(2, repeats=1), 0, steps.append)
    assert len(steps) == 10
    assert steps[0] == "surefoot, repeat 1, fold 1"
