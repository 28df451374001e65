"""What one line of a stream says: a context to decide on, an outcome to learn from, or both."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from surefoot.exceptions import InvalidInputError
from surefoot.validation import LONGEST_REPR, check_instance, check_number, require_columns

Context = dict[str, float | str]
_SEPARATORS = ",;\t|"


@dataclass(frozen=True, slots=True)
class Message:
    """One line, read.

    Attributes
    ----------
    line
        Its number in the stream, from 1.
    id
        What names a decision, or None where the line names none.
    context
        Numbers, and texts where ``Fields.text`` allows them, by name; a name without a value is left
        out.
    outcome
        A number, or None where the outcome is not known yet.
    """

    line: int
    id: str | int | None
    context: Context
    outcome: float | None


@dataclass(frozen=True, slots=True)
class Fields:
    """Which names of a line are not context.

    Attributes
    ----------
    outcome
        Name of the outcome.
    id
        Name of what identifies a decision, or None where nothing does.
    ignore
        Names to leave out (dates, remarks).
    text
        Names whose values are texts (the day of the week); all others must be numbers, so that a
        slip of the pen is found and not taken for a new category.

    Examples
    --------
    >>> Fields("demand", ignore=("date",))
    Fields(outcome='demand', id=None, ignore=('date',), text=())
    """

    outcome: str
    id: str | None = None
    ignore: tuple[str, ...] = ()
    text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that every name is a text and has one role."""
        names = [("outcome", self.outcome), *(("ignore", name) for name in self.ignore)]
        names += [("text", name) for name in self.text]
        if self.id is not None:
            names.append(("id", self.id))
        for role, name in names:
            check_instance(role, name, str, "the name of a column")
        used = [name for _, name in names]
        for name in used:
            if used.count(name) > 1:
                raise InvalidInputError(
                    f"outcome, id, ignore and text must name different columns, got {name!r} twice."
                )


@dataclass(slots=True)
class JsonLines:
    """One JSON object a line; null is a missing value, true and false are 1 and 0.

    Examples
    --------
    >>> JsonLines(Fields("demand", id="day")).read('{"day": "mon", "heat": 21.5}', 1)
    Message(line=1, id='mon', context={'heat': 21.5}, outcome=None)
    """

    fields: Fields

    @property
    def ready(self) -> bool:
        """Nothing must come first."""
        return True

    def kept(self) -> dict[str, Any]:
        """Nothing is remembered."""
        return {}

    def read(self, text: str, line: int) -> Message | None:
        """Return what a line says, or None if it is blank."""
        if not text.strip():
            return None
        try:
            entries = json.loads(text, object_pairs_hook=partial(_distinct, line))
        except InvalidInputError:
            raise
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(
                f"line {line}: must be one JSON object, got {shown(text)} ({error})."
            ) from error
        if not isinstance(entries, dict):
            raise InvalidInputError(f"line {line}: must be one JSON object, got {shown(text)}.")
        name = entries.get(self.fields.id) if self.fields.id is not None else None
        if name is not None and (isinstance(name, bool) or not isinstance(name, str | int)):
            raise InvalidInputError(
                f"line {line}: {self.fields.id} must be text or a whole number, got {name!r}."
            )
        given = {key: value for key, value in entries.items() if value is not None}
        return Message(line, name, *sorted_values(given, self.fields, f"line {line}: {{}}", _number))


@dataclass(slots=True)
class CsvLines:
    """Cells under a header; an empty cell is a missing value.

    The header shows what separates cells: a comma, a semicolon, a tab or a bar. Without commas between
    cells, a comma may stand before decimals. One record is one line: cells hold no line breaks.

    Examples
    --------
    >>> table = CsvLines(Fields("demand"))
    >>> table.read("heat,demand", 1)
    >>> table.read("21.5,", 2)
    Message(line=2, id=None, context={'heat': 21.5}, outcome=None)
    """

    fields: Fields
    header: tuple[str, ...] = ()
    separator: str = ","

    @property
    def ready(self) -> bool:
        """Whether the header has come."""
        return bool(self.header)

    def kept(self) -> dict[str, Any]:
        """Return the header and what separates cells."""
        return {"header": self.header, "separator": self.separator}

    def read(self, text: str, line: int) -> Message | None:
        """Return what a line says, or None if it is the header or blank."""
        if not text.strip():
            return None
        if not self.header:
            self.separator = max(_SEPARATORS, key=text.count)
        try:
            cells = next(csv.reader([text], delimiter=self.separator, strict=True))
        except csv.Error as error:
            raise InvalidInputError(
                f"line {line}: must be comma-separated values, got {shown(text)} ({error})."
            ) from error
        if not self.header:
            self.header = self._checked_header(cells, line)
            return None
        if len(cells) != len(self.header):
            raise InvalidInputError(
                f"line {line}: must have {len(self.header)} cells as the header has, got {len(cells)}."
            )
        stripped = (cell.strip() for cell in cells)
        given = {key: cell for key, cell in zip(self.header, stripped, strict=True) if cell}
        name = given.get(self.fields.id) if self.fields.id is not None else None
        number = _parsed if self.separator == "," else _local
        return Message(line, name, *sorted_values(given, self.fields, f"line {line}: {{}}", number))

    def _checked_header(self, cells: list[str], line: int) -> tuple[str, ...]:
        header = tuple(cell.strip().removeprefix("\ufeff") for cell in cells)
        for name in header:
            if not name or header.count(name) > 1:
                raise InvalidInputError(
                    f"line {line}: column names must be there and differ, got {name!r}."
                )
        needed = (self.fields.outcome, *(() if self.fields.id is None else (self.fields.id,)))
        wanted = (*needed, *self.fields.ignore, *self.fields.text)
        require_columns(f"line {line}: the header", header, wanted)
        return header


# How lines are written; a format may remember its first line.
Format = CsvLines | JsonLines
FORMATS: dict[str, type[Format]] = {"csv": CsvLines, "jsonl": JsonLines}


def sorted_values(
    given: Mapping[str, Any], fields: Fields, place: str, number: Callable[[str, Any], float]
) -> tuple[Context, float | None]:
    """Return values as context and outcome, None where it is not known yet.

    ``place`` says where a name stands, with braces for the name; ``number`` reads and checks a value.
    """
    context: Context = {}
    outcome = None
    for key, value in given.items():
        what = place.format(key)
        if key == fields.outcome:
            outcome = number(what, value)
        elif key in fields.text:
            context[key] = _text(what, value)
        elif key != fields.id and key not in fields.ignore:
            context[key] = number(what, value)
    return context, outcome


def _distinct(line: int, entries: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; of two equal names JSON would silently keep the last."""
    built: dict[str, Any] = {}
    for key, value in entries:
        if key in built:
            raise InvalidInputError(f"line {line}: names must differ, got {key!r} twice.")
        built[key] = value
    return built


def _number(what: str, value: Any) -> float:
    """Return a JSON value as a finite float."""
    if not isinstance(value, bool | int | float):
        raise InvalidInputError(f"{what} must be a number, got {shown(value)}.")
    return check_number(what, int(value) if isinstance(value, bool) else value)


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(f"{what} must be a text, got {shown(value)}.")
    return value


def _local(what: str, cell: str) -> float:
    """Return a cell in which a comma may stand before decimals."""
    return _parsed(what, cell.replace(",", ".") if "." not in cell else cell)


def _parsed(what: str, cell: str) -> float:
    """Return a cell as a finite float; Python's own 1_000 is not a number in a table."""
    try:
        number = float(cell) if "_" not in cell else None
    except ValueError:
        number = None
    if number is None:
        raise InvalidInputError(f"{what} must be a number, got {shown(cell)}.")
    return _number(what, number)


def shown(value: Any) -> str:
    """Return a value as messages quote it, cut if it is long."""
    text = repr(value.strip() if isinstance(value, str) else value)
    return text if len(text) <= LONGEST_REPR else f"{text[: LONGEST_REPR - 4]}...'"
