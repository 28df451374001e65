"""Where tables come from: a file or standard input, as text, an Excel sheet or Parquet."""

import datetime
import io
import sys
import zipfile
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from surefoot.exceptions import InvalidInputError
from surefoot.io.table_text import Grid, assemble, read_text
from surefoot.tracing import load_extra
from surefoot.validation import require_columns


def read_grid(
    source: str | Path, *, encoding: str | None, separator: str | None, sheet: str | None
) -> Grid:
    """Return the cells of a file."""
    data, name = _bytes(source)
    if data.startswith(b"PAR1"):
        return _parquet(data, name)
    if data.startswith(b"PK"):
        return _sheet(data, sheet, name)
    _refuse_foreign(data, name)
    return read_text(data, encoding, separator, name)


def _bytes(source: str | Path) -> tuple[bytes, str]:
    if str(source) == "-":
        return sys.stdin.buffer.read(), "standard input"
    path = Path(source)
    if path.is_dir():
        raise InvalidInputError(f"The data must be a file, got the folder {str(path)!r}.")
    try:
        return path.read_bytes(), str(path)
    except OSError as error:
        near = get_close_matches(path.name, _neighbours(path), n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InvalidInputError(
            f"The file cannot be read: {error.strerror or error} ({path}).{hint}"
        ) from error


def _neighbours(path: Path) -> list[str]:
    try:
        return [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return []


def _refuse_foreign(data: bytes, name: str) -> None:
    kinds = {
        b"\xd0\xcf\x11\xe0": "an old Excel file (.xls): save it as .xlsx or CSV",
        b"%PDF": "a PDF: export the table as CSV",
        b"\x1f\x8b": "a compressed file: unpack it first (gunzip)",
    }
    for start, kind in kinds.items():
        if data.startswith(start):
            raise InvalidInputError(f"{name} must be CSV, Excel .xlsx or Parquet, got {kind}.")


def _parquet(data: bytes, name: str) -> Grid:
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InvalidInputError(f"{name} must be a whole Parquet file, got a damaged one.") from error
    if 0 in frame.shape:
        raise InvalidInputError(f"{name} must have rows and columns, got shape {frame.shape}.")
    typed, text = {}, []
    for column in frame:
        kind = column.dtype
        if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration, pl.Time):
            raise InvalidInputError(
                f"{name} must hold numbers, text and dates, got {kind} in {column.name!r}."
            )
        if kind.is_numeric():
            typed[column.name] = column.cast(pl.Float64).fill_nan(None)
        elif kind in (pl.Date, pl.Datetime):
            typed[column.name] = column.cast(pl.Date)
        whole = kind.is_float() and (column.round() == column).fill_null(True).all()
        # A store that is 7.0 in one file and 7 in another is one store.
        plain = column.cast(pl.Int64, strict=False) if whole else column
        # Blanks around a text tell nothing apart, as in CSV.
        text.append(plain.cast(pl.String).fill_null("").str.strip_chars())
    rows = np.arange(1, len(frame) + 1)
    return Grid(name=name, cells=pl.DataFrame(text), lines=rows, unit="row", typed=typed)


def _sheet(data: bytes, sheet: str | None, name: str) -> Grid:
    """Return the cells of a sheet as text; Excel knows which are numbers and dates."""
    # Not at the top: it is slow to load, and few files are sheets.
    openpyxl = load_extra("openpyxl", 'Excel files need openpyxl: run pip install "surefoot[cli]".')
    try:
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise InvalidInputError(
            f"{name} must be an Excel workbook, CSV or Parquet, got another kind of zip file."
        ) from error
    if sheet is not None and sheet not in book.sheetnames:
        require_columns(name, book.sheetnames, [sheet], "sheet")
    chosen = book[sheet] if sheet is not None else book.worksheets[0]
    rows = enumerate(chosen.iter_rows(values_only=True), start=1)
    records = ((row, [_cell_text(cell) for cell in cells]) for row, cells in rows)
    others = [title for title in book.sheetnames if title != chosen.title]
    named = f"{name}, sheet {chosen.title}" if others else name
    grid = assemble(records, named, "row")
    said = f"Sheet {chosen.title!r} was read" + (f" (others: {', '.join(others)})." if others else ".")
    elsewhere = f" --sheet reads another one: {', '.join(others)}." if others else ""
    return replace(grid, notes=(said, *grid.notes), elsewhere=elsewhere)


def _cell_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return str(cell.date())  # Excel has no days without a time
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell)
