"""Short series borrow strength: better where series are alike, harmless where they are not."""

import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from surefoot import PolicyTable, RobustNewsvendor, RobustPolicy, RollingWindow, fit_many
from surefoot.costs import Newsvendor, Quadratic
from surefoot.exceptions import DataWarning, InvalidInputError, ModelFileError, UnsupportedProblemError
from surefoot.panels import PooledPolicy, pooling

MODEL = RobustNewsvendor(1.0, 0.2, radius=0.1)


def panel(rows, series=25, alike=True, seed=0):
    """Series of very different sizes that react alike to their contexts, or each in its own way."""
    rng = np.random.default_rng(seed)
    common, frames = rng.normal(size=3) * 0.3, []
    for k in range(series):
        slopes = common if alike else rng.normal(size=3) * 0.3
        X = rng.normal(size=(rows, 3))
        y = 10.0 ** rng.uniform(0, 4) * (2.0 + X @ slopes + 0.1 * rng.normal(size=rows))
        frames.append(pd.DataFrame(X, columns=list("abc")).assign(key=k, y=y, t=np.arange(rows)))
    return pd.concat(frames, ignore_index=True)


def scaled_cost(table, data):
    """Mean cost over series, each in units of its own outcomes."""
    costs = []
    for _, own in data.groupby("key"):
        costs.append(table.cost(own) / own["y"].abs().mean())
    return float(np.mean(costs))


def split(data, rows):
    return data[data["t"] < rows], data[data["t"] >= rows]


@pytest.fixture(scope="module")
def alike():
    past, ahead = split(panel(40), 8)
    return (
        past,
        ahead,
        fit_many(past, "key", "y", model=MODEL, time="t", contexts=list("abc"), borrow=True),
    )


def alone(table):
    """The same policies without what they borrow."""
    return PolicyTable(table.columns, table.records, table.random_state)


def test_short_series_that_are_alike_gain(alike):
    _, ahead, table = alike
    assert table.pooled.rows >= 10.0
    assert scaled_cost(table, ahead) < 0.8 * scaled_cost(alone(table), ahead)
    assert f"the others are worth {table.pooled.rows:g} rows" in repr(table)


def test_series_that_differ_lose_nothing():
    past, ahead = split(panel(60, alike=False), 40)
    table = fit_many(past, "key", "y", model=MODEL, time="t", contexts=list("abc"), borrow=True)
    assert table.pooled.rows <= 10.0
    assert scaled_cost(table, ahead) <= 1.02 * scaled_cost(alone(table), ahead)


def test_decisions_are_the_mixture(alike):
    past, ahead, table = alike
    own = ahead[ahead["key"] == 3]
    record = next(record for record in table.records if record.key == ("3",))
    pooled = pooling.model_from_bytes(table.pooled.model)
    before = past[past["key"] == 3]
    assert record.size == pytest.approx(before["y"].abs().mean())
    errors = []
    for _, rows in past.groupby("key"):
        scaled = (rows["y"] - rows["y"].mean()) / rows["y"].abs().mean()
        errors.append((scaled - pooled.predict(rows[list("abc")])).mean())
    shift = errors[3] - np.mean(errors)  # for the contexts that this series happened to meet
    assert record.mean == pytest.approx(before["y"].mean() + record.size * shift)
    others = record.mean + record.size * pooled.predict(own[list("abc")])
    share = 8 / (8 + table.pooled.rows)
    expected = share * table["3"].predict(own[list("abc")]) + (1 - share) * others
    np.testing.assert_allclose(table.decide(own), expected, rtol=1e-12)


@pytest.mark.parametrize(("rows", "share"), [(0.0, 1.0), (10.0, 0.5), (math.inf, 0.0)])
def test_the_share_of_one_s_own(rows, share):
    assert PooledPolicy(b"", rows).share(10) == share


def test_nothing_is_borrowed_unless_it_is_clearly_better():
    common = np.random.default_rng(0).normal(size=(50, 1))
    gains = np.array([0.0, 0.1, 0.3, 0.2, 0.1, 0.0, -0.1])
    luck = np.where(np.arange(50) % 2, 1.0, -1.0)[:, None]
    assert pooling.chosen_rows(common - gains * (1.0 + 0.5 * luck)) == 10.0
    assert pooling.chosen_rows(common - gains * (0.1 + luck)) == 0.0  # a gain, but it may be chance
    assert pooling.chosen_rows(common + np.abs(gains)) == 0.0
    assert pooling.chosen_rows(1.0 - gains[None, :]) == 0.0  # one series says nothing about chance


def test_tasks_and_order_of_rows_change_nothing(alike):
    past, ahead, table = alike
    again = fit_many(
        past.sample(frac=1.0, random_state=1), "key", "y", model=MODEL, time="t", contexts=list("abc"),
        borrow=True, task_size=3,
    )  # fmt: skip
    assert again.pooled.rows == table.pooled.rows
    np.testing.assert_array_equal(again.decide(ahead), table.decide(ahead))


def test_units_change_nothing(alike):
    past, ahead, table = alike
    grams = past.assign(y=past["y"] * 1024.0)
    again = fit_many(grams, "key", "y", model=MODEL, time="t", contexts=list("abc"), borrow=True)
    np.testing.assert_allclose(again.decide(ahead), 1024.0 * table.decide(ahead), rtol=1e-9)


def test_a_series_of_one_row_decides_by_what_others_say(alike):
    past, ahead, _ = alike
    short = past[(past["key"] != 3) | (past["t"] == 0)]
    odd = short.assign(y=short["y"].where(short["key"] != 5))
    table = fit_many(odd, "key", "y", model=MODEL, time="t", contexts=list("abc"), borrow=True)
    status = {record.key[0]: record.status for record in table.records}
    assert (status["3"], status["5"], status["6"]) == ("borrowed", "failed", "fitted")
    assert "1 borrowed, 1 failed" in repr(table)
    own = ahead[ahead["key"] == 3]
    constant = float(past[(past["key"] == 3) & (past["t"] == 0)]["y"].iloc[0])
    short_of = np.where(own["y"] > constant, own["y"] - constant, 0.2 * (constant - own["y"])).mean()
    assert table.cost(own) < short_of
    with pytest.warns(DataWarning, match="5: the series was not fitted"):
        assert np.isnan(table.decide(ahead[ahead["key"] == 5])).all()
    with pytest.raises(InvalidInputError, match="3: the series has no policy of its own"):
        table["3"]


def test_what_was_borrowed_survives_a_file(alike, tmp_path):
    past, ahead, table = alike
    short = past[(past["key"] != 3) | (past["t"] == 0)]
    table = fit_many(short, "key", "y", model=MODEL, time="t", contexts=list("abc"), borrow=True)
    table.save(tmp_path / "t.parquet")
    again = PolicyTable.load(tmp_path / "t.parquet")
    assert again.pooled == table.pooled
    np.testing.assert_array_equal(again.decide(ahead), table.decide(ahead))
    given = pq.read_table(tmp_path / "t.parquet")
    notes = given.schema.metadata[b"surefoot"].replace(
        b'"pooled_rows": "', b'"pooled_rows": null, "was": "'
    )
    pq.write_table(given.replace_schema_metadata({b"surefoot": notes}), tmp_path / "t.parquet")
    with pytest.raises(ModelFileError, match="must hold a pooled policy for series that borrow"):
        PolicyTable.load(tmp_path / "t.parquet")


def test_what_cannot_be_is_refused(alike):
    past, ahead, table = alike
    with pytest.raises(UnsupportedProblemError, match="borrow=True needs a cost of two lines"):
        fit_many(past, "key", "y", model=RobustPolicy(Quadratic()), borrow=True)
    with pytest.raises(UnsupportedProblemError, match="needs a cost of two lines"):
        fit_many(past, "key", "y", cost=Newsvendor(1.0, 0.2, 0.1), borrow=True)
    with pytest.raises(UnsupportedProblemError, match="evaluate judges series on their own"):
        table.evaluate(ahead, RollingWindow(10, 5))


def test_nothing_to_borrow(alike):
    past, ahead, _ = alike
    nothing = fit_many(past.assign(y=np.nan), "key", "y", model=MODEL, borrow=True)
    assert nothing.pooled is None
    few = fit_many(past[past["t"] < 3], "key", "y", model=MODEL, contexts=list("abc"), borrow=True)
    assert few.pooled.rows == pooling.ROWS_UNTRIED
    assert np.isfinite(few.decide(ahead)).all()
