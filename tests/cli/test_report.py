"""``surefoot report`` and ``surefoot fit --report``: the page from the command line."""

import datetime
import json

import numpy as np
import pytest

from surefoot import PreparedPolicy, RobustNewsvendor, load
from surefoot.cli.main import main
from surefoot.cli.model_table import load_model
from surefoot.io import read_file

COSTS = ["--backorder", "3", "--holding", "1"]


def lines(rows, first, seed=0):
    rng = np.random.default_rng(seed)
    found = ["day,shop,price,remark <b>,demand"]
    for k in range(rows):
        day, price = first + datetime.timedelta(days=k), rng.uniform(2.0, 3.0)
        demand = 20.0 - 3.0 * price + 6.0 * (k % 2) + rng.normal()
        found.append(f"{day},{('north', 'south')[k % 2]},{price:.2f},{k % 5},{demand:.1f}")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("report")
    past = lines(60, datetime.date(2024, 1, 1))
    past[8] = past[8].rpartition(",")[0] + ",9000"  # line 9: a slip of the pen
    (place / "past.csv").write_text("\n".join(past))
    (place / "new.csv").write_text("\n".join(lines(30, datetime.date(2024, 3, 1), seed=1)))
    return place


@pytest.fixture(scope="module")
def fitted(folder):
    """The model and the page that one command writes."""
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    command = ["fit", "past.csv", "--outcome", "demand", "--time", "day", *COSTS, "-o", "m.surefoot"]
    assert main([*command, "--report", "fit.html"]) == 0
    patch.undo()
    return folder


def test_fit_writes_the_model_and_the_page(fitted):
    text = (fitted / "fit.html").read_text()
    assert "How much demand to order" in text
    assert "surefoot fit past.csv --outcome demand --time day" in text
    assert "5 windows in order of time" in text
    assert "A unit short costs 3 (backorder), a unit left over 1 (holding)" in text
    assert load(fitted / "m.surefoot").predict is not None
    assert not list(fitted.glob(".*"))


def test_the_slip_of_the_pen_is_named_by_its_line_and_column(fitted):
    text = (fitted / "fit.html").read_text()
    assert "<td>line 9</td><td>demand</td>" in text.replace(' class=""', "")
    assert "9000" in text


def test_fit_names_slips_by_line_column_and_value(folder, capsys, tmp_path):
    out = tmp_path / "m.surefoot"
    assert main(["fit", str(folder / "past.csv"), "--outcome", "demand", *COSTS, "-o", str(out)]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "line 9 of" in told
    assert "'demand' is 9000, to be expected was about" in told
    assert "suspects_" not in told


def test_report_on_the_same_file_says_that_it_was_learned_from(fitted, capsys, tmp_path):
    out = tmp_path / "again.html"
    command = ["report", str(fitted / "m.surefoot"), str(fitted / "past.csv"), "-o", str(out), "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == str(out)
    assert found["interval"][0] < found["cost"] < found["interval"][1]
    text = out.read_text()
    assert "it learned from them" in text
    policy, about = load_model(fitted / "m.surefoot")
    assert about.guarantee.sentence(0.3) in text.replace("\xa0", " ")
    assert about.guarantee.sentence(0.3) == found["guarantee"]
    assert policy.suspects_ == ()  # a file holds no rows, and yet:
    assert "<td>line 9</td>" in text


def test_report_on_later_rows_judges_the_model_as_it_is(fitted, capsys, tmp_path):
    out = tmp_path / "new.html"
    assert main(["report", str(fitted / "m.surefoot"), str(fitted / "new.csv"), "-o", str(out)]) == 0
    text = out.read_text()
    assert "it had not seen them" in text
    assert "this model" in text
    shown = " ".join(capsys.readouterr().out.split())
    assert "days not seen before it cost" in shown
    assert "Open it in a browser" in shown


def test_time_may_be_a_column_that_the_model_does_not_look_at(folder, capsys, tmp_path):
    model, out = tmp_path / "m.surefoot", tmp_path / "r.html"
    data = str(folder / "past.csv")
    command = ["fit", data, "--outcome", "demand", *COSTS, "-o", str(model), "--ignore", "day"]
    assert main([*command, "--radius", "0.1"]) == 0
    assert main(["report", str(model), data, "--time", "day", "-o", str(out)]) == 0
    assert "5 windows in order of time" in out.read_text()
    assert "As long as the data stay within radius 0.1" in out.read_text()


def test_a_model_saved_from_python_has_a_report_if_the_outcome_is_named(folder, tmp_path, capsys):
    table = read_file(folder / "past.csv", ignore=["day"])
    X, y = table.split("demand")
    model = PreparedPolicy(RobustNewsvendor(3.0, 1.0, radius=0.1)).fit(X, y)
    path, out = tmp_path / "m.surefoot", tmp_path / "r.html"
    model.save(path)
    assert main(["report", str(path), str(folder / "past.csv"), "-o", str(out)]) == 2
    assert "--outcome must be given" in capsys.readouterr().err
    command = ["report", str(path), str(folder / "past.csv"), "--outcome", "demand", "-o", str(out)]
    assert main(command) == 0
    assert "whether it learned from them is not known" in out.read_text()


def test_explain_says_what_was_guaranteed(fitted, capsys):
    assert main(["explain", str(fitted / "m.surefoot"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["guarantee"].startswith("Leaving out 1 number that")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("report m.surefoot past.csv -o r.pdf", "--out must end in .html or .htm, got r.pdf"),
        ("report m.surefoot past.csv -o no/r.html", "--out must lie in an existing folder"),
        ("report m.surefoot past.csv --outcome price", "--outcome must be a column that the model"),
        ("report m.surefoot past.csv --time dya", "Did you mean 'day'?"),
        ("report m.surefoot few.csv", "few.csv must have at least 10 rows to report on, got 3"),
        ("report m.surefoot gap.csv", "must have a number in every row, got a gap in line 5"),
        ("report m.surefoot narrow.csv", "must have the column 'price'"),
        ("report past.csv past.csv", "past.csv"),
        ("report none.surefoot past.csv", "none.surefoot"),
        ("fit past.csv --outcome demand -o x.surefoot --backorder 3 --holding 1 --report r.txt",
         "--report must end in .html or .htm, got r.txt"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_nothing_is_written(fitted, capsys, monkeypatch, command, message):
    monkeypatch.chdir(fitted)
    rows = (fitted / "past.csv").read_text().splitlines()
    (fitted / "few.csv").write_text("\n".join(rows[:4]))
    gap = [*rows[:4], rows[4].rpartition(",")[0] + ",", *rows[5:]]
    (fitted / "gap.csv").write_text("\n".join(gap))
    (fitted / "narrow.csv").write_text("\n".join(row.replace("price", "prize") for row in rows))
    before = sorted(path.name for path in fitted.iterdir())
    assert main(command.split()) == 2
    told = capsys.readouterr().err.strip()
    assert message in told
    assert len(told.splitlines()) == 1
    assert sorted(path.name for path in fitted.iterdir()) == before
