"""surefoot compare: the screen, the picture, and a line for every mistake."""

import numpy as np
import pytest

from surefoot.cli import compare
from surefoot.cli.csv_table import read_csv, split_columns
from surefoot.cli.main import main
from surefoot.comparison import Folds
from surefoot.comparison import compare as library_compare
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError

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
    assert out.startswith(f"{path}: 40 rows, outcome demand, backorder 1, holding 0.2\n")
    assert "4-fold cross-validation" in out
    table, y = split_columns(read_csv(path), "demand", path)
    found = library_compare(table, y, Newsvendor(1.0, 0.2), ["erm", "saa"], splits=Folds(4, 1))
    assert f"{found.row('erm').cost:.4f}" in out
    assert f"{found.row('saa').difference:+.4f}" in out


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

    monkeypatch.setattr(compare, "_show_progress", stop)
    assert run(path, *QUICK) == 130
    captured = capsys.readouterr()
    assert "Interrupted: 2 of 4 splits are done." in captured.out
    assert captured.err == "surefoot: interrupted.\n"


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
        (
            ["--drop", "weather"],
            "--drop must be a column of .* (date, shop, price, demand), got 'weather'",
        ),
        (["--categories", "store"], "--categories must be a column of .* got 'store'"),
        (["--out", "c.gif"], "must end in .png"),
        (["--out", "nowhere/c.png"], "existing folder"),
        (["--backorder", "-1"], "backorder must be > 0"),
        (["--seed", "-1"], "random_state must be >= 0"),
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


@pytest.mark.parametrize(
    ("text", "outcome", "message"),
    [
        ("a,demand\n1,2\n3,x\n", "demand", r"got 'x' in 'demand', line 3"),
        ("a,demand\n1,2\n3,\n", "demand", r"got a gap in 'demand', line 3"),
        ("a,demand\n1,2\n3,4\n", "sales", r"--outcome must be a column .*\(a, demand\), got 'sales'"),
        ("demand\n1\n2\n", "demand", "a column beside 'demand', got none"),
    ],
)
def test_outcomes_that_cannot_be_are_named(text, outcome, message, tmp_path):
    file = tmp_path / "d.csv"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        split_columns(read_csv(file), outcome, file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3\n", "Every line must have 2 cells .* got 1 in line 3"),
        (b"a,a\n1,2\n", "distinct names, got 'a' twice"),
        (b"a,b\n", "a header and rows, got 1 line"),
        (b"", "got 0 lines"),
        (b"a,b\n\xff\xfe,1\n", "UTF-8"),
    ],
)
def test_files_that_cannot_be_read_say_why(content, message, tmp_path):
    file = tmp_path / "d.csv"
    file.write_bytes(content)
    with pytest.raises(InvalidInputError, match=message):
        read_csv(file)


def test_a_missing_file_and_a_folder_are_one_line(tmp_path, capsys):
    for target in (tmp_path / "none.csv", tmp_path):
        assert run(target) == 2
        assert "The file cannot be read" in capsys.readouterr().err


def test_numbers_can_be_names(tmp_path):
    file = tmp_path / "d.csv"
    file.write_text("store,x,demand\n7,1,2\n,1,3\n12,1,4\n")
    table, outcomes = split_columns(read_csv(file), "demand", file, categories=["store"])
    assert [column.kind for column in table.columns] == ["category", "number"]
    assert table.columns[0].values.tolist() == ["7", None, "12"]
    assert outcomes == [2.0, 3.0, 4.0]


def test_cells_are_what_all_of_their_column_are(tmp_path):
    file = tmp_path / "d.csv"
    file.write_text("﻿n;d;t;m\n1;2024-01-31;x;1\nNA;;;a\n-2.5e1;2024-02-01;y;\n", encoding="utf-8")
    columns = read_csv(file)
    assert columns["n"] == [1.0, None, -25.0]
    assert [str(day) for day in columns["d"]] == ["2024-01-31", "None", "2024-02-01"]
    assert columns["t"] == ["x", None, "y"]
    assert columns["m"] == ["1", "a", None]
