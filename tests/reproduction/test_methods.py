"""Methods: each fits, says its settings, and answers with a reason where it cannot."""

import json

import numpy as np
import pytest

from reproduction import METHODS, Cell, SyntheticSet, YazSet, run_cell
from reproduction.cell_run import mean_cost, quiet
from reproduction.methods import Method

DATA = SyntheticSet(14, 6, 1.0, test=50)


def test_names_are_distinct_and_fit_into_keys():
    names = [method.name for method in METHODS]
    assert len(set(names)) == len(names) == 15
    assert not any("/" in name or " " in name for name in names)
    assert len({method.label for method in METHODS}) == 15


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_treats_synthetic_data(method):
    with quiet():
        result = run_cell(Cell(DATA, method, 0))
    assert (result.status, result.error) == ("done", "")
    assert 0 < result.cost < 20
    assert result.fit_seconds >= 0
    assert result.predict_seconds >= 0


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_settings_are_explicit_and_go_through_json(method):
    settings = method.settings()
    assert settings["method"] == type(method).__name__
    assert json.loads(json.dumps(settings)) == settings
    assert "label" not in settings  # a new label is no new method


def test_real_data_are_treated_by_all_but_the_oracle():
    data = YazSet("fish", 30)
    for method in METHODS:
        with quiet():
            result = run_cell(Cell(data, method, 0))
        if method.name == "oracle":
            assert result.status == "refused"
            assert result.error == "the truth behind real data is not known"
            assert result.cost is None
        else:
            assert result.status == "done", result.error


def test_the_oracle_is_best_and_near_its_expected_cost():
    data = SyntheticSet(10, 6, 1.0)
    costs = {m.name: run_cell(Cell(data, m, 0)).cost for m in METHODS if m.name in ("oracle", "saa")}
    truth = data.load(0).truth
    assert costs["oracle"] == pytest.approx(truth.oracle_cost(1.0, 0.2), rel=0.05)
    assert costs["oracle"] < costs["saa"]


def test_gap_and_radius_are_reported_where_there_are_any():
    by_name = {method.name: method for method in METHODS}
    ours = run_cell(Cell(DATA, by_name["ours-fixed-2"], 0))
    assert ours.radius == 0.3
    assert 0 <= ours.gap <= 0.01
    shapley = run_cell(Cell(DATA, by_name["shapley-fixed"], 0))
    assert shapley.radius == 0.1
    assert shapley.gap is None
    saa = run_cell(Cell(DATA, by_name["saa"], 0))
    assert saa.radius is saa.gap is None
    erm = run_cell(Cell(SyntheticSet(5, 9, 1.0, test=20), by_name["erm-vertex"], 0))
    assert "One of many optimal policies" in erm.note


def test_cost_is_the_newsvendors():
    assert mean_cost(np.array([3.0, 3.0]), np.array([1.0, 4.0]), 1.0, 0.2) == pytest.approx(0.7)


class NotFinite(Method):
    def estimator(self, sample, seed):
        class Model:
            def fit(self, X, y):
                return self

            def predict(self, X):
                return np.full(len(X), np.nan)

        return Model()

    def settings(self):
        return {}


def test_decisions_that_are_not_numbers_are_a_failure_and_no_cost():
    result = run_cell(Cell(DATA, NotFinite("not-finite", "Not finite"), 0))
    assert result.status == "failed"
    assert result.cost is None
    assert "finite" in result.error
