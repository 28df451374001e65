"""Screens on how-to pages show what the commands say."""

import html
import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
SPEC = importlib.util.spec_from_file_location("screens", DOCS / "screens.py")
screens = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(screens)


def shown(picture):
    """The texts of a picture, without figures, which may change with the method."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    return re.sub(r"\d+(\.\d+)?", "", html.unescape(" ".join(texts))).split()


@pytest.mark.parametrize("name", screens.SCREENS)
def test_a_screen_shows_what_its_commands_say(name):
    kept = (DOCS / "images" / "screens" / f"{name}.svg").read_text(encoding="utf-8")
    assert shown(kept) == shown(screens.picture(name))
    assert "https://" not in re.sub(r"<!--.*?-->", "", kept, flags=re.DOTALL)


@pytest.mark.parametrize("name", screens.SCREENS)
def test_a_screen_is_on_a_page(name):
    pages = [page.read_text(encoding="utf-8") for page in (DOCS / "howto").glob("*.md")]
    assert sum(f"images/screens/{name}.svg" in page for page in pages) == 1
