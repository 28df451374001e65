"""What builds the documentation: blocks are run and shown, formulas are MathML, faults are warnings."""

import io
import sys
from pathlib import Path

import pytest

sphinx = pytest.importorskip("sphinx.application")
pytest.importorskip("myst_parser")

DOCS = Path(__file__).parent.parent / "docs"
CONF = """
import sys
sys.path.insert(0, {folder!r})
extensions = ["myst_parser", "mathml", "printed"]
myst_enable_extensions = ["dollarmath"]
exclude_patterns = ["_printed"]
"""
PAGE = """
# A page

The order is $z = \\tfrac{{b}}{{b + h}}$.

```python
total = 1 + 1
```

```python
print("total", total)
{more}
```
"""

pytestmark = pytest.mark.filterwarnings("default")  # of Sphinx and of what it imports


@pytest.fixture
def build(tmp_path):
    """Build a page with a block, and return its HTML and what was warned of."""

    def built(more):
        source = tmp_path / "source"
        source.mkdir(exist_ok=True)
        (source / "conf.py").write_text(CONF.format(folder=str(DOCS / "_extensions")))
        (source / "index.md").write_text(PAGE.format(more=more))
        warned = io.StringIO()
        app = sphinx.Sphinx(
            source, source, tmp_path / "out", tmp_path / "trees", "html",
            status=None, warning=warned, freshenv=True,
        )  # fmt: skip
        app.build()
        told = warned.getvalue().splitlines()  # without what a second build in one process is told
        ours = "\n".join(line for line in told if "is already registered" not in line)
        return (tmp_path / "out" / "index.html").read_text(), ours

    yield built
    for name in ("mathml", "printed"):
        sys.modules.pop(name, None)
    sys.path[:] = [entry for entry in sys.path if entry != str(DOCS / "_extensions")]


def test_what_a_block_prints_stands_below_it(build):
    page, warned = build("")
    assert "total 2" in page
    assert warned == ""
    again, _ = build("print('more')")  # the page has changed, so it is run again
    assert "total 2\nmore" in again


def test_what_a_block_draws_stands_below_it(build):
    page, warned = build("import pathlib; _ = pathlib.Path('picture.svg').write_text('<svg/>')")
    assert 'src="_images/2-picture.svg"' in page
    assert warned == ""


def test_sentences_are_wrapped_and_tables_are_not(build):
    wrapped, _ = build("print('0.3  a sentence')")
    assert "printed sentences" in wrapped
    table, _ = build("print('a  b  c')")
    assert "sentences" not in table


def test_a_page_is_run_again_when_the_library_has_changed(build, monkeypatch):
    page, _ = build("import random; print(random.random())")
    again, _ = build("import random; print(random.random())")
    assert again == page
    monkeypatch.setattr(sys.modules["printed"], "library", lambda: "another")
    changed, _ = build("import random; print(random.random())")
    assert changed != page


def test_a_picture_that_the_page_shows_by_itself_is_shown_once(build, tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "picture.svg").write_text("<svg/>")
    draw = "import pathlib; _ = pathlib.Path('picture.svg').write_text('<svg/>')"
    page, warned = build(f"{draw}\n```\n\n![drawn](picture.svg)\n\n```python\ntotal")
    assert page.count("<img") == 1
    assert warned == ""


def test_a_block_that_fails_is_a_warning(build):
    _, warned = build("raise ValueError('no demand')")
    assert "a block of the page fails: ValueError: no demand" in warned


def test_formulas_need_no_script(build):
    page, _ = build("")
    assert "<math" in page
    assert "mathjax.js" not in page.lower()
    assert "tex-mml" not in page
