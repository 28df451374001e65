"""HTML in small pieces: whatever is not markup already is escaped."""

import html
from collections.abc import Iterable, Sequence

SHORT_ROWS = 6


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, *children: str, kind: str = "", **attributes: str) -> Markup:
    """Return an element; children and attributes that are not markup are escaped.

    >>> element("p", "a < b", kind="note")
    '<p class="note">a &lt; b</p>'
    """
    given = {"class": kind, **attributes} if kind else attributes
    head = "".join(f' {key}="{html.escape(value)}"' for key, value in given.items())
    inside = "".join(escaped(child) for child in children)
    return Markup(f"<{name}{head}>{inside}</{name}>")


def escaped(words: str) -> Markup:
    """Return words as markup."""
    return words if isinstance(words, Markup) else Markup(html.escape(words))


def tight(words: str) -> str:
    r"""Return words in which a number and its percent sign stay on one line.

    >>> tight("95 % of them")
    '95\xa0% of them'
    """
    return words.replace(" %", "\xa0%")


def joined(parts: Iterable[str]) -> Markup:
    """Return parts one after the other."""
    return Markup("".join(escaped(part) for part in parts))


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: int = 0) -> Markup:
    """Return a table that scrolls where it is wider than the screen; the last columns are numbers."""
    first = len(head) - right
    top = joined(
        element("th", name, kind="number" if k >= first else "", scope="col")
        for k, name in enumerate(head)
    )
    body = joined(
        element("tr", joined(
            element("td", cell, kind="number" if k >= first else "") for k, cell in enumerate(row)
        ))
        for row in rows
    )  # fmt: skip
    table = element("table", element("thead", element("tr", top)), element("tbody", body))
    # On paper a table is not torn apart unless it would leave half a page empty.
    kind = "scroll short" if len(rows) <= SHORT_ROWS else "scroll"
    return element("div", table, kind=kind, tabindex="0")
