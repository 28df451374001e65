"""Every Python block in README and docs runs, page by page, in an empty folder."""

import re
from pathlib import Path

import pytest

import surefoot
from surefoot.io import codec

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page):
    text = page.read_text()
    return [(text[: match.start()].count("\n") + 2, match[1]) for match in BLOCK.finditer(text)]


# Pages that compile for up to half a minute each; a push that builds the documentation runs them all.
SLOW = {
    "docs/howto/costs.md", "docs/howto/general.md", "docs/howto/policies.md", "docs/howto/portfolio.md",
    "docs/robustness.md",
}  # fmt: skip
TUTORIAL = ROOT / "docs" / "tutorial.md"  # has a test of its own, which also compares what is printed
NAMES = {str(page.relative_to(ROOT)): page for page in PAGES if blocks(page) and page != TUTORIAL}
RUN = [
    pytest.param(page, id=name, marks=[pytest.mark.nightly] if name in SLOW else [])
    for name, page in NAMES.items()
]


@pytest.mark.parametrize("page", RUN)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in surefoot.__all__:  # parts of ours are registered first, and stay
        getattr(surefoot, name)
    monkeypatch.setattr(codec, "_CLASSES", dict(codec._CLASSES))  # a page's classes end with it
    namespace = {"__name__": "page"}
    for line, source in blocks(page):
        code = compile("\n" * (line - 1) + source, str(page), "exec")
        exec(code, namespace)
    assert capsys.readouterr().out or page.name == "save.md" or page.name == "paper.md"


WITH_OUTPUT = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def test_the_tutorial_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for source, told in WITH_OUTPUT.findall(TUTORIAL.read_text()):
        exec(source, namespace)
        printed = capsys.readouterr().out
        assert NUMBER.sub("", printed).split() == NUMBER.sub("", told).split()
        if "s/fit" not in told:  # a table with seconds
            made, expected = (list(map(float, NUMBER.findall(text))) for text in (printed, told))
            assert made == pytest.approx(expected, rel=0.05)


def test_pages_have_code_to_run():
    assert sum(len(blocks(page)) for page in PAGES) >= 15


def test_links_between_pages_lead_somewhere():
    link = re.compile(r"\]\((?!https?:)([^)#]+)")
    for page in PAGES:
        for target in link.findall(page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_how_to_page_has_a_picture():
    shown = re.compile(r"!\[|savefig\(|\.picture\(\"")
    for page in (ROOT / "docs" / "howto").glob("*.md"):
        assert page.name == "index.md" or shown.search(page.read_text()), page.name
