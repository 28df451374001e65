"""The page on the command line: its commands run, in order, and show what the page shows."""

import re
import shlex
from pathlib import Path

import pytest

from surefoot.cli.main import main

pytest.importorskip("typer")
pytest.importorskip("polars")
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "command-line.md"
BLOCK = re.compile(r"^```console\n\$ surefoot (.*)\n((?:.*\n)*?)^```", re.MULTILINE)
# Figures of a fit may change with the method; what was read, and the words, may not.
FIT = re.compile(r"\d+\.\d|radius|orders from|always|%", re.IGNORECASE)


def words(text):
    return " ".join(text.split())


def test_the_commands_of_the_page_run_and_show_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(found) == 4
    for command, shown in found:
        assert main(shlex.split(command)) == 0, command
        out = words(capsys.readouterr().out)
        compared = [line for line in shown.splitlines() if line.strip() and not FIT.search(line)]
        assert compared
        for line in compared:
            assert words(line) in out, command
