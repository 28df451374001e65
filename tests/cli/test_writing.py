"""Files that appear whole or not at all, and what is said when they cannot."""

import errno
import os

import pytest

from surefoot.cli.main import main
from surefoot.exceptions import InvalidInputError, ModelFileError, WritingError
from surefoot.io.archive import write_archive
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


def test_a_place_where_nothing_can_be_removed_either_is_told_by_its_own_name(tmp_path, monkeypatch):
    def read_only(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system", ".table.7.csv")

    for way in ("replace", "unlink"):
        monkeypatch.setattr(f"pathlib.Path.{way}", read_only)
    said = r"[\\/]table.csv must be a file that can be written, got Read-only file system\."
    with pytest.raises(InvalidInputError, match=said), replaced(tmp_path / "table.csv"):
        pass


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files here")
def test_no_file_takes_the_place_of_a_device(tmp_path, capsys):
    device = tmp_path / "device.csv"
    os.mkfifo(device)
    with pytest.raises(InvalidInputError, match="got a device instead of a file"), replaced(device):
        pass
    with pytest.raises(ModelFileError, match="cannot be written to .*: a device instead of a file"):
        write_archive(device, {}, {})
    pytest.importorskip("typer")
    assert main(["datasets", "restaurant", "--out", str(device)]) == 2
    assert f"--out must be a file, got the device {str(device)!r}." in capsys.readouterr().err
    assert device.is_fifo()
    assert list(tmp_path.iterdir()) == [device]


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
