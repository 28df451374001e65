"""``python -m reproduction paper``: options, errors, resuming, and what it writes."""

import pytest

from reproduction import ResultStore, Suite, SyntheticSet, YazSet
from reproduction import paper_command as reproduce
from reproduction.__main__ import main


@pytest.fixture
def tiny(monkeypatch):
    """A grid of seconds in the place of the quick one, and no timing."""

    def suite(methods, repetitions, *, coefficients, contexts):
        data = (
            SyntheticSet(8, 4, 0.1, coefficients, contexts, test=40),
            SyntheticSet(12, 4, 0.1, coefficients, contexts, test=40),
            YazSet("lamb", 30),
        )
        return Suite(data, methods, repetitions)

    monkeypatch.setattr(reproduce, "quick_suite", suite)
    monkeypatch.setattr(reproduce, "measure", lambda store, **options: iter(()))


METHODS = ["--methods", "saa", "ours-fixed-2", "oracle"]


def test_a_quick_run_writes_everything_and_resumes(tiny, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["paper", "--quick", *METHODS, "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("15 cells run now, 1 refused with a reason.\n")
    assert captured.err == ""  # no one watches: no line of progress
    names = {path.name for path in out.iterdir()}
    assert {
        "results.sqlite", "results.csv", "summary.csv", "table1.csv", "claims.csv", "claims.json",
        "figure1.svg", "figure1.png", "figure2.svg", "restaurant.svg", "report.html",
    } <= names  # fmt: skip
    before = (out / "results.csv").read_bytes()
    assert main(["paper", "--quick", *METHODS, "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith("0 cells run now.\n")
    assert (out / "results.csv").read_bytes() == before


def test_flags_reach_the_cells(tiny, tmp_path):
    out = tmp_path / "out"
    flags = [
        "--contexts",
        "gaussian",
        "--coefficients",
        "mixed",
        "--repetitions",
        "1",
        "--methods",
        "saa",
    ]
    assert (
        main(["paper", "--quick", "--jobs", "2", "--backend", "threading", *flags, "--out", str(out)])
        == 0
    )
    with ResultStore(out / "results.sqlite") as store:
        keys = sorted(result.key for result in store.results())
    assert keys == [
        "synthetic/mixed/gaussian/s=4/variance=0.1/n=12/test=40/saa/repetition=0",
        "synthetic/mixed/gaussian/s=4/variance=0.1/n=8/test=40/saa/repetition=0",
        "yaz/lamb/days=30/saa/repetition=0",
    ]


def test_report_only_runs_nothing_and_writes_the_docs(tiny, tmp_path, capsys, monkeypatch):
    out, docs = tmp_path / "out", tmp_path / "docs"
    docs.mkdir()
    assert main(["paper", "--quick", *METHODS, "--out", str(out)]) == 0
    monkeypatch.setattr(reproduce, "run_suite", lambda *args, **options: pytest.fail("ran"))
    (out / "report.html").unlink()
    assert main(["paper", "--report-only", "--out", str(out)]) == 0
    assert (out / "report.html").exists()
    for path in out.glob("results.sqlite*"):
        path.unlink()  # a committed result set has the tables alone
    assert main(["paper", "--report-only", "--out", str(out), "--docs", str(docs)]) == 0
    assert (docs / "reproduction.md").read_text().startswith("# The paper, reproduced")
    assert (docs / "images" / "reproduction" / "figure1.png").exists()


def test_the_size_decides_the_repetitions(monkeypatch, tmp_path):
    seen = []

    def note(suite, store, **options):
        seen.append((len(suite.data), suite.repetitions, len(suite.methods)))
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "run_suite", note)
    for size in ([], ["--full"], ["--quick"], ["--full", "--repetitions", "3"]):
        assert main(["paper", *size, "--out", str(tmp_path / "out")]) == 130
    assert seen == [(91, 5, 15), (91, 20, 15), (13, 2, 15), (91, 3, 15)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "sas"], "methods must be among ours-auto-2, "),
        (["--jobs", "0"], "jobs must be >= 1, got 0."),
        (["--repetitions", "0"], "repetitions must be >= 1, got 0."),
        (["--report-only"], "--out must be a folder with results.sqlite or results.csv, got "),
    ],
)
def test_mistakes_are_one_line(arguments, message, tmp_path, capsys):
    assert main(["paper", *arguments, "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"reproduction: {message}")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


def test_a_foreign_store_is_one_line_and_left_alone(tmp_path, capsys):
    store = tmp_path / "results.sqlite"
    store.write_text("my thesis")
    assert main(["paper", "--out", str(tmp_path)]) == 2
    assert "must be a file that python -m reproduction made" in capsys.readouterr().err
    assert store.read_text() == "my thesis"


def test_a_file_and_a_missing_folder_are_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["paper", "--out", str(tmp_path / "file")]) == 2
    assert "--out must be a folder, got the file" in capsys.readouterr().err
    assert main(["paper", "--out", str(tmp_path / "no" / "where")]) == 2
    assert "--out must lie in an existing folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--quick", "--full"], ["--backend", "slurm"], ["--contexts", "cauchy"]]
)
def test_unknown_choices_are_refused_with_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["paper", *arguments])
    assert ended.value.code == 2
    assert "usage: python -m reproduction paper" in capsys.readouterr().err


def test_where_someone_watches_there_is_a_line_of_progress(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main(["paper", "--quick", "--methods", "saa", "--out", str(tmp_path / "out")]) == 0
    assert "cells" in capsys.readouterr().err
