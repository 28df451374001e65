"""``--by``: one policy for each series, from a table to orders."""

import json
import re
import sys

import numpy as np
import polars as pl
import pytest

from surefoot import PolicyTable, RobustNewsvendor, fit_many
from surefoot.cli.main import main
from surefoot.exceptions import DataWarning

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


def test_without_pyarrow_nothing_is_fitted(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert main(fit_command(folder, tmp_path / "a.parquet")) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == 'surefoot: Parquet files need pyarrow: run pip install "surefoot[panels]".\n'


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


@pytest.mark.parametrize("command", ["decide", "evaluate"])
def test_a_far_number_is_named_by_series_and_line(folder, tmp_path, capsys, command):
    given = fit_command(folder, tmp_path / "a.parquet")
    automatic = [word for word in given if word not in ("--radius", "0.1")]
    assert main(automatic) == 0
    new = [("north", "01", 1.5, 30.0), ("south", "01", 2.5, 20.0), ("south", "02", 250.0, 20.0)]
    names = ["shop", "product", "price", "sold"]
    pl.DataFrame(new, schema=names, orient="row").write_csv(tmp_path / "new.csv")
    capsys.readouterr()
    assert main([command, str(tmp_path / "a.parquet"), str(tmp_path / "new.csv")]) == 0
    note = next(one for one in capsys.readouterr().err.splitlines() if "far outside" in one)
    assert note.startswith("note: south / 02: 1 of 1 rows have contexts far outside those seen")
    assert f"'price' is 250 in line 4 of {tmp_path / 'new.csv'})" in note


def test_fit_names_series_without_a_policy(folder, tmp_path, capsys):
    assert main(fit_command(folder, tmp_path / "a.parquet", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["series"], found["fitted"]) == (5, 4)
    assert found["failed"] == {"east, 01": "A series must have at least 2 rows, got 1."}
    main(fit_command(folder, tmp_path / "a.parquet"))
    told = capsys.readouterr()
    assert "east, 01 has no policy" in told.err
    assert "5 series (1 failed) in " in told.err
    assert "a.parquet: 4 policies, one for each shop and product." in told.out


@pytest.mark.parametrize("column", ["sold", "day"])
def test_a_gap_costs_its_series_alone(folder, tmp_path, capsys, column):
    days = np.tile(np.datetime64("2024-01-01") + np.arange(30), 4)
    past = pl.read_csv(folder / "past.csv", schema_overrides={"product": pl.String})[:-1]
    past = past.with_columns(day=days)
    gap = pl.int_range(len(past)) == 40
    past.with_columns(pl.when(~gap).then(pl.col(column))).write_csv(tmp_path / "gap.csv")
    asked = ["fit", str(tmp_path / "gap.csv"), "--outcome", "sold", "--by", "shop", "--by", "product"]
    out = tmp_path / "a.parquet"
    assert main([*asked, "--time", "day", *COSTS, "-o", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["series"], found["fitted"]) == (4, 3)
    assert list(found["failed"]) == ["north, 02"]
    assert "1 of 30 rows" in found["failed"]["north, 02"]
    with pytest.warns(DataWarning, match="north / 02: the series was not fitted"):
        decided = PolicyTable.load(out).decide(past)
    whole = fit_many(
        past, ["shop", "product"], "sold", time="day", model=RobustNewsvendor(3.0, 1.0, radius=0.1)
    ).decide(past)
    np.testing.assert_array_equal(decided[np.isfinite(decided)], np.delete(whole, range(30, 60)))


def test_evaluate_leaves_out_a_series_with_a_gap(folder, model, tmp_path, capsys):
    past = pl.read_csv(folder / "past.csv", schema_overrides={"product": pl.String})
    gap = pl.int_range(len(past)) == 40
    past.with_columns(pl.when(~gap).then(pl.col("sold"))).write_csv(tmp_path / "gap.csv")
    assert main(["evaluate", str(model), str(tmp_path / "gap.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["series"] == 3
    assert any("north / 02" in note and "1 of 30 rows" in note for note in found["notes"])


def test_workers_change_nothing(folder, model, tmp_path):
    out = tmp_path / "a.parquet"
    assert main(fit_command(folder, out, "--jobs", "2")) == 0
    new = pl.read_csv(folder / "new.csv", schema_overrides={"product": pl.String})[:2]
    np.testing.assert_array_equal(
        PolicyTable.load(out).decide(new), PolicyTable.load(model).decide(new)
    )


def test_fit_says_in_one_line_what_policies_save(folder, tmp_path, capsys):
    given = fit_command(folder, tmp_path / "a.parquet")
    automatic = [word for word in given if word not in ("--radius", "0.1")]
    assert main(automatic) == 0
    line = next(one for one in capsys.readouterr().out.splitlines() if one.startswith("Wrote "))
    assert re.search(
        r"one for each shop and product; median cost \d+ % below the constant order, by", line
    )
    assert main([*automatic, "--json"]) == 0
    saving = json.loads(capsys.readouterr().out)["median_saving"]
    assert f"median cost {100 * saving:.0f} %" in line


def test_evaluate_judges_all_series(folder, model, capsys):
    assert main(["evaluate", str(model), str(folder / "past.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    past = pl.read_csv(folder / "past.csv", schema_overrides={"product": pl.String})[:-1]
    assert found["cost"] == pytest.approx(PolicyTable.load(model).cost(past))
    assert (found["series"], found["judged"], found["with_constant"]) == (4, 120, 4)
    sold = past.filter(pl.col("shop") == "north", pl.col("product") == "01")["sold"].to_numpy()
    always = np.quantile(sold, 0.75, method="inverted_cdf")
    constant = np.mean(3.0 * np.maximum(sold - always, 0.0) + np.maximum(always - sold, 0.0))
    told = {tuple(one["series"]): one for one in found["worst"]}
    assert told["north", "01"]["constant_cost"] == pytest.approx(constant)
    assert found["constant_cost"] == pytest.approx(
        np.mean([one["constant_cost"] for one in found["worst"]])
    )  # series have as many rows each
    lost = [one["cost"] - one["constant_cost"] for one in found["worst"]]
    assert lost == sorted(lost, reverse=True)
    assert found["cheaper"] == sum(loss < 0.0 for loss in lost) == 4


def test_evaluate_says_how_it_stands_beside_constant_orders(folder, model, tmp_path, capsys):
    past = pl.read_csv(folder / "past.csv", schema_overrides={"product": pl.String})
    # Where the price did the opposite of what was learned, the constant order was better.
    turned = (pl.col("shop") == "south") & (pl.col("product") == "02")
    sold = pl.when(turned).then(5.0 + 10.0 * pl.col("price")).otherwise(pl.col("sold"))
    past.with_columns(sold=sold).write_csv(tmp_path / "turned.csv")
    assert main(["evaluate", str(model), str(tmp_path / "turned.csv")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "4 of the 5 series of the model judged, on 120 rows: orders would have cost" in told
    assert "Always the best constant order of the fit:" in told
    assert "cheaper in 3 of 4 series." in told
    assert told.split("─")[-1].split()[:2] == ["south,", "02"]


def test_keys_are_trimmed_in_parquet_as_in_csv(folder, model, tmp_path, capsys):
    new = pl.read_csv(folder / "new.csv", schema_overrides={"product": pl.String})[:2]
    padded = new.with_columns(shop=" " + pl.col("shop") + "  ", product=pl.col("product") + " ")
    padded.write_csv(tmp_path / "padded.csv")
    padded.write_parquet(tmp_path / "padded.parquet")
    orders = []
    for name in ("padded.csv", "padded.parquet"):
        assert main(["decide", str(model), str(tmp_path / name), "--json"]) == 0
        orders.append(json.loads(capsys.readouterr().out)["orders"])
    assert orders[0] == orders[1]
    assert None not in [row["order"] for row in orders[0]]
    np.testing.assert_array_equal(
        PolicyTable.load(model).decide(padded), PolicyTable.load(model).decide(new)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "shp", "-o", "a.parquet"], "Did you mean 'shop'?"),
        (["--by", "shop", "-o", "a.surefoot"], "--out must end in .parquet beside --by, for a policy of each series, got a.surefoot"),
        (["--by", "shop", "--by", "shop", "-o", "a.parquet"], "--by must name each column once"),
        (["--by", "sold", "-o", "a.parquet"], "--by must name another column than --outcome"),
        (["--by", "shop", "-o", "a.parquet", "--report", "a.html"], "--report must be left out beside"),
        (["--by", "shop", "-o", "a.parquet", "--jobs", "0"], "--jobs must be a number of workers (1, 2, ..."),
        (["-o", "a.surefoot", "--jobs", "2"], "--jobs must come with --by, got 2 alone"),
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
