"""The page of benchmarks is the one that its script writes from the committed results."""

import shutil
from pathlib import Path

import pytest

from benchmarks import page

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def copied(monkeypatch, tmp_path):
    """A copy of the page that may be written anew."""
    (tmp_path / "images").mkdir()
    shutil.copy(DOCS / "benchmarks.md", tmp_path)
    monkeypatch.setattr(page, "DOCS", tmp_path)
    return tmp_path / "benchmarks.md"


def test_the_page_is_what_the_results_say(copied):
    page.main()
    assert copied.read_text(encoding="utf-8") == (DOCS / "benchmarks.md").read_text()


def test_a_section_whose_results_are_older_than_its_script_stays_and_says_so(
    copied, monkeypatch, capsys
):
    def stale():
        return {}["a new column"]

    before = copied.read_text(encoding="utf-8")
    monkeypatch.setitem(page.SECTIONS, "Cores", stale)
    page.main()
    said = "'Cores' stays as it was: its results have no column 'a new column'. Run its script first."
    assert said in capsys.readouterr().out
    assert copied.read_text(encoding="utf-8") == before
