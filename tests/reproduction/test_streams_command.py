"""``python -m reproduction streams``: parts, report, and mistakes."""

import json

import pytest

from reproduction import streams_command as stream_study
from reproduction.__main__ import main
from reproduction.stream_study import Plan

pytest.importorskip("matplotlib")


@pytest.fixture
def tiny(monkeypatch):
    """A study of seconds in the place of the quick one."""
    monkeypatch.setattr(stream_study, "quick_plan", lambda: Plan(3, 300, 2, 900, 2, 100, ("lamb",)))


@pytest.mark.nightly
def test_parts_are_run_and_the_page_is_written_from_them(tiny, tmp_path, capsys, monkeypatch):
    out, docs = tmp_path / "out", tmp_path / "docs"
    docs.mkdir()
    arguments = ["streams", "--out", str(out)]
    assert main([*arguments, "--quick", "--only", "regret", "streams"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "grows no faster than T^0.55" in printed.out
    assert {path.name for path in out.iterdir()} == {
        "regret.csv", "results.csv", "curves.csv", "settings.json", "regret.png", "costs.png",
    }  # fmt: skip
    settings = json.loads((out / "settings.json").read_text())
    assert settings["columns"] == 3
    assert settings["methods"]["refit"].endswith("every 100 rows, on all rows so far")
    monkeypatch.setattr(stream_study, "run_regret", lambda *_: pytest.fail("ran"))
    before = (out / "regret.csv").read_bytes()
    assert main([*arguments, "--report-only", "--docs", str(docs)]) == 0
    assert (out / "regret.csv").read_bytes() == before
    page = (docs / "streams.md").read_text()
    assert page.startswith("# Learning on streams\n")
    assert (docs / "images" / "streams" / "regret.png").exists()


def test_without_river_there_is_a_line_and_no_failure(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    out = tmp_path / "out"
    assert main(["streams", "--quick", "--only", "streams", "--out", str(out)]) == 0
    line = 'Skipped river: river is not installed: pip install "surefoot[online]".'
    assert capsys.readouterr().out.startswith(line)
    assert json.loads((out / "settings.json").read_text())["skipped"] == line
    assert ",river," not in (out / "results.csv").read_text()


def test_one_method_can_be_run_anew_beside_the_others(tiny, tmp_path):
    out = tmp_path / "out"
    arguments = ["streams", "--quick", "--only", "streams", "--out", str(out), "--methods"]
    assert main([*arguments, "saa-window", "online"]) == 0
    first = (out / "results.csv").read_text().splitlines()
    assert main([*arguments, "online", "online-window"]) == 0
    second = (out / "results.csv").read_text().splitlines()
    assert [line for line in first if ",saa-window," in line] == [
        line for line in second if ",saa-window," in line
    ]
    for name in ("online", "online-window", "saa-window"):
        assert sum(f",{name}," in line for line in second) == 3 * 2 * 2


def test_unknown_methods_are_one_line(tmp_path, capsys):
    assert main(["streams", "--methods", "sas", "--out", str(tmp_path / "out")]) == 2
    assert "methods must be 'online' or " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("file", "--out must be a folder, got the file"),
        ("no/where", "--out must lie in an existing folder"),
    ],
)
def test_mistakes_are_one_line(place, message, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["streams", "--quick", "--out", str(tmp_path / place)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"reproduction: {message}")
    assert captured.err.count("\n") == 1


def test_a_report_of_nothing_is_refused(tmp_path, capsys):
    assert main(["streams", "--report-only", "--out", str(tmp_path)]) == 2
    assert "must be a folder with results of a study" in capsys.readouterr().err


def test_unknown_parts_are_refused_with_the_usage(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["streams", "--only", "weather"])
    assert ended.value.code == 2
    assert "usage: python -m reproduction streams" in capsys.readouterr().err
