"""From dictionaries to rows: which key is which column, and what a missing or new key means."""

import difflib
import math
import numbers
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.typing import FloatArray

# Squares of anything larger would leave the range of floats.
LARGEST = 1e100
# A column is a key, or a key with one of its texts.
Column = tuple[str, str | None]


class Columns:
    """The columns seen so far, in the order in which they came.

    - A number is the value of the column named by its key; True and False are 1 and 0.
    - A text makes an indicator column "key=text": 1 where the key has this text, 0 where another.
    - A missing key, or None, says nothing: the column stands at its running mean (NaN in a row).
    - A new key becomes a new column when it is learned; a decision ignores it.
    """

    def __init__(self, most: int, columns: Iterable[Column] = ()) -> None:
        self.most = most
        self.columns: list[Column] = []
        self.numeric: dict[str, int] = {}
        self.texts: dict[str, dict[str, int]] = {}
        self._named: dict[str, Column] = {}
        self._keys: tuple[str, ...] | None = ()
        for column in columns:
            self._add(column)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names for people: "heat", "city=Rome"."""
        return tuple(self._named)

    def is_frozen(self, place: int, frozen: Sequence[str | int]) -> bool:
        """Whether a column never moves: an indicator, or one that ``frozen`` names."""
        key, text = self.columns[place]
        return text is not None or key in frozen or any(type(f) is int and f == place for f in frozen)

    def frozen_columns(self, frozen: Sequence[str | int]) -> tuple[str | int, ...]:
        """Return frozen names and positions once columns are known, counted from the first one.

        A name or a position that no column has would freeze nothing, without a word: it is refused.
        """
        keys = list(dict.fromkeys(key for key, _ in self.columns))
        for column in frozen:
            if isinstance(column, str) and column not in keys:
                near = difflib.get_close_matches(column, keys, n=1, cutoff=0.0)[0]
                raise InvalidInputError(
                    f"frozen must name keys of the first contexts ({', '.join(keys)}), got {column!r}: "
                    f"the nearest is {near!r}."
                )
            if not isinstance(column, str) and not -len(self) <= column < len(self):
                raise InvalidInputError(
                    f"frozen must hold keys or positions below {len(self)}, the columns of the first "
                    f"contexts, got {column}."
                )
        return tuple(f + len(self) if isinstance(f, int) and f < 0 else f for f in frozen)

    def row(self, x: Mapping[str, Any]) -> FloatArray:
        """Return a context as a matrix of one row over the known columns, NaN where it says nothing."""
        quick = self.ordinary_row(x)
        if quick is not None:
            return quick
        _check_mapping(x)
        row, numeric = [math.nan] * len(self.columns), self.numeric
        for key, value in x.items():
            if type(value) is float and key in numeric and -LARGEST < value < LARGEST:
                row[numeric[key]] = value  # by far the most
            elif value is None:
                continue
            elif isinstance(value, str):
                self.refuse_change(key, value)
                for text, place in self.texts.get(key, {}).items():
                    row[place] = float(text == value)
            else:
                number = _number(key, value)
                self.refuse_change(key, value)
                if key in numeric:
                    row[numeric[key]] = number
        return np.array([row])

    def ordinary_row(self, x: Mapping[str, Any]) -> FloatArray | None:
        """Return the row of a context with just the known keys and ordinary numbers, else None."""
        if type(x) is not dict or tuple(x) != self._keys:
            return None
        try:
            # Floats first: NumPy's own small numbers would overflow in a comparison.
            row = array("d", x.values())
            # Not below the largest if an entry is not, nor if one is NaN; and it does not overflow.
            return np.ndarray((1, len(row)), np.float64, row) if math.hypot(*row) < LARGEST else None
        except (TypeError, ValueError, OverflowError):
            return None

    def new(self, x: Mapping[str, Any]) -> list[Column]:
        """Return the columns that a context would add; nothing changes yet."""
        _check_mapping(x)
        new_columns: list[Column] = []
        for key, value in x.items():
            if key in self.numeric:  # its value is looked at in ``row``
                continue
            if isinstance(value, str):
                if value not in self.texts.get(key, {}):
                    new_columns.append((key, value))
            elif value is not None:
                _number(key, value)
                self.refuse_change(key, value)
                new_columns.append((key, None))
        self.refuse_excess(new_columns)
        return new_columns

    def refuse_excess(self, new_columns: Sequence[Column]) -> None:
        """Refuse new columns beyond the most that may be kept."""
        room = self.most - len(self.columns)
        if len(new_columns) > room:
            raise InvalidInputError(
                f"contexts must have at most {self.most:,} columns in all, got the new key "
                f"{new_columns[room][0]!r} beyond them: leave out keys with ever new texts, or raise "
                "Memory(columns=...)."
            )

    def with_new(self, columns: Iterable[Column]) -> "Columns":
        """Return these columns with new ones at the end."""
        return Columns(self.most, [*self.columns, *columns])

    def _add(self, column: Column) -> None:
        key, text = column
        place, name = len(self.columns), key if text is None else f"{key}={text}"
        if name in self._named:
            raise InvalidInputError(
                f"keys of x must make columns of distinct names, got {name!r} twice: as a key, and a "
                "key with its text."
            )
        self._named[name] = column
        self.columns.append((key, text))
        if text is None:
            self.numeric[key] = place
        else:
            self.texts.setdefault(key, {})[text] = place
        self._keys = None if self.texts else tuple(self.numeric)

    def refuse_change(self, key: str, value: Any) -> None:
        """Refuse a text where numbers came before, and the other way round."""
        if isinstance(value, str) and key in self.numeric:
            raise InvalidInputError(f"x[{key!r}] must be a number as before, got the text {value!r}.")
        if not isinstance(value, str) and key in self.texts:
            raise InvalidInputError(f"x[{key!r}] must be a text as before, got {value!r}.")


def _check_mapping(x: Any) -> None:
    if type(x) is not dict and not isinstance(x, Mapping):
        raise InvalidTypeError(f"x must be a dictionary of numbers or texts by name, got {x!r}.")
    for key in x:
        if type(key) is not str and not isinstance(key, str):
            raise InvalidTypeError(f"keys of x must be texts, got {key!r}.")


def _number(key: str, value: Any) -> float:
    """Return a value as a finite float, or refuse it by key."""
    if isinstance(value, bool | np.bool_):
        return float(value)
    if value is np.ma.masked:  # whose item is a zero
        raise InvalidInputError(f"x[{key!r}] must be a number, a text or None, got a masked entry.")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, numbers.Real):
        raise InvalidTypeError(f"x[{key!r}] must be a number, a text or None, got {value!r}.")
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidInputError(f"x[{key!r}] must fit in a float, got a larger number.") from error
    if not -LARGEST < number < LARGEST:
        raise InvalidInputError(
            f"x[{key!r}] must be finite and within +-{LARGEST:g}, got {number}: "
            "leave a key out if its value is not known."
        )
    return number
