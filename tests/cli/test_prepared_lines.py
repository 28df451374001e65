"""``surefoot learn`` goes on from a model of ``surefoot fit``: dates, categories and gaps as there."""

import json
from datetime import date

import numpy as np
import polars as pl
import pytest

from surefoot import PreparedPolicy, RobustNewsvendor, load
from surefoot.cli.main import main
from surefoot.online import OnlinePolicy

COSTS = ["--backorder", "3", "--holding", "1"]


def sales(rows, seed=0):
    rng = np.random.default_rng(seed)
    days = np.datetime64("2024-01-01") + np.arange(rows)
    shop = rng.choice(["north", "south"], rows)
    heat = rng.normal(20.0, 5.0, rows).round(1)
    sold = 20.0 + heat + 8.0 * (shop == "south") + rng.normal(size=rows).round(1)
    return pl.DataFrame({"day": days, "shop": shop, "heat": heat, "sold": sold.round(1)})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model whose file writes dates as 31.12.2024, and the rows that follow."""
    folder = tmp_path_factory.mktemp("fitted")
    table = sales(90).with_columns(pl.col("day").dt.strftime("%d.%m.%Y"))
    table[:80].write_csv(folder / "past.csv")
    path = folder / "m.surefoot"
    options = ["--outcome", "sold", *COSTS, "--radius", "0.1", "-o", str(path)]
    assert main(["fit", str(folder / "past.csv"), *options]) == 0
    return path, table[80:]


def learn(stream, fitted, *more, outcome="sold"):
    return main(["learn", str(stream), "--outcome", outcome, "--model", str(fitted), *more])


def answers(text):
    return [json.loads(line)["decision"] for line in text.splitlines()]


def test_decisions_are_those_of_the_model_until_it_learns(fitted, tmp_path, capsys):
    path, rows = fitted
    asked = rows.with_columns(sold=pl.lit(None, pl.Float64))
    asked.write_csv(tmp_path / "ask.csv")
    assert learn(tmp_path / "ask.csv", path) == 0
    decided = answers(capsys.readouterr().out)
    days = rows.with_columns(pl.col("day").str.to_date("%d.%m.%Y")).drop("sold")
    np.testing.assert_allclose(decided, load(path).predict(days), rtol=1e-9)
    pl.concat([rows.with_columns(sold=200.0), asked]).write_csv(tmp_path / "teach.csv")
    assert learn(tmp_path / "teach.csv", path) == 0
    taught = answers(capsys.readouterr().out)
    assert min(np.subtract(taught, decided)) > 0.1
    model = load(path)
    by_hand = OnlinePolicy.from_model(model.model_)
    by_hand.partial_fit(model.prepare(days), np.full(len(days), 200.0))
    np.testing.assert_allclose(taught, by_hand.decide(model.prepare(days)), rtol=1e-9)


def test_json_lines_gaps_and_outcomes_that_come_later(fitted, tmp_path, capsys):
    path, _ = fitted
    lines = [
        {"id": "a", "day": "2024-03-30", "shop": "south", "heat": 21.5},
        {"id": "b", "day": "30.03.2024", "shop": "south", "heat": 21.5},
        {"id": "c", "day": "2024-03-30", "shop": "south"},
        {"id": "a", "sold": 500.0},
        {"id": "d", "day": "2024-03-30", "shop": "south", "heat": 21.5},
    ]
    stream = tmp_path / "a.jsonl"
    stream.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert learn(stream, path, "--id", "id") == 0
    told = capsys.readouterr()
    assert "'heat' has gaps" in told.err
    first, same, gap, later = answers(told.out)
    day = {"day": [date(2024, 3, 30)], "shop": ["south"], "heat": [21.5]}
    assert first == same == pytest.approx(load(path).predict(pl.DataFrame(day))[0])
    assert gap != first
    assert later > first


def test_a_checkpoint_goes_on(fitted, tmp_path, capsys):
    path, rows = fitted
    asked = rows.with_columns(sold=pl.lit(None, pl.Float64))
    whole, half = tmp_path / "whole.csv", tmp_path / "half.csv"
    pl.concat([rows, asked]).write_csv(whole)
    assert learn(whole, path) == 0
    expected = answers(capsys.readouterr().out)
    lines = whole.read_text().splitlines(keepends=True)
    half.write_text("".join(lines[:8]))
    kept = ["--checkpoint", str(tmp_path / "c")]
    assert learn(half, path, *kept) == 0
    half.write_text("".join(lines))
    assert learn(half, path, *kept) == 0
    assert answers(capsys.readouterr().out) == expected


@pytest.mark.parametrize(
    ("line", "more", "message"),
    [
        ({"wind": 3.0}, [], "line 1: a context must have the columns of the model (day, heat, shop)"),
        ({"day": "soon"}, [], "line 1: day must be a date written %d.%m.%Y or %Y-%m-%d, got 'soon'"),
        ({"heat": "warm"}, [], "line 1: heat must be a number, got 'warm'"),
        ({"heat": 1.0}, ["--text", "shop"], "--text must be left out"),
        ({"heat": 1.0}, ["--id", "shop"], "--id must be a column that the model does not look at"),
        ({"heat": 1.0}, ["--ignore", "heat"], "--ignore must leave the model the columns of its fit"),
        ({"heat": 1.0}, ["--radius", "0.2"], "--radius must be that of the model"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(fitted, tmp_path, capsys, line, more, message):
    stream = tmp_path / "a.jsonl"
    stream.write_text(json.dumps(line) + "\n")
    assert learn(stream, fitted[0], *more) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_the_outcome_is_that_of_the_fit(fitted, tmp_path, capsys):
    stream = tmp_path / "a.jsonl"
    stream.write_text('{"heat": 1.0}\n')
    assert learn(stream, fitted[0], outcome="bought") == 2
    assert "--outcome must be 'sold', as in" in capsys.readouterr().err


def test_a_prepared_model_from_python_writes_dates_as_json_does(tmp_path, capsys):
    table = sales(60)
    model = PreparedPolicy(RobustNewsvendor(3.0, 1.0, radius=0.1))
    model.fit(table.drop("sold"), table["sold"].to_numpy()).save(tmp_path / "m")
    stream = tmp_path / "a.jsonl"
    stream.write_text('{"day": "2024-02-01", "shop": "north", "heat": 20.0}\n')
    assert learn(stream, tmp_path / "m") == 0
    day = {"day": [date(2024, 2, 1)], "shop": ["north"], "heat": [20.0]}
    (decided,) = answers(capsys.readouterr().out)
    assert decided == pytest.approx(model.predict(pl.DataFrame(day))[0])


def test_what_holds_for_every_line_is_said_once(fitted, tmp_path, capsys):
    path, rows = fitted
    rows.with_columns(shop=pl.lit("west")).write_csv(tmp_path / "west.csv")
    assert learn(tmp_path / "west.csv", path) == 0
    told = capsys.readouterr().err
    assert told.count("west") == 1
    assert "DataWarning" not in told


def test_columns_that_a_line_lacks_are_named_once(tmp_path, capsys):
    rows = sales(60)
    model = RobustNewsvendor(3.0, 1.0, radius=0.1)
    X = rows.select("heat", rain=pl.col("heat").shuffle(seed=0))
    model.fit(X, rows["sold"].to_numpy()).save(tmp_path / "plain.surefoot")
    lines = [{"heat": 21}, {"heat": 25}, {"heat": 20, "rain": 19}]
    (tmp_path / "ask.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert learn(tmp_path / "ask.jsonl", tmp_path / "plain.surefoot") == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 3
    assert told.err.count("A line has no value for 'rain', from which the model was learned") == 1
