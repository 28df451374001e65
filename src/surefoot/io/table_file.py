"""One reader of tables for every command and for Python: CSV, Excel, Parquet, standard input."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from surefoot.exceptions import InvalidInputError
from surefoot.io.table_columns import (
    CATEGORY,
    DATE,
    IGNORED,
    NUMBER,
    OUTCOME,
    TIME,
    ColumnReader,
    FileColumn,
    OddCellError,
    decimal_sign,
    without_gaps,
)
from surefoot.io.table_dates import check_told
from surefoot.io.table_sources import read_grid
from surefoot.io.table_text import Grid
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_flag, check_instance, check_path, listed_names, require_columns

_TOTALS = (
    r"(?i)^(?:grand |sub)?(?:totals?|sums?|summe|gesamt(?:summe)?|zwischensumme|insgesamt|suma|somme|"
    r"totale|averages?|avg\.?|mean|mittelwert|durchschnitt|ø|moyenne)\s*:?$"
)
# What to do with a table of which the columns are days.
SIDEWAYS = "a row is to be a day, and a column what is known of it. Turn the table on its side."


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file is written, where that should not be found out from the file.

    Messages call these as the command line does: ``--skip-totals`` is ``skip_totals``.

    Attributes
    ----------
    encoding
        Such as "utf-8" or "cp1252".
    separator
        What stands between cells: a character, or "tab", "comma", "semicolon", "bar".
    decimal
        "." or ",".
    dates
        "day-first", "month-first", or a format such as ``%d.%m.%Y``.
    sheet
        Name of the sheet of an Excel file; the first one otherwise.
    gaps
        Words that stand for a gap, beside the usual ones (NA, n/a, null, -).
    skip_totals
        Leave out rows of totals, which are refused otherwise.
    """

    encoding: str | None = None
    separator: str | None = None
    decimal: str | None = None
    dates: str | None = None
    sheet: str | None = None
    gaps: Sequence[str] = ()
    skip_totals: bool = False

    def __post_init__(self) -> None:
        """Check what can be checked without a file."""
        for name in ("encoding", "separator", "dates", "sheet"):
            if getattr(self, name) is not None:
                check_instance(name, getattr(self, name), str, "text or None")
        object.__setattr__(self, "gaps", listed_names("gaps", self.gaps))
        check_flag("skip_totals", self.skip_totals)
        check_told(self.dates)
        if self.decimal not in (None, ".", ","):
            raise InvalidInputError(f"decimal must be '.' or ',', got {self.decimal!r}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class TableFile(Grid):
    """A table as read from a file, and what was decided on the way.

    Attributes
    ----------
    name
        The file as it is called in messages.
    frame
        A polars frame: numbers, dates, and text for categories; null for gaps. Ignored columns are
        not in it.
    cells
        All columns as the text that was in the file.
    columns
        What each column is, and why.
    lines
        For each row, the line (or the row of the sheet) that it came from.
    notes
        What was decided about the file, as sentences.
    unit
        "line" or "row": what ``lines`` count.
    separator, decimal
        How the file is written; no separator for sheets and Parquet.
    elsewhere
        Where a column may be that is not here, as the end of a sentence.
    """

    frame: pl.DataFrame
    columns: tuple[FileColumn, ...]
    decimal: str = "."

    def column(self, name: str) -> FileColumn:
        """Return what a column is; an unknown name is refused with the nearest one."""
        names = [column.name for column in self.columns]
        require_columns(self.name, names, [name], elsewhere=self.elsewhere)
        return next(column for column in self.columns if column.name == name)

    def outcomes(self, name: str, what: str = "The outcome") -> FloatArray:
        """Return a column of numbers without gaps; name the first cell that is none."""
        values = self.numbers(name, what)
        gaps = np.isnan(values)
        if gaps.any():
            place, count = self.place(int(gaps.argmax())), int(gaps.sum())
            got = "a gap" if count == 1 else f"{count} gaps, the first"
            raise InvalidInputError(
                f"{what} must have a number in every row, got {got} in {place}, column {name!r}. "
                "Delete such rows, or fill them in."
            )
        return values

    def numbers(self, name: str, what: str = "The outcome") -> FloatArray:
        """Return a column of numbers, NaN for gaps; a column of something else is refused."""
        column = self.column(name)
        if column.kind not in (NUMBER, IGNORED):
            raise InvalidInputError(
                f"{what} must be a column of numbers, got {name!r}, a {column.kind} ({column.why})."
            )
        values = self.frame[name] if column.kind == NUMBER else self._constant(column, what)
        return values.cast(pl.Float64).to_numpy().astype(np.float64)

    def _constant(self, column: FileColumn, what: str) -> pl.Series:
        values = self.cells[column.name].cast(pl.Float64, strict=False)
        if values.null_count() == len(values):
            raise InvalidInputError(
                f"{what} must be a column of numbers, got {column.name!r}: {column.why}."
            )
        return values

    def split(self, outcome: str) -> tuple[pl.DataFrame, FloatArray]:
        """Return contexts (all columns that are used, but the outcome) and outcomes."""
        outcomes = self.outcomes(outcome)
        contexts = self.frame.drop(outcome, strict=False)
        if contexts.width == 0:
            raise InvalidInputError(
                f"{self.name} must have a column beside {outcome!r} to learn from, got none."
            )
        return contexts, outcomes

    def take(self, rows: IntArray) -> Self:
        """Return some rows, in the order asked for."""
        return replace(super().take(rows), frame=self.frame[rows])


def read_file(
    source: str | Path,
    reading: Reading | None = None,
    *,
    known: Sequence[FileColumn] = (),
    ignore: Sequence[str] = (),
    only: Sequence[str] | None = None,
) -> TableFile:
    r"""Read a table from a file: CSV with any separator, Excel, Parquet, or "-" for standard input.

    What is not told is found out: encoding, separator, decimal sign, the order of day and month, a
    title above the header, and what each column is. Codes such as 01234 or 12E3 stay text. A cell
    that does not fit its column is refused by line, column and value.

    Parameters
    ----------
    source
        Path of the file, or "-".
    reading
        What should not be found out.
    known
        Columns whose kind is known: ``FileColumn("store", "category")``.
    ignore
        Columns to leave out.
    only
        If given, all other columns are left out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "sales.csv"
    >>> _ = path.write_text("day;price;sold\n31.05.2024;2,50;7\n01.06.2024;2,75;5\n")
    >>> table = read_file(path)
    >>> [(column.name, column.kind) for column in table.columns]
    [('day', 'date'), ('price', 'number'), ('sold', 'number')]
    >>> contexts, outcomes = table.split("sold")
    >>> contexts["price"].to_list(), outcomes
    ([2.5, 2.75], array([7., 5.]))
    """
    check_path("source", source)
    told = Reading() if reading is None else reading
    check_instance("reading", told, Reading, "a Reading(...) or None")
    check_instance("known", known, tuple | list, "a sequence of FileColumn(...)")
    for column in known:
        check_instance("known", column, FileColumn, "a sequence of FileColumn(...)")
    ignore = listed_names("ignore", ignore)
    grid = read_grid(source, encoding=told.encoding, separator=told.separator, sheet=told.sheet)
    wanted = [*(column.name for column in known), *ignore]
    _refuse_sideways(grid, wanted)
    require_columns(grid.name, grid.cells.columns, wanted, elsewhere=grid.elsewhere)
    table = _understood(_without_totals(grid, told), told, list(known), set(ignore), only)
    return _without_sums(table, told)


def _refuse_sideways(grid: Grid, wanted: Sequence[str]) -> None:
    """Refuse a table in which a row is named as a column should be."""
    first = grid.cells.to_series(0)
    for column in wanted:
        rows = (first == column).arg_true()
        if column not in grid.cells.columns and len(rows) == 1:
            raise InvalidInputError(
                f"{grid.name} must have the column {column!r}, got it as the name of {grid.unit} "
                f"{grid.lines[rows[0]]}: {SIDEWAYS}"
            )


def _understood(
    grid: Grid, told: Reading, known: list[FileColumn], ignore: set[str], only: Sequence[str] | None
) -> TableFile:
    """Decide what each column is, and read it so."""
    kinds = {column.name: column for column in known}
    texts = {column.name: without_gaps(column, told.gaps) for column in grid.cells}
    free = [texts[label] for label in texts if label not in ignore and label not in grid.typed]
    decimal, sure = (told.decimal, True) if told.decimal else decimal_sign(free, grid.separator)
    reader = ColumnReader(decimal, told.dates, sure)
    columns: list[FileColumn] = []
    values: list[pl.Series] = []
    for label, cells in texts.items():
        if label in ignore or (only is not None and label not in only):
            columns.append(FileColumn(label, IGNORED, "as told" if label in ignore else "not needed"))
            continue
        try:
            series, column = _read_typed(reader, cells, grid.typed.get(label), kinds.get(label))
        except OddCellError as odd:
            raise _cell_error(odd, grid, told=label in kinds) from odd
        columns.append(column)
        if column.kind != IGNORED:
            values.append(series)
    notes = list(grid.notes)
    if decimal == ",":
        notes.append("Decimals follow a comma.")
    given = {**vars(grid), "notes": tuple(notes), "typed": {}}
    frame = pl.DataFrame(values)
    return TableFile(**given, frame=frame, columns=tuple(columns), decimal=decimal)


def _read_typed(
    reader: ColumnReader, cells: pl.Series, typed: pl.Series | None, known: FileColumn | None
) -> tuple[pl.Series, FileColumn]:
    """Read a column of text, or take the type that the file gave it."""
    empty = typed is not None and typed.null_count() == len(typed)
    if typed is None or empty or (known is not None and known.kind == CATEGORY):
        return reader.read(cells, known)
    kind = DATE if typed.dtype == pl.Date else NUMBER
    wanted = kind if known is None or known.kind in (IGNORED, TIME) else known.kind
    wanted = NUMBER if wanted == OUTCOME else wanted
    if wanted != kind:
        raise InvalidInputError(f"{cells.name!r} must be a {wanted}, got a {kind}.")
    if typed.n_unique() == 1 and len(typed) > 1 and known is None:
        return typed, FileColumn(cells.name, IGNORED, f"it is always {typed[0]}")
    if known is not None and known.kind == TIME and kind == NUMBER:
        return typed, FileColumn(cells.name, kind, f"{known.why}, and no more")
    return typed, FileColumn(cells.name, kind, "as the file says")


def _cell_error(odd: OddCellError, grid: Grid, *, told: bool) -> InvalidInputError:
    """Return what is wrong with a cell; a column that was told to be a number can be no category."""
    others = f" ({odd.others})" if odd.others else ""
    place = f"{grid.name}, {grid.unit} {grid.lines[odd.row]}, column {odd.column!r}"
    ways = odd.advice or "Mend the cell, or name the word a gap (--gaps)."
    if not told and not odd.advice:
        ways = "Mend the cell, name the word a gap (--gaps), or the column a category (--categories)."
    return InvalidInputError(f"{place}: must be {odd.wanted}{others}, got {odd.value!r}. {ways}")


def _without_totals(grid: Grid, told: Reading) -> Grid:
    """Refuse rows that say they are totals, or leave them out if told to."""
    totals = dict(_totals(grid.cells))
    if not totals:
        return grid
    if not told.skip_totals:
        row, why = next(iter(totals.items()))
        raise _totals_error(grid.place(row), why)
    kept = np.setdiff1d(np.arange(len(grid)), list(totals))
    notes = (*grid.notes, _left_out(grid.unit, [int(grid.lines[row]) for row in totals]))
    return replace(grid.take(kept), notes=notes)


def _totals(cells: pl.DataFrame) -> Iterator[tuple[int, str]]:
    """Yield rows with a word for totals that stands alone: beside gaps, or in the last row only."""
    last = len(cells) - 1
    for column in cells:
        words = column.str.contains(_TOTALS)
        for row in words.arg_true().to_list():
            if "" in cells.row(row) or (row == last and int(words.sum()) == 1):
                yield row, f"{column[row]!r} in {column.name!r}"


def _without_sums(table: TableFile, told: Reading) -> TableFile:
    """Refuse a last row with gaps in which a column is the sum of the rows above, or leave it out."""
    last = len(table) - 1
    if last < 3 or "" not in table.cells.row(last):
        return table
    numbers = [column.name for column in table.columns if column.kind == NUMBER]
    sums = [name for name in numbers if _is_sum(table.frame[name])]
    if not sums:
        return table
    if not told.skip_totals:
        raise _totals_error(table.place(last), f"{sums[0]!r} is the sum of the rows above")
    notes = (*table.notes, _left_out(table.unit, [int(table.lines[last])]))
    return replace(table.take(np.arange(last)), notes=notes)


def _is_sum(values: pl.Series) -> bool:
    *above, last = values.to_list()
    total = sum(value for value in above if value is not None)
    return last is not None and total != 0 and abs(last - total) <= 1e-9 * abs(total)


def _totals_error(place: str, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"{place} must be a row of data, got totals ({why}): delete it, or give --skip-totals."
    )


def _left_out(unit: str, lines: list[int]) -> str:
    return f"Totals left out: {unit} {', '.join(map(str, lines))}."
