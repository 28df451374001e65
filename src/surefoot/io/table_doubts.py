"""What in a table is hard to believe, though it can be read."""

import polars as pl

from surefoot.io.table_columns import CATEGORY, DATE, IGNORED, NUMBER
from surefoot.io.table_file import TableFile

# A value so many times as large as nearly all others may lack its decimal sign.
FAR = 20.0
# An amount with a word behind it, as in 12 kg, and nothing else.
_WITH_UNIT = r"^[+-]?\d[\d.,]*(?: +\p{L}+\.?| *°[CF]| *(?:k?g|m?l|lbs?|oz|[ckm]?m|pcs?))$"


def doubts(table: TableFile) -> list[str]:
    """Return a sentence for each thing in a table that deserves a look."""
    return [*far_values(table), *repeated_rows(table), *amounts_with_units(table)]


def amounts_with_units(table: TableFile) -> list[str]:
    """Say which columns were read as text though most cells are an amount with its unit."""
    found = []
    for column in table.columns:
        if column.kind not in (CATEGORY, IGNORED) or column.why == "as told":
            continue
        cells = table.cells[column.name]
        fitting = cells.str.contains(_WITH_UNIT)
        if 2 * int(fitting.sum()) > len(cells):
            shown = cells.filter(fitting)[0]
            found.append(
                f"{column.name!r} holds amounts with a unit ({shown!r}), which are read as text: write "
                "bare numbers, all in one unit, to learn from how much it is."
            )
    return found


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
    found = []
    for column in table.columns:
        if column.kind != NUMBER or len(table) < 10:
            continue
        values = table.frame[column.name]
        high, low = values.quantile(0.9), values.quantile(0.1)
        if low is None or high is None or not (low > 0 and high < 5 * low):
            continue
        for row in (values > FAR * high).arg_true().to_list()[:3]:
            found.append(
                f"{table.place(row)}: {column.name!r} is {values[row]:g}, where nine of ten rows have "
                f"at most {high:g}. A decimal sign that is missing?"
            )
    return found
