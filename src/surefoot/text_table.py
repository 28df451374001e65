"""Plain tables of text, for answers that are read in a terminal."""

import math
from collections.abc import Sequence


def number(value: float | None) -> str:
    """Return a number in at most six places, or a dash for None.

    >>> number(0.123456), number(None), number(float("inf"))
    ('0.1235', '-', 'inf')
    """
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.4g}"


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: int = 0) -> str:
    """Return rows under headings, columns aligned, the last ``right`` of them on their right.

    >>> print(text_table(("rule", "radius"), (("auto", "0.1"), ("paper", "2.4"))))
    rule   radius
    auto   0.1
    paper  2.4
    >>> print(text_table(("rule", "radius"), (("auto", "0.1"), ("paper", "12.4")), right=1))
    rule   radius
    auto      0.1
    paper    12.4
    """
    lines = [list(headings), *[list(row) for row in rows]]
    widths = [max(len(line[j]) for line in lines) for j in range(len(headings))]
    first = len(headings) - right
    return "\n".join(
        "  ".join(
            cell.ljust(widths[j]) if j < first else cell.rjust(widths[j]) for j, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )
