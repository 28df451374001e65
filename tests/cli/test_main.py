"""The command: exit codes and one-line messages."""

import pytest

from surefoot.cli.main import main
from surefoot.version import __version__


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"surefoot {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["dmeo"], ["demo", "--dyas", "3"], ["compare", "--quik"]])
def test_unknown_words_are_refused_with_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: surefoot" in capsys.readouterr().err


def test_a_users_mistake_is_one_line(tmp_path, capsys):
    assert main(["demo", "--days", "3", "--out", str(tmp_path / "demo.png")]) == 2
    captured = capsys.readouterr()
    assert captured.err == "surefoot: days must be between 10 and 595, got 3.\n"
    assert "Traceback" not in captured.out


def test_a_missing_folder_is_found_before_the_work(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "nowhere" / "demo.png")]) == 2
    assert "must lie in an existing folder" in capsys.readouterr().err


def test_ctrl_c_is_one_line(monkeypatch, tmp_path, capsys):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("surefoot.cli.main.run_demo", interrupt)
    assert main(["demo", "--out", str(tmp_path / "demo.png")]) == 130
    assert capsys.readouterr().err == "surefoot: interrupted.\n"
