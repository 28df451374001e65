"""``--by``: one policy for each series, from a table to orders."""

import json

import numpy as np
import polars as pl
import pytest

from surefoot import PolicyTable, RobustNewsvendor, fit_many
from surefoot.cli.main import main

pytest.importorskip("pyarrow")
COSTS = ["--backorder", "3", "--holding", "1", "--radius", "0.1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two shops with two products and one with a single row; products are codes, not numbers."""
    folder, rng = tmp_path_factory.mktemp("panel"), np.random.default_rng(0)
    rows = [
        (shop, code, price, 30.0 - 5.0 * price + (8.0 if shop == "north" else 0.0) + rng.normal())
        for shop in ("north", "south")
        for code in ("01", "02")
        for price in rng.uniform(1.0, 3.0, 30)
    ]
    names = ["shop", "product", "price", "sold"]
    frame = pl.DataFrame([*rows, ("east", "01", 2.0, 9.0)], schema=names, orient="row")
    frame.write_csv(folder / "past.csv")
    new = [("north", "01", 1.5), ("south", "02", 2.5), ("west", "01", 2.0), ("east", "01", 2.0)]
    pl.DataFrame(new, schema=names[:3], orient="row").write_csv(folder / "new.csv")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    out = folder / "orders.parquet"
    assert main(fit_command(folder, out)) == 0
    return out


def fit_command(folder, out, *more):
    by = ["--by", "shop", "--by", "product"]
    return ["fit", str(folder / "past.csv"), "--outcome", "sold", *by, *COSTS, "-o", str(out), *more]


def test_policies_are_those_of_python(folder, model):
    past = pl.read_csv(folder / "past.csv", schema_overrides={"product": pl.String})
    table = fit_many(past, ["shop", "product"], "sold", model=RobustNewsvendor(3.0, 1.0, radius=0.1))
    loaded = PolicyTable.load(model)
    np.testing.assert_array_equal(loaded.decide(past[:-1]), table.decide(past[:-1]))


def test_each_row_is_decided_by_its_series(folder, model, capsys):
    assert main(["decide", str(model), str(folder / "new.csv")]) == 0
    told = capsys.readouterr()
    orders = pl.read_csv(told.out.encode(), schema_overrides={"product": pl.String})
    assert orders.columns == ["shop", "product", "order"]
    assert orders["order"].is_null().to_list() == [False, False, True, True]
    assert orders["order"][0] > orders["order"][1] + 8
    assert "west / 01: no such series was fitted" in told.err
    assert "east / 01: the series was not fitted: A series must have at least 2 rows, got 1" in told.err


def test_fit_names_series_without_a_policy(folder, tmp_path, capsys):
    assert main(fit_command(folder, tmp_path / "a.parquet", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["series"], found["fitted"]) == (5, 4)
    assert found["failed"] == {"east, 01": "A series must have at least 2 rows, got 1."}
    main(fit_command(folder, tmp_path / "a.parquet"))
    assert "east, 01 has no policy" in capsys.readouterr().err


def test_evaluate_judges_all_series(folder, model, capsys):
    assert main(["evaluate", str(model), str(folder / "past.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    past = pl.read_csv(folder / "past.csv", schema_overrides={"product": pl.String})[:-1]
    assert found["cost"] == pytest.approx(PolicyTable.load(model).cost(past))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "shp", "-o", "a.parquet"], "Did you mean 'shop'?"),
        (["--by", "shop", "-o", "a.surefoot"], "--out must end in .parquet, got a.surefoot"),
        (["--by", "shop", "--by", "shop", "-o", "a.parquet"], "--by must name each column once"),
        (["--by", "sold", "-o", "a.parquet"], "--by must name another column than --outcome"),
        (["--by", "shop", "-o", "a.parquet", "--report", "a.html"], "--report must be left out beside"),
        (["--by", "price", "-o", "a.parquet"], "of which none can: A series must have at least 2 rows"),
    ],
)  # fmt: skip
def test_mistakes(folder, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", str(folder / "past.csv"), "--outcome", "sold", *COSTS, *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_gap_in_a_key_is_named_by_its_line(folder, tmp_path, capsys):
    lines = (folder / "past.csv").read_text().splitlines()
    lines[7] = lines[7].replace("north", "", 1)
    (tmp_path / "gap.csv").write_text("\n".join(lines))
    asked = ["fit", str(tmp_path / "gap.csv"), "--outcome", "sold", "--by", "shop", *COSTS]
    assert main([*asked, "-o", str(tmp_path / "a.parquet")]) == 2
    assert "--by must have a value in every row, got a gap in line 8" in capsys.readouterr().err


@pytest.mark.parametrize("which", ["data", "model"])
def test_what_is_read_is_not_written_over(folder, model, tmp_path, capsys, which):
    paths = {"model": tmp_path / "m.parquet", "data": tmp_path / "new.csv"}
    paths["model"].write_bytes(model.read_bytes())
    paths["data"].write_bytes((folder / "new.csv").read_bytes())
    before = paths[which].read_bytes()
    asked = ["decide", str(paths["model"]), str(paths["data"]), "-o", str(paths[which])]
    assert main(asked) == 2
    assert "--out must be another file than those that are read" in capsys.readouterr().err
    assert paths[which].read_bytes() == before


def test_other_commands_say_that_it_is_no_single_model(model, capsys):
    assert main(["explain", str(model)]) == 2
    assert "must be one model, got a policy for each of many series" in capsys.readouterr().err


def test_rows_of_unknown_series_alone_are_refused(folder, model, tmp_path, capsys):
    (tmp_path / "new.csv").write_text("shop,product,price\nwest,01,2.0\nwest,02,2.1\n")
    assert main(["decide", str(model), str(tmp_path / "new.csv"), "-o", str(tmp_path / "o.csv")]) == 2
    assert "must have rows of a series with a policy" in capsys.readouterr().err
    assert not (tmp_path / "o.csv").exists()
