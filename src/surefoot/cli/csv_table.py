"""Read a CSV file into a table: numbers, dates, text and gaps, each by what all its cells are."""

import csv
import datetime
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surefoot.estimators.preparation import Table
from surefoot.estimators.preparation.table import level_text
from surefoot.exceptions import InvalidInputError

# Cells that stand for a gap, whatever their case.
GAPS = ("", "na", "nan", "n/a", "null", "none")
_DELIMITERS = ",;\t"


def read_csv(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a file by name; cells are numbers, dates, text, or None for gaps."""
    header, lines = _cells(path)
    return {name: _parsed([line[j] for line in lines]) for j, name in enumerate(header)}


def split_columns(
    columns: dict[str, list[Any]],
    outcome: str,
    path: Path,
    *,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> tuple[Table, list[float]]:
    """Return contexts and outcomes; refuse unknown columns and outcomes that are no numbers."""
    options = {"--outcome": [outcome], "--drop": drop, "--categories": categories}
    for option, names in options.items():
        for name in names:
            if name not in columns:
                raise InvalidInputError(
                    f"{option} must be a column of {path} ({', '.join(columns)}), got {name!r}."
                )
    outcomes = columns[outcome]
    for line, value in enumerate(outcomes, start=2):
        if value is None or not _is_number(str(value)):
            got = "a gap" if value is None else repr(str(value))
            raise InvalidInputError(
                f"--outcome must be a column of numbers, got {got} in {outcome!r}, line {line} "
                f"of {path}."
            )
    contexts = {name: cells for name, cells in columns.items() if name not in (outcome, *drop)}
    if not contexts:
        raise InvalidInputError(f"{path} must have a column beside {outcome!r}, got none.")
    for name in set(categories) & set(contexts):
        contexts[name] = [None if cell is None else level_text(cell) for cell in contexts[name]]
    return Table.of(contexts), outcomes


def _cells(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInputError(
            f"The file cannot be read: {error.strerror or error} ({path})."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"The file must be text in UTF-8, got other bytes in {path}."
        ) from error
    first = text.split("\n", 1)[0]
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        # Not splitlines: it also cuts at characters that may stand in a cell.
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        numbered = [(reader.line_num, line) for line in reader if line]
    except csv.Error as error:
        raise InvalidInputError(f"The file must be CSV, got {error} in {path}.") from error
    lines = [line for _, line in numbered]
    if len(lines) < 2:
        raise InvalidInputError(
            f"The file must have a header and rows, got {len(lines)} lines in {path}."
        )
    header = [name.strip() for name in lines[0]]
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise InvalidInputError(
            f"The header must have distinct names, got {twice[0]!r} twice in {path}."
        )
    for number, line in numbered[1:]:
        if len(line) != len(header):
            raise InvalidInputError(
                f"Every line must have {len(header)} cells as the header has, got {len(line)} in "
                f"line {number} of {path}."
            )
    return header, [[cell.strip() for cell in line] for line in lines[1:]]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parsed(cells: list[str]) -> list[Any]:
    """Return cells as numbers if all are, else as dates if all are, else as text."""
    present = [cell for cell in cells if cell.lower() not in GAPS]
    for parse in (float, datetime.date.fromisoformat):
        try:
            for cell in present:
                parse(cell)
        except ValueError:
            continue
        return [None if cell.lower() in GAPS else parse(cell) for cell in cells]
    return [None if cell.lower() in GAPS else cell for cell in cells]
