"""Everything that a report says is gathered from the model and its rows."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import surefoot
from surefoot import Folds, PreparedPolicy, RobustNewsvendor
from surefoot.baselines import SAA
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import Empirical
from surefoot.report import facts as module
from surefoot.report.facts import checked_policy, gather, rows_checksum
from surefoot.report.rows import Origin

QUICK = {"splits": Folds(2, repeats=1)}


def test_rows_of_the_fit_are_known_again_and_others_are_not(linear, linear_facts, data):
    assert linear_facts.seen is True
    assert gather(linear, data.X_test[:30], data.y_test[:30], **QUICK).seen is False


def test_order_does_not_hide_rows_of_the_fit(linear, data, evil_facts):
    assert evil_facts.seen is True
    assert gather(linear, data.X, data.y, time=np.arange(60.0)[::-1], **QUICK).seen is True


def test_of_a_model_from_a_file_only_its_origin_knows_the_rows(linear, data, tmp_path):
    linear.save(tmp_path / "m.surefoot")
    loaded = surefoot.load(tmp_path / "m.surefoot")
    assert gather(loaded, data.X, data.y, **QUICK).seen is None
    known = Origin(fingerprint=linear.fingerprint_)
    assert gather(loaded, data.X, data.y, origin=known, **QUICK).seen is True


def test_own_cost_is_that_of_the_model(linear, linear_facts, data):
    assert linear_facts.own_cost == pytest.approx(linear.cost(data.X, data.y))


def test_suspects_and_far_contexts_have_names_and_the_users_values(evil_facts):
    assert {(one.row, one.column, one.value) for one in evil_facts.suspects} == {
        (7, "outcome", 9000.0),
        (9, "'<script>alert(1)</script>'", 4000.0),
    }
    assert any("'<script>alert(1)</script>' is 4000 in row 9" in note for note in evil_facts.notes)


def test_suspects_in_rows_that_the_model_had_not_seen_are_found_all_the_same(evil_model, evil):
    X, y = evil
    found = gather(evil_model, X.iloc[:60], y[:60], **QUICK)
    assert found.seen is False
    assert (7, "outcome") in {(one.row, one.column) for one in found.suspects}


def test_columns_say_what_they_hold(evil_facts):
    number, category, day = evil_facts.columns
    assert number[1] == "number"
    assert category[2] == "<i>a</i>, b\", c'"
    assert day[2] == "2024-01-01 to 2024-03-20"
    assert evil_facts.each == "day"


def test_gaps_and_levels_are_counted():
    rng = np.random.default_rng(0)
    X = [[None if k % 7 == 0 else float(k), f"level {k % 6}"] for k in range(42)]
    y = rng.normal(10.0, 1.0, 42)
    found = gather(PreparedPolicy(RobustNewsvendor(radius=0.1)).fit(X, y), X, y, **QUICK)
    (*_, gaps), (name, _, holds, _) = found.columns
    assert gaps == 6
    assert holds.endswith("and 2 more")
    assert name == "column 1"


def test_of_many_rows_some_are_judged(linear, data, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 40)
    found = gather(linear, data.X, data.y, **QUICK)
    assert len(found.judged) == 40
    newest = gather(linear, data.X, data.y, time=np.arange(60.0), **QUICK)
    assert newest.judged.places.tolist() == list(range(20, 60))


def test_a_nominal_of_ones_own_is_said_to_be_one(data):
    nominal = Empirical(data.X, data.y)
    model = RobustNewsvendor(1.0, 0.2, radius=0.1, nominal=nominal).fit(data.X, data.y)
    assert any("a nominal of its own" in note for note in gather(model, data.X, data.y, **QUICK).notes)


def test_what_is_needed_to_repeat_it_is_there(linear_facts):
    assert linear_facts.recipe == "RobustNewsvendor(radius=0.1)"
    settings = dict(linear_facts.settings)
    assert settings["radius"] == "0.1"
    assert settings["random_state"] == "0"
    assert {"surefoot", "Python", "numpy", "scikit-learn"} <= set(dict(linear_facts.versions))


def test_the_checksum_depends_on_the_rows_alone(linear, linear_facts, data):
    again = gather(linear, data.X, data.y, time=np.arange(60.0)[::-1], **QUICK)
    assert rows_checksum(again) == rows_checksum(linear_facts)
    other = gather(linear, data.X, data.y + 1e-9, **QUICK)
    assert rows_checksum(other) != rows_checksum(linear_facts)


@pytest.mark.parametrize("model", [None, "model", SAA(), RobustNewsvendor])
def test_what_is_no_robust_model_is_refused(model):
    with pytest.raises(InvalidTypeError, match="^model must be a fitted RobustNewsvendor"):
        checked_policy(model)


def test_a_prepared_baseline_is_refused(data):
    with pytest.raises(InvalidTypeError, match="around a robust model, got SAA"):
        checked_policy(PreparedPolicy(SAA()).fit(data.X, data.y))


@pytest.mark.parametrize("model", [RobustNewsvendor(), PreparedPolicy(RobustNewsvendor())])
def test_a_model_that_is_not_fitted_is_refused(model):
    with pytest.raises(NotFittedError):
        checked_policy(model)


def test_bad_rows_are_refused(linear, data):
    with pytest.raises(ValueError, match="3 features"):
        gather(linear, data.X[:, :3], data.y)
    with pytest.raises(InvalidInputError, match="^y must have 1 outcomes in a row as in fit, got 2"):
        gather(linear, data.X, np.column_stack([data.y, data.y]))
    with pytest.raises(InvalidInputError, match="^X must have at least one row"):
        gather(linear, data.X[:0], data.y[:0])
    with pytest.raises(InvalidTypeError, match=r"^splits must be Folds"):
        gather(linear, data.X, data.y, splits=5)
