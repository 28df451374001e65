"""``surefoot decide``: how much to order for each row of a table."""

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from surefoot.cli.model_table import (
    ModelTable,
    cost_columns,
    costs_of,
    is_panel,
    load_model,
    needed_columns,
)
from surefoot.cli.screen import Screen, show_table
from surefoot.exceptions import InvalidInputError
from surefoot.io.table_columns import CATEGORY, DATE, IGNORED, FileColumn
from surefoot.io.table_file import Reading, TableFile, read_file
from surefoot.io.writing import check_target, refuse_inputs, replaced
from surefoot.typing import FloatArray

SUFFIXES = (".csv", ".txt", ".tsv", ".xlsx", ".parquet")
ORDER = "order"


def run(
    model: Path,
    data: str,
    out: Path | None,
    *,
    reading: Reading,
    keep: Sequence[str] = (),
    whole: bool = False,
    screen: Screen,
) -> None:
    """Load, read, decide, and write the orders beside what names their rows."""
    if out is not None:
        check_target(out, SUFFIXES)
        refuse_inputs(out, [model, data])
    decide, needed, outcome, series = _policy(model)
    table = read_known(data, needed, reading)
    for name in keep:
        table.column(name)
    with screen.working("Deciding ...", table.place):
        orders = decide(table)
    orders = _usable(np.asarray(orders, dtype=np.float64), whole, screen)
    names = row_names(table, [*series, *keep], outcome)
    frame = _with_orders(table, names, orders, whole)
    if screen.as_json:
        screen.result({"model": str(model), "rows": len(table), "orders": frame.to_dicts()})
    if out is None:
        if not screen.as_json:
            sys.stdout.write(_csv(frame, table))
        return
    with replaced(out) as temporary:
        _write(frame, table, temporary)
    if not screen.as_json:
        show_table(screen, table, columns=False)
        beside = f", beside {', '.join(names)}" if names else ""
        made = orders[np.isfinite(orders)]
        screen.say(
            f"{len(made):,} orders from {made.min():g} to {made.max():g}, {made.mean():.4g} on "
            f"average: column {frame.columns[-1]!r} of {out}{beside}."
        )


def _policy(
    model: Path,
) -> tuple[Callable[[TableFile], FloatArray], Sequence[FileColumn], str | None, Sequence[str]]:
    """Return what decides, the columns that it needs, the outcome, and columns that name a series."""
    if is_panel(model):
        # Not at the top: most models are one policy, and panels load much.
        panel = importlib.import_module("surefoot.cli.panel")
        policies, needed = panel.load(model)
        decide = partial(_decided, policies.decide, needed, None)
        return decide, needed, policies.columns.outcome, policies.columns.by
    policy, about = load_model(model, by_row=True)
    outcome = about.outcome if about is not None else None
    needed = needed_columns(policy, about, model)
    decide = partial(_decided, policy.predict, needed, about)
    return decide, (*needed, *cost_columns(about)), outcome, ()


def _decided(
    decide: Callable[..., FloatArray],
    needed: Sequence[FileColumn],
    about: ModelTable | None,
    table: TableFile,
) -> FloatArray:
    """Return the order for each row, at its own costs where the model learned from such."""
    costs = {} if about is None else costs_of(table, about.cost_columns)
    return decide(table.frame.select(column.name for column in needed), **costs)


def read_known(
    data: str, needed: Sequence[FileColumn], reading: Reading, also: Sequence[FileColumn] = ()
) -> TableFile:
    """Read the columns that a model looks at, as they were read for the fit."""
    known = [*needed, *also]
    return read_file(data, reading, known=known, only=[column.name for column in known])


def row_names(table: TableFile, keep: Sequence[str], outcome: str | None) -> list[str]:
    """Return the columns that tell rows apart: dates, what the model does not use, and those asked for.

    Where these are the same in two rows, as the day of two shops, categories tell which is which. The
    outcome is left out: it is what the order is about, and is mostly not known yet.
    """

    def named(*kinds: str) -> list[str]:
        return [
            column.name
            for column in table.columns
            if column.name in keep or (column.kind in kinds and column.name != outcome)
        ]

    names = named(DATE, IGNORED)
    return named(DATE, IGNORED, CATEGORY) if table.cells.select(names).is_duplicated().any() else names


def _usable(orders: FloatArray, whole: bool, screen: Screen) -> FloatArray:
    if not np.isfinite(orders).any():
        raise InvalidInputError("data must have rows of a series with a policy, got none.")
    negative = int((orders < 0).sum())
    if negative:
        screen.note(
            f"{negative} order{'s were' if negative > 1 else ' was'} below 0 and "
            f"{'are' if negative > 1 else 'is'} written as 0."
        )
    orders = np.maximum(orders, 0.0)
    return np.round(orders) if whole else np.round(orders, 4)


def _with_orders(table: TableFile, names: list[str], orders: FloatArray, whole: bool) -> pl.DataFrame:
    taken = {name.casefold() for name in names}
    label = ORDER if ORDER not in taken else f"surefoot_{ORDER}"
    frame = table.cells.select(names)
    if not names:
        frame = pl.DataFrame({table.unit: table.lines})
    made = pl.Series(label, orders, nan_to_null=True)
    return frame.with_columns(made.cast(pl.Int64) if whole else made)


def _with_days(frame: pl.DataFrame, table: TableFile) -> pl.DataFrame:
    """Return days as days, for files that know them; with a time of day they stay as written."""
    days = [column.name for column in table.columns if column.kind == DATE]
    whole = [name for name in days if name in frame and not frame[name].str.contains(":").any()]
    return frame.with_columns(table.frame[name] for name in whole)


def _csv(frame: pl.DataFrame, table: TableFile) -> str:
    """Return a frame as CSV, written as the data were."""
    return frame.write_csv(
        separator=table.separator or ",", decimal_comma=table.decimal == "," and table.separator != ","
    )


def _write(frame: pl.DataFrame, table: TableFile, path: Path) -> None:
    if path.suffix.lower() == ".parquet":
        _with_days(frame, table).write_parquet(path)
    elif path.suffix.lower() == ".xlsx":
        # Not at the top: it is slow to load, and few files are sheets.
        book: Any = importlib.import_module("openpyxl").Workbook()
        sheet = book.active
        sheet.title = "Orders"
        sheet.append(frame.columns)
        for row in _with_days(frame, table).iter_rows():
            sheet.append(row)
        book.save(path)
    else:
        path.write_text(_csv(frame, table), encoding="utf-8")
