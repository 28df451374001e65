"""Numbers that deserve a look are named as the user knows them."""

import numpy as np
import pandas as pd
import pytest

import surefoot
from surefoot import PreparedPolicy, RobustNewsvendor
from surefoot.estimators.data_warnings import ColumnLabel, far_sentence, plain_labels
from surefoot.exceptions import DataWarning


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    wind = rng.normal(20.0, 3.0, 80)
    shop = rng.choice(["north", "south"], 80)
    y = 2.0 * wind + rng.normal(size=80)
    wind[5] = 2000.0
    return pd.DataFrame({"shop": shop, "wind": wind}), y


def fitted(X, y):
    with pytest.warns(DataWarning, match="look like errors"):
        return PreparedPolicy(RobustNewsvendor()).fit(X, y)


def test_suspects_of_prepared_columns_have_the_name_and_the_value_of_the_table(frame):
    X, y = frame
    with pytest.warns(DataWarning, match=r"row 5, 'wind': 2000 \(expected about 20\.3\)"):
        policy = PreparedPolicy(RobustNewsvendor()).fit(X, y)
    (suspect,) = policy.suspects_
    assert (suspect.row, suspect.column, suspect.value) == (5, "'wind'", 2000.0)
    assert suspect.expected == pytest.approx(X["wind"].median(), rel=0.05)


def test_columns_without_names_are_known_by_their_position(frame):
    X, y = frame
    rows = [[wind, shop] for shop, wind in X.to_numpy().tolist()]
    assert fitted(rows, y).suspects_[0].column == "column 0"


@pytest.mark.parametrize("saved", [False, True])
def test_far_contexts_have_the_name_and_the_value_of_the_table(frame, tmp_path, saved):
    policy = fitted(*frame)
    if saved:
        policy.save(tmp_path / "model.surefoot")
        policy = surefoot.load(tmp_path / "model.surefoot")
    new = pd.DataFrame({"shop": ["north", "south"], "wind": [20.0, 500.0]})
    with pytest.warns(DataWarning, match=r"1 of 2 rows .* \('wind' is 500 in row 1\)"):
        policy.predict(new)


def test_the_guarantee_of_a_prepared_policy_is_that_of_its_model(frame):
    policy = fitted(*frame)
    assert policy.guarantee(0.5) == policy.model_.guarantee(0.5)


def test_many_far_columns_are_counted():
    far = np.ones((2, 5), dtype=bool)
    told = far_sentence(far, np.full((2, 5), 3.0), plain_labels(5, list("abcde")))
    assert "('a' is 3 in row 0; 'b' is 3 in row 0; 'c' is 3 in row 0; and 2 more columns)" in told


def test_units_are_the_users():
    told = far_sentence(np.array([[True]]), np.array([[3.0]]), [ColumnLabel("'wind'", 10.0)])
    assert "'wind' is 30 in row 0" in told
