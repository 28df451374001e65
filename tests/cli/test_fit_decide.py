"""From a table to orders on the command line: fit, decide, evaluate, explain, datasets, doctor."""

import csv
import datetime
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import pytest

import surefoot
from surefoot import PreparedPolicy, RobustNewsvendor
from surefoot.cli import fit as fit_command
from surefoot.cli.economics import Economics
from surefoot.cli.main import main
from surefoot.engines.compiling import kernel_folder
from surefoot.exceptions import InvalidInputError
from surefoot.io import read_archive, write_archive

COSTS = ["--backorder", "3", "--holding", "1"]


def shop_lines(rows=60, first=datetime.date(2024, 1, 20), seed=0):
    """Days of two shops as a German spreadsheet writes them."""
    rng = np.random.default_rng(seed)
    lines = ["Tag;Beleg;Filiale;Preis;Absatz"]
    for k in range(rows):
        day = first + datetime.timedelta(days=k)
        price = rng.uniform(1, 3)
        sold = 20 - 3 * price + 6 * (k % 2) + rng.normal()
        shop = ("Nord", "Süd")[k % 2]
        numbers = f"{price:.2f};{sold:.1f}".replace(".", ",")
        lines.append(f"{day:%d.%m.%Y};B{k:04d};{shop};{numbers}")
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shop")


@pytest.fixture(scope="module")
def past(folder):
    path = folder / "past.csv"
    path.write_bytes("\n".join(shop_lines()).encode("cp1252"))
    return path


@pytest.fixture(scope="module")
def new(folder):
    """Three later days, in which day and month could be mistaken for each other."""
    lines = [line.rpartition(";")[0] for line in shop_lines(3, datetime.date(2024, 3, 1), seed=1)]
    path = folder / "new.csv"
    path.write_bytes("\n".join(lines).encode("cp1252"))
    return path


@pytest.fixture(scope="module")
def model(folder, past):
    path = folder / "m.surefoot"
    arguments = ["fit", str(past), "--outcome", "Absatz", "--time", "Tag", "-o", str(path)]
    assert main([*arguments, *COSTS, "--radius", "0.1"]) == 0
    return path


def test_fit_says_what_it_read_and_what_it_did(past, folder, capsys):
    out = folder / "said.surefoot"
    arguments = ["fit", str(past), "--outcome", "Absatz", "-o", str(out)]
    assert main([*arguments, "--price", "5", "--cost", "2", "--salvage", "1", "--radius", "0.1"]) == 0
    said = capsys.readouterr().out
    for part in (
        "60 rows, 5 columns", "Windows-1252", "semicolon", "Decimals follow a comma",
        "written day.month.year", "it names rows: 60 texts in 60 rows", "2 levels",
        "A unit short costs 3 (price 5 - cost 2 + goodwill 0), a unit left over 1 (cost 2 - salvage 1)",
        "So an order should be enough in 75 of 100 cases.", "Radius 0.1", f"Model: {out}",
    ):  # fmt: skip
        assert part in said
    loaded = surefoot.load(out)
    assert loaded.model_.problem_.cost.backorder == 3.0
    assert list(loaded.feature_names_in_) == ["Tag", "Filiale", "Preis"]


def test_fit_tells_machines_the_same(past, folder, capsys):
    out = folder / "json.surefoot"
    arguments = ["fit", str(past), "--outcome", "Absatz", *COSTS, "--radius", "0.1", "-o", str(out)]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    model = surefoot.load(out).model_
    assert found["radius"] == model.radius_ == 0.1
    assert found["certificate"]["upper"] == model.certificate_.upper
    assert found["backorder"] == 3.0
    assert found["period"] == ["2024-01-20", "2024-03-19"]
    assert {"name": "Beleg", "kind": "ignored", "why": "it names rows: 60 texts in 60 rows"} in (
        found["columns"]
    )


def test_orders_are_those_of_the_library(model, new, folder, capsys):
    out = folder / "orders.csv"
    assert main(["decide", str(model), str(new), "-o", str(out)]) == 0
    assert "3 orders from" in capsys.readouterr().out
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    assert [row["Tag"] for row in rows] == ["01.03.2024", "02.03.2024", "03.03.2024"]
    assert [row["Beleg"] for row in rows] == ["B0000", "B0001", "B0002"]
    assert list(rows[0]) == ["Tag", "Beleg", "order"]
    frame = pl.read_csv(new, separator=";", decimal_comma=True, encoding="cp1252").with_columns(
        pl.col("Tag").str.to_date("%d.%m.%Y")
    )
    expected = surefoot.load(model).predict(frame.select("Tag", "Filiale", "Preis"))
    found = [float(row["order"].replace(",", ".")) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("suffix", ["xlsx", "parquet"])
def test_orders_go_into_sheets_and_parquet(model, new, folder, suffix, capsys):
    out = folder / f"orders.{suffix}"
    assert main(["decide", str(model), str(new), "-o", str(out), "--whole", "--keep", "Filiale"]) == 0
    if suffix == "xlsx":
        header, *rows = openpyxl.load_workbook(out).active.iter_rows(values_only=True)
    else:
        frame = pl.read_parquet(out)
        header, rows = tuple(frame.columns), frame.rows()
    assert header == ("Tag", "Beleg", "Filiale", "order")
    assert all(isinstance(row[-1], int) for row in rows)
    days = [row[0].date() if suffix == "xlsx" else row[0] for row in rows]
    assert days == [datetime.date(2024, 3, 1 + k) for k in range(3)]


def test_whole_orders_are_whole_in_text_too(model, new, folder, capsys):
    assert main(["decide", str(model), str(new), "--whole"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split(";")[-1].isdigit()


def test_days_of_a_sheet_stay_days(model, folder, capsys):
    book = openpyxl.Workbook()
    book.active.append(["Tag", "Filiale", "Preis"])
    book.active.append([datetime.date(2024, 3, 1), "Nord", 2.0])
    book.save(folder / "new.xlsx")
    assert main(["decide", str(model), str(folder / "new.xlsx"), "--whole"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("2024-03-01,")


def test_orders_go_to_standard_output_alone(model, new, capsys):
    assert main(["decide", str(model), str(new)]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == "Tag;Beleg;order"
    assert len(captured.out.splitlines()) == 4
    assert main(["decide", str(model), str(new), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["orders"][0]["Tag"] == "01.03.2024"


def test_unknown_levels_and_orders_below_zero_are_noted(model, folder, capsys):
    path = folder / "odd.csv"
    path.write_text("Tag;Filiale;Preis\n01.03.2024;West;2,00\n02.03.2024;Nord;90,00\n")
    assert main(["decide", str(model), str(path)]) == 0
    captured = capsys.readouterr()
    assert "note: Not seen by the fit: 'Filiale' is 'West'" in captured.err
    assert "note: 1 order was below 0 and is written as 0." in captured.err
    assert captured.out.splitlines()[-1].endswith(";0,0")


def test_shops_of_one_day_are_told_apart(model, folder, capsys):
    path = folder / "day.csv"
    path.write_text("Tag;Filiale;Preis\n01.03.2024;Nord;2,00\n01.03.2024;Süd;2,00\n")
    assert main(["decide", str(model), str(path)]) == 0
    rows = [line.split(";")[:-1] for line in capsys.readouterr().out.splitlines()]
    assert rows == [["Tag", "Filiale"], ["01.03.2024", "Nord"], ["01.03.2024", "Süd"]]
    path.write_text("Tag;Filiale;Preis\n01.03.2024;Nord;2,00\n02.03.2024;Süd;2,00\n")
    assert main(["decide", str(model), str(path)]) == 0
    assert capsys.readouterr().out.startswith("Tag;order\n")


def test_a_table_without_names_of_rows_gets_its_lines(folder, capsys):
    past, out = folder / "plain.csv", folder / "plain.surefoot"
    past.write_text("a,y\n" + "".join(f"{k % 5},{10 + k % 5}\n" for k in range(30)))
    assert main(["fit", str(past), "--outcome", "y", *COSTS, "--radius", "0", "-o", str(out)]) == 0
    capsys.readouterr()
    assert main(["decide", str(out), str(past)]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["line,order", "2,10.0"]


def test_evaluate_sets_orders_against_what_happened(model, past, capsys):
    assert main(["evaluate", str(model), str(past), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    text = past.read_bytes().decode("cp1252")
    y = np.array([float(line.rpartition(";")[2].replace(",", ".")) for line in text.splitlines()[1:]])
    best = np.sort(y)[int(np.ceil(0.75 * 60)) - 1]
    expected = np.mean(np.maximum(3 * (y - best), best - y))
    assert found["hindsight_cost"] == pytest.approx(expected)
    assert found["constant_cost"] == pytest.approx(expected)  # these are the rows of the fit
    assert found["cost"] < 0.6 * expected
    assert found["worst_case"] > found["cost"]
    low, high = found["interval"]
    assert low < found["difference"] < high < 0
    assert main(["evaluate", str(model), str(past)]) == 0
    assert "best in hindsight" in capsys.readouterr().out


def test_three_rows_have_no_interval(model, folder, capsys):
    path = folder / "three.csv"
    path.write_bytes("\n".join(shop_lines(3, datetime.date(2024, 3, 1))).encode("cp1252"))
    assert main(["evaluate", str(model), str(path)]) == 0
    assert "3 rows say too little for an interval" in capsys.readouterr().out


def test_explain_says_what_is_in_the_file(model, capsys):
    assert main(["explain", str(model)]) == 0
    said = capsys.readouterr().out
    for part in ("Learned 'Absatz' from 60 rows of past.csv, 2024-01-20 to 2024-03-19", "Preis",
                 "a category of Nord, Süd", "Radius 0.1", "A unit short costs 3"):  # fmt: skip
        assert part in said
    assert main(["explain", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert next(iter(found["effects"])) in ("Filiale", "Preis")
    assert found["columns"][0] == {"name": "Tag", "kind": "date"}


def test_a_file_that_says_otherwise_how_its_table_was_read_is_refused(model, tmp_path, capsys):
    header, arrays = read_archive(model)
    write_archive(tmp_path / "m", {**header, "table": {"outcome": "sold"}}, arrays)
    assert main(["explain", str(tmp_path / "m")]) == 2
    assert "got a file of an older Surefoot: fit it again." in capsys.readouterr().err


def test_models_saved_from_python_are_taken(folder, capsys):
    path, data = folder / "python.surefoot", folder / "python.csv"
    X = pl.DataFrame({"a": np.arange(30.0) % 7, "b": np.arange(30.0) % 4})
    y = (3 * X["a"] + X["b"]).to_numpy()
    surefoot.RobustNewsvendor(2.0, 1.0, radius=0.1).fit(X, y).save(path)
    data.write_text("b,a,y\n1,2,7\n3,4,15\n")
    assert main(["decide", str(path), str(data)]) == 0
    orders = [float(line.split(",")[-1]) for line in capsys.readouterr().out.splitlines()[1:]]
    expected = surefoot.load(path).predict(pl.DataFrame({"a": [2.0, 4.0], "b": [1.0, 3.0]}))
    np.testing.assert_allclose(orders, expected, atol=1e-4)
    assert main(["evaluate", str(path), str(data)]) == 2
    assert "--outcome must be given" in capsys.readouterr().err
    assert main(["evaluate", str(path), str(data), "--outcome", "y"]) == 0
    assert main(["explain", str(path)]) == 0


def test_a_model_of_an_array_says_why_it_cannot(folder, capsys):
    path = folder / "array.surefoot"
    X = np.arange(40.0).reshape(20, 2)
    surefoot.RobustNewsvendor(radius=0.1).fit(X, X[:, 0]).save(path)
    (folder / "array.csv").write_text("a,b\n1,2\n")
    assert main(["decide", str(path), str(folder / "array.csv")]) == 2
    assert "must be a model of named columns" in capsys.readouterr().err


def test_rows_are_put_in_order_of_time_and_that_is_said(folder, capsys):
    lines = shop_lines()
    path, out = folder / "mixed.csv", folder / "mixed.surefoot"
    path.write_bytes("\n".join([lines[0], *lines[:0:-1]]).encode("cp1252"))
    arguments = ["fit", str(path), "--outcome", "Absatz", *COSTS, "--radius", "0.1", "-o", str(out)]
    assert main([*arguments, "--time", "Tag"]) == 0
    assert "note: Rows were not in order of 'Tag': they are sorted by it." in capsys.readouterr().err


def number_lines(rows=40, seed=0):
    """Days that are counted, newest first."""
    rng = np.random.default_rng(seed)
    price = rng.uniform(1, 3, rows)
    sold = 20 - 3 * price + np.arange(rows) / 10 + rng.normal(size=rows)
    lines = [f"{k + 1},{price[k]:.2f},{sold[k]:.1f}" for k in range(rows)]
    return ["day,price,sold", *lines[::-1]]


def test_time_may_be_a_number_which_orders_rows_and_no_more(tmp_path, capsys):
    past, out, page = tmp_path / "past.csv", tmp_path / "m.surefoot", tmp_path / "r.html"
    lines = number_lines()
    past.write_text("\n".join(lines))
    fit = ["fit", str(past), "--outcome", "sold", "--time", "day", *COSTS, "--radius", "0.1"]
    assert main([*fit, "-o", str(out), "--report", str(page)]) == 0
    told = capsys.readouterr()
    assert "Rows were not in order of 'day': they are sorted by it." in told.err
    assert "the order of time, and no more" in told.out
    assert "windows in order of time" in page.read_text()
    assert main(["report", str(out), str(past), "-o", str(page)]) == 0
    (tmp_path / "new.csv").write_text("price\n2.00\n")  # no day is asked for
    capsys.readouterr()
    assert main(["decide", str(out), str(tmp_path / "new.csv")]) == 0
    order = float(capsys.readouterr().out.split(",")[-1])
    assert main(["explain", str(out)]) == 0
    # As in Python: the same rows in order, without the day.
    rows = np.array([line.split(",") for line in lines[:0:-1]], dtype=float)
    X = pl.DataFrame({"price": rows[:, 1]})
    model = PreparedPolicy(RobustNewsvendor(3, 1, radius=0.1, random_state=0))
    model.fit(X, rows[:, 2], time=rows[:, 0])
    assert order == pytest.approx(model.predict(pl.DataFrame({"price": [2.0]}))[0], abs=1e-4)


def test_rows_of_one_day_share_their_time(tmp_path, capsys):
    rng = np.random.default_rng(0)
    day = np.repeat(np.datetime64("2024-01-01") + np.arange(120), 3)
    frame = pl.DataFrame({"day": day, "price": rng.uniform(1, 3, 360)})
    level = np.repeat(np.cumsum(rng.normal(size=120)), 3)  # rows of a day know it of each other
    sold = 30 - 3 * frame["price"].to_numpy() + level + rng.normal(size=360)
    frame.with_columns(sold=sold).write_parquet(tmp_path / "past.parquet")
    out = tmp_path / "m.surefoot"
    fit = ["fit", str(tmp_path / "past.parquet"), "--outcome", "sold", "--time", "day"]
    assert main([*fit, *COSTS, "-o", str(out)]) == 0
    model = PreparedPolicy(RobustNewsvendor(3, 1, random_state=0)).fit(frame, sold, time=day)
    assert model.guarantee() in " ".join(capsys.readouterr().out.split())
    np.testing.assert_allclose(surefoot.load(out).predict(frame), model.predict(frame))


def test_a_parquet_file_may_count_its_days(tmp_path, capsys):
    past, out = tmp_path / "past.parquet", tmp_path / "m.surefoot"
    frame = pl.read_csv("\n".join(number_lines()).encode())
    fit = ["fit", str(past), "--outcome", "sold", "--time", "day", *COSTS, "--radius", "0.1"]
    frame.write_parquet(past)
    assert main([*fit, "-o", str(out)]) == 0
    frame.with_columns(pl.col("day").cast(pl.Float64).replace(7, np.inf)).write_parquet(past)
    assert main([*fit, "-o", str(tmp_path / "none.surefoot")]) == 2
    error = capsys.readouterr().err
    assert "--time must be a day or a finite number in every row, got inf in row 34 of" in error


def test_a_price_is_no_time(past, tmp_path, capsys):
    rows = "".join(f"{k},{2 + k % 3},{k % 7}\n" for k in range(30))
    (tmp_path / "past.csv").write_text(f"day,price,sold\n{rows}")
    fit = ["fit", str(tmp_path / "past.csv"), "--outcome", "sold", "--time", "price", *COSTS]
    assert main([*fit, "--radius", "0.1", "-o", str(tmp_path / "m.surefoot")]) == 0
    assert "'price' has 3 values in 30 rows, and rows that share one" in capsys.readouterr().err


def test_outcomes_that_are_hard_to_believe_are_noted(tmp_path, capsys):
    fit = ["fit", str(tmp_path / "past.csv"), "--outcome", "sold", *COSTS, "--radius", "0.1"]
    rows = [f"{2 + k % 3},{k % 7 + 1}\n" for k in range(30)]
    rows[4] = "2,-5\n"
    (tmp_path / "past.csv").write_text("price,sold\n" + "".join(rows))
    assert main([*fit, "-o", str(tmp_path / "m.surefoot")]) == 0
    assert "note: 1 outcome is below 0, in line 6 of" in capsys.readouterr().err
    (tmp_path / "past.csv").write_text("price,sold\n" + "".join(f"{k % 3},25\n" for k in range(30)))
    assert main([*fit, "-o", str(tmp_path / "m.surefoot")]) == 0
    told = capsys.readouterr().err
    assert "note: The outcome is always 25: there is nothing to learn about it." in told


def test_numbers_that_order_rows_are_nothing_to_learn_from(tmp_path, capsys):
    past = tmp_path / "past.csv"
    past.write_text("day,sold\n" + "".join(f"{k},{k % 7}\n" for k in range(30)))
    fit = ["fit", str(past), "--outcome", "sold", "--time", "day", *COSTS]
    assert main([*fit, "-o", str(tmp_path / "m.surefoot")]) == 2
    assert (
        "must have a column beside 'sold' and the numbers in 'day' (--time)" in capsys.readouterr().err
    )


def test_ctrl_c_leaves_nothing_behind(past, tmp_path, monkeypatch, capsys):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    out = tmp_path / "m.surefoot"
    out.write_text("an older model")
    arguments = ["fit", str(past), "--outcome", "Absatz", *COSTS, "--radius", "0.1", "-o", str(out)]
    for place in ("zipfile.ZipFile.writestr", "surefoot.cli.fit.PreparedPolicy.fit"):
        with monkeypatch.context() as patch:
            patch.setattr(place, interrupt)
            assert main(arguments) == 130
        assert capsys.readouterr().err.endswith("surefoot: interrupted.\n")
        assert [path.name for path in tmp_path.iterdir()] == ["m.surefoot"]
        assert out.read_text() == "an older model"


ENDLESS_FIT = """
import sys, time
from surefoot.cli.main import main
from surefoot.estimators.preparation import PreparedPolicy

def fit(*arguments, **options):
    print("Fitting.", flush=True)
    time.sleep(100)

PreparedPolicy.fit = fit
sys.exit(main())
"""


def test_a_process_that_gets_ctrl_c_ends_with_130_and_leaves_nothing(tmp_path, capsys):
    data = tmp_path / "past.csv"
    assert main(["datasets", "restaurant", "-o", str(data)]) == 0
    command = [sys.executable, "-c", ENDLESS_FIT, "fit", str(data), "--outcome", "steak", *COSTS]
    source = str(Path(__file__).parents[2] / "src")
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "m.surefoot")], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": source},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        while process.stdout.readline() != "Fitting.\n":
            assert process.poll() is None
        time.sleep(1.0)  # by then it sleeps, too
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert error.endswith("surefoot: interrupted.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["past.csv"]


def test_ctrl_c_while_orders_are_written_leaves_nothing(model, new, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", interrupt)
    assert main(["decide", str(model), str(new), "-o", str(tmp_path / "orders.csv")]) == 130
    assert list(tmp_path.iterdir()) == []


def test_the_restaurant_is_there_to_try(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["datasets"]) == 0
    assert "restaurant" in capsys.readouterr().out
    assert main(["datasets", "restaurant", "-o", "past.csv", "--later", "new.csv"]) == 0
    assert pl.read_csv("past.csv").height == 595
    assert pl.read_csv("new.csv").columns[-1] == "steak"
    assert main(["datasets", "restaurant", "--product", "lamb"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("2015-11-07,")


def test_a_doctor_looks_at_everything(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["numpy"] == np.__version__
    assert found["checks"]["compiled engine"].startswith("ok (fit, save, load in")
    assert found["checks"]["its kernels"].startswith(f"kept in {kernel_folder().parent}")
    assert found["checks"]["autodiff engine"].startswith("ok, on ")
    assert main(["doctor"]) == 0


def test_a_doctor_knows_every_extra_and_says_what_each_is_for(capsys, monkeypatch):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"all", "bench", "dev", "docs"}
    monkeypatch.setattr("surefoot.cli.doctor._version", lambda name: None)
    monkeypatch.setitem(sys.modules, "jax", None)
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {f"surefoot[{name}]" for name in extras} == {one.split('"')[1] for one in found["fixes"][1:]}
    assert found["checks"]["autodiff engine"] == "not installed"
    assert main(["doctor"]) == 0
    assert (
        'For a policy for each series (--by), folders of Parquet: pip install "surefoot[panels]"'
        in (capsys.readouterr().out)
    )


@pytest.mark.parametrize(
    ("given", "costs"),
    [
        ({"backorder": 15.0, "holding": 10.0}, (15.0, 10.0)),
        ({"price": 5.0, "cost": 2.0, "salvage": 1.0}, (3.0, 1.0)),
        ({"price": 5.0, "cost": 2.0, "goodwill": 4.0}, (7.0, 2.0)),
        ({"price": 5.0, "cost": 2.0, "salvage": -1.0}, (3.0, 3.0)),
    ],
)
def test_prices_become_costs(given, costs):
    assert Economics(**given).costs() == costs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "got neither"),
        ({"backorder": 1.0}, "got only --backorder"),
        ({"backorder": 1.0, "price": 2.0}, "got --backorder and --price"),
        ({"price": 2.0}, "got no --cost"),
        ({"salvage": 2.0}, "got no --price"),
        ({"price": 2.0, "cost": 2.0}, "--price must be above --cost"),
        ({"price": 3.0, "cost": 2.0, "salvage": 2.0}, "--salvage must be below --cost"),
        ({"price": 3.0, "cost": -2.0}, "--cost must be >= 0"),
        ({"price": float("inf"), "cost": 2.0}, "--price must be >= 0 and finite"),
        ({"backorder": 0.0, "holding": 1.0}, "--backorder must be > 0"),
        ({"backorder": 1.0, "holding": float("nan")}, "--holding must be > 0"),
    ],
)
def test_prices_that_cannot_be_say_why(given, message):
    with pytest.raises(InvalidInputError, match=message):
        Economics(**given).costs()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backorder": 1500.0, "holding": 10.0}, "short costs 150 times as much as one left over: orders are to cover 99.34 %"),
        ({"backorder": 1.0, "holding": 99999.0}, "left over costs 1e+05 times as much as one short: orders are to cover 0.0010 %"),
        ({"price": 2500.0, "cost": 10.0}, "is a decimal sign missing in --price or --cost?"),
        ({"backorder": 1e300, "holding": 1e-300}, "short costs inf times"),
        ({"backorder": 15.0, "holding": 10.0}, None),
        ({"backorder": 99.0, "holding": 1.0}, None),
    ],
)  # fmt: skip
def test_costs_far_apart_are_doubted(given, message):
    doubt = Economics(**given).doubt()
    assert doubt is None if message is None else message in doubt


def test_doubt_is_a_note(past, folder, tmp_path, capsys):
    costs = ["--backorder", "1500", "--holding", "10"]
    asked = ["fit", str(past), "--outcome", "Absatz", *costs, "--radius", "0.1", "--json"]
    assert main([*asked, "-o", str(folder / "doubt.surefoot")]) == 0
    assert any("orders are to cover 99.34 %" in n for n in json.loads(capsys.readouterr().out)["notes"])
    (tmp_path / "s.jsonl").write_text('{"heat": 1, "sold": 2}\n')
    assert main(["learn", str(tmp_path / "s.jsonl"), "--outcome", "sold", *costs]) == 0
    assert "surefoot: A unit short costs 150 times" in capsys.readouterr().err


def test_effects_are_zero_where_a_column_does_not_matter():
    class Policy:
        def predict(self, X):
            return X["a"].to_numpy()

    X = pl.DataFrame({"b": np.arange(300.0), "a": np.arange(300.0)})
    found = fit_command.effects(Policy(), X, {})
    assert list(found) == ["a", "b"]
    assert found["b"] == 0.0
    assert found["a"] > 50


def test_fit_does_not_write_over_its_data(past, tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_bytes(past.read_bytes())
    assert main(["fit", str(data), "--outcome", "Absatz", *COSTS, "-o", str(data)]) == 2
    assert "--out must be another file than those that are read" in capsys.readouterr().err
    assert data.read_bytes() == past.read_bytes()


@pytest.mark.parametrize("command", ["decide", "evaluate", "explain", "report", "learn"])
def test_a_model_with_costs_of_each_row_is_for_python(tmp_path, capsys, command):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"heat": rng.normal(size=30)})
    path, data = tmp_path / "m.surefoot", tmp_path / "new.csv"
    backorder = rng.choice([1.0, 3.0], 30)
    model = surefoot.PreparedPolicy(surefoot.RobustNewsvendor(radius=0.1))
    model.fit(frame, rng.normal(size=30), backorder=backorder).save(path)
    frame.with_columns(sold=1.0).write_csv(data)
    told = {
        "explain": [str(path)], "learn": [str(data), "--model", str(path), "--outcome", "sold"],
    }.get(command, [str(path), str(data)])  # fmt: skip
    assert main([command, *told]) == 2
    assert "must be a model with one pair of costs, got one that learned" in capsys.readouterr().err
