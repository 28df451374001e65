"""Pairs of context and outcome, in order, from wherever they are.

Each function returns an iterator of ``(x, y)``: ``x`` a dictionary of values by name, ``y`` a number.
Values are numbers; columns named in ``text`` hold texts, of which a policy makes categories.
A value that is missing (an empty cell, null, NaN in a frame) is left out of ``x``; what a policy does
about that is its own rule. Nothing is read before it is asked for, and nothing is kept.
"""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.online.messages import Context, CsvLines, Fields, Format, JsonLines, sorted_values
from surefoot.validation import check_instance, check_number, is_gap

Pair = tuple[Context, float]
# A file by its path, an open file of text or bytes, or "-" for standard input.
Source = str | Path | IO[str] | IO[bytes]


def from_pairs(pairs: Iterable[Any]) -> Iterator[Pair]:
    """Check the pairs of any iterator (a generator, a queue, a river data set) one by one.

    Examples
    --------
    >>> list(from_pairs([({"heat": 21}, 5), ({"heat": None}, 4.0)]))
    [({'heat': 21.0}, 5.0), ({}, 4.0)]
    """
    check_instance("pairs", pairs, Iterable, "an iterator of (context, outcome)")
    return (_checked_pair(pair, row) for row, pair in enumerate(pairs))


def from_frame(
    frame: Any, outcome: str, *, ignore: Sequence[str] = (), text: Sequence[str] = ()
) -> Iterator[Pair]:
    """Take the rows of a pandas frame from first to last; no row is reordered.

    Parameters
    ----------
    frame
        A data frame with one column for the outcome; every other column is context.
    outcome
        Name of the outcome column.
    ignore
        Names of columns to leave out.
    text
        Names of columns that hold texts.

    Examples
    --------
    >>> from surefoot.datasets import load_yaz
    >>> contexts, outcomes = load_yaz().to_pandas()
    >>> x, y = next(from_frame(contexts.assign(steak=outcomes["steak"]), "steak"))
    >>> len(x), y
    (30, 36.0)
    """
    fields = Fields(outcome, ignore=tuple(ignore), text=tuple(text))
    if not (hasattr(frame, "columns") and hasattr(frame, "itertuples")):
        raise InvalidTypeError(f"frame must be a pandas data frame, got {type(frame).__name__}.")
    names = [str(name) for name in frame.columns]
    for name in (outcome, *ignore, *text):
        if names.count(name) != 1:
            raise InvalidInputError(
                f"frame must have one column {name!r}, got columns {', '.join(names)}."
            )
    kept = [name for name in names if name not in fields.ignore]
    taken = frame[[column for column in frame.columns if str(column) not in fields.ignore]]
    rows = taken.itertuples(index=False, name=None)
    return (
        _split(dict(zip(kept, values, strict=True)), fields, row) for row, values in enumerate(rows)
    )


def from_csv(
    source: Source, outcome: str, *, ignore: Sequence[str] = (), text: Sequence[str] = ()
) -> Iterator[Pair]:
    r"""Read a CSV file with a header, line by line.

    Parameters
    ----------
    source
        A path, an open file, or ``"-"`` for standard input.
    outcome
        Name of the outcome column.
    ignore
        Names of columns to leave out.
    text
        Names of columns that hold texts.

    Examples
    --------
    >>> import io
    >>> list(from_csv(io.StringIO("heat,rain,demand\n21.5,,5\n"), "demand"))
    [({'heat': 21.5}, 5.0)]
    """
    return _pairs_of_lines(source, CsvLines(Fields(outcome, ignore=tuple(ignore), text=tuple(text))))


def from_json_lines(
    source: Source, outcome: str, *, ignore: Sequence[str] = (), text: Sequence[str] = ()
) -> Iterator[Pair]:
    r"""Read a file of one JSON object a line; parameters as in ``from_csv``.

    Examples
    --------
    >>> import io
    >>> list(from_json_lines(io.StringIO('{"heat": 21.5, "demand": 5}\n'), "demand"))
    [({'heat': 21.5}, 5.0)]
    """
    return _pairs_of_lines(source, JsonLines(Fields(outcome, ignore=tuple(ignore), text=tuple(text))))


def _pairs_of_lines(source: Source, lines: Format) -> Iterator[Pair]:
    if isinstance(source, str | Path) and str(source) != "-" and not Path(source).is_file():
        raise InvalidInputError(f"source must be a file or '-', got {str(source)!r}.")
    return _read_lines(source, lines)


def _read_lines(source: Source, lines: Format) -> Iterator[Pair]:
    with _opened(source) as file:
        for number, raw in enumerate(file, start=1):
            message = lines.read(decoded(raw, number), number)
            if message is None:
                continue
            if message.outcome is None:
                raise InvalidInputError(
                    f"line {number}: {lines.fields.outcome} must be there, got no outcome."
                )
            yield message.context, message.outcome


def _opened(source: Source) -> contextlib.AbstractContextManager[IO[Any]]:
    if isinstance(source, str | Path):
        if str(source) == "-":
            return contextlib.nullcontext(sys.stdin)
        return Path(source).open("rb")
    return contextlib.nullcontext(source)


def decoded(raw: str | bytes, line: int) -> str:
    """Return a line as text; it must be UTF-8."""
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"line {line}: must be text in UTF-8, got the byte {raw[error.start]:#04x}."
        ) from error


def _checked_pair(pair: Any, row: int) -> Pair:
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], Mapping):
        raise InvalidTypeError(f"pair {row} must be (dictionary, number), got {pair!r}.")
    x, y = pair
    # A text in a dictionary was put there on purpose: it needs no list of columns.
    context = {
        str(key): value if isinstance(value, str) else _number(f"pair {row}: {key}", value)
        for key, value in x.items()
        if not is_gap(value)
    }
    return context, check_number(f"pair {row}: the outcome", y)


def _split(values: dict[str, Any], fields: Fields, row: int) -> Pair:
    present = {key: value for key, value in values.items() if not is_gap(value)}
    context, outcome = sorted_values(present, fields, f"row {row}, column {{!r}}:", _number)
    if outcome is None:
        raise InvalidInputError(f"row {row}, column {fields.outcome!r}: must be a number, got none.")
    return context, outcome


def _number(what: str, value: Any) -> float:
    """Return a number; True and False are 1 and 0."""
    return check_number(what, float(value) if type(value).__name__ in ("bool", "bool_") else value)
