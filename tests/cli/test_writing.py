"""Files that appear whole or not at all, and what is said when they cannot."""

import errno
import os

import pytest

from surefoot.cli.main import main
from surefoot.exceptions import InvalidInputError, WritingError
from surefoot.io.writing import replaced


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (errno.ENOSPC, WritingError, "cannot be written: No space left on device. It is as before"),
        (errno.EACCES, InvalidInputError, "must be a file that can be written, got Permission denied"),
    ],
)
def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path, number, kind, message):
    path = tmp_path / "table.csv"
    path.write_text("before")

    def fill():
        with replaced(path) as temporary:
            temporary.write_text("half")
            raise OSError(number, os.strerror(number))

    with pytest.raises(kind, match=message):
        fill()
    assert [found.name for found in tmp_path.iterdir()] == ["table.csv"]
    assert path.read_text() == "before"


def test_a_full_disk_under_a_command_is_no_mistake_of_the_user(tmp_path, capsys, monkeypatch):
    pytest.importorskip("typer")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    assert main(["datasets", "restaurant", "--out", str(tmp_path / "yaz.csv")]) == 1
    error = capsys.readouterr().err
    assert "yaz.csv cannot be written: No space left on device" in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_full_disk_under_a_model_is_no_mistake_either(tmp_path, capsys, monkeypatch):
    pytest.importorskip("typer")
    past = tmp_path / "past.csv"
    past.write_text("price,sold\n" + "".join(f"{k % 3},{k % 5}\n" for k in range(20)))

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "m.surefoot.7.part")

    monkeypatch.setattr("pathlib.Path.replace", full)
    fit = [
        "fit",
        str(past),
        "--outcome",
        "sold",
        "--backorder",
        "3",
        "--holding",
        "1",
        "--radius",
        "0.1",
    ]
    assert main([*fit, "-o", str(tmp_path / "m.surefoot")]) == 1
    error = capsys.readouterr().err
    assert error.endswith("m.surefoot: No space left on device.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["past.csv"]
