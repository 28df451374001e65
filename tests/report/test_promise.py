"""What is stated about new rows, for every kind of model."""

import numpy as np
import pytest

import surefoot
from surefoot import Contamination, RobustNewsvendor, RobustPolicy
from surefoot.costs import Newsvendor
from surefoot.estimators.guarantees import SHIFTS, Guarantee
from surefoot.report.promise import adversary_of_columns, promise_of
from surefoot.report.rows import Origin, ReportRows


@pytest.fixture(scope="module")
def rows(data):
    return ReportRows.of(data.X, data.y)


@pytest.fixture(scope="module")
def ensemble(data):
    return RobustNewsvendor(1.0, 0.2).fit(data.X, data.y)


def test_an_ensemble_states_its_guarantee(ensemble, rows):
    found = promise_of(ensemble, rows, Origin())
    assert found.sentence == ensemble.guarantee()
    assert found.shifts == SHIFTS
    assert found.costs[0] == pytest.approx(found.bound, rel=1e-3)
    assert list(found.costs) == sorted(found.costs)
    assert "order of time" in found.why_above


def test_a_model_from_a_file_states_what_was_stated_at_its_fit(ensemble, rows, tmp_path):
    ensemble.save(tmp_path / "m.surefoot")
    loaded = surefoot.load(tmp_path / "m.surefoot")
    silent = promise_of(loaded, rows, Origin())
    assert silent.bound is None
    assert silent.sentence.startswith("Nothing is stated about new rows: a model from a file")
    known = Origin(guarantee=Guarantee(1.5, {0.0: 1.5, 0.3: 2.5}))
    assert promise_of(loaded, rows, known).bound == 1.5
    assert "at most 2.5" in promise_of(loaded, rows, known).sentence


def test_rows_in_order_of_time_are_predicted_and_not_guaranteed(ensemble, data, rows):
    assert promise_of(ensemble, rows, Origin()).title == "What is guaranteed"
    timed = RobustNewsvendor(1.0, 0.2).fit(data.X, data.y, time=np.arange(len(data.y)))
    found = promise_of(timed, rows, Origin())
    assert found.title == "What is to be expected"
    assert "Nothing proves" in found.why_above
    assert found.bound == pytest.approx(timed.certificate_.upper, rel=1e-3)


def test_too_few_rows_state_nothing(data):
    X, y = data.X[:20], data.y[:20]
    model = RobustNewsvendor(50.0, 1.0).fit(X, y)
    found = promise_of(model, ReportRows.of(X, y), Origin())
    assert found.bound is None
    assert found.sentence.startswith("No bound is stated")
    assert found.shifts == ()


def test_a_linear_policy_states_its_certificate_and_its_worst_cases(linear, rows, data):
    found = promise_of(linear, rows, Origin())
    assert found.bound == linear.certificate_.upper
    assert "within radius 0.1 standard deviations of the columns" in found.sentence
    assert found.costs[3] == pytest.approx(linear.worst_case(data.X, data.y, radius=0.3).value)
    assert "a larger radius" in found.why_above


def test_at_radius_zero_nothing_is_proved_about_new_rows(data, rows):
    model = RobustNewsvendor(1.0, 0.2, radius=0.0).fit(data.X, data.y)
    found = promise_of(model, rows, Origin())
    assert found.bound is None
    assert found.sentence.startswith("Nothing is proved about new rows: at radius 0")


def test_after_learning_on_nothing_is_proved(data, rows):
    model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)
    model.partial_fit(data.X[:20], data.y[:20])
    found = promise_of(model, rows, Origin())
    assert found.bound is None
    assert found.sentence.startswith("Nothing is proved: ")


def test_other_sets_have_a_bound_and_no_curve_of_shifts(data, rows):
    ball = Contamination(0.1)
    model = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball).fit(data.X, data.y)
    found = promise_of(model, rows, Origin())
    assert found.bound == model.certificate_.upper
    assert found.shifts == ()


def test_the_adversary_of_a_linear_policy_moves_columns(linear, rows, data):
    shares = dict(adversary_of_columns(linear, rows)[0])
    assert set(shares) == {f"column {j}" for j in range(4)}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    largest = int(np.argmax(linear.augmentation(data.X, data.y).column_shares))
    assert next(iter(shares)) == f"column {largest}"


def test_the_adversary_of_an_ensemble_moves_outcomes_alone(ensemble, rows):
    shares, meaning = adversary_of_columns(ensemble, rows)
    assert shares == ()
    assert "outcomes alone" in meaning


def test_without_a_radius_the_adversary_moves_nothing(data, rows):
    model = RobustNewsvendor(1.0, 0.2, radius=0.0).fit(data.X, data.y)
    assert adversary_of_columns(model, rows)[1] == "At this radius the adversary moves nothing."
