"""surefoot compare: the screen, the picture, and a line for every mistake."""

import json

import numpy as np
import pytest

from surefoot.cli import compare
from surefoot.cli.main import main
from surefoot.comparison import Folds
from surefoot.comparison import compare as library_compare
from surefoot.costs import Newsvendor
from surefoot.io import read_file

COSTS = ["--backorder", "1", "--holding", "0.2"]
QUICK = ["--folds", "4", "--repeats", "1", "--methods", "erm", "saa"]


@pytest.fixture
def path(tmp_path):
    """Forty days of two shops, with a gap and a decimal or two."""
    rng = np.random.default_rng(0)
    days = np.arange("2024-01-01", "2024-02-10", dtype="datetime64[D]")
    lines = ["date,shop,price,demand"]
    for k, day in enumerate(days):
        shop, price = ("north", "south")[k % 2], rng.uniform(1, 3)
        demand = 10 - 2 * price + 5 * (k % 2) + rng.normal()
        lines.append(f"{day},{shop},{'' if k == 7 else f'{price:.2f}'},{demand:.1f}")
    file = tmp_path / "days.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def run(path, *options):
    return main(["compare", str(path), "--outcome", "demand", *COSTS, *options])


def test_the_screen_shows_what_the_library_finds(path, capsys):
    assert run(path, *QUICK) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{path}: 40 rows, 4 columns.\n")
    assert "A unit short costs 1 (--backorder), a unit left over 0.2 (--holding)" in out
    assert "4-fold cross-validation" in out
    X, y = read_file(path).split("demand")
    found = library_compare(X, y, Newsvendor(1.0, 0.2), ["erm", "saa"], splits=Folds(4, 1))
    assert f"{found.row('erm').cost:.4g}" in out
    assert f"{found.row('saa').difference:+.3g}" in out
    assert all(len(line) <= 80 for line in out.splitlines() if "to +" in line)


def test_a_machine_gets_one_json_object(path, capsys):
    assert run(path, *QUICK, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in found["methods"]] == ["erm", "saa"]
    assert found["rows"] == 40
    assert {"name": "date", "kind": "date", "why": "written year-month-day"} in found["columns"]


def test_windows_and_a_picture(path, tmp_path, capsys):
    picture = tmp_path / "c.png"
    assert run(path, "--window", "20", "--test", "5", "--methods", "saa", "erm", "--reference", "saa",
               "--out", str(picture)) == 0  # fmt: skip
    out = capsys.readouterr().out
    assert "4 windows in order of time: learn from 20 rows, judge on the next 5" in out
    assert "cost beyond that of saa" in out
    assert f"Picture: {picture}" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_columns_can_be_left_out(path, capsys):
    assert run(path, *QUICK, "--drop", "date", "price") == 0
    assert "demand" in capsys.readouterr().out


def test_ctrl_c_prints_what_is_done(path, capsys, monkeypatch):
    def stop(progress):
        if progress.done == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(compare, "_shown", lambda bar: stop)
    assert run(path, *QUICK) == 130
    captured = capsys.readouterr()
    assert "Interrupted: 2 of 4 splits are done." in captured.out
    assert captured.err.endswith("surefoot: interrupted.\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folds", "1"], "folds must be >= 2"),
        (["--folds", "0"], "folds must be >= 2"),
        (["--repeats", "0"], "repeats must be >= 1"),
        (["--folds", "3", "--window", "20"], "got both kinds"),
        (["--window", "20"], "must come together"),
        (["--test", "20"], "must come together"),
        (["--window", "39", "--test", "1"], "at least 41 rows"),
        (["--methods", "em"], "methods must be among surefoot"),
        (["--reference", "saa", "--methods", "erm"], "reference must be one of the methods"),
        (["--drop", "weather"], "must have the column 'weather', got date, shop, price, demand."),
        (["--categories", "stop"], "must have the column 'stop', .* Did you mean 'shop'?"),
        (["--out", "c.gif"], "must end in .png"),
        (["--out", "nowhere/c.png"], "existing folder"),
        (["--folds", "3", "--folds", "4"], "--folds must be given once, got '3' and '4'"),
        (["--seed", "-1"], "--seed must be >= 0"),
    ],
)
def test_a_users_mistake_is_one_line(path, options, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(path, *options) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    for part in message.split(" .* "):
        assert part in error


def test_rows_out_of_order_are_refused_for_windows_alone(path, capsys):
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[:0:-1]]))
    assert run(path, "--window", "20", "--test", "5", "--methods", "saa") == 2
    assert "order of time, got 2024-02-08 after 2024-02-09 in 'date': sort" in capsys.readouterr().err
    assert run(path, *QUICK) == 0
    assert run(path, "--window", "20", "--test", "5", "--methods", "saa", "--time", "date") == 0


def test_local_dates_out_of_order_are_refused_too(path, capsys):
    lines = path.read_text().splitlines()
    days = [line.partition(",") for line in lines[1:]]
    german = [f"{day[8:]}.{day[5:7]}.{day[:4]},{rest}" for day, _, rest in days]
    path.write_text("\n".join([lines[0], *german[::-1]]))
    assert run(path, "--window", "20", "--test", "5", "--methods", "saa") == 2
    assert "got 2024-02-08 after 2024-02-09 in 'date'" in capsys.readouterr().err


def test_three_rows_are_too_few_for_an_interval(tmp_path, capsys):
    file = tmp_path / "d.csv"
    file.write_text("a,demand\n1,5\n2,6\n3,7\n")
    assert run(file, "--folds", "3", "--repeats", "1") == 2
    assert "must have at least 20 rows to compare on, got 3" in capsys.readouterr().err


def test_methods_that_order_the_same_have_no_interval(tmp_path, capsys):
    file = tmp_path / "d.csv"
    file.write_text("a,demand\n" + "".join(f"{k},5\n" for k in range(24)))
    assert run(file, *QUICK, "--reference", "saa") == 0
    assert " to " not in capsys.readouterr().out.split("score")[1]


def test_a_missing_file_and_a_folder_are_one_line(tmp_path, capsys):
    for target, message in ((tmp_path / "none.csv", "cannot be read"), (tmp_path, "got the folder")):
        assert run(target) == 2
        assert message in capsys.readouterr().err
