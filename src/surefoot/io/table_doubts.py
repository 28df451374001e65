"""What in a table is hard to believe, though it can be read."""

import re
import shlex

import numpy as np
import polars as pl

from surefoot.io.table_columns import CATEGORY, DATE, IGNORED, NUMBER
from surefoot.io.table_dates import FORMS
from surefoot.io.table_file import SIDEWAYS, TableFile
from surefoot.typing import FloatArray

# A value so many times as large as nearly all others may lack its decimal sign.
FAR = 20.0
# Of fewer rows hardly anything is odd.
FEW_ROWS = 10
# So many columns that are named by days are no accident.
MANY_DAYS = 3
# A column that correlates so well with the outcome is the outcome.
TOLD = 1.0 - 1e-9
# An amount with a word behind it, as in 12 kg, and nothing else.
_WITH_UNIT = r"^[+-]?\d[\d.,]*(?: +\p{L}+\.?| *°[CF]| *(?:k?g|m?l|lbs?|oz|[ckm]?m|pcs?))$"


def doubts(table: TableFile, outcome: str, time: str | None = None) -> list[str]:
    """Return a sentence for each thing in a table that deserves a look, if it is to be learned from."""
    return days_across(table) or [
        *far_values(table), *repeated_rows(table), *amounts_with_units(table),
        *counted_rows(table, {outcome, time}), *told_outcomes(table, outcome),
    ]  # fmt: skip


def days_across(table: TableFile) -> list[str]:
    """Say that a table lies on its side: its columns are days."""
    names = [column.name for column in table.columns]
    days = [name for name in names if any(re.search(form.pattern, name) for form in FORMS)]
    if len(days) < MANY_DAYS:
        return []
    return [f"{len(days)} columns are named by days ({days[0]!r}): {SIDEWAYS}"]


def counted_rows(table: TableFile, apart: set[str | None]) -> list[str]:
    """Say which columns number the rows: no row has seen the numbers that come next."""
    whole = _whole_columns(table).items()
    names = [
        name for name, values in whole if name not in apart and (values[1:] == values[:-1] + 1.0).all()
    ]
    if not names:
        return []
    return [
        f"Columns that count the rows say nothing about new ones: leave out {_listed(names)}, or name "
        "one the order of time (--time)."
    ]


def told_outcomes(table: TableFile, outcome: str) -> list[str]:
    """Say which columns give the outcome away: they are it, in the same or another unit."""
    whole = _whole_columns(table)
    truth = whole.pop(outcome, np.zeros(len(table)))
    names = [name for name, values in whole.items() if _correlation(values, truth) > TOLD]
    if not names:
        return []
    return [
        f"Columns that follow {outcome!r} to the last digit give it away: leave out {_listed(names)} "
        "unless known when the order is made."
    ]


def _whole_columns(table: TableFile) -> dict[str, FloatArray]:
    """Return columns of finite numbers without a gap, where there are rows enough to speak of them."""
    numbers = [column.name for column in table.columns if column.kind == NUMBER]
    columns = {name: table.numbers(name) for name in numbers if len(table) >= FEW_ROWS}
    return {name: values for name, values in columns.items() if np.isfinite(values).all()}


def _correlation(one: FloatArray, other: FloatArray) -> float:
    """Return how close to a line two columns are, from 0 to 1; 0 where one is constant."""
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers whose squares are too large
        spreads = one.std() * other.std()
        return abs(float(np.corrcoef(one, other)[0, 1])) if spreads > 0 else 0.0


def _listed(names: list[str]) -> str:
    return f"{', '.join(map(repr, names))} (--ignore {shlex.join(names)})"


def amounts_with_units(table: TableFile) -> list[str]:
    """Say which columns were read as text though most cells are an amount with its unit."""
    notes = []
    for column in table.columns:
        if column.kind not in (CATEGORY, IGNORED) or column.why == "as told":
            continue
        cells = table.cells[column.name]
        fitting = cells.str.contains(_WITH_UNIT)
        if 2 * int(fitting.sum()) > len(cells):
            shown = cells.filter(fitting)[0]
            notes.append(
                f"{column.name!r} holds amounts with a unit ({shown!r}), which are read as text: write "
                "bare numbers, all in one unit, to learn from how much it is."
            )
    return notes


def repeated_rows(table: TableFile) -> list[str]:
    """Say which rows are the same as an earlier one in every column, with a day among them.

    Rows without a day may be alike: there are only so many weekdays and prices.
    """
    if not any(column.kind == DATE for column in table.columns):
        return []
    again = ~table.cells.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    count = int(again.sum())
    if count == 0:
        return []
    rows = "1 row is" if count == 1 else f"{count:,} rows are"
    first = "" if count == 1 else "the first "
    return [
        f"{rows} the same as an earlier one in every column, {first}in "
        f"{table.place(int(again.arg_max() or 0))}. Pasted twice?"
    ]


def far_values(table: TableFile) -> list[str]:
    """Return a sentence for each value many times as large as nearly all of its column.

    A price of 200 among prices about 2.00 lacks its decimal sign; demand after a feast may not.
    """
    notes = []
    for column in table.columns:
        if column.kind != NUMBER or len(table) < FEW_ROWS:
            continue
        values = table.frame[column.name]
        high, low = values.quantile(0.9), values.quantile(0.1)
        if low is None or high is None or not (low > 0 and high < 5 * low):
            continue
        for row in (values > FAR * high).arg_true().to_list()[:3]:
            notes.append(
                f"{table.place(row)}: {column.name!r} is {values[row]:g}, where nine of ten rows have "
                f"at most {high:g}. A decimal sign that is missing?"
            )
    return notes
