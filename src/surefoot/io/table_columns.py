"""What the columns of a table are: numbers, dates, categories, or nothing to learn from, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from surefoot.io.table_dates import Days, read_days

NUMBER, CATEGORY, DATE, IGNORED = "number", "category", "date", "ignored"
# What orders rows, read as dates or as numbers, and what rows are about, numbers without a gap.
TIME, OUTCOME = "time", "outcome"
# Cells that stand for a gap, whatever their case.
GAPS = ("", "na", "n/a", "nan", "#n/a", "#nv", "null", "none", "-", "--")
# More levels than this, and than half of the rows: a column that names rows.
IDENTIFIER_LEVELS, IDENTIFIER_SHARE = 10, 0.5
# Codes of equal length from here on (a bar code has 8 to 14 digits) are no amounts.
CODE_DIGITS = 10
_GROUP = r"'’  \x{202f}"
_EXPONENT = r"(?:[eE][+-]\d+)?"


def _number_pattern(point: str, group: str) -> str:
    """Return what a number looks like. 12E3 is a code: programs write 1.2E4 or 12E+3."""
    grouped = rf"\d{{1,3}}(?:[{group}{_GROUP}]\d{{3}})+"
    plain = rf"(?:{grouped}|\d+)(?:{point}\d*)?{_EXPONENT}|{point}\d+{_EXPONENT}"
    return rf"^[+-]?(?:{plain}|\d*{point}\d+[eE]\d+)$"


_PATTERNS = {".": _number_pattern(r"\.", ","), ",": _number_pattern(",", r"\.")}
# Cells that can be read in one way only, and those that are 1,234 or 1.234.
_EVIDENCE = {
    ".": r"^[+-]?(?:\d*\.(?:\d{1,2}|\d{4,})|0\.\d+|\d{4,}\.\d+|\d{1,3}(?:,\d{3})+\.\d+)$",
    ",": r"^[+-]?(?:\d*,(?:\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+|\d{1,3}(?:\.\d{3})+,\d+)$",
}
_EITHER = {".": r"^[+-]?[1-9]\d{0,2}\.\d{3}$", ",": r"^[+-]?[1-9]\d{0,2},\d{3}$"}
_MONEY = r"^[€$£¥] ?| ?[€$£¥%]$"
_LEADING_ZERO = r"^[+-]?0\d"
_DIGITS = r"^\d+$"


@dataclass(frozen=True)
class FileColumn:
    """What one column of a file is.

    Attributes
    ----------
    name
        As in the header.
    kind
        "number", "category", "date" or "ignored".
    why
        A clause that says what decided it.
    date_format
        How its dates are written; empty for other kinds.
    """

    name: str
    kind: str
    why: str = ""
    date_format: str = ""


class OddCellError(Exception):
    """A cell that is not what nearly all others of its column are; ``row`` counts from 0.

    ``advice`` says what helps, where that is something else than for other cells.
    """

    def __init__(
        self, row: int, column: str, value: str, wanted: str, others: str, advice: str = ""
    ) -> None:
        super().__init__(value)
        self.row, self.column, self.value = row, column, value
        self.wanted, self.others, self.advice = wanted, others, advice


@dataclass(frozen=True)
class ColumnReader:
    """Reads columns of text, one by one.

    Attributes
    ----------
    decimal
        "." or ",": what stands before decimals in this file.
    dates
        What is known about the order of day and month, see ``read_days``.
    sure
        Whether other columns show the decimal sign, so that 1,234 has one reading.
    """

    decimal: str = "."
    dates: str | None = None
    sure: bool = True

    def read(self, cells: pl.Series, known: FileColumn | None) -> tuple[pl.Series, FileColumn]:
        """Return the values of a column, null for gaps, and what they are."""
        if known is not None:
            return self._as_known(cells, known)
        name, rows = cells.name, len(cells)
        present = rows - cells.null_count()
        if present == 0:
            return cells, FileColumn(name, IGNORED, "it is empty")
        levels = cells.drop_nulls().n_unique()
        if levels == 1 and rows > 1 and present == rows:
            return cells, FileColumn(name, IGNORED, f"it is always {_short(cells.drop_nulls()[0])}")
        column = self._number_or_date(cells, present)
        if column is not None:
            return column
        if levels > max(IDENTIFIER_LEVELS, IDENTIFIER_SHARE * rows):
            return cells, FileColumn(name, IGNORED, f"it names rows: {levels} texts in {rows} rows")
        gaps = f", {rows - present} gap{'s'[: rows - present > 1]}" if present < rows else ""
        return cells, FileColumn(name, CATEGORY, f"{levels} level{'s'[: levels > 1]}{gaps}")

    def _number_or_date(self, cells: pl.Series, present: int) -> tuple[pl.Series, FileColumn] | None:
        """Return a column of numbers or dates; None for text; name the cell that breaks the rule."""
        name = cells.name
        code = _code(cells)
        numeric = numbers_of(cells, self.decimal)
        n_numbers = len(numeric) - numeric.null_count()
        days = None
        if n_numbers < present or code == "days":
            days = read_days(cells, self.dates)
        n_days = 0 if days is None else days.count
        if days is not None and (code == "days" or 2 * n_days > present) and n_days >= n_numbers:
            self._refuse_odd_day(cells, days, present)
            gaps = len(cells) - present
            why = _written(days.format) + (f", {gaps} gap{'s'[: gaps > 1]}" if gaps else "")
            why += f"; {days.remark}" if days.remark else ""
            return days.values, FileColumn(name, DATE, why, days.format)
        if code and code != "days":
            return cells, FileColumn(name, CATEGORY, f"codes, not amounts: {code}")
        if 2 * n_numbers > present:
            self._refuse_odd(cells, numeric, "a number", f"{n_numbers} of {present} cells are")
            return numeric, FileColumn(name, NUMBER, self._remark(cells, numeric))
        return None

    def _as_known(self, cells: pl.Series, known: FileColumn) -> tuple[pl.Series, FileColumn]:
        """Read a column as what it is known to be: by the user's word, or from the fit."""
        told = known.why or "as told"
        if known.kind in (NUMBER, OUTCOME):
            numeric = numbers_of(cells, self.decimal)
            advice = "Mend the cell, or delete the row." if known.kind == OUTCOME else ""
            self._refuse_odd(cells, numeric, "a number", "", advice)
            return numeric, FileColumn(known.name, NUMBER, told)
        if known.kind == TIME:
            return self._as_time(cells, told)
        if known.kind == DATE:
            days = read_days(cells, known.date_format or self.dates)
            if days is None and known.date_format:  # the same days, written otherwise in a new file
                days = read_days(cells, self.dates)
            values = (
                pl.Series(cells.name, [None] * len(cells), pl.Date) if days is None else days.values
            )
            wanted = f"a date {_written(known.date_format)}".strip()
            self._refuse_odd(cells, values, wanted, "")
            return values, FileColumn(known.name, DATE, told, "" if days is None else days.format)
        return cells, FileColumn(known.name, known.kind, told)

    def _as_time(self, cells: pl.Series, told: str) -> tuple[pl.Series, FileColumn]:
        """Read what orders rows: days if most cells are days (20240531, too), numbers otherwise."""
        days = read_days(cells, self.dates)
        present = len(cells) - cells.null_count()
        if days is not None and 2 * days.count > present:
            self._refuse_odd_day(cells, days, present)
            return days.values, FileColumn(cells.name, DATE, told, days.format)
        numeric = numbers_of(cells, self.decimal)
        self._refuse_odd(cells, numeric, "a date or a number", "")
        return numeric, FileColumn(cells.name, NUMBER, f"{told}, and no more")

    def _refuse_odd_day(self, cells: pl.Series, days: Days, present: int) -> None:
        """Refuse a cell that is no day, or one written in another way than most."""
        alike = len(cells) - days.values.null_count()
        advice = "Write all dates of the column one way." if days.count == present else ""
        others = f"{alike} of {present} cells are"
        self._refuse_odd(cells, days.values, f"a date {_written(days.format)}", others, advice)

    def _refuse_odd(
        self, cells: pl.Series, values: pl.Series, wanted: str, others: str, advice: str = ""
    ) -> None:
        odd = values.is_null() & cells.is_not_null()
        if odd.any():
            row = int(odd.arg_max() or 0)
            raise OddCellError(row, cells.name, cells[row], wanted, others, advice)

    def _remark(self, cells: pl.Series, values: pl.Series) -> str:
        """Return what should be said about numbers: their range, and readings that were a choice."""
        said = f"{_amount(values.min())} to {_amount(values.max())}"
        if values.drop_nulls().is_in([0.0, 1.0]).all():
            said = "0 or 1"
        gaps = values.null_count()
        if gaps:
            said += f", {gaps} gap{'s'[: gaps > 1]}"
        money = cells.str.contains(_MONEY).sum()
        if money:
            said += ", read without its currency or percent sign"
        either = cells.filter(cells.str.contains(_EITHER[self.decimal]).fill_null(False))
        if len(either) and not self.sure:
            shown = numbers_of(either.head(1), self.decimal)[0]
            said += f"; {either[0]} was taken for {shown:g} (--decimal changes that)"
        return said


def without_gaps(cells: pl.Series, more: Sequence[str]) -> pl.Series:
    """Return cells with null where one stands for a gap.

    >>> without_gaps(pl.Series(["1", "n/a", "sold out"]), ["sold out"]).to_list()
    ['1', None, None]
    """
    words = [*GAPS, *(word.strip().lower() for word in more)]
    return cells.set(cells.str.to_lowercase().is_in(words), None)


def numbers_of(cells: pl.Series, decimal: str) -> pl.Series:
    """Return cells as numbers, null where one is none.

    >>> numbers_of(pl.Series(["1.234,5", "2 €", "12E3", "1e-05"]), ",").to_list()
    [1234.5, 2.0, None, 1e-05]
    """
    plain = cells.str.replace_all("−", "-", literal=True).str.replace_all(_MONEY, "")
    fitting = plain.str.contains(_PATTERNS[decimal]).fill_null(False)
    group = "," if decimal == "." else r"\."
    digits = plain.str.replace_all(rf"[{group}{_GROUP}]", "")
    if decimal == ",":
        digits = digits.str.replace_all(",", ".", literal=True)
    values = digits.set(~fitting, None).cast(pl.Float64, strict=False)
    return values.set(values.is_infinite().fill_null(False), None)


def decimal_sign(columns: Sequence[pl.Series], separator: str) -> tuple[str, bool]:
    """Return the decimal sign that the cells of a file show, and whether they show it.

    >>> decimal_sign([pl.Series(["2,50", "1.000"])], ";")
    (',', True)
    """
    seen = dict.fromkeys(_EVIDENCE, 0)
    either = dict.fromkeys(_EITHER, 0)
    for cells in columns:
        plain = cells.str.replace_all(_MONEY, "")
        for sign, pattern in _EVIDENCE.items():
            seen[sign] += int(plain.str.contains(pattern).sum())
            either[sign] += int(plain.str.contains(_EITHER[sign]).sum())
    if seen[","] != seen["."]:
        return (",", True) if seen[","] > seen["."] else (".", True)
    if either[","] and not either["."] and separator != ",":
        return ",", False
    return ".", False


def _code(cells: pl.Series) -> str:
    """Return why cells of digits are codes, "days" if they are dates as 20240531, or nothing."""
    zero = cells.filter(cells.str.contains(_LEADING_ZERO).fill_null(False))
    digits = cells.drop_nulls()
    if len(zero) and not zero.str.contains(r"[./:-]").any():
        return f"{_short(zero[0])} begins with a zero"
    if not digits.str.contains(_DIGITS).all():
        exponent = cells.filter(cells.str.contains(r"^\d+[eE]\d+$").fill_null(False))
        both = digits.str.contains(r"^\d+(?:[eE]\d+)?$").all()
        return f"{_short(exponent[0])} is no amount" if both and len(exponent) else ""
    lengths = digits.str.len_chars().unique()
    if len(lengths) == 1 and lengths[0] == 8:
        days = read_days(digits, "%Y%m%d")
        if days is not None and days.values.null_count() == 0:
            return "days"
    longest = max(lengths.to_list())
    if (len(lengths) == 1 and longest >= CODE_DIGITS) or longest > 15:
        return f"{_short(digits[0])} has {longest} digits"
    return ""


def _written(form: str) -> str:
    """Return a format as people say it.

    >>> _written("%d.%m.%Y")
    'written day.month.year'
    """
    words = {"%Y": "year", "%y": "year", "%m": "month", "%b": "month", "%B": "month", "%d": "day"}
    for sign, word in words.items():
        form = form.replace(sign, word)
    return f"written {form}" if form else ""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 24 else f"{text[:20]}...{text[0]}"


def _amount(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, int | float) else str(value)
