"""From the bytes of a text file to cells with line numbers: encoding, separator, title, header."""

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Self

import numpy as np
import polars as pl

from surefoot.exceptions import InvalidInputError
from surefoot.typing import IntArray

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
# The separator, titles and the header are looked for in so many lines.
FIRST_LINES = 60
# Rows are handed to polars in blocks, so that Python objects exist for one block at a time.
BLOCK_ROWS = 20_000
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_LARGEST_CELL = 10_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Cells as text under a header, before anybody has asked what they mean.

    Attributes
    ----------
    name
        The file as it is called in messages.
    cells
        One column of text for each name; an empty text is a gap.
    lines
        For each row, the line (or the row of the sheet) that it stands in, from 1.
    notes
        What was decided, as sentences.
    separator
        What stands between cells; empty where the file has cells of its own.
    unit
        "line" or "row": what ``lines`` count.
    elsewhere
        Where a column may be that is not here, as the end of a sentence.
    typed
        Columns whose type the file gives, as numbers and dates.
    """

    name: str
    cells: pl.DataFrame = field(repr=False)
    lines: IntArray = field(repr=False)
    notes: tuple[str, ...] = ()
    separator: str = ""
    unit: str = "line"
    elsewhere: str = field(default="", repr=False)
    typed: dict[str, pl.Series] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """How many rows."""
        return len(self.lines)

    def place(self, row: int) -> str:
        """Return where a row stands: ``line 17 of sales.csv``."""
        return f"{self.unit} {self.lines[row]} of {self.name}"

    def take(self, rows: IntArray) -> Self:
        """Return some rows, in the order asked for."""
        typed = {name: column[rows] for name, column in self.typed.items()}
        return replace(self, cells=self.cells[rows], lines=self.lines[rows], typed=typed)


def decode(data: bytes, encoding: str | None, name: str) -> tuple[str, str]:
    """Return the text and a sentence about its encoding; refuse bytes that are no text.

    >>> decode("Käse".encode("cp1252"), None, "a.csv")[1]
    'The text is not UTF-8 and was read as Windows-1252 (cp1252); --encoding changes that.'
    >>> decode("Käse".encode("utf-8-sig"), None, "a.csv")[1]
    'The text is UTF-8.'
    """
    if encoding is not None:
        try:
            return data.decode(encoding), f"The text was read as {encoding}, as told."
        except LookupError as error:
            raise InvalidInputError(
                f"encoding must be one that Python knows, such as utf-8 or cp1252, got {encoding!r}."
            ) from error
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise InvalidInputError(
                f"{name} must be text in {encoding}, got the byte {data[error.start]:#04x} in "
                f"line {line}."
            ) from error
    for mark, marked in _MARKS.items():
        if data.startswith(mark):
            name_of = marked.removesuffix("-sig").upper()
            return data.decode(marked, errors="replace"), f"The text is {name_of}."
    if b"\0" in data:
        raise InvalidInputError(
            f"{name} must be a table (CSV, Excel .xlsx or Parquet), got bytes that are no text, unless "
            "--encoding says which (utf-16-le, utf-16-be)."
        )
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
        said = "The text is not UTF-8 and was read as Windows-1252 (cp1252); --encoding changes that."
        return text, said


def read_text(data: bytes, encoding: str | None, separator: str | None, name: str) -> Grid:
    r"""Return the cells of a CSV file.

    >>> grid = read_text(b"Sales 2024\n\nday;sold\n1;2\n", None, None, "a.csv")
    >>> grid.cells.columns, grid.lines.tolist()
    (['day', 'sold'], [4])
    """
    text, said = decode(data, encoding, name)
    if text.lstrip()[:1] in ("<", "{"):
        raise InvalidInputError(
            f"{name} must be a table with a header, got {text.strip()[:30]!r}: a web page or JSON."
        )
    told = _told_separator(separator)
    chosen = told if told is not None else guess_separator(text)
    grid = assemble(_records(text, chosen, name), name, "line")
    notes = [said] if said else []
    if chosen != "," or told is not None:
        notes.append(f"Cells are separated by a {SEPARATORS.get(chosen, repr(chosen))}.")
    return replace(grid, notes=(*notes, *grid.notes), separator=chosen)


def _told_separator(separator: str | None) -> str | None:
    if separator is None:
        return None
    words = {word: sign for sign, word in SEPARATORS.items()}
    sign = words.get(separator.lower(), separator.replace("\\t", "\t"))
    if len(sign) != 1 or sign in '\r\n"':
        raise InvalidInputError(
            f"separator must be one character or {', '.join(words)}, got {separator!r}."
        )
    return sign


def guess_separator(text: str) -> str:
    r"""Return the separator that cuts the first lines into equally many cells.

    >>> guess_separator("day;price\n1;2,5\n2;2,75\n")
    ';'
    >>> guess_separator("a;b\n" + "0,5;1,5\n" * 30)
    ';'
    """
    first = [line for line in text[:200_000].splitlines()[:FIRST_LINES] if line.strip()]
    best, best_score = ",", (0.0, False, 0)
    for sign in SEPARATORS:
        lines = [cells for cells in csv.reader(first, delimiter=sign) if cells]
        usual, count = Counter(map(len, lines)).most_common(1)[0] if lines else (0, 0)
        # A line more or less that agrees is a title. Between near equals the one that cuts a header
        # of words decides (the comma of 2,5 does not), and then the finer cut.
        header = next((cells for cells in lines if len(cells) == usual), [])
        words = not any(_is_number(cell) for cell in header)
        score = (round(count / max(len(lines), 1), 1), words, usual)
        if usual > 1 and score > best_score:
            best, best_score = sign, score
    return best


def _is_number(cell: str) -> bool:
    return cell.strip().lstrip("+-").replace(",", "", 1).replace(".", "", 1).isdigit()


def _records(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line on which each record begins, and its cells."""
    csv.field_size_limit(_LARGEST_CELL)
    # Not splitlines: it also cuts at characters that may stand in a cell.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    before = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidInputError(
                f"{name}, line {before + 1}: must be a line of cells, got {error} (a quotation mark "
                "that opens or closes in the wrong place?)."
            ) from error
        yield before + 1, cells
        before = reader.line_num


def assemble(records: Iterator[tuple[int, Sequence[str]]], name: str, unit: str) -> Grid:
    """Find the header among the first records and put all others under it."""
    first: list[tuple[int, Sequence[str]]] = []
    blanks = []
    for record in records:
        if any(cell.strip() for cell in record[1]):
            first.append(record)
        else:
            blanks.append(record[0])
        if len(first) == FIRST_LINES:
            break
    if not first:
        raise InvalidInputError(f"{name} must have a header and rows, got an empty file.")
    at = _header_place(first)
    number, header = first[at][0], _header(first[at][1], name, unit, first[at][0])
    if at + 1 == len(first):
        raise InvalidInputError(
            f"{name} must have rows under its header, got only {unit} {number}: {', '.join(header)}."
        )
    notes = [
        f"{unit.capitalize()} {line} is a title, not the header: {_quoted(cells)}."
        for line, cells in first[:at]
    ]
    lines: list[int] = []
    blocks: list[pl.DataFrame] = []
    block: list[Sequence[str]] = []
    width, blank = len(header), sum(line > number for line in blanks)
    for line, cells in chain(first[at + 1 :], records):
        if not any(map(str.strip, cells)):
            blank += 1
            continue
        block.append(cells if len(cells) == width else _fitted(cells, header, name, unit, line))
        lines.append(line)
        if len(block) == BLOCK_ROWS:
            blocks.append(_frame(block, header))
            block = []
    if block:
        blocks.append(_frame(block, header))
    if blank:
        notes.append(f"{blank} blank {unit}{'s'[: blank > 1]} below the header skipped.")
    frame, dropped = _without_unnamed(pl.concat(blocks), name, unit, number)
    numbers = np.array(lines, dtype=np.int64)
    return Grid(name=name, cells=frame, lines=numbers, notes=(*notes, *dropped), unit=unit)


def _header_place(first: list[tuple[int, Sequence[str]]]) -> int:
    """Return which of the first records names the columns: titles above it fill fewer cells."""
    filled = [sum(bool(cell.strip()) for cell in cells) for _, cells in first]
    usual = Counter(filled[1:] or filled).most_common(1)[0][0]
    for place, count in enumerate(filled[:-1]):
        if count >= min(usual, max(2, (usual + 1) // 2)):
            return place
    return 0


def _header(cells: Sequence[str], name: str, unit: str, line: int) -> list[str]:
    header = [" ".join(cell.split()) for cell in cells]
    named = [cell for cell in header if cell]
    if named and all(_looks_like_value(cell) for cell in named):
        raise InvalidInputError(
            f"{name}, {unit} {line}: must name the columns, got values ({_quoted(named)}): put a "
            "header above them."
        )
    for cell in named:
        if named.count(cell) > 1:
            raise InvalidInputError(
                f"{name}, {unit} {line}: columns must have distinct names, got {cell!r} twice."
            )
    return header


def _looks_like_value(cell: str) -> bool:
    return bool(cell) and all(sign in "0123456789.,:/-+ eE€$%" for sign in cell) and any(
        sign.isdigit() for sign in cell
    )  # fmt: skip


def _fitted(cells: Sequence[str], header: list[str], name: str, unit: str, line: int) -> Sequence[str]:
    """Return a row as wide as the header: empty cells too many are cut, anything else is refused."""
    width = len(header)
    if len(cells) > width and not any(cell.strip() for cell in cells[width:]):
        return cells[:width]
    hint = ""
    if len(cells) > width:
        hint = (
            ": a separator inside of a cell, such as the comma of 2,50? Put the cell in quotation marks"
        )
    raise InvalidInputError(
        f"{name}, {unit} {line}: must have {width} cells as the header has, got {len(cells)}{hint}."
    )


def _frame(block: list[Sequence[str]], header: list[str]) -> pl.DataFrame:
    columns = zip(*block, strict=True)
    return pl.DataFrame(
        [
            pl.Series(str(j), column, dtype=pl.String).str.strip_chars()
            for j, column in enumerate(columns)
        ]
        or None
    ).select(pl.col(str(j)).alias(name or f"\0{j}") for j, name in enumerate(header))


def _without_unnamed(
    cells: pl.DataFrame, name: str, unit: str, line: int
) -> tuple[pl.DataFrame, list[str]]:
    """Leave out columns without a name that hold nothing, or a running number."""
    notes = []
    for label in [label for label in cells.columns if label.startswith("\0")]:
        column, place = cells[label], int(label[1:]) + 1
        counted = column.cast(pl.Int64, strict=False)
        if (column == "").all():
            pass
        elif place == 1 and counted.null_count() == 0 and (counted.diff().drop_nulls() == 1).all():
            notes.append("The first column, a running number without a name, is left out.")
        else:
            raise InvalidInputError(
                f"{name}, {unit} {line}: every column must have a name, got none for column {place}."
            )
        cells = cells.drop(label)
    return cells, notes


def _quoted(cells: Sequence[str]) -> str:
    shown = ", ".join(cell.strip() for cell in cells if cell.strip())
    return repr(shown if len(shown) <= 60 else shown[:57] + "...")
