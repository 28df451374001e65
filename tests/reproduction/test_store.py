"""The store: what is in it stays, and what is not ours is left alone."""

import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

from reproduction import ResultStore, ResultStoreError, Suite
from reproduction.methods import Robust
from surefoot.exceptions import SurefootError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


def test_what_is_appended_comes_back_as_it_was(path, made_up):
    rows = [
        made_up("saa", 0.1 + 0.2, repetition=0),
        made_up("saa", None, repetition=1, status="failed", error="ValueError: 'quoted', \"twice\""),
        made_up("literal", 1e-300, gap=float("inf"), radius=0.0, note="σ² — ü"),
    ]
    with ResultStore(path) as store:
        for row in rows:
            store.append(row)
        assert store.results() == rows
    with ResultStore(path) as store:
        assert store.results() == rows


def test_a_row_is_there_for_a_reader_at_once(path, made_up):
    with ResultStore(path) as writer, ResultStore(path) as reader:
        for k in range(5):
            writer.append(made_up("saa", float(k), repetition=k))
            assert len(reader.results()) == k + 1


def test_another_process_can_read_while_this_one_writes(path, made_up):
    code = f"from reproduction import ResultStore; print(len(ResultStore({str(path)!r}).results()))"
    with ResultStore(path) as store:
        store.append(made_up("saa", 1.0))
        seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        store.append(made_up("saa", 1.0, repetition=1))
    assert seen.stdout == "1\n"


def test_pending_leaves_out_what_is_there(path, small_suite, made_up):
    cells = list(small_suite().cells())
    with ResultStore(path) as store:
        store.append(made_up("x", 1.0, key=cells[0].key))
        store.append(made_up("x", None, key=cells[1].key, status="refused", error="why"))
        store.append(made_up("x", None, key=cells[2].key, status="failed", error="why"))
        assert store.pending(cells) == cells[3:]
        assert store.pending(cells, retry_failed=True) == cells[2:]


def test_a_method_with_other_settings_is_refused(path, small_suite):
    suite = small_suite(1, ["ours-fixed-2"])
    changed = Suite(suite.data, (Robust("ours-fixed-2", "ours", radius=0.5),), 1)
    with ResultStore(path) as store:
        store.claim(suite.cells())
        store.claim(suite.cells())
        renamed = replace(suite.methods[0], label="another label")
        store.claim(Suite(suite.data, (renamed,), 1).cells())
        with pytest.raises(
            ResultStoreError, match=r'must hold ours-fixed-2 .*"radius": 0.5.*, got .*0.3'
        ):
            store.claim(changed.cells())
        assert store.settings()["ours-fixed-2"]["radius"] == 0.3


def test_an_empty_file_is_a_store_that_was_never_begun(path):
    path.touch()
    with ResultStore(path) as store:
        assert store.results() == []


def refused(path, message):
    before = path.read_bytes()
    with pytest.raises(ResultStoreError, match=message) as caught:
        ResultStore(path)
    assert isinstance(caught.value, SurefootError)
    assert path.read_bytes() == before
    assert "\n" not in str(caught.value)


def test_a_foreign_file_is_refused_and_left_alone(path):
    path.write_text("n,cost\n10,0.3\n")
    refused(path, "must be a file that python -m reproduction made, got .*begins with b'n,cost")


def test_a_foreign_database_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE cells (key)")
    other.close()
    refused(path, "got .*, a database of another program")


def test_a_database_with_another_format_is_refused(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE meta (name, value)")
        other.execute("INSERT INTO meta VALUES ('format', 'photos')")
    other.close()
    refused(path, "format 'photos'")


def test_a_newer_version_is_refused(path):
    ResultStore(path).close()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE meta SET value = '2' WHERE name = 'version'")
    other.close()
    refused(path, "must be of version 1, got version 2")


@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_damaged_store_is_refused_and_left_alone(path, damage, made_up):
    with ResultStore(path) as store:
        for k in range(300):
            store.append(made_up("saa", float(k), repetition=k))
    whole = path.read_bytes()
    half = len(whole) // 2
    if damage == "cut":
        path.write_bytes(whole[: half + 100])
    else:
        path.write_bytes(whole[:4096] + b"\xa5" * half + whole[4096 + half :])
    refused(path, "must be an undamaged file, got ")


def test_a_folder_and_a_missing_folder_are_refused(tmp_path):
    with pytest.raises(ResultStoreError, match="a folder"):
        ResultStore(tmp_path)
    with pytest.raises(ResultStoreError, match="must lie in an existing folder"):
        ResultStore(tmp_path / "nowhere" / "results.sqlite")
