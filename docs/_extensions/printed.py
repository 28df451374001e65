"""Run the Python blocks of a page, and show below each what it printed and drew.

Blocks of a page share their names, as in ``tests/test_docs.py``. A block that is followed by its output
on the page is left alone. Pages are run again only when their code, or that of the library, has
changed.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

import surefoot

LOGGER = logging.getLogger(__name__)
FOLDER = "_printed"  # beside the pages, not under version control
PICTURES = (".png", ".svg")
LONGEST = 6_000  # letters of output that a page shows
GAP = re.compile(r"(?<=\S) {2,}(?=\S)")  # what columns are set with


def python_blocks(page: nodes.document) -> list[nodes.literal_block]:
    """Return the blocks of a page that are to be run, in their order."""
    return [block for block in page.findall(nodes.literal_block) if block.get("language") == "python"]


def has_output(block: nodes.literal_block) -> bool:
    """Whether the page says by itself what a block prints."""
    siblings = block.parent.children
    after = siblings[siblings.index(block) + 1 :][:1]
    return any(
        isinstance(node, nodes.literal_block) and node.get("language") == "text" for node in after
    )


def run(sources: list[str], place: Path) -> list[dict[str, Any]]:
    """Run blocks in an empty folder; return what each printed, and the pictures that it wrote."""
    names: dict[str, Any] = {"__name__": "page"}
    found, before = [], Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, source in enumerate(sources):
                there, printed = set(Path(folder).iterdir()), io.StringIO()
                with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                    exec(compile(source, f"block {number + 1}", "exec"), names)
                drawn = [p for p in set(Path(folder).iterdir()) - there if p.suffix in PICTURES]
                kept = [_keep(path, place, number) for path in sorted(drawn)]
                found.append({"printed": printed.getvalue(), "pictures": kept})
        finally:
            os.chdir(before)
    return found


def _keep(path: Path, place: Path, number: int) -> str:
    place.mkdir(parents=True, exist_ok=True)
    kept = f"{number + 1}-{path.name}"
    shutil.copy(path, place / kept)
    return kept


@cache
def library() -> str:
    """Return a checksum of the library's code: with other code it may print something else."""
    found = hashlib.sha256()
    for path in sorted(Path(surefoot.__file__).parent.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def is_table(text: str) -> bool:
    """Whether wrapped lines would break columns: some line has three of them.

    A number, a gap and a sentence may be wrapped.
    """
    return any(len(GAP.findall(line)) > 1 for line in text.splitlines())


def outputs(app: Sphinx, docname: str, sources: list[str]) -> list[dict[str, Any]]:
    """Return what the blocks of a page print, from the last build if nothing has changed."""
    place = Path(app.srcdir) / FOLDER / docname
    record = place.with_suffix(".json")
    seen = hashlib.sha256("\0".join([library(), *sources]).encode()).hexdigest()
    if record.exists():
        kept = json.loads(record.read_text())
        if kept["seen"] == seen:
            return list(kept["found"])
    found = run(sources, place)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({"seen": seen, "found": found}))
    return found


def show_outputs(app: Sphinx, page: nodes.document) -> None:
    """Put what was printed and drawn below each block."""
    docname = app.env.docname
    blocks = python_blocks(page)
    if not blocks or not str(app.env.doc2path(docname)).endswith(".md"):
        return
    try:
        found = outputs(app, docname, [block.astext() for block in blocks])
    except Exception as error:  # whatever the code of a page raises is a fault of the page
        LOGGER.warning(
            "a block of the page fails: %s: %s", type(error).__name__, error, location=docname
        )
        return
    there = {Path(image["uri"]).name for image in page.findall(nodes.image)}  # shown by the page itself
    for block, made in zip(blocks, found, strict=True):
        shown: list[nodes.Node] = []
        if made["printed"].strip() and not has_output(block):
            text = made["printed"].rstrip()[:LONGEST]
            shown.append(nodes.literal_block(text, text, language="text"))
        for name in made["pictures"]:
            if name.partition("-")[2] in there:
                continue
            at = f"{FOLDER}/{docname}/{name}"
            app.env.images.add_file(docname, at)
            image = nodes.image(uri=at, candidates={"*": at}, alt=name)
            shown.append(nodes.container("", image, classes=["drawn"]))
        parent = block.parent
        parent[parent.index(block) + 1 : parent.index(block) + 1] = shown
    for block in page.findall(nodes.literal_block):
        if block.get("language") == "text":
            block["classes"] += ["printed"] if is_table(block.astext()) else ["printed", "sentences"]


def let_pictures_scroll(app: Sphinx, page: nodes.document) -> None:
    """Treat pictures of the gallery as those of other pages: narrow screens scroll them."""
    pictures = [node for node in page.findall() if type(node).__name__ == "imgsgnode"]
    for picture in pictures:
        picture.replace_self(nodes.container("", picture.deepcopy(), classes=["drawn"]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Run pages as they are read."""
    app.connect("doctree-read", show_outputs)
    app.connect("doctree-read", let_pictures_scroll)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
